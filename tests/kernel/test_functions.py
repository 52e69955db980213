"""Kernels: scikit-learn's values, and error bounds that hold in exact arithmetic."""

import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

import fenchel as fl
from fenchel.data.limits import LimitsTuning
from fenchel.kernel import Gram, NotPositiveSemidefinite, Samples, kernel_of

NAMES = ["linear", "rbf", "poly", "laplacian", "cosine"]
STORAGES = [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def data(n=23, d=7, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7) * scale
    X[3], X[5] = X[4], 0.0
    return X


def theirs(name, X, Y=None, gamma=None):
    options = {"gamma": gamma} if name in ("rbf", "poly", "laplacian") else {}
    options |= {"degree": 3, "coef0": 0.0} if name == "poly" else {}
    return pairwise_kernels(X, Y, metric=name, **options)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_scikit_learn(name, storage, dtype):
    X = data().astype(dtype)
    gamma = 0.3 if name in ("rbf", "poly", "laplacian") else "scale"
    gram = Gram(storage(X), kernel_of(name, gamma))
    expected = theirs(name, X.astype(np.float64), gamma=0.3)
    np.testing.assert_allclose(gram.whole, expected, atol=1e-12)
    np.testing.assert_allclose(gram.diagonal, np.diag(expected), atol=1e-12)
    new = data(9, seed=1).astype(dtype)
    beta = np.random.default_rng(2).normal(size=len(X))
    cross = gram.cross_product(Samples.of(storage(new)), beta).value
    np.testing.assert_allclose(
        cross, theirs(name, new.astype(np.float64), X.astype(np.float64), 0.3) @ beta, atol=1e-11
    )


def decimal(x):
    return Decimal(x.numerator) / Decimal(x.denominator)


def exact(kernel, x, y):
    """The kernel as a rational number, correct to sixty digits."""
    name = type(kernel).__name__
    x, y = [Fraction(float(a)) for a in x], [Fraction(float(a)) for a in y]
    dot = sum(a * b for a, b in zip(x, y, strict=True))
    if name == "Linear":
        return dot
    if name == "Polynomial":
        return (Fraction(kernel.gamma) * dot + Fraction(kernel.coef0)) ** kernel.degree
    if name == "Cosine":
        square = sum(a * a for a in x) * sum(a * a for a in y)
        return dot / Fraction(decimal(square).sqrt()) if square else Fraction(0)
    power = 2 if name == "RBF" else 1
    t = Fraction(kernel.gamma) * sum(abs(a - b) ** power for a, b in zip(x, y, strict=True))
    return Fraction((-decimal(t)).exp()) if t < 10**4 else Fraction(0)


@pytest.mark.parametrize(
    ("name", "gamma"),
    [*((name, "scale") for name in NAMES), *((name, g) for name in ("rbf", "poly", "laplacian") for g in (1e-12, 1e8))],
)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_error_bounds_hold_in_exact_arithmetic(name, scale, shift, storage, gamma):
    X = data(8, 5, scale=scale) + shift
    gram = Gram(storage(X), kernel_of(name, gamma, **({"coef0": 0.5} if name == "poly" else {})))
    bound = check_bounds(gram, X)
    assert bound.max() <= 1e-6 * max(1.0, float(np.abs(gram.diagonal).max()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-160, 1e-150, 1e-100, 1e100, 1e150])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_error_bounds_hold_where_terms_underflow_or_nearly_overflow(name, scale, storage):
    gamma = "scale"
    if name in ("rbf", "laplacian", "poly"):
        gamma = min(0.3 / scale / (1.0 if name == "laplacian" else scale), 1e308)
    for options in [{"coef0": 0.5}, {}] if name == "poly" else [{}]:
        X = data(8, 5, scale=scale)
        bound = check_bounds(Gram(storage(X), kernel_of(name, gamma, **options)), X)
        assert np.all(np.isfinite(bound))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("low", [-161.0, -110.0])
def test_error_bounds_hold_for_samples_of_many_scales(name, low):
    X = data(8, 5) * np.logspace(low, 40.0, 8)[:, None]
    check_bounds(Gram(X, kernel_of(name, **({"gamma": 1.0} if name in ("rbf", "laplacian", "poly") else {}))), X)


def check_bounds(gram, X):
    """Those of values, products and quadratic forms, in rationals."""
    n, K = len(X), gram.whole
    with localcontext() as context:
        context.prec = 60
        truth = [[exact(gram.kernel, x, y) for y in X] for x in X]
    bound = gram.accuracy(gram.samples, gram.samples).errors(K)
    for i in range(n):
        off = abs(Fraction(float(gram.diagonal[i])) - truth[i][i]) - Fraction(float(gram.diagonal_error[i]))
        assert off <= truth[i][i] / 10**50  # the digits of `exact`
        for j in range(n):
            assert abs(Fraction(float(K[i, j])) - truth[i][j]) <= Fraction(float(bound[i, j]))
    beta = np.random.default_rng(1).normal(size=n) * np.geomspace(1e-3, 1e3, n)
    product, b = gram.product(beta), [Fraction(float(x)) for x in beta]
    for row, value, error in zip(truth, product.value, product.error, strict=True):
        assert abs(sum(k * x for k, x in zip(row, b, strict=True)) - Fraction(float(value))) <= Fraction(float(error))
    value, error = gram.quadratic(beta)
    total = sum(b[i] * truth[i][j] * b[j] for i in range(n) for j in range(n))
    assert abs(total - Fraction(value)) <= Fraction(error)
    return bound


def test_rows_too_small_or_large_for_the_cosine_are_an_error():
    for size in (5e-324, 1e-310, 1e-295, 1e295, 1.7e308):
        for storage in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match=r"row 1 of X has the length .*rescale the features"):
                Gram(storage(np.array([[1.0, 2.0], [size, size]])), kernel_of("cosine"))
    gram = Gram(np.array([[1.0, 2.0], [1e-289, 3e-289], [0.0, 0.0], [1e289, 3e289]]), kernel_of("cosine"))
    check_bounds(gram, gram.samples.matrix)
    with pytest.raises(ValueError, match="row 0 of X has the length"):
        gram.cross_product(Samples.of(np.array([[1e-310, 0.0]])), np.ones(4))


