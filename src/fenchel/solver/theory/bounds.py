"""Convergence bounds of coordinate descent and ascent: steps for a gap, the gap after steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.problem.checks import shown


class GapBound(Protocol):
    """A convergence bound: steps for a gap, and the gap after steps."""

    @property
    def n(self) -> int:
        """Steps in an epoch."""

    def iterations(self, gap: float) -> int:
        """Steps after which the expected duality gap is at most `gap`."""

    def gap(self, iterations: ArrayLike) -> Vector:
        """A bound on the expected duality gap after so many steps; infinite where the theorem does not apply."""

    def dual(self, iterations: ArrayLike) -> Vector:
        """A bound on the expected suboptimality of D for ascent, of P for descent."""


@dataclass(frozen=True)
class SmoothBound:
    """Linear rate of the last iterate: Theorem 5 of the SDCA paper, with K = n + R^2 / (lam gamma) for
    (1/gamma)-smooth losses, and Theorem 8 of the certificates paper::

    E[D* - D(alpha_T)] <= initial exp(-T / K),          E[P(w_T) - D(alpha_T)] <= K initial exp(-T / K).
    """

    n: int
    condition: float  # K
    initial: float = 1.0

    def iterations(self, gap: float) -> int:
        """K log(K initial / gap)."""
        require_positive(gap=gap)
        return max(0, ceil(self.condition * log(self.condition * self.initial / gap)))

    def gap(self, iterations: ArrayLike) -> Vector:
        """K initial exp(-T / K)."""
        return self.condition * self.dual(iterations)

    def dual(self, iterations: ArrayLike) -> Vector:
        """initial exp(-T / K)."""
        return self.initial * np.exp(-np.asarray(iterations, dtype=np.float64) / self.condition)


@dataclass(frozen=True)
class LipschitzBound:
    """Rate of the average (or a random one) of the iterates after step T0: Theorems 2 and 11 of the SDCA paper
    (Lipschitz losses), Theorem 9 of the certificates paper (bounded coordinates, beta for lam). With
    G = R^2 max (u - a)^2 over the domain of the coordinates, and t0 steps to forget the start::

        E[D* - D(alpha_t)]  <= 2 G / (lam (2 n + t - t0))                             for t >= t0
        E[P(w) - D(alpha)]  <= 2 G / (lam (2 n + T0 - t0)) + G / (2 lam (T - T0))     for T0 >= t0, T >= T0 + n
                            <= 5 G / (lam (T - t0 - n))                               for the T0 of `average_from`
    """

    n: int
    lam: float
    spread: float  # G
    forget: int  # t0

    def iterations(self, gap: float) -> int:
        """t0 + n + 5 G / (lam gap)."""
        require_positive(gap=gap)
        return ceil(self.forget + self.n + 5.0 * self.spread / (self.lam * gap))

    def average_from(self, gap: float) -> int:
        """T0 = t0 + 4 G / (lam gap), the first step of the average."""
        require_positive(gap=gap)
        return ceil(self.forget + 4.0 * self.spread / (self.lam * gap))

    def gap(self, iterations: ArrayLike, average_from: ArrayLike | None = None) -> Vector:
        """The bound after T steps, for an average from T0 on; by default for the theorem's T0."""
        T = np.asarray(iterations, dtype=np.float64)
        if average_from is None:
            left = T - self.forget - self.n
            return np.where(left > 0, 5.0 * self.spread / (self.lam * np.where(left > 0, left, 1.0)), inf)
        T0 = np.asarray(average_from, dtype=np.float64)
        holds = (self.forget <= T0) & (self.n <= T - T0)
        return np.where(holds, self.dual(T0) + self.spread / (2.0 * self.lam * np.where(holds, T - T0, 1.0)), inf)

    def dual(self, iterations: ArrayLike) -> Vector:
        """2 G / (lam (2 n + t - t0)), infinite before t0."""
        since = np.asarray(iterations, dtype=np.float64) - self.forget
        return np.where(since >= 0, 2.0 * self.spread / (self.lam * (2.0 * self.n + np.maximum(since, 0.0))), inf)


def forget(n: int, ratio: float) -> int:
    """max(0, ceil(n log(ratio)))."""
    return max(0, ceil(n * log(ratio)))


def require_positive(**values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {shown(value)}")
