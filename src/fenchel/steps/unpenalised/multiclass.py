"""Newton steps on a smooth loss of several scores without a penalty."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.data.limits import is_factorable
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Matrix, Vector
from fenchel.problem import MulticlassProblem, Trait
from fenchel.problem.losses.multiclass import margins, probabilities
from fenchel.steps.base import Candidate, Goal, Overflow, Progress, Solver, Start
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TUNING, Damping, backtracked
from fenchel.steps.unpenalised import coordinates
from fenchel.steps.unpenalised.coordinates import Coordinates


@dataclass
class FreeMatrixState:
    """Coordinates M of the weights (a column for each class), the intercepts' first, and the scores of these."""

    known: Coordinates
    F: Matrix
    M: Matrix
    Z: Matrix
    value: float
    damping: Damping = field(default_factory=lambda: Damping(least=ROUNDING, value=TUNING.damping))
    gap: float = np.inf
    steps: int = 0
    scale: float = 1.0
    finished: bool = False
    tol: float = 1e-4


@dataclass(frozen=True)
class FreeMatrixNewton(Solver[FreeMatrixState]):
    """`FreeNewton` for several scores: damped Newton steps with a line search, in orthonormal coordinates."""

    name = "free_newton"
    summary = "a smooth loss without a penalty: Newton steps in orthonormal coordinates"
    requires = frozenset({Trait.NO_PENALTY, Trait.SMOOTH_LOSS})
    steps_per_check = 200
    passes_per_step = 20
    any_storage = True

    def obstacle(self, problem: MulticlassProblem) -> str | None:
        n, d = problem.shape
        fits = coordinates.fit(problem) and is_factorable((min(n, d) + 1) * problem.n_classes, n)
        return None if fits else "needs an X that can be factorised, and few classes"

    def begin(self, problem: MulticlassProblem, start: Start, seed: int) -> FreeMatrixState:
        known = Coordinates.of(problem)
        F = np.hstack([np.ones((problem.shape[0], int(problem.intercept))), known.G])
        M = np.zeros((F.shape[1], problem.n_classes))
        Z = F @ M
        return FreeMatrixState(known, F, M, Z, problem.mean(problem.loss.value(Z, problem.y)))

    def aim(self, state: FreeMatrixState, goal: Goal) -> None:
        state.tol = goal.tol

    def step(self, state: FreeMatrixState) -> FreeMatrixState:
        problem, F = state.known.problem, state.F
        p, loss = problem.weights / problem.total_weight, problem.loss
        gradient = F.T @ (p[:, None] * loss.gradient(state.Z, problem.y))
        H = hessian_matrix(F, probabilities(loss.off_class(state.Z, problem.y), problem.y), p)
        mean = float(np.trace(H)) / max(len(H), 1) + float(np.linalg.norm(gradient))
        H[np.diag_indices(len(H))] += state.damping.value * mean + 1e-300
        try:
            direction = -cho_solve(cho_factor(H), gradient.T.ravel()).reshape(gradient.T.shape).T
        except (LinAlgError, ValueError) as error:
            raise Overflow("the Newton system cannot be solved in double precision") from error
        dZ, slope = F @ direction, float(np.sum(gradient * direction))

        def falls(t: float) -> bool:
            value = problem.mean(loss.value(state.Z + t * dZ, problem.y))
            return bool(value <= state.value + 1e-4 * t * slope)

        t = backtracked(falls)
        if -slope <= 2.0 * UNIT_ROUNDOFF * abs(state.value):  # P is what it can be in double precision
            return replace(state, finished=True)
        state.damping.learn(t == 1.0)
        if t == 0.0:
            return replace(state, finished=state.damping.value >= 1.0, steps=state.steps + 1)
        M = state.M + t * direction
        Z = F @ M
        value = problem.mean(loss.value(Z, problem.y))
        return _separating(replace(state, M=M, Z=Z, value=value, gap=-0.5 * slope, steps=state.steps + 1))

    def candidates(self, state: FreeMatrixState) -> list[Candidate]:
        problem = state.known.problem
        M, first = state.scale * state.M, int(problem.intercept)
        W = (state.known.V @ M[first:]).T
        b = M[0] - W @ state.known.means if first else np.zeros(problem.n_classes)
        return [Candidate(W, b)]

    def progress(self, state: FreeMatrixState) -> Progress:
        return Progress(state.value, state.gap, float(self.passes_per_step * state.steps))

    def finished(self, state: FreeMatrixState) -> bool:
        return state.finished


def hessian_matrix(F: Matrix, P: Matrix, p: Vector) -> Matrix:
    """sum_i p_i J_i (x) f_i f_i', classes by coordinates, J_i = diag(p_i) - p_i p_i'."""
    m, k = F.shape[1], P.shape[1]
    H = np.empty((k * m, k * m))
    for c in range(k):
        for d in range(c + 1):
            block = F.T @ (F * (p * ((P[:, c] if c == d else 0.0) - P[:, c] * P[:, d]))[:, None])
            H[c * m : (c + 1) * m, d * m : (d + 1) * m] = block
            H[d * m : (d + 1) * m, c * m : (c + 1) * m] = block.T
    return H


def _separating(state: FreeMatrixState) -> FreeMatrixState:
    """The state with the scale of a model whose right class has the highest score everywhere."""
    problem = state.known.problem
    counted = problem.weights > 0.0
    apart = margins(state.Z, problem.y)[counted]
    apart[np.arange(len(apart)), np.asarray(problem.y)[counted]] = -np.inf
    least = -float(apart.max())
    if not least > 1e-9 * float(np.abs(state.Z[counted]).max()):
        return state
    zero, scale = float(np.log(problem.n_classes)), 1.0 / least
    for _ in range(60):
        if problem.mean(problem.loss.value(scale * state.Z, problem.y)) <= 0.5 * state.tol * zero:
            return replace(state, scale=scale, finished=True)
        scale *= 2.0
    return state
