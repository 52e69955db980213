"""The matrix of a multiclass margin problem, which is never formed, against the one that is."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data.class_differences import ClassDifferences
from fenchel.estimator.interpolation.perceptron import joint_rows
from fenchel.steps import Margin, MarginSampling
from tests.helpers.interpolation import zero
from tests.helpers.margin import hard
from tests.helpers.margins import rows_of
from tests.matrix.statements import STORAGES

rng = np.random.default_rng(0)

STORAGE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}


def pair(storage="C", n=30, d=5, k=4, seed=0):
    """The implicit matrix, and the dense one."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.6, rng.normal(size=(n, d)), 0.0).astype(np.float32).astype(np.float64)
    codes = rng.integers(k, size=n)
    return ClassDifferences(fl.Design(STORAGE[storage](X)), codes, k), joint_rows(X, codes, k).toarray()


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("shape", [(30, 5, 4), (7, 9, 2), (1, 1, 3)])
def test_products_rows_and_norms_are_those_of_the_explicit_matrix(storage, shape):
    implicit, explicit = pair(storage, *shape)
    rng = np.random.default_rng(1)
    n, d = explicit.shape
    assert implicit.shape == (n, d)
    w, a, s = rng.normal(size=d), rng.normal(size=n), rng.random(n)
    for one in (implicit.matvec(w), implicit.matvec_bounded(w).value):
        np.testing.assert_allclose(one, explicit @ w, atol=1e-12)
    for one in (implicit.rmatvec(a), implicit.rmatvec_bounded(a).value):
        np.testing.assert_allclose(one, explicit.T @ a, atol=1e-12)
    np.testing.assert_allclose(implicit.matvec_bounded(w).absolute, np.abs(explicit) @ np.abs(w), atol=1e-12)
    np.testing.assert_allclose(implicit.rmatvec_bounded(a).absolute, np.abs(explicit.T) @ np.abs(a), atol=1e-12)
    which = rng.integers(n, size=5)
    assert np.array_equal(implicit.rows(which), explicit[which])
    for i in which:
        np.testing.assert_allclose(implicit.gram_row(i), explicit @ explicit[i], atol=1e-12)
    np.testing.assert_allclose(implicit.gram_product(a), explicit @ (explicit.T @ a), atol=1e-11)
    for p in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(implicit.row_norms(p), np.sum(np.abs(explicit) ** p, axis=1) ** (1.0 / p))
        np.testing.assert_allclose(
            implicit.column_norms(p, s), (s @ np.abs(explicit) ** p) ** (1.0 / p), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(implicit.row_norms(np.inf), np.abs(explicit).max(axis=1))
    np.testing.assert_allclose(implicit.column_norms(np.inf), np.abs(explicit).max(axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_error_bounds_hold_in_exact_arithmetic(seed):
    implicit, explicit = pair("C", 12, 4, 5, seed)
    rng = np.random.default_rng(seed)
    # sums that cancel, over many scales
    for product, matrix, size in (
        (implicit.matvec_bounded, explicit, explicit.shape[1]),
        (implicit.rmatvec_bounded, explicit.T, explicit.shape[0]),
    ):
        x = rng.normal(size=size) * 10.0 ** rng.uniform(-8, 8, size=size)
        found = product(x)
        for row, value, error in zip(matrix, found.value, found.error, strict=True):
            exact = sum(Fraction(float(r)) * Fraction(float(v)) for r, v in zip(row, x, strict=True) if r)
            assert abs(exact - Fraction(float(value))) <= Fraction(float(error))


@pytest.mark.parametrize(
    "solver", [Margin(), Margin(form="dual"), MarginSampling()], ids=["primal", "dual", "sampling"]
)
def test_algorithms_take_the_same_steps_with_the_explicit_matrix(solver):
    rng = np.random.default_rng(3)
    X, codes = rng.normal(size=(40, 6)), rng.integers(3, size=40)
    X[np.arange(40), codes] += 3.0
    explicit = joint_rows(X, codes, 3)
    implicit = ClassDifferences(fl.Design(X), codes, 3)
    one, two = (hard(matrix, np.ones(80)) for matrix in (implicit, explicit))
    states = [solver.begin(problem, zero(problem), 0) for problem in (one, two)]
    for _ in range(50):
        states = [solver.step(state) for state in states]
        np.testing.assert_allclose(states[0].weights, states[1].weights, rtol=1e-6, atol=1e-9)


def test_the_multiclass_margin_is_certified_with_either():
    rng = np.random.default_rng(3)
    X, codes = rng.normal(size=(40, 6)), rng.integers(3, size=40)
    X[np.arange(40), codes] += 4.0
    implicit = ClassDifferences(fl.Design(X), codes, 3)
    result = fl.solve(hard(implicit, np.ones(80)), solver="margin", tol=1e-4)
    U = result.w.reshape(3, 6)
    Z = X @ U.T
    gaps = Z[np.arange(40), codes][:, None] - np.where(np.eye(3, dtype=bool)[codes], -np.inf, Z)
    assert gaps.min() / np.linalg.norm(U) == pytest.approx(1.0 / np.linalg.norm(result.w), rel=1e-12)
    best = fl.solve(hard(joint_rows(X, codes, 3), np.ones(80)), tol=1e-9)
    assert np.linalg.norm(best.w) <= np.linalg.norm(result.w) <= (1.0 + 1e-4) * np.linalg.norm(best.w)
    assert fl.solve(hard(implicit, np.ones(80)), tol=1e-4).certificate.ok  # by "auto" as well


def test_bad_classes_are_errors():
    X = fl.Design(np.eye(3))
    for codes, k, words in [
        (np.array([0, 1]), 2, "codes must be 3 integers"),
        (np.array([0.0, 1.0, 0.0]), 2, "codes must be 3 integers"),
        (np.array([0, 1, 2]), 2, "from 0 to k - 1"),
        (np.zeros(3, dtype=int), 1, "at least 2"),
    ]:
        with pytest.raises(ValueError, match=words):
            ClassDifferences(X, codes, k)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_a_constant_column_is_one_more_of_the_matrix(storage, constant):
    X, codes = rng.normal(size=(10, 4)).astype(np.float32).astype(np.float64), np.arange(10) % 3
    pairs = ClassDifferences(fl.Design(STORAGES[storage](X), constant=constant), codes, 3)
    A, _ = rows_of(np.column_stack([X, np.full(10, constant)]) if constant else X, codes)
    w, a, s = rng.normal(size=A.shape[1]), rng.normal(size=len(A)), rng.exponential(size=len(A))
    assert pairs.shape == A.shape
    np.testing.assert_allclose(pairs.matvec(w), A @ w, atol=1e-12)
    np.testing.assert_allclose(pairs.rmatvec(a), A.T @ a, atol=1e-12)
    for product, value, absolute in (
        (pairs.matvec_bounded(w), A @ w, np.abs(A) @ np.abs(w)),
        (pairs.rmatvec_bounded(a), A.T @ a, np.abs(A).T @ np.abs(a)),
        (pairs.rmatvec_bounded(s), A.T @ s, np.abs(A).T @ s),
    ):
        np.testing.assert_allclose(product.value, value, atol=1e-12)
        np.testing.assert_allclose(product.absolute, absolute, rtol=1e-12)
    np.testing.assert_allclose(pairs.rows(np.array([0, 7, 19])), A[[0, 7, 19]])
    for p in (1.0, 2.0, np.inf):
        np.testing.assert_allclose(pairs.row_norms(p), np.linalg.norm(A, p, axis=1))
    np.testing.assert_allclose(pairs.column_norms(2.0, s), np.sqrt(s @ A**2))
    np.testing.assert_allclose(pairs.gram_row(7), A @ A[7], atol=1e-12)
    np.testing.assert_allclose(pairs.using(1).matvec(w), A @ w, atol=1e-12)


def test_bounds_cover_sums_that_cancel():
    """Large terms of both signs: the error of the products is below its bound."""
    X = rng.normal(size=(30, 5)) * 10.0 ** rng.integers(-6, 6, size=(30, 5))
    codes = np.arange(30) % 4
    pairs = ClassDifferences(fl.Design(X), codes, 4)
    A, _ = rows_of(X, codes)
    exact = A.astype(np.longdouble)
    w, a = rng.normal(size=A.shape[1]) / np.tile(X[0], 4), rng.normal(size=len(A))
    forward, back = pairs.matvec_bounded(w), pairs.rmatvec_bounded(a)
    assert np.all(np.abs(forward.value - exact @ w) <= forward.error)
    assert np.all(np.abs(back.value - exact.T @ a) <= back.error)