def test_values_that_overflow_are_an_error():
    gram = Gram(np.array([[1.0, 2.0], [1e100, 1.0]]), kernel_of("linear"))
    with pytest.raises(ValueError, match="the kernel has inf for rows 0 and 1"):
        gram.cross_product(Samples.of(np.array([[1e250, 0.0]])), np.ones(2))
    far = np.array([[1e160], [-1e160]])
    np.testing.assert_array_equal(Gram(far, kernel_of("rbf", 1e-300)).whole, np.eye(2))
    with pytest.raises(ValueError, match="distances of samples overflow"):
        Gram(far, kernel_of("rbf", 1e-321)).whole  # noqa: B018


def test_products_of_multiples_are_remembered_with_their_error():
    gram = Gram(data(), kernel_of("rbf"))
    beta = np.random.default_rng(0).normal(size=23)
    first, again = gram.product(beta), gram.product(beta * (1.0 / 3.0))
    fresh = Gram(data(), kernel_of("rbf")).product(beta * (1.0 / 3.0))
    assert np.all(np.abs(again.value - fresh.value) <= fresh.error + again.error)
    np.testing.assert_allclose(again.value, first.value / 3.0)
    assert np.all(again.error >= first.error / 3.0)


def test_gamma_is_that_of_svc():
    X = data()
    assert math.isclose(Gram(X, kernel_of("rbf")).kernel.gamma, 1.0 / (7 * X.var()), rel_tol=1e-12)
    assert math.isclose(Gram(sp.csr_array(X), kernel_of("rbf")).kernel.gamma, 1.0 / (7 * X.var()), rel_tol=1e-12)
    assert Gram(X, kernel_of("rbf", "auto")).kernel.gamma == Gram(X, kernel_of("rbf", None)).kernel.gamma == 1.0 / 7.0
    assert Gram(np.ones((3, 2)), kernel_of("rbf")).kernel.gamma == 1.0


def test_a_function_of_blocks_and_a_precomputed_matrix_are_the_kernel():
    X = data()
    K = theirs("rbf", X, gamma=0.3)
    own = Gram(X, kernel_of(lambda A, B: theirs("rbf", A, B, gamma=0.3)))
    given = Gram(K, kernel_of("precomputed"))
    np.testing.assert_allclose(own.whole, K)
    np.testing.assert_array_equal(given.whole, K)
    assert given.accuracy(given.samples, given.samples).errors(K).max() <= 1e-15


@pytest.mark.parametrize("megabytes", [200.0, 1.0, 0.003, 1e-9])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_rows_do_not_depend_on_the_cache(megabytes, storage):
    X = data(60)
    gram, rng = Gram(storage(X), kernel_of("rbf", 0.3), megabytes), np.random.default_rng(0)
    K = theirs("rbf", X, gamma=0.3)
    assert gram.cache.store.nbytes <= megabytes * 2**20
    for _ in range(30):
        which, columns = rng.integers(60, size=rng.integers(1, 20)), rng.permutation(60)[: rng.integers(1, 60)]
        np.testing.assert_allclose(gram.rows(which), K[which], atol=1e-14)
        np.testing.assert_allclose(gram.block(which, columns), K[np.ix_(which, columns)], atol=1e-14)
        beta = rng.normal(size=60) * (rng.random(60) < 0.3)
        np.testing.assert_allclose(gram.product(beta).value, K @ beta, atol=1e-12)
    np.testing.assert_allclose(gram.whole, K, atol=1e-14)


