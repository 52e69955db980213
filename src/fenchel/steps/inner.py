"""A solver that another algorithm steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fenchel.problem import Statement
from fenchel.steps.base import Candidate, GaveUp, Overflow, Solver, Start


@dataclass
class Inner:
    """A solver of a problem, where it is, and after which step its candidates are worth a look: ever more rarely."""

    problem: Statement
    solver: Solver[Any]
    state: Any
    steps: int = 0
    due: int = 2
    ended: bool = False  # it gets no further

    @classmethod
    def of(cls, problem: Statement, solver: Solver[Any], start: Start) -> Inner:
        """Before the first step."""
        return cls(problem, solver, solver.begin(problem, start, seed=0))

    @classmethod
    def first(cls, problem: Statement, solvers: Sequence[Solver[Any]], start: Start) -> Inner:
        """With the first solver that can solve the problem."""
        able = next((solver for solver in solvers if solver.hindrance(problem) is None), None)
        if able is None:
            raise GaveUp(f"no solver takes {problem.described}")
        return cls.of(problem, able, start)

    def step(self) -> bool:
        """One step; whether the candidates are worth a look now."""
        try:
            self.state = self.solver.step(self.state)
        except Overflow:
            self.ended = True
            return True
        self.steps += 1
        if self.steps < self.due:
            return False
        self.due += max(2, self.steps // 8)
        return True

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The present ones; none before the first step."""
        return self.solver.candidates(self.state) if self.steps else ()

    @property
    def passes(self) -> int:
        """Made so far."""
        return self.steps * self.solver.passes_per_step
