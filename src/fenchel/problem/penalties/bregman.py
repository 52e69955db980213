"""The Bregman divergence of a penalty from a point."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import LinkDerivative, Penalty
from fenchel.problem.penalties.strongly_convex import Entropy
from fenchel.problem.vectors import p_norm, times_square


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
        edge = isinstance(self.of, Entropy) and not np.all(self.centre > 0.0)
        if edge or not off <= 1e-9 * (abs(value) + abs(self.constant) + abs(inner)):  # Fenchel's equality
            raise ValueError(f"centre must lie in the domain of {self.of!r}, and its penalty must not overflow")

    @property
    def lam(self) -> float:  # type: ignore[override]
        return self.of.lam

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        return self.of.quadratic

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

    def _linear(self, w: Vector, error: Vector | float = 0.0) -> tuple[float, float]:
        """constant - g.w, and a bound on its rounding and on its change for |u_j - w_j| <= error_j; pairwise sums."""
        terms = self.gradient * w
        size = float(np.sum(np.abs(terms))) + abs(self.constant)
        moved = float(np.sum(np.abs(self.gradient) * error))
        return self.constant - float(np.sum(terms)), 2.0 * EVALUATION * size + (1.0 + EVALUATION) * moved + 5e-324

    def value(self, w: Vector) -> float:
        """lam/2 |w - c|^2 for L2, where nothing cancels."""
        if self.quadratic:
            return times_square(self.lam / 2.0, p_norm(w - self.centre, 2))
        return self.of.value(w) + self._linear(w)[0]

    def value_upper(self, w: Vector) -> float:
        return self.value_upper_near(w, np.zeros_like(w))

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """L2: the gradient as computed is lam c', c' within a unit of rounding of c."""
        if self.quadratic:
            away = np.abs(w - self.centre) + error + 4.0 * UNIT_ROUNDOFF * (np.abs(w) + np.abs(self.centre))
            return times_square(self.lam / 2.0, p_norm(away * (1.0 + EVALUATION), 2)) * (1.0 + EVALUATION) + 5e-324
        slack = self.of.slack(w)
        upper = self.of.value_upper_near(w, error) if np.any(error) else self.of.value_upper(w)
        linear, off = self._linear(w, error + 1.01 * slack * np.abs(w))  # w may stand for a point nearby
        return upper + linear + off + EVALUATION * (abs(upper) + abs(linear))

    def slack(self, w: Vector) -> float:
        return self.of.slack(w)

    def equations(self, d: int) -> tuple[Vector, Vector]:
        return self.of.equations(d)

    def domain_support(self, v: Vector, error: Vector) -> float:
        return self.of.domain_support(v, error)

    def link_derivative(self, v: Vector) -> LinkDerivative | None:
        return self.of.link_derivative(v + self.gradient)

    def conjugate(self, v: Vector) -> float:
        """v.c + |v|^2 / (2 lam) for L2."""
        if self.quadratic:
            return float(np.sum(v * self.centre)) + self.of.conjugate(v)
        return self.of.conjugate(v + self.gradient) - self.constant

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        if self.quadratic:
            size = float(np.sum(np.abs(v * self.centre)))
            moved = float(np.sum((error + 4.0 * UNIT_ROUNDOFF * np.abs(v)) * np.abs(self.centre)))
            linear = float(np.sum(v * self.centre)) + 2.0 * EVALUATION * size + (1.0 + EVALUATION) * moved + 5e-324
            upper = self.of.conjugate_upper(v, error)
            return linear + upper + EVALUATION * (abs(linear) + abs(upper))
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
