"""Lower bounds on the optimum from a dual point, or from a solver's residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fenchel._core import kernels
from fenchel.certificate.bounds.lipschitzing import Conjugate, Lipschitzed
from fenchel.certificate.bounds.rounding import (
    DOWN,
    UP,
    DualBound,
    DualPoint,
    PrimalBound,
    dual_bound,
    dual_of,
    loss_bound,
    primal_bound,
)
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION, NormPenalty
from fenchel.problem.vectors import square_over
from fenchel.steps import Residual, Scores


@dataclass(frozen=True)
class DualPointTuning:
    """When to search for the best multiple of a dual point.

    `python -m benchmarks.tuning all certificate.bounds.dual_point`: with half 0.95 of the time, with double 1.00; gaps
    are the same.
    """

    far: float = 0.01  # relative gap above which multiples are tried


TUNING = DualPointTuning()


@dataclass(frozen=True)
class LowerBound:
    """D(alpha) as computed, and a lower bound on it (and so on P*) in exact arithmetic."""

    value: float
    lower: float
    point: DualPoint
    v: Vector
    error: Vector
    feasible: bool = True
    distance: float | None = None  # bound on the 2-norm of the error of v, if known

    @property
    def alpha(self) -> Vector:
        return self.point.alpha

    @property
    def how(self) -> str:
        return self.point.how


def gradient_point(problem: Problem, free: FreeDirections, z: Vector) -> DualPoint:
    """alpha_i = -phi'(z_i) at the best z + F c, F the free directions, corrected to satisfy their equations."""
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = -problem.loss.derivative(free.best(problem, z), problem.y)
    return free.satisfy(problem, DualPoint(np.nan_to_num(alpha), how="gradient"))


def zero_bound(problem: Problem) -> LowerBound:
    """D(0) = -mean phi*(0) - R*(0)."""
    n, d = problem.shape
    point, v = DualPoint(np.zeros(n), how="zero"), np.zeros(d)
    value, penalty = -problem.mean(problem.conjugate_at_zero), problem.penalty
    bounds = dual_of(value, value - EVALUATION * abs(value), penalty.conjugate(v), penalty.conjugate_upper(v, v))
    return LowerBound(*bounds, point, v, v)


def lower_bounds(problem: Problem, point: DualPoint, primal_upper: float) -> list[LowerBound]:
    """The bounds of a dual point that satisfies the equations: D(alpha) and, far from the optimum, D at its best
    multiple if R* is finite; for a norm its best feasible multiple, and the Lipschitzed bound; for other penalties the
    first two with R* Lipschitzed.
    """
    bound = dual_bound(problem, point)
    if not np.isfinite(bound.lower):
        return []
    if problem.penalty.is_zero:  # the exact point near this one has v = 0 (`FreeDirections`)
        return [_bound(bound, 0.0, 0.0)]
    if isinstance(problem.penalty, NormPenalty):
        near = {} if point.u is None else {"near": point.u}
        norm = problem.penalty.dual_norm_upper(bound.v, bound.error, **near)
        if not norm >= 0.0:  # not a number: it overflowed
            return []
        largest = problem.penalty.lam / norm * DOWN if norm > 0.0 else 1.0
        return [rescaled(problem, bound, largest), lipschitzed(problem, bound, norm, primal_upper)]
    conjugate = finite_conjugate(problem, primal_upper)
    found = [finite(problem, bound, conjugate)]
    if np.isfinite(bound.lower) and not primal_upper - found[0].lower <= TUNING.far * abs(primal_upper):
        largest = conjugate.largest_multiple(bound.v) if isinstance(conjugate, Lipschitzed) else 1.0
        found.append(rescaled(problem, bound, largest, conjugate))
    return found


def finite_conjugate(problem: Problem, primal_upper: float) -> Conjugate:
    """R* of a strongly convex penalty, which is finite everywhere; else that of R restricted to where optima lie."""
    penalty = problem.penalty
    return penalty if penalty.strong_convexity > 0.0 else Lipschitzed(penalty, largest_penalty(problem, primal_upper))


