"""Lipschitzing: R restricted to a set that holds every optimum, so that its conjugate is finite everywhere.

Duenner, Forte, Takac and Jaggi 2016, section 5.1. For any w the optima have R(w*) <= min(P(w), P(0)) - m, where m is
the least mean loss: a level set of R, as in Corollary 7. Restricting R to it changes neither P* nor the optima.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fenchel.certificate.bounds.rounding import UP
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.vectors import dual_exponent, p_norm
from fenchel.steps.linear_algebra.safeguards import TINY

#: The part of the interval that a step of a golden section search keeps.
GOLDEN = (5.0**0.5 - 1.0) / 2.0
#: e^(1/4) of s - 1: a function is flat at its minimum, so that its value is right to about sqrt(e) there.
NEAR = 2.0**-13


class Conjugate(Protocol):
    """A conjugate that is finite everywhere, with its bound under errors of v."""

    def conjugate(self, v: Vector) -> float:
        """R*(v)."""

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """A bound on R*(v') over |v' - v| <= error, in exact arithmetic."""


@dataclass(frozen=True)
class Lipschitzed:
    """The conjugate of R restricted to R(w) <= level, for any R with bounded level sets::

        min over s >= 1 of  s R*(v / s) + (s - 1) level.

    It is a bound for every s: on that set v.w - R(w) <= s (R(w) + R*(v / s)) - R(w) <= s R*(v / s) + (s - 1) level. And
    it has the Lipschitz constant r = R.level_radius(level) in the dual norm, since |w| <= r there.

    For a norm s = max(1, Om*(v) / lam) is best, and it is (level / lam) max(0, Om*(v) - lam).
    """

    penalty: Penalty
    level: float

    def conjugate(self, v: Vector) -> float:
        if not np.isfinite(self.level):
            return np.inf
        value, scale = self._best(v)
        return value + (scale - 1.0) * self.level

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """R* is accurate at a point within a few roundings of v / s: a move of v that costs r |move|_*."""
        penalty = self.penalty
        if not np.isfinite(self.level):
            return np.inf
        moved = p_norm(error + 8.0 * UNIT_ROUNDOFF * np.abs(v), dual_exponent(penalty.norm)) * UP
        value, scale = self._best(v)
        rest = (scale - 1.0) * self.level
        size = (penalty.evaluation + EVALUATION) * (abs(value) + abs(rest))
        slope = penalty.level_radius(self.level) * moved if moved > 0.0 else 0.0
        return float(value + rest + size + slope * UP + 5e-324)

    def largest_multiple(self, v: Vector) -> float:
        """1 / s, where R*(v / s) is finite without the restriction."""
        return 1.0 / self._best(v)[1] if np.isfinite(self.level) else 1.0

    def _best(self, v: Vector) -> tuple[float, float]:
        """s R*(v / s) and s, for an s that is nearly the best one."""

        def scaled(scale: float) -> float:
            with np.errstate(all="ignore"):
                value = scale * self.penalty.conjugate(v / scale)
            return float(value) if value > -np.inf else np.inf

        scale = _minimiser(lambda s: scaled(s) + (s - 1.0) * self.level)
        return scaled(scale), scale


def _minimiser(f: Callable[[float], float]) -> float:
    """Nearly the minimiser over s >= 1 of a convex f, which may be infinite up to some s."""
    first = f(1.0)
    if first < np.inf and f(1.0 + TINY) >= first:
        return 1.0
    for exponent in range(-52, 1000):  # from the rounding of 1 to where s - 1 overflows
        step = 2.0**exponent
        ahead = max(2.0 * step, TINY)  # nearer, both may be the same but for rounding
        if f(1.0 + step) < np.inf and f(1.0 + ahead) >= f(1.0 + step):
            break
    low, high = 0.5 * step, ahead
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(1.0 + left), f(1.0 + right)
    while high - low > NEAR * high:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(1.0 + left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(1.0 + right)
    return 1.0 + (left if at_left < at_right else right)
