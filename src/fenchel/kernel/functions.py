"""The kernels by name, with scikit-learn's definitions (sklearn.metrics.pairwise) and the parameters of its SVC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Matrix, StoredMatrix, Vector
from fenchel.kernel.base import UP, Accuracy, Kernel
from fenchel.kernel.samples import Samples, inner_products, used_columns
from fenchel.kernel.semidefinite import check_symmetry

BlockFunction = Callable[[StoredMatrix, StoredMatrix], Any]
#: Relative error of a function of the C library, such as exp.
FUNCTION = 64 * UNIT_ROUNDOFF
#: Bounds what is lost where values underflow.
TINY = 1e-300
#: The spacing of the smallest numbers: a product that underflows is off by at most half of it.
SUBNORMAL = 5e-324
#: From here on exp(-gamma t) is below TINY for every t that overflows.
SMALL_GAMMA = 1e-300


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, x') = x.x'. A computed product of d terms is off by at most gamma_d |x|_2 |x'|_2 (Cauchy and Schwarz), and
    5e-324 for each term that underflows; a few more of them for the lengths, which may underflow in this bound.
    """

    def block(self, A: Samples, B: Samples) -> Matrix:
        return inner_products(A.values, B.values)

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        depth = gamma(min(A.depth, B.depth) + 4) * UP
        none = np.zeros(len(A)), np.zeros(len(B))
        return Accuracy(none, (depth * A.lengths, B.lengths), (min(A.depth, B.depth) + 8) * SUBNORMAL)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        return A.squares, gamma(A.depth + 4) * UP * A.squares + (A.depth + 8) * SUBNORMAL


@dataclass(frozen=True)
class WithGamma(Kernel):
    """A kernel with the parameter gamma: a positive number, "scale" = 1/(d var X), or "auto" = None = 1/d."""

    gamma: float | str | None = "scale"

    def __post_init__(self) -> None:
        _check_gamma(type(self).__name__, self.gamma)

    def fitted(self, A: Samples) -> Self:
        return replace(self, gamma=gamma_of(self.gamma, A))

    @property
    def _gamma(self) -> float:
        if isinstance(self.gamma, str) or self.gamma is None:
            raise TypeError(f"{self!r} has no number for gamma yet; Gram(X, kernel) sets it from X")
        return float(self.gamma)

    def _decayed(self, t: Matrix) -> Matrix:
        """exp(-gamma t); raise where t has overflowed and that matters."""
        if self._gamma < SMALL_GAMMA and not np.all(np.isfinite(t)):
            raise ValueError(f"gamma is {self._gamma:.3g}, and distances of samples overflow; rescale the features")
        t *= -self._gamma
        return np.exp(t, out=t)


@dataclass(frozen=True)
class RBF(WithGamma):
    """k(x, x') = exp(-gamma |x - x'|_2^2).

    The squared distance as |x|^2 + |x'|^2 - 2 x.x' is off by at most 2 gamma_{d+4} (|x|^2 + |x'|^2), so that the value
    is off by the factor expm1 of gamma times that. Where this is above 1e-6 (points far from 0 beside their distances),
    distances are computed from differences: with a relative error e = gamma_{d+4} of t = gamma |x - x'|^2, exp(-t) is
    off by at most e t exp(-t (1 - e)) <= e / 2. Squares that underflow change t, and so the value, by at most
    gamma (4 d + 8) 5e-324. A distance that overflows is above 1e308, and the value below 1e-300 for gamma >= 1e-300;
    a smaller gamma is an error there.
    """

    nonnegative = True

    def block(self, A: Samples, B: Samples) -> Matrix:
        if not self._expands(A, B):
            return self._decayed(distances(A, B, "sqeuclidean"))
        K = inner_products(A.values, B.values)
        K *= -2.0
        K += A.squares[:, None]
        K += B.squares
        np.maximum(K, 0.0, out=K)
        K *= -self._gamma
        return np.exp(K, out=K)

    def _rates(self, A: Samples, B: Samples) -> float:
        """gamma times the error of a squared distance, for samples of length 1."""
        return self._gamma * 2.0 * gamma(max(A.width, B.width) + 8) * UP

    def _expands(self, A: Samples, B: Samples) -> bool:
        """Whether squared distances are accurate by their expansion; the same answer for all parts of the samples."""
        largest = max(A.largest, B.largest)
        return bool(self._rates(A, B) * largest * largest <= 5e-7) and largest < 1e150

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        underflow = self._gamma * ((4 * A.width + 8) * SUBNORMAL) + TINY
        if not self._expands(A, B):
            constant = gamma(A.width + 8) * 0.5 + underflow
            return Accuracy.uniform(len(A), len(B), FUNCTION * UP, constant)
        rate = self._rates(A, B) * (1.0 + 1e-5)  # expm1(x) <= x (1 + x) for x <= 1e-6
        u, v = (rate * part.lengths * part.lengths + FUNCTION for part in (A, B))
        return Accuracy((u, v), (np.zeros(len(A)), np.zeros(len(B))), underflow)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        return np.ones(len(A)), np.zeros(len(A))


