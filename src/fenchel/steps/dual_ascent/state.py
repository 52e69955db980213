"""What dual coordinate ascent knows: multipliers, the weights that go with them, and how far it believes to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.losses import Loss
from fenchel.problem.losses.multiclass import MulticlassLoss
from fenchel.steps.base import Residual, Scores, length
from fenchel.steps.dual_ascent.averaging import Outputs
from fenchel.steps.dual_ascent.momentum import Momentum
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.threads import Team
from fenchel.steps.linear_algebra.augmented import DEPTH


@dataclass
class SDCAState:
    """Multipliers alpha, and u = v / mu with the intercept behind it: changed in place by the kernel."""

    problem: Problem
    ascent: kernels.Ascent
    norms: Vector  # dual norms of the rows
    alpha: Vector
    u: Vector
    inverse_rho: float
    sampler: Sampler
    outputs: Outputs | None
    momentum: Momentum | None
    team: Team
    margin: float = np.inf
    gap: float = np.inf
    primal: float = np.inf
    rate: float = 1.0
    passes: float = 0.0
    partial: bool = False
    drift: float = np.inf  # how far u may be from what the multipliers make it, in the 2-norm

    def refresh(self) -> None:
        """u from the multipliers, without the rounding of all the steps that made it."""
        problem = self.problem
        v = problem.dual_vector(self.alpha)[: len(self.u) - 1]
        self.u[:-1] = v / problem.penalty.strong_convexity if self.momentum is None else self.momentum.weights(v)
        if problem.design.constant:
            self.u[-1] = self.mean_multiplier() * self.inverse_rho
        # sums of at most n products
        way = problem.mean(np.abs(self.alpha) * np.hypot(self.norms, problem.design.constant)) / self.curvature
        centre = 0.0 if self.momentum is None else length(self.momentum.centre)
        self.drift = gamma(len(self.alpha) + DEPTH) * way * (1.0 + 1e-6) + 8.0 * UNIT_ROUNDOFF * (self.size + centre)

    @property
    def curvature(self) -> float:
        """mu of the problem whose steps are made: how v follows from u."""
        mu, momentum = self.problem.penalty.strong_convexity, self.momentum
        return mu if momentum is None else mu + momentum.kappa

    @property
    def size(self) -> float:
        """|u|, with a penalised intercept as a weight among the others."""
        return length(self.u[:-1]) + (abs(self.u[-1] / c) if (c := self.problem.design.constant) else 0.0)

    def moved(self, path: float, moves: int, threads: int = 1, rounds: int = 1) -> None:
        """Note what so many steps may have added to the drift.

        A step adds c x_i to u, with |c x_i|^2 <= change^2 s_i q_i / (mu W): the sum of those lengths is at most
        sqrt(moves path / (mu W)), `path` being the sum of s_i q_i change^2, and u never was longer than it is now plus
        that sum. Each step rounds what it adds, a few times, and what it adds to. Threads make steps longer in copies
        of u, by less than their number, and a sum of the copies with factors of 5/3 in all, threads + 3 roundings,
        ends a round.
        """
        way = np.sqrt(moves * path / (self.curvature * self.problem.total_weight)) * (1.0 + 1e-6)
        if threads > 1:
            moves, way = moves + 2 * (threads + 3) * rounds, (1 + threads) * way
        self.drift += UNIT_ROUNDOFF * (moves * (self.size + way) + 16.0 * way) * (1.0 + 1e-6) + moves * 1e-300

    def scores(self, w: Vector, b: float) -> Scores | None:
        """X w + b without the sums of absolute values that bound it sharply: the rows' norms bound it as well."""
        if not self.problem.penalty.quadratic:
            return None
        rounding, lengths = gamma(w.size + DEPTH), self.norms
        if self.problem.design.constant:
            lengths = np.hypot(lengths, self.problem.design.constant)
        return Scores(self.problem.scores(w, b), lengths, rounding * length(w) * (1.0 + 1e-9), rounding * abs(b))

    @property
    def residual(self) -> Residual | None:
        """|lam w - v|, which momentum makes kappa |centre - w|, and how far the drift may put it off."""
        if not (self.problem.penalty.quadratic and np.isfinite(self.drift)):
            return None
        doubt = self.curvature * (self.drift + 8.0 * UNIT_ROUNDOFF * self.size) * (1.0 + 1e-6)
        if self.momentum is None:
            return Residual(0.0, doubt)
        pull = self.momentum.kappa * (self.momentum.centre - self.u[:-1])
        size = length(self.momentum.centre) + self.size
        return Residual.of(pull, doubt + 8.0 * UNIT_ROUNDOFF * self.momentum.kappa * size)

    def slow_down(self) -> None:
        """Go on without momentum."""
        mu, self.momentum, self.gap = self.problem.penalty.strong_convexity, None, np.inf
        self.ascent, _, self.inverse_rho = ascent_of(self.problem, self.norms, mu)
        self.refresh()

    def mean_multiplier(self) -> float:
        """(1/W) sum_i s_i alpha_i."""
        return float(np.sum(self.problem.weights * self.alpha)) / self.problem.total_weight

    def weights(self, alpha: Vector | None = None) -> Vector:
        """The weights that go with the current u, which they may be a part of, or with other multipliers."""
        problem = self.problem
        if alpha is not None:
            return problem.link(alpha)
        u, penalty = self.u[:-1], problem.penalty
        w = u if penalty.quadratic else penalty.grad_conjugate(u * penalty.strong_convexity)
        constant = problem.design.constant
        return np.append(w, self.u[-1] / constant) if constant else w


def reach(loss: Loss | MulticlassLoss, mean_square: float, mu: float) -> float:
    """1 / rho of an unpenalised intercept's proximal steps, for rows of that mean squared norm: as far as the weights
    reach, or where lam is large and they do not, as far as the loss's own curvature says.
    """
    return max(mean_square / mu, 4.0 / min(loss.smoothness, 1.0))


def ascent_of(problem: Problem, norms: Vector, mu: float) -> tuple[kernels.Ascent, Vector, float]:
    """The compiled epochs of a problem whose rows have these dual norms; q_i, how much a score moves with its own
    multiplier; and 1 / rho of the intercept.
    """
    loss, link, W = problem.loss.kernel(), problem.penalty.kernel(), problem.total_weight
    assert loss is not None
    assert link is not None
    lines, y, s = problem.design.lines, problem.y, problem.weights
    inverse_rho = problem.design.constant**2 / mu
    if problem.intercept:
        inverse_rho = reach(problem.loss, float(np.mean(norms**2)), mu)
    q = s * ((norms**2 / mu + inverse_rho) / W)
    return kernels.Ascent(loss, link, lines, y, s, q, 1.0 / (mu * W), inverse_rho / W, W), q, inverse_rho
