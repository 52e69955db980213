"""The largest margin of functions of a kernel, or of one function for each of several classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np
from scipy.linalg import eigh

from fenchel.data.class_differences import ClassDifferences
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.kernel import Features, Gram
from fenchel.problem.margin.ball import DOWN, UP, Ball
from fenchel.problem.margin.largest import LargestMargin
from fenchel.problem.penalties.base import FEASIBILITY


@dataclass(frozen=True)
class FunctionBall(Ball):
    """The indicator of |f|_H <= 1, f = sum_j beta_j k(x_j, .) being written by beta; R*(v) = |v|_H.

    Of several functions, one after the other, |f|_H^2 is the sum of their squares.
    """

    gram: Gram = field(repr=False)
    lam: float = field(default=1.0, init=False)

    def value(self, w: Vector) -> float:
        return 0.0 if self.conjugate(w) <= 1.0 + FEASIBILITY else float("inf")

    def conjugate(self, v: Vector) -> float:
        return sqrt(self._square(v)[0])

    def _square(self, v: Vector) -> tuple[float, float]:
        """|f|_H^2, and a bound on its error."""
        parts = [self.gram.quadratic(each) for each in v.reshape(-1, len(self.gram))]
        return sum(value for value, _ in parts), sum(error for _, error in parts) * UP

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """|v + e|_H <= |v|_H + sum_i |e_i| |k(x_i, .)|_H."""
        sizes = np.reshape(error, (-1, len(self.gram))) * self.gram.lengths
        return (self.lengths(v)[1] + float(sizes.sum())) * UP

    def lengths(self, w: Vector) -> tuple[float, float]:
        value, error = self._square(w)
        return sqrt(max(value - error, 0.0)) * DOWN, sqrt(value + error) * UP

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return w / max(1.0, self.conjugate(w))


@dataclass(frozen=True, eq=False)
class KernelMargin(LargestMargin):
    """The same for functions f = sum_j beta_j k(x_j, .) of a kernel, in place of weights.

    The margin of (f, b) is min_i y_i (f(x_i) + b) / |f|_H, and no function exceeds |sum_i q_i y_i k(x_i, .)|_H. Several
    classes have a function each: the rows of differences are k(x_i, .) (e_c - e_j)', as of linear classifiers.
    """

    X: Features

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", FunctionBall(self.X.gram))

    @classmethod
    def of(cls, gram: Gram, codes: Indices, intercept: bool, k: int = 2) -> KernelMargin:
        """With the samples of a Gram matrix."""
        return cls(Features(gram), codes, k, intercept)

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
        exact = self.is_binary and gram.definite.is_exact and gram.is_verified
        return gram.samples.equal_pair(self.codes) if exact else None

    @property
    def largest_score(self) -> float:
        """max_i sum_j |k(x_i, x_j)|, from above."""
        lengths = self.X.gram.lengths
        return float(lengths.max(initial=0.0) * lengths.sum()) * UP

    @property
    def described(self) -> str:
        return f"the largest margin of functions of {self.X.gram.kernel!r}"

    def combination(self, q: Vector) -> Vector:
        return np.asarray(self.y * q) if self.is_binary else self.pairs.rmatvec(q).reshape(self.weights_shape)

    @cached_property
    def pairs(self) -> ClassDifferences:
        return ClassDifferences(self.X, self.codes, self.k)

    @property
    def farthest_row(self) -> float:
        return float(self.X.gram.lengths.max(initial=0.0))

    def difference_rows(self, which: Indices) -> Matrix:
        """In an orthonormal basis of the functions k(x, .) of their samples, as far as rounding lets these differ."""
        samples, place = np.unique(which // (self.k - 1), return_inverse=True)
        values, V = eigh(self.X.gram.values(samples, samples), check_finite=False)
        kept = values > len(samples) * UNIT_ROUNDOFF * values[-1]
        functions = (V[:, kept] * np.sqrt(values[kept]))[place]
        if self.is_binary:
            return np.asarray(self.y[which, None] * functions)
        rows, row = np.zeros((len(which), self.k, functions.shape[1])), np.arange(len(which))
        rows[row, self.codes[which // (self.k - 1)]] = functions
        rows[row, self.pairs.others.ravel()[which]] = -functions
        return rows.reshape(len(which), -1)