def finite(problem: Problem, bound: DualBound, penalty: Conjugate) -> LowerBound:
    """D(alpha), for an R* that is finite everywhere."""
    found = _bound(bound, penalty.conjugate(bound.v), penalty.conjugate_upper(bound.v, bound.error))
    if not isinstance(penalty, Lipschitzed):
        return found
    return replace(found, point=replace(bound.point, how=f"{bound.point.how}, Lipschitzed"), feasible=False)


def largest_penalty(problem: Problem, primal_upper: float) -> float:
    """A bound on R at every optimum: min(P(w), P(0)) - m, where m = -mean phi*(0) is the least mean loss.

    m is zero for every loss here.
    """
    zero = np.zeros(problem.shape[1])
    if not primal_upper <= problem.loss_at_zero + problem.penalty.value(zero):
        none = np.zeros(problem.shape[0])
        primal_upper = min(primal_upper, primal_bound(problem, zero, 0.0, Scores(none, none, 0.0, 0.0)).upper)
    return float((primal_upper + UP * problem.mean(np.abs(problem.conjugate_at_zero))) * UP)


def lipschitzed(problem: Problem, bound: DualBound, norm: float, primal_upper: float) -> LowerBound:
    """R may be restricted to the ball lam Om(w) <= B, where all optima lie (`largest_penalty`).

    Then R*(v) is (B / lam) max(0, Om*(v) - lam).
    """
    lam = problem.penalty.lam
    excess = max(0.0, norm - lam)
    cost = largest_penalty(problem, primal_upper) / lam * excess * UP if excess > 0.0 else 0.0
    point = replace(bound.point, how=f"{bound.point.how}, Lipschitzed" if excess else bound.point.how)
    found = _bound(bound, cost, cost + EVALUATION * abs(bound.lower))
    return replace(found, point=point, feasible=excess == 0.0)


