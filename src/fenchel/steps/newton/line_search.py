"""How far to go along a direction."""

from __future__ import annotations

import numpy as np

from fenchel.data.typing import Vector
from fenchel.steps.newton.state import NewtonState


def line_search(state: NewtonState, p: Vector, dz: Vector) -> float:
    """Where the slope along p, which increases, has come to a tenth of what it was; beyond the full step, too.

    Far from the optimum curvature fades along the way, and the best step is a few times longer than Newton's. Samples
    that are not looked at keep their multipliers: their part of the slope is constant.
    """
    ridge, W, work = state.border.ridge, state.W, state.work
    linear, quadratic = float(np.sum(ridge * state.w * p)), float(np.sum(ridge * p * p))
    first = float(state.gradient @ p)
    if state.where is not None:
        linear -= float(state.combined @ p) / W + work.slope(dz, 0.0)[0] / W
    low, high, t = 0.0, np.inf, 1.0
    for k in range(400):
        slope, bend = work.slope(dz, t)
        slope, bend = slope / W + linear + t * quadratic, bend / W + quadratic
        if abs(slope) <= 0.1 * abs(first):
            return t
        low, high = (t, high) if slope < 0.0 else (low, t)
        newton = t - slope / bend if bend > 0.0 else high
        if high == np.inf:
            t = min(max(newton, 1.5 * t), 4.0 * t)
            continue
        # where no sample is curved the step may be far too long, by many powers of ten
        middle = float(np.sqrt(low * high)) if low > 0.0 else 0.1 * high
        t = newton if low < newton < high and k % 3 else middle
        if not low < t < high:
            break
    return low if low > 0.0 else t
