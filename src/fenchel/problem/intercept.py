"""The best intercept for given scores: one-dimensional and convex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.data.products import EVALUATION
from fenchel.data.typing import Vector
from fenchel.problem.losses import Loss

#: The slope is zero up to rounding if it is at most this part of its terms; certificates balance the rest exactly.
ZERO = EVALUATION
#: The minimum is at infinity, as far as scores can tell, beyond this multiple of theirs.
FARTHEST = 1.0 / EVALUATION


def best_shift(loss: Loss, z: Vector, y: Vector, weights: Vector, direction: Vector | float = 1.0) -> float:
    """A t that minimises sum_i s_i phi(z_i + t f_i; y_i): the root of sum_i s_i f_i phi'(z_i + t f_i), increasing in t.

    The intercept has f_i = 1. If the minimum is at infinity, the last finite t is returned.
    """
    kernel = loss.kernel()
    if kernel is not None:
        z, y, weights = (np.ascontiguousarray(values, dtype=np.float64) for values in (z, y, weights))
        f = np.ascontiguousarray(direction, dtype=np.float64) if np.ndim(direction) else None
        return kernel.best_shift(z, y, weights, f, loss.unit, loss.smoothness, ZERO, FARTHEST)
    factor = weights * direction

    def slope(t: float) -> tuple[float, float]:
        """The slope at t, and the sum of the absolute values of its terms."""
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.where(factor != 0.0, factor * loss.derivative(z + t * direction, y), 0.0)
            total = float(terms.sum())
            return float(np.clip(total, -1e300, 1e300)), float(np.abs(terms).sum())

    here, size = slope(0.0)
    width = float(np.abs(direction).max())
    if abs(here) <= ZERO * size or not np.isfinite(here) or width < 1e-290:
        return 0.0
    scale = (loss.unit + float(np.abs(z).max(initial=0.0)) + float(np.abs(y).max())) / width
    # for a smooth loss the root is at least |slope| / curvature away
    curvature = loss.smoothness * float((weights * np.square(direction)).sum())
    step = max(abs(here) / curvature if np.isfinite(curvature) else 0.0, 1e-6 * scale)
    if loss.quadratic and np.isfinite(here / curvature):
        return -here / curvature
    a, fa = 0.0, here
    b = -np.sign(here) * step
    while True:
        fb, size = slope(b)
        if not np.isfinite(fb):
            return float(a)
        if abs(fb) <= ZERO * size or abs(b) > FARTHEST * scale:
            return float(b)
        if fb * fa < 0:
            return _root(slope, a, fa, b, fb)
        # a little beyond the root of the secant, to end in a bracket
        ahead = abs(fb * (b - a) / (fb - fa)) if fb != fa else np.inf
        a, fa, b = b, fb, b + np.sign(b) * min(1.1 * ahead, 3.0 * abs(b))


def _root(slope: Callable[[float], tuple[float, float]], a: float, fa: float, b: float, fb: float) -> float:
    """The root of an increasing function between a and b: Illinois method, every fourth step a bisection."""
    for k in range(200):
        t = b - fb * (b - a) / (fb - fa) if k % 4 != 3 else 0.5 * (a + b)
        if not min(a, b) < t < max(a, b):
            t = 0.5 * (a + b)
        ft, size = slope(t)
        if abs(ft) <= ZERO * size or t in (a, b):
            return float(t)
        if ft * fb < 0:
            a, fa = b, fb
        else:
            fa *= 0.5
        b, fb = t, ft
    return float(b)
