"""Dual coordinate ascent in random order (Shalev-Shwartz and Zhang 2013), in the compiled core.

For penalties whose link is a soft threshold: L2 and ElasticNet. A constant column is a quadratic on the intercept,
lam/2 (b/c)^2. An unpenalised intercept is the limit of such quadratics around a centre b0 that follows b: the
proximal-point method, whose steps drive the sum of the multipliers to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties import Penalty
from fenchel.steps.base import Candidate, Start


@dataclass
class AscentState:
    """Multipliers alpha, u = v / mu and the intercept, changed in place by the kernel."""

    problem: Problem
    loss: kernels.Loss
    squared_norms: Vector
    alpha: Vector
    u: Vector
    b: float
    centre: float
    inverse_rho: float
    rng: np.random.Generator


@dataclass(frozen=True)
class CoordinateAscent:
    """One pass over the samples in a new random order a step; each sample's multiplier is set to its best value."""

    name = "coordinate_ascent"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.COMPILED_LOSS, Trait.THRESHOLD_LINK})
    steps_per_check = 10
    passes_per_step = 1

    def init(self, problem: Problem, start: Start, seed: int) -> AscentState:
        design, mu = problem.design, problem.penalty.strong_convexity
        if not design.by_rows:
            raise TypeError(
                f"coordinate ascent walks over rows, but X is stored by columns ({design!r}); "
                "pass X.tocsr() or np.ascontiguousarray(X)"
            )
        loss = problem.loss.kernel()
        assert loss is not None
        norms = design.lines.norms_along(2.0, np.ones(design.matrix.shape[1])) ** 2
        if design.constant:
            inverse_rho = design.constant**2 / mu
        else:
            inverse_rho = float(np.mean(norms)) / mu if problem.intercept else 0.0
        alpha = start.alpha.copy()
        u = problem.dual_vector(alpha)[: design.matrix.shape[1]] / mu
        centre = start.b if problem.intercept else 0.0
        rng = np.random.default_rng(seed)
        return AscentState(problem, loss, norms, alpha, u, centre, centre, inverse_rho, rng)

    def step(self, state: AscentState) -> AscentState:
        problem, penalty, W = state.problem, state.problem.penalty, state.problem.total_weight
        mean = float(np.sum(problem.weights * state.alpha)) / W
        state.b = kernels.ascend(
            state.loss,
            problem.design.lines,
            problem.y,
            problem.weights,
            state.squared_norms,
            state.rng.permutation(problem.shape[0]),
            state.alpha,
            state.u,
            penalty.strong_convexity,
            threshold(penalty),
            state.inverse_rho,
            W,
            state.centre + mean * state.inverse_rho,
        )
        state.centre = state.b if problem.intercept else 0.0
        return state

    def candidates(self, state: AscentState) -> Sequence[Candidate]:
        t = threshold(state.problem.penalty)
        w, b = state.u - np.clip(state.u, -t, t), state.b
        if constant := state.problem.design.constant:
            w, b = np.append(w, b / constant), 0.0
        return [Candidate(w, b, state.alpha.copy())]


def threshold(penalty: Penalty) -> float:
    """The link is w = soft(u, threshold) for u = v / mu."""
    return penalty.lam * penalty.sparsity / penalty.strong_convexity
