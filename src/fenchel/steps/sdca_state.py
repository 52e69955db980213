"""What dual coordinate ascent knows: multipliers, the weights that go with them, and how far it believes to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.design import Vector
from fenchel.problem import Problem
from fenchel.steps.momentum import Momentum
from fenchel.steps.outputs import Outputs
from fenchel.steps.sampling import Sampler


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
    margin: float = np.inf
    gap: float = np.inf
    primal: float = np.inf
    rate: float = 1.0
    passes: float = 0.0
    partial: bool = False

    def refresh(self) -> None:
        """u from the multipliers, without the rounding of all the steps that made it."""
        problem = self.problem
        v = problem.dual_vector(self.alpha)[: len(self.u) - 1]
        self.u[:-1] = v / problem.penalty.strong_convexity if self.momentum is None else self.momentum.weights(v)

    def slow_down(self) -> None:
        """Go on without momentum."""
        problem, self.momentum = self.problem, None
        mu, W = problem.penalty.strong_convexity, problem.total_weight
        self.inverse_rho = reach(problem, self.norms, mu) if problem.intercept else problem.design.constant**2 / mu
        q = problem.weights * ((self.norms**2 / mu + self.inverse_rho) / W)
        self.ascent, self.gap = ascent_of(problem, q, mu, self.inverse_rho), np.inf
        self.refresh()

    def mean_multiplier(self) -> float:
        """(1/W) sum_i s_i alpha_i."""
        return float(np.sum(self.problem.weights * self.alpha)) / self.problem.total_weight

    def weights(self, alpha: Vector | None = None) -> Vector:
        """The weights that go with the current u, or with other multipliers."""
        problem = self.problem
        if alpha is not None:
            return problem.link(alpha)
        w = problem.penalty.grad_conjugate(self.u[:-1] * problem.penalty.strong_convexity)
        constant = problem.design.constant
        return np.append(w, self.u[-1] / constant) if constant else w


def reach(problem: Problem, norms: Vector, mu: float) -> float:
    """1 / rho of an unpenalised intercept's proximal steps: as far as the weights reach, or where lam is large and they
    do not, as far as the loss's own curvature says.
    """
    return max(float(np.mean(norms**2)) / mu, 4.0 / min(problem.loss.smoothness, 1.0))


def ascent_of(problem: Problem, q: Vector, mu: float, inverse_rho: float) -> kernels.Ascent:
    loss, link, W = problem.loss.kernel(), problem.penalty.kernel(), problem.total_weight
    assert loss is not None
    assert link is not None
    lines, y, s = problem.design.lines, problem.y, problem.weights
    return kernels.Ascent(loss, link, lines, y, s, q, 1.0 / (mu * W), inverse_rho / W, W)
