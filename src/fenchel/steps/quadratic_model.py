"""The quadratic model of the mean loss around the weights of a part, the intercept at its best for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.design import Vector
from fenchel.steps.descent_state import DescentState


@dataclass(frozen=True)
class Model:
    """c, the curvature of every sample; the columns' means under it, where there is an intercept; and the slope.

    An unpenalised intercept that is at its best for every u takes e e'/C from the Hessian X' diag(c) X and e r/C from
    the gradient, with e = X'c, C = sum c, r = mean a: the same as if every column had its mean, e / C, taken off.
    """

    state: DescentState
    c: Vector
    mean: Vector | None
    slope: Vector  # of the loss and the ridge

    @classmethod
    def of(cls, state: DescentState) -> Model:
        """Around the present weights."""
        part, c = state.part, state.curvature()
        v = part.design.rmatvec(state.shares * state.a)
        if not state.problem.intercept:
            return cls(state, c, None, part.blocks.ridge * state.w - v)
        mean = part.design.rmatvec(c) / float(c.sum())
        return cls(state, c, mean, part.blocks.ridge * state.w - v + float(state.shares @ state.a) * mean)

    def curve(self, p: Vector) -> Vector:
        """The Hessian times p."""
        design, blocks = self.state.part.design, self.state.part.blocks
        self.state.passes += 2.0 * design.nnz / max(1, self.state.problem.design.nnz)
        if design.by_rows and self.mean is None:
            product = design.lines.scatter_some(np.arange(design.shape[0]), self.c, p, design.threads)
        else:
            scores = design.matvec(p) if self.mean is None else design.matvec(p) - float(self.mean @ p)
            product = design.rmatvec(self.c * scores)
        return product + blocks.ridge * p

    def go(self, u: Vector) -> None:
        """Towards u, as far as P falls."""
        state, move, shift = self.state, u - self.state.w, 0.0
        if self.mean is not None:
            shift = float(state.shares @ state.a) / float(self.c.sum()) - float(self.mean @ move)
        state.passes += 2.0 * state.part.design.nnz / max(1, state.problem.design.nnz)
        state.search(u, state.b + shift, state.part.design.matvec(move) + shift)
