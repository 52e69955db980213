"""Mehrotra's predictor-corrector method for piecewise linear losses and penalties (Portnoy and Koenker 1997).

For the rows of `Rows` let r = t - A theta = r+ - r-, U = u - a and L = a - l. Optimal are

    A'a = 0,   U r+ = 0,   L r- = 0,   all four at least 0.

A step solves these with U r+ = L r- = sigma mu in place of 0, linearised. Eliminating r+, r- and a leaves

    A' diag(q) A dtheta = A'(q g) + A'a,    1 / q = r+ / U + r- / L,    g = t - A theta - (mu+ / U) + (mu- / L),

and da = q (g - A dtheta). The first solve has mu+ = mu- = 0; the second, with the same matrix, what the products of the
first one's changes add, and sigma = (what it would leave of mu)^3 (Mehrotra 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, GaveUp, Goal, Progress, Solver, Start
from fenchel.steps.linear_algebra.safeguards import ROUNDING, Patience
from fenchel.steps.linear_program.face import Corner, corner, levelled, value_of
from fenchel.steps.linear_program.rows import Rows
from fenchel.steps.linear_program.system import directions_of

#: The part of the way to the nearest bound (Mehrotra 1992).
NEARLY = 0.9995
#: About as many as a run has, each with a matrix to factor.
STEPS = 20
#: The part of the gap that exact zeros may cost; and of the one asked for, until which steps go on for them.
PART = 0.1


@dataclass
class Interior:
    """theta, multipliers a inside their intervals, and the two parts of the residuals."""

    rows: Rows
    theta: Vector
    a: Vector
    over: Vector  # r+
    under: Vector  # r-
    error: Vector  # r - (r+ - r-): what a start that must not be negative, or a linear solve, has left
    size: float  # of residuals of samples
    steps: int = 0
    score: Vector = field(init=False)  # A theta
    slope: Vector = field(init=False)  # A'a
    primal: float = field(init=False)
    gap: float = field(init=False)
    corner: Corner | None = None
    tried: Mask | None = None  # the rows of the last corner that was looked for
    goal: float = 0.0  # the gap that is small enough
    model: Vector = field(init=False)  # to certify,
    is_exact: bool = False  # with exact zeros
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        self.bounded = np.isfinite(self.rows.high)
        self.all_bounded = bool(self.bounded.all())
        self.open = np.zeros(len(self.a)) if self.all_bounded else 1.0 * ~self.bounded
        self.count = len(self.a) + int(np.count_nonzero(self.bounded))
        self.score = self.rows.forward(self.theta)
        self.slope, self.model = self.rows.backward(self.a), self.theta
        self.evaluate()

    def evaluate(self) -> None:
        """P, and the gap of theta and a: sum_k (max { a' r_k } - a_k r_k) + |theta . A'a|."""
        rows, r = self.rows, self.rows.target - self.score
        self.primal = value_of(rows, r)
        self.gap = self.primal - float(self.a @ r) + float(np.abs(self.theta) @ np.abs(self.slope))
        if not self.all_bounded:  # weights below zero are moved there
            a = self.a[~self.bounded]
            self.gap += float((a + np.abs(a)) @ np.maximum(r[~self.bounded], 0.0))

    def zero_rows(self) -> Mask:
        """The rows that are nearer to r_k = 0 than to an end of their interval, each as a part of its scale."""
        rows = self.rows
        lower, upper = self.a - rows.low, rows.high - self.a
        span = np.where(self.bounded, lower + upper, -2.0 * rows.low)
        return np.maximum(self.over, self.under) * span < np.minimum(lower, upper) * self.scale

    @cached_property
    def scale(self) -> Vector:
        """The size of the residuals of samples; of weights, what moves the scores by that."""
        rows = self.rows
        size, columns = self.size, rows.design.column_norms(2.0, rows.fraction)
        columns = columns if rows.D is None else np.full(rows.D.shape[0], columns.max())
        return np.concatenate([np.full(rows.samples, size), size / np.maximum(columns, 1e-300)])

    def look_for_corner(self) -> None:
        """Solve for the corner where Z makes one, and for the nearest point of a larger face once that is all to do."""
        done, rows = self.gap <= self.goal, self.rows
        if not done and self.gap > abs(self.primal):
            return
        zero = self.zero_rows()
        if (self.tried is not None and np.array_equal(zero, self.tried)) or not (
            done or np.count_nonzero(zero) == len(self.theta)
        ):
            return
        self.tried, found = zero, corner(rows, self.theta, self.a, zero)
        if found is not None and found.gap < (self.gap if self.corner is None else self.corner.gap):
            self.corner = found

    @property
    def found(self) -> Corner | None:
        """The corner, if it is better than the interior point."""
        return self.corner if self.corner is not None and self.corner.gap < self.gap else None

    def settle(self) -> None:
        """The model to certify: the corner, or theta; in the domain of the penalty, and exactly zero where Z says that
        weights, or differences of two, are, unless that costs more than a part of the gap.
        """
        rows, d, best = self.rows, self.rows.problem.shape[1], self.found
        inside, zero = (self.theta if best is None else best.theta).copy(), self.zero_rows()[rows.samples :]
        if rows.D is None:
            inside[:d] = np.where(self.bounded[rows.samples :], inside[:d], np.maximum(inside[:d], 0.0))
        exact = inside.copy()
        exact[:d] = np.where(zero, 0.0, inside[:d]) if rows.D is None else levelled(rows.problem, inside[:d], zero)
        most = (self.primal if best is None else best.primal) + PART * max(self.gap, self.goal)
        self.is_exact = value_of(rows, rows.target - rows.forward(exact)) <= most
        self.model = exact if self.is_exact else inside


@dataclass(frozen=True)
class InteriorPoint(Solver[Interior]):
    """One step factors the normal equations once and solves them twice."""

    name = "interior_point"
    summary = "piecewise linear loss and penalty: an interior-point method, and the corner near its end"
    requires = frozenset({Trait.STRAIGHT_LOSS, Trait.STRAIGHT_PENALTY})
    steps_per_check = 60
    passes_per_step = 6
    any_storage = True

    def obstacle(self, problem: Problem) -> str | None:
        (n, d), sparse = problem.shape, problem.penalty.straight(problem.shape[1])
        order = min(n, d) if sparse is not None and sparse.D is None else d
        fits = limits.is_factorable(order, STEPS * order)
        return None if fits else "is for fewer samples or fewer features"

    def begin(self, problem: Problem, start: Start, seed: int) -> Interior:
        rows = Rows.of(problem)
        low, high = rows.low, rows.high
        bounded = np.isfinite(high)
        span = np.where(bounded, high - low, -2.0 * low)
        a = low + 0.5 * span
        theta, moved, _ = directions_of(rows, span)(rows.target, np.zeros(rows.width))
        r = rows.target - moved
        samples = np.abs(r[: rows.samples])
        size = max(float(samples.mean()), 1e-3 * float(np.abs(rows.target).mean())) or 1.0
        over = np.where(bounded, np.maximum(r, 0.0) + size, 0.0)
        under = np.maximum(-r, 0.0) + size
        return Interior(rows, theta, a, over, under, r - over + under, size)

    def aim(self, state: Interior, goal: Goal) -> None:
        state.goal = goal.gap(state.primal)

    def step(self, state: Interior) -> Interior:
        if state.patience.is_over:
            raise GaveUp("the interior-point method gets no further")
        advance(state)
        state.patience.learn(state.gap)
        state.look_for_corner()
        state.settle()
        return state

    def candidates(self, state: Interior) -> Sequence[Candidate]:
        rows, at = state.rows, state.found
        theta, a = state.model, state.a if at is None else at.a
        w, b = rows.weights(theta), float(theta[-1]) if rows.problem.intercept else 0.0
        u = -a[rows.samples :] if rows.D is not None else None
        return (Candidate(w, b, rows.alpha(a), u=u),)

    def progress(self, state: Interior) -> Progress:
        at = state.found or state
        # an optimum of 0 is certified by its size; and the last point counts, whatever comes after it
        ends = at.gap <= ROUNDING**1.25 * state.rows.problem.loss_at_zero or state.patience.is_over
        waits = not state.is_exact and at.gap > PART**3 * state.goal
        return Progress(at.primal, 0.0 if ends else np.inf if waits else at.gap, float(state.steps))


def advance(state: Interior) -> None:
    """One predictor-corrector step."""
    rows, a, over, under = state.rows, state.a, state.over, state.under
    inverse_upper, lower = 1.0 / (rows.high - a), a - rows.low
    up, down = over * inverse_upper, under / lower
    q = 1.0 / (up + down)
    directions, r = directions_of(rows, q), over - under + state.error
    _, _, da = directions(r, state.slope)
    dover, dunder = up * da - over, -down * da - under
    upper = rows.high - a if state.all_bounded else np.where(state.bounded, rows.high - a, 0.0)
    mu = (float(upper @ over) + float(lower @ under)) / state.count
    primal, dual = _length(over + state.open, dover, under, dunder), _dual_length(inverse_upper, lower, da)
    left = float((upper - dual * da * state.bounded) @ (over + primal * dover))
    left += float((lower + dual * da) @ (under + primal * dunder))
    centre = mu * (left / state.count / mu) ** 3
    plus, minus = (centre + da * dover) * inverse_upper, (centre - da * dunder) / lower
    change, moved, da = directions(r - plus + minus, state.slope)
    dover, dunder = plus + up * da - over, minus - down * da - under
    primal, dual = _length(over + state.open, dover, under, dunder), _dual_length(inverse_upper, lower, da)
    primal, dual = min(1.0, NEARLY * primal), min(1.0, NEARLY * dual)
    if not (primal > 0.0 and dual > 0.0 and np.all(np.isfinite(change))):
        raise GaveUp("the interior-point method reached the end of double precision")
    state.theta = state.theta + primal * change
    state.score = state.score + primal * moved
    state.over, state.under, state.a = over + primal * dover, under + primal * dunder, a + dual * da
    error = rows.target - state.score - state.over + state.under
    noise = ROUNDING * (float(np.abs(rows.target).max()) + float(np.abs(state.score).max()))
    state.error = np.where(np.abs(error) > noise, error, 0.0)  # rounding would be multiplied by q
    state.slope = rows.backward(state.a)
    state.steps += 1
    state.evaluate()


def _length(over: Vector, dover: Vector, under: Vector, dunder: Vector) -> float:
    """The longest step at which r+ and r- are not negative."""
    fall = max(float(np.max(-dover / over)), float(np.max(-dunder / under)))
    return 1.0 / fall if fall > 0.0 else np.inf


def _dual_length(inverse_upper: Vector, lower: Vector, da: Vector) -> float:
    """The longest step that keeps a inside."""
    fall = max(float(np.max(da * inverse_upper)), float(np.max(-da / lower)))
    return 1.0 / fall if fall > 0.0 else np.inf
