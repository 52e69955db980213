"""Trend filtering: denoising with a banded D by an interior-point method (Kim, Koh, Boyd and Gorinevsky 2009).

The dual min 1/2 |D'z - t|^2 over -1 <= z <= 1 is solved by Mehrotra's predictor-corrector steps, two banded
least-squares problems each. The signal is integrated from its jumps, with differences that are exact in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties.fused.differences import Differences, PowerDifferences
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start
from fenchel.steps.denoising.total_variation import fused_penalty, not_denoising
from fenchel.steps.linear_algebra.safeguards import TINY, Patience


@dataclass(frozen=True)
class TrendTuning:
    """`python -m benchmarks.tuning steps.denoising.trend boundary 0.4975 1.99 --rows ^trend`: 2.7 times as long, and no
    solution; 0.9 and 0.9995, 0.94 and 0.84 on `trend 2`.
    """

    boundary: float = 0.995  # largest step, as a fraction of the distance to the boundary


TUNING = TrendTuning()


@dataclass(frozen=True, eq=False)
class Spline:
    """w with D w = jumps, near a target.

    Rounding w to double precision adds noise to all its k-th differences, which a large lam multiplies. So w is rounded
    to multiples of a power of two, with few enough bits for exact differences: zero jumps are exactly zero.
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
        """The least-squares w with these jumps, up to rounding."""
        w = _integrated(jumps / self.D.scale, np.zeros(self.D.order))
        return w + self._fit(self.target - w)

    def rounded(self, w: Vector) -> Vector:
        """w rounded to multiples of the power of two."""
        quantum = self._quantum(w)
        return np.rint(w / quantum) * quantum

    def sparse(self, jumps: Vector) -> Vector:
        """The same with jumps and initial differences rounded to the multiples, and integrated exactly."""
        w = self.through(jumps)
        quantum = 2.0 * self._quantum(w)  # rounding may move the largest entry beyond its power of two
        steps = np.rint(jumps / (self.D.scale * quantum))
        begin = np.zeros(self.D.order)
        for _ in range(3):  # corrects the rounding of `begin`
            rest = w / quantum - _integrated(steps, begin)
            smooth = self._polynomials @ (self._polynomials.T @ rest)
            begin = begin + np.rint([np.diff(smooth[: self.D.order], j)[0] for j in range(self.D.order)])
        return _integrated(steps, begin) * quantum

    def _quantum(self, w: Vector) -> float:
        exponent = int(np.frexp(float(np.abs(w).max(initial=0.0)))[1])
        return float(np.ldexp(1.0, exponent - self.D.exact_bits))


@dataclass(frozen=True, eq=False)
class BandedOperator:
    """The rows of D' sorted by their first entry, and the width of the band."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: Vector
    order: NDArray[np.int64]
    width: int

    @classmethod
    def of(cls, D: Differences) -> BandedOperator:
        columns = D.matrix.tocsc()
        columns.sum_duplicates()
        start, row = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
        first = row[np.minimum(start[:-1], len(row) - 1)]
        first[np.diff(start) == 0] = 0
        return cls(start, row, columns.data, np.argsort(first, kind="stable"), D.overlap)

    def solve(self, p: Vector, weight: Vector, q: Vector) -> Vector:
        """The z that minimises |D'z - p|^2 + |weight z - q|^2."""
        return kernels.banded_least_squares(
            self.indptr, self.indices, self.values, self.order, self.width, p, weight, q
        )


@dataclass(frozen=True, eq=False)
class DualBox:
    """min 1/2 |D'z - t|^2 over -1 <= z <= 1 for the target t = y / (n lam): the dual in units of n lam."""

    problem: Problem
    D: Differences
    band: BandedOperator
    target: Vector
    size: float  # n lam
    spline: Spline | None


