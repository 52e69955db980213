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
from dataclasses import dataclass

import numpy as np

from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Progress, Solver, Start, expected_epochs
from fenchel.steps.linear_algebra.augmented import Border
from fenchel.steps.linear_algebra.curvature import FEW_ROWS, WIDEST, Curvature
from fenchel.steps.newton.line_search import line_search
from fenchel.steps.newton.sample_state import Sheet
from fenchel.steps.newton.state import NewtonState, levels

#: The relative gap on some of the samples that ends the steps on them.
ROUGH = 1.0
#: The first proximal parameter, in distances of the scores from their kinks; it falls by this factor whenever its
#: problem is solved as well as moving on gains.
WIDTH, FALL, ENOUGH = 2.0, 0.5, 1.0
#: Samples near a kink: as near as this many times the largest move of a score since the centre last moved.
REACH = 2.0
#: Steps on the samples near a kink before all are looked at again.
MANY_INNER = 25
#: How much the gap left by a Newton system's residual is below the gap before; more where the Hessian will not change.
FORCING, QUADRATIC_FORCING = 1e-2, 1e-10
#: A width whose factors cost next to nothing.
SMALL = 400
#: Epochs of dual coordinate ascent that take about as long as all steps here, for a loss with kinks: for every column,
#: which makes factors dearer, at least and at most.
EPOCHS_PER_COLUMN, FEWEST_EPOCHS, MOST_EPOCHS = 0.11, 10.0, 35.0
#: sqrt(1 + q) log(1 / tol) up to which momentum is quicker than Hessians of many dense columns, and the tolerance from
#: which it is so where curvatures come and go.
MOMENTUM, ROUGH_TOL = 110.0, 1e-4
#: Epochs of coordinate ascent that take longer than Newton steps by conjugate gradients: with its momentum, and with a
#: free intercept, which has none.
WIDE_EPOCHS = (1000.0, 150.0)
#: Samples for each column, and epochs, from which on losses with straight parts and a free intercept are for Newton.
TALL, TALL_EPOCHS = 2, 50.0


@dataclass(frozen=True)
class Newton(Solver[NewtonState]):
    """A Newton step each, with an exact line search; conjugate gradients where the Hessian is too wide to factor."""

    name = "newton"
    requires = frozenset({Trait.COMPILED_LOSS, Trait.QUADRATIC_PENALTY})
    steps_per_check = 40
    passes_per_step = 3

    def obstacle(self, problem: Problem) -> str | None:
        """Why this problem cannot be solved this way, beyond its traits."""
        if problem.design.by_rows:
            return None
        return f"needs rows, but X is stored by columns ({problem.design!r}): pass X.tocsr() or np.ascontiguousarray(X)"

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Where the Hessian is narrow; with kinks and many rows, unless a few epochs of coordinate ascent do as well.
        Where it is wide, if coordinate ascent would take very many, and curvatures change little from step to step; or
        if a free intercept makes it slow, where there are samples enough for all columns.
        """
        n, width = problem.shape[0], problem.shape[1] + problem.intercept
        if width > max(2 * n, SMALL):
            return False
        if width > WIDEST:
            if problem.loss.has_straight_parts:
                narrow = problem.intercept and n >= TALL * width and not problem.loss.kinks(problem.y[:1])
                return narrow and expected_epochs(problem, tol) > TALL_EPOCHS
            return expected_epochs(problem, tol) > WIDE_EPOCHS[problem.intercept]
        if n <= FEW_ROWS and width <= SMALL:
            return True
        if n > FEW_ROWS and width > SMALL and _momentum_is_quicker(problem, tol):
            return False
        few = float(np.clip(EPOCHS_PER_COLUMN * width, FEWEST_EPOCHS, MOST_EPOCHS))
        return not problem.loss.kinks(problem.y[:1]) or expected_epochs(problem, tol) > few

    def begin(self, problem: Problem, start: Start, seed: int) -> NewtonState:
        loss = problem.loss.kernel()
        assert loss is not None
        border, rng = Border.of(problem), np.random.default_rng(seed)
        w = np.append(start.w, start.b) if problem.intercept else start.w.copy()
        # a quadratic is as far away from everywhere, and a start may be as near as only all samples can tell
        at_once = problem.loss.quadratic or start.w.any()
        rows, *later = levels(problem, problem.shape[0] if at_once else len(w), rng)
        z = border.scores(rows, w) if w.any() else np.zeros(len(rows))
        sheet = Sheet(problem, loss, rows, z, start.alpha[rows], 1.0)
        if problem.loss.kinks(problem.y[:1]):
            # the scale of the scores, but for a start that is next to the kinks already
            far, size = (float(np.average(part, weights=sheet.s)) for part in (sheet.distance(), np.abs(sheet.y)))
            sheet.tau = WIDTH * max(far, 0.01 * size) or 1.0
            sheet.respond()
        return NewtonState(Curvature(border, rng), later, w, sheet)

    def step(self, state: NewtonState) -> NewtonState:
        """One Newton step; after it, if the smoothed problem is solved well enough, the centre moves and tau falls."""
        work = state.work
        q, residual = state.curvature.solve(work.rows, work.s * work.h / state.W, state.gradient, _accuracy(state))
        dz = state.border.scores(work.rows, -q)
        state.move(line_search(state, -q, dz), -q, dz, residual)
        state.expect_progress()
        rough = state.gap <= ROUGH * state.primal
        state.inner += 1
        if state.has_kinks and _smoothed_problem_is_solved(state):
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
        return [Candidate(w.copy(), b, alpha, residual=state.residual, scores=state.scores)]

    def progress(self, state: NewtonState) -> Progress:
        """P and the gap as the last step saw them, unknown while it sees a part of the samples only."""
        passes = state.passes + state.curvature.passes
        return Progress(state.primal, np.inf if state.later else state.gap, passes)


def _accuracy(state: NewtonState) -> float:
    """How large |residual|^2 of the next Newton system may be: a fraction of what the gap is now."""
    lam, g = state.problem.penalty.lam, state.gradient
    forcing = QUADRATIC_FORCING if state.problem.loss.quadratic else FORCING
    return forcing * min(float(g @ g), 2.0 * lam * state.gap)


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


def _momentum_is_quicker(problem: Problem, tol: float) -> bool:
    """Whether dual coordinate ascent, where it has momentum, needs fewer passes over dense rows than Hessians cost.

    With the q of `expected_epochs` it makes about sqrt(1 + q) log(1 / tol) epochs.
    """
    loss, design = problem.loss, problem.design
    if design.is_sparse or problem.intercept or loss.quadratic or loss.kinks(problem.y[:1]):
        return False
    digits = float(np.log(1.0 / min(max(tol, 1e-16), 0.5)))
    epochs = np.sqrt(expected_epochs(problem, tol) * digits)  # (1 + q) digits, times digits
    return bool(epochs <= MOMENTUM and (tol >= ROUGH_TOL or not loss.has_straight_parts))
