"""From the suboptimality of any algorithm to its gap (Duenner, Forte, Takac and Jaggi 2016, Lemma 1, Theorems 2 to 4).

An algorithm minimises (A): f(A x) + g(x), with f (1/beta)-smooth in |.|_f. Its rate is a function of the number of
steps that bounds E[(A)(x_t) - min (A)]: `LinearRate`, `PowerRate`, the `dual` of a `GapBound`, or any other. The gap is
that of x_t and of the multipliers that belong to it, grad f(A x_t); no average is taken.

    g mu-strongly convex in |.|_g    gap <= ((sigma / beta + mu) / mu) rate
    |x|_g <= L where g is finite     gap <= sqrt(2 K rate) if 2 rate <= K, else rate + K / 2;   K = 4 L^2 sigma / beta
    sigma = max (|A x|_f / |x|_g)^2

The first is Theorem 2. For the second Lemma 1 says that s gap <= rate + (s^2 / 2) (sigma / beta) |u - x|_g^2 for every
s in [0, 1], where |u - x|_g <= 2 L; the best s gives it. The proof of Theorem 3 has 2 L^2 for the bound 4 L^2 on
|u - x|^2, and that of Theorem 4 has L^2. So the conditions for a gap of at most eps are printed as

    Theorem 3   t >= (1/C) log(2 D max(1, 2 sigma L^2 / (eps beta)) / eps)     for (1 - C)^t D;  it must be 4 sigma L^2
    Theorem 4   D(t) >= max(2 C beta / (sigma L^2), 2 C sigma L^2 / (beta eps^2))    for C / D(t);
                it must be max(C beta / (2 sigma L^2), 8 C sigma L^2 / (beta eps^2)): the gap is twice that of the paper
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite, log1p

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, eigsh

from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.checks import require_count, require_one_of
from fenchel.problem.penalties import L1
from fenchel.solver.theory.bounds import require_positive
from fenchel.steps.first_order.approx import overlap

#: The smaller dimension up to which all eigenvalues are computed, and the relative error of the largest.
SMALL, ALLOWANCE = 500, 1e-8
#: A bound on the expected suboptimality after so many steps.
Rate = Callable[[ArrayLike], Vector]


# What algorithms promise ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearRate:
    """Eq. (7): (1 - contraction)^t initial, 0 < contraction <= 1."""

    contraction: float
    initial: float

    def __post_init__(self) -> None:
        require_positive(contraction=self.contraction, initial=self.initial)
        if self.contraction > 1.0:
            raise ValueError(f"contraction must be at most 1, got {self.contraction!r}")

    def __call__(self, iterations: ArrayLike) -> Vector:
        t = np.asarray(iterations, dtype=np.float64)
        if self.contraction == 1.0:
            return np.where(t > 0, 0.0, self.initial)
        return np.asarray(self.initial * np.exp(t * log1p(-self.contraction)))


@dataclass(frozen=True)
class PowerRate:
    """Eq. (10): C / D(t) with D(t) = (scale t + offset)^power; infinite where D(t) <= 0."""

    constant: float
    scale: float = 1.0
    offset: float = 0.0
    power: float = 1.0

    def __post_init__(self) -> None:
        require_positive(scale=self.scale, power=self.power)
        _require_bounds(constant=self.constant)

    def __call__(self, iterations: ArrayLike) -> Vector:
        base = self.scale * np.asarray(iterations, dtype=np.float64) + self.offset
        return np.where(base > 0, self.constant / np.where(base > 0, base, 1.0) ** self.power, inf)


def fista_rate(smoothness: float, distance: float) -> PowerRate:
    """FISTA with steps 1 / smoothness: 2 smoothness |x_0 - x*|^2 / (t + 1)^2 (Beck and Teboulle 2009)."""
    require_positive(smoothness=smoothness)
    _require_bounds(distance=distance)
    return PowerRate(2.0 * smoothness * distance**2, 1.0, 1.0, 2.0)


def approx_rate(n: int, distance: float, initial: float, batch: int = 1) -> PowerRate:
    """APPROX: 4 n^2 ((1 - tau / n) initial + |x_0 - x*|_v^2 / 2) / ((t - 1) tau + 2 n)^2 (Fercoq and Richtarik 2015).

    The paper's D(t) = ((t - 1) tau + 2 n)^2. A step draws tau coordinates of n, without replacement.

    Parameters
    ----------
    n : int
        The number of coordinates.
    distance : float
        |x_0 - x*|_v = sqrt(sum_j v_j (x_0 - x*)_j^2), v from `approx_curvature`.
    initial : float
        A bound on the suboptimality of the start.
    batch : int, default 1
        tau.
    """
    require_count(n, "n", "coordinates")
    require_count(batch, "batch", "coordinates")
    _require_bounds(distance=distance, initial=initial)
    if batch > n:
        raise ValueError(f"batch must be at most n = {n}, got {batch}")
    constant = 4.0 * n * n * ((1.0 - batch / n) * initial + 0.5 * distance**2)
    return PowerRate(constant, float(batch), 2.0 * n - batch, 2.0)


def approx_curvature(problem: Problem, batch: int = 1) -> Vector:
    """v_j = L sum_i (s_i / W) (1 + (c_i - 1) (tau - 1) / max(1, d - 1)) x_ij^2, c_i the nonzeros of row i.

    The curvature that `solve(solver="approx", over="weights", batch=tau)` takes for single weights.
    """
    require_count(batch, "batch", "weights")
    s = problem.weights / problem.total_weight * overlap(problem, problem.shape[1], batch)
    return np.asarray(problem.loss.smoothness * problem.X.column_norms(2.0, s) ** 2)


def descent_rate(n: int, distance: float, initial: float) -> PowerRate:
    """Coordinate descent: n (|x_0 - x*|_v^2 / 2 + initial) / (n + t) (Lu and Xiao 2015), as in `approx_rate`."""
    require_count(n, "n", "coordinates")
    _require_bounds(distance=distance, initial=initial)
    return PowerRate(n * (0.5 * distance**2 + initial), 1.0, float(n), 1.0)


def _require_bounds(**values: float) -> None:
    for name, value in values.items():
        if not 0.0 <= value < inf:
            raise ValueError(f"{name} must be a number >= 0, got {value!r}")


# What follows for their gaps ------------------------------------------------------------------------------------------


def suboptimality_at_least(
    gap: float, distance: float, image: float, mu: float, beta: float, step: float | None = None
) -> float:
    """Lemma 1: (A)(x) - min (A) >= s gap + (s^2 / 2) (mu (1 - s) / s |u - x|_g^2 - |A (u - x)|_f^2 / beta).

    Parameters
    ----------
    gap : float
        Of x and grad f(A x).
    distance, image : float
        |u - x|_g and |A (u - x)|_f, with u a subgradient of g* at -A'grad f(A x).
    mu, beta : float
        g is mu-strongly convex, mu >= 0; f is (1/beta)-smooth.
    step : float, optional
        s, in [0, 1]; the best one by default.
    """
    require_positive(beta=beta)
    convexity, smoothness = mu * distance**2, image**2 / beta
    if step is None:
        rise, fall = gap + 0.5 * convexity, convexity + smoothness
        step = 1.0 if rise >= fall else max(rise, 0.0) / fall
    return step * gap + 0.5 * step * (1.0 - step) * convexity - 0.5 * step**2 * smoothness


@dataclass(frozen=True)
class GapOfRate:
    """The gap of an algorithm with a rate: `factor` rate, plus `spread` = K where g is not strongly convex.

    Build it with `gap_strongly_convex`, `gap_lipschitz` or `gap_of_rate`.
    """

    rate: Rate
    factor: float = 1.0
    spread: float = 0.0

    def gap(self, iterations: ArrayLike) -> Vector:
        """A bound on the expected gap after so many steps."""
        rate = self.factor * np.asarray(self.rate(iterations), dtype=np.float64)
        K = self.spread
        return np.where(2.0 * rate <= K, np.sqrt(2.0 * K * np.minimum(rate, K)), rate + 0.5 * K) if K else rate

    def iterations(self, gap: float) -> int:
        """The fewest steps for which `gap` is at most this, for a rate that does not increase; by bisection."""
        require_positive(gap=gap)
        low, high = -1, 1
        while not float(self.gap(high)) <= gap:
            low, high = high, 2 * high
            if high > 2**62:
                raise ValueError(f"the rate has no such steps: its gap stays above {gap!r}")
        low = -1 if high == 1 else low
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self.gap(middle)) <= gap else (middle, high)
        return high


def gap_strongly_convex(rate: Rate, sigma: float, mu: float, beta: float) -> GapOfRate:
    """Theorem 2: g is mu-strongly convex. (1/C) log(D (sigma / beta + mu) / (mu gap)) steps for (1 - C)^t D."""
    require_positive(sigma=sigma, mu=mu, beta=beta)
    return GapOfRate(rate, (sigma / beta + mu) / mu)


def gap_lipschitz(rate: Rate, sigma: float, lipschitz: float, beta: float, diameter: float | None = None) -> GapOfRate:
    """Theorems 3 and 4: g* is L-Lipschitz, so that |x| <= L; 4 L^2 for the paper's 2 L^2 and L^2.

    Parameters
    ----------
    lipschitz : float
        L.
    diameter : float, optional
        The largest distance of two points where g is finite; 2 L by default. For the SVM's box it is half of that.
    """
    require_positive(sigma=sigma, lipschitz=lipschitz, beta=beta)
    diameter = 2.0 * lipschitz if diameter is None else diameter
    require_positive(diameter=diameter)
    return GapOfRate(rate, 1.0, diameter**2 * sigma / beta)


def spectral_sigma(problem: Problem, over: str = "weights", norm: float = 2.0) -> float:
    """sigma = max (|A x|_f / |x|_g)^2, the squared spectral norm of the data where both norms are Euclidean.

    Over weights |z|_f^2 = (1/W) sum_i s_i z_i^2 and A = X: the largest eigenvalue of X'SX / W, or in the 1-norm the
    largest mean square of a column. Over samples A = X'S / W in the 2-norm. It may be much less than the sum of squared
    column norms, which bounds of single coordinates add up to.

    For p = 2 where n and d exceed 500 it is an estimate, by Lanczos' method from a random start, which converges from
    below: what is computed with it is no proven bound then.

    Parameters
    ----------
    over : {"weights", "samples"}, default "weights"
    norm : {2, 1}, default 2
        p of |.|_g.
    """
    require_one_of(over, ("weights", "samples"), "over")
    if norm not in (1.0, 2.0):
        raise ValueError(f"norm must be 1 or 2, got {norm!r}")
    s, W = problem.weights, problem.total_weight
    if norm == 1.0:
        lengths = problem.X.column_norms(2.0, s / W) if over == "weights" else problem.X.row_norms() * s / W
        return float(np.max(lengths)) ** 2
    scale = np.sqrt(s / W) if over == "weights" else s / W
    n, d = problem.shape
    X, size = problem.X, min(n, d)
    by_rows = n < d  # (scale X)(scale X)' has the same largest eigenvalue as its transpose product

    def gram(u: Vector) -> Vector:
        u = np.ravel(u)
        return scale * X.matvec(X.rmatvec(scale * u)) if by_rows else X.rmatvec(scale**2 * X.matvec(u))

    if size <= SMALL:
        return float(np.linalg.eigvalsh(np.column_stack([gram(e) for e in np.eye(size)]))[-1]) * (1.0 + ALLOWANCE)
    return _estimated_eigenvalue(gram, size) * (1.0 + ALLOWANCE)


def _estimated_eigenvalue(product: Callable[[Vector], Vector], size: int) -> float:
    """The largest eigenvalue of a positive semidefinite matrix, from below, by Lanczos' method; 0 of zeros."""
    start = np.random.default_rng(0).standard_normal(size)
    if not product(start).any():  # ARPACK cannot start there
        return 0.0
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    return float(eigsh(operator, k=1, v0=start, tol=0.1 * ALLOWANCE, return_eigenvectors=False)[0])


