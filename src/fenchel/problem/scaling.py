"""Convert C and alpha of other packages to lam: dividing an objective by a positive factor keeps its minimisers."""

from __future__ import annotations


def lam_from_C(C: float, total_weight: float) -> float:
    """lam of  C sum_i s_i phi_i + R(w):  divide by C W."""
    return 1.0 / (C * total_weight)


def lam_from_sum(alpha: float, total_weight: float, loss_factor: float = 1.0) -> float:
    """lam of  sum_i s_i loss_i + alpha R(w)  with loss_i = loss_factor phi_i:  divide by loss_factor W."""
    return alpha / (loss_factor * total_weight)


def lam_from_mean(alpha: float) -> float:
    """lam of  mean_i phi_i + alpha R(w):  alpha itself."""
    return alpha
