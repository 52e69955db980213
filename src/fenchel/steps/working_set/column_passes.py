"""Coordinate descent on a quadratic model by passes along columns, where weights are too many for a Hessian.

Every few passes the last weights are extrapolated: near the optimum the passes are a linear map, and the combination
of iterates whose differences cancel is nearer to its fixed point than any of them (Anderson 1965; Bertrand and Massias
2021). For the squared loss residuals are extrapolated with them, which is the dual extrapolation of Massias, Gramfort
and Salmon (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Indices, Vector
from fenchel.steps.working_set.state import WorkingSetState


@dataclass(frozen=True)
class PassTuning:
    """`python -m benchmarks.race --sparse` on imdb."""

    passes: float = 5.0  # in a step
    first_passes: float = 2.0  # over a working set that will hardly be the last
    memory: int = 5  # iterates that are combined


TUNING = PassTuning()


def column_step(state: WorkingSetState, accuracy: float) -> None:
    """Passes of coordinate descent on the quadratic model, a line search, and an extrapolation."""
    columns, blocks = state.set, state.set.blocks
    c, m = state.curvature(), -state.fractions * state.a
    everything: Indices = np.arange(columns.width)
    # the trace bounds the curvature of a group in every direction
    curvature = blocks.sums(columns.columns.lines.energy_some(everything, c))
    w, moved = state.w.copy(), m.copy()
    b, made = kernels.descend_columns(
        columns.columns.lines,
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
        TUNING.first_passes if state.grows else TUNING.passes,
        accuracy,
    )
    state.pass_over(columns, 2.0 * made + 1.0)
    change = np.where(c > 0.0, (moved - m) / np.where(c > 0.0, c, 1.0), 0.0)
    state.go_to(w, b, state.z + change - b)
    state.product = None  # the scores were updated, not computed
    _extrapolate(state)


def _extrapolate(state: WorkingSetState) -> None:
    """The affine combination of the last iterates whose differences are smallest, if P is smaller there."""
    trail = state.trail
    trail.append((state.w, state.b))
    if len(trail) <= TUNING.memory:
        return
    mix = _combination(np.array([after[0] - before[0] for before, after in pairwise(trail)]))
    if mix is not None:
        w = np.asarray(mix @ np.array([point[0] for point in trail[1:]]))
        w[trail[-1][0] == 0.0] = 0.0
        b, product = float(mix @ np.array([point[1] for point in trail[1:]])), state.set.design.matvec(w)
        state.pass_over(state.set)
        if state.offer(w, b, product):
            state.product = product
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