def gap_of_rate(problem: Problem, rate: Rate, over: str = "weights", radius: float | None = None) -> GapOfRate:
    """The theorem for a problem: 2 if g is strongly convex, else 3 and 4.

    Over weights f is the mean loss, which must be smooth, and g = R: strongly convex, or L1 restricted to |w|_1 <= B
    (Theorem 6), whose gap is the Lipschitzed one. Over samples f = R*, which must be strongly convex, and g is the mean
    of phi*(-.): strongly convex if the loss is smooth, else a box. sigma is that of `spectral_sigma`: for large data an
    estimate.

    Parameters
    ----------
    rate : callable
        Of the suboptimality of P over weights, of -D over samples.
    over : {"weights", "samples"}, default "weights"
    radius : float, optional
        B for L1, at least |w|_1 of every iterate; P(0) / lam by default, for algorithms that never increase P.
    """
    require_one_of(over, ("weights", "samples"), "over")
    loss, penalty, n = problem.loss, problem.penalty, problem.shape[0]
    if problem.intercept:
        raise TypeError(f"the theorems need a problem without an intercept; got {problem!r}")
    if over == "weights":
        if not isfinite(loss.smoothness):
            raise TypeError(f"over weights the theorems need a smooth loss, which {loss!r} is not")
        beta = 1.0 / loss.smoothness
        if penalty.strong_convexity > 0.0 and penalty.norm == 2.0:
            return gap_strongly_convex(rate, spectral_sigma(problem), penalty.strong_convexity, beta)
        if not isinstance(penalty, L1):
            raise TypeError(f"over weights the theorems need L2, ElasticNet or L1, got {penalty!r}")
        B = problem.loss_at_zero / penalty.lam if radius is None else radius
        return gap_lipschitz(rate, spectral_sigma(problem, norm=1.0), B, beta)
    if not (penalty.strong_convexity > 0.0 and penalty.norm == 2.0):
        raise TypeError(f"over samples the theorems need L2 or ElasticNet, got {penalty!r}")
    if np.ptp(problem.weights) > 0:
        raise ValueError("over samples the theorems need samples of equal weight")
    sigma, beta = spectral_sigma(problem, over), penalty.strong_convexity
    if isfinite(loss.smoothness):
        return gap_strongly_convex(rate, sigma, 1.0 / (loss.smoothness * n), beta)
    if not isfinite(loss.lipschitz):
        raise TypeError(f"the theorems need a smooth or a Lipschitz loss, which {loss!r} is not")
    low, high = problem.domain
    radius_of_box = float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))
    return gap_lipschitz(rate, sigma, radius_of_box, beta, float(np.linalg.norm(high - low)))
