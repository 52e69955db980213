"""The passes of a proximal gradient step over samples and weights: compiled where they can be, else in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks


@dataclass(frozen=True)
class SamplePasses:
    """Derivatives of the loss along the way."""

    problem: Problem

    def extrapolate(self, now: Vector, before: Vector, factor: float) -> tuple[Vector, Vector, float]:
        """z = now + factor (now - before), a_i = -s_i phi'(z_i), and sum_i a_i."""
        problem, loss = self.problem, self.problem.loss.kernel()
        if loss is not None:
            return kernels.extrapolate_samples(loss, now, before, factor, problem.y, problem.weights)
        z = now + factor * (now - before)
        a = np.where(problem.weights > 0, -problem.weights * problem.loss.derivative(z, problem.y), 0.0)
        return z, a, float(a.sum())

    def bend(self, x: Vector, z: Vector, a: Vector) -> tuple[float, float]:
        """sum_i s_i (phi'(x_i) - phi'(z_i)) (x_i - z_i), and the size of the terms that cancel in it."""
        problem, loss = self.problem, self.problem.loss.kernel()
        if loss is not None:
            return kernels.bend_of_samples(loss, x, z, a, problem.y, problem.weights)
        there = np.where(problem.weights > 0, -problem.weights * problem.loss.derivative(x, problem.y), 0.0)
        way = x - z
        return float(np.sum((a - there) * way)), float(np.sum((np.abs(a) + np.abs(there)) * np.abs(way)))


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
        1 / steps; and whether x is finite.
        """
        if self.blocks is not None and isinstance(self.steps, np.ndarray):
            threshold, ridge = self.blocks.threshold, self.blocks.ridge
            return kernels.shrink_weights(now, before, factor, v, self.steps, t, threshold, ridge)
        y = now + factor * (now - before)
        x = self.problem.penalty.prox(y + t * self.steps * v, t * self.steps)
        length2 = float(np.sum((x - y) ** 2 / self.steps))
        turn = float(np.sum((y - x) * (x - now) / self.steps))
        return x, length2, turn, bool(np.all(np.isfinite(x)))
