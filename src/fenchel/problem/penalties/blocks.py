"""Penalties on disjoint groups of weights, in the form that coordinate descent uses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Indices, Vector


@dataclass(frozen=True, eq=False)
class Blocks:
    """R(w) = sum_g threshold_g |w_g|_2 + ridge/2 |w|_2^2; group g has the columns column[first[g]:first[g + 1]]."""

    column: Indices
    first: Indices
    threshold: Vector
    ridge: float = 0.0

    @classmethod
    def single(cls, d: int, threshold: float, ridge: float = 0.0) -> Blocks:
        """Groups of one weight each."""
        return cls(np.arange(d), np.arange(d + 1), np.zeros(d) + threshold, ridge)  # np.full takes longer

    @classmethod
    def of(cls, label: NDArray[np.intp], threshold: Vector) -> Blocks:
        """Groups from the label 0, 1, ... of each weight."""
        sizes = np.bincount(label, minlength=len(threshold))
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(np.argsort(label, kind="stable").astype(np.int64), first, threshold)

    @property
    def count(self) -> int:
        return len(self.first) - 1

    @cached_property
    def limits(self) -> tuple[float, float, float]:
        """Smallest threshold, largest threshold, ridge."""
        return float(self.threshold.min()), float(self.threshold.max()), self.ridge

    @cached_property
    def sizes(self) -> Indices:
        return np.diff(self.first)

    @cached_property
    def singles(self) -> bool:
        """Whether every group has one weight."""
        return self.count == len(self.column)

    @property
    def uniform(self) -> bool:
        """Whether every group has one weight, and all have the same threshold."""
        return self.singles and self.limits[0] == self.limits[1]

    @cached_property
    def group(self) -> Indices:
        """The group of each weight."""
        label = np.empty(len(self.column), dtype=np.int64)
        label[self.column] = np.repeat(np.arange(self.count), self.sizes)
        return label

    def only(self, groups: Indices) -> tuple[Indices, Blocks]:
        """The columns of some groups, one group after the other, and the penalty restricted to them."""
        sizes = self.sizes[groups]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        place = np.arange(first[-1]) - np.repeat(first[:-1], sizes) + np.repeat(self.first[groups], sizes)
        return self.column[place], Blocks(np.arange(first[-1]), first, self.threshold[groups], self.ridge)

    def sums(self, per_weight: Vector) -> Vector:
        """The sum of per_weight over each group."""
        values = per_weight[self.column]
        return values if self.singles else np.add.reduceat(values, self.first[:-1])

    def norms(self, w: Vector) -> Vector:
        """|w_g|_2 of each group."""
        return np.abs(w[self.column]) if self.singles else np.sqrt(self.sums(w * w))

    def value(self, w: Vector) -> float:
        """R(w)."""
        value = float(self.threshold @ self.norms(w))
        return value + 0.5 * self.ridge * float(w @ w) if self.ridge else value

    def excess(self, v: Vector) -> Vector:
        """(|v_g|_2 - threshold_g)+ of each group: R*(v) = |excess|^2 / (2 ridge)."""
        return np.maximum(0.0, self.norms(v) - self.threshold)
