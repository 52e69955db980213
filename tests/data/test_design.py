"""The one view over dense and sparse matrices."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fenchel import Design
from fenchel._core import _portable, kernels

rng = np.random.default_rng(0)
A = sp.random(40, 17, density=0.3, random_state=0, format="csr")


def storages():
    """The same matrix in every storage that is used in place."""
    wide = A.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    forms = {
        "csr": A,
        "csr64": wide,
        "csc": A.tocsc(),
        "C": A.toarray(),
        "F": np.asfortranarray(A.toarray()),
    }
    single = {f"{name} float32": m.astype(np.float32) for name, m in forms.items()}
    single["F float32"] = np.asfortranarray(single["F float32"])
    return forms | single


every_storage = pytest.mark.parametrize("name", storages())


def dense(X, constant=0.0):
    full = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    return np.column_stack([full, np.full(len(full), constant)]) if constant else full


@every_storage
@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("threads", [1, 3])
def test_products_agree_and_their_bounds_hold(name, constant, threads):
    X = storages()[name]
    full, design = dense(X, constant), Design(X, constant=constant)
    design.threads = threads
    w, a = rng.normal(size=full.shape[1]), rng.normal(size=full.shape[0])
    for product, exact in (
        (
            design.matvec_bounded(w),
            full,
        ),
        (design.rmatvec_bounded(a), full.T),
    ):
        vector = w if exact is full else a
        truth = exact.astype(np.longdouble) @ vector.astype(np.longdouble)
        assert np.all(np.abs(product.value - truth) <= product.error)
        np.testing.assert_allclose(product.absolute, np.abs(exact) @ np.abs(vector), rtol=1e-12)
        assert np.all(product.error <= 1e-12 * product.absolute + 1e-300)
    np.testing.assert_allclose(design.matvec(w), full @ w, atol=1e-12)
    np.testing.assert_allclose(design.rmatvec(a), full.T @ a, atol=1e-12)


@every_storage
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 5.0, np.inf])
@pytest.mark.parametrize("constant", [0.0, 2.5])
def test_norms(name, p, constant):
    X = storages()[name]
    full, design, s = dense(X, constant), Design(X, constant=constant), rng.random(40)
    s[:3] = 0.0
    np.testing.assert_allclose(design.row_norms(p), np.linalg.norm(full, p, axis=1), rtol=1e-10)
    np.testing.assert_allclose(design.column_norms(p), np.linalg.norm(full, p, axis=0), rtol=1e-10)
    weighted = np.abs(full[s > 0]).max(axis=0) if np.isinf(p) else (s @ np.abs(full) ** p) ** (1 / p)
    np.testing.assert_allclose(design.column_norms(p, s), weighted, rtol=1e-10)


@every_storage
def test_rows_and_columns(name):
    X = storages()[name]
    full, design = dense(X), Design(X)
    for i in (0, 7, 39):
        index, value = design.row(i)
        assert np.array_equal(np.bincount(index, value, 17), full[i])
    for j in (0, 16):
        index, value = design.column(j)
        assert np.array_equal(np.bincount(index, value, 40), full[:, j])
    assert np.array_equal(design.rows(np.array([3, 1])), full[[3, 1]])
    np.testing.assert_allclose(design.times(np.eye(17)[:, :2]), full[:, :2])


@every_storage
def test_nothing_is_copied_or_cast(name):
    X = storages()[name]
    design = Design(X)
    assert design.matrix is X
    assert design.dtype == X.dtype
    assert np.shares_memory(design.matrix.data if sp.issparse(X) else design.matrix, X.data if sp.issparse(X) else X)


def test_memory_maps_are_used_in_place(tmp_path):
    path = tmp_path / "X.bin"
    A.toarray().tofile(path)
    X = np.memmap(path, dtype=np.float64, mode="r", shape=A.shape)
    design = Design(X)
    assert np.shares_memory(design.matrix, X)
    np.testing.assert_allclose(design.matvec(np.ones(17)), A @ np.ones(17))


def test_unsorted_indices_are_used_in_place_and_duplicates_are_added_up():
    shuffled = A.copy()
    for i in range(40):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        order = rng.permutation(part.stop - part.start)
        shuffled.indices[part], shuffled.data[part] = shuffled.indices[part][order], shuffled.data[part][order]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    design = Design(shuffled)
    assert np.shares_memory(design.matrix.data, shuffled.data)
    np.testing.assert_allclose(design.row_norms(), sp.linalg.norm(A, axis=1))
    doubled = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    before = doubled.data.copy()
    design = Design(doubled)
    assert np.array_equal(design.row_norms(), [3.0, 3.0])
    assert np.array_equal(design.column_norms(np.inf), [3.0, 3.0])
    assert np.array_equal(doubled.data, before)


def test_other_inputs_are_converted_once():
    assert Design([[1, 2], [3, 4]]).dtype == np.float64
    assert Design(np.array([[True, False]])).dtype == np.float64
    assert Design(A.tocoo()).is_sparse
    assert Design(np.ones((4, 6))[:, ::2]).matvec(np.ones(3))[0] == 3.0
    assert Design(np.ones((2, 2), dtype=">f8")).matvec(np.ones(2))[0] == 2.0


def test_long_matrices_have_short_rounding_bounds():
    X = np.ones((200_000, 2))
    product = Design(X).rmatvec_bounded(np.ones(200_000))
    assert np.array_equal(product.value, [200_000.0, 200_000.0])
    assert np.all(product.error <= 2e-13 * product.value)


@pytest.mark.parametrize("threads", [1, 2])
def test_matrices_that_outgrow_the_cache_have_the_same_products(threads):
    """Their kernels ask for what comes behind in memory: every length of a row, the last rows among them."""
    sizes = np.append(np.random.default_rng(1).permutation(2050), [3, 0, 1])
    indices = np.concatenate([np.arange(size) for size in sizes])
    X = sp.csr_array((rng.normal(size=len(indices)), indices, np.append(0, np.cumsum(sizes))), shape=(2053, 2050))
    assert X.nnz > 2_000_000
    design, w, a = Design(X, threads=threads), rng.normal(size=2050), rng.normal(size=2053) * (rng.random(2053) < 0.5)
    for product, expected, size in (
        (design.matvec_bounded(w), X @ w, abs(X) @ abs(w)),
        (design.rmatvec_bounded(a), X.T @ a, abs(X).T @ abs(a)),
    ):
        assert np.all(np.abs(product.value - expected) <= 2.0 * product.error)
        np.testing.assert_allclose(product.absolute, size, rtol=1e-12)
    assert np.all(np.abs(design.matvec(w) - X @ w) <= 2.0 * design.matvec_bounded(w).error)
    assert np.all(np.abs(design.rmatvec(a) - X.T @ a) <= 2.0 * design.rmatvec_bounded(a).error)


@settings(max_examples=50, deadline=None)
@given(scale=st.sampled_from([1e-150, 1e-100, 1.0, 1e100, 1e150]), p=st.floats(1, 50))
def test_norms_neither_overflow_nor_underflow(scale, p):
    design = Design(scale * np.array([[3.0, -4.0], [0.0, 1.0]]))
    np.testing.assert_allclose(design.row_norms(p) / scale, [np.linalg.norm([3, 4], p), 1.0], rtol=1e-12)
    np.testing.assert_allclose(design.column_norms(p) / scale, [3.0, np.linalg.norm([4, 1], p)], rtol=1e-12)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array])
def test_columns_of_any_size_and_weight_have_their_norms(storage):
    """One sum of squares for all, and another look at those that overflow, underflow or are empty."""
    X = np.array([[1.0, 1e-170, 1e200, 0.0, 1e-200, 3.0], [2.0, 1e-170, 1.0, 0.0, 1e-200, 4.0]])
    for weights in ([1.0, 1.0], [1e200, 1e200], [1e-100, 3e-90], [0.0, 2.0]):
        exact = [
            float(np.sqrt(np.sum(np.array(weights, np.longdouble) * column.astype(np.longdouble) ** 2)))
            for column in X.T
        ]
        np.testing.assert_allclose(Design(storage(X)).column_norms(2.0, weights), exact, rtol=1e-12)


def test_designs_survive_pickling():
    design = pickle.loads(pickle.dumps(Design(A, constant=2.0)))
    assert design.shape == (40, 18)
    np.testing.assert_allclose(design.matvec(np.ones(18)), A @ np.ones(17) + 2.0)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan]]), "X has nan at row 0, column 1"),
        (np.asfortranarray([[1.0, 2.0], [3.0, -np.inf]]), "X has -inf at row 1, column 1"),
        (sp.csr_array(([1.0, np.inf], ([0, 2], [1, 0])), shape=(3, 2)), "X has inf at row 2, column 0"),
        (sp.csc_array(([1.0, np.nan], ([0, 2], [1, 0])), shape=(3, 2)), "X has nan at row 2, column 0"),
        (np.zeros((0, 3)), "X is empty"),
        (np.zeros((3, 0)), "X is empty"),
        (np.ones(3), "two dimensions"),
        (np.array([["1", "a"]]), "X has .*'1'.* at row 0, column 0"),
        (np.array([[1.0, "a"]], dtype=object), "X has 'a' at row 0, column 1"),
        (np.array([[1j]]), "complex"),
    ],
)
def test_bad_input_is_refused_with_its_position(X, message):
    with pytest.raises(ValueError, match=message):
        Design(X)


def test_malformed_sparse_matrices_are_refused():
    bad = A.copy()
    bad.indices[3] = 99
    with pytest.raises(ValueError, match="index lies outside"):
        Design(bad)


@pytest.mark.skipif(kernels is _portable, reason="this processor runs the portable kernels only")
def test_portable_and_wide_kernels_agree():
    w, a = rng.normal(size=17), rng.normal(size=40)
    for X in (A.toarray(), A.toarray().astype(np.float32)):
        both = [module.Lines(X) for module in (_portable, kernels)]
        for one, other in (
            [lines.gather(w, True, 1) for lines in both],
            [lines.scatter(a, True, 2) for lines in both],
        ):
            np.testing.assert_allclose(one[0], other[0], rtol=1e-13, atol=1e-13)


def test_strided_misaligned_and_overlong_arrays_are_handled():
    strided = sp.csr_array(A)
    strided.data = np.repeat(strided.data, 2)[::2]
    np.testing.assert_allclose(Design(strided).matvec(np.ones(17)), A @ np.ones(17))
    longer = A.copy()
    longer.data, longer.indices = np.append(longer.data, np.nan), np.append(longer.indices, 0).astype(np.int32)
    np.testing.assert_allclose(Design(longer).matvec(np.ones(17)), A @ np.ones(17))
    raw = np.zeros(40 * 17 * 8 + 1, dtype=np.uint8)
    misaligned = raw[1:].view(np.float64).reshape(40, 17)
    misaligned[:] = A.toarray()
    np.testing.assert_allclose(Design(misaligned).matvec(np.ones(17)), A @ np.ones(17))
