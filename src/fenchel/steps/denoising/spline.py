"""Signals whose k-th differences are given: piecewise polynomials, in numbers whose differences are exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem.penalties.differences import PowerDifferences


@dataclass(frozen=True, eq=False)
class Spline:
    """w with D w = jumps, near a target.

    Rounding w to double precision makes noise in its k-th differences, n times over, which a large weight on them blows
    up. So w consists of multiples of one power of two, few enough bits long for its differences to be exact; where
    a jump is zero, it is zero exactly.
    """

    D: PowerDifferences
    target: Vector

    @cached_property
    def _polynomials(self) -> Vector:
        """An orthonormal basis of the null space."""
        return np.asarray(np.linalg.qr(self.D.null_space().basis)[0])

    def _fit(self, rest: Vector) -> Vector:
        return self._polynomials @ (self._polynomials.T @ rest)

    def through(self, jumps: Vector) -> Vector:
        """The best w with these jumps, as floating point has it."""
        w = _integrated(jumps / self.D.scale, np.zeros(self.D.order))
        return w + self._fit(self.target - w)

    def rounded(self, w: Vector) -> Vector:
        """w on the grid."""
        quantum = self._quantum(w)
        return np.rint(w / quantum) * quantum

    def sparse(self, jumps: Vector) -> Vector:
        """The same with jumps and beginnings rounded to the grid, and summed up on it without error."""
        w = self.through(jumps)
        quantum = 2.0 * self._quantum(w)  # rounding may move w beyond the power of two that its largest entry is below
        steps = np.rint(jumps / (self.D.scale * quantum))
        begin = np.zeros(self.D.order)
        for _ in range(3):  # from nothing; then what rounding the beginning has led to
            rest = w / quantum - _integrated(steps, begin)
            smooth = self._polynomials @ (self._polynomials.T @ rest)
            begin = begin + np.rint([np.diff(smooth[: self.D.order], j)[0] for j in range(self.D.order)])
        return _integrated(steps, begin) * quantum

    def _quantum(self, w: Vector) -> float:
        exponent = int(np.frexp(float(np.abs(w).max(initial=0.0)))[1])
        return float(np.ldexp(1.0, exponent - self.D.exact_bits))


def _integrated(jumps: Vector, begin: Vector) -> Vector:
    """The x with these k-th differences, and begin_j its j-th difference at the beginning."""
    for j in reversed(range(len(begin))):
        jumps = np.cumsum(np.append(begin[j], jumps))
    return jumps
