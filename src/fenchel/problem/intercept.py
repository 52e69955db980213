"""The best intercept for given scores: one-dimensional and convex."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from fenchel.data.design import Vector
from fenchel.problem.losses import Loss

#: How far the search for a bracket goes before it calls the minimum infinite (all labels on one side, say).
FARTHEST = 1e12


def best_shift(loss: Loss, z: Vector, y: Vector, weights: Vector, direction: Vector | float = 1.0) -> float:
    """A t that minimises sum_i s_i phi(z_i + t f_i; y_i): where the slope, which increases in t, crosses zero.

    The intercept has f_i = 1. At a minimum at infinity the last finite point tried comes back; a certificate made from it is
    valid all the same.
    """
    pull = weights * direction

    def slope(t: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.clip(pull @ loss.derivative(z + t * direction, y), -1e300, 1e300))

    at_zero = slope(0.0)
    size = float(np.abs(direction).max())
    if at_zero == 0.0 or not np.isfinite(at_zero) or size == 0.0:
        return 0.0
    reach = (1.0 + float(np.abs(z).max(initial=0.0)) + float(np.abs(y).max())) / size
    step = -np.sign(at_zero) * 1e-3 * reach
    while slope(step) * at_zero > 0:
        if abs(step) > FARTHEST * reach:
            return float(step)
        step *= 4.0
    low, high = min(0.0, step), max(0.0, step)
    return float(brentq(slope, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))
