"""The L1 norm: R* is an indicator function, so dual points must be made feasible first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Mask, Vector
from fenchel.problem.penalties.base import NormPenalty, Penalty, Subgradients
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.penalties.strongly_convex import signs_and_intervals
from fenchel.problem.vectors import set_positive, soft


@dataclass(frozen=True)
class L1(NormPenalty):
    """lam |w|_1: the Lasso. The dual norm is |v|_inf."""

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

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """|v_j| < lam forces w_j = 0."""
        return np.abs(v) + radius < self.lam
