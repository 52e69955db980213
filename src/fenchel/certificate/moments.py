"""P and D of a least-squares problem from second moments alone: no sample is looked at again, whatever lam and w are.

With shares p_i = s_i / W, and means taken off where there is an intercept, let

    q = sum_i p_i y_i^2,    c = X' diag(p) y,    G = X' diag(p) X,    T(w) = q - 2 c.w + w'G w = sum_i p_i alpha_i^2

for the residuals alpha = y - X w. At the best intercept P(w) = T/2 + R(w); v(alpha) = c - G w, and the multiples of the
residuals, which satisfy the intercept's equation exactly, have

    D(theta alpha) = theta (q - c.w) - theta^2 T / 2 - R*(theta v).

Rounding: with sizes S_j = sqrt(sum_i p_i x_ij^2) and S_y of the columns and targets as they are, the sums of absolute
values behind G_jk, c_j and q are at most S_j S_k, S_j S_y and S_y^2 (Cauchy and Schwarz). So with e = 8 gamma_(n + 200)
for sums over samples and M = S_y + sum_j S_j |w_j|, T is off by at most (e + gamma_(2 d + 16)) M^2, and v_j by at most
(e + gamma_(d + 8)) S_j M.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.certificate.rounding import gap_between
from fenchel.data.design import Vector, gamma
from fenchel.problem import Problem
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks

#: For sums of bounds, each rounded.
UP = 1.0 + 1e-9
DOWN = 1.0 - EVALUATION
#: Sizes of columns, targets and thresholds whose squares and products neither overflow nor underflow.
SMALLEST, LARGEST = 1e-50, 1e50


def sizes_of(problem: Problem) -> tuple[Vector, float]:
    """S_j and S_y, from above: sqrt(sum_i p_i x_ij^2) of every column, and the same of the targets."""
    columns = problem.design.column_norms(2.0, problem.weights) / np.sqrt(problem.total_weight)
    return columns * UP, float(np.sqrt(problem.mean(problem.y**2))) * UP


def is_moderate(sizes: Vector) -> bool:
    """Whether all numbers that are not zero are of a size for which the bounds here allow: rounding, no underflow."""
    sizes = sizes[sizes != 0.0]
    return bool(np.all((sizes > SMALLEST) & (sizes < LARGEST)))


def has_moderate(blocks: Blocks) -> bool:
    """Whether the numbers of a penalty are of such a size."""
    numbers = float(blocks.threshold.min()), float(blocks.threshold.max()), blocks.ridge
    return all(number == 0.0 or SMALLEST < number < LARGEST for number in numbers)


@dataclass(frozen=True)
class MomentBounds:
    """P and D as computed, and the bounds on them in exact arithmetic."""

    primal: float
    upper: float
    dual: float
    lower: float
    at_zero: float
    """The mean loss where all scores are 0."""

    @property
    def gap(self) -> float:
        """P - P* is at most this."""
        return gap_between(self.upper, self.lower)

    def reach(self, tol: float, atol: float) -> bool:
        """Whether the gap is small enough."""
        return bool(np.isfinite(self.gap) and self.gap <= max(tol * abs(self.primal), atol))


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments of a problem with the squared loss; its penalty plays no role."""

    problem: Problem
    G: Vector
    c: Vector
    q: float
    centred: bool  # whether means were taken off, for an intercept

    @cached_property
    def sizes(self) -> tuple[Vector, float]:
        """S_j and S_y, from above."""
        return sizes_of(self.problem)

    @cached_property
    def doubt(self) -> float:
        """The part of the sums of absolute values that sums over samples may be off by."""
        return 8.0 * gamma(self.problem.shape[0] + 200)

    def bounds(self, blocks: Blocks, w: Vector) -> MomentBounds:
        """P at w and its best intercept, and D at the best multiple of its residuals that is feasible."""
        d, (columns, targets) = len(w), self.sizes
        rounding = EVALUATION + gamma(2 * d + 16)  # of a sum over weights
        curved = self.G @ w
        slope = float(self.c @ w)
        square, inner, v = self.q - 2.0 * slope + float(w @ curved), self.q - slope, self.c - curved
        size = (targets + float(columns @ np.abs(w))) * UP
        doubt = (self.doubt + rounding) * size * size * UP
        shift = 0.0 if not self.centred else (self.doubt + gamma(d + 8)) * size * UP
        penalty = blocks.value(w)
        primal = 0.5 * max(square, 0.0) + penalty
        upper = 0.5 * (max(square, 0.0) + doubt + shift * shift) + penalty + 2.0 * rounding * primal
        error = (self.doubt + gamma(d + 8)) * size * UP * columns
        theta, conjugate = _multiple(blocks, (np.abs(v) + error) * (1.0 + rounding), inner, square)
        dual = theta * (inner - 0.5 * theta * square) - conjugate
        lower = dual - theta * (1.0 + 0.5 * theta) * doubt
        lower -= 2.0 * rounding * (theta * (abs(inner) + theta * abs(square)) + conjugate) + 1e-300
        return MomentBounds(primal, upper, dual, lower, 0.5 * targets * targets)


def _multiple(blocks: Blocks, v: Vector, inner: float, square: float) -> tuple[float, float]:
    """theta, and R*(theta v) for any v no larger than this."""
    if blocks.ridge:
        return 1.0, float(np.sum(blocks.excess(v) ** 2)) / (2.0 * blocks.ridge)
    with np.errstate(divide="ignore"):
        largest = float(np.min(blocks.threshold / blocks.norms(v), initial=np.inf)) * DOWN
    best = inner / square if square > 0.0 else 1.0
    return max(0.0, min(largest, best)), 0.0
