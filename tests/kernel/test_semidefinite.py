"""Kernels from elsewhere are verified: a negative eigenvalue or asymmetry is an error, rounding is counted."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

import fenchel as fl
from fenchel.data.limits import LimitsTuning
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.kernel import Accuracy, Gram, Kernel, Linear, NotPositiveSemidefinite, kernel_of
from fenchel.kernel.semidefinite import eigenvalues_above, verify

L2 = fl.penalties.L2
PRECOMPUTED = kernel_of("precomputed")


def indefinite(n=80):
    """I + noise with every 2 x 2 minor positive, and the least eigenvalue -0.6."""
    noise = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n, n))
    noise = np.triu(noise, 1)
    noise += noise.T
    return np.eye(n) - 1.6 * noise / np.linalg.eigvalsh(noise)[0] * -1.0


def signs(n, seed=0):
    return np.where(np.random.default_rng(seed).random(n) < 0.5, -1.0, 1.0)


class Plain(Kernel):
    """x.x' minus a product of the first features: not semidefinite."""

    def block(self, A, B):
        return A.dense(slice(None)) @ B.dense(slice(None)).T - 3.0 * np.outer(A.dense([0]), B.dense([0]))

    def accuracy(self, A, B):
        return Accuracy.uniform(len(A), len(B), constant=1e-12)

    def diagonal(self, A):
        return np.full(len(A), 10.0), np.full(len(A), 1e-12)


@dataclass(frozen=True)
class Reversed(Linear):
    """A subclass of a proven kernel may be anything."""

    def block(self, A, B):
        return -super().block(A, B)


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Squared(), fl.losses.Logistic()])
@pytest.mark.parametrize("cache_size", [200.0, 0.005])
def test_an_indefinite_matrix_is_an_error_before_anything_is_certified(loss, cache_size):
    K = indefinite()
    assert np.linalg.eigvalsh(K)[0] < -0.5
    with pytest.raises(NotPositiveSemidefinite, match=r"negative eigenvalue, about -0\.[56]"):
        fl.KernelProblem(K, signs(80), loss, L2(0.1), kernel="precomputed", cache_size=cache_size)


def test_an_indefinite_matrix_is_an_error_for_models():
    K, y = indefinite(), signs(80)
    with pytest.raises(NotPositiveSemidefinite, match="negative eigenvalue"):
        fl.KernelClassifier(kernel="precomputed").fit(K, y)
    model = SVC(kernel="precomputed").fit(K, y)
    with pytest.raises(NotPositiveSemidefinite, match="negative eigenvalue"):
        fl.certify(model, K, y)


@pytest.mark.parametrize(
    "kernel",
    [lambda A, B: (A @ B.T) * np.outer(A[:, 0], B[:, 0]) - 0.9 * (A @ B.T) ** 3 / 99.0 - 2.0, Plain(), Reversed()],
)
def test_functions_and_own_kernels_are_verified(kernel):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        Gram(X, kernel_of(kernel))


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_singular_matrices_are_verified_at_every_scale(scale):
    X = np.random.default_rng(0).normal(size=(60, 4))
    gram = Gram(X @ X.T * scale, PRECOMPUTED)
    assert 0.0 < gram.definite.shift <= 1e-11 * gram.diagonal.max()
    assert Gram(np.zeros((3, 3)), PRECOMPUTED).definite.shift == 0.0


