"""Several models of few samples with single weights, and what bounds on their P and D have in common.

The largest feasible multiple of multipliers needs the largest |v_j| only: of columns near the threshold it is known,
and those of all others are proven to be below NEAR thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate.bounds.samples import DOWN
from fenchel.data.products import gamma
from fenchel.data.typing import Indices, Vector

#: Columns that are not near have |v_j| below this part of the threshold, their rounding included.
NEAR = 0.96


@dataclass(frozen=True, eq=False)
class Models:
    """m models: weights w_j with R(w) = threshold |w|_1 + ridge/2 |w|_2^2, one number of each a model.

    Model k has the weights from starts[k] to starts[k + 1]; sizes near its threshold stand in the same way.
    """

    threshold: Vector
    ridge: Vector
    starts: Indices
    columns: Indices
    weights: Vector
    largest: Vector  # |v_j| near the threshold; 0 if none are
    near_starts: Indices
    near: Vector  # |v_j| of all that are near, where there is a ridge
    b: Vector
    loss: Vector  # the mean loss
    multipliers: Vector  # m x n
    steps: Indices

    def part(self, k: int) -> slice:
        """Where the weights of a model stand."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def sums(self, per_weight: Vector) -> Vector:
        """The sum over the weights of every model."""
        return _sums(_rows(self.starts), per_weight, len(self.b))

    @cached_property
    def penalty(self) -> Vector:
        """R(w)."""
        return self.threshold * self.sums(np.abs(self.weights)) + 0.5 * self.ridge * self.sums(self.weights**2)

    @property
    def most_weights(self) -> int:
        """How many the largest model has."""
        return int(np.diff(self.starts).max(initial=0))

    def feasible(self, doubt: Vector) -> tuple[Vector, Vector]:
        """theta and R*(theta v) for any v within `doubt`, a number a model, of this one in every entry; theta is NaN
        where too much is in doubt.
        """
        worst = np.maximum(self.largest, NEAR * self.threshold) + doubt
        known = np.isfinite(worst) & (NEAR * self.threshold + doubt <= self.threshold)
        theta, conjugate = np.where(known, self.threshold / worst * DOWN, np.nan), np.zeros_like(worst)
        if not np.any(self.ridge):
            return theta, conjugate
        rows, ridged = _rows(self.near_starts), self.ridge > 0.0
        excess = np.maximum(0.0, self.near + doubt[rows] - self.threshold[rows]) ** 2
        squares = _sums(rows, excess, len(worst)) * (1.0 + gamma(len(excess) + 16))
        theta = np.where(ridged & known, 1.0, theta)
        return theta, np.divide(squares, 2.0 * self.ridge, out=conjugate, where=ridged)


def _rows(starts: Indices) -> NDArray[np.intp]:
    """The model of every entry."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _sums(rows: NDArray[np.intp], values: Vector, count: int) -> Vector:
    return np.asarray(np.bincount(rows, weights=values, minlength=count), dtype=np.float64)
