"""The floating-point allowance: bounds on P(w, b) from above and on D(alpha) from below, in exact arithmetic.

What is assumed of the machine: IEEE double precision, and functions (exp, log, ...) within a few units in the last
place. What is bounded: every dot product (gamma_k sum |x_j w_j|, from the kernels), every sum over samples (pairwise,
so at most 64 + log2 n roundings), every evaluation of a loss, a penalty or a conjugate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import TypeVar

import numpy as np

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.vectors import is_finite
from fenchel.steps import Scores

#: Relative error granted to the scores, targets and multipliers that enter a loss or its conjugate.
INPUT = 8 * UNIT_ROUNDOFF
#: Factors on the result of one evaluation or a few operations: at least, and at most, the exact result.
UP, DOWN = 1.0 + EVALUATION, 1.0 - EVALUATION
#: What products of tiny multipliers and targets lose below the smallest numbers, many times over.
UNDERFLOW = float(np.finfo(np.float64).tiny)

#: One number, or one for each of several models.
Number = TypeVar("Number", float, Vector)


@dataclass(frozen=True)
class PrimalBound:
    """P(w, b) as computed, a bound on it from above, and the scores, each within `error` of the exact one."""

    value: float
    upper: float
    z: Vector
    error: Vector | None = None


@dataclass(frozen=True)
class DualPoint:
    """A dual point known up to a little: some feasible point in exact arithmetic lies this close to alpha.

    That point has entries theta_i alpha_i with 1 - shrink <= theta_i <= 1, moved by at most moved_i; a move by
    moved_i / fraction to either side would still lie in the domain. `u`, if known, is where to look for D'u = v.
    """

    alpha: Vector
    shrink: float = 0.0
    moved: Vector | None = None
    fraction: float = 0.0
    how: str = "gradient"
    u: Vector | None = None


@dataclass(frozen=True)
class DualBound:
    """The loss part of D at a dual point, from below, and v with a bound on its error."""

    point: DualPoint
    value: float
    lower: float
    v: Vector
    error: Vector = field(repr=False)


# P, D and the gap: the only place where they are put together, for one model or for several at once. ---------------


def primal_of(loss: Number, rise: Number, penalty: Number, penalty_upper: Number) -> tuple[Number, Number]:
    """P = mean loss + R as computed, and a bound above it: the exact loss is at most loss + rise."""
    return loss + penalty, loss + rise + EVALUATION * (abs(loss) + rise) + UNDERFLOW + penalty_upper


def dual_of(loss: Number, loss_lower: Number, conjugate: Number, conjugate_upper: Number) -> tuple[Number, Number]:
    """D = mean of -phi*(-alpha) - R*(v) as computed, and a bound below it."""
    lower = loss_lower - conjugate_upper
    return loss - conjugate, lower - EVALUATION * abs(lower) - UNDERFLOW


def gap_between(upper: Number, lower: Number) -> Number:
    """upper - lower, rounded up."""
    return upper - lower + 2.0 * UNIT_ROUNDOFF * (abs(upper) + abs(lower))


def distance_to_optimum(gap: float, strong_convexity: float) -> float:
    """|w - w*| <= sqrt(2 gap / mu): P is mu-strongly convex in w, and 0 is a subgradient at the optimum."""
    return sqrt(2.0 * max(gap, 0.0)) / sqrt(strong_convexity) * UP if strong_convexity > 0.0 else inf


def primal_bound(problem: Problem, w: Vector, b: float, scores: Scores | None = None) -> PrimalBound:
    """P(w, b) and a bound on it in exact arithmetic.

    A score is off by e_i, so by convexity the loss is at most its larger value at z_i - e_i and z_i + e_i.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        slack = problem.penalty.slack(w)
        if scores is None:
            product = problem.X.matvec_bounded(w)
            product.value[:] += b
            z, size, terms = product.value, product.absolute, (product.relative + 1.01 * slack, product.underflow)
        else:
            z, size, terms = scores.z, scores.sizes, (scores.relative, scores.absolute)
        if not (np.isfinite(slack) and is_finite(z)):
            return PrimalBound(np.inf, np.inf, z)
        mean, rise, error = _mean_loss(problem, z, size, *terms)
        value, upper = primal_of(mean, rise, problem.penalty.value(w), problem.penalty.value_upper(w))
        if not (np.isfinite(value) and np.isfinite(upper)):
            return PrimalBound(np.inf, np.inf, z)
        return PrimalBound(value, upper, z, error)


