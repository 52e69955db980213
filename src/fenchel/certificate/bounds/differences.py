"""Bounds from the multipliers u of D w: the dual bound if X is the identity, and differences proven zero."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.bounds.dual_point import LowerBound
from fenchel.certificate.bounds.rounding import DOWN, UP, DualPoint, loss_bound
from fenchel.data import limits
from fenchel.data.limits import blocks
from fenchel.data.products import gamma
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import FusedL1
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.fused.differences import PowerDifferences


def denoising_bound(problem: Problem, u: Vector, how: str) -> LowerBound | None:
    """The bound of alpha_i = (W / s_i) (D'u)_i with u clipped to [-lam, lam]: v is D'u exactly, so that R*(v) = 0.

    Only alpha is rounded; the exact one lies within `moved`. None if X is not the identity, a sample has weight zero
    or alpha leaves its domain.
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
        factor = W / s
        alpha, moved = factor * v, UP * factor * (error + EVALUATION * np.abs(v)) + 5e-324
        # moved / fraction should be about as long as alpha: shorter or longer makes the bound worse
        length = float(np.sqrt(np.mean(np.square(alpha))))
        fraction = min(0.5, max(EVALUATION, float(moved.max()) / length)) if length > 0.0 else 0.5
        segment = moved / fraction
    low, high = problem.domain
    if not np.all(np.isfinite(segment)) or np.any(alpha - segment < low) or np.any(alpha + segment > high):
        return None
    point = DualPoint(alpha, moved=moved, fraction=fraction, how=how)
    value, lower = loss_bound(problem, point)
    return LowerBound(value, lower, point, v, error) if np.isfinite(lower) else None


def zero_differences(problem: Problem, bound: LowerBound, gap: float) -> Mask:
    """Which entries of D w are zero in every optimum: those with |u_k*| < lam proven.

    A beta-smooth loss makes D(alpha) strongly concave: sum_i s_i (alpha_i - alpha_i*)^2 <= 2 beta W G. If D' is
    injective, u is a linear function of v, and so of alpha; the ball around alpha gives an interval for every u_k*.
    Otherwise (graphs with cycles, images) the optimal u is not unique, and nothing is proven.
    """
    penalty = problem.penalty
    assert isinstance(penalty, FusedL1)
    D = penalty.on(problem.shape[1])
    proven = np.zeros(D.shape[0], dtype=bool)
    radius = np.sqrt(2.0 * problem.loss.smoothness * gap)
    n, d = problem.shape
    cheap = problem.X.is_identity or float(n) * d <= limits.TUNING.step  # X is read densely
    if not (isinstance(D, PowerDifferences) and np.isfinite(radius) and cheap):
        return proven
    for side in (slice(None), slice(None, None, -1)):  # from both ends: the exact v is orthogonal to the null space
        u = D.sums_upper(bound.v[side], bound.error[side])[side]
        interval = radius * _lengths(problem, D, side) * (1.0 + 1e-9)
        with np.errstate(invalid="ignore"):
            proven |= u + interval < penalty.lam * abs(D.scale) * DOWN
    return proven


def _lengths(problem: Problem, D: PowerDifferences, side: slice) -> Vector:
    """l_k = sqrt(sum_i s_i c_ik^2 / W), c_i the running sums of row i: |u_k - u_k*| <= l_k sqrt(2 beta G)."""
    n, _ = problem.shape
    p = problem.weights / problem.total_weight
    if problem.X.is_identity:
        impulse = np.zeros(n)
        impulse[0] = 1.0
        return np.asarray(np.sqrt(p.max() * np.cumsum(D.running_sums(impulse) ** 2))[side])
    total = np.zeros(D.shape[0])
    rounding = 2.0 * gamma(D.order * (problem.shape[1] + 2))
    for rows in blocks(n, problem.shape[1]):
        which = np.arange(rows.start, rows.stop)
        part = problem.X.rows(which)[:, side]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.abs(D.running_sums(part)) + rounding * D.running_sums(np.abs(part))
            total += p[which] @ np.square(sums)
    return np.asarray(np.where(np.isfinite(total), np.sqrt(total), np.inf)[side])
