"""Newton steps on a smooth loss without a penalty."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel._core import CompiledLoss
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Matrix, Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Goal, Overflow, Progress, Solver, Start
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TUNING, Damping, Patience, backtracked
from fenchel.steps.unpenalised import coordinates
from fenchel.steps.unpenalised.coordinates import Coordinates


@dataclass
class FreeNewtonState:
    """Coordinates c of the weights behind the intercept's, and the scores of these; `scale` of a model that separates.

    F are the scores of the coordinates: a column of ones if there is an intercept, then G.
    """

    known: Coordinates
    loss: CompiledLoss
    F: Matrix
    c: Vector
    z: Vector
    value: float = np.inf
    damping: Damping = field(default_factory=lambda: Damping(least=ROUNDING, value=TUNING.damping))
    gap: float = np.inf
    """Half the squared Newton decrement: what P is above its minimum, nearly, once that is small."""
    steps: int = 0
    scale: float = 1.0
    finished: bool = False
    tol: float = 1e-4
    patience: Patience = field(default_factory=lambda: Patience(times=5))  # with steps by which P hardly falls

    @property
    def problem(self) -> Problem:
        """The problem that is solved."""
        problem: Problem = self.known.problem
        return problem

    def respond(self, z: Vector) -> tuple[Vector, Vector, float]:
        """Multipliers, second derivatives and the mean loss at some scores."""
        problem = self.problem
        a, h, total, _ = self.loss.respond(z, problem.y, problem.weights, np.zeros_like(z), 0.0)
        return a, h, total / problem.total_weight


@dataclass(frozen=True)
class FreeNewton(Solver[FreeNewtonState]):
    """Damped Newton steps with a line search, in orthonormal coordinates of the models.

    A model that puts every sample on its side is scaled until its loss is 0, or within the tolerance of it: where no
    scale attains 0 there is no minimiser, and further steps would only scale.
    """

    name = "free_newton"
    summary = "a smooth loss without a penalty: Newton steps in orthonormal coordinates"
    requires = frozenset({Trait.NO_PENALTY, Trait.DIFFERENTIABLE_LOSS, Trait.COMPILED_LOSS})
    steps_per_check = 200
    passes_per_step = 20
    needs_storage = False
    any_storage = True

    def obstacle(self, problem: Problem) -> str | None:
        return None if coordinates.fit(problem) else "needs an X that can be factorised"

    def begin(self, problem: Problem, start: Start, seed: int) -> FreeNewtonState:
        known, kernel = Coordinates.of(problem), problem.loss.kernel()
        assert kernel is not None
        ones = np.ones((problem.shape[0], int(problem.intercept)))
        F = np.ascontiguousarray(np.hstack([ones, known.G]))
        c = np.zeros(F.shape[1])
        p = problem.weights / problem.total_weight
        for _ in range(2):  # least squares: the optimum of a regression if they fit every sample
            c += F.T @ (p * (problem.y - F @ c))
        return FreeNewtonState(known, kernel, F, c, F @ c)

    def aim(self, state: FreeNewtonState, goal: Goal) -> None:
        state.tol = goal.tol

    def step(self, state: FreeNewtonState) -> FreeNewtonState:
        problem, F = state.problem, state.F
        p = problem.weights / problem.total_weight
        a, h, value = state.respond(state.z)
        if not np.isfinite(value):
            raise Overflow("the loss overflows; scale the features")
        gradient = F.T @ (p * -a)
        try:
            direction = _newton_direction(F, p * h, gradient, state.damping.value)
        except (LinAlgError, ValueError) as error:
            raise Overflow("the Newton system cannot be solved in double precision") from error
        dz, slope = F @ direction, float(gradient @ direction)

        def falls(t: float) -> bool:
            return state.respond(state.z + t * dz)[2] <= value + 1e-4 * t * slope

        t = backtracked(falls)
        if -slope <= 2.0 * UNIT_ROUNDOFF * abs(value):  # P is what it can be in double precision
            return replace(state, finished=True)
        state.damping.learn(t == 1.0)
        if t == 0.0:
            return replace(state, finished=state.damping.value >= 1.0, steps=state.steps + 1)
        c, steps = state.c + t * direction, state.steps + 1
        z = F @ c
        after = state.respond(z)[2]
        state.patience.learn(-slope, progress=after < 0.999 * value)
        going = replace(state, c=c, z=z, value=after, gap=-0.5 * slope, steps=steps, finished=state.patience.is_over)
        return _separating(going)

    def candidates(self, state: FreeNewtonState) -> list[Candidate]:
        intercept = int(state.problem.intercept)
        c, b = state.c[intercept:], float(state.c[:intercept].sum())
        w, b = state.known.model(state.scale * c, state.scale * b)
        return [Candidate(w, b)]

    def progress(self, state: FreeNewtonState) -> Progress:
        return Progress(state.value, state.gap, float(self.passes_per_step * state.steps))

    def finished(self, state: FreeNewtonState) -> bool:
        return state.finished


def _newton_direction(F: Matrix, h: Vector, gradient: Vector, damping: float) -> Vector:
    """-(F'diag(h) F + damping)^-1 gradient; the damping is a part of the mean diagonal and of the gradient's length."""
    H = F.T @ (F * h[:, None])
    k = len(H)
    if not k:
        return np.zeros(0)
    H[np.diag_indices(k)] += damping * (float(np.trace(H)) / k + float(np.linalg.norm(gradient))) + 1e-300
    return np.asarray(-cho_solve(cho_factor(H), gradient))


def _separating(state: FreeNewtonState) -> FreeNewtonState:
    """The state with the scale of a model that puts every sample on its side."""
    problem = state.problem
    if not problem.loss.is_classification or problem.loss.quadratic:
        return state
    counted = problem.weights > 0.0
    least = float(np.min(problem.y[counted] * state.z[counted]))
    if not least > 1e-9 * float(np.abs(state.z[counted]).max()):
        return state
    zero, scale = problem.loss_at_zero, (1.0 + 1e-6) / least
    for _ in range(60):
        if problem.mean(problem.loss.value(scale * state.z, problem.y)) <= 0.5 * state.tol * zero:
            return replace(state, scale=scale, finished=True)
        scale *= 2.0
    return state
