"""Products that an algorithm has computed for some models, and what their rounding errors are bounded by.

A certificate made from them costs no pass over the data. What the numbers are worth is for the certificate to say
(`fenchel.certificate.bounds.measured`): this module only says what was computed, how, and what was left out.

Samples have the weight fractions p_i = s_i / W. Column j has the size S_j = sqrt(sum_i p_i x_ij^2), the targets S_y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Model

#: Covers the rounding of a sum of bounds.
UP = 1.0 + 1e-9
#: Sizes of columns, targets and thresholds whose squares and products neither overflow nor underflow.
SMALLEST, LARGEST = 1e-50, 1e50


def is_moderate(*sizes: float) -> bool:
    """Whether all numbers but zeros are so far from overflow and underflow that rounding is all that errors are."""
    return all(size == 0.0 or SMALLEST < size < LARGEST for size in sizes)


@dataclass(frozen=True, eq=False)
class Sizes:
    """How large columns and targets are, from above: what rounding errors are bounded by. The penalty plays no role."""

    p: Vector
    columns: Vector  # S_j
    target: float  # S_y
    at_zero: float  # the mean loss where all scores are 0

    @classmethod
    def of(cls, problem: Problem, columns: Vector | None = None) -> Sizes:
        """Those of a problem; S_j of its columns may be known already, up to rounding, or from above."""
        p = problem.weights / problem.total_weight
        if columns is None:
            columns = problem.design.column_norms(2.0, problem.weights) / np.sqrt(problem.total_weight)
        target = float(np.sqrt(problem.mean(problem.y**2))) * UP
        at_zero = problem.mean(problem.loss.value(np.zeros(problem.shape[0]), problem.y))
        return cls(p, np.asarray(columns * UP), target, at_zero)

    @cached_property
    def widest(self) -> float:
        """The largest S_j."""
        return float(self.columns.max(initial=0.0))

    @cached_property
    def are_moderate(self) -> bool:
        """Whether bounds that allow for rounding only are valid for these data."""
        columns = self.columns
        moderate = (columns == 0.0) | (columns > SMALLEST) & (columns < LARGEST)
        return bool(np.all(moderate)) and is_moderate(self.target)


@dataclass(frozen=True, eq=False)
class AtSamples:
    """What m models have at the samples: the mean loss (m), and the multipliers a_i = -phi'(z_i) (m x n)."""

    loss: Vector
    multipliers: Vector
    centred: bool = False  # whether z is of columns and targets without their means: squared loss with an intercept


@dataclass(frozen=True, eq=False)
class AtMoments:
    """What m models with the squared loss have by second moments: q = y.y, c = X'y and G = X'X, weighted by p.

    Means are taken off first where there is an intercept.
    """

    square: Vector  # q - 2 c.w + w'G w = sum_i p_i r_i^2 of the residuals r = y - X w
    inner: Vector  # q - c.w = sum_i p_i r_i y_i
    centred: bool
    by_difference: bool = False  # whether G is a difference: of all samples, and of those without weight


AtLoss = AtSamples | AtMoments


@dataclass(frozen=True, eq=False)
class DualVector:
    """What is known of v = X'(p a) of m models, as computed: sums over the samples in floating point, in any order."""

    cut: Vector  # every column that is not listed has |v_j| <= cut; -inf if all are
    sizes: Vector  # |v_j| of the listed columns, model after model
    starts: Indices  # where each model's begin
    complete: bool = False  # whether all columns are listed, in their order

    @classmethod
    def whole(cls, *v: Vector) -> DualVector:
        """Of each model, all of it."""
        m, d = len(v), len(v[0])
        return cls(np.full(m, -np.inf), np.abs(np.concatenate(v)), np.arange(0, m * d + 1, d), True)


@dataclass(frozen=True, eq=False)
class Measurements:
    """m models, each with a penalty of its own, R(w) = sum_g threshold_g |w_g|_2 + ridge/2 |w|_2^2."""

    sizes: Sizes
    threshold: Vector  # of each model's penalty; the smallest one, if `groups` says more
    ridge: Vector
    starts: Indices  # model k has the weights from starts[k] to starts[k + 1]
    columns: Indices | None  # of each weight; None if every model has all of them
    weights: Vector
    b: Vector
    loss: AtLoss
    dual: DualVector
    steps: Indices  # that each model took
    groups: Blocks | None = None  # of the only model, unless every weight is on its own and has the same threshold

    def __len__(self) -> int:
        return len(self.b)

    @classmethod
    def of(
        cls, sizes: Sizes, blocks: Sequence[Blocks], models: Sequence[Model], at: AtLoss, steps: int, *v: Vector
    ) -> Measurements:
        """Of one model, or of several that have all columns and penalties with one threshold each."""
        threshold, ridge = np.array([one.limits[0] for one in blocks]), np.array([one.ridge for one in blocks])
        starts, columns = np.cumsum([0, *(len(model.weights) for model in models)]), models[0].columns
        weights, b = np.concatenate([model.weights for model in models]), np.array([float(one.b) for one in models])
        taken, groups = np.full(len(models), steps), None if blocks[0].uniform else blocks[0]
        dual = DualVector.whole(*v)
        return cls(sizes, threshold, ridge, starts, columns, weights, b, at, dual, taken, groups)

    def model(self, k: int, width: int) -> Model:
        """Model k, of a problem with so many columns."""
        part = slice(int(self.starts[k]), int(self.starts[k + 1]))
        weights = self.weights[part]
        weights.flags.writeable = False
        return Model(weights, float(self.b[k]), None if self.columns is None else self.columns[part], width)

    def sums(self, per_weight: Vector) -> Vector:
        """The sum over the weights of every model."""
        return reduced(np.add, self.starts, per_weight)

    @cached_property
    def penalty(self) -> Vector:
        """R(w)."""
        if self.groups is not None:
            return np.array([self.groups.value(self.model(0, len(self.groups.column)).dense())])
        value = self.threshold * self.sums(np.abs(self.weights))
        return value + 0.5 * self.ridge * self.sums(self.weights**2) if self.ridge.any() else value

    @cached_property
    def spread(self) -> Vector:
        """sum_j |w_j| S_j: |X w|_p is at most this."""
        sizes = np.abs(self.weights)
        if self.columns is None:
            return np.asarray(sizes.reshape(len(self), -1) @ self.sizes.columns)
        return self.sums(sizes * self.sizes.columns[self.columns])

    @cached_property
    def nonzeros(self) -> Vector:
        """How many weights of each model are not zero."""
        return self.sums(self.weights != 0.0)

    @property
    def most_weights(self) -> int:
        """How many the largest model has."""
        return len(self.weights) if len(self) == 1 else int(np.diff(self.starts).max(initial=0))


def reduced(how: np.ufunc, starts: Indices, values: Vector) -> Vector:
    """The sum, or the largest, of values[starts[k]:starts[k + 1]] for every k; 0 of none."""
    if len(starts) == 2:
        return np.array([how.reduce(values, initial=0.0)])
    return np.where(np.diff(starts) > 0, how.reduceat(np.append(values, 0.0), starts[:-1]), 0.0)


def repeated(starts: Indices, per_model: Vector) -> Vector:
    """The number of its model for every entry."""
    return per_model if len(per_model) == 1 else np.repeat(per_model, np.diff(starts))
