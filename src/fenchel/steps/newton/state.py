"""What Newton's method knows: the model, the samples it looks at, and how good it believes to be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps.base import Overflow, Residual, Scores, length
from fenchel.steps.linear_algebra.augmented import DEPTH, Border
from fenchel.steps.linear_algebra.curvature import FEW_ROWS, Curvature
from fenchel.steps.newton.sample_state import Sheet

#: Fewest samples for every weight in the first steps; how many times more in the next.
FIRST_SAMPLES, GROWTH = 16, 4
#: The share of multipliers that a tangent may put outside their domain.
MOST_CUT = 0.1
#: Steps that may leave the gap where it is.
PATIENCE = 200


@dataclass
class NewtonState:
    """Weights with the intercept behind them; all samples of this level, and those that steps look at."""

    curvature: Curvature
    later: list[NDArray[np.int64]]  # larger sets of rows, the last of them all rows that count
    w: Vector
    all: Sheet
    passes: float = 0.0
    work: Sheet = field(init=False)
    where: NDArray[np.intp] | None = None  # positions of `work` in `all`; None if it is all of them
    combined: Vector = field(init=False)  # [X, c]' (s a)
    doubt: float = 0.0  # how far that may be off, without the entry of c
    slip: float = field(init=False)  # how far the scores of all samples may be off
    W: float = field(init=False)
    primal: float = np.inf
    reference: Vector = field(init=False)  # scores when the centre last moved
    tangent: Vector | None = None  # multipliers of the tangent, and the gap that they leave
    tangent_gap: float = np.inf
    least: float = np.inf  # the smallest gap so far, and steps since it was found
    idle: int = 0
    inner: int = 0  # steps since the centre last moved

    def __post_init__(self) -> None:
        self.work, self.W, self.reference = self.all, float(self.all.s.sum()), self.all.z
        self.slip, self.combined = self.border.slip(self.w), np.zeros(len(self.w))
        self._combine(self.all, self.all.s * self.all.a)
        self.passes += 2 * len(self.all.rows) / self.problem.shape[0]
        self.look()

    @property
    def problem(self) -> Problem:
        return self.all.problem

    @property
    def border(self) -> Border:
        return self.curvature.border

    @property
    def floor(self) -> float:
        """tau below which the Hessian's condition number may pass 1e12."""
        return 1e-12 * float(np.mean(self.problem.design.squared_row_norms)) / self.problem.penalty.lam

    @property
    def gradient(self) -> Vector:
        return self.border.ridge * self.w - self.combined / self.W

    @property
    def has_kinks(self) -> bool:
        return self.work.loss_has_kinks

    @property
    def gap(self) -> float:
        """P - D at the better multipliers, as far as the samples looked at tell."""
        return min(self.work.gap_sum / self.W + self.defect_gap(self.gradient), self.tangent_gap)

    def defect_gap(self, g: Vector) -> float:
        """|g|^2 / (2 lam), g = lam w - v: what the gap has beside (1/W) sum s (phi + phi* + a z).

        An unpenalised intercept adds b times the mean multiplier, which is its entry of g.
        """
        found = 0.0
        if self.problem.intercept:
            found, g = abs(float(g[-1])) * (1.0 + abs(float(self.w[-1]))), g[:-1]
        return found + float(g @ g) / (2.0 * self.problem.penalty.lam)

    def move(self, t: float, p: Vector, dz: Vector, residual: Vector) -> None:
        """w + t p, with the responses of the samples looked at.

        A smooth loss has a second set of multipliers, those of the tangent, a - h dz. A Newton step p makes
        lam (w + p) = v(a - h dz) but for the residual of its equation, so that their gap has no part that is divided by
        lam: it is as small as the suboptimality itself, where that of a(z) may be larger by the condition number. For a
        step t p it is lam (w + t p) - v(a - h dz) = residual - (1 - t) lam p.
        """
        work = self.work
        tangent = None if self.has_kinks or self.problem.loss.quadratic else work.a - work.h * dz
        self.w, work.z = self.w + t * p, work.z + t * dz
        # beside dz, three numbers are rounded once
        self.slip += abs(t) * self.border.slip(p) + self.border.slip(self.w) * 4.0 / DEPTH
        self.passes += len(work.rows) / self.problem.shape[0]
        self.respond(work)
        self.look()
        self.tangent, self.tangent_gap = None, np.inf
        if tangent is not None:
            self._judge_tangent(tangent, residual - (1.0 - t) * self.border.ridge * p)

    def _judge_tangent(self, tangent: Vector, defect: Vector) -> None:
        """The gap of the tangent's multipliers, cut to their domain, unless the tangent is far off for too many."""
        work = self.work
        inside = np.clip(tangent, *work.domain)
        cut = work.s * (inside - tangent)
        if np.count_nonzero(cut) > MOST_CUT * len(cut):
            return
        defect = defect - self.border.combine(work.rows, cut) / self.W
        found = work.loss.gap_sum(work.z, work.y, work.s, inside) / self.W
        self.tangent, self.tangent_gap = inside, found + self.defect_gap(defect)

    def look(self) -> None:
        """P, when all samples have been looked at."""
        if self.where is None:
            penalty = 0.5 * float(np.sum(self.border.ridge * self.w**2))
            self.primal = self.all.loss_sum / self.W + penalty
            if not np.isfinite(self.primal):
                raise Overflow("the objective overflows; rescale the features or lam")

    def expect_progress(self) -> None:
        """Give up where rounding keeps the gap from falling."""
        self.idle += 1
        if self.gap < 0.99 * self.least:
            self.least, self.idle = self.gap, 0
        if self.idle > PATIENCE:
            raise Overflow("Newton's steps no longer make progress in double precision; rescale the features or lam")

    def respond(self, sheet: Sheet) -> None:
        """New multipliers for these samples; their combination follows."""
        before = sheet.a
        sheet.respond()
        change = sheet.s * (sheet.a - before)
        self._combine(sheet, change)
        self.passes += np.count_nonzero(change) / self.problem.shape[0]

    def _combine(self, sheet: Sheet, change: Vector) -> None:
        """Add [X, c]' change; each entry is a sum of at most n products, so that all together are off by at most
        gamma_n |X|_F |change|. A change itself is a difference and a product, each rounded.
        """
        self.combined = self.combined + self.border.combine(sheet.rows, change)
        self.doubt += gamma(len(change) + DEPTH) * self.border.size * length(change)
        self.doubt += UNIT_ROUNDOFF * length(self.combined)

    @property
    def scores(self) -> Scores | None:
        """Those of all samples, if they are up to date."""
        if self.where is not None or self.later or len(self.all.rows) < self.problem.shape[0]:
            return None
        return Scores(self.all.z, self.all.z, 0.0, 1.01 * self.slip)

    @property
    def residual(self) -> Residual | None:
        """|lam w - v| of the multipliers that respond to the scores; those of the tangent have none that is known."""
        if self.tangent is not None and self.gap == self.tangent_gap:
            return None
        inside = slice(len(self.w) - self.problem.intercept)
        w, v, lam = self.w[inside], self.combined[inside] / self.W, self.problem.penalty.lam
        rounding = 4.0 * UNIT_ROUNDOFF * (lam * length(w) + length(v))
        # 1.01: the sums of bounds are rounded as well
        return Residual.of(self.gradient[inside], 1.01 * (self.doubt / self.W + rounding))

    def multipliers(self) -> Vector:
        """The better multipliers of all samples of this level."""
        if self.tangent is not None and self.gap == self.tangent_gap:
            return self.tangent
        if self.where is None:
            return self.all.a
        a = self.all.a.copy()
        a[self.where] = self.work.a
        return a

    def look_at_all(self) -> NDArray[np.intp]:
        """Scores and multipliers of every sample; which of those not looked at before have changed."""
        if self.where is None:
            return np.array([], dtype=np.intp)
        self.all.a = before = self.multipliers()
        self.all.z, self.slip = self.border.scores(self.all.rows, self.w), self.border.slip(self.w)
        self.passes += len(self.all.rows) / self.problem.shape[0]
        self.respond(self.all)
        self.where, self.work = None, self.all
        self.look()
        return np.flatnonzero(self.all.a != before)

    def look_at(self, near: NDArray[np.intp]) -> None:
        """Only these samples from now on."""
        if len(near) < 0.7 * len(self.all.rows):
            self.where, self.work = near, self.all.part(near)
            # the same formulas, but vector registers may round them in another way
            change = self.work.s * (self.work.a - self.all.a[near])
            if change.any():
                self._combine(self.work, change)

    def widen(self) -> NewtonState:
        """The same weights, with the next larger set of rows."""
        self.look_at_all()
        problem, rows = self.problem, self.later[0]
        z = self.border.scores(rows, self.w)
        c = np.zeros(len(rows))  # a smooth loss needs no centre
        if self.has_kinks:
            c = -problem.loss.derivative(z, problem.y[rows])
            c[np.searchsorted(rows, self.all.rows)] = self.all.a
        sheet = Sheet(problem, self.all.loss, rows, z, c, self.all.tau)
        return NewtonState(self.curvature, self.later[1:], self.w, sheet, self.passes)


def levels(problem: Problem, width: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Nested random sets of rows, each larger than the one before; the last has all rows of positive weight."""
    rows = np.flatnonzero(problem.weights > 0).astype(np.int64)
    sizes: list[int] = []
    size = len(rows) // GROWTH
    while size >= max(FIRST_SAMPLES * width, FEW_ROWS // 2):
        sizes.insert(0, size)
        size //= GROWTH
    if not sizes:
        return [rows]
    luck = rng.random(len(rows))
    return [*(rows[luck < size / len(rows)] for size in sizes), rows]
