"""Semismooth Newton steps on P, with a proximal-point loop on D around them for losses with kinks.

P, with a smooth loss, has the gradient lam w - v(a) at a = -phi'(z) and the Hessian lam I + (1/W) X' diag(s h) X with
h = phi''(z). A loss with kinks is smoothed around a centre c (`SampleState`): the minimiser of mean psi + R corresponds
to the maximiser of D(a) - (tau/2) mean (a - c)^2. Moving c to that maximiser is the proximal-point method on the dual
(Rockafellar 1976), and decreasing tau makes it converge superlinearly. Only samples between two pieces have a nonzero
second derivative, so Newton systems have few rows; only samples near a kink can change their multipliers, so between
two moves of the centre only these are active. The others are evaluated before the centre moves.

The first steps use a random subset of the samples, later ones larger subsets, the last ones all: far from the optimum a
subset gives about the same direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Goal, Progress, Solver, Start, expected_epochs
from fenchel.steps.dual_ascent.state import TUNING as ASCENT
from fenchel.steps.linear_algebra import newton_system, safeguards
from fenchel.steps.linear_algebra.augmented import AugmentedDesign
from fenchel.steps.linear_algebra.newton_system import NewtonSystem
from fenchel.steps.newton.few_columns import FewColumnsState, is_small
from fenchel.steps.newton.state import TUNING, NewtonState, SampleState, first_tau, levels


@dataclass(frozen=True)
class Newton(Solver[NewtonState | FewColumnsState]):
    """Newton steps with a line search; conjugate gradients if the Hessian is too large to factor."""

    name = "newton"
    summary = "few columns, or curvature that changes little: Newton steps in the primal"
    requires = frozenset({Trait.COMPILED_LOSS, Trait.QUADRATIC_PENALTY})
    steps_per_check = 40
    passes_per_step = 3

    def obstacle(self, problem: Problem) -> str | None:
        if problem.design.by_rows:
            return None
        return f"needs rows, but X is stored by columns ({problem.design!r}): pass X.tocsr() or np.ascontiguousarray(X)"

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Whether "auto" takes it.

        Small Hessian: yes; with kinks and many rows, unless a few epochs of coordinate ascent suffice. Large Hessian:
        if coordinate ascent would need very many epochs and the second derivatives change little from step to step, or
        if it is slowed down by an unpenalised intercept and there are more samples than columns.
        """
        few_rows = newton_system.TUNING.few_rows
        n, width = problem.shape[0], problem.shape[1] + problem.intercept
        if width > max(2 * n, TUNING.narrow):
            return False
        if not limits.may_factor(width):
            tall = problem.intercept and n >= 2 * width and not problem.loss.kinks(problem.y[:1])
            if problem.loss.has_straight_parts and not tall:
                return False
            most = TUNING.wide_epochs if problem.intercept else ASCENT.many_epochs
            return expected_epochs(problem, tol) > most
        if n <= few_rows and width <= TUNING.narrow:
            return True
        if n > few_rows and width > TUNING.narrow and _momentum_is_quicker(problem, tol):
            return False
        few = float(np.clip(TUNING.column_epochs * width, *TUNING.kink_epochs))
        return not problem.loss.kinks(problem.y[:1]) or expected_epochs(problem, tol) > few

    def begin(self, problem: Problem, start: Start, seed: int) -> NewtonState | FewColumnsState:
        loss = problem.loss.kernel()
        assert loss is not None
        if is_small(problem):
            return FewColumnsState.of(problem, loss, start)
        return self._on_samples(problem, start, seed)

    def _on_samples(self, problem: Problem, start: Start, seed: int) -> NewtonState:
        loss = problem.loss.kernel()
        assert loss is not None
        design, rng = AugmentedDesign.of(problem), np.random.default_rng(seed)
        w = np.append(start.w, start.b) if problem.intercept else start.w.copy()
        # one step solves a quadratic; and a given start may be too near the optimum for a subset to improve it
        at_once = problem.loss.quadratic or start.w.any()
        rows, *later = levels(problem, problem.shape[0] if at_once else len(w), rng)
        z = design.scores(rows, w) if w.any() else np.zeros(len(rows))
        samples = SampleState(problem, loss, rows, z, start.alpha[rows], 1.0)
        if problem.loss.kinks(problem.y[:1]):
            samples.tau = first_tau(problem, samples.z, samples.y, samples.s)
            samples.respond()
        return NewtonState(NewtonSystem(design, rng), later, w, samples)

    def aim(self, state: NewtonState | FewColumnsState, goal: Goal) -> None:
        if isinstance(state, FewColumnsState):
            state.goal = goal

    def made(self, state: NewtonState | FewColumnsState) -> int:
        return state.steps if isinstance(state, FewColumnsState) else 1

    def step(self, state: NewtonState | FewColumnsState) -> NewtonState | FewColumnsState:
        """One Newton step; then, if the smoothed problem is solved well enough, move the centre and decrease tau."""
        if isinstance(state, FewColumnsState):
            if not (state.stuck and state.has_kinks):
                state.advance()
                return state
            # near kinks samples of unequal sizes blur each other less where only some of them are looked at
            shapes = state.problem.shapes
            state = self._on_samples(state.problem, Start(np.zeros(shapes[0]), 0.0, np.zeros(shapes[2])), 0)
        active = state.active
        q, residual = state.system.solve(active.rows, active.s * active.h / state.W, state.gradient, _accuracy(state))
        dz = state.design.scores(active.rows, -q)
        state.move(line_search(state, -q, dz), -q, dz, residual)
        state.expect_progress()
        subset_is_solved = state.gap <= state.primal
        state.inner += 1
        if state.has_kinks and _smoothed_problem_is_solved(state):
            _move_centre(state)
        elif state.inner % safeguards.TUNING.patience == 0:
            state.activate_all()  # samples left out may matter
        return state.widen() if state.later and subset_is_solved else state

    def candidates(self, state: NewtonState | FewColumnsState) -> Sequence[Candidate]:
        if isinstance(state, FewColumnsState):
            return state.candidates()
        w, b = (state.w[:-1], float(state.w[-1])) if state.problem.intercept else (state.w, 0.0)
        if state.later:
            return [Candidate(w.copy(), b)]
        alpha = np.zeros(state.problem.shape[0])
        alpha[state.full.rows] = state.multipliers()
        return [Candidate(w.copy(), b, alpha, residual=state.residual, scores=state.scores)]

    def progress(self, state: NewtonState | FewColumnsState) -> Progress:
        """P and the gap after the last step; an infinite gap on a subset of the samples."""
        if isinstance(state, FewColumnsState):
            return state.progress()
        passes = state.passes + state.system.passes
        return Progress(state.primal, np.inf if state.later else state.gap, passes)


