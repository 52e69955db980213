"""The largest margin of functions of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from fenchel.data.typing import Indices, Vector
from fenchel.kernel import Features, Gram
from fenchel.problem.margin.ball import DOWN, UP, Ball
from fenchel.problem.margin.largest import LargestMargin
from fenchel.problem.penalties.base import FEASIBILITY


@dataclass(frozen=True)
class FunctionBall(Ball):
    """The indicator of |f|_H <= 1, f = sum_j beta_j k(x_j, .) being written by beta; R*(v) = |v|_H."""

    gram: Gram = field(repr=False)
    lam: float = field(default=1.0, init=False)

    def value(self, w: Vector) -> float:
        return 0.0 if sqrt(self.gram.quadratic(w)[0]) <= 1.0 + FEASIBILITY else float("inf")

    def conjugate(self, v: Vector) -> float:
        return sqrt(self.gram.quadratic(v)[0])

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """|v + e|_H <= |v|_H + sum_i |e_i| |k(x_i, .)|_H."""
        return (self.lengths(v)[1] + float((error * self.gram.lengths).sum())) * UP

    def lengths(self, w: Vector) -> tuple[float, float]:
        value, error = self.gram.quadratic(w)
        return sqrt(max(value - error, 0.0)) * DOWN, sqrt(value + error) * UP

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return w / max(1.0, self.conjugate(w))


@dataclass(frozen=True, eq=False)
class KernelMargin(LargestMargin):
    """The same for two classes and functions f = sum_j beta_j k(x_j, .) of a kernel, in place of weights.

    The margin of (f, b) is min_i y_i (f(x_i) + b) / |f|_H, and no function exceeds |sum_i q_i y_i k(x_i, .)|_H.
    """

    X: Features

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", FunctionBall(self.X.gram))

    @classmethod
    def of(cls, gram: Gram, codes: Indices, intercept: bool) -> KernelMargin:
        """With the samples of a Gram matrix."""
        return cls(Features(gram), codes, 2, intercept)

    @property
    def kind(self) -> str:
        return "function of the kernel"

    @property
    def assumption(self) -> str:
        return self.X.gram.assumption

    @cached_property
    def contradictory_pair(self) -> Indices | None:
        """Equal samples: |k(x, .) - k(x', .)|^2 = k(x, x) - 2 k(x, x') + k(x', x') is 0 for x = x'.

        Of kernels by name; what is proven of others holds up to the errors of their values.
        """
        gram = self.X.gram
        return gram.samples.equal_pair(self.codes) if gram.definite.is_exact and gram.is_verified else None

    @property
    def largest_score(self) -> float:
        """max_i sum_j |k(x_i, x_j)|, from above."""
        lengths = self.X.gram.lengths
        return float(lengths.max(initial=0.0) * lengths.sum()) * UP

    @property
    def described(self) -> str:
        return f"the largest margin of functions of {self.X.gram.kernel!r}"

    def combination(self, q: Vector) -> Vector:
        return np.asarray(self.y * q)
