"""P and D from products that a solver has computed already, for several models at once: no pass over the data.

Weight fractions p_i = s_i / W, column sizes S_j = sqrt(sum_i p_i x_ij^2), and |a|_p = sqrt(sum_i p_i a_i^2) for vectors
over the samples. The penalty is R(w) = sum_g threshold_g |w_g|_2 + ridge/2 |w|_2^2. With e = 8 gamma_(n + 200) for sums
over samples in any order and r for sums over weights, by Cauchy and Schwarz:

- Scores z_i, computed from k columns, are off by e_i with |e|_p <= r (S_y + sum_j |w_j| S_j + |b|). By convexity the
  mean of a loss of smoothness L is then off by at most |a|_p |e|_p + L |e|_p^2 / 2, beside e of itself for its own sum.
- v_j = sum_i p_i a_i x_ij is off by at most e S_j |a|_p.
- An intercept asks for sum_i p_i a_i = 0. Let t be one minus the ratio of the lighter to the heavier of its two sides,
  the positive and the negative terms. The exact point has the heavier side multiplied by 1 - t. That moves v_j by at
  most t S_j |a|_p and, as g(a) = -phi*(-a) is concave, g_i by at most t (|g_i| + |g_i(0)|). Nothing is computed again.

Second moments of the squared loss (`AtMoments`), with q = sum p y^2, c = X' diag(p) y, G = X' diag(p) X and
M = S_y + sum_j |w_j| S_j: the sums of absolute values behind G_jk, c_j and q are at most S_j S_k, S_j S_y and S_y^2. So
T = q - 2 c.w + w'G w = |y - X w|_p^2 is off by at most (e + r) M^2, and v = c - G w by (e + r) S_j M. G may be a
difference, of all n samples and those without weight, where the k others count the same: sums over all of them, what
is taken off, and the products of means that move the centre. With S_j = sqrt(sum_i x_ij^2 / k) over all samples each
of the three is off by no more than e S_j S_k, so that 4 e covers them and their sum.

The dual point is theta a with the largest feasible theta: theta |v_g| <= threshold_g for every group, or theta = 1
where there is a ridge. Columns that a solver has not listed have |v_j| <= cut, and count as if they had just that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.rounding import INPUT, dual_of, gap_between, mean_conjugate, primal_of, shrunk
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.measurements import UP, AtMoments, AtSamples, Measurements, reduced, repeated

DOWN = 1.0 - EVALUATION


@dataclass(frozen=True, eq=False)
class Bounds:
    """P and D of m models as computed, and the bounds on them in exact arithmetic."""

    primal: Vector
    upper: Vector
    dual: Vector
    lower: Vector
    theta: Vector  # the multiple of the multipliers that is the dual point
    moments: bool
    feasible: tuple[Vector, Vector]  # the largest feasible theta, and R*(theta v), with the error of v counted in
    v_error: Vector  # v_j is off by at most this times S_j
    own_lower: Vector  # the bounds below D that rest on each model's own multipliers,
    own_theta: Vector  # and the multiple of these

    @cached_property
    def gap(self) -> Vector:
        """P - P* is at most this."""
        return np.asarray(gap_between(self.upper, self.lower))

    @property
    def rounding(self) -> Vector:
        """The part of the gap that no better model removes."""
        return (self.upper - self.primal) + (self.dual - self.lower)

    def meet(self, tol: float, atol: float) -> Mask:
        """Whether the gap is small enough."""
        gap = self.gap
        return np.isfinite(gap) & (gap <= np.maximum(tol * np.abs(self.primal), atol))

    @cached_property
    def numbers(self) -> list[tuple[float, float, float, float]]:
        """P, the bound on it, D, and the bound on that, of each model."""
        return list(zip(*(x.tolist() for x in (self.primal, self.upper, self.dual, self.lower)), strict=True))

    def with_lower(self, before: Bounds) -> Bounds:
        """The first model's D from an earlier model, if it was better there: once valid, it is valid for good."""
        if not before.lower[0] > self.lower[0]:
            return self
        dual, lower, theta = self.dual.copy(), self.lower.copy(), self.theta.copy()
        dual[0], lower[0], theta[0] = before.dual[0], before.lower[0], before.theta[0]
        return replace(self, dual=dual, lower=lower, theta=theta)

    def how(self, k: int) -> str:
        """The construction of a model's dual point."""
        if self.moments:
            return "gradient, from second moments"
        return "gradient" if self.theta[k] == 1.0 else "gradient, rescaled"


