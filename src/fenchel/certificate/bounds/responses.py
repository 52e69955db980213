"""P and D of a smooth loss from scores, multipliers and their product with X, each computed once.

With shares p_i = s_i / W, let v = X'(p a) be computed from any multipliers a, and S_j = sqrt(sum_i p_i x_ij^2). By
Cauchy and Schwarz the sums of absolute values behind v_j are at most S_j |a|_p with |a|_p = sqrt(sum_i p_i a_i^2): v_j
is off by no more than c S_j |a|_p, c = 8 gamma_(n + 200). In the same way the mean loss is off by at most c of itself,
and by |a|_p |e|_p + L |e|_p^2 / 2 where score i is off by e_i.

An intercept asks for sum_i p_i a_i = 0. Let t be one minus the ratio of the lighter to the heavier of its two sides,
the positive and the negative terms. The exact point has the heavier side multiplied by 1 - t: that moves v_j by at most
t S_j |a|_p and, as g = -phi*(-a) is concave, g_i by at most t (|g_i| + |g_i(0)|). Nothing is computed again for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.batch import Models
from fenchel.certificate.bounds.rounding import INPUT, UNDERFLOW, DualPoint, loss_bound
from fenchel.certificate.bounds.samples import DOWN, UP, Bounds, Samples, bounds_list
from fenchel.data.products import UNIT_ROUNDOFF, Rounded, gamma
from fenchel.data.typing import Vector
from fenchel.problem.intercept import best_shift
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.vectors import is_finite

#: What may be missing of the intercept's equation, as a part of its terms, and the steps towards it.
BALANCE, BALANCING = 1e-10, 4


@dataclass(frozen=True, eq=False)
class Response:
    """Scores, their intercept added, and what a loss has there: multipliers a = -phi', curvatures, the mean."""

    scores: Rounded
    a: Vector
    h: Vector
    loss: float


