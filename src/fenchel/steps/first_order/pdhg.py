"""The restarted primal-dual hybrid gradient: any loss, any penalty with a prox (or an l1 norm of D w)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Solver, Start
from fenchel.steps.first_order.fused_face import FusedFace
from fenchel.steps.first_order.saddle import Saddle, SaddleState


@dataclass(frozen=True)
class PDHGState:
    """The iteration, where it is, and the faces of a fused Lasso."""

    saddle: Saddle
    at: SaddleState
    face: FusedFace | None


@dataclass(frozen=True)
class PDHG(Solver[PDHGState]):
    """Primal-dual steps with restarts and adaptively balanced step sizes; `steps.saddle` has the iteration.

    The same steps raise the dual bound of other people's models: here the primal side is what is wanted.
    """

    name = "pdhg"
    requires = frozenset[Trait]()
    steps_per_check = 30
    passes_per_step = 2

    def begin(self, problem: Problem, start: Start, seed: int) -> PDHGState:
        saddle = Saddle(problem, seed)
        return PDHGState(saddle, saddle.start(start.w, start.b, start.alpha), FusedFace.of(problem))

    def step(self, state: PDHGState) -> PDHGState:
        return replace(state, at=state.saddle.step(state.at))

    def candidates(self, state: PDHGState) -> Sequence[Candidate]:
        saddle, output = state.saddle, state.at.output
        u = output.u if saddle.rows else None
        own = Candidate(*saddle.candidate(state.at), u=u)
        exact = None if state.face is None else state.face.minimiser(output.w, u)
        return [own] if exact is None else [own, Candidate(*exact, u=u)]