@dataclass(frozen=True, eq=False)
class Terms:
    """What the loss contributes: its mean with an error bound, v's error as a multiple of S_j, and its part of D."""

    loss: Vector
    error: Vector
    v_error: Vector
    best: Vector  # the best multiple of the multipliers, if any is feasible
    dual: Callable[[Vector], tuple[Vector, Vector]]  # the mean of g(theta a), and a bound below it


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def measured_bounds(problem: Problem, found: Measurements) -> Bounds:
    """P at each model, D at the best feasible multiple of its multipliers, up to themselves.

    The problem's own penalty plays no role.
    """
    rounding = EVALUATION + 8.0 * gamma(found.most_weights + 200)
    if moments := isinstance(found.loss, AtMoments):
        terms = _from_moments(problem, found, found.loss, rounding)
    else:
        terms = _from_samples(problem, found, found.loss, rounding)
    most = (1.0 + rounding) * (1.0 + EVALUATION)  # times a penalty as computed, it is a bound on it
    primal, upper = primal_of(terms.loss, terms.error, found.penalty, most * found.penalty)
    largest, conjugate = _feasible(found, terms.v_error)
    theta = np.where(found.ridge > 0.0, largest, np.maximum(0.0, np.minimum(largest, terms.best)))
    dual, lower = dual_of(*terms.dual(theta), conjugate, most * conjugate)
    upper, theta = np.where(np.isnan(upper), np.inf, upper), np.where(np.isnan(theta), 1.0, theta)
    known = ~np.isnan(lower)
    dual, lower = np.where(known, dual, -np.inf), np.where(known, lower, -np.inf)
    return Bounds(primal, upper, dual, lower, theta, moments, (largest, conjugate), terms.v_error, lower, theta)


def own_dual_vector(found: Measurements, bounds: Bounds, k: int) -> tuple[Vector, Vector] | None:
    """|v_j| of the dual point that proves `own_lower`, and a bound on its error; None unless all are listed."""
    if not found.dual.complete:
        return None
    theta, sizes = bounds.own_theta[k], found.dual.sizes.reshape(len(found), -1)[k]
    return theta * sizes, theta * UP * (bounds.v_error[k] * found.sizes.columns + EVALUATION * sizes)


@np.errstate(all="ignore")
def blur(found: Measurements, bounds: Bounds) -> float:
    """About how much of the first gap sharper products would remove: rounding, and what the error of v costs.

    One threshold and no ridge: theta = threshold / max |v_j|, so an error moves it by at most theta error / max |v_j|.
    """
    theta, conjugate = bounds.feasible
    if found.groups is None and not found.ridge.any():
        lost = abs(bounds.dual[0]) * bounds.v_error[0] * found.sizes.widest * theta[0] / found.threshold[0]
    else:
        best, least = _feasible(found, np.zeros(len(found)))
        lost = abs(bounds.dual[0]) * (1.0 - min(theta[0], 1.0) / min(best[0], 1.0)) + conjugate[0] - least[0]
    return float(bounds.rounding[0] + lost) if np.isfinite(lost) else np.inf


def _from_samples(problem: Problem, found: Measurements, at: AtSamples, rounding: float) -> Terms:
    sizes, A = found.sizes, at.multipliers
    sums = 8.0 * gamma(problem.shape[0] + 200)
    squares = np.einsum("ki,ki->k", A, A) * sizes.p[0] if problem.weightless else (A * A) @ sizes.p
    length = np.sqrt(squares) * (UP * (1.0 + sums)) + 1e-150
    scores = found.spread + np.abs(found.b) + (sizes.target if at.centred else 0.0)
    off = ((rounding + 2.0 * INPUT + (sums if at.centred else 0.0)) * scores + INPUT * sizes.target) * UP + 1e-150
    rise = (length * off + 0.5 * problem.loss.smoothness * off * off) * UP
    shrink = _imbalance(A, sizes.p) + 8.0 * UNIT_ROUNDOFF if problem.intercept else np.full(len(A), 8.0 * UNIT_ROUNDOFF)

    def dual(theta: Vector) -> tuple[Vector, Vector]:
        points = A if np.all(theta == 1.0) else theta[:, None] * A
        value, size = np.array([mean_conjugate(problem, alpha) for alpha in points]).T
        return value, shrunk(value, size, shrink)

    return Terms(at.loss, sums * np.abs(at.loss) + rise, (sums + shrink) * length, np.ones(len(A)), dual)


