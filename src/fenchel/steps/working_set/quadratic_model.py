"""The quadratic model of the mean loss around the weights of a part, the intercept at its best for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.steps.working_set.state import DescentState


@dataclass(frozen=True)
class Elimination:
    """An unpenalised intercept that is at its best for every u, under some curvature c of the samples.

    It takes e e'/C from the Hessian X' diag(c) X and e r/C from the gradient, with e = X'c, C = sum c, r = mean a: the
    same as if every column had its mean, e / C, taken off.
    """

    total: float  # C
    mean: Vector | None  # of the columns; None without an intercept

    @classmethod
    def of(cls, design: Design, c: Vector, intercept: bool) -> Elimination:
        """For a design and its samples' curvature."""
        total = float(c.sum())
        return cls(total, design.rmatvec(c) / total if intercept else None)

    def slope(self, slope: Vector, miss: float) -> Vector:
        """That of the model, where the intercept's equation misses `miss`."""
        return slope if self.mean is None else slope + miss * self.mean

    def shift(self, move: Vector, miss: float) -> float:
        """What the intercept does when the weights move."""
        return 0.0 if self.mean is None else miss / self.total - float(self.mean @ move)


@dataclass(frozen=True)
class Model:
    """c, the curvature of every sample; what becomes of the intercept; and the slope."""

    state: DescentState
    c: Vector
    intercept: Elimination
    slope: Vector  # of the loss and the ridge

    @classmethod
    def of(cls, state: DescentState) -> Model:
        """Around the present weights."""
        part, c = state.part, state.curvature()
        slope = part.blocks.ridge * state.w - state.dual_vector(part)
        intercept = Elimination.of(part.design, c, state.problem.intercept)
        return cls(state, c, intercept, intercept.slope(slope, float(state.shares @ state.a)))

    @property
    def mean(self) -> Vector | None:
        """The columns' means, where there is an intercept."""
        return self.intercept.mean

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
        state, move = self.state, u - self.state.w
        shift = self.intercept.shift(move, float(state.shares @ state.a))
        state.passes += 2.0 * state.part.design.nnz / max(1, state.problem.design.nnz)
        state.search(u, state.b + shift, state.part.design.matvec(move) + shift)
