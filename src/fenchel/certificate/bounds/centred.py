"""P and D of a least-squares problem from residuals and one product of theirs with X.

Samples have shares p_i = s_i / W; where there is an intercept, means are taken off. Residuals r, as computed, are as
good a dual point as any, once their mean is taken off too, and D(theta r) is as in `certificate.moments`.

Rounding: with S_j = sqrt(sum_i p_i x_ij^2) and |r|_p = sqrt(sum_i p_i r_i^2), the product of r with column j is off by
at most e S_j |r|_p with e = 8 gamma_(n + 200). And beside a constant, residuals computed from k columns are within
8 gamma_(k + 200) M, in that norm, of y - X w, with M = S_y + sum_j S_j |w_j|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.certificate.bounds.batch import Models
from fenchel.certificate.bounds.samples import UP, Bounds, Samples, bounds_list, is_moderate
from fenchel.data.products import gamma
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION


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
        return cls(problem, problem.X.rmatvec(p) / total, centre, y - centre)

    @property
    def are_moderate(self) -> bool:
        """Whether no column is, nor the targets are, so large or so small that squares overflow or vanish."""
        return super().are_moderate and is_moderate(np.array([self.target]))

    def intercept(self, w: Vector, columns: Indices | slice = slice(None)) -> float:
        """The best one for weights of all columns, or of some."""
        return 0.0 if self.mean is None else float(self.centre - self.mean[columns] @ w)

    def bounds_of(self, models: Models) -> list[Bounds]:
        """P of each model, the best intercept added; D at the best feasible multiple of its residuals."""
        R, target = models.multipliers, self.target
        means = R @ self.p if self.problem.intercept else np.zeros(len(R))
        rest = R - means[:, None]
        squares, inners = (rest * rest) @ self.p, rest @ (self.p * self.y)
        sums, rounding = 8.0 * gamma(len(self.y) + 200), 8.0 * gamma(models.most_weights + 200)
        lengths, penalty = np.sqrt(squares) * UP, models.penalty
        off = (sums + rounding) * (target + models.sums(np.abs(models.weights) * self.lengths[models.columns])) * UP
        upper = 0.5 * squares * (1.0 + sums) + (lengths + off) * off * UP + penalty * (1.0 + rounding)
        most, conjugate = models.feasible(sums * (lengths + np.abs(means)) * self.widest)
        best = np.divide(inners, squares, out=np.ones_like(squares), where=squares > 0.0)
        theta = np.where(models.ridge > 0.0, most, np.maximum(0.0, np.minimum(most, best)))
        dual = theta * (inners - 0.5 * theta * squares) - conjugate
        # sum p (r - mean) y has terms as large as those of |r|_p S_y
        lower = dual - sums * (theta * (lengths * target + theta * squares) + conjugate) - 1e-300
        return bounds_list(
            0.5 * squares + penalty, upper * (1.0 + EVALUATION), dual, lower, theta, 0.5 * target * target
        )