def _imbalance(A: Vector, p: Vector) -> Vector:
    """t of the module's docstring, from above; infinite where one side is less than a seventh of the other."""
    terms = A * p
    total, size = np.abs(terms.sum(axis=1)), np.abs(terms).sum(axis=1)
    # the lighter side is (size - |total|) / 2, the heavier one (size + |total|) / 2; both are rounded
    t = 2.0 * total / (size + total) + 4.0 * EVALUATION
    return np.where(size == 0.0, 0.0, np.where(total < 0.75 * size, t, np.inf))


def _from_moments(problem: Problem, found: Measurements, at: AtMoments, rounding: float) -> Terms:
    sums = (32.0 if at.by_difference else 8.0) * gamma(problem.shape[0] + 200)
    size = (found.sizes.target + found.spread) * UP
    error = (sums + rounding) * size * size * UP
    shift = (sums + rounding) * size * UP if at.centred else np.zeros_like(size)
    square = np.where(np.isfinite(at.square), np.maximum(at.square, 0.0), np.inf)
    best = np.divide(at.inner, square, out=np.ones_like(square), where=square > 0.0)

    def dual(theta: Vector) -> tuple[Vector, Vector]:
        value = theta * (at.inner - 0.5 * theta * at.square)
        spare = 2.0 * rounding * theta * (np.abs(at.inner) + theta * np.abs(at.square))
        return value, value - theta * (1.0 + 0.5 * theta) * error - spare - 1e-300

    return Terms(0.5 * square, 0.5 * (error + shift * shift), (sums + rounding) * size * UP, best, dual)


def _feasible(found: Measurements, error: Vector) -> tuple[Vector, Vector]:
    """The largest feasible theta and R*(theta v), for any v within error S_j of what was computed; NaN if unknown."""
    dual, threshold, ridge, sizes = found.dual, found.threshold, found.ridge, found.sizes
    if dual.complete:
        worst = (dual.sizes.reshape(len(found), -1) + error[:, None] * sizes.columns).ravel()
    else:
        worst = dual.sizes + repeated(dual.starts, error) * sizes.widest
    if found.groups is not None:
        return _feasible_groups(found.groups, worst)
    unlisted = dual.cut + error * sizes.widest
    largest = np.maximum(unlisted, reduced(np.maximum, dual.starts, worst))
    # a column that is not listed must be below the threshold, or a ridge would see it
    known, squares = np.isfinite(largest) & (unlisted <= threshold), error
    if ridge.any():
        squares = reduced(np.add, dual.starts, np.maximum(0.0, worst - repeated(dual.starts, threshold)) ** 2)
    theta = np.where(known, np.where(ridge > 0.0, 1.0, threshold / np.maximum(largest, 1e-300) * DOWN), np.nan)
    squares = squares * (1.0 + gamma(sizes.columns.size + 16))
    return theta, np.divide(squares, 2.0 * ridge, out=np.zeros_like(error), where=ridge > 0.0)


def _feasible_groups(blocks: Blocks, worst: Vector) -> tuple[Vector, Vector]:
    """The same for groups with thresholds of their own, from the largest that each |v_j| can be."""
    norms = blocks.norms(worst)
    if not np.all(np.isfinite(norms)):
        return np.full(1, np.nan), np.zeros(1)
    if blocks.ridge:
        return np.ones(1), np.array([float(np.sum(blocks.excess(worst) ** 2)) / (2.0 * blocks.ridge)])
    return np.array([float(np.min(blocks.threshold / norms, initial=np.inf)) * DOWN]), np.zeros(1)
