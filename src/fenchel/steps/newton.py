"""Semismooth Newton steps in the primal, and a proximal-point loop in the dual around them for losses with kinks.

For a smooth loss F = P, with gradient lam w - v(a) at a = -phi'(z) and Hessian lam I + (1/W) X' diag(s h) X, h = phi''(z).

A loss of straight pieces (hinge, absolute, ...) is smoothed around a centre c: -a(z) is the derivative of

    psi(z) = max_a  -z a - phi*(-a) - tau (a - c)^2 / 2,

whose curvature h is 1 / tau for the samples between two pieces, zero for all others: Newton steps see only those few
rows. The minimiser of mean psi + R goes with the maximiser of D(a) - (tau/2) mean (a - c)^2: moving c there is the
proximal-point method on the dual (Rockafellar 1976), and lowering tau makes it converge as fast as one likes.

The first steps are made on a few samples drawn at random, then on more of them, then on all: far from the optimum a
part
of the data says as much as all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Overflow, Progress, Start
from fenchel.steps.border import Border
from fenchel.steps.curvature import Curvature

#: Samples of the first steps, for every weight; how many times more in the next ones; the relative gap that ends them.
FIRST_SAMPLES, GROWTH, ROUGH = 8, 8, 0.03
#: The proximal parameter falls by this factor whenever its problem is solved to a fraction of what moving on gains.
FALL, ENOUGH = 0.5, 0.1


@dataclass
class NewtonState:
    """Weights with the intercept behind them, scores of some rows, and how their multipliers respond: a, h."""

    problem: Problem
    loss: kernels.Loss
    curvature: Curvature
    rows: NDArray[np.int64]
    later: list[NDArray[np.int64]]  # larger sets of rows, the last of them all rows that count
    w: Vector
    z: Vector
    c: Vector
    tau: float
    passes: float = 0.0
    y: Vector = field(init=False)
    s: Vector = field(init=False)
    W: float = field(init=False)
    a: Vector = field(init=False)
    h: Vector = field(init=False)
    gradient: Vector = field(init=False)
    primal: float = field(init=False)
    gap: float = field(init=False)

    def __post_init__(self) -> None:
        self.y, self.s = self.problem.y[self.rows], self.problem.weights[self.rows]
        self.W = float(self.s.sum())
        self.respond()

    @property
    def border(self) -> Border:
        return self.curvature.border

    @property
    def share(self) -> float:
        """The share of a pass that one product costs."""
        return len(self.rows) / self.problem.shape[0]

    def respond(self) -> None:
        """a, h, the gradient, and from them P and the gap of these rows.

        P - D = (1/W) sum s_i (phi + phi* + a z) + |gradient|^2 / (2 lam), but for b times the sum of the multipliers.
        """
        self.a, self.h, loss, gap = self.loss.respond(self.z, self.y, self.s, self.c, self.tau)
        ridge, lam = self.border.ridge, self.problem.penalty.lam
        self.gradient = ridge * self.w - self.border.combine(self.rows, self.s * self.a) / self.W
        self.passes += self.share
        self.primal = loss / self.W + 0.5 * float(np.sum(ridge * self.w**2))
        penalised = self.gradient * (ridge > 0)
        self.gap = gap / self.W + float(penalised @ penalised) / (2.0 * lam)
        if self.problem.intercept:
            self.gap += abs(float(self.gradient[-1])) * (1.0 + abs(float(self.w[-1])))
        if not np.isfinite(self.primal):
            raise Overflow("the objective overflows; rescale the features or lam")

    def widen(self) -> NewtonState:
        """The same weights, with the next larger set of rows."""
        rows = self.later[0]
        z = self.border.scores(rows, self.w)
        c = -self.problem.loss.derivative(z, self.problem.y[rows])
        c[np.searchsorted(rows, self.rows)] = self.a
        passes = self.passes + len(rows) / self.problem.shape[0]
        return NewtonState(
            self.problem, self.loss, self.curvature, rows, self.later[1:], self.w, z, c, self.tau, passes
        )


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

    def begin(self, problem: Problem, start: Start, seed: int) -> NewtonState:
        loss = problem.loss.kernel()
        assert loss is not None
        border, rng = Border.of(problem), np.random.default_rng(seed)
        w = np.append(start.w, start.b) if problem.intercept else start.w.copy()
        rows, *later = _levels(problem, len(w), rng) if not start.w.any() else _levels(problem, problem.shape[0], rng)
        z = border.scores(rows, w)
        kinks = problem.loss.kinks(problem.y[rows])
        # the scale of the scores
        tau = float(np.mean(np.min(np.abs(np.stack(kinks) - z), axis=0))) if kinks else 0.0
        return NewtonState(problem, loss, Curvature(border, rng), rows, later, w, z, start.alpha[rows], tau)

    def step(self, state: NewtonState) -> NewtonState:
        """One Newton step; after it, if the smoothed problem is solved well enough, the centre moves and tau falls."""
        curved = np.flatnonzero(state.h * state.s)
        h = (state.h * state.s)[curved] / state.W
        p = -state.curvature.solve(state.rows[curved], h, state.gradient)
        dz = state.border.scores(state.rows, p)
        t = _line_search(state, p, dz)
        state.w, state.z = state.w + t * p, state.z + t * dz
        state.passes += state.share
        state.respond()
        rough = state.gap <= ROUGH * state.primal
        if state.tau > 0.0 and _smoothed_problem_is_solved(state):
            state.c, state.tau = state.a, FALL * state.tau
            state.respond()
        return state.widen() if state.later and rough else state

    def candidates(self, state: NewtonState) -> Sequence[Candidate]:
        w, b = (state.w[:-1], float(state.w[-1])) if state.problem.intercept else (state.w, 0.0)
        if state.later:
            return [Candidate(w.copy(), b)]
        alpha = np.zeros(state.problem.shape[0])
        alpha[state.rows] = state.a
        return [Candidate(w.copy(), b, alpha)]

    def progress(self, state: NewtonState) -> Progress:
        """P and the gap as the last step saw them, unknown while it sees a part of the samples only."""
        passes = state.passes + state.curvature.passes
        return Progress(state.primal, np.inf if state.later else state.gap, passes)


def _levels(problem: Problem, width: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Nested random sets of rows, each larger than the one before; the last has all rows of positive weight."""
    rows = np.flatnonzero(problem.weights > 0).astype(np.int64)
    shuffled, sizes = rng.permutation(rows), [len(rows)]
    while sizes[0] >= 2 * GROWTH * FIRST_SAMPLES * width:
        sizes.insert(0, sizes[0] // GROWTH)
    return [np.sort(shuffled[:size]) for size in sizes]


def _smoothed_problem_is_solved(state: NewtonState) -> bool:
    """Whether its gradient is small beside what moving the centre gains, (tau/2) mean (a - c)^2."""
    g, lam = state.gradient, state.problem.penalty.lam
    short = float(g @ g) / (2.0 * lam)
    gain = 0.5 * state.tau * float(np.sum(state.s * (state.a - state.c) ** 2)) / state.W
    return short <= ENOUGH * gain or short <= 1e-15 * abs(state.primal)


def _line_search(state: NewtonState, p: Vector, dz: Vector) -> float:
    """Where the slope along p, which increases, has come down to a tenth; the full step if it still goes down there."""
    ridge, W = state.border.ridge, state.W
    linear, quadratic = float(np.sum(ridge * state.w * p)), float(np.sum(ridge * p * p))
    small = 0.1 * abs(float(state.gradient @ p))
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(40):
        slope, bend = state.loss.slope_along(state.z, dz, state.y, state.s, state.c, state.tau, t)
        slope, bend = slope / W + linear + t * quadratic, bend / W + quadratic
        if abs(slope) <= small or (t == 1.0 and slope < 0.0):
            break
        low, high = (t, high) if slope < 0.0 else (low, t)
        newton = t - slope / bend if bend > 0.0 else np.inf
        t = newton if low < newton < high else 0.5 * (low + high)
    return t
