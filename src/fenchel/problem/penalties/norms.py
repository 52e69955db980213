"""Norm penalties: R* is an indicator, so dual points must be made feasible first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fenchel.data.design import Vector, gamma
from fenchel.problem.penalties.base import EVALUATION, NormPenalty, Penalty, Subgradients
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.penalties.strong import signs_and_intervals
from fenchel.problem.vectors import Mask, set_positive, soft


@dataclass(frozen=True)
class L1(NormPenalty):
    """lam |w|_1: the Lasso. The dual norm is the largest absolute entry."""

    lam: float
    separable = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    def blocks(self, d: int) -> Blocks:
        return Blocks.single(d, self.lam)

    def value(self, w: Vector) -> float:
        return self.lam * float(np.abs(w).sum())

    def dual_norm(self, v: Vector) -> float:
        return float(np.abs(v).max())

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return soft(w, t * self.lam)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return signs_and_intervals(w, tol, self.lam, np.zeros_like(w))

    def restricted(self, keep: Mask) -> Penalty:
        """A sum over coordinates: zeros add nothing."""
        return self

    def zero_groups(self, v: Vector, reach: Vector) -> Mask:
        """|v_j| < lam forces w_j = 0."""
        return np.abs(v) + reach < self.lam


@dataclass(frozen=True, eq=False)
class GroupL2(NormPenalty):
    """lam sum_g weights_g |w_g|_2: the group Lasso. The dual norm is max_g |v_g|_2 / weights_g.

    Parameters
    ----------
    lam : float
    groups : array of d labels, or list of index arrays
        Either the group of each coordinate (any integers), or the coordinates of each group; groups are disjoint and
        cover all.
    weights : array of one positive number per group, optional
        In the sorted order of the labels, or the order of the list; ones by default.
    """

    lam: float
    groups: Any
    weights: Any = None

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        bad = np.flatnonzero(~(np.isfinite(self._weight) & (self._weight > 0)))
        if bad.size:
            raise ValueError(
                f"GroupL2: weights has {self._weight[bad[0]]} at position {bad[0]}; weights must be positive and finite"
            )

    @cached_property
    def _label(self) -> NDArray[np.intp]:
        """The group of each coordinate, numbered from 0."""
        return _labels(self.groups)

    @cached_property
    def _weight(self) -> Vector:
        count = int(self._label.max()) + 1
        weight = np.ones(count) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weight.shape != (count,):
            raise ValueError(f"GroupL2: weights has shape {weight.shape}, but there are {count} groups")
        return weight

    @property
    def evaluation(self) -> float:
        """The sums over a group run one term after the other."""
        return EVALUATION + 2.0 * gamma(int(np.bincount(self._label).max()))

    def check(self, d: int) -> None:
        if len(self._label) != d:
            raise ValueError(f"GroupL2: groups names {len(self._label)} coordinates, but there are {d} weights")

    def blocks(self, d: int) -> Blocks:
        return Blocks.of(self._label, self.lam * self._weight)

    def norms(self, w: Vector) -> Vector:
        """|w_g|_2 of every group, safe against overflow."""
        largest = np.zeros(len(self._weight))
        np.maximum.at(largest, self._label, np.abs(w))
        scale = np.where(largest > 0, largest, 1.0)
        ratio = w / scale[self._label]
        return largest * np.sqrt(np.bincount(self._label, ratio * ratio, len(scale)))

    def value(self, w: Vector) -> float:
        return self.lam * float((self._weight * self.norms(w)).sum())

    def dual_norm(self, v: Vector) -> float:
        return float((self.norms(v) / self._weight).max())

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """Each group shrinks towards zero: w_g max(0, 1 - t lam weights_g / |w_g|)."""
        step = np.broadcast_to(np.asarray(t, dtype=np.float64), w.shape)
        per_group = np.zeros(len(self._weight))
        per_group[self._label] = step
        norm = self.norms(w)
        keep = np.where(
            norm > 0,
            np.maximum(0.0, 1.0 - self.lam * self._weight * per_group / np.where(norm > 0, norm, 1.0)),
            0.0,
        )
        return w * keep[self._label]

    def admissible_steps(self, t: Vector) -> Vector:
        """One step per group: its smallest."""
        smallest = np.full(len(self._weight), np.inf)
        np.minimum.at(smallest, self._label, t)
        return smallest[self._label]

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam weights_g w_g / |w_g|; at zero a ball, described by the box around it (what comes out is checked in
        the dual norm).
        """
        norm = self.norms(w)
        radius = self.lam * self._weight
        alive = norm > tol
        factor = np.where(alive, radius / np.where(alive, norm, 1.0), 0.0)
        zero = np.flatnonzero(~alive[self._label])
        directions = sp.csc_array((np.ones(len(zero)), (zero, np.arange(len(zero)))), shape=(len(w), len(zero)))
        ends = radius[self._label[zero]]
        return Subgradients(factor[self._label] * w, directions, -ends, ends)

    def restricted(self, keep: Mask) -> Penalty:
        """The groups with a kept weight; a group of which some weights are zero has the norm of the others."""
        labels = self._label[keep]
        return GroupL2(self.lam, labels, self._weight[np.unique(labels)])

    def zero_groups(self, v: Vector, reach: Vector) -> Mask:
        """|v_g| < lam weights_g forces w_g = 0; |v'_g| <= |v_g| + |reach_g|."""
        return np.asarray((self.norms(v) + self.norms(reach) < self.lam * self._weight)[self._label])


def _labels(groups: Any) -> NDArray[np.intp]:
    """The group of each coordinate, numbered from 0."""
    if isinstance(groups, list | tuple) and len(groups) and np.ndim(groups[0]) == 1:
        members = [np.asarray(g, dtype=np.intp) for g in groups]
        flat = np.concatenate(members)
        if len(np.unique(flat)) != len(flat) or flat.min() != 0 or flat.max() != len(flat) - 1:
            raise ValueError("GroupL2: groups must name every coordinate 0 .. d-1 exactly once")
        label = np.empty(len(flat), dtype=np.intp)
        for k, g in enumerate(members):
            if not len(g):
                raise ValueError(f"GroupL2: group {k} is empty")
            label[g] = k
        return label
    array = np.asarray(groups)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            "GroupL2: groups must be a vector with one integer label per coordinate, or a list of index lists"
        )
    return np.unique(array, return_inverse=True)[1].reshape(-1)
