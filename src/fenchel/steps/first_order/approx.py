"""APPROX: accelerated proximal coordinate descent (Fercoq and Richtarik 2015), in the compiled core.

Problem (A) of the certificates paper (Duenner, Forte, Takac and Jaggi 2016), f(A x) + sum_g psi_g(x_g), with one random
block g a step. It is the objective itself over blocks of weights (Lasso, elastic net, group Lasso), or minus the dual
over samples (the SVM). The expected suboptimality falls as 1/t^2; a step costs no more than its columns of A, however
many weights there are (`_core/approx.hpp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_flag, require_one_of
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Candidate, Progress, Solver, Start
from fenchel.steps.first_order.approx_state import OverSamples, OverWeights, Sequences

SIDES = ("weights", "samples")


@dataclass(frozen=True)
class APPROX(Solver[Sequences]):
    """An epoch a step: as many blocks as there are, drawn uniformly with replacement.

    Data stored the other way (by rows for steps over weights, by columns for steps over samples) are copied, once.

    Parameters
    ----------
    over : {"weights", "samples"}, optional
        What moves. "weights" needs a smooth loss and L1, ElasticNet, GroupL2 or L2; "samples" needs L2 or ElasticNet,
        and no intercept. By default weights where the loss is smooth and the penalty is not L2, else samples.
    accelerate : bool, default True
        False for plain randomised coordinate descent, Algorithm 1 of the certificates paper.
    restart : bool, optional
        Drop the momentum now and then, after as many epochs as make the gap a quarter or less; on by default where
        there is momentum.
    """

    over: str | None = None
    accelerate: bool = True
    restart: bool | None = None
    name = "approx"
    requires = frozenset({Trait.COMPILED_LOSS})
    steps_per_check = 20
    passes_per_step = 2

    def __post_init__(self) -> None:
        if self.over is not None:
            require_one_of(self.over, SIDES, "approx: over")
        require_flag(self.accelerate, "approx: accelerate")
        if self.restart is not None:
            require_flag(self.restart, "approx: restart")
            if not self.accelerate:
                raise ValueError("approx: with accelerate=False there is no momentum, and nothing to restart")

    def obstacle(self, problem: Problem) -> str | None:
        """Why this problem cannot be solved this way, beyond its traits."""
        loss, penalty = problem.loss, problem.penalty
        if problem.X.constant:
            return "has no penalised intercept; state it with intercept=True, which is not penalised"
        if self._side(problem) == "weights":
            if not np.isfinite(loss.smoothness):
                return f"over weights needs a loss with a Lipschitz derivative, which {loss!r} is not"
            if _blocks(problem) is None:
                return f"over weights needs L1, ElasticNet, GroupL2 or L2, got {penalty!r}"
            return None
        if not isinstance(penalty.kernel(), kernels.Linear | kernels.Threshold):
            return f"over samples needs L2 or ElasticNet, got {penalty!r}"
        return "over samples has no intercept, which would couple all multipliers" if problem.intercept else None

    def begin(self, problem: Problem, start: Start, seed: int) -> Sequences:
        if self._side(problem) == "samples":
            return OverSamples.of(problem, start.alpha, seed, bool(self.accelerate))
        blocks = _blocks(problem)
        assert blocks is not None
        return OverWeights.of(problem, blocks, start.w, start.b, seed, bool(self.accelerate))

    def step(self, state: Sequences) -> Sequences:
        """One epoch."""
        state.epoch(restarts=bool(self.accelerate) and self.restart is not False)
        return state

    def candidates(self, state: Sequences) -> Sequence[Candidate]:
        return [state.candidate()]

    def progress(self, state: Sequences) -> Progress:
        """What the last epoch saw on its way."""
        return Progress(state.primal, state.gap, state.passes)

    def observe(self, state: Sequences, z: Vector, primal: float, gap: float) -> None:
        """After a check: images without the rounding of the steps since the last one."""
        state.refresh()

    def _side(self, problem: Problem) -> str:
        if self.over is not None:
            return self.over
        over_samples = not np.isfinite(problem.loss.smoothness) or (problem.penalty.quadratic and not problem.intercept)
        return "samples" if over_samples else "weights"


def _blocks(problem: Problem) -> Blocks | None:
    """How the penalty acts on blocks of weights; L2 on every weight, without a threshold."""
    d, penalty = problem.shape[1], problem.penalty
    return Blocks.single(d, 0.0, penalty.strong_convexity) if penalty.quadratic else penalty.blocks(d)