def rescaled(problem: Problem, bound: DualBound, largest: float, conjugate: Conjugate | None = None) -> LowerBound:
    """D(theta alpha), concave in theta, maximised over 0 <= theta <= largest within the domain.

    R* of a norm is 0 there; else `conjugate` is R*, finite everywhere.
    """
    y, alpha = problem.y, bound.point.alpha
    low, high = problem.loss.domain(y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(alpha > 0, high / alpha, np.where(alpha < 0, low / alpha, np.inf))
    # theta > 1 only if the exact point is alpha itself: a moved one may lie on the boundary of its domain
    largest = min(largest, max(1.0, float(np.min(ratio))) if bound.point.moved is None else 1.0)

    def value(theta: float) -> float:
        point = theta * alpha if theta <= 1.0 else problem.in_domain(theta * alpha)
        loss = -problem.mean(problem.loss.conjugate(-point, y) if theta else problem.conjugate_at_zero)
        return loss if conjugate is None else loss - conjugate.conjugate(theta * bound.v)

    # for a norm and largest near 1, alpha is near the optimum, and theta = largest is best
    near = conjugate is None and 0.9 <= largest <= 1.0
    theta = largest if near else _maximise(value, largest, rounds=5 if 10 * len(y) <= limits.TUNING.product else 1)
    if theta == 1.0 and conjugate is None:
        return _bound(bound, 0.0, 0.0)
    point = bound.point
    scaled = DualPoint(
        problem.in_domain(theta * alpha),
        shrink=point.shrink + 4.0 * UNIT_ROUNDOFF,  # the exact scale is two roundings below theta
        moved=None if point.moved is None else theta * point.moved,
        fraction=point.fraction,
        how=f"{point.how}, rescaled",
    )
    v, error = theta * bound.v, theta * bound.error * UP
    bound = DualBound(scaled, *loss_bound(problem, scaled), v, error)
    return _bound(bound, 0.0, 0.0) if conjugate is None else finite(problem, bound, conjugate)


def _maximise(f: Callable[[float], float], largest: float, rounds: int) -> float:
    """An approximate maximiser of a concave f on [0, largest], by parabolic interpolation."""
    if not np.isfinite(largest):
        return 1.0
    if not largest > 0.0:
        return 0.0
    known = {theta: f(theta) for theta in (0.0, 0.5 * largest, largest)}
    for _ in range(rounds):
        points = sorted(known)
        middle = min(max(points.index(max(points, key=known.__getitem__)), 1), len(points) - 2)
        left, centre, right = points[middle - 1 : middle + 2]
        up, down = (known[centre] - known[left]) / (centre - left), (known[right] - known[centre]) / (right - centre)
        if not up > down:
            break
        vertex = 0.5 * (left + centre) + 0.5 * (right - left) * up / (up - down)
        if not 0.0 < vertex < largest or min(abs(vertex - theta) for theta in points) < 1e-6 * largest:
            break
        known[vertex] = f(vertex)
    return max(known, key=known.__getitem__)


def _bound(bound: DualBound, conjugate: float, conjugate_upper: float) -> LowerBound:
    value, lower = dual_of(bound.value, bound.lower, conjugate, conjugate_upper)
    if not np.isfinite(lower):
        return LowerBound(-np.inf, -np.inf, bound.point, bound.v, bound.error, feasible=False)
    return LowerBound(value, float(lower), bound.point, bound.v, bound.error)


def moved(problem: Problem, residual: Residual, alpha: Vector, point: DualPoint) -> Residual:
    """The residual of the exact feasible point near alpha: v moves by at most (1/W) sum_i s_i |change_i| |x_i|."""
    if not point.shrink and np.array_equal(point.alpha, alpha):
        return residual
    change = np.abs(point.alpha - alpha)
    lengths = np.hypot(np.sqrt(problem.X.squared_row_norms), problem.X.constant)
    distance = problem.mean((change + (point.shrink + EVALUATION) * np.abs(point.alpha)) * lengths)
    return Residual(residual.norm + distance, residual.error + 1e-9 * distance)


def residual_bound(
    problem: Problem, point: DualPoint, w: Vector, primal: PrimalBound, residual: Residual
) -> LowerBound:
    """D at the exact feasible point near `point`, from the scores of w and the residual of w there; no product with X'.

    For an L2 penalty. With the residual r = lam w - v of any weights w, exactly,

        R*(v) = |v|^2 / (2 lam) = v.w - (lam/2) |w|^2 + |r|^2 / (2 lam),        v.w = (1/W) sum_i s_i alpha_i (z_i - b),

    and b drops out, since sum_i s_i alpha_i = 0. The scores z are known from P, so D needs only a bound on |r|, which
    enters squared. The gap is the mean of phi(z_i) + phi*(-alpha_i) + alpha_i z_i >= 0, plus |r|^2 / (2 lam).
    """
    lam, penalty, W = problem.penalty.lam, problem.penalty.value(w), problem.total_weight
    loss, loss_lower = loss_bound(problem, point)
    assert primal.error is not None  # the scores are finite
    inner, size, error_sum = (
        total / W for total in kernels.bound_products(point.alpha, primal.z, primal.error, problem.weights)
    )
    length = residual.norm + residual.error
    error_sum = (error_sum + (2.0 * EVALUATION + point.shrink) * size) * UP + square_over(length, 2.0 * lam) * UP
    error_sum += 4.0 * EVALUATION * (abs(loss) + penalty + abs(inner))
    error_sum += (problem.penalty.value_upper(w) - penalty) * UP  # R(w) is off by no more in either direction
    conjugate = inner - penalty  # R*(v) beside the residual's part
    value, lower = dual_of(loss, loss_lower, conjugate + square_over(residual.norm, 2.0 * lam), conjugate + error_sum)
    if not np.isfinite(lower):
        zero = np.zeros_like(w)
        return LowerBound(-np.inf, -np.inf, point, zero, zero, feasible=False)
    v, error = lam * w, length * UP + 4.0 * UNIT_ROUNDOFF * np.sqrt(lam * penalty)  # |w| = sqrt(2 R(w) / lam)
    return LowerBound(value, float(lower), point, v, np.broadcast_to(error, v.shape), distance=error)