def _mean_loss(
    problem: Problem, z: Vector, size: Vector, relative: float, absolute: float
) -> tuple[float, float, Vector]:
    """The mean loss, the most that it can rise, and how far each score can be off: relative size + absolute, and
    rounding of the input of a loss.
    """
    kernel, loss, y = problem.loss.kernel(), problem.loss, problem.y
    if kernel is not None:
        s, W = problem.weights, problem.total_weight
        mean, rise, error = kernel.bound_values(
            z, size, relative, absolute, INPUT, y, s, loss.smoothness, loss.lipschitz
        )
        return mean / W, rise / W, error
    error = relative * size + absolute + INPUT * (np.abs(z) + problem.target_sizes)
    value = loss.value(z, y)  # terms of both signs may cancel in the mean of a user's own loss
    rise = problem.mean(loss.rise(z, y, error)) + EVALUATION * problem.mean(np.abs(value))
    return problem.mean(value), rise, error


def loss_bound(problem: Problem, point: DualPoint) -> tuple[float, float]:
    """The mean of g(alpha) = -phi*(-alpha), and a bound below it at the exact feasible point near `point`.

    g is concave, so g(theta a) >= theta g(a) + (1 - theta) g(0): shrinking costs at most shrink (|g(a)| + |g(0)|).
    Likewise, moving by a fraction of the segment from a to e costs at most fraction (|g(a)| + |g(e)|).
    """
    alpha, y = point.alpha, problem.y
    value, size = mean_conjugate(problem, alpha)
    lower = shrunk(value, size, point.shrink)
    if point.moved is not None and point.fraction > 0.0:
        g, segment = problem.loss.conjugate(-alpha, y), point.moved / point.fraction
        ends = (problem.loss.conjugate(-problem.in_domain(alpha + side * segment), y) for side in (-1.0, 1.0))
        worst = np.where(segment > 0, np.abs(g) + np.maximum(*map(np.abs, ends)), 0.0)
        lower -= UP * point.fraction * problem.mean(worst)
    return value, lower


def shrunk(value: Number, size: Number, shrink: Number) -> Number:
    """A bound below the mean of g where multipliers are shrunk by at most this fraction, rounding included."""
    return value - (2.0 * EVALUATION + shrink) * size - UNDERFLOW


def mean_conjugate(problem: Problem, alpha: Vector) -> tuple[float, float]:
    """The mean of g, and that of |g| + |g(0)| and of the terms that are rounded."""
    kernel, y, at_zero, unit = problem.loss.kernel(), problem.y, problem.conjugate_at_zero, problem.loss.unit
    if kernel is not None:
        value, size = kernel.bound_conjugates(alpha, at_zero, y, problem.weights, unit)
        return value / problem.total_weight, size / problem.total_weight
    g = -problem.loss.conjugate(-alpha, y)
    sizes = np.abs(g) + np.abs(at_zero) + 2.0 * np.abs(alpha) * (unit + problem.target_sizes)
    return problem.mean(g), problem.mean(sizes)


def dual_bound(problem: Problem, point: DualPoint) -> DualBound:
    """The loss part of D from below, and v with its error, for the exact feasible point near `point`."""
    s, W = problem.weights, problem.total_weight
    with np.errstate(over="ignore", invalid="ignore"):
        value, lower = loss_bound(problem, point)
        product = problem.X.rmatvec_bounded(point.alpha if problem.weightless else s * point.alpha)
        error = product.error + (2.0 * EVALUATION + point.shrink) * product.absolute
        if point.moved is not None:
            error = error + UP * problem.X.rmatvec_bounded(s * point.moved).absolute
        v = product.value / W
    if not (np.isfinite(lower) and np.all(np.isfinite(v))):
        return DualBound(point, -np.inf, -np.inf, np.zeros_like(v), np.zeros_like(v))
    return DualBound(point, value, float(lower), v, error / W * UP)
