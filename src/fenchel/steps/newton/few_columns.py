"""Newton's method on few columns: many compiled steps in one call, since each takes less time than a call from Python.

The steps are those of `newton`, on all samples (`_core/newton/few_columns.hpp`); the call ends where their own gap is
what is asked for. With it come the scores z and v = [X, c]' (s a), each computed once, in any order, for the weights
and multipliers that are offered: their errors are bounded as those of `AugmentedDesign` are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel._core import CompiledLoss, kernels
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps.base import Candidate, Goal, Overflow, Progress, Residual, Scores, Start, length
from fenchel.steps.linear_algebra import newton_system, safeguards
from fenchel.steps.linear_algebra.augmented import DEPTH, AugmentedDesign
from fenchel.steps.linear_algebra.safeguards import Patience
from fenchel.steps.newton.state import TUNING, first_tau, least_tau

#: The first part of the tolerance that the steps' own gap must reach, and of that for every certificate that fails.
FIRST_PART, NEXT_PART = 0.8, 0.1
#: The most steps of a call, which Ctrl-C and the clock wait for: more than may pass without progress.
STEPS = 400


def is_small(problem: Problem) -> bool:
    """Whether a step costs less than a call; samples without weight do not count, and so change no model."""
    n, width = problem.shape[0], problem.shape[1] + problem.intercept
    n = n if problem.weightless else int(np.count_nonzero(problem.weights))
    return n <= newton_system.TUNING.few_rows and n * width * width <= TUNING.call


@dataclass
class FewColumnsState:
    """Where the steps are, what is asked for, and what the last call has found."""

    problem: Problem
    loss: CompiledLoss
    design: AugmentedDesign
    w: Vector  # with the intercept as last entry
    c: Vector
    tau: float
    goal: Goal | None = None
    part: float = FIRST_PART
    steps: int = 0
    """Of the last call."""
    total: int = 0
    z: Vector | None = None
    a: Vector | None = None
    v: Vector | None = None  # [X, c]' (s a)
    primal: float = np.inf
    gap: float = np.inf
    stuck: bool = False
    patience: Patience = field(default_factory=lambda: Patience(times=10, part=0.99))

    @classmethod
    def of(cls, problem: Problem, loss: CompiledLoss, start: Start) -> FewColumnsState:
        """Before the first step."""
        design = AugmentedDesign.of(problem)
        w, c, tau = np.append(start.w, start.b) if problem.intercept else start.w.copy(), start.alpha, 1.0
        if problem.loss.kinks(problem.y[:1]):
            z = problem.scores(start.w, start.b) if w.any() else np.zeros(len(c))
            tau = first_tau(problem, z, problem.y, problem.weights)
        return cls(problem, loss, design, w, c, tau)

    @property
    def has_kinks(self) -> bool:
        """Whether the loss is smoothed."""
        return bool(self.problem.loss.kinks(self.problem.y[:1]))

    def advance(self) -> None:
        """As many steps as are asked for, or until the gap is small enough."""
        if self.stuck:
            raise Overflow("Newton steps make no progress in double precision; rescale the features or lam")
        problem, goal, tau = self.problem, self.goal, self.tau
        tol, atol, left = (0.0, 0.0, 1) if goal is None else (goal.tol, goal.atol, goal.steps - self.total)
        least = least_tau(problem) if problem.loss.kinks(problem.y[:1]) else 1.0
        patience = 10 * safeguards.TUNING.patience
        free, quadratic = problem.intercept, problem.loss.quadratic
        steps = 1 if quadratic else min(max(1, left), STEPS)  # one solves a quadratic
        asked = self.part * tol, self.part * atol, steps, patience, free, quadratic
        request = kernels.NewtonRequest(tau, least, TUNING.tau_factor, *asked)
        low, high = (np.ascontiguousarray(end) for end in problem.domain)
        y, s, design = problem.y, problem.weights, self.design
        found = self.loss.newton_steps(
            problem.design.lines, design.column, y, s, design.ridge, low, high, self.w, self.c, request
        )
        self.w, self.c, self.z, self.a, self.v, self.tau, self.primal, self.gap, self.steps, self.stuck = found
        self.total += self.steps
        if self.gap <= self.part * max(tol * abs(self.primal), atol):
            self.part *= NEXT_PART
        self.patience.learn(self.gap)  # of calls: single steps count here, others in the call itself
        self.stuck = self.stuck or self.patience.is_over
        if not np.isfinite(self.primal):
            raise Overflow("the objective overflows; rescale the features or lam")

    def candidates(self) -> Sequence[Candidate]:
        """The model with its multipliers, scores and residual."""
        free = self.problem.intercept
        w, b = (self.w[:-1], float(self.w[-1])) if free else (self.w, 0.0)
        if self.z is None or self.a is None:
            return [Candidate(w, b)]
        error = 1.01 * self.design.score_error(self.w)
        return [Candidate(w, b, self.a, residual=self._residual(w), scores=Scores(self.z, self.z, 0.0, error))]

    def _residual(self, w: Vector) -> Residual:
        """|lam w - v|: an entry of v is a sum of n products, so its error is at most gamma_n |X|_F |s a|."""
        assert self.v is not None
        assert self.a is not None
        problem = self.problem
        lam, W = problem.penalty.lam, problem.total_weight
        v = self.v[: len(w)] / W
        rounding = 4.0 * UNIT_ROUNDOFF * (lam * length(w) + length(v))
        terms = length(self.a if problem.weightless else problem.weights * self.a)
        off = gamma(len(self.a) + DEPTH) * self.design.frobenius_bound * terms
        return Residual.of(lam * w - v, 1.01 * (off / W + rounding))

    def progress(self) -> Progress:
        """P and the gap after the last call."""
        return Progress(self.primal, self.gap, 3.0 * self.total)
