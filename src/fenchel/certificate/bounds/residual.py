"""D from the residual lam w - v that a solver provides, for an L2 penalty, without a product with X'.

With the residual r = lam w - v of any weights w, exactly,

    R*(v) = |v|^2 / (2 lam) = v.w - (lam/2) |w|^2 + |r|^2 / (2 lam),        v.w = (1/W) sum_i s_i alpha_i (z_i - b),

and b drops out, since sum_i s_i alpha_i = 0. The scores z are known from P, so D needs only a bound on |r|, which
enters squared. The gap is the mean of phi(z_i) + phi*(-alpha_i) + alpha_i z_i >= 0, plus |r|^2 / (2 lam).
"""

from __future__ import annotations

import numpy as np

from fenchel._core import kernels
from fenchel.certificate.bounds.dual_point import LowerBound
from fenchel.certificate.bounds.rounding import UP, DualPoint, PrimalBound, dual_of, loss_bound
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.vectors import square_over
from fenchel.steps import Residual


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
    """D at the exact feasible point near `point`, from the scores of w and the residual of w there."""
    lam, penalty, W = problem.penalty.lam, problem.penalty.value(w), problem.total_weight
    loss, loss_lower = loss_bound(problem, point)
    assert primal.error is not None  # the scores are finite
    inner, size, error_sum = (
        total / W for total in kernels.bound_products(point.alpha, primal.z, primal.error, problem.weights)
    )
    length = residual.norm + residual.error
    error_sum = (error_sum + (2.0 * EVALUATION + point.shrink) * size) * UP + square_over(length, 2.0 * lam) * UP
    error_sum += 4.0 * EVALUATION * (abs(loss) + penalty + abs(inner))
    conjugate = inner - penalty  # R*(v) beside the residual's part
    value, lower = dual_of(loss, loss_lower, conjugate + square_over(residual.norm, 2.0 * lam), conjugate + error_sum)
    if not np.isfinite(lower):
        zero = np.zeros_like(w)
        return LowerBound(-np.inf, -np.inf, point, zero, zero, feasible=False)
    v, error = lam * w, length * UP + 4.0 * UNIT_ROUNDOFF * np.sqrt(lam * penalty)  # |w| = sqrt(2 R(w) / lam)
    return LowerBound(value, float(lower), point, v, np.broadcast_to(error, v.shape), distance=error)
