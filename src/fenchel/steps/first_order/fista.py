"""FISTA with backtracking and adaptive restart (Beck and Teboulle 2009; O'Donoghue and Candes 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_flag
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.first_order.fused_face import FusedFace
from fenchel.steps.first_order.passes import SamplePasses, WeightPasses
from fenchel.steps.linear_algebra.scaled_operator import ScoreMap

#: What rounding may have made of the terms that cancel in the test of the curvature.
ROUNDING = 2.0**-50
#: The part of its weight that momentum keeps when it is dropped: it was wrong in some directions, not in all.
KEPT = 0.5
#: How far the curvature may grow beyond what the loss and the data say it is at most; their norm is an estimate.
DOUBT = 2.0


@dataclass(frozen=True)
class Point:
    """Weights, centred intercept, and their centred scores."""

    w: Vector
    shift: float
    z: Vector


@dataclass(frozen=True)
class FistaState:
    map: ScoreMap
    samples: SamplePasses
    weights: WeightPasses
    now: Point
    before: Point
    momentum: float
    curvature: float  # the current guess of the Lipschitz constant of the gradient
    limit: float  # the most it can be
    face: FusedFace | None


@dataclass(frozen=True)
class FISTA(Solver[FistaState]):
    """Accelerated proximal gradient steps, for differentiable losses and penalties with a prox.

    At the extrapolated point y: x = prox_{T/L}(y - (T/L) grad), T the steps of `ScoreMap`. L grows until
    (grad f(x) - grad f(y)).(x - y) <= L |x - y|^2 (a test without cancellation) and shrinks a little after every step.

    Parameters
    ----------
    restart : bool, default True
        Drop the momentum whenever it points uphill.
    """

    restart: bool = True
    name = "fista"
    requires = frozenset({Trait.DIFFERENTIABLE_LOSS, Trait.PROX_PENALTY})
    steps_per_check = 20
    passes_per_step = 2

    def __post_init__(self) -> None:
        require_flag(self.restart, "fista: restart")

    def begin(self, problem: Problem, start: Start, seed: int) -> FistaState:
        map_ = ScoreMap.of(problem, seed)
        w = problem.penalty.prox(start.w, 0.0) if problem.penalty.separable else start.w
        if not np.isfinite(problem.penalty.value(w)):
            w = problem.penalty.prox(w, float(np.min(map_.steps)))
        shift = map_.shift(w, start.b)
        point = Point(w, shift, map_.forward(w, shift))
        smoothness = problem.loss.smoothness
        curvature = 0.5 * map_.norm2 * (smoothness if np.isfinite(smoothness) else 1.0)
        passes = SamplePasses(problem), WeightPasses.of(problem, map_.steps)
        limit = DOUBT * map_.norm2 * smoothness
        return FistaState(map_, *passes, point, point, 1.0, curvature, limit, FusedFace.of(problem))

    def step(self, state: FistaState) -> FistaState:
        momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.momentum**2))
        x, curvature, turn = self._descend(state, (state.momentum - 1.0) / momentum)
        if self.restart and turn > 0.0:
            return replace(state, now=x, before=x, momentum=max(1.0, KEPT * momentum), curvature=curvature)
        return replace(state, now=x, before=state.now, momentum=momentum, curvature=0.97 * curvature)

    def candidates(self, state: FistaState) -> Sequence[Candidate]:
        w, b = state.now.w, state.map.intercept(state.now.w, state.now.shift)
        exact = None if state.face is None else state.face.minimiser(w)
        return [Candidate(w, b)] if exact is None else [Candidate(w, b), Candidate(*exact)]

    def _descend(self, state: FistaState, factor: float) -> tuple[Point, float, float]:
        """One proximal gradient step from y = now + factor (now - before), the curvature doubled until it is large
        enough; and (y - x).(x - now), which is positive where the momentum points uphill.
        """
        map_, now, before, curvature = state.map, state.now, state.before, state.curvature
        W, shift = map_.problem.total_weight, now.shift + factor * (now.shift - before.shift)
        z, a, total = state.samples.extrapolate(now.z, before.z, factor)
        v, r = map_.pull(a, total)
        for _ in range(100):
            t = 1.0 / curvature
            w, length2, turn, finite = state.weights.shrink(now.w, before.w, factor, v, t)
            if not finite:
                raise Overflow("the penalty's proximal map overflows; rescale the features or lam")
            move = t * map_.intercept_step * r
            if map_.intercept_step:
                length2 += move * move / map_.intercept_step
                turn -= move * (shift + move - now.shift) / map_.intercept_step
            x = Point(w, shift + move, map_.forward(w, shift + move))
            with np.errstate(over="ignore", invalid="ignore"):
                bend, size = state.samples.bend(x.z, z, a)
            if bend <= curvature * length2 * W * (1.0 + 1e-12) + ROUNDING * size or curvature >= state.limit:
                break
            curvature = min(2.0 * curvature, state.limit)
        return x, curvature, turn
