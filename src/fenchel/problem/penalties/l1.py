"""Penalties whose R* is an indicator function: none, the L1 norm; and weights that must not be negative.

Let S be a sum over coordinates that is even and grows with |w_j|, and R = S + (0 if w >= 0, else infinite). Then ::

    R*(v) = sup { v.w - S(w) : w >= 0 } = S*(max(v, 0)),

for a coordinate with v_j <= 0 has its supremum at w_j = 0, and for the others the supremum of S* is at some w_j >= 0.
So grad R*(v) = grad S*(max(v, 0)), and prox_R(w) = prox_S(max(w, 0)). The dual constraint of the L1 norm becomes
one-sided: v_j <= lam in place of |v_j| <= lam. That R is lam times a gauge Om, not a norm, changes no proof: Om*(v) =
max(0, max_j v_j) is positively homogeneous and v.w <= Om*(v) Om(w), which is all that rescaling and Lipschitzing use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from fenchel.data.typing import Mask, Vector
from fenchel.problem.penalties.base import EVALUATION, LinkDerivative, NormPenalty, Penalty, Straight, Subgradients
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.penalties.strongly_convex import signs_and_intervals
from fenchel.problem.vectors import p_norm, set_number, set_positive, soft, square_over, times_square


@dataclass(frozen=True)
class NoPenalty(Penalty):
    """R(w) = 0. R*(v) = sup_w v.w is 0 at v = 0 and infinite elsewhere: multipliers must have v(alpha) = 0 exactly."""

    lam: ClassVar[float] = 0.0  # type: ignore[misc]
    separable = True
    is_zero = True

    def value(self, w: Vector) -> float:
        return 0.0

    def conjugate(self, v: Vector) -> float:
        return np.inf if np.any(v) else 0.0

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return np.array(w, dtype=np.float64)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return Subgradients(np.zeros_like(w))

    def free_weights(self, d: int) -> Mask:
        return np.ones(d, dtype=bool)

    def restricted(self, keep: Mask) -> Penalty:
        """Nothing of nothing is nothing."""
        return self

    def with_lam(self, lam: float) -> Self:
        raise TypeError("NoPenalty has no lam; use L2(lam) or another penalty")


@dataclass(frozen=True)
class L1(NormPenalty):
    """lam |w|_1: the Lasso. The dual norm is |v|_inf."""

    lam: float
    separable = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    def blocks(self, d: int) -> Blocks:
        return Blocks.single(d, self.lam)

    def straight(self, d: int) -> Straight:
        return Straight(None, np.full(d, -self.lam), np.full(d, self.lam))

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


@dataclass(frozen=True)
class NonNegativeL1(NormPenalty):
    """lam sum_j w_j for w >= 0, infinite elsewhere. R*(v) = 0 if every v_j <= lam, else infinite."""

    lam: float
    separable = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    def straight(self, d: int) -> Straight:
        return Straight(None, np.full(d, -np.inf), np.full(d, self.lam))

    @property
    def nonnegative(self) -> tuple[float, float]:
        return self.lam, 0.0

    def value(self, w: Vector) -> float:
        return self.lam * float(w.sum()) if np.all(w >= 0.0) else np.inf

    def dual_norm(self, v: Vector) -> float:
        return float(max(v.max(), 0.0))

    def dual_norm_upper(self, v: Vector, error: Vector, near: Vector | None = None) -> float:
        return (1.0 + self.evaluation) * self.dual_norm(v + error + EVALUATION * np.abs(v))

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return np.maximum(w - t * self.lam, 0.0)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return _up_to(w, tol, self.lam, np.zeros_like(w))

    def restricted(self, keep: Mask) -> Penalty:
        """A sum over coordinates: zeros add nothing."""
        return self

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """v_j < lam forces w_j = 0."""
        return v + radius < self.lam


@dataclass(frozen=True)
class NonNegativeElasticNet(Penalty):
    """lam (l1_ratio sum_j w_j + (1 - l1_ratio)/2 |w|_2^2) for w >= 0, infinite elsewhere; 0 <= l1_ratio < 1.

    With l1 = lam l1_ratio and l2 = lam (1 - l1_ratio):  R*(v) = sum (v_j - l1)+^2 / (2 l2),  w = (v - l1)+ / l2.
    """

    lam: float
    l1_ratio: float = 0.0
    separable = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        if not 0.0 <= set_number(self, "l1_ratio") < 1.0:
            raise ValueError(
                f"NonNegativeElasticNet: l1_ratio must lie in [0, 1), got {self.l1_ratio!r}; for 1 use NonNegativeL1"
            )

    @property
    def l1(self) -> float:
        """Weight of sum_j w_j."""
        return self.lam * self.l1_ratio

    @property
    def l2(self) -> float:
        """Weight of |w|_2^2 / 2."""
        return self.lam * (1.0 - self.l1_ratio)

    @property
    def nonnegative(self) -> tuple[float, float]:
        return self.l1, self.l2

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def sparsity(self) -> float:
        return self.l1_ratio

    def slope_norm(self, v: Vector) -> float:
        return float(max(v.max(), 0.0))

    def value(self, w: Vector) -> float:
        if not np.all(w >= 0.0):
            return np.inf
        return self.l1 * float(w.sum()) + times_square(self.l2 / 2.0, p_norm(w, 2))

    def conjugate(self, v: Vector) -> float:
        return square_over(p_norm(np.maximum(v - self.l1, 0.0), 2), 2.0 * self.l2)

    def grad_conjugate(self, v: Vector) -> Vector:
        return np.maximum(v - self.l1, 0.0) / self.l2

    def link_derivative(self, v: Vector) -> LinkDerivative:
        return LinkDerivative((v > self.l1) / self.l2)

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return np.maximum(w - t * self.l1, 0.0) / (1.0 + t * self.l2)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return _up_to(w, tol, self.l1, self.l2 * w)

    def restricted(self, keep: Mask) -> Penalty:
        """A sum over coordinates: zeros add nothing."""
        return self

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """w_j = (v_j - l1)+ / l2 is zero where v_j <= l1."""
        return v + radius <= self.l1


def _up_to(w: Vector, tol: float, l1: float, smooth: Vector) -> Subgradients:
    """smooth + l1 where w_j > tol, anything up to that elsewhere."""
    zero = np.flatnonzero(w <= tol)
    m = len(zero)
    directions = sp.csc_array((np.ones(m), (zero, np.arange(m))), shape=(len(w), m))
    return Subgradients(smooth + l1, directions, np.full(m, -np.inf), np.zeros(m))