def test_values_of_single_precision_are_rounding():
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    gram = Gram(X @ X.T, PRECOMPUTED)
    assert np.linalg.eigvalsh(np.asarray(X @ X.T, dtype=float))[0] >= -gram.definite.shift
    assert gram.definite.shift <= 1e-6 * gram.diagonal.max() * 1.01


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_bound_on_eigenvalues_holds_in_rationals(n):
    """x'C x / |x|^2 for eigenvectors of the least eigenvalue, exactly."""
    rng = np.random.default_rng(n)
    F = rng.normal(size=(n, max(1, n - 2)))
    C = F @ F.T / np.trace(F @ F.T)
    C = 0.5 * (C + C.T)
    x = np.linalg.eigh(C)[1][:, 0]
    rows, v = [[Fraction(float(c)) for c in row] for row in C], [Fraction(float(t)) for t in x]
    quotient = sum(a * sum(c * b for c, b in zip(row, v, strict=True)) for a, row in zip(v, rows, strict=True))
    quotient /= sum(t * t for t in v)
    bound = eigenvalues_above(C.copy(), np.diagonal(C).copy(), 4.0 * n * UNIT_ROUNDOFF)
    assert bound is not None
    assert Fraction(bound) <= quotient
    for part in (-1e-3, -0.1):
        work, diagonal = C.copy(), np.diagonal(C) + part
        found = eigenvalues_above(work, diagonal, 0.0)
        assert found is None or Fraction(found) <= quotient + Fraction(part)


def test_errors_hold_for_the_matrix_with_the_shift():
    X = np.random.default_rng(0).normal(size=(20, 3))
    K, a = X @ X.T, np.random.default_rng(1).normal(size=20)
    gram = Gram(K, PRECOMPUTED)
    product, (value, error) = gram.product(a), gram.quadratic(a)
    b, shift = [Fraction(float(t)) for t in a], Fraction(gram.definite.shift)
    exact = [sum(Fraction(float(k)) * t for k, t in zip(row, b, strict=True)) for row in K]
    for move in (Fraction(0), shift):
        for e, t, found, bound in zip(exact, b, product.value, product.error, strict=True):
            assert abs(e + move * t - Fraction(float(found))) <= Fraction(float(bound))
        total = sum(t * (e + move * t) for e, t in zip(exact, b, strict=True))
        assert abs(total - Fraction(value)) <= Fraction(error)
    assert np.all(gram.lengths**2 >= np.diagonal(K) + gram.definite.shift)


@pytest.mark.parametrize("size", [1e-3, 0.3])
def test_an_asymmetric_function_is_an_error(size):
    def kernel(A, B):
        return A @ B.T + 3.0 + size * (A[:, :1] - B[:, 0])

    with pytest.raises(ValueError, match=r"must be symmetric; its values for rows|above the root of"):
        Gram(np.random.default_rng(0).normal(size=(20, 3)), kernel_of(kernel))


def test_asymmetry_of_rounding_is_counted():
    def kernel(A, B):
        return pairwise_kernels(A, B, metric="rbf", gamma=0.5) * (1.0 + 1e-9 * np.sign(A[:, :1] - B[:, 0]))

    X = np.random.default_rng(0).normal(size=(40, 3))
    gram = Gram(X, kernel_of(kernel))
    K = gram.whole
    assert np.all(0.5 * np.abs(K - K.T) <= gram.accuracy(gram.samples, gram.samples).errors(K))
    p = fl.KernelProblem(gram, signs(40), fl.losses.Logistic(), L2(0.1), intercept=True)
    exact = fl.KernelProblem(0.5 * (K + K.T), signs(40), fl.losses.Logistic(), L2(0.1), "precomputed", intercept=True)
    found, best = fl.solve(p, tol=1e-5).certificate, fl.solve(exact, tol=1e-9, warn=False).certificate
    assert found.ok
    assert found.primal - found.gap <= best.primal


def test_certificates_beyond_the_limit_say_what_they_assume(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20, 3))
    checked = fl.KernelProblem(X @ X.T, signs(20), fl.losses.Hinge(), L2(0.1), "precomputed")
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(dense=19 * 19))
    unchecked = fl.KernelProblem(X @ X.T, signs(20), fl.losses.Hinge(), L2(0.1), "precomputed")
    known = fl.KernelProblem(X, signs(20), fl.losses.Hinge(), L2(0.1), "linear")
    told = ["taking the kernel to be" in str(fl.solve(p, tol=1e-3).certificate) for p in (checked, unchecked, known)]
    assert told == [False, True, False]


def test_a_zero_diagonal_with_other_values_is_an_error():
    with pytest.raises(NotPositiveSemidefinite, match="all k"):
        verify(np.array([[0.0, 1.0], [1.0, 0.0]]))
