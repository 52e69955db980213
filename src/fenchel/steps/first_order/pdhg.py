"""The restarted primal-dual hybrid gradient: any loss, any penalty with a prox (or an l1 norm of D w)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Solver, Start
from fenchel.steps.first_order.saddle import Saddle, SaddleState


@dataclass(frozen=True)
class PDHG(Solver[tuple[Saddle, SaddleState]]):
    """Primal-dual steps with restarts and adaptively balanced step sizes; `steps.saddle` has the iteration.

    The same steps raise the dual bound of other people's models: here the primal side is what is wanted.
    """

    name = "pdhg"
    requires = frozenset[Trait]()
    steps_per_check = 30
    passes_per_step = 2
    needs_storage = False

    def begin(self, problem: Problem, start: Start, seed: int) -> tuple[Saddle, SaddleState]:
        saddle = Saddle(problem, seed)
        return saddle, saddle.start(start.w, start.b, start.alpha)

    def step(self, state: tuple[Saddle, SaddleState]) -> tuple[Saddle, SaddleState]:
        saddle, at = state
        return saddle, saddle.step(at)

    def candidates(self, state: tuple[Saddle, SaddleState]) -> Sequence[Candidate]:
        saddle, at = state
        return [Candidate(*saddle.candidate(at), u=at.output.u if saddle.rows else None)]
