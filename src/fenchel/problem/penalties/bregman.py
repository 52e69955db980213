"""The Bregman divergence of a penalty from a point."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel.data.products import EVALUATION
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import LinkDerivative, Penalty


@dataclass(frozen=True, eq=False)
class Bregman(Penalty):
    """R(w) - R(c) - g.(w - c) for a strongly convex R, with g a subgradient of R at c.

    By Fenchel's equality R(c) + R*(g) = g.c this is R(w) - g.w + R*(g), which is how it is computed: g, as computed,
    states the problem, and R*(g) is a constant of both objectives. The conjugate is R*(v + g) - R*(g), the link
    grad R*(v + g). Zero at c only; mu-strongly convex as R is.
    """

    of: Penalty
    centre: Vector
    gradient: Vector = field(init=False)

    def __post_init__(self) -> None:
        at = self.of.subgradients(self.centre, 0.0)
        if not (self.of.strong_convexity > 0.0 and at is not None and np.all(np.isfinite(at.point))):
            raise TypeError(f"a centre needs a strongly convex penalty with subgradients there; {self.of!r} has none")
        object.__setattr__(self, "gradient", at.point)
        with np.errstate(all="ignore"):
            value, inner = self.of.value(self.centre), float(at.point @ self.centre)
            off = abs(value + self.constant - inner)
        if not off <= 1e-9 * (abs(value) + abs(self.constant) + abs(inner)):  # Fenchel's equality
            raise ValueError(f"centre must lie in the domain of {self.of!r}, and its penalty must not overflow")

    @property
    def lam(self) -> float:  # type: ignore[override]
        return self.of.lam

    @property
    def evaluation(self) -> float:
        return self.of.evaluation

    @property
    def strong_convexity(self) -> float:
        return self.of.strong_convexity

    @property
    def norm(self) -> float:
        return self.of.norm

    @cached_property
    def constant(self) -> float:
        """R*(g), as computed: the same number in both objectives."""
        return self.of.conjugate(self.gradient)

    def _shift_error(self, w: Vector) -> float:
        """Of the sum R(w) - g.w + constant, and of g.w."""
        return EVALUATION * (float(np.abs(self.gradient) @ np.abs(w)) + abs(self.constant))

    def value(self, w: Vector) -> float:
        return self.of.value(w) - float(self.gradient @ w) + self.constant

    def value_upper(self, w: Vector) -> float:
        upper, slope = self.of.value_upper(w), float(self.gradient @ w)
        moved = self.of.slack(w) * float(np.abs(self.gradient) @ np.abs(w))  # w may stand for a point nearby
        return upper - slope + self.constant + 2.0 * self._shift_error(w) + EVALUATION * abs(upper) + 1.01 * moved

    def slack(self, w: Vector) -> float:
        return self.of.slack(w)

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        upper, slope = self.of.value_upper_near(w, error), float(self.gradient @ w)
        moved = (1.0 + EVALUATION) * float(np.abs(self.gradient) @ error)
        return upper - slope + self.constant + 2.0 * self._shift_error(w) + EVALUATION * abs(upper) + moved

    def equations(self, d: int) -> tuple[Vector, Vector]:
        return self.of.equations(d)

    def domain_support(self, v: Vector, error: Vector) -> float:
        return self.of.domain_support(v, error)

    def link_derivative(self, v: Vector) -> LinkDerivative | None:
        return self.of.link_derivative(v + self.gradient)

    def conjugate(self, v: Vector) -> float:
        return self.of.conjugate(v + self.gradient) - self.constant

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        shifted = v + self.gradient
        upper = self.of.conjugate_upper(shifted, error + EVALUATION * np.abs(shifted))
        return upper - self.constant + EVALUATION * (abs(upper) + abs(self.constant))

    def grad_conjugate(self, v: Vector) -> Vector:
        return self.of.grad_conjugate(v + self.gradient)

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return self.of.prox(w + t * self.gradient, t)

    def check(self, d: int) -> None:
        self.of.check(d)

    def __repr__(self) -> str:
        return f"the divergence of {self.of!r} from a centre"
