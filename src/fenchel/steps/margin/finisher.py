"""The largest margin for p = 2 to the last digits: the nearest point of some rows, and of those that it violates.

It begins with the multipliers that are known, whose rows are nearly those of the optimum, so that few exchanges follow
(`nearest`); without any, with the rows that a model of class means violates most. Of small problems all rows are there
from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import qr

from fenchel.data import limits
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem.margin import LargestMargin, Model
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Goal, Progress, Solver, Start
from fenchel.steps.margin import growing
from fenchel.steps.margin.growing import nearest_mean
from fenchel.steps.margin.nearest import STUCK, NearestPoint
from fenchel.steps.margin.rounds import SATISFIED


@dataclass
class FinisherState:
    """Some rows of differences, and the nearest point of their polytope."""

    problem: LargestMargin
    exponent: int  # features near 1 by this power of two
    which: Indices
    q: Vector  # of all rows
    slack: float = SATISFIED * 1e-3  # values below |w|^2 by this part of it are near enough
    point: NearestPoint = field(init=False)
    basis: Matrix | None = field(default=None, init=False)  # of the rows, if they are written in one
    steps: int = 0

    def __post_init__(self) -> None:
        self._form()

    @classmethod
    def of(cls, problem: LargestMargin, start: Start) -> FinisherState:
        """All rows; or those with multipliers, and those that are least for the model, of every class."""
        largest = float(problem.farthest_row)
        if not 0.0 < largest < np.inf:
            raise GaveUp("the features vanish or overflow")
        exponent, q = int(np.frexp(largest)[1]), np.ravel(np.maximum(start.alpha, 0.0)).astype(np.float64)
        every = np.arange(problem.n_constraints)
        if problem.n_constraints * problem.columns <= limits.TUNING.block:
            return cls(problem, exponent, every, q)
        model = Model(start.w, np.atleast_1d(start.b)) if start.w.any() else nearest_mean(problem)
        values = problem.differences(model)[0].ravel()
        order = np.lexsort((values, problem.pair_codes))
        place = every - np.searchsorted(problem.pair_codes[order], problem.pair_codes[order])
        least = order[place < growing.TUNING.first]
        return cls(problem, exponent, np.union1d(least, np.flatnonzero(q)), q)

    def _form(self) -> None:
        """The present rows, in an orthonormal basis of their own where that has fewer columns."""
        problem, which = self.problem, self.which
        if not limits.fits(2 * len(which), problem.columns):
            raise GaveUp("the rows take too much memory")
        A, self.basis = np.ldexp(problem.difference_rows(which), -self.exponent), None
        if len(which) < A.shape[1]:
            self.basis, R = qr(A.T, mode="economic", overwrite_a=True, check_finite=False)
            A = np.ascontiguousarray(R.T)
        q = self.q[which]
        total = float(q.sum())
        self.point = NearestPoint(A, self._equations(which), q / total if total > 0.0 else q)

    def _equations(self, which: Indices) -> Matrix:
        return np.column_stack([self.problem.intercept_rows(which), np.ones(len(which))])

    def solve(self) -> bool:
        """As many exchanges as are worth a step; whether the nearest point of the present rows is found."""
        rows, columns = self.point.A.shape
        found = self.point.solve(self.slack, max(1, int(limits.TUNING.step / (4.0 * rows * columns))))
        self.q = np.zeros(self.problem.n_constraints)
        self.q[self.which] = self.point.q
        return found

    def extend(self) -> None:
        """Add the rows that the model violates most, or look more closely where there are none."""
        problem, corral = self.problem, np.flatnonzero(self.q)
        late = np.zeros(0, dtype=np.int64)
        if len(self.which) < problem.n_constraints:
            model = self.model
            with np.errstate(over="ignore", invalid="ignore"):
                values = problem.differences(model)[0].ravel()
            values[self.which] = np.inf
            least = (1.0 - self.slack) * self.point.square
            late = np.flatnonzero(np.ldexp(values, -self.exponent) < least)
            late = late[np.argsort(values[late], kind="stable")[: max(growing.TUNING.fewest, len(corral))]]
        if len(late):
            small = (len(self.which) + len(late)) * problem.columns <= limits.TUNING.block
            self.which = np.union1d(self.which if small else corral, late)
            self._form()
            return
        if self.slack <= STUCK:
            raise GaveUp("no sample is violated by more than rounding")
        self.slack = max(0.01 * self.slack, STUCK)

    @property
    def model(self) -> Model:
        """Of features divided by the power of two, so that nothing underflows: weights and intercepts."""
        problem, w = self.problem, self.point.w
        if problem.is_stored:
            w = (w if self.basis is None else self.basis @ w).reshape(problem.weights_shape)
        else:
            w = np.ldexp(problem.combination(self.q), -self.exponent)
        b = self.point.b[:-1] if problem.intercept else np.zeros(1 if problem.is_binary else problem.k)
        return Model(w, np.ldexp(b, self.exponent))


@dataclass(frozen=True)
class NearestPoints(Solver[FinisherState]):
    """One step is some exchanges of rows."""

    name = "nearest_point"
    summary = "the largest margin for p = 2 to the last digits: exchanges of single rows"
    requires = frozenset[Trait]()
    steps_per_check = 1
    passes_per_step = 1
    any_storage = True
    needs_storage = False

    def obstacle(self, problem: LargestMargin) -> str | None:
        return None if problem.p == 2.0 else "is for p = 2"

    @staticmethod
    def suits(problem: LargestMargin, tol: float) -> bool:
        """Whether as many exchanges as there may be rows in a corral cost next to nothing."""
        rows, columns = problem.n_constraints, problem.columns
        return not problem.any_margin and rows * columns * min(rows, columns) <= limits.TUNING.block

    def begin(self, problem: LargestMargin, start: Start, seed: int) -> FinisherState:
        return FinisherState.of(problem, start)

    def aim(self, state: FinisherState, goal: Goal) -> None:
        state.slack = SATISFIED * min(goal.tol, 0.1)

    def step(self, state: FinisherState) -> FinisherState:
        if state.steps and state.point.done:
            state.extend()
        state.solve()
        state.steps += 1
        return state

    def candidates(self, state: FinisherState) -> Sequence[Candidate]:
        model = state.model
        return [Candidate(model.w, model.b, state.q)]

    def progress(self, state: FinisherState) -> Progress:
        """Every step is worth a certificate."""
        return Progress(np.inf, np.inf, float(state.steps))
