"""Stochastic mirror descent on the squared distances to the sets, and perceptrons: baselines for `dykstra`.

For F(w) = (1/2n) sum_i dist(x_i.w + b, Y_i)^2 and the mirror map R (Eq. (10) of Raj and Bach 2020, its sign corrected),

    v' = v + gamma x_i (Pi_i(z_i) - z_i),    w = grad R*(v),    gamma = mu / max_i |x_i|_{2->*}^2,

which is a dual step as if the sample's own multiplier were zero: for points it is the step of `dykstra` with
L_i = max_i L_i (Lemma 2). Sample weights only choose which constraints there are. The multipliers that add up to v
prove a lower bound on R. An intercept is the weight of a constant feature 1 with the mirror map mu/2 b^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Interpolation, Trait
from fenchel.problem.checks import require_one_of
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.penalties.bregman import Bregman
from fenchel.problem.vectors import set_positive
from fenchel.steps.base import Candidate, Solver, Start
from fenchel.steps.interpolation.passes import Passes, Rule, is_quadratic, smoothness
from fenchel.steps.interpolation.state import PlainIterates, sampler_of


class _Descent(Solver[PlainIterates]):
    """The base of `Mirror`, `EuclideanDescent` and `Perceptron`; a step is one pass over the samples."""

    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY})
    steps_per_check = 20
    passes_per_step = 1
    needs_storage = False
    sampling: str
    output: str

    def __post_init__(self) -> None:
        require_one_of(self.sampling, ("uniform", "permutation", "cyclic"), f"{self.name}: sampling")
        require_one_of(self.output, ("last", "average"), f"{self.name}: output")

    def _begin(self, passes: Passes, start: Start, seed: int) -> PlainIterates:
        problem = passes.problem
        sampler, alpha = sampler_of(problem, self.sampling, seed, passes.q), problem.in_domain(start.alpha)
        averages = self.output == "average"
        return PlainIterates(passes, sampler, alpha, averages=averages, moves_centre=False, b=start.b)

    def step(self, state: PlainIterates) -> PlainIterates:
        """One pass."""
        state.step()
        return state

    def candidates(self, state: PlainIterates) -> Sequence[Candidate]:
        return state.candidates()

    def finished(self, state: PlainIterates) -> bool:
        """Whether a pass over all samples has changed nothing."""
        return state.idle

    def observe(self, state: PlainIterates, z: Vector, primal: float, gap: float) -> None:
        """After a check: recompute the images."""
        state.refresh()


@dataclass(frozen=True)
class Mirror(_Descent):
    """Stochastic mirror descent; one step is a pass over the samples.

    Parameters
    ----------
    sampling : {"uniform", "permutation", "cyclic"}, default "uniform"
        The order of the samples in a pass.
    output : {"last", "average"}, default "last"
        What is certified beside the last iterate: the mean of all iterates (Theorem 1), at O(d) per step.
    step_size : float, optional
        gamma; by default mu / max_i |x_i|_{2->*}^2.
    """

    sampling: str = "uniform"
    output: str = "last"
    step_size: float | None = None
    name = "mirror"
    summary = "baseline: stochastic mirror descent"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_size is not None:
            set_positive(self, "step_size")

    def _geometry(self, problem: Interpolation) -> Penalty:
        return problem.penalty

    def begin(self, problem: Interpolation, start: Start, seed: int) -> PlainIterates:
        geometry = self._geometry(problem)
        inverse_rho = 1.0 / geometry.strong_convexity if problem.intercept else 0.0
        largest = float(smoothness(problem, geometry)[problem.counts].max(initial=0.0)) + inverse_rho
        inverse_step = largest if self.step_size is None else 1.0 / self.step_size
        q = problem.weights * (inverse_step / problem.total_weight)
        return self._begin(Passes.of(problem, Rule.MIRROR, geometry, q, inverse_rho), start, seed)


@dataclass(frozen=True)
class EuclideanDescent(Mirror):
    """Stochastic gradient descent (Vaswani, Bach and Schmidt 2018): `Mirror` with 1/2 |w|^2, whatever the penalty.

    It begins at zero, or at the centre. For L2 its multipliers are those of the problem, up to the factor lam; for
    other penalties it has none.
    """

    name = "sgd"
    summary = "baseline: stochastic gradient descent"

    @property
    def ignores_start(self) -> bool:
        return True

    def _geometry(self, problem: Interpolation) -> Penalty:
        euclidean = L2(1.0)
        return Bregman(euclidean, problem.penalty.centre) if isinstance(problem.penalty, Bregman) else euclidean

    def begin(self, problem: Interpolation, start: Start, seed: int) -> PlainIterates:
        return super().begin(problem, replace(start, alpha=np.zeros(problem.shapes[2])), seed)

    def candidates(self, state: PlainIterates) -> Sequence[Candidate]:
        last, *others = state.candidates()
        penalty = state.passes.problem.penalty
        alpha = penalty.strong_convexity * state.alpha if is_quadratic(penalty) else None
        return [replace(last, alpha=alpha), *others]


@dataclass(frozen=True)
class Perceptron(_Descent):
    """The perceptron (Rosenblatt 1958) and its p-norm form (Grove, Littlestone and Schuurmans 2001), for half-lines.

    With sign_i = +1 for [bound, inf) and -1 for (-inf, bound], on a mistake, sign_i z_i <= 0::

        v' = v + rate sign_i x_i,    w = grad R*(v):    w = v / lam for L2, the p-norm perceptron for LpSquared.

    Parameters
    ----------
    sampling : {"uniform", "permutation", "cyclic"}, default "uniform"
        The order of the samples in a pass.
    output : {"last", "average"}, default "last"
        What is certified beside the last iterate: the mean of all iterates, at O(d) per step.
    rate : float, default 1
        From a start at zero it scales w and makes no difference to the mistakes.
    """

    sampling: str = "uniform"
    output: str = "last"
    rate: float = 1.0
    name = "perceptron"
    summary = "baseline: corrections on mistakes"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.INTERVALS})

    def __post_init__(self) -> None:
        super().__post_init__()
        set_positive(self, "rate")

    def obstacle(self, problem: Interpolation) -> str | None:
        if not problem.is_scalar:
            return f"needs one score per sample, not {problem.outputs}"
        assert problem.constraints.ends is not None
        low, high = (np.isfinite(end.ravel()) for end in problem.constraints.ends)
        if not np.all((low != high)[problem.counts]):
            return "needs half-lines, such as HalfLine(1.0, y), for every sample"
        return None

    def begin(self, problem: Interpolation, start: Start, seed: int) -> PlainIterates:
        inverse_rho = 1.0 / problem.penalty.strong_convexity if problem.intercept else 0.0
        q = problem.weights / (self.rate * problem.total_weight)
        return self._begin(Passes.of(problem, Rule.PERCEPTRON, problem.penalty, q, inverse_rho), start, seed)
