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
    """Linear rate: Theorem 5 of the SDCA paper, with K = n + R^2 / (lam gamma) for (1/gamma)-smooth losses, and Theorem
    8 of the certificates paper. For the last iterate, and for the average (or a random one) of those from T0 on::

        E[D* - D(alpha_T)]     <= initial exp(-T / K)
        E[P(w_T) - D(alpha_T)] <= K initial exp(-T / K)
        E[P(w) - D(alpha)]     <= K initial exp(-T0 / K) / (T - T0)        for T > T0.
    """

    n: int
    condition: float  # K
    initial: float = 1.0

    def iterations(self, gap: float, average_from: int | None = None) -> int:
        """K log(K initial / gap); for the average from T0 on T0 + K initial exp(-T0 / K) / gap, at least T0 + 1."""
        require_positive(gap=gap)
        if average_from is None:
            return max(0, ceil(self.condition * log(self.condition * self.initial / gap)))
        return average_from + max(1, ceil(self.condition * float(self.dual(average_from)) / gap))

    def average_from(self, gap: float, length: int) -> int:
        """The second half of Theorem 5: T0 = K log(K initial / (length gap)) for an average of so many iterates.

        With length = T0 >= K it is Remark 6: K log(initial / gap) steps before the average are enough.
        """
        require_positive(gap=gap, length=length)
        return max(0, ceil(self.condition * log(self.condition * self.initial / (length * gap))))

    def gap(self, iterations: ArrayLike, average_from: ArrayLike | None = None) -> Vector:
        """The bound after T steps, of the last iterate or of the average from T0 on, infinite for T <= T0."""
        if average_from is None:
            return self.condition * self.dual(iterations)
        T0 = np.asarray(average_from, dtype=np.float64)
        length = np.asarray(iterations, dtype=np.float64) - T0
        return np.where(length > 0, self.condition * self.dual(T0) / np.where(length > 0, length, 1.0), inf)

    def dual(self, iterations: ArrayLike) -> Vector:
        """initial exp(-T / K)."""
        return self.initial * np.exp(-np.asarray(iterations, dtype=np.float64) / self.condition)


@dataclass(frozen=True)
class LipschitzBound:
    """Rate of the average (or a random one) of the iterates from step T0 on: Theorems 2 and 11 of the SDCA paper
    (Lipschitz losses), Theorem 9 of the certificates paper (bounded coordinates, beta for lam). With
    G = R^2 max (u - a)^2 over the domain of the coordinates and t0 = max(0, n log(2 lam n initial / G)), the steps that
    forget the start, their proofs give::

        E[D* - D(alpha_t)]  <= initial exp(-t / n) + G / (2 lam n)                    for t <= t0
                            <= 2 G / (lam (2 n + t - t0))                             for t >= t0
        E[P(w) - D(alpha)]  <= (the above at T0) + G / (2 lam (T - T0))               for T >= T0 + n

    and the best T0 for T steps::

        E[P(w) - D(alpha)]  <= initial exp(-(T - n) / n) + G / (lam n)                for n <= T <= n + t0
                            <= 4.5 G / (lam (T - t0 + 2 n))                           for T >= n + t0.

    The theorems state T = t0 + n + 5 G / (lam gap), which is never less than the steps of this bound.
    """

    n: int
    lam: float
    spread: float  # G
    initial: float = 1.0

    @property
    def forget(self) -> int:
        """t0."""
        return max(0, ceil(self.n * log(2.0 * self.lam * self.n * self.initial / self.spread)))

    @property
    def floor(self) -> float:
        """G / (lam n), twice what is left of the suboptimality by the steps that forget the start."""
        return self.spread / (self.lam * self.n)

    def iterations(self, gap: float, average_from: int | None = None) -> int:
        """t0 - 2 n + 4.5 G / (lam gap) if gap <= 1.5 G / (lam n), else n + n log(initial / (gap - G / (lam n))).

        For an average from T0 on T0 + max(n, G / (2 lam (gap - dual(T0)))).
        """
        require_positive(gap=gap)
        if average_from is None:
            return self.average_from(gap) + max(self.n, ceil(1.5 * self.spread / (self.lam * gap)))
        left = gap - float(self.dual(average_from))
        if not left > 0.0:
            raise ValueError(f"no average from step {average_from} on has a bound of {shown(gap)}; begin it later")
        return average_from + max(self.n, ceil(self.spread / (2.0 * self.lam * left)))

    def average_from(self, gap: float) -> int:
        """The best T0, `iterations` less n or, for small gaps, less 1.5 G / (lam gap)."""
        require_positive(gap=gap)
        if gap <= 1.5 * self.floor:
            return self.forget + ceil(3.0 * self.spread / (self.lam * gap) - 2.0 * self.n)
        return min(self.forget, max(0, ceil(self.n * log(self.initial / (gap - self.floor)))))

    def gap(self, iterations: ArrayLike, average_from: ArrayLike | None = None) -> Vector:
        """The bound after T steps, for an average from T0 on; by default for the best T0."""
        T = np.asarray(iterations, dtype=np.float64)
        if average_from is None:
            since = np.maximum(T - self.n, 0.0)
            soon = self.initial * np.exp(-since / self.n) + self.floor
            late = 4.5 * self.spread / (self.lam * (np.maximum(since - self.forget, 0.0) + 3.0 * self.n))
            return np.where(self.n <= T, np.where(since < self.forget, soon, late), inf)
        T0 = np.asarray(average_from, dtype=np.float64)
        holds = (T0 >= 0) & (self.n <= T - T0)
        return np.where(holds, self.dual(T0) + self.spread / (2.0 * self.lam * np.where(holds, T - T0, 1.0)), inf)

    def dual(self, iterations: ArrayLike) -> Vector:
        """initial exp(-t / n) + G / (2 lam n) before t0, then 2 G / (lam (2 n + t - t0)); never more than `initial`."""
        t = np.asarray(iterations, dtype=np.float64)
        soon = self.initial * np.exp(-t / self.n) + 0.5 * self.floor
        late = 2.0 * self.spread / (self.lam * (2.0 * self.n + np.maximum(t - self.forget, 0.0)))
        return np.minimum(np.where(t < self.forget, soon, late), self.initial)


def require_positive(**values: float) -> None:
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, got {shown(value)}")
