"""Coordinate descent on a quadratic model by walks along columns, where weights are too many for a Hessian.

Every few passes the last weights are extrapolated: near the optimum the passes are a linear map, and the combination
of iterates whose differences cancel is nearer to its fixed point than any of them (Anderson 1965; Bertrand and Massias
2021). For the squared loss residuals are extrapolated with them, which is the dual extrapolation of Massias, Gramfort
and Salmon (2018).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Indices, Vector
from fenchel.steps.working_set.state import DescentState

#: Passes in a round, also over a working set that will not be the last; and iterates that are combined.
PASSES, FIRST_PASSES, MEMORY = 5.0, 2.0, 5


def column_step(state: DescentState, accuracy: float) -> None:
    """Passes of coordinate descent on the quadratic model, a line search, and an extrapolation."""
    part, blocks = state.part, state.part.blocks
    c, m = state.curvature(), -state.shares * state.a
    everything: Indices = np.arange(len(state.w))
    # the trace bounds every direction of a group
    curvature = blocks.sums(kernels.squares_along(part.columns.lines, everything, c))
    w, moved = state.w.copy(), m.copy()
    b, made = kernels.descend_columns(
        part.columns.lines,
        blocks.column,
        blocks.first,
        np.arange(blocks.count),
        c,
        curvature,
        blocks.threshold,
        blocks.ridge,
        state.problem.intercept,
        w,
        state.b,
        moved,
        FIRST_PASSES if state.grows else PASSES,
        accuracy,
    )
    state.passes += (2.0 * made + 1.0) * part.design.nnz / max(1, state.problem.design.nnz)
    scores = np.where(c > 0.0, (moved - m) / np.where(c > 0.0, c, 1.0), 0.0)
    state.search(w, b, scores)
    _extrapolate(state)


def _extrapolate(state: DescentState) -> None:
    """The affine combination of the last iterates whose differences are smallest, if P is smaller there."""
    trail = state.trail
    trail.append((state.w, state.b))
    if len(trail) <= MEMORY:
        return
    mix = _combination(np.array([after[0] - before[0] for before, after in pairwise(trail)]))
    if mix is not None:
        w = np.asarray(mix @ np.array([point[0] for point in trail[1:]]))
        w[trail[-1][0] == 0.0] = 0.0
        b = float(mix @ np.array([point[1] for point in trail[1:]]))
        state.offer(w, b, state.part.design.matvec(w) + b)
    trail.clear()


def _combination(steps: Vector) -> Vector | None:
    """t with sum t = 1 that minimises |sum_k t_k steps_k|."""
    gram = steps @ steps.T
    ridge = 1e-12 * float(np.trace(gram))
    if not ridge > 0.0:
        return None
    t = np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), np.ones(len(gram))), dtype=np.float64)
    total = float(t.sum())
    return np.asarray(t / total) if np.isfinite(total) and total != 0.0 else None