@dataclass(frozen=True, eq=False)
class Responses(Samples):
    """Samples with a smooth compiled loss."""

    @cached_property
    def best_constant(self) -> float:
        """The best intercept where all weights are zero; 0 without one."""
        problem = self.problem
        zeros = np.zeros(problem.shape[0])
        return best_shift(problem.loss, zeros, problem.y, problem.weights) if problem.intercept else 0.0

    @cached_property
    def at_zero(self) -> float:
        """The mean loss where all scores are 0."""
        return self.problem.mean(self.problem.loss.value(np.zeros(self.problem.shape[0]), self.problem.y))

    def at(self, scores: Rounded) -> Response:
        """The response to some scores."""
        problem, kernel = self.problem, self.problem.loss.kernel()
        assert kernel is not None
        a, h, total, _ = kernel.respond(scores.value, problem.y, problem.weights, scores.value, 0.0)
        return Response(scores, a, h, total / problem.total_weight)

    def balanced(self, product: Rounded, b: float) -> tuple[float, Response]:
        """An intercept near b that is nearly at its best for the scores X w, and the response to both."""
        response = self.at(Rounded(product.value + b, product.absolute, product.depth))
        for _ in range(BALANCING if self.problem.intercept else 0):
            term, curved = self.p * response.a, float(self.p @ response.h)
            miss = float(term.sum())
            if abs(miss) <= BALANCE * float(np.abs(term).sum()) or not curved > 0.0:
                break
            at = b + miss / curved
            other = self.at(Rounded(product.value + at, product.absolute, product.depth))
            if not other.loss <= response.loss * (1.0 + 1e-14):
                break
            b, response = at, other
        return b, response

    def bounds(self, blocks: Blocks, penalty: float, response: Response, v: Vector) -> Bounds:
        """P at a model with this R(w); D at the largest feasible multiple of its multipliers, up to themselves.

        v is the product of p a with every column; of single weights with one threshold, `blocks` may have fewer.
        """
        a, sums = response.a, 8.0 * gamma(self.problem.shape[0] + 200)
        rounding = EVALUATION + gamma(2 * len(v) + 16)  # of a sum over weights
        loss, length = response.loss, float(np.sqrt(self.p @ (a * a))) * UP + 1e-150
        upper = loss + sums * abs(loss) + self._rise(response, length) + (1.0 + rounding) * penalty + UNDERFLOW
        shrink = self._imbalance(a) + 8.0 * UNIT_ROUNDOFF
        theta, conjugate = self._feasible(blocks, v, (sums + shrink) * length)
        if theta is None:
            return Bounds(loss + penalty, upper, -np.inf, -np.inf, self.at_zero, "gradient")
        value, lower = loss_bound(self.problem, DualPoint(a if theta == 1.0 else theta * a, shrink=shrink))
        lower -= (1.0 + rounding) * conjugate + EVALUATION * abs(lower)
        return Bounds(
            loss + penalty,
            upper,
            value - conjugate,
            lower,
            self.at_zero,
            "gradient" if theta == 1.0 else "gradient, rescaled",
        )

    def bounds_of(self, models: Models) -> list[Bounds]:
        """The same for several models at once, each with its multipliers and mean loss."""
        problem, p, A, loss = self.problem, self.p, models.multipliers, models.loss
        sums, lengths = 8.0 * gamma(len(p) + 200), np.sqrt((A * A) @ p) * UP + 1e-150
        rounding = EVALUATION + 8.0 * gamma(models.most_weights + 200)
        size = models.sums(np.abs(models.weights) * self.lengths[models.columns]) + np.abs(models.b)
        off = ((rounding + 2.0 * INPUT) * size + INPUT * self.target) * UP + 1e-150  # |e|_p of the scores
        rise = (lengths * off + 0.5 * problem.loss.smoothness * off * off) * UP
        upper = loss + sums * np.abs(loss) + rise + (1.0 + rounding) * models.penalty + UNDERFLOW
        shrink = np.array([self._imbalance(a) for a in A]) + 8.0 * UNIT_ROUNDOFF
        theta, conjugate = models.feasible((sums + shrink) * lengths * self.widest)
        theta = np.minimum(theta, 1.0)
        alpha, at_zero, counts = theta[:, None] * A, problem.conjugate_at_zero, p > 0.0
        g = np.where(counts, -problem.loss.conjugate(-alpha, problem.y), 0.0)
        sizes = np.abs(g) + np.abs(at_zero) + 2.0 * np.abs(alpha) * (problem.loss.unit + problem.target_sizes)
        value = g @ p
        lower = value - (2.0 * EVALUATION + sums + shrink) * (sizes @ p) - (1.0 + rounding) * conjugate
        lower = lower - EVALUATION * np.abs(lower) - UNDERFLOW
        return bounds_list(loss + models.penalty, upper, value - conjugate, lower, theta, self.at_zero)

    def _feasible(self, blocks: Blocks, v: Vector, doubt: float) -> tuple[float | None, float]:
        """theta, and R*(theta v) for any v within doubt S_j of this one; None where something overflowed."""
        low, high = float(blocks.threshold.min()), float(blocks.threshold.max())
        if blocks.singles and low == high:  # no group to look at one by one
            if not blocks.ridge and doubt * self.widest <= 1e-9 * low:
                largest = max(float(v.max()), -float(v.min()), 1e-300) + doubt * self.widest
                return (min(1.0, low / largest * DOWN), 0.0) if np.isfinite(largest) else (None, 0.0)
            blocks = Blocks.single(len(v), low, blocks.ridge)
        worst = np.abs(v) + doubt * self.lengths
        if not is_finite(worst):
            return None, 0.0
        if blocks.ridge:
            return 1.0, float(np.sum(blocks.excess(worst) ** 2)) / (2.0 * blocks.ridge)
        with np.errstate(divide="ignore"):
            theta = float(np.min(blocks.threshold / blocks.norms(worst), initial=np.inf)) * DOWN
        return (min(1.0, theta), 0.0) if theta >= 0.0 else (None, 0.0)

    def _rise(self, response: Response, length: float) -> float:
        """What the mean loss may gain where every score is off by e_i: at most |a|_p |e|_p + L |e|_p^2 / 2."""
        z, scores = response.scores.value, response.scores
        error = scores.relative * scores.absolute + scores.underflow + INPUT * (np.abs(z) + self.problem.target_sizes)
        off = float(np.sqrt(self.p @ (error * error))) * UP + 1e-150
        return (length * off + 0.5 * self.problem.loss.smoothness * off * off) * UP

    def _imbalance(self, a: Vector) -> float:
        """t, from above; infinite where one side is missing, or less than a seventh of the other."""
        if not self.problem.intercept:
            return 0.0
        term = self.p * a
        total, size = float(term.sum()), float(np.abs(term).sum())
        # the lighter side is (size - |total|) / 2, the heavier one (size + |total|) / 2; both are rounded
        return 2.0 * abs(total) / (size + abs(total)) + 4.0 * EVALUATION if abs(total) < 0.75 * size else np.inf
