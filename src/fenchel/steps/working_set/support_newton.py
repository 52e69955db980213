"""A Newton step on the weights that are not zero, by conjugate gradients: for working sets too wide for a Hessian.

On the face where the same groups are zero as now, P is smooth: beside the loss and the ridge it has the gradient
threshold_g u and the Hessian threshold_g (I - u u') / |w_g|, u = w_g / |w_g|. Passes over columns take many rounds to
find what all these weights do together; a few conjugate-gradient steps find it, and no matrix has to be formed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fenchel.data.typing import Vector
from fenchel.steps.working_set.quadratic_model import Model
from fenchel.steps.working_set.state import DescentState

#: Conjugate-gradient steps at most, and the part of the gradient at which they end; also on a working set that will not
#: be the last.
LIMITS, FIRST_LIMITS = (20, 0.1), (8, 0.2)


def face_step(state: DescentState) -> None:
    """The step, single weights that would change their sign set to zero, and a line search."""
    part, blocks, w = state.part, state.part.blocks, state.w
    lengths = blocks.norms(w)[blocks.group]
    alive = lengths > 0.0
    if not alive.any():
        return
    model, u = Model.of(state), np.divide(w, lengths, where=alive, out=np.zeros_like(w))
    threshold = blocks.threshold[blocks.group]
    bend = np.divide(threshold, lengths, where=alive, out=np.zeros_like(w)) * (not blocks.singles)

    def hessian(p: Vector) -> Vector:
        bent = np.zeros_like(p) if blocks.singles else bend * (p - u * blocks.sums(u * p)[blocks.group])
        return np.where(alive, model.curve(p) + bent, 0.0)

    scale = part.squares(model.c) + blocks.ridge + bend
    gradient = np.where(alive, model.slope + threshold * u, 0.0)
    limits = FIRST_LIMITS if state.grows else LIMITS
    step = _conjugate_gradients(hessian, np.where(scale > 0.0, scale, 1.0), gradient, *limits)
    goal = w - step
    if blocks.singles:
        goal[w * goal < 0.0] = 0.0
    model.go(goal)


def _conjugate_gradients(
    hessian: Callable[[Vector], Vector], scale: Vector, g: Vector, most: int, accuracy: float
) -> Vector:
    """p with H p = g, nearly; `scale` is about the diagonal of H."""
    x, r = np.zeros_like(g), g
    q = r / scale
    d, rho = q, float(r @ q)
    enough = accuracy**2 * rho
    for _ in range(most):
        Hd = hessian(d)
        bend = float(d @ Hd)
        if not bend > 0.0:
            break
        x, r = x + (rho / bend) * d, r - (rho / bend) * Hd
        q = r / scale
        rho, last = float(r @ q), rho
        if not rho > enough:
            break
        d = q + (rho / last) * d
    return x