@dataclass(frozen=True)
class Laplacian(WithGamma):
    """k(x, x') = exp(-gamma |x - x'|_1); see `RBF` for the error of a value from differences."""

    nonnegative = True

    def block(self, A: Samples, B: Samples) -> Matrix:
        return self._decayed(distances(A, B, "cityblock"))

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        return Accuracy.uniform(len(A), len(B), FUNCTION * UP, gamma(A.width + 8) * 0.5 + TINY)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        return np.ones(len(A)), np.zeros(len(A))


@dataclass(frozen=True)
class Polynomial(WithGamma):
    """k(x, x') = (gamma x.x' + coef0)^degree, for a whole degree >= 1 and coef0 >= 0: else it is not semidefinite.

    The base t is off by at most e s with e = gamma_{d+8} and s = gamma |x| |x'| + coef0 >= |t|, so that the power is
    off by at most degree e (1 + e)^(degree - 1) s^degree. By Cauchy and Schwarz s <= h h', h^2 = gamma |x|^2 + coef0.
    Products that underflow change t by at most f = (gamma (d + 8) + 4) 5e-324, and the power by at most
    degree f (s + f)^(degree - 1).
    Powers of h that underflow are replaced by 1e-290, from above.
    """

    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.degree, bool) or not (float(self.degree) == int(self.degree) >= 1):
            raise ValueError(f"degree must be a whole number of at least 1, got {self.degree!r}")
        if not 0.0 <= float(self.coef0) < np.inf:
            raise ValueError(f"coef0 must be a number >= 0, got {self.coef0!r}: else the kernel is not semidefinite")

    def block(self, A: Samples, B: Samples) -> Matrix:
        K = inner_products(A.values, B.values)
        K *= self._gamma
        K += self.coef0
        return np.power(K, int(self.degree), out=K)

    def _relative(self, depth: int) -> float:
        each = gamma(depth + 8)
        return self.degree * each * (1.0 + each) ** self.degree * UP + FUNCTION

    def _bases(self, A: Samples) -> Vector:
        """h, from above."""
        root = np.sqrt(self._gamma) * A.lengths + np.sqrt(self._gamma) * (4.0 * SUBNORMAL)
        return np.asarray(np.hypot(root, np.sqrt(self.coef0)) * UP)

    def _powers(self, h: Vector) -> Vector:
        """h^degree, from above."""
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(np.maximum(h ** int(self.degree), 1e-290) * self._upwards)

    @property
    def _upwards(self) -> float:
        """Covers the error of h^degree."""
        return UP * (1.0 + 1e-9) ** int(self.degree)

    def _underflow(self, depth: int, largest: float) -> float:
        """What terms that underflow change, where s is at most `largest`."""
        each = self._gamma * ((depth + 8) * SUBNORMAL) + 4.0 * SUBNORMAL
        with np.errstate(under="ignore", over="ignore"):
            power = np.float64(largest * self._upwards + each) ** (int(self.degree) - 1) * self._upwards
        return float(self.degree * each * power) * UP + TINY

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        none = np.zeros(len(A)), np.zeros(len(B))
        depth = min(A.depth, B.depth)
        h, other = self._bases(A), self._bases(B)
        constant = self._underflow(depth, float(h.max()) * float(other.max()))
        return Accuracy(none, (self._relative(depth) * self._powers(h), self._powers(other)), constant)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        values = (self._gamma * A.squares + self.coef0) ** int(self.degree)
        largest = float(self._bases(A).max())
        underflow = self._underflow(A.depth, largest * largest)
        return values, self._relative(A.depth) * values * UP + underflow


