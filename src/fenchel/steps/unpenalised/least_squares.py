"""Least squares of minimum norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Solver, Start
from fenchel.steps.unpenalised import coordinates
from fenchel.steps.unpenalised.coordinates import Coordinates


@dataclass(frozen=True)
class LeastSquaresState:
    """A model, the coordinates if X is factorised, and the steps made."""

    problem: Problem
    known: Coordinates | None
    w: Vector
    b: float
    steps: int = 0


@dataclass(frozen=True)
class LeastSquares(Solver[LeastSquaresState]):
    """w = X^+ y, with centred columns if there is an intercept: a factorisation, then two steps of refinement.

    Where X is too large to factorise, LSMR (Fong and Saunders 2011), which converges to the same weights from 0.
    """

    name = "least_squares"
    summary = "squared loss without a penalty: the least squares of minimum norm"
    requires = frozenset({Trait.NO_PENALTY, Trait.SMOOTH_LOSS})
    steps_per_check = 3
    passes_per_step = 2
    needs_storage = False
    any_storage = True

    def obstacle(self, problem: Problem) -> str | None:
        return None if problem.loss.quadratic else "needs the squared loss"

    def begin(self, problem: Problem, start: Start, seed: int) -> LeastSquaresState:
        known = Coordinates.of(problem) if coordinates.fit(problem) else None
        return LeastSquaresState(problem, known, np.zeros(problem.shape[1]), 0.0)

    def step(self, state: LeastSquaresState) -> LeastSquaresState:
        problem, p = state.problem, state.problem.weights / state.problem.total_weight
        loss = problem.loss
        r = -loss.derivative(problem.scores(state.w, state.b), problem.y) / loss.smoothness
        if state.known is not None:
            w, b = state.known.model(state.known.G.T @ (p * r), float(p @ r))
        else:
            w, b = _by_lsmr(problem, p, r)
        return LeastSquaresState(problem, state.known, state.w + w, state.b + b, state.steps + 1)

    def candidates(self, state: LeastSquaresState) -> list[Candidate]:
        return [Candidate(state.w, state.b)]

    def finished(self, state: LeastSquaresState) -> bool:
        return state.steps >= 3


def _by_lsmr(problem: Problem, p: Vector, r: Vector) -> tuple[Vector, float]:
    """The step to the least squares of the residual r, by products with X."""
    (n, d), root = problem.shape, np.sqrt(p)
    means = problem.X.rmatvec(p) if problem.intercept else np.zeros(d)

    def forward(w: Vector) -> Vector:
        return np.asarray(root * (problem.X.matvec(np.ravel(w)) - means @ np.ravel(w)))

    def backward(u: Vector) -> Vector:
        u = root * np.ravel(u)
        return np.asarray(problem.X.rmatvec(u) - means * u.sum())

    operator = LinearOperator((n, d), matvec=forward, rmatvec=backward, dtype=np.float64)
    mean = float(p @ r) if problem.intercept else 0.0
    w = lsmr(operator, root * (r - mean), atol=UNIT_ROUNDOFF, btol=UNIT_ROUNDOFF, conlim=0.0, maxiter=4 * min(n, d))[0]
    return w, mean - float(means @ w) if problem.intercept else 0.0