@dataclass(frozen=True, eq=False)
class InteriorPoint:
    """A point inside the box, the multipliers of its two sides, and the best signal so far with its u."""

    z: Vector
    high: Vector
    low: Vector
    rest: Vector  # t - D'z
    steps: int
    w: Vector
    u: Vector
    primal: float
    gap: float
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class Trend(Solver[tuple[DualBox, InteriorPoint]]):
    """(1/(2n)) |w - y|^2 + lam |D w|_1 with a banded D.

    A step solves two banded least-squares problems, in O(n); the number of steps hardly depends on n. The multipliers
    of the box are the jumps D w, much more accurate than those of t - D'z: w is integrated from them.
    """

    name = "trend"
    any_storage = True
    summary = "X the identity, other differences: an interior-point method on the dual"
    requires = frozenset[Trait]()
    steps_per_check = 10
    passes_per_step = 1
    is_final = True

    @property
    def ignores_start(self) -> bool:
        return True

    def obstacle(self, problem: Problem) -> str | None:
        reason = not_denoising(problem)
        if reason is not None:
            return reason
        penalty = fused_penalty(problem)
        if penalty.grid is not None:
            return "does not support images; 'tv' does"
        d, width = problem.shape[1], penalty.on(problem.shape[1]).overlap
        cheap = float(d) * width**2 <= limits.TUNING.step
        return None if cheap else f"needs a banded D (here D D' has bandwidth {width})"

    def begin(self, problem: Problem, start: Start, seed: int) -> tuple[DualBox, InteriorPoint]:
        penalty = fused_penalty(problem)
        D = penalty.on(problem.shape[1])
        size = problem.shape[0] * penalty.lam
        target = problem.y / size
        if not np.all(np.isfinite(target)):
            raise Overflow("y / (n lam) exceeds double precision")
        spline = Spline(D, problem.y) if isinstance(D, PowerDifferences) and D.unit is not None else None
        box = DualBox(problem, D, BandedOperator.of(D), target, size, spline)
        side = np.full(D.shape[0], max(float(np.abs(D.apply(target)).max(initial=0.0)), 1e-30))
        zero = np.zeros(D.shape[0])
        return box, InteriorPoint(zero, side, side, target, 0, problem.y, zero, np.inf, np.inf)

    def step(self, state: tuple[DualBox, InteriorPoint]) -> tuple[DualBox, InteriorPoint]:
        box, at = state
        if at.patience.is_over or at.gap == 0.0:
            raise Overflow("the interior-point method is limited by rounding errors")
        new = newton(box, at)
        # at the end, a gap of zero triggers a last check
        return box, replace(at, gap=0.0) if new is None else better(box, at, new)

    def progress(self, state: tuple[DualBox, InteriorPoint]) -> Progress:
        """P and the gap as computed in floating point."""
        box, at = state
        size = box.problem.penalty.lam * box.problem.penalty.lam * box.problem.shape[0]
        return Progress(size * at.primal, size * at.gap, at.steps)

    def candidates(self, state: tuple[DualBox, InteriorPoint]) -> Sequence[Candidate]:
        box, at = state
        return [Candidate(at.w, 0.0, u=box.problem.penalty.lam * at.u)]


def newton(box: DualBox, at: InteriorPoint) -> InteriorPoint | None:
    """One predictor-corrector step; None if rounding errors prevent progress."""
    z, high, low = at.z, at.high, at.low
    above, below = 1.0 - z, 1.0 + z
    mean = float(high @ above + low @ below) / (2 * len(z))
    weight = np.sqrt(high / above + low / below)

    def direction(first: Vector, second: Vector) -> tuple[Vector, Vector, Vector]:
        """The step of z and of the multipliers that changes their products with the slacks by `first`, `second`."""
        dz = box.band.solve(at.rest, weight, (low - high - first / above + second / below) / weight)
        return dz, (first + high * dz) / above, (second - low * dz) / below

    def lengths(dz: Vector, d_high: Vector, d_low: Vector) -> tuple[float, float]:
        return min(_longest(above, -dz), _longest(below, dz)), min(_longest(high, d_high), _longest(low, d_low))

    dz, d_high, d_low = direction(-high * above, -low * below)
    t, s = lengths(dz, d_high, d_low)
    products = (high + s * d_high) @ (above - t * dz) + (low + s * d_low) @ (below + t * dz)
    centre = mean * float(np.clip(products / (2 * len(z) * mean), 0.0, 1.0)) ** 3
    dz, d_high, d_low = direction(centre - high * above + d_high * dz, centre - low * below - d_low * dz)
    step = TUNING.boundary * min(lengths(dz, d_high, d_low))
    if not step > TINY:
        return None
    z = z + step * dz
    if not np.all(np.abs(z) < 1.0):
        return None
    return replace(at, z=z, high=high + step * d_high, low=low + step * d_low, rest=box.target - box.D.adjoint(z))


def _longest(x: Vector, dx: Vector) -> float:
    """The largest step t <= 1 / boundary that keeps x + t dx >= 0."""
    falling = dx < 0.0
    return min(1.0 / TUNING.boundary, float(np.min(-x[falling] / dx[falling], initial=np.inf)))


def better(box: DualBox, at: InteriorPoint, new: InteriorPoint) -> InteriorPoint:
    """The new point, with the signal of the smallest gap: P - D = |w - t + D'z|^2 / 2 + |D w|_1 - z.D w."""
    gap, primal, w, u = at.gap, at.primal, at.w, at.u
    for signal in signals(box, new):
        scaled, jumps = signal / box.size, box.D.apply(signal) / box.size
        own = 0.5 * float(np.sum((scaled - new.rest) ** 2)) + float((np.abs(jumps) - new.z * jumps).sum())
        if own < gap:
            gap, w, u = own, signal, new.z
            primal = 0.5 * float(np.sum((scaled - box.target) ** 2)) + float(np.abs(jumps).sum())
    at.patience.learn(gap)
    return replace(new, w=w, u=u, gap=gap, primal=primal, steps=at.steps + 1)


def signals(box: DualBox, at: InteriorPoint) -> list[Vector]:
    """Signals for a point, in the units of y: n lam (t - D'z), or integrated from the jumps."""
    if box.spline is None:
        return [box.size * at.rest]
    jumps = box.size * (at.high - at.low)
    certain = np.where(np.abs(at.z) > 0.5, jumps, 0.0)
    return [box.spline.rounded(box.spline.through(jumps)), box.spline.sparse(certain)]


def _integrated(jumps: Vector, begin: Vector) -> Vector:
    """The x with these k-th differences, and begin_j its first j-th difference."""
    for j in reversed(range(len(begin))):
        jumps = np.cumsum(np.append(begin[j], jumps))
    return jumps