def test_the_oldest_rows_leave_the_cache():
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return theirs("rbf", A, B, gamma=0.3)

    n = 64
    gram = Gram(data(n), kernel_of(kernel), 4 * n * 8 / 2**20)
    calls.clear()
    gram.rows(np.arange(4))
    gram.rows(np.array([0, 1]))
    assert sum(calls) == 4
    gram.rows(np.array([9]))  # 2 leaves
    gram.rows(np.array([0, 1, 3, 9]))
    assert sum(calls) == 5
    gram.rows(np.array([2]))
    assert sum(calls) == 6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("X", [np.ones((1, 1)), np.zeros((3, 2)), np.ones((4, 1)), np.eye(3) * 1e-200])
def test_extreme_samples(name, X):
    gram = Gram(X, kernel_of(name))
    assert np.all(np.isfinite(gram.whole))
    np.testing.assert_allclose(np.diag(gram.whole), gram.diagonal, atol=1e-12)


def test_features_that_overflow_are_an_error():
    X = np.array([[1e150, 1.0], [2.0, -1e150], [1e160, 1e160]])
    for name in ("linear", "poly"):
        with pytest.raises(ValueError, match="rescale the features"):
            Gram(X, kernel_of(name, **({"gamma": 1.0} if name == "poly" else {})))
    with pytest.raises(ValueError, match='gamma="scale" is out of range'):
        Gram(X, kernel_of("rbf"))
    for name in ("rbf", "laplacian"):
        np.testing.assert_array_equal(Gram(X, kernel_of(name, 1.0)).whole, np.eye(3))
    np.testing.assert_allclose(Gram(X, kernel_of("cosine")).whole, theirs("cosine", X / 1e150), atol=1e-14)


def test_bad_input_is_an_error():
    X = data()
    for arguments, message in [
        (("sigmoid",), "kernel must be one of"),
        (("linear", 0.3), "has no parameter gamma"),
        (("rbf", "scale", 4), "has no parameter degree"),
        (("rbf", -1.0), "gamma must be a positive number"),
        (("poly", "scale", 2.5), "degree must be a whole number"),
        (("poly", "scale", 2, -1.0), "coef0 must be a number >= 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernel_of(*arguments)
    with pytest.raises(TypeError, match="kernel must be a name"):
        kernel_of(3)
    with pytest.raises(ValueError, match="row 2, column 1"):
        Gram(np.where(np.arange(23 * 7).reshape(23, 7) == 15, np.nan, X), kernel_of("rbf"))
    with pytest.raises(ValueError, match="cache_size must be a positive number"):
        Gram(X, kernel_of("rbf"), cache_size=0)
    with pytest.raises(ValueError, match="must return an array of shape"):
        Gram(X, kernel_of(lambda A, B: np.zeros(3)))
    with pytest.raises(ValueError, match="square matrix"):
        Gram(X, kernel_of("precomputed"))


def test_matrices_that_are_not_symmetric_or_not_semidefinite_are_errors():
    K = theirs("rbf", data(), gamma=0.3)
    K[2, 7] += 1e-3
    with pytest.raises(ValueError, match=r"must be symmetric; its values for rows \(2, 7\) and \(7, 2\)"):
        Gram(K, kernel_of("precomputed"))
    with pytest.raises(NotPositiveSemidefinite, match=r"k\(x, x\) is -1 for row 1"):
        Gram(np.diag([1.0, -1.0]), kernel_of("precomputed"))
    with pytest.raises(NotPositiveSemidefinite, match="rows 0 and 1"):
        Gram(np.array([[1.0, 2.0], [2.0, 1.0]]), kernel_of("precomputed")).whole  # noqa: B018
    # every 2 x 2 minor is nonnegative, but 1 - 2 * 0.9 is an eigenvalue
    with pytest.raises(NotPositiveSemidefinite, match=r"about -0\.8 times the largest"):
        Gram(THREE, kernel_of("precomputed"))


THREE = np.full((3, 3), -0.9) + 1.9 * np.eye(3)


def test_beyond_the_limit_a_quadratic_form_may_show_it(monkeypatch):
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(dense=4))
    gram = Gram(THREE, kernel_of("precomputed"))
    assert "taking the kernel to be" in gram.assumption
    with pytest.raises(NotPositiveSemidefinite, match="a'K a is"):
        gram.quadratic(np.ones(3))


def test_the_bound_of_a_linear_kernel_in_rationals():
    X = data(6, 40, scale=1e5)
    gram = Gram(X, kernel_of("linear"))
    bound = gram.accuracy(gram.samples, gram.samples).errors(gram.whole)
    rows = [[Fraction(float(x)) for x in row] for row in X]
    for i, x in enumerate(rows):
        for j, y in enumerate(rows):
            off = abs(sum(a * b for a, b in zip(x, y, strict=True)) - Fraction(float(gram.whole[i, j])))
            assert off <= Fraction(float(bound[i, j]))


def test_kernels_are_public():
    assert fl.kernel.Gram is Gram


def test_a_gram_matrix_is_pickled_without_its_rows():
    gram = Gram(data(), kernel_of("rbf"))
    again = pickle.loads(pickle.dumps(gram))
    assert again.kernel == gram.kernel
    assert not again.cache.is_complete
    np.testing.assert_array_equal(again.whole, gram.whole)
