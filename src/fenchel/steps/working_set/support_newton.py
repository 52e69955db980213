"""A Newton step on the weights that are not zero, by conjugate gradients: for working sets too wide for a Hessian.

On the face where the same groups are zero as now, P is smooth: beside the loss and the ridge it has the gradient
threshold_g u and the Hessian threshold_g (I - u u') / |w_g|, u = w_g / |w_g|. Passes over columns take many rounds to
find what all these weights do together; a few conjugate-gradient steps find it, and no matrix has to be formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector
from fenchel.steps.linear_algebra.conjugate_gradients import conjugate_gradients
from fenchel.steps.working_set.hessian import Elimination
from fenchel.steps.working_set.state import WorkingSetState


@dataclass(frozen=True)
class SupportTuning:
    """`python -m benchmarks.race --sparse` on imdb."""

    steps: int = 20  # of conjugate gradients at most,
    accuracy: float = 0.1  # and the part of the gradient at which they end
    first_steps: int = 8  # the same on a working set that will hardly be the last
    first_accuracy: float = 0.2


TUNING = SupportTuning()


def support_step(state: WorkingSetState) -> None:
    """The step, single weights that would change their sign set to zero, and a line search."""
    columns, blocks, w = state.set, state.set.blocks, state.w
    lengths = blocks.norms(w)[blocks.group]
    alive = lengths > 0.0
    if not alive.any():
        return
    design, c, missing = columns.design, state.curvature(), float(state.fractions @ state.a)
    intercept = Elimination.of(design, c, state.problem.intercept)
    mean, u = intercept.mean, np.divide(w, lengths, where=alive, out=np.zeros_like(w))
    threshold = blocks.threshold[blocks.group]
    curved = np.divide(threshold, lengths, where=alive, out=np.zeros_like(w)) * (not blocks.singles)

    def hessian(p: Vector) -> Vector:
        state.pass_over(columns, 2.0)
        if design.by_rows and mean is None:
            product = design.lines.scatter_some(np.arange(design.shape[0]), c, p, design.threads)
        else:
            product = design.rmatvec(c * (design.matvec(p) - (0.0 if mean is None else float(mean @ p))))
        if not blocks.singles:
            product = product + curved * (p - u * blocks.sums(u * p)[blocks.group])
        return np.where(alive, product + blocks.ridge * p, 0.0)

    v = design.rmatvec(state.fractions * state.a)
    state.pass_over(columns)
    slope = intercept.slope(blocks.ridge * w - v, missing)
    scale = columns.squares(c) + blocks.ridge + curved
    gradient = np.where(alive, slope + threshold * u, 0.0)
    scale = np.where(scale > 0.0, scale, 1.0)
    steps, accuracy = (TUNING.first_steps, TUNING.first_accuracy) if state.grows else (TUNING.steps, TUNING.accuracy)
    step, _, _ = conjugate_gradients(
        hessian, lambda r: r / scale, gradient, steps, energy_goal=lambda first: accuracy**2 * first
    )
    goal = w - step
    if blocks.singles:
        goal[w * goal < 0.0] = 0.0
    state.pass_over(columns)
    state.go_to(goal, state.b + intercept.shift(goal - w, missing), design.matvec(goal))
