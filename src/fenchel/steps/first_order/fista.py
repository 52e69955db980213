"""FISTA with backtracking and adaptive restart (Beck and Teboulle 2009; O'Donoghue and Candes 2015).

At the extrapolated point y = x_k + (t_k - 1) / t_{k+1} (x_k - x_{k-1}), with T the step sizes of `ScaledOperator`,

    x_{k+1} = prox_{T/L}(y - (T/L) grad f(y)).

L is doubled until (grad f(x) - grad f(y)).(x - y) <= L |x - y|^2, a test without cancellation, and reduced by 3 % after
each step. The passes over samples and weights are compiled if loss and penalty are, else in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fenchel._core import kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_flag
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.first_order.fused_face import FusedFace
from fenchel.steps.linear_algebra.scaled_operator import ScaledOperator


@dataclass(frozen=True)
class FISTATuning:
    """`python -m benchmarks.tuning steps.first_order.fista momentum_kept 0 1 --rows "^fused 500 x 100"`: 1.10 and 1.02
    of the time.
    """

    momentum_kept: float = 0.5  # factor of t at a restart


TUNING = FISTATuning()


@dataclass(frozen=True)
class SamplePasses:
    """Derivatives of the loss at the scores."""

    problem: Problem

    def extrapolate(self, now: Vector, before: Vector, factor: float) -> tuple[Vector, Vector, float]:
        """z = now + factor (now - before), a_i = -s_i phi'(z_i), and sum_i a_i."""
        problem, loss = self.problem, self.problem.loss.kernel()
        if loss is not None:
            return kernels.extrapolate_samples(loss, now, before, factor, problem.y, problem.weights)
        z = now + factor * (now - before)
        a = np.where(problem.weights > 0, -problem.weights * problem.loss.derivative(z, problem.y), 0.0)
        return z, a, float(a.sum())

    def curvature(self, x: Vector, z: Vector, a: Vector) -> tuple[float, float]:
        """sum_i s_i (phi'(x_i) - phi'(z_i)) (x_i - z_i), and the sum of absolute values of its terms."""
        problem, loss = self.problem, self.problem.loss.kernel()
        if loss is not None:
            return kernels.curvature_of_samples(loss, x, z, a, problem.y, problem.weights)
        there = np.where(problem.weights > 0, -problem.weights * problem.loss.derivative(x, problem.y), 0.0)
        dz = x - z
        return float(np.sum((a - there) * dz)), float(np.sum((np.abs(a) + np.abs(there)) * np.abs(dz)))


@dataclass(frozen=True)
class WeightPasses:
    """Proximal steps of the penalty, in the metric of `steps`."""

    problem: Problem
    steps: Vector | float
    blocks: Blocks | None

    @classmethod
    def of(cls, problem: Problem, steps: Vector | float) -> WeightPasses:
        """Compiled for penalties on single weights."""
        blocks = problem.penalty.blocks(problem.shape[1])
        return cls(problem, steps, blocks if blocks is not None and blocks.singles else None)

    def shrink(
        self, now: Vector, before: Vector, factor: float, v: Vector, t: float
    ) -> tuple[Vector, float, float, bool]:
        """x = prox(y + t steps v) with y = now + factor (now - before); |x - y|^2 and (y - x).(x - now) in the metric
        1 / steps; whether x is finite.
        """
        if self.blocks is not None and isinstance(self.steps, np.ndarray):
            threshold, ridge = self.blocks.threshold, self.blocks.ridge
            return kernels.shrink_weights(now, before, factor, v, self.steps, t, threshold, ridge)
        y = now + factor * (now - before)
        x = self.problem.penalty.prox(y + t * self.steps * v, t * self.steps)
        length2 = float(np.sum((x - y) ** 2 / self.steps))
        turn = float(np.sum((y - x) * (x - now) / self.steps))
        return x, length2, turn, bool(np.all(np.isfinite(x)))


@dataclass(frozen=True)
class FistaPoint:
    """Weights, centred intercept, and their centred scores."""

    w: Vector
    shift: float
    z: Vector


