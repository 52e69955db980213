"""What the compiled core promises its callers: functions it may call, constants that can be set, columns it lists."""

import ctypes

import numpy as np
import pytest
from scipy.linalg import cython_blas, cython_lapack, lapack

from fenchel._core import _portable, kernels

POSV, SYRK = cython_lapack.__pyx_capi__["dposv"], cython_blas.__pyx_capi__["dsyrk"]


def capsule(signature: bytes | None):
    """A capsule of that name; the pointer is never called."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1, signature, None)


@pytest.mark.parametrize("module", [_portable, kernels], ids=["portable", "in use"])
def test_functions_are_taken_by_their_signature(module):
    plain = b"void (char *, int *, int *, double *, int *, double *, int *, int *)"
    module.Posv(POSV)
    module.Syrk(SYRK)
    module.Posv(capsule(plain))
    module.Posv(capsule(plain.replace(b"double", b"__pyx_t_5scipy_6linalg_13cython_lapack_d")))


@pytest.mark.parametrize(
    "signature",
    [
        None,
        b"",
        b"void (char *, int64_t *, int64_t *, double *, int64_t *, double *, int64_t *, int64_t *)",
        b"void (char *, int *, int *, float *, int *, float *, int *, int *)",
        b"void (char *, int *, int *, __pyx_t_5scipy_6linalg_13cython_lapack_s *, int *, double *, int *, int *)",
        b"void (char *, int *, int *, __pyx_t_5scipy_6linalg_13cython_lapack_d *, int *, double *, int *)",
        b"void (__pyx_t_d",
    ],
)
def test_a_function_of_another_signature_is_refused(signature):
    with pytest.raises(TypeError, match="compiled for") as error:
        kernels.Posv(capsule(signature))
    assert (signature or b"").decode() in str(error.value)
    assert "void (char *, int *, int *, double *, int *, double *, int *, int *)" in str(error.value)


def test_a_function_in_the_place_of_another_is_refused():
    with pytest.raises(TypeError, match="SciPy's Posv has the signature"):
        kernels.Posv(SYRK)
    with pytest.raises(TypeError, match="SciPy's Syrk has the signature"):
        kernels.Syrk(POSV)
    with pytest.raises(TypeError):
        kernels.minimise_quadratic(POSV, np.eye(1), *[np.zeros(1, dtype=int)] * 2, *[np.zeros(1)] * 3, 0.0)


def path_on(X, y, tuning, mean=None):
    """A path of the squared loss, and the sample weights."""
    p = np.full(len(y), 1.0 / len(y))
    lines = kernels.Lines(X)
    screen = kernels.int16_screen(lines, True, mean, p)
    posv, syrk = kernels.Posv(POSV), kernels.Syrk(SYRK)
    loss = kernels.Squared()
    return kernels.sparse_path(lines, True, mean, screen, 0.0, loss, y, p, 1.0, False, 0.0, posv, syrk, tuning), p


def test_a_path_follows_its_constants():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 200)), rng.normal(size=30)
    tuning = kernels.SparsePathTuning()
    lam = path_on(X, y, tuning)[0].largest * np.array([0.5, 0.2])
    args = lam, np.zeros(2), np.full(2, 1e-6), 0.0, 1e9, 0
    assert len(path_on(X, y, tuning)[0].advance(*args)[-1]) == 2
    tuning.most_columns = 2
    assert len(path_on(X, y, tuning)[0].advance(*args)[-1]) == 0


@pytest.mark.parametrize("cuts", [(0.5, 0.95), (0.2, 0.3), (0.9, 0.999), (1.0, 1.0)])
@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
def test_columns_that_are_not_listed_are_at_most_the_cut(cuts, scale):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3000)) * rng.lognormal(sigma=2.0, size=3000), scale * rng.normal(size=40)
    X[:, 1000:1010] = 0.0
    tuning = kernels.SparsePathTuning()
    tuning.least_cut, tuning.most_cut = cuts
    path, p = path_on(X, y, tuning)
    threshold = path.largest * np.geomspace(0.9, 0.1, 8)
    found = path.advance(threshold, np.full(8, 1e-3), np.full(8, 1e-6), 0.0, 1e9, 0)
    *_, cut, near, near_starts, _, _, multipliers, steps = found
    assert len(steps) == len(cut) == 8
    assert np.all((cut >= cuts[0] * threshold) & (cut <= cuts[1] * threshold))
    for k, a in enumerate(multipliers.reshape(8, 40)):
        v = np.abs((p * a).astype(np.longdouble) @ X.astype(np.longdouble))
        error = 1e-14 * (p * np.abs(a)) @ np.abs(X)
        listed = np.sort(near[near_starts[k] : near_starts[k + 1]])
        # those that are clearly above are listed, none is that is clearly not, and the values are right
        assert np.sum(v > cut[k] + error) <= len(listed) <= np.sum(v > cut[k] - error)
        top = np.argsort(v)[len(v) - len(listed) :]
        np.testing.assert_allclose(listed, v[top].astype(float), rtol=1e-12)


def test_a_path_ends_when_its_time_is_over():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 400)), rng.normal(size=50)
    path, _ = path_on(X, y, kernels.SparsePathTuning())
    lam = path.largest * np.geomspace(0.9, 0.01, 50)
    assert len(path.advance(lam, np.zeros(50), np.full(50, 1e-10), 0.0, 0.0, 0)[-1]) < 50


@pytest.mark.parametrize("size", [2, 5])
def test_a_hessian_that_cannot_be_factored_has_its_diagonal_raised(size):
    """Duplicate columns whose inner products are rounded: the matrix has a negative eigenvalue."""
    H = np.ones((2 * size, 2 * size)) * (1.0 + 1e-12) * np.kron(np.eye(size), np.ones((2, 2)))
    H[np.diag_indices_from(H)] = 1.0
    info = [lapack.dposv(H * (1.0 + raised * np.eye(2 * size)), np.ones(2 * size))[2] for raised in (1e-14, 1e-10)]
    assert info[0] > 0 == info[1]
    groups, threshold, c = np.arange(2 * size + 1), np.full(2 * size, 0.1), np.repeat(1.0 + np.arange(size), 2)
    u = np.full(2 * size, 0.1)  # no weight is zero: the face has all columns
    slope = H @ u - c
    kernels.minimise_quadratic(kernels.Posv(POSV), H, groups[:-1], groups, threshold, u, slope, 1e-15)
    assert np.all(np.isfinite(u))
    np.testing.assert_allclose(slope, H @ u - c, atol=1e-9)
    np.testing.assert_allclose(u.reshape(size, 2).sum(axis=1), c[::2] - 0.1, rtol=1e-6)