def _accuracy(state: NewtonState) -> float:
    """The tolerance for |residual|^2 of the next Newton system: a small fraction of the gap."""
    lam, g = state.problem.penalty.lam, state.gradient
    forcing = TUNING.quadratic_forcing if state.problem.loss.quadratic else TUNING.forcing
    return forcing * min(float(g @ g), 2.0 * lam * state.gap)


def _smoothed_problem_is_solved(state: NewtonState) -> bool:
    """Whether |gradient|^2 / (2 lam) is at most the gain of moving the centre, (tau/2) mean (a - c)^2."""
    g, lam = state.gradient, state.problem.penalty.lam
    gap = float(g @ g) / (2.0 * lam)
    return gap <= state.active.smoothing_loss() / state.W or gap <= 1e-15 * abs(state.primal)


def _move_centre(state: NewtonState) -> None:
    """Evaluate all samples; if the smoothed problem is still solved, move the centre, decrease tau, and restrict the
    active samples to those near a kink.
    """
    crossed, samples = state.activate_all(), state.full
    if len(crossed) and not _smoothed_problem_is_solved(state):
        return
    moved = float(np.max(np.abs(samples.z - state.reference)))
    curved, state.inner = samples.h > 0, 0
    tau = max(TUNING.tau_factor * samples.tau, min(samples.tau, state.least_tau))
    samples.c, samples.tau, state.reference = samples.a, tau, samples.z
    state.respond(samples)
    curved |= samples.h > 0
    distance = samples.distance()
    if curved.any() and moved > 0.0:
        state.restrict_to(np.flatnonzero(distance <= max(moved, float(distance[curved].max()))))


def line_search(state: NewtonState, p: Vector, dz: Vector) -> float:
    """A step size t, possibly above 1, at which |slope along p| is at most a tenth of the first one.

    Far from the optimum the second derivative decreases along p, and the best t is a few times 1. Inactive samples keep
    their multipliers: their part of the slope is constant. Safeguarded Newton on the slope, with geometric bisection.
    """
    ridge, W, active = state.design.ridge, state.W, state.active
    linear, quadratic = float(np.sum(ridge * state.w * p)), float(np.sum(ridge * p * p))
    first = float(state.gradient @ p)
    if state.positions is not None:
        linear -= float(state.combined @ p) / W + active.slope(dz, 0.0)[0] / W
    low, high, t = 0.0, np.inf, 1.0
    for k in range(400):
        slope, second = active.slope(dz, t)
        slope, second = slope / W + linear + t * quadratic, second / W + quadratic
        if abs(slope) <= 0.1 * abs(first):
            return t
        low, high = (t, high) if slope < 0.0 else (low, t)
        newton = t - slope / second if second > 0.0 else high
        if high == np.inf:
            t = min(max(newton, 1.5 * t), 4.0 * t)
            continue
        # if no sample has a second derivative, t may be too large by many powers of ten
        middle = float(np.sqrt(low * high)) if low > 0.0 else 0.1 * high
        t = newton if low < newton < high and k % 3 else middle
        if not low < t < high:
            break
    return low if low > 0.0 else t


def _momentum_is_quicker(problem: Problem, tol: float) -> bool:
    """Whether dual coordinate ascent with momentum, about sqrt(1 + q) log(1 / tol) epochs with the q of
    `expected_epochs`, costs less than Hessians of dense rows.
    """
    loss, design = problem.loss, problem.design
    if design.is_sparse or problem.intercept or loss.quadratic or loss.kinks(problem.y[:1]):
        return False
    digits = float(np.log(1.0 / min(max(tol, 1e-16), 0.5)))
    epochs = np.sqrt(expected_epochs(problem, tol) * digits)  # (1 + q) digits, times digits
    return bool(epochs <= TUNING.momentum_epochs and (tol >= TUNING.momentum_tol or not loss.has_straight_parts))
