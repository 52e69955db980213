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

G may be a difference, of all n samples and those without weight, where the k others count the same: sums over all of
them, the part that is taken off, and the products of means that move the centre. With S_j = sqrt(sum_i x_ij^2 / k) over
all samples, each of the three is off by no more than e S_j S_k, so that 4 e covers them and their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.samples import DOWN, UP, Bounds, Samples
from fenchel.data.products import gamma
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks


@dataclass(frozen=True, eq=False)
class Moments(Samples):
    """The moments of samples with the squared loss."""

    G: Vector
    c: Vector
    q: float
    centred: bool  # whether means were taken off, for an intercept
    by_difference: bool = False

    @cached_property
    def doubt(self) -> float:
        """The part of the sums of absolute values that sums over samples may be off by."""
        return (32.0 if self.by_difference else 8.0) * gamma(self.problem.shape[0] + 200)

    @cached_property
    def lengths(self) -> Vector:
        """S_j, from above: of all samples for a difference."""
        if not self.by_difference:
            return super().lengths
        norms = self.problem.X.column_norms()
        return np.asarray(norms / np.sqrt(np.count_nonzero(self.problem.weights)) * UP)

    def bounds(self, blocks: Blocks, w: Vector) -> Bounds:
        """P at w and its best intercept, and D at the best multiple of its residuals that is feasible."""
        d, columns, targets = len(w), self.lengths, self.target
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
        return Bounds(primal, upper, dual, lower, 0.5 * targets * targets, "gradient, from second moments")


def _multiple(blocks: Blocks, v: Vector, inner: float, square: float) -> tuple[float, float]:
    """theta, and R*(theta v) for any v no larger than this."""
    if blocks.ridge:
        return 1.0, float(np.sum(blocks.excess(v) ** 2)) / (2.0 * blocks.ridge)
    with np.errstate(divide="ignore"):
        largest = float(np.min(blocks.threshold / blocks.norms(v), initial=np.inf)) * DOWN
    best = inner / square if square > 0.0 else 1.0
    return max(0.0, min(largest, best)), 0.0  # zero where something is not a number
