"""Steps on working sets too wide for a Hessian: passes along columns, and conjugate gradients on the support.

Coordinate descent on the quadratic model finds which groups are zero. On the face where these stay zero, P is smooth:
beside the loss and the ridge it has the gradient threshold_g u and the Hessian threshold_g (I - u u') / |w_g|,
u = w_g / |w_g|. A Newton step there, by conjugate gradients, moves all weights of the support at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.steps.linear_algebra.conjugate_gradients import conjugate_gradients
from fenchel.steps.working_set.hessian import Elimination
from fenchel.steps.working_set.state import WorkingSetState


@dataclass(frozen=True)
class MatrixFreeTuning:
    """`python -m benchmarks.tuning steps.working_set.matrix_free passes "(2.5, 1.0)" "(10.0, 4.0)" --rows "^groups
    auto"`: 1.17 and 0.84 of the time; `steps "(10, 4)" "(40, 16)"`: 1.08 and 1.05.
    `python -m benchmarks.regression` of builds with 0.1 twice and with the present `accuracy`: sparse logistic
    regression on imdb at lam_max/200 takes 1.2 times as long to 1e-3 with 0.1.
    """

    # of a settled working set, and of one that grows:
    passes: tuple[float, float] = (5.0, 2.0)  # of coordinate descent
    steps: tuple[int, int] = (20, 8)  # of conjugate gradients at most,
    accuracy: tuple[float, float] = (0.1, 0.2)  # and the fraction of the gradient at which they end


TUNING = MatrixFreeTuning()


def column_step(state: WorkingSetState, accuracy: float) -> None:
    """Passes of coordinate descent on the quadratic model, and a line search."""
    columns, blocks, c = state.set.columns, state.set.blocks, state.curvature()
    intercept, missing = Elimination.of(columns, c, state.problem.intercept), float(state.fractions @ state.a)
    mean, alone = np.zeros(state.set.width), 0.0
    if intercept.mean is not None:
        mean, alone = intercept.mean, missing / intercept.total  # the intercept's own step comes first
    squares = state.set.squares(c)
    # the trace bounds the curvature of a group in every direction
    curvature = blocks.sums(np.maximum(squares - intercept.total * mean**2, 1e-12 * squares))
    m = alone * c - state.fractions * state.a
    w, moved, passes = state.w.copy(), m.copy(), TUNING.passes[state.grows]
    model = c, curvature, blocks.threshold, mean, intercept.total, blocks.ridge
    kernels.descend_columns(columns.lines, blocks.column, blocks.first, *model, w, moved, passes, accuracy)
    change = np.divide(moved - m, c, where=c > 0.0, out=np.zeros_like(c))
    state.go_to(w, state.b + intercept.shift(w - state.w, missing), state.z - state.b + change)
    state.product = None  # the scores were updated, not computed


def support_step(state: WorkingSetState) -> None:
    """A Newton step on the support, single weights that would change their sign set to zero, and a line search."""
    design, blocks, w = state.set.design, state.set.blocks, state.w
    lengths = blocks.norms(w)[blocks.group]
    alive = lengths > 0.0
    if not alive.any():
        return
    c, missing = state.curvature(), float(state.fractions @ state.a)
    intercept = Elimination.of(design, c, state.problem.intercept)
    mean, u = intercept.mean, np.divide(w, lengths, where=alive, out=np.zeros_like(w))
    threshold = blocks.threshold[blocks.group]
    curved = np.divide(threshold, lengths, where=alive, out=np.zeros_like(w)) * (not blocks.singles)

    def hessian(p: Vector) -> Vector:
        if design.by_rows and mean is None:
            product = design.lines.scatter_some(np.arange(design.shape[0]), c, p, design.threads)
        else:
            product = design.rmatvec(c * (design.matvec(p) - (0.0 if mean is None else float(mean @ p))))
        if not blocks.singles:
            product = product + curved * (p - u * blocks.sums(u * p)[blocks.group])
        return np.where(alive, product + blocks.ridge * p, 0.0)

    slope = intercept.slope(blocks.ridge * w - design.rmatvec(state.fractions * state.a), missing)
    gradient = np.where(alive, slope + threshold * u, 0.0)
    scale = state.set.squares(c) + blocks.ridge + curved
    scale = np.where(scale > 0.0, scale, 1.0)
    most, enough = TUNING.steps[state.grows], TUNING.accuracy[state.grows] ** 2
    step, _, _ = conjugate_gradients(
        hessian, lambda r: r / scale, gradient, most, energy_goal=lambda first: enough * first
    )
    goal = w - step
    if blocks.singles:
        goal[w * goal < 0.0] = 0.0
    state.go_to(goal, state.b + intercept.shift(goal - w, missing), design.matvec(goal))
