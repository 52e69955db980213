"""What bounds on P and D that come without a judge have in common: the sizes that rounding is bounded by.

With shares p_i = s_i / W, column j has the size S_j = sqrt(sum_i p_i x_ij^2), and the targets have S_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.rounding import gap_between
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks

#: For sums of bounds, each rounded.
UP = 1.0 + 1e-9
DOWN = 1.0 - EVALUATION
#: Sizes of columns, targets and thresholds whose squares and products neither overflow nor underflow.
SMALLEST, LARGEST = 1e-50, 1e50


@dataclass(frozen=True)
class Bounds:
    """P and D as computed, the bounds on them in exact arithmetic, and where the dual point came from."""

    primal: float
    upper: float
    dual: float
    lower: float
    at_zero: float
    """The mean loss where all scores are 0."""
    how: str

    @property
    def gap(self) -> float:
        """P - P* is at most this."""
        return gap_between(self.upper, self.lower)

    @property
    def rounding(self) -> float:
        """The part of the gap that no better model removes."""
        return (self.upper - self.primal) + (self.dual - self.lower)

    def reach(self, tol: float, atol: float) -> bool:
        """Whether the gap is small enough."""
        return bool(np.isfinite(self.gap) and self.gap <= max(tol * abs(self.primal), atol))


def bounds_list(
    primal: Vector, upper: Vector, dual: Vector, lower: Vector, theta: Vector, at_zero: float
) -> list[Bounds]:
    """Of several models, from theta times their multipliers; what is no number proves nothing."""
    lower, theta = np.where(np.isnan(lower), -np.inf, lower), np.nan_to_num(theta, nan=1.0)
    rows = zip(primal.tolist(), upper.tolist(), dual.tolist(), lower.tolist(), (theta < 1.0).tolist(), strict=True)
    how = ("gradient", "gradient, rescaled")
    return [Bounds(p, u, d, low, at_zero, how[rescaled]) for p, u, d, low, rescaled in rows]


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a problem; its penalty plays no role."""

    problem: Problem

    @cached_property
    def p(self) -> Vector:
        """Their shares."""
        return self.problem.weights / self.problem.total_weight

    @cached_property
    def lengths(self) -> Vector:
        """S_j, from above."""
        norms = self.problem.X.column_norms(2.0, self.problem.weights)
        return np.asarray(norms / np.sqrt(self.problem.total_weight) * UP)

    def know_lengths(self, lengths: Vector) -> None:
        """S_j as somebody else has computed them."""
        vars(self)["lengths"] = lengths * UP

    @cached_property
    def target(self) -> float:
        """S_y, from above."""
        return float(np.sqrt(self.problem.mean(self.problem.y**2))) * UP

    @cached_property
    def widest(self) -> float:
        """The largest S_j."""
        return float(self.lengths.max())

    @property
    def are_moderate(self) -> bool:
        """Whether no column is so large or so small that squares overflow or vanish."""
        return is_moderate(self.lengths)


def is_moderate(sizes: Vector) -> bool:
    """Whether all numbers that are not zero are of a size for which the bounds here allow: rounding, no underflow."""
    return bool(np.all((sizes == 0.0) | (sizes > SMALLEST) & (sizes < LARGEST)))


def has_moderate(blocks: Blocks) -> bool:
    """Whether the numbers of a penalty are of such a size."""
    return is_moderate(np.array([blocks.threshold.min(), blocks.threshold.max(), blocks.ridge]))
