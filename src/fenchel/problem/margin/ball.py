"""The weights of a margin: those of length 1 at most."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION, FEASIBILITY, Penalty
from fenchel.problem.vectors import dual_exponent, p_norm

#: Covers the rounding of a few operations.
UP, DOWN = 1.0 + EVALUATION, 1.0 - EVALUATION


class Ball(Penalty):
    """The indicator of a ball of radius 1."""

    @abstractmethod
    def lengths(self, w: Vector) -> tuple[float, float]:
        """Bounds on the norm of w from below and from above."""


@dataclass(frozen=True)
class UnitBall(Ball):
    """The indicator of |w|_p <= 1; its conjugate is the dual norm, R*(v) = |v|_p*."""

    p: float = 2.0
    lam: float = field(default=1.0, init=False)

    def value(self, w: Vector) -> float:
        return 0.0 if p_norm(w, self.p) <= 1.0 + FEASIBILITY else float("inf")

    def conjugate(self, v: Vector) -> float:
        return p_norm(v, dual_exponent(self.p))

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """|v + e|_p* <= |v|_p* + |e|_p*."""
        star = dual_exponent(self.p)
        return (p_norm(v, star) + p_norm(error, star)) * UP

    def lengths(self, w: Vector) -> tuple[float, float]:
        length = p_norm(w, self.p)
        return length * DOWN, length * UP

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """The nearest point of the ball, for p = 2."""
        if self.p != 2.0:
            raise TypeError(f"the projection onto a ball of the p-norm is known for p=2, not for p={self.p:g}")
        return w / max(1.0, p_norm(w, 2.0))
