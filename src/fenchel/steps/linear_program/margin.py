"""The best margin in the 1-norm and in the largest norm, as a linear program.

Maximise t subject to a_r.w + e_r.b >= t for every row, and |w|_1 <= 1 (w = u - v with u, v >= 0, sum (u + v) <= 1) or
|w_j| <= 1. The multipliers of the rows are q. Both are computed by HiGHS, and proven elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.data.typing import Vector
from fenchel.problem.margin import LargestMargin
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Goal, Solver, Start


@dataclass(frozen=True)
class ProgramTuning:
    """What a linear program may cost before reweighted problems take its place.

    `python -m benchmarks.tuning steps.linear_program.margin work 1.0 --rows "^m.* digits 2 p=(1$|1 |inf)"`: without
    programs the largest margins take 13 times as long for p = 1 and 34 times for p = inf, and miss the tolerance; the
    interval for p = 1 takes 15 times as long. HiGHS takes 2.4 to 6.9 s for the 5e8 of 1000 x 500 normal numbers.
    """

    work: float = 8e9  # entries of its matrix, times its rows or columns, the fewer of them


TUNING = ProgramTuning()


@dataclass
class Program:
    """The program, the time that it may take, and what it has come to."""

    problem: LargestMargin
    seconds: float = np.inf
    found: Candidate | None = None


@dataclass(frozen=True)
class LinearProgram(Solver[Program]):
    """One step solves the program."""

    name = "linear_program"
    summary = "the largest margin for p = 1 and p = inf, or any positive one"
    requires = frozenset[Trait]()
    steps_per_check = 1
    passes_per_step = 1

    def obstacle(self, problem: LargestMargin) -> str | None:
        if not (problem.p in (1.0, np.inf) or problem.any_margin):  # a positive margin is positive in every norm
            return "is for p = 1 and p = inf"
        rows, columns = problem.n_constraints, int(np.prod(problem.weights_shape))
        entries = (problem.k - 1) * 2.0 * problem.design.nnz
        fits = problem.may_form_rows and entries * min(rows, columns) <= TUNING.work
        return None if fits else "is for fewer samples and features"

    @staticmethod
    def suits(problem: LargestMargin, tol: float) -> bool:
        return not problem.any_margin

    def begin(self, problem: LargestMargin, start: Start, seed: int) -> Program:
        return Program(problem)

    def aim(self, state: Program, goal: Goal) -> None:
        state.seconds = goal.seconds

    def step(self, state: Program) -> Program:
        found = None if state.found is not None else _solution(state.problem, state.seconds)
        if found is None:
            raise GaveUp("the linear program gets no further")
        state.found = found
        return state

    def candidates(self, state: Program) -> Sequence[Candidate]:
        return () if state.found is None else (state.found,)


def _solution(problem: LargestMargin, seconds: float) -> Candidate | None:
    """Weights and multipliers, or None where HiGHS fails, or is not done in half of the seconds.

    The other half is for reweighted problems: a program that is broken off leaves nothing.
    """
    from scipy.optimize import linprog

    A, E = problem.rows
    (rows, d), m = A.shape, E.shape[1]
    size = float(np.abs(A.data).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return None
    A, ones = A / size, np.ones((rows, 1))
    one_norm = problem.p == 1.0
    weights = sp.hstack([-A, A]) if one_norm else -A
    matrix, right = sp.hstack([weights, -E, sp.csr_array(ones)], format="csr"), np.zeros(rows)
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * (2 * d) if one_norm else [(-1.0, 1.0)] * d
    bounds += [(None, None)] * (m + 1)
    if one_norm:
        length = sp.csr_array(np.concatenate([np.ones(2 * d), np.zeros(m + 1)])[None, :])
        matrix, right = sp.vstack([matrix, length], format="csr"), np.append(right, 1.0)
    cost = np.zeros(matrix.shape[1])
    cost[-1] = -1.0
    options: dict[str, Any] = {"time_limit": 0.5 * seconds} if np.isfinite(seconds) else {}
    found = linprog(cost, A_ub=matrix, b_ub=right, bounds=bounds, method="highs", options=options)
    if found.x is None or found.ineqlin is None:
        return None
    w = found.x[:d] - found.x[d : 2 * d] if one_norm else found.x[:d]
    b: float | Vector = 0.0 if problem.is_binary else np.zeros(problem.k)
    if m:
        b = found.x[-1 - m : -1] * size if not problem.is_binary else float(found.x[-2]) * size
    q = np.maximum(-np.asarray(found.ineqlin.marginals[:rows]), 0.0)
    return Candidate(w.reshape(problem.weights_shape), b, q)
