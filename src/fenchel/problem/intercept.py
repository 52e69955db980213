"""The best intercept for given scores: one-dimensional and convex."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from fenchel.data.design import Vector
from fenchel.problem.losses import Loss

#: How far the search for a bracket goes before it calls the minimum infinite (all labels on one side, say).
FARTHEST = 1e12


def best_intercept(loss: Loss, z: Vector, y: Vector, weights: Vector) -> float:
    """A b that minimises sum_i s_i phi(z_i + b; y_i): where the sum of derivatives, which increases in b, crosses zero.

    At a minimum at infinity the last finite point tried comes back; a certificate made from it is valid all the same.
    """

    def slope(b: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.clip(weights @ loss.derivative(z + b, y), -1e300, 1e300))

    at_zero = slope(0.0)
    if at_zero == 0.0 or not np.isfinite(at_zero):
        return 0.0
    step = -np.sign(at_zero) * max(1e-3, 1e-3 * float(np.abs(z).max(initial=0.0)))
    while slope(step) * at_zero > 0:
        if abs(step) > FARTHEST * (1.0 + float(np.abs(z).max(initial=0.0)) + float(np.abs(y).max())):
            return float(step)
        step *= 4.0
    low, high = min(0.0, step), max(0.0, step)
    return float(brentq(slope, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))