@dataclass(frozen=True)
class FistaState:
    """Two iterates, the momentum t, and the estimate of L with its bound."""

    operator: ScaledOperator
    samples: SamplePasses
    weights: WeightPasses
    now: FistaPoint
    before: FistaPoint
    momentum: float
    curvature: float  # L, the current estimate of the Lipschitz constant of the gradient
    limit: float  # the largest L
    face: FusedFace | None


@dataclass(frozen=True)
class FISTA(Solver[FistaState]):
    """Accelerated proximal gradient steps, for differentiable losses and penalties with a prox.

    Parameters
    ----------
    restart : bool, default True
        Drop the momentum whenever it points uphill.
    """

    restart: bool = True
    name = "fista"
    any_storage = True
    summary = "any differentiable loss: accelerated proximal gradient steps"
    needs_storage = False
    requires = frozenset({Trait.DIFFERENTIABLE_LOSS, Trait.PROX_PENALTY})
    steps_per_check = 20
    passes_per_step = 2

    def __post_init__(self) -> None:
        require_flag(self.restart, "fista: restart")

    def begin(self, problem: Problem, start: Start, seed: int) -> FistaState:
        operator = ScaledOperator.of(problem, seed)
        w = problem.penalty.prox(start.w, 0.0) if problem.penalty.separable else start.w
        if not np.isfinite(problem.penalty.value(w)):
            w = problem.penalty.prox(w, float(np.min(operator.steps)))
        shift = operator.shift(w, start.b)
        point = FistaPoint(w, shift, operator.forward(w, shift))
        smoothness = problem.loss.smoothness
        curvature = 0.5 * operator.norm2 * (smoothness if np.isfinite(smoothness) else 1.0)
        passes = SamplePasses(problem), WeightPasses.of(problem, operator.steps)
        limit = 2.0 * operator.norm2 * smoothness  # the norm is an estimate
        return FistaState(operator, *passes, point, point, 1.0, curvature, limit, FusedFace.of(problem))

    def step(self, state: FistaState) -> FistaState:
        momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.momentum**2))
        x, curvature, turn = self._descend(state, (state.momentum - 1.0) / momentum)
        if self.restart and turn > 0.0:
            return replace(
                state, now=x, before=x, momentum=max(1.0, TUNING.momentum_kept * momentum), curvature=curvature
            )
        return replace(state, now=x, before=state.now, momentum=momentum, curvature=0.97 * curvature)

    def candidates(self, state: FistaState) -> Sequence[Candidate]:
        w, b = state.now.w, state.operator.intercept(state.now.w, state.now.shift)
        own = Candidate(w, b)
        return [own] if state.face is None else state.face.candidates(own)

    def _descend(self, state: FistaState, factor: float) -> tuple[FistaPoint, float, float]:
        """One proximal gradient step from y = now + factor (now - before), with backtracking; L; and (y - x).(x - now),
        which is positive if the momentum points uphill.
        """
        operator, now, before, curvature = state.operator, state.now, state.before, state.curvature
        W, shift = operator.problem.total_weight, now.shift + factor * (now.shift - before.shift)
        z, a, total = state.samples.extrapolate(now.z, before.z, factor)
        v, r = operator.weighted_adjoint(a, total)
        for _ in range(100):
            t = 1.0 / curvature
            w, length2, turn, finite = state.weights.shrink(now.w, before.w, factor, v, t)
            if not finite:
                raise Overflow("the penalty's proximal map overflows; rescale the features or lam")
            move = t * operator.intercept_step * r
            if operator.intercept_step:
                length2 += move * move / operator.intercept_step
                turn -= move * (shift + move - now.shift) / operator.intercept_step
            x = FistaPoint(w, shift + move, operator.forward(w, shift + move))
            with np.errstate(over="ignore", invalid="ignore"):
                change, size = state.samples.curvature(x.z, z, a)
            if (
                change <= curvature * length2 * W * (1.0 + 1e-12) + 8.0 * UNIT_ROUNDOFF * size
                or curvature >= state.limit
            ):
                break
            curvature = min(2.0 * curvature, state.limit)
        return x, curvature, turn
