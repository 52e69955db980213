"""Accelerated proximal gradient steps on the multipliers of an interpolation, for sets and penalties of any kind.

With b_i = s_i alpha_i / W (in R^k) the dual minimises F(b) = sum_i sigma_i(-b_i) + R*(A'b). R* is (1/mu)-smooth in a
norm that is at most the 2-norm, so the smooth part has the constant L = |A|^2 / mu, which is searched for. The proximal
step at y, with the scores z there, is b_i = (Pi_i(t_i) - t_i) / L, t_i = z_i - L y_i (Moreau). Momentum (Beck and
Teboulle 2009) begins anew where it points uphill (O'Donoghue and Candes 2015).

An unpenalised intercept is one more coordinate with a quadratic around a centre that moves now and then.

Where there are few rows, semismooth Newton steps (`semismooth`) are tried now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation, Trait
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.interpolation.semismooth import SemismoothNewton
from fenchel.steps.linear_algebra.safeguards import Patience


@dataclass(frozen=True)
class DualGradientTuning:
    """`python -m benchmarks.tuning steps.interpolation.gradient newton 20 80 --rows "balls 60 x 300"`: 0.93 and 1.15 of
    the time; `decay 0.975 0.9`, 1.03 and 1.05.
    """

    decay: float = 0.95  # of L after every step
    newton: int = 40  # steps before the first semismooth Newton steps; later they come after twice as many


TUNING = DualGradientTuning()


@dataclass
class GradientState:
    """Multipliers (n x k), the point of the next gradient with its v, intercepts, L and the momentum."""

    problem: Interpolation
    beta: Vector
    y: Vector
    v: Vector
    v_y: Vector
    centre: Vector  # of the intercepts
    pull: float  # 1 / rho
    L: float
    t: float = 1.0
    steps: int = 0
    idle: Patience = field(default_factory=Patience)  # with steps that move multipliers by no more than rounding
    newton: SemismoothNewton | None = None
    due: int = field(default_factory=lambda: TUNING.newton)  # the number of steps after which it is tried
    settled: bool = False  # by it, up to rounding

    def intercepts(self, beta: Vector) -> Vector:
        """b = centre + pull sum_i beta_i; zero without an intercept."""
        return np.asarray(self.centre + self.pull * beta.sum(axis=0))

    def smooth(self, beta: Vector, v: Vector) -> float:
        """R*(v), and the quadratic of the intercept."""
        value = self.problem.penalty.conjugate(v)
        if self.problem.intercept:
            total = beta.sum(axis=0)
            value += float(self.centre @ total) + 0.5 * self.pull * float(total @ total)
        return value


@dataclass(frozen=True)
class DualGradient(Solver[GradientState]):
    """One accelerated proximal gradient step over all multipliers."""

    name = "fista"
    summary = "sets and penalties of any kind: accelerated gradient steps on the multipliers"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY})
    steps_per_check = 20
    passes_per_step = 2
    needs_storage = False
    any_storage = True

    def begin(self, problem: Interpolation, start: Start, seed: int) -> GradientState:
        beta = problem.weighted(start.alpha)
        v = problem.X.rmatvec(beta.ravel())
        longest = float(np.max(problem.X.row_norms(2.0), initial=0.0))
        first = max(longest * longest / problem.penalty.strong_convexity, 1e-300)
        if not first < np.inf:
            raise Overflow("the squares of the features overflow; rescale them")
        n = int(np.count_nonzero(problem.counts))
        pull = first / n if problem.intercept else 0.0
        b = np.atleast_1d(np.asarray(start.b, dtype=np.float64))
        centre = b - pull * beta.sum(axis=0) if problem.intercept else np.zeros(problem.outputs)
        newton = SemismoothNewton(problem) if SemismoothNewton.suits(problem) else None
        return GradientState(problem, beta, beta, v, v, centre, pull, first, newton=newton)

    def step(self, state: GradientState) -> GradientState:
        problem, beta = state.problem, state.beta
        state.steps += 1
        if state.newton is not None and state.steps >= state.due:
            state.due = 2 * state.steps
            if self._accelerate(state, state.newton):
                return state
        w = problem.penalty.grad_conjugate(state.v_y)
        z = problem.X.matvec(w).reshape(beta.shape) + state.intercepts(state.y)
        value = state.smooth(state.y, state.v_y)
        while True:
            new = self._proximal(state, z)
            v = problem.X.rmatvec(new.ravel())
            move = new - state.y
            bound = value + float(np.vdot(z, move)) + 0.5 * state.L * float(np.vdot(move, move))
            if state.smooth(new, v) <= bound + 1e-12 * (abs(bound) + abs(value)):
                break
            state.L *= 2.0
            if not state.L < 1e300:
                raise Overflow("the multipliers overflow")
        if float(np.vdot(state.y - new, new - beta)) > 0.0:
            state.t = 1.0
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.t**2))
        factor = (state.t - 1.0) / t
        state.y, state.v_y = new + factor * (new - beta), v + factor * (v - state.v)
        moved, size = (float(np.abs(x).max(initial=0.0)) for x in (new - beta, new))
        state.idle.learn(np.inf, progress=moved > 4.0 * UNIT_ROUNDOFF * size)
        state.beta, state.v, state.t = new, v, t
        state.L *= TUNING.decay
        if problem.intercept and state.steps % self.steps_per_check == 0:
            state.centre = state.centre + state.pull * new.sum(axis=0)
            state.y, state.v_y, state.t = new, v, 1.0
        if not np.all(np.isfinite(v)):
            raise Overflow("the multipliers overflow")
        return state

    @staticmethod
    def _accelerate(state: GradientState, newton: SemismoothNewton) -> bool:
        """Semismooth Newton steps; whether they have helped."""
        found = newton.solve(state.beta, state.intercepts(state.beta))
        if found is None:
            return False
        beta, b = found.beta, found.b
        v = state.problem.X.rmatvec(beta.ravel())
        if not np.all(np.isfinite(v)):
            return False
        if state.problem.intercept:
            state.centre = b - state.pull * beta.sum(axis=0)
        state.beta, state.y, state.v, state.v_y, state.t = beta, beta, v, v, 1.0
        state.settled = found.is_settled
        return True

    def _proximal(self, state: GradientState, z: Vector) -> Vector:
        problem = state.problem
        t = z - state.L * state.y
        new = (problem.constraints.project(t) - t) / state.L
        return np.where(problem.counts[:, None], new, 0.0)

    def finished(self, state: GradientState) -> bool:
        return state.settled or state.idle.is_over

    def candidates(self, state: GradientState) -> Sequence[Candidate]:
        problem = state.problem
        b = state.intercepts(state.beta) if problem.intercept else np.zeros(problem.outputs)
        model = problem.shaped(problem.penalty.grad_conjugate(state.v), b)
        return [Candidate(*model, problem.unweighted(state.beta))]
