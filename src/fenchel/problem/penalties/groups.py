"""Norms of groups of weights: the group Lasso and the sparse group Lasso."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fenchel.data.products import gamma
from fenchel.data.typing import Mask, Vector, VectorLike
from fenchel.problem.penalties.base import EVALUATION, NormPenalty, Penalty, Subgradients
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.vectors import set_number, set_positive, soft

#: The group of each weight, or the members of each group.
Groups: TypeAlias = ArrayLike | Sequence[ArrayLike]


class Grouped(NormPenalty):
    """Norms of disjoint groups."""

    lam: float
    groups: Groups
    weights: VectorLike | None

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        bad = np.flatnonzero(~(np.isfinite(self._weight) & (self._weight > 0)))
        if bad.size:
            raise ValueError(
                f"{type(self).__name__}: weights has {self._weight[bad[0]]} at position {bad[0]}; weights must be "
                "positive and finite"
            )

    @cached_property
    def _label(self) -> NDArray[np.intp]:
        """The group of each coordinate, numbered from 0."""
        return _labels(self.groups, type(self).__name__)

    @cached_property
    def _weight(self) -> Vector:
        count = int(self._label.max()) + 1
        weight = np.ones(count) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if weight.shape != (count,):
            raise ValueError(f"{type(self).__name__}: weights has shape {weight.shape}, but there are {count} groups")
        return weight

    @property
    def evaluation(self) -> float:
        """Sums over a group are sequential, not pairwise."""
        return EVALUATION + 2.0 * gamma(int(np.bincount(self._label).max()))

    def check(self, d: int) -> None:
        if len(self._label) != d:
            name = type(self).__name__
            raise ValueError(f"{name}: groups names {len(self._label)} coordinates, but there are {d} weights")

    def norms(self, w: Vector) -> Vector:
        """|w_g|_2 of each group, scaled against overflow."""
        largest = np.zeros(len(self._weight))
        np.maximum.at(largest, self._label, np.abs(w))
        scale = np.where(largest > 0, largest, 1.0)
        ratio = w / scale[self._label]
        return largest * np.sqrt(np.bincount(self._label, ratio * ratio, len(scale)))

    def shrunk(self, w: Vector, t: Vector | float, lam: float) -> Vector:
        """w_g max(0, 1 - t lam weights_g / |w_g|) for each group."""
        step = np.broadcast_to(np.asarray(t, dtype=np.float64), w.shape)
        per_group = np.zeros(len(self._weight))
        per_group[self._label] = step
        norm = self.norms(w)
        keep = np.where(
            norm > 0, np.maximum(0.0, 1.0 - lam * self._weight * per_group / np.where(norm > 0, norm, 1.0)), 0.0
        )
        return w * keep[self._label]

    def admissible_steps(self, t: Vector) -> Vector:
        """The smallest step of each group."""
        smallest = np.full(len(self._weight), np.inf)
        np.minimum.at(smallest, self._label, t)
        return smallest[self._label]


@dataclass(frozen=True, eq=False)
class GroupL2(Grouped):
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
    groups: Groups
    weights: VectorLike | None = None

    def blocks(self, d: int) -> Blocks:
        return Blocks.of(self._label, self.lam * self._weight)

    def value(self, w: Vector) -> float:
        return self.lam * float((self._weight * self.norms(w)).sum())

    def dual_norm(self, v: Vector) -> float:
        return float((self.norms(v) / self._weight).max())

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """w_g max(0, 1 - t lam weights_g / |w_g|) for each group."""
        return self.shrunk(w, t, self.lam)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam weights_g w_g / |w_g|; at w_g = 0 the box around a ball (dual points are checked in the dual norm)."""
        norm = self.norms(w)
        radius = self.lam * self._weight
        alive = norm > tol
        factor = np.where(alive, radius / np.where(alive, norm, 1.0), 0.0)
        zero = np.flatnonzero(~alive[self._label])
        directions = sp.csc_array((np.ones(len(zero)), (zero, np.arange(len(zero)))), shape=(len(w), len(zero)))
        ends = radius[self._label[zero]]
        return Subgradients(factor[self._label] * w, directions, -ends, ends)

    def restricted(self, keep: Mask) -> Penalty:
        """The groups with a kept weight, each with the norm of its kept weights."""
        labels = self._label[keep]
        return GroupL2(self.lam, labels, self._weight[np.unique(labels)])

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """|v'_g| < lam weights_g forces w_g = 0, and |v'_g| <= |v_g| + |radius_g|."""
        return np.asarray((self.norms(v) + self.norms(radius) < self.lam * self._weight)[self._label])


