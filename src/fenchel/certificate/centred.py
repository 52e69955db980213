"""P and D of a least-squares problem from residuals and one product of theirs with X.

Samples have shares p_i = s_i / W; where there is an intercept, means are taken off. Residuals r, as computed, are as
good a dual point as any, once their mean is taken off too, and D(theta r) is as in `certificate.moments`.

Rounding: with S_j = sqrt(sum_i p_i x_ij^2) and |r|_p = sqrt(sum_i p_i r_i^2), the product of r with column j is off by
at most e S_j |r|_p with e = 8 gamma_(n + 200). And beside a constant, residuals computed from k columns are within
8 gamma_(k + 200) M, in that norm, of y - X w, with M = S_y + sum_j S_j |w_j|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.certificate.bounds import DOWN, UP, Bounds, Samples, is_moderate
from fenchel.data.design import Vector, gamma
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks, Indices


@dataclass(frozen=True, eq=False)
class Centred(Samples):
    """Samples with the squared loss, without their means."""

    mean: Vector | None  # of the columns, and of the targets: None and 0 without an intercept
    centre: float
    y: Vector  # the targets without their mean

    @classmethod
    def of(cls, problem: Problem) -> Centred:
        """With the means of columns and targets where there is an intercept."""
        if not problem.intercept:
            return cls(problem, None, 0.0, problem.y)
        p, y = problem.weights / problem.total_weight, problem.y
        total = float(p.sum())
        centre = float(p @ y) / total
        return cls(problem, problem.design.rmatvec(p) / total, centre, y - centre)

    @property
    def are_moderate(self) -> bool:
        """Whether no column is, nor the targets are, so large or so small that squares overflow or vanish."""
        return super().are_moderate and is_moderate(np.array([self.target]))

    def intercept(self, w: Vector, columns: Indices | slice = slice(None)) -> float:
        """The best one for weights of all columns, or of some."""
        return 0.0 if self.mean is None else float(self.centre - self.mean[columns] @ w)

    def duals(self, residuals: Vector, out: Vector | None = None) -> Vector:
        """X' diag(p) r for every row r, of dense X, the columns' means taken off."""
        V = super().duals(residuals, out)
        if self.mean is not None:
            V -= np.outer(residuals @ self.p, self.mean)
        return V

    def bounds(self, penalties: Sequence[Blocks], columns: Indices, W: Vector, R: Vector, V: Vector) -> list[Bounds]:
        """P at weights of some columns, a row of W for each penalty, and the best intercept; D at the best feasible
        multiple of their residuals, the rows of R. V has the residuals' products with every column.

        Penalties are of single weights, all with one threshold.
        """
        means = np.zeros(len(R)) if self.mean is None else R @ self.p
        rest = R if self.mean is None else R - means[:, None]
        squares, inners = (rest * rest) @ self.p, rest @ (self.p * self.y)
        sizes = (self.target + np.abs(W) @ self.lengths[columns]) * UP
        tops = np.maximum(V.max(axis=1), -V.min(axis=1))
        return [
            self._bounds(blocks, blocks.value(w), v, *map(float, numbers))
            for blocks, w, v, *numbers in zip(penalties, W, V, means, squares, inners, sizes, tops, strict=True)
        ]

    def _bounds(
        self,
        blocks: Blocks,
        penalty: float,
        v: Vector,
        mean: float,
        square: float,
        inner: float,
        size: float,
        top: float,
    ) -> Bounds:
        """Of one model; `top` is the largest |v_j|."""
        lengths, target = self.lengths, self.target
        length = float(np.sqrt(square)) * UP
        sums, rounding = 8.0 * gamma(len(self.y) + 200), 8.0 * gamma(len(blocks.column) + 200)
        off, threshold = (sums + rounding) * size, float(blocks.threshold[0])
        reach = length + off
        upper = 0.5 * (reach * reach * (1.0 + sums) + off * off) + penalty * (1.0 + rounding)
        error = sums * (length + abs(mean))
        if blocks.ridge:
            excess = np.maximum(0.0, np.abs(v) + error * lengths - threshold)
            theta, conjugate = 1.0, float(np.sum(excess**2)) / (2.0 * blocks.ridge)
        else:
            best = inner / square if square > 0.0 else 1.0
            largest = max(top, 1e-300) + error * self.widest
            theta, conjugate = max(0.0, min(threshold / largest * DOWN, best)), 0.0
        dual = theta * (inner - 0.5 * theta * square) - conjugate
        # sum p (r - mean) y has terms as large as those of |r|_p S_y
        lower = dual - sums * (theta * (length * target + theta * square) + conjugate) - 1e-300
        return Bounds(
            0.5 * square + penalty, upper * (1.0 + EVALUATION), dual, lower, 0.5 * target * target, "gradient"
        )
