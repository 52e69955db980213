"""No penalty: R = 0, so that every weight is as free as an unpenalised intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from fenchel.data.typing import Mask, Vector
from fenchel.problem.penalties.base import Penalty, Subgradients


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