@dataclass(frozen=True, eq=False)
class SparseGroup(Grouped):
    """lam (l1_ratio |w|_1 + (1 - l1_ratio) sum_g weights_g |w_g|_2): groups of zeros, and zeros inside the others.

    The dual norm is the largest over all groups of the t that solves |soft(v_g, l1_ratio t)|_2 = (1 - l1_ratio)
    weights_g t (Simon, Friedman, Hastie and Tibshirani 2013; Ndiaye, Fercoq, Gramfort and Salmon 2017). The left side
    is convex and decreasing in t: Newton's method from t = 0 converges monotonically.

    Parameters
    ----------
    lam : float
    groups, weights
        As for `GroupL2`.
    l1_ratio : float, default 0.5
        Strictly between 0 (`GroupL2`) and 1 (`L1`).
    """

    lam: float
    groups: Groups
    l1_ratio: float = 0.5
    weights: VectorLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < set_number(self, "l1_ratio") < 1.0:
            raise ValueError(
                f"SparseGroup: l1_ratio must lie strictly between 0 and 1, got {self.l1_ratio!r}; "
                "for 0 use GroupL2, for 1 use L1"
            )

    @property
    def evaluation(self) -> float:
        """The relative error of the root t: the sums that define it have terms of at most (l1_ratio sqrt(size) + c) t
        and slope at least l1_ratio + c.
        """
        size = int(np.bincount(self._label).max())
        return float(EVALUATION * (1.0 + size**0.5) + 16.0 * gamma(size + 16) * size**0.5)

    def value(self, w: Vector) -> float:
        grouped = float(((1.0 - self.l1_ratio) * self._weight * self.norms(w)).sum())
        return self.lam * (self.l1_ratio * float(np.abs(w).sum()) + grouped)

    def dual_norm(self, v: Vector) -> float:
        size = np.abs(v)
        largest = float(size.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return largest
        size, c = size / largest, (1.0 - self.l1_ratio) * self._weight
        t = np.zeros(len(c))
        for _ in range(200):  # a dozen are common
            rest = np.maximum(0.0, size - self.l1_ratio * t[self._label])
            norm = self.norms(rest)
            slope = np.bincount(self._label, rest, len(c)) * self.l1_ratio / np.where(norm > 0.0, norm, 1.0)
            step = np.maximum(0.0, (norm - c * t) / (c + slope))
            t += step
            if np.all(step <= 1e-15 * t):
                break
        return largest * float(t.max())

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """The prox of |.|_1, then the prox of the group norms."""
        return self.shrunk(soft(w, t * self.lam * self.l1_ratio), t, self.lam * (1.0 - self.l1_ratio))

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam (l1_ratio sign(w_j) + (1 - l1_ratio) weights_g w_j / |w_g|); where w_j or w_g is zero, a box around the
        subdifferential (dual points are checked in the dual norm).
        """
        norm, single = self.norms(w), self.lam * self.l1_ratio
        alive, radius = norm > tol, self.lam * (1.0 - self.l1_ratio) * self._weight
        factor = np.where(alive, radius / np.where(alive, norm, 1.0), 0.0)[self._label]
        zero = np.flatnonzero((np.abs(w) <= tol) | ~alive[self._label])
        directions = sp.csc_array((np.ones(len(zero)), (zero, np.arange(len(zero)))), shape=(len(w), len(zero)))
        ends = single + np.where(alive, 0.0, radius)[self._label[zero]]
        point = single * np.sign(w) + factor * w
        point[zero] = 0.0
        return Subgradients(point, directions, -ends, ends)

    def restricted(self, keep: Mask) -> Penalty:
        """The groups with a kept weight, each with the norms of its kept weights."""
        labels = self._label[keep]
        return SparseGroup(self.lam, labels, self.l1_ratio, self._weight[np.unique(labels)])

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """|v'_j| < lam l1_ratio forces w_j = 0; |soft(v'_g, lam l1_ratio)| < lam (1 - l1_ratio) weights_g forces
        w_g = 0; and |v'_j| <= |v_j| + radius_j.
        """
        worst = (np.abs(v) + radius) * (1.0 + self.evaluation)
        rest = self.norms(np.maximum(0.0, worst - self.lam * self.l1_ratio))
        # the rounding error of worst - lam l1_ratio is relative to lam l1_ratio <= lam
        bound = self.lam * ((1.0 - self.l1_ratio) * self._weight * (1.0 - self.evaluation) - self.evaluation)
        return np.asarray((worst < self.lam * self.l1_ratio) | (rest < bound)[self._label])


def _labels(groups: Groups, name: str) -> NDArray[np.intp]:
    """The group of each coordinate, numbered from 0."""
    if isinstance(groups, list | tuple) and len(groups) and np.ndim(groups[0]) == 1:
        members = [np.asarray(g, dtype=np.intp) for g in groups]
        flat = np.concatenate(members)
        if len(np.unique(flat)) != len(flat) or flat.min() != 0 or flat.max() != len(flat) - 1:
            raise ValueError(f"{name}: groups must name every coordinate 0 .. d-1 exactly once")
        label = np.empty(len(flat), dtype=np.intp)
        for k, g in enumerate(members):
            if not len(g):
                raise ValueError(f"{name}: group {k} is empty")
            label[g] = k
        return label
    array = np.asarray(groups)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: groups must be a vector with one integer label per coordinate, or a list of index lists"
        )
    return np.unique(array, return_inverse=True)[1].reshape(-1)
