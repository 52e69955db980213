"""Dykstra's algorithm as randomised dual coordinate ascent (Raj and Bach 2020), plain and accelerated.

D(alpha) = -(1/W) sum_i s_i sigma_i(-alpha_i) - R*(v) is maximised over one block alpha_i after another. With
q_i = (s_i / W) |x_i|_{2->*}^2 / mu and z_i = x_i.w + b the step maximises a lower bound on D,

    alpha_i' = argmax  -sigma_i(-alpha_i') - z_i.(alpha_i' - alpha_i) - (q_i / 2) |alpha_i' - alpha_i|^2
             = (Pi_i(t) - t) / q_i,    t = z_i - q_i alpha_i    (Moreau),

so D never falls. It is the step of `sdca` with the indicator of a set as loss (appendix C). The accelerated method is
APPROX (`_core/ascent/approx.hpp`), Algorithm 2 with its misprints corrected. An intercept has a quadratic around a
centre that moves to b: the proximal-point method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Interpolation, Trait
from fenchel.problem.checks import require_flag, require_one_of
from fenchel.steps.base import Candidate, Solver, Start
from fenchel.steps.interpolation.local import TUNING as LOCAL
from fenchel.steps.interpolation.local import LocalIterates, gentler
from fenchel.steps.interpolation.passes import Passes, Rule, smoothness
from fenchel.steps.interpolation.state import AcceleratedIterates, Iterates, PlainIterates, sampler_of

State = Iterates | LocalIterates


@dataclass(frozen=True)
class Dykstra(Solver[State]):
    """One step is a pass: as many coordinate steps as there are samples of positive weight.

    Parameters
    ----------
    sampling : {"permutation", "uniform", "importance", "cyclic"}, default "permutation"
        The order of the samples in a pass. "uniform" is the paper's, which the guarantees are for; "importance" draws
        sample i in proportion to L_i; "cyclic" is Boyle and Dykstra's.
    accelerate : bool, default False
        Algorithm 2. A step costs the entries of its row for L2 and ElasticNet, and d otherwise. Both of its sequences
        are certified.
    restart : bool, default False
        Drop the momentum when D falls over a pass, and now and then; needs `accelerate`. Off: the paper's algorithm.
    steps : {"each", "largest", "local"}, default "each"
        Step sizes 1 / L_i, 1 / max_i L_i for all samples, or longer ones from the curvature at hand (`local.py`): for p
        near 1 many times fewer passes, without their guarantee. Samples that need no step then wait, and a squared
        p-norm is reached from p = 2.
    """

    sampling: str = "permutation"
    accelerate: bool = False
    restart: bool = False
    steps: str = "each"
    name = "dykstra"
    summary = "dual coordinate ascent"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY})
    steps_per_check = 20
    passes_per_step = 1
    needs_storage = False

    def __post_init__(self) -> None:
        require_one_of(self.sampling, ("permutation", "uniform", "importance", "cyclic"), "dykstra: sampling")
        require_one_of(self.steps, ("each", "largest", "local"), "dykstra: steps")
        require_flag(self.accelerate, "dykstra: accelerate")
        require_flag(self.restart, "dykstra: restart")
        if self.restart and not self.accelerate:
            raise ValueError("dykstra: restart needs accelerate=True")
        if self.accelerate and self.sampling in ("importance", "cyclic"):
            raise ValueError(
                f'dykstra: accelerate=True needs sampling="uniform" or "permutation"; got {self.sampling!r}'
            )

    def begin(self, problem: Interpolation, start: Start, seed: int) -> State:
        if self.steps == "local":
            return self._begin_local(problem, start, seed)
        L = smoothness(problem, problem.penalty)
        inverse_rho = intercept_step(problem, L)
        bound = np.full_like(L, L[problem.counts].max(initial=0.0)) if self.steps == "largest" else L
        q = problem.weights * ((bound + inverse_rho) / problem.total_weight)
        passes = Passes.of(problem, Rule.ASCENT, problem.penalty, q, inverse_rho)
        sampler, alpha = sampler_of(problem, self.sampling, seed, L), problem.in_domain(start.alpha)
        if self.accelerate:
            return AcceleratedIterates(passes, sampler, alpha, restarts=bool(self.restart), b=start.b)
        return PlainIterates(passes, sampler, alpha, b=start.b)

    def _begin_local(self, problem: Interpolation, start: Start, seed: int) -> LocalIterates:
        first, *others = gentler(problem.penalty) if not np.any(start.alpha) else [problem.penalty]
        L = smoothness(problem, first)
        inverse_rho = LOCAL.intercept * intercept_step(problem, L)
        q = problem.weights * ((L + inverse_rho) / problem.total_weight)
        passes = Passes.of(problem, Rule.ASCENT, first, q, inverse_rho)
        sampler, alpha = sampler_of(problem, self.sampling, seed, L), problem.in_domain(start.alpha)
        restarts, momentum = bool(self.restart), bool(self.accelerate)
        inner = AcceleratedIterates(passes, sampler, alpha, restarts=restarts, momentum=momentum, b=start.b)
        return LocalIterates(inner, others)

    def step(self, state: State) -> State:
        """One pass."""
        state.step()
        return state

    def candidates(self, state: State) -> Sequence[Candidate]:
        return state.candidates()

    def finished(self, state: State) -> bool:
        """Whether a pass over all samples has changed nothing."""
        return state.idle

    def observe(self, state: State, z: Vector, primal: float, gap: float) -> None:
        """After a check: recompute the images."""
        state.refresh()


def intercept_step(problem: Interpolation, L: Vector) -> float:
    """1 / rho of the proximal steps on an intercept: the mean of L_i, at which scores move with the weights; else 0."""
    return problem.mean(L) if problem.intercept else 0.0
