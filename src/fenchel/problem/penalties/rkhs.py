"""The squared norm of a function of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Vector
from fenchel.kernel import Gram
from fenchel.problem.penalties.base import EVALUATION, Penalty
from fenchel.problem.vectors import set_positive

#: Covers the rounding of a few operations.
UP = 1.0 + EVALUATION


@dataclass(frozen=True, eq=False)
class KernelNorm(Penalty):
    """lam/2 |f|_H^2 of f = sum_j beta_j k(x_j, .), written by its coefficients: lam/2 beta'K beta.

    R*(v) = |v|_H^2 / (2 lam) for a function v, also by its coefficients; the link is f = v / lam. It is lam-strongly
    convex in the norm of H.
    """

    lam: float
    gram: Gram = field(repr=False)

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    @property
    def strong_convexity(self) -> float:
        return self.lam

    def value(self, w: Vector) -> float:
        return 0.5 * self.lam * self.gram.quadratic(w)[0]

    def value_upper(self, w: Vector) -> float:
        value, error = self.gram.quadratic(w)
        return 0.5 * self.lam * (value + error) * UP + 5e-324

    def conjugate(self, v: Vector) -> float:
        return self.gram.quadratic(v)[0] / (2.0 * self.lam)

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """|v + e|_H^2 <= v'K v + 2 |e|.|K v| + (sum_i |e_i| |k(x_i, .)|_H)^2, by the triangle inequality."""
        value, rounding = self.gram.quadratic(v)
        product = self.gram.product(v)
        slope = float((error * (np.abs(product.value) + product.error)).sum())
        length = float((error * self.gram.lengths).sum())
        return (value + rounding + 2.0 * slope + length * length) / (2.0 * self.lam) * UP + 5e-324

    def grad_conjugate(self, v: Vector) -> Vector:
        return v / self.lam

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return w / (1.0 + t * self.lam)

    def check(self, d: int) -> None:
        if d != len(self.gram):
            raise ValueError(f"the kernel has {len(self.gram)} samples, not {d}")
