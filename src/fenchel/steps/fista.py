"""FISTA with backtracking and adaptive restart (Beck and Teboulle 2009; O'Donoghue and Candes 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_flag
from fenchel.steps.base import Candidate, Overflow, Start
from fenchel.steps.score_map import ScoreMap


@dataclass(frozen=True)
class Point:
    """Weights, centred intercept, and their centred scores."""

    w: Vector
    shift: float
    z: Vector

    def towards(self, other: Point, factor: float) -> Point:
        """self + factor (self - other)."""
        return Point(
            self.w + factor * (self.w - other.w),
            self.shift + factor * (self.shift - other.shift),
            self.z + factor * (self.z - other.z),
        )


@dataclass(frozen=True)
class FistaState:
    map: ScoreMap
    now: Point
    before: Point
    momentum: float
    curvature: float  # the current guess of the Lipschitz constant of the gradient


@dataclass(frozen=True)
class FISTA:
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
        curvature = map_.norm2 * (smoothness if np.isfinite(smoothness) else 1.0)
        return FistaState(map_, point, point, 1.0, 0.5 * curvature)

    def step(self, state: FistaState) -> FistaState:
        map_, problem = state.map, state.map.problem
        momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.momentum**2))
        y = state.now.towards(state.before, (state.momentum - 1.0) / momentum)
        alpha = -problem.loss.derivative(y.z, problem.y)
        v, r = map_.backward(alpha)
        x, curvature = self._descend(map_, y, alpha, v, r, state.curvature)
        if self.restart and self._uphill(map_, y, x, state.now):
            return FistaState(map_, x, x, 1.0, curvature)
        return FistaState(map_, x, state.now, momentum, 0.97 * curvature)

    def candidates(self, state: FistaState) -> Sequence[Candidate]:
        return [Candidate(state.now.w, state.map.intercept(state.now.w, state.now.shift))]

    def _descend(
        self, map_: ScoreMap, y: Point, alpha: Vector, v: Vector, r: float, curvature: float
    ) -> tuple[Point, float]:
        """One proximal gradient step from y, the curvature doubled until it is large enough."""
        problem = map_.problem
        for _ in range(100):
            t = 1.0 / curvature
            w = problem.penalty.prox(y.w + t * map_.steps * v, t * map_.steps)
            shift = y.shift + t * map_.intercept_step * r
            if not np.all(np.isfinite(w)):
                raise Overflow("the penalty's proximal map overflows; rescale the features or lam")
            x = Point(w, shift, map_.forward(w, shift))
            with np.errstate(over="ignore", invalid="ignore"):
                bend = -problem.mean((-alpha - problem.loss.derivative(x.z, problem.y)) * (x.z - y.z))
            if bend <= curvature * self._length2(map_, x, y) * (1.0 + 1e-12):
                return x, curvature
            curvature *= 2.0
        return x, curvature

    @staticmethod
    def _length2(map_: ScoreMap, a: Point, b: Point) -> float:
        length = float(np.sum((a.w - b.w) ** 2 / map_.steps))
        return length + ((a.shift - b.shift) ** 2 / map_.intercept_step if map_.intercept_step else 0.0)

    @staticmethod
    def _uphill(map_: ScoreMap, y: Point, x: Point, now: Point) -> bool:
        inner = float(np.sum((y.w - x.w) * (x.w - now.w) / map_.steps))
        if map_.intercept_step:
            inner += (y.shift - x.shift) * (x.shift - now.shift) / map_.intercept_step
        return inner > 0.0
