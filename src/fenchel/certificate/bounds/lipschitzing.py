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

#: The part of the interval that a step of a golden section search keeps.
GOLDEN = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True)
class LipschitzingTuning:
    """The search for s - 1. Every s gives a valid bound; none of these is measured."""

    nearest: float = 1e-9  # s - 1 at which it is seen whether s = 1 is best
    doublings: int = 400  # of s - 1, from the rounding of 1
    rounds: int = 20  # golden section steps, to about 1e-4 of s - 1


TUNING = LipschitzingTuning()


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
    if first < np.inf and f(1.0 + TUNING.nearest) >= first:
        return 1.0
    step = UNIT_ROUNDOFF
    for _ in range(TUNING.doublings):
        step *= 2.0
        ahead = max(2.0 * step, TUNING.nearest)  # nearer, both may be the same but for rounding
        if f(1.0 + step) < np.inf and f(1.0 + ahead) >= f(1.0 + step):
            break
    low, high = 0.5 * step, ahead
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = f(1.0 + left), f(1.0 + right)
    for _ in range(TUNING.rounds):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = f(1.0 + left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = f(1.0 + right)
    return 1.0 + (left if at_left < at_right else right)
