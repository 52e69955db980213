"""Bounds on P(B, b) from above and on D from below, in exact arithmetic, for a `MulticlassProblem`.

A dual point is a p_i in the probability simplex for each sample, stored as its entries off the true class (see
`fenchel.problem.losses.multiclass`). With intercepts sum_i s_i p_ij must be n_j, the weight of class j. In floating
point it holds up to an error; the weight of another distribution that, mixed in, makes it exact is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize_scalar

from fenchel.certificate.bounds import dual_point
from fenchel.certificate.bounds.rounding import DOWN, INPUT, UP, PrimalBound, dual_of, primal_of
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses.multiclass import multipliers, within_simplex, without_class
from fenchel.problem.penalties.base import EVALUATION, NormPenalty


@dataclass(frozen=True)
class BlockPoint:
    """A dual point: in exact arithmetic, (1 - mix) p_i + mix q for some distribution q is feasible."""

    off: Vector
    mix: float = 0.0
    how: str = "gradient"


@dataclass(frozen=True)
class BlockBound:
    """D as computed, a lower bound on it (and so on P*) in exact arithmetic, and the dual point."""

    value: float
    lower: float
    alpha: Vector = field(repr=False)
    how: str
    V: Vector = field(repr=False)
    error: Vector = field(repr=False)
    feasible: bool = True


def evaluation(problem: MulticlassProblem) -> float:
    """Bound on the relative rounding error of one evaluation, sums over classes included."""
    return EVALUATION + 8.0 * problem.n_classes * UNIT_ROUNDOFF


def primal_bound(problem: MulticlassProblem, B: Vector, b: Vector) -> PrimalBound:
    """P as computed, an upper bound, and the scores. Errors of at most e_i in z_i change phi by at most 2 e_i."""
    with np.errstate(over="ignore", invalid="ignore"):
        Z, error = problem.products.scores_bounded(B)
        Z = Z + b
        weights = B.ravel()
        slack = problem.penalty.slack(weights)
        size = float(np.sqrt(np.max(np.sum(B * B, axis=1))))
        error = error + 1.02 * slack * problem.products.row_norms * size if slack else error
        error = error + INPUT * (np.abs(Z).max(axis=1) + 2.0 * float(np.abs(b).max()))
        loss, penalty = problem.loss.value(Z, problem.y), problem.penalty
        rise = problem.mean(2.0 * error) + evaluation(problem) * problem.mean(loss + 2.0 * error)
        value, upper = primal_of(problem.mean(loss), rise, penalty.value(weights), penalty.value_upper(weights))
    return PrimalBound(value, upper, Z) if np.isfinite(upper) else PrimalBound(np.inf, np.inf, Z)


def zero_bound(problem: MulticlassProblem) -> BlockBound:
    """All mass on the true class: g = 0, V = 0, and R*(0) = 0."""
    (n, d), k = problem.shape, problem.n_classes
    nothing = np.zeros((k, d))
    return BlockBound(0.0, 0.0, np.zeros((n, k)), "zero", nothing, nothing)


def balanced(problem: MulticlassProblem, off: Vector, how: str) -> BlockPoint | None:
    """p moved to where its sums are n_j; None if the mixing weight is 1/2 or more.

    Let r_j = sum_i s_i p_ij - n_j. For any weight mix >= max_j r_j / n_j, (1 - mix) p_i + mix q has the sums n_j for
    q_j = (mix n_j - (1 - mix) r_j) / (mix W), a distribution. The smallest one is mixed in, twice; the r that rounding
    leaves gives the weight `mix` of the bound.
    """
    if not problem.intercept:
        return BlockPoint(off, 0.0, how)
    n, W = problem.class_weights, problem.total_weight
    off = within_simplex(np.where(n > 0.0, off, 0.0))
    for _ in range(2):
        r = excess(problem, off)[0]
        most = float(np.max(np.where(n > 0.0, r / np.where(n > 0.0, n, 1.0), 0.0)))
        if most <= evaluation(problem):
            break
        mix = most / (1.0 + most)
        q = np.maximum(mix * n - (1.0 - mix) * r, 0.0) / (mix * W)
        off = within_simplex(without_class((1.0 - mix) * off + mix * q, problem.y))
    mix = leftover(problem, off)
    return BlockPoint(off, mix, how) if mix < 0.5 else None


def excess(problem: MulticlassProblem, off: Vector) -> tuple[Vector, Vector]:
    """r_j = sum_i s_i p_ij - n_j as computed, and a bound on its error; sums over samples are pairwise."""
    columns = np.ascontiguousarray(multipliers(off, problem.y).T)
    terms = [problem.weights * column for column in columns]
    r = np.array([-float(np.sum(term)) for term in terms])
    size = np.array([float(np.sum(np.abs(term))) for term in terms])
    return r, (evaluation(problem) + EVALUATION) * size


def leftover(problem: MulticlassProblem, off: Vector) -> float:
    """A weight `mix` that suffices in exact arithmetic."""
    r, error = excess(problem, off)
    n = problem.class_weights * DOWN
    most = np.maximum(r + error, 0.0)
    return float(np.max(np.where(most > 0.0, np.where(n > 0.0, most / np.where(n > 0.0, n, 1.0), np.inf), 0.0))) * UP


def lower_bounds(problem: MulticlassProblem, point: BlockPoint, primal_upper: float) -> list[BlockBound]:
    """The bounds of a dual point: D(alpha) and, far from the optimum, D at its best multiple if R* is finite; for a
    norm its best feasible multiple, and the Lipschitzed bound.
    """
    penalty = problem.penalty
    alpha = multipliers(point.off, problem.y)
    if penalty.is_zero:  # V = 0 exactly, with the other distribution mixed in
        nothing = np.zeros((problem.n_classes, problem.shape[1]))
        return [_bound(problem, point, 1.0, nothing, nothing, 0.0, 0.0, alpha)]
    V, error = dual_matrix(problem, alpha, point.mix)
    if not (np.all(np.isfinite(V)) and np.all(np.isfinite(error))):
        return []
    if isinstance(penalty, NormPenalty):
        norm = penalty.dual_norm_upper(V.ravel(), error.ravel())
        if not norm >= 0.0:  # not a number: it overflowed
            return []
        largest = min(1.0, penalty.lam / norm * DOWN) if norm > 0.0 else 1.0
        cost = primal_upper / penalty.lam * max(0.0, norm - penalty.lam) * UP * UP
        return [
            _bound(problem, point, _best(lambda t: _loss_part(problem, t * point.off)[0], largest), V, error, 0.0, 0.0),
            _bound(problem, point, 1.0, V, error, cost, cost),
        ]
    value, upper = penalty.conjugate(V.ravel()), penalty.conjugate_upper(V.ravel(), error.ravel())
    found = [_bound(problem, point, 1.0, V, error, value, upper, alpha)]
    if not primal_upper - found[0].lower <= dual_point.TUNING.far * abs(primal_upper):
        theta = _best(lambda t: _loss_part(problem, t * point.off)[0] - penalty.conjugate(t * V.ravel()), 1.0)
        value, upper = (
            penalty.conjugate(theta * V.ravel()),
            penalty.conjugate_upper(theta * V.ravel(), theta * error.ravel() * UP),
        )
        found.append(_bound(problem, point, theta, theta * V, theta * error * UP, value, upper))
    return found


def dual_matrix(problem: MulticlassProblem, alpha: Vector, mix: float) -> tuple[Vector, Vector]:
    """V, and a bound on its error: it includes the move by `mix`, at most (mix / W) sum_i s_i |x_i|."""
    W = problem.total_weight
    V, error = problem.products.combination_bounded(alpha, evaluation(problem))
    spread = mix * np.sqrt(W) * problem.products.column_norms * UP if mix else 0.0
    return V / W, (error + spread) / W * UP


def _bound(
    problem: MulticlassProblem,
    point: BlockPoint,
    theta: float,
    V: Vector,
    error: Vector,
    conjugate: float,
    conjugate_upper: float,
    alpha: Vector | None = None,
) -> BlockBound:
    """D as computed, and a lower bound: g is concave and >= 0, so mixing loses at most the fraction `mix` of it."""
    off = point.off if theta == 1.0 else theta * point.off
    value, error_of_value = _loss_part(problem, off)
    least = max(value - error_of_value, 0.0) * (1.0 - point.mix) * DOWN
    dual, lower = dual_of(value, least, conjugate, conjugate_upper * UP)
    norm = isinstance(problem.penalty, NormPenalty)
    how = point.how + (", Lipschitzed" if norm and conjugate_upper else ", rescaled" if theta < 1.0 else "")
    alpha = multipliers(off, problem.y) if alpha is None else alpha
    feasible = not (norm and conjugate_upper)
    scale = theta if norm else 1.0  # elsewhere V is already scaled by the caller
    return BlockBound(dual, lower, alpha, how, scale * V, scale * error * UP, feasible)


def _loss_part(problem: MulticlassProblem, off: Vector) -> tuple[float, float]:
    """The mean of g, and a bound on its error."""
    error = problem.mean(problem.loss.dual_error(off)) * UP
    value = problem.mean(problem.loss.dual_value(off))
    return value, error + EVALUATION * abs(value)


def _best(f: Callable[[float], float], largest: float) -> float:
    """The maximiser of a concave f on [0, largest], nearly always the right end."""
    if f(largest) >= f(largest * (1.0 - 1e-6)):
        return largest
    return float(minimize_scalar(lambda t: -f(t), bounds=(0.0, largest), method="bounded", options={"xatol": 1e-9}).x)