@dataclass(frozen=True)
class Cosine(Kernel):
    """k(x, x') = x.x' / (|x|_2 |x'|_2), 0 for x = 0: a product of rows of length 1, off by at most gamma_{3 d + 32}.

    Lengths other than 0 must lie in [1e-290, 1e290].
    """

    def block(self, A: Samples, B: Samples) -> Matrix:
        return inner_products(A.unit, B.unit)

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        return Accuracy.uniform(len(A), len(B), constant=gamma(3 * max(A.depth, B.depth) + 32) * UP)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        A.check_lengths()
        return np.where(A.lengths > 0.0, 1.0, 0.0), np.zeros(len(A))


@dataclass(frozen=True)
class Function(Kernel):
    """A function f(A, B) of two blocks of rows, float64 and dense or CSR as X, that returns the a x b values.

    What it returns is the kernel: its own rounding errors are not known.
    """

    function: BlockFunction
    is_given = True

    def block(self, A: Samples, B: Samples) -> Matrix:
        K = np.array(self.function(A.values, B.values), dtype=np.float64, order="C")
        if K.shape != (len(A), len(B)):
            raise ValueError(f"the kernel must return an array of shape ({len(A)}, {len(B)}), got {K.shape}")
        return K

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        return Accuracy.uniform(len(A), len(B))

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        step, n = 256, len(A)
        parts = [self._own(A.take(slice(start, start + step))) for start in range(0, n, step)]
        return np.concatenate(parts), np.zeros(n)

    def _own(self, A: Samples) -> Vector:
        return np.diagonal(self.block(A, A)).copy()


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the matrix of the values, X_ij = k(x_i, x_j); for new samples, k(x, x_j) for each sample x_j of the fit.

    The kernel is the symmetric part of the matrix, from which its entries may differ by rounding.
    """

    asymmetry: float = field(default=0.0, repr=False)  # the largest |X_ij - X_ji| / 2
    is_given = True

    def block(self, A: Samples, B: Samples) -> Matrix:
        return A.dense(B.index)

    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        return Accuracy.uniform(len(A), len(B), constant=self.asymmetry * UP)

    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        part = A.values[np.arange(len(A)), A.index]
        return np.asarray(part, dtype=np.float64).ravel().copy(), np.zeros(len(A))

    def fitted(self, A: Samples) -> Self:
        """The same, with a bound on the asymmetry; raise if that is more than rounding."""
        if A.matrix.shape[0] != A.width:
            n, d = A.matrix.shape
            raise ValueError(f"a precomputed kernel must be a square matrix, n x n; got shape {n} x {d}")
        worst, place = 0.0, (0, 0)
        for rows in A.chunks():
            part = A.take(rows)
            other = A.values[:, rows]
            across = np.asarray(other.toarray() if A.is_sparse else other).T
            apart = np.abs(part.dense(slice(None)) - across)
            here = np.unravel_index(int(np.argmax(apart)), apart.shape)
            if apart[here] > worst:
                worst, place = float(apart[here]), (int(here[0]) + rows.start, int(here[1]))
        size = float(np.abs(self.diagonal(A)[0]).max())
        check_symmetry(worst, max(size, TINY), place, "a precomputed kernel")
        return replace(self, asymmetry=0.5 * worst)


NAMES: dict[str, type[Kernel]] = {
    "linear": Linear,
    "rbf": RBF,
    "poly": Polynomial,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "precomputed": Precomputed,
}
#: Kernels that are positive semidefinite for all their parameters; a subclass may be another one.
PROVEN: frozenset[type[Kernel]] = frozenset({Linear, RBF, Polynomial, Laplacian, Cosine})
#: The parameters of kernels by name, and their defaults.
DEFAULTS: dict[str, object] = {"gamma": "scale", "degree": 3, "coef0": 0.0}
KernelLike = str | Kernel | BlockFunction


def is_proven(kernel: Kernel) -> bool:
    """Whether it is known to be positive semidefinite."""
    return type(kernel) in PROVEN


def kernel_of(kernel: KernelLike, gamma: float | str | None = "scale", degree: int = 3, coef0: float = 0.0) -> Kernel:
    """The kernel by name, an object as it is, or a function of blocks; parameters that it does not have are errors."""
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    if isinstance(kernel, str):
        if kernel not in NAMES:
            known = ", ".join(map(repr, NAMES))
            raise ValueError(f"kernel must be one of {known}, a function f(A, B) or a Kernel; got {kernel!r}")
        kind = NAMES[kernel]
        used = {name: value for name, value in given.items() if name in signature(kind).parameters}
        _refuse(given, used, f"the kernel {kernel!r}")
        return kind(**used)
    _refuse(given, {}, "a kernel that is an object or a function")
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel):
        raise TypeError(f"kernel must be a name, a function f(A, B) or a Kernel; got {kernel!r}")
    return Function(kernel)


def _refuse(given: dict[str, Any], used: dict[str, Any], what: str) -> None:
    """Raise for a parameter that is neither used nor at its default."""
    for name, value in given.items():
        same = isinstance(value, type(DEFAULTS[name])) and value == DEFAULTS[name]
        if name not in used and not same:
            raise ValueError(f"{what} has no parameter {name}, got {name}={value!r}; leave it out")


def _check_gamma(owner: str, value: object) -> None:
    if value is None or (isinstance(value, str) and value in ("scale", "auto")):
        return
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0.0 < float(value) < np.inf:  # type: ignore[arg-type]
        raise ValueError(f'{owner}: gamma must be a positive number, "scale", "auto" or None; got {value!r}')


def gamma_of(value: float | str | None, A: Samples) -> float:
    """gamma as a number: "scale" is 1 / (d var X), and 1 if X is constant; "auto" and None are 1 / d."""
    if value is None or value == "auto":
        return 1.0 / A.width
    if value != "scale":
        return float(value)
    n, d = len(A), A.width
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(float(A.take(rows).values.sum()) for rows in A.chunks()) / (n * d)
        spread, missing = 0.0, n * d
        for rows in A.chunks():
            values = A.take(rows).values
            entries = values.data if A.is_sparse else values
            spread, missing = spread + float(np.square(entries - mean).sum()), missing - entries.size
        variance = (spread + missing * mean * mean) / (n * d)
    if variance == 0.0:
        return 1.0
    found = 1.0 / (d * variance) if np.isfinite(variance) else np.nan
    if not 0.0 < found < np.inf:
        raise ValueError(
            'gamma="scale" is out of range: the variance of X overflows or underflows; rescale the features, or pass '
            "a number"
        )
    return found


def distances(A: Samples, B: Samples, metric: str) -> Matrix:
    """Sums over the features of |a - b| ("cityblock") or (a - b)^2 ("sqeuclidean"), each to a relative error of
    gamma_{d + 4}: of terms that are not negative.
    """
    total = np.zeros((len(A), len(B)))
    with np.errstate(over="ignore"):
        for columns in used_columns(A, B):
            total += cdist(A.dense(columns), B.dense(columns), metric)
    return total
