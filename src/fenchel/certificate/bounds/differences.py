"""What the multipliers u of D w prove: bounds where X is the identity, and differences that are zero."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.bounds.dual_point import LowerBound
from fenchel.certificate.bounds.rounding import DualPoint, loss_bound
from fenchel.data.products import gamma
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import FusedL1
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.differences import PowerDifferences

#: Entries of X, zeros included, that are worth a look for differences that are proven zero; and those of one look.
MOST_ENTRIES, BLOCK = 2e8, 2**20


def denoising_bound(problem: Problem, u: Vector, how: str) -> LowerBound | None:
    """The bound of alpha_i = (W / s_i) (D'u)_i with u cut to [-lam, lam]: v is D'u exactly, so that R*(v) = 0.

    What is rounded is alpha alone; the exact one is as close as `moved` says. None where X is not the identity, a
    sample has no weight or the multipliers leave their domain.
    """
    penalty, s, W = problem.penalty, problem.weights, problem.total_weight
    if not isinstance(penalty, FusedL1) or problem.intercept or not problem.X.is_identity or not np.all(s > 0.0):
        return None
    D = penalty.on(problem.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        u = D.rounded_multipliers(np.nan_to_num(u), penalty.lam)
        v = D.adjoint(u)
        largest = float(np.abs(u).max(initial=0.0))
        error = np.zeros_like(v) if D.unit is not None else gamma(D.depth) * largest * D.column_sums + 5e-324
        share = W / s
        alpha, moved = share * v, (1.0 + EVALUATION) * share * (error + EVALUATION * np.abs(v)) + 5e-324
        # the way that the move is a part of should be as long as the multipliers: shorter or longer, it costs more
        length = float(np.sqrt(np.mean(np.square(alpha))))
        fraction = min(0.5, max(EVALUATION, float(moved.max()) / length)) if length > 0.0 else 0.5
        way = moved / fraction
    low, high = problem.domain
    if not np.all(np.isfinite(way)) or np.any(alpha - way < low) or np.any(alpha + way > high):
        return None
    point = DualPoint(alpha, moved=moved, fraction=fraction, how=how)
    value, lower = loss_bound(problem, point)
    return LowerBound(value, lower, point, v, error) if np.isfinite(lower) else None


def zero_differences(problem: Problem, bound: LowerBound, gap: float) -> Mask:
    """Which entries of D w are zero in every optimum: those whose optimal multiplier is proven to be below lam.

    A beta-smooth loss makes D(alpha) strongly concave: sum_i s_i (alpha_i - alpha_i*)^2 <= 2 beta W G. Where D' is
    injective, u is a linear function of v, and so of alpha; the ball around alpha gives an interval for every u_k*.
    Elsewhere (graphs with cycles, images) the optimal u is not unique, and nothing is proven.
    """
    penalty, (n, d) = problem.penalty, problem.shape
    assert isinstance(penalty, FusedL1)
    D = penalty.on(d)
    proven = np.zeros(D.shape[0], dtype=bool)
    radius = np.sqrt(2.0 * problem.loss.smoothness * gap)
    if not (isinstance(D, PowerDifferences) and np.isfinite(radius)):
        return proven
    if not problem.X.is_identity and n * d > MOST_ENTRIES:
        return proven
    for side in (slice(None), slice(None, None, -1)):  # from either end: the exact v is orthogonal to the null space
        u = D.sums_upper(bound.v[side], bound.error[side])[side]
        interval = radius * _lengths(problem, D, side) * (1.0 + 1e-9)
        with np.errstate(invalid="ignore"):
            proven |= u + interval < penalty.lam * abs(D.scale) * (1.0 - EVALUATION)
    return proven


def _lengths(problem: Problem, D: PowerDifferences, side: slice) -> Vector:
    """sqrt(sum_i s_i c_ik^2 / W) for every k, c_i the running sums of row i; |u_k - u_k*| is at most this times
    sqrt(2 beta G).
    """
    n, _ = problem.shape
    share = problem.weights / problem.total_weight
    if problem.X.is_identity:
        impulse = np.zeros(n)
        impulse[0] = 1.0
        return np.asarray(np.sqrt(share.max() * np.cumsum(D.running_sums(impulse) ** 2))[side])
    total = np.zeros(D.shape[0])
    rounding = 2.0 * gamma(D.order * (problem.shape[1] + 2))
    rows = max(1, BLOCK // problem.shape[1])
    for start in range(0, n, rows):
        which = np.arange(start, min(start + rows, n))
        part = problem.X.rows(which)[:, side]
        with np.errstate(over="ignore", invalid="ignore"):
            # sums that cancel are not what they seem
            sums = np.abs(D.running_sums(part)) + rounding * D.running_sums(np.abs(part))
            total += share[which] @ np.square(sums)
    return np.asarray(np.where(np.isfinite(total), np.sqrt(total), np.inf)[side])
