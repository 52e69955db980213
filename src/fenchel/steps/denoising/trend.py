"""Denoising with any narrow D by an interior-point method: trend filtering in a few banded solves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties.differences import Differences, PowerDifferences
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start
from fenchel.steps.denoising.spline import Spline
from fenchel.steps.denoising.total_variation import not_denoising

#: How many rows after it a row of D may overlap with; more are not narrow.
WIDEST_BAND = 64
#: How far towards the boundary a step may go, and what is too short to lead anywhere.
SHARE, SHORTEST = 0.995, 1e-8
#: Multipliers closer than this to their bound may belong to a jump.
ACTIVE = 0.99
#: Steps that may leave the gap where it is.
PATIENCE = 10


@dataclass(frozen=True, eq=False)
class Band:
    """The rows of D' (the columns of D) by their first entry, and the width of the band."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: Vector
    order: NDArray[np.int64]
    width: int

    @classmethod
    def of(cls, D: Differences) -> Band:
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
class Box:
    """min 1/2 |D'z - t|^2 over -1 <= z <= 1 for the target t = y / (n lam): the dual in units of n lam."""

    problem: Problem
    D: Differences
    band: Band
    target: Vector
    size: float  # n lam
    spline: Spline | None


@dataclass(frozen=True, eq=False)
class Interior:
    """A point inside the box, the multipliers of its two sides, and the best signal found so far, with its u."""

    z: Vector
    high: Vector
    low: Vector
    rest: Vector  # t - D'z
    steps: int
    w: Vector
    u: Vector
    primal: float
    gap: float
    since: int = 0  # steps without a better one


@dataclass(frozen=True)
class Trend(Solver[tuple[Box, Interior]]):
    """(1/(2n)) |w - y|^2 + lam |D w|_1 where rows of D overlap only with their neighbours.

    Mehrotra's predictor-corrector steps on the dual, a least-squares problem in a box (Kim, Koh, Boyd and Gorinevsky
    2009). A step solves two banded least-squares problems, in O(n); the number of steps hardly depends on n. The
    multipliers of the box are the jumps D w, far more exactly than t - D'z has them: w is rebuilt from those.
    """

    name = "trend"
    requires = frozenset[Trait]()
    steps_per_check = 10
    passes_per_step = 1
    is_final = True

    @property
    def ignores_start(self) -> bool:
        return True

    def obstacle(self, problem: Problem) -> str | None:
        """What stands in the way."""
        reason = not_denoising(problem)
        if reason is not None:
            return reason
        penalty: Any = problem.penalty
        if penalty.grid is not None:
            return "takes no image; 'tv' does"
        width = penalty.on(problem.shape[1]).overlap
        return None if width <= WIDEST_BAND else f"needs rows of D that overlap with few others (here with {width})"

    def begin(self, problem: Problem, start: Start, seed: int) -> tuple[Box, Interior]:
        penalty: Any = problem.penalty
        D = penalty.on(problem.shape[1])
        size = problem.shape[0] * penalty.lam
        target = problem.y / size
        if not np.all(np.isfinite(target)):
            raise Overflow("y / (n lam) exceeds double precision")
        spline = Spline(D, problem.y) if isinstance(D, PowerDifferences) and D.unit is not None else None
        box = Box(problem, D, Band.of(D), target, size, spline)
        side = np.full(D.shape[0], max(float(np.abs(D.apply(target)).max(initial=0.0)), 1e-30))
        zero = np.zeros(D.shape[0])
        return box, Interior(zero, side, side, target, 0, problem.y, zero, np.inf, np.inf)

    def step(self, state: tuple[Box, Interior]) -> tuple[Box, Interior]:
        box, at = state
        if at.since > PATIENCE:
            raise Overflow("the interior-point method is at the end of double precision")
        new = newton(box, at)
        # the end asks for a last certificate by its gap of zero
        return box, replace(at, gap=0.0, since=PATIENCE + 1) if new is None else better(box, at, new)

    def progress(self, state: tuple[Box, Interior]) -> Progress:
        """The gap that floating point sees."""
        box, at = state
        size = box.problem.penalty.lam * box.problem.penalty.lam * box.problem.shape[0]
        return Progress(size * at.primal, size * at.gap, at.steps)

    def candidates(self, state: tuple[Box, Interior]) -> Sequence[Candidate]:
        box, at = state
        return [Candidate(at.w, 0.0, u=box.problem.penalty.lam * at.u)]


def newton(box: Box, at: Interior) -> Interior | None:
    """One predictor-corrector step; None at the end of double precision."""
    z, high, low = at.z, at.high, at.low
    above, below = 1.0 - z, 1.0 + z
    mean = float(high @ above + low @ below) / (2 * len(z))
    weight = np.sqrt(high / above + low / below)

    def direction(first: Vector, second: Vector) -> tuple[Vector, Vector, Vector]:
        """z and the multipliers move so that their products with the slacks change by these."""
        dz = box.band.solve(at.rest, weight, (low - high - first / above + second / below) / weight)
        return dz, (first + high * dz) / above, (second - low * dz) / below

    def lengths(dz: Vector, d_high: Vector, d_low: Vector) -> tuple[float, float]:
        return min(_longest(above, -dz), _longest(below, dz)), min(_longest(high, d_high), _longest(low, d_low))

    dz, d_high, d_low = direction(-high * above, -low * below)
    t, s = lengths(dz, d_high, d_low)
    products = (high + s * d_high) @ (above - t * dz) + (low + s * d_low) @ (below + t * dz)
    centre = mean * float(np.clip(products / (2 * len(z) * mean), 0.0, 1.0)) ** 3
    dz, d_high, d_low = direction(centre - high * above + d_high * dz, centre - low * below - d_low * dz)
    step = SHARE * min(lengths(dz, d_high, d_low))
    if not step > SHORTEST:
        return None
    z = z + step * dz
    if not np.all(np.abs(z) < 1.0):
        return None
    return replace(at, z=z, high=high + step * d_high, low=low + step * d_low, rest=box.target - box.D.adjoint(z))


def _longest(x: Vector, dx: Vector) -> float:
    """The largest step up to 1 / SHARE that keeps x + t dx >= 0."""
    falling = dx < 0.0
    return min(1.0 / SHARE, float(np.min(-x[falling] / dx[falling], initial=np.inf)))


def better(box: Box, at: Interior, new: Interior) -> Interior:
    """The new point, with the signal of the smallest gap: P - D = |w - t + D'z|^2 / 2 + |D w|_1 - z.D w."""
    gap, primal, w, u = at.gap, at.primal, at.w, at.u
    for signal in signals(box, new):
        scaled, jumps = signal / box.size, box.D.apply(signal) / box.size
        own = 0.5 * float(np.sum((scaled - new.rest) ** 2)) + float((np.abs(jumps) - new.z * jumps).sum())
        if own < gap:
            gap, w, u = own, signal, new.z
            primal = 0.5 * float(np.sum((scaled - box.target) ** 2)) + float(np.abs(jumps).sum())
    since = 0 if gap < 0.9 * at.gap else at.since + 1
    return replace(new, w=w, u=u, gap=gap, primal=primal, steps=at.steps + 1, since=since)


def signals(box: Box, at: Interior) -> list[Vector]:
    """Signals that go with a point, in the units of y: n lam (t - D'z), or those rebuilt from the jumps."""
    if box.spline is None:
        return [box.size * at.rest]
    jumps = box.size * (at.high - at.low)
    certain = np.where(np.abs(at.z) > ACTIVE, jumps, 0.0)
    return [box.spline.rounded(box.spline.through(jumps)), box.spline.sparse(certain)]
