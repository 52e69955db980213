"""Semismooth Newton steps in the primal, and a proximal-point loop in the dual around them for losses with kinks.

P, with a smooth loss, has the gradient lam w - v(a) at a = -phi'(z) and the Hessian lam I + (1/W) X' diag(s h) X with
h = phi''(z). A loss with kinks is smoothed around a centre c (`steps.smoothing`): the minimiser of mean psi + R goes
with the maximiser of D(a) - (tau/2) mean (a - c)^2. Moving c there is the proximal-point method on the dual
(Rockafellar 1976), and lowering tau makes it converge as fast as one likes. Only samples between two pieces are
curved, so that Newton systems have few rows; and only samples near a kink can change their multipliers, so that
between two moves of the centre only those are looked at: the others are confirmed, or taken in, before it moves.

The first steps are made on a few samples drawn at random, then on more of them, then on all: far from the optimum a
part of the data says as much as all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Overflow, Progress, Start, expected_epochs
from fenchel.steps.border import Border
from fenchel.steps.curvature import FEW_ROWS, WIDEST, Curvature
from fenchel.steps.smoothing import Sheet

#: Fewest samples for every weight in the first steps; how many times more in the next; the relative gap to end them.
FIRST_SAMPLES, GROWTH, ROUGH = 16, 4, 0.3
#: The proximal parameter falls by this factor whenever its problem is solved to a fraction of what moving on gains.
FALL, ENOUGH = 0.5, 0.1
#: Samples near a kink: as near as this many times the largest move of a score since the centre last moved.
REACH = 2.0
#: Steps on the samples near a kink before all are looked at again.
MANY_INNER = 25
#: Steps that may leave the gap where it is.
PATIENCE = 200
#: A width whose factors cost next to nothing.
SMALL = 400
#: Epochs of dual coordinate ascent that take about as long as all steps here, for a loss with kinks.
FEW_EPOCHS = 31.0


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
    W: float = field(init=False)
    floor: float = field(init=False)  # tau below which the Hessian's condition number may pass 1e12
    primal: float = np.inf
    reference: Vector = field(init=False)  # scores when the centre last moved
    least: float = np.inf  # the smallest gap so far, and steps since it was found
    idle: int = 0
    inner: int = 0  # steps since the centre last moved

    def __post_init__(self) -> None:
        self.work, self.W, self.reference = self.all, float(self.all.s.sum()), self.all.z
        self.floor = 1e-12 * float(np.mean(self.problem.design.squared_row_norms)) / self.problem.penalty.lam
        self.combined = self.border.combine(self.all.rows, self.all.s * self.all.a)
        self.passes += 2 * len(self.all.rows) / self.problem.shape[0]
        self.look()

    @property
    def problem(self) -> Problem:
        return self.all.problem

    @property
    def border(self) -> Border:
        return self.curvature.border

    @property
    def gradient(self) -> Vector:
        return self.border.ridge * self.w - self.combined / self.W

    @property
    def gap(self) -> float:
        """P - D = (1/W) sum s (phi + phi* + a z) + |gradient|^2 / (2 lam), as far as the samples looked at tell.

        An unpenalised intercept adds b times the mean multiplier, which is its entry of the gradient.
        """
        g, lam = self.gradient, self.problem.penalty.lam
        found = self.work.gap_sum / self.W
        if self.problem.intercept:
            found += abs(float(g[-1])) * (1.0 + abs(float(self.w[-1])))
            g = g[:-1]
        return found + float(g @ g) / (2.0 * lam)

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
        changed = np.flatnonzero(sheet.a != before)
        self.combined = self.combined + self.border.combine(
            sheet.rows[changed], (sheet.s * (sheet.a - before))[changed]
        )
        self.passes += len(changed) / self.problem.shape[0]

    def multipliers(self) -> Vector:
        """a of all samples of this level."""
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
        self.all.z = self.border.scores(self.all.rows, self.w)
        self.passes += len(self.all.rows) / self.problem.shape[0]
        self.respond(self.all)
        self.where, self.work = None, self.all
        self.look()
        return np.flatnonzero(self.all.a != before)

    def look_at(self, near: NDArray[np.intp]) -> None:
        """Only these samples from now on."""
        if len(near) < 0.7 * len(self.all.rows):
            self.where, self.work = near, self.all.part(near)

    def widen(self) -> NewtonState:
        """The same weights, with the next larger set of rows."""
        self.look_at_all()
        problem, rows = self.problem, self.later[0]
        z = self.border.scores(rows, self.w)
        c = -problem.loss.derivative(z, problem.y[rows])
        c[np.searchsorted(rows, self.all.rows)] = self.all.a
        sheet = Sheet(problem, self.all.loss, rows, z, c, self.all.tau)
        return NewtonState(self.curvature, self.later[1:], self.w, sheet, self.passes)


@dataclass(frozen=True)
class Newton:
    """A Newton step each, with an exact line search; conjugate gradients where the Hessian is too wide to factor."""

    name = "newton"
    requires = frozenset({Trait.COMPILED_LOSS, Trait.QUADRATIC_PENALTY})
    steps_per_check = 40
    passes_per_step = 3

    @staticmethod
    def obstacle(problem: Problem) -> str | None:
        """Why this problem cannot be solved this way, beyond its traits."""
        if problem.design.by_rows:
            return None
        return f"needs rows, but X is stored by columns ({problem.design!r}): pass X.tocsr() or np.ascontiguousarray(X)"

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Where the Hessian is narrow; with kinks and many rows, unless a few epochs of coordinate ascent do as
        well.
        """
        n, width = problem.shape[0], problem.shape[1] + problem.intercept
        if width > WIDEST or width > max(2 * n, SMALL):
            return False
        if n <= FEW_ROWS and width <= SMALL:
            return True
        return not problem.loss.kinks(problem.y[:1]) or expected_epochs(problem, tol) > FEW_EPOCHS

    def begin(self, problem: Problem, start: Start, seed: int) -> NewtonState:
        loss = problem.loss.kernel()
        assert loss is not None
        border, rng = Border.of(problem), np.random.default_rng(seed)
        w = np.append(start.w, start.b) if problem.intercept else start.w.copy()
        # a quadratic is as far away from everywhere, and a start may be as near as only all samples can tell
        at_once = problem.loss.quadratic or start.w.any()
        rows, *later = _levels(problem, problem.shape[0] if at_once else len(w), rng)
        z = border.scores(rows, w)
        sheet = Sheet(problem, loss, rows, z, start.alpha[rows], 1.0)
        if problem.loss.kinks(problem.y[:1]):
            # the scale of the scores, but for a start that is next to the kinks already
            far, size = (float(np.average(part, weights=sheet.s)) for part in (sheet.distance(), np.abs(sheet.y)))
            sheet.tau = max(far, 0.01 * size) or 1.0
            sheet.respond()
        return NewtonState(Curvature(border, rng), later, w, sheet)

    def step(self, state: NewtonState) -> NewtonState:
        """One Newton step; after it, if the smoothed problem is solved well enough, the centre moves and tau falls."""
        work = state.work
        weight = work.s * work.h
        curved = np.flatnonzero(weight)
        p = -state.curvature.solve(work.rows[curved], weight[curved] / state.W, state.gradient)
        dz = state.border.scores(work.rows, p)
        t = _line_search(state, p, dz)
        state.w, work.z = state.w + t * p, work.z + t * dz
        state.passes += len(work.rows) / state.problem.shape[0]
        state.respond(work)
        state.look()
        state.expect_progress()
        rough = state.gap <= ROUGH * state.primal
        state.inner += 1
        if state.problem.loss.kinks(state.problem.y[:1]) and _smoothed_problem_is_solved(state):
            _move_centre(state)
        elif state.inner % MANY_INNER == 0:
            state.look_at_all()  # in case those not looked at are what is missing
        return state.widen() if state.later and rough else state

    def candidates(self, state: NewtonState) -> Sequence[Candidate]:
        w, b = (state.w[:-1], float(state.w[-1])) if state.problem.intercept else (state.w, 0.0)
        if state.later:
            return [Candidate(w.copy(), b)]
        alpha = np.zeros(state.problem.shape[0])
        alpha[state.all.rows] = state.multipliers()
        return [Candidate(w.copy(), b, alpha)]

    def progress(self, state: NewtonState) -> Progress:
        """P and the gap as the last step saw them, unknown while it sees a part of the samples only."""
        passes = state.passes + state.curvature.passes
        return Progress(state.primal, np.inf if state.later else state.gap, passes)


