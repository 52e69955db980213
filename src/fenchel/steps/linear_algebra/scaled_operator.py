"""The operator of first-order methods: weights to centred scores, with a step size for each weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Problem


@dataclass(frozen=True)
class ScaledOperator:
    """(w, b') -> (X - 1 mean') w + b', with b' = b + mean.w.

    Centring (only with an intercept) makes the intercept's column orthogonal to the others. `steps` are the relative
    step sizes of the weights: inverse squared column norms if the penalty allows one per coordinate, so that the scale
    of the features does not matter. `norm2` is the squared operator norm in the metric of the steps and of s / W, by
    power iteration, plus 5 %.
    """

    problem: Problem
    mean: Vector
    steps: Vector | float
    intercept_step: float
    norm2: float

    @classmethod
    def of(cls, problem: Problem, seed: int = 0) -> ScaledOperator:
        """The operator of a problem."""
        d = problem.shape[1]
        s, W = problem.weights, problem.total_weight
        mean = problem.X.rmatvec(s) / W if problem.intercept else np.zeros(d)
        with np.errstate(over="ignore"):
            square = problem.X.column_norms(2.0, s) ** 2 / W
        spread = np.maximum(square - mean**2, 1e-12 * square)
        spread = np.where((spread > 0) & np.isfinite(spread), spread, np.inf)
        floor = float(spread.min())
        spread = np.where(np.isinf(spread), floor if np.isfinite(floor) else 1.0, spread)
        steps = problem.penalty.admissible_steps(1.0 / spread)
        start = cls(problem, mean, steps, 0.0, 1.0)
        norm2 = 1.05 * start._largest_eigenvalue(seed)
        return cls(problem, mean, steps, norm2 if problem.intercept else 0.0, norm2)

    def forward(self, w: Vector, shift: float) -> Vector:
        """Centred scores."""
        z = self.problem.X.matvec(w)
        if self.problem.intercept:
            z += shift - float(self.mean @ w)
        return z

    def backward(self, alpha: Vector) -> tuple[Vector, float]:
        """The adjoint in the metric s / W: (v - r mean, r) with r = (1/W) sum s_i alpha_i."""
        a = self.problem.weights * alpha
        return self.weighted_adjoint(a, float(np.sum(a)) if self.problem.intercept else 0.0)

    def weighted_adjoint(self, a: Vector, total: float) -> tuple[Vector, float]:
        """The adjoint of alpha, from a_i = s_i alpha_i and their sum."""
        W = self.problem.total_weight
        v = self.problem.X.rmatvec(a)
        v /= W
        if not self.problem.intercept:
            return v, 0.0
        return v - total / W * self.mean, total / W

    def intercept(self, w: Vector, shift: float) -> float:
        """b from b'."""
        return shift - float(self.mean @ w) if self.problem.intercept else 0.0

    def shift(self, w: Vector, b: float) -> float:
        """b' from b."""
        return b + float(self.mean @ w) if self.problem.intercept else 0.0

    def _largest_eigenvalue(self, seed: int) -> float:
        x = np.random.default_rng(seed).normal(size=self.problem.shape[1])
        root = np.sqrt(self.steps)
        value = 0.0
        for k in range(60):
            length = float(np.linalg.norm(x))
            if length == 0.0 or not np.isfinite(length):
                return 1.0
            image, _ = self.backward(self.forward(root * (x / length), 0.0))
            x = root * image
            last, value = value, float(np.linalg.norm(x))
            if k > 5 and value - last <= 1e-3 * value:
                break
        return value if value > 0.0 else 1.0
