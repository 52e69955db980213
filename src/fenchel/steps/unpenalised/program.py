"""Piecewise linear losses without a penalty: a linear program."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from fenchel.data.limits import fits
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, GaveUp, Solver, Start


@dataclass(frozen=True)
class FreeProgramState:
    """The solution, once there is one."""

    problem: Problem
    w: Vector
    b: float
    alpha: Vector | None = None


@dataclass(frozen=True)
class FreeProgram(Solver[FreeProgramState]):
    """The dual linear program, by HiGHS::

        maximise mean of -phi*(-alpha_i)  subject to  sum_i s_i alpha_i x_i = 0, sum_i s_i alpha_i = 0, alpha_i in range

    The multipliers of its equations are the weights and the intercept.
    """

    name = "free_program"
    summary = "a piecewise linear loss without a penalty: a linear program"
    requires = frozenset({Trait.NO_PENALTY, Trait.LIPSCHITZ_LOSS})
    steps_per_check = 1
    passes_per_step = 100
    needs_storage = False
    any_storage = True

    def obstacle(self, problem: Problem) -> str | None:
        if not fits(*problem.shape):
            return "needs an X that can be made dense"
        return None if _is_straight(problem) else "needs a piecewise linear loss"

    def begin(self, problem: Problem, start: Start, seed: int) -> FreeProgramState:
        return FreeProgramState(problem, start.w, start.b)

    def step(self, state: FreeProgramState) -> FreeProgramState:
        problem = state.problem
        (n, d), p, y = problem.shape, problem.weights / problem.total_weight, problem.y
        low, high = problem.domain
        X = problem.X.rows(np.arange(n))
        sizes = np.abs(X).max(axis=0, initial=0.0)
        sizes[sizes == 0.0] = 1.0
        F = np.column_stack([X / sizes, np.ones(n)] if problem.intercept else [X / sizes])
        at_zero, sides = problem.conjugate_at_zero, []
        for end in (low, high):  # alpha = u end + u' end' with 0 <= u <= 1
            used = np.flatnonzero((end != 0.0) & (p > 0.0))
            gain = -(problem.loss.conjugate(-end, y) - at_zero)[used]
            sides.append((used, end[used], p[used] * gain))
        rows, ends, gains = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        equations = sp.csc_array((F[rows] * (p[rows] * ends)[:, None]).T * n)
        found = linprog(-gains * n, A_eq=equations, b_eq=np.zeros(F.shape[1]), bounds=(0.0, 1.0), method="highs")
        if found.x is None:
            raise GaveUp("HiGHS does not solve the linear program")
        alpha = np.bincount(rows, ends * found.x, minlength=n).astype(np.float64)
        model = -np.asarray(found.eqlin.marginals)
        b = float(model[d]) if problem.intercept else 0.0
        return replace(state, w=model[:d] / sizes, b=b, alpha=problem.in_domain(alpha))

    def candidates(self, state: FreeProgramState) -> list[Candidate]:
        return [Candidate(state.w, state.b, state.alpha)]

    def finished(self, state: FreeProgramState) -> bool:
        return state.alpha is not None


def _is_straight(problem: Problem) -> bool:
    """Whether the conjugate is linear from 0 to either end of its domain."""
    for end in problem.domain:
        if not np.all(np.isfinite(end)):
            return False
        value, middle = (problem.loss.conjugate(-part * end, problem.y) for part in (1.0, 0.5))
        middle_of_line = 0.5 * (value + problem.conjugate_at_zero)
        size = np.abs(value) + np.abs(problem.conjugate_at_zero) + np.abs(end) * (problem.loss.unit + np.abs(problem.y))
        if not np.all(np.abs(middle - middle_of_line) <= 1e-12 * size):
            return False
    return True