def _levels(problem: Problem, width: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
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


def _smoothed_problem_is_solved(state: NewtonState) -> bool:
    """Whether its gradient is small beside what moving the centre gains, (tau/2) mean (a - c)^2."""
    g, lam = state.gradient, state.problem.penalty.lam
    short = float(g @ g) / (2.0 * lam)
    return short <= ENOUGH * state.work.gain() / state.W or short <= 1e-15 * abs(state.primal)


def _move_centre(state: NewtonState) -> None:
    """Confirm the samples that were not looked at; if they are as before, move the centre and lower tau."""
    crossed, sheet = state.look_at_all(), state.all
    if len(crossed) and not _smoothed_problem_is_solved(state):
        return
    moved = float(np.max(np.abs(sheet.z - state.reference)))
    curved, state.inner = sheet.h > 0, 0
    sheet.c, sheet.tau, state.reference = sheet.a, max(FALL * sheet.tau, min(sheet.tau, state.floor)), sheet.z
    state.respond(sheet)
    curved |= sheet.h > 0
    away = sheet.distance()
    if curved.any() and moved > 0.0:
        state.look_at(np.flatnonzero(away <= REACH * max(moved, float(away[curved].max()))))


def _line_search(state: NewtonState, p: Vector, dz: Vector) -> float:
    """Where the slope along p, which increases, has come down to a tenth; the full step if it still goes down there.

    Samples that are not looked at keep their multipliers: their part of the slope is constant.
    """
    ridge, W, work = state.border.ridge, state.W, state.work
    linear, quadratic = float(np.sum(ridge * state.w * p)), float(np.sum(ridge * p * p))
    first = float(state.gradient @ p)
    if state.where is not None:
        linear -= float(state.combined @ p) / W + work.slope(dz, 0.0)[0] / W
    low, high, t = 0.0, 1.0, 1.0
    for k in range(400):
        slope, bend = work.slope(dz, t)
        slope, bend = slope / W + linear + t * quadratic, bend / W + quadratic
        if abs(slope) <= 0.1 * abs(first) or (t == 1.0 and slope < 0.0):
            return t
        low, high = (t, high) if slope < 0.0 else (low, t)
        newton = t - slope / bend if bend > 0.0 else high
        # where no sample is curved the step may be far too long, by many powers of ten
        middle = float(np.sqrt(low * high)) if low > 0.0 else 0.1 * high
        t = newton if low < newton < high and k % 3 else middle
        if not low < t < high:
            break
    return low if low > 0.0 else t
