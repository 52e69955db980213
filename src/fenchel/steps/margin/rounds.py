"""The largest margin by hard-margin problems with p = 2, whose dual is raised.

More than two classes have an intercept each, which is the weight of a constant column; the quadratic around its last
value is moved after each solution (the proximal-point method), so that it is not penalised in the limit.

For other p a sequence of problems with p = 2 on scaled columns c_j x_j is solved: |w|_p^2 is concave in the squares of
w for p < 2, and |v|_p*^2 in those of v = A'q for p > 2, so that c_j^2 = |w_j|^(2 - p), or |v_j|^(p* - 2), lower the
norm in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.margin import LargestMargin
from fenchel.problem.margin.largest import times_columns
from fenchel.problem.penalties import L2
from fenchel.problem.sets import HalfLine
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import dual_exponent
from fenchel.steps.base import Candidate, GaveUp, Progress, Solver, Start
from fenchel.steps.inner import Inner
from fenchel.steps.interpolation.gradient import DualGradient
from fenchel.steps.interpolation.newton import IntervalNewton
from fenchel.steps.linear_algebra.safeguards import TINY


@dataclass(frozen=True)
class RoundsTuning:
    """`python -m benchmarks.tuning steps.margin.rounds FIELD VALUE ... --rows ROWS`: times and the interval.

    `patience` 3 12 with --rows "^m.* digits 2 p=1.5": 0.80 and 1.45, the same interval; thin margins need some.
    `unseparated` 50 400 with --rows "^m.*digits": 0.94 and 0.97, of problems that all are separable: it is what others
    may take longer. `constant` 10 1000 with --rows "^margin interval digits (3|4 p=2)", from 100: 0.83 and 6.2, the
    same width. `moves` 3 with --rows "^margin interval digits 3", from 6: 0.62, the same. `floor` 0.2 0.5 with --rows
    "^m.*digits": 1.05 and 1.20.
    """

    patience: int = 6  # certificates in a row that do not halve the interval
    unseparated: int = 100  # steps without a model that separates the samples, where something else can be tried
    constant: float = 10.0  # the constant column beside the longest row
    moves: int = 3  # of the intercepts' centres
    floor: float = 0.1  # of |w_j|, or |v_j|, beside the largest, in the first round; half in each of the next ones


TUNING = RoundsTuning()
#: Rows that are violated by less than this part of the tolerance are not added to those that a problem has.
SATISFIED = 0.1
#: For the problems with p = 2, the first one that can.
INNER: tuple[Solver[Any], ...] = (IntervalNewton(), DualGradient())


def constant_of(problem: LargestMargin) -> float:
    """The entry of the constant column for intercepts; 0 without."""
    return TUNING.constant * max(problem.farthest_row, 1e-300) if problem.intercept else 0.0


@dataclass
class Patience:
    """Counts the certificates that a solver asks for, and those in a row that narrow nothing."""

    looks: int = 0
    idle: int = 0
    least: float = np.inf
    separates: bool = False  # whether any model so far does

    def learn(self, primal: float, gap: float) -> None:
        """Of a certificate. A model that separates the samples may be near as long as anything changes."""
        self.separates = primal < 0.0
        self.idle = 0 if gap < (0.5 if self.separates else 1.0) * self.least else self.idle + 1
        self.least = min(gap, self.least)

    @property
    def progress(self) -> Progress:
        """A certificate is due after each look."""
        return Progress(np.inf, np.inf, float(self.looks))

    @property
    def is_over(self) -> bool:
        """Whether something else should be tried."""
        return self.idle >= TUNING.patience


@dataclass
class RoundsState:
    """A problem with p = 2 on scaled columns, and where its solver is."""

    problem: LargestMargin
    q: Vector  # to begin the next problem with
    scale: Vector | None = None
    centre: Vector | None = None  # of several intercepts, on a constant column
    moves: int = 0
    floor: float = field(default_factory=lambda: TUNING.floor)
    inner: Inner | None = None
    patience: Patience = field(default_factory=Patience)

    def begin(self) -> Inner:
        """The solver of the present problem."""
        hard = self._hard_margin()
        alpha = hard.in_domain(self.problem.signed(self.q))
        return Inner.first(hard, INNER, Start(np.zeros(hard.shapes[0]), hard.first_intercept(), alpha))

    def _hard_margin(self) -> Interpolation:
        problem, scale = self.problem, self.scale
        if problem.is_binary:
            design = problem.design if scale is None else Design(times_columns(problem.design.matrix, scale))
            return Interpolation(design, HalfLine(1.0, problem.y), L2(1.0), intercept=problem.intercept)
        constant = constant_of(problem)
        rows: Products = problem.pairs_with(constant) if scale is None else problem.formed_rows(scale, constant)
        centre = None
        if self.centre is not None and self.centre.any():
            centre = np.zeros((problem.k, rows.shape[1] // problem.k))
            centre[:, -1] = self.centre / constant
        return Interpolation(rows, HalfLine(1.0), L2(1.0), centre=None if centre is None else centre.ravel())

    @property
    def is_hopeless(self) -> bool:
        """Whether proofs that no model separates the samples should be looked for in another way."""
        steps = 0 if self.inner is None else self.inner.steps
        return not (self.patience.separates or self.problem.any_margin) and steps >= TUNING.unseparated

    def candidate(self) -> Candidate | None:
        """The present model on the columns as they are, with the intercepts apart, and multipliers."""
        found = self.inner.candidates if self.inner is not None else ()
        if not found or found[0].alpha is None:
            return None
        problem, scale, (w, b) = self.problem, self.scale, (np.asarray(found[0].w), found[0].b)
        if not problem.is_binary:
            w, b = w.reshape(problem.k, -1), np.zeros(problem.k)
            if problem.intercept:
                w, b = w[:, :-1], constant_of(problem) * w[:, -1]
        return Candidate(np.ascontiguousarray(w if scale is None else w * scale), b, np.abs(found[0].alpha))

    def advance(self) -> None:
        """Turn to the next problem: moved centres of the intercepts, or columns with another scale."""
        problem, last, p = self.problem, self.candidate(), self.problem.p
        if last is None or last.alpha is None:
            raise GaveUp("no model was found")
        self.q, self.inner, self.patience.idle = last.alpha, None, 0
        self.moves += 1
        if not problem.is_binary and problem.intercept and self.moves < TUNING.moves:
            self.centre = last.b
            return
        self.moves, self.centre = 0, None
        if not self.patience.separates:
            raise GaveUp("no model was found that separates the samples")
        if p == 2.0 or self.floor < TINY or not (problem.is_binary or problem.may_form_rows):
            raise GaveUp("the solvers of hard margins do not get further")
        basis, exponent = (last.w, 2.0 - p) if p < 2.0 else (problem.combination(self.q), dual_exponent(p) - 2.0)
        self.scale, self.floor = _scale_of(basis, exponent, self.floor), 0.5 * self.floor


def _scale_of(basis: Vector, exponent: float, floor: float) -> Vector:
    """|basis_j|^(exponent / 2), with entries of the basis kept away from zero."""
    sizes = np.abs(basis)
    largest = float(sizes.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        raise GaveUp("the weights vanish or overflow")
    ratio = np.sqrt(np.square(sizes / largest) + floor**2)
    c = ratio ** (0.5 * exponent)
    return np.asarray(c / c.max())


@dataclass(frozen=True)
class HardMargins(Solver[RoundsState]):
    """One step is one of the solver of the present hard-margin problem."""

    name = "hard_margins"
    summary = "the largest margin in any norm: hard margins with p = 2, of scaled columns for other norms"
    requires = frozenset[Trait]()
    steps_per_check = 1  # by its own count
    passes_per_step = 1
    any_storage = True

    @staticmethod
    def suits(problem: LargestMargin, tol: float) -> bool:
        return not problem.any_margin

    def begin(self, problem: LargestMargin, start: Start, seed: int) -> RoundsState:
        return RoundsState(problem, np.asarray(start.alpha))

    def step(self, state: RoundsState) -> RoundsState:
        if state.inner is not None and (state.inner.ended or state.patience.is_over or state.is_hopeless):
            state.advance()
        if state.inner is None:
            state.inner = state.begin()
        state.patience.looks += state.inner.step()
        return state

    def candidates(self, state: RoundsState) -> Sequence[Candidate]:
        found = state.candidate()
        return () if found is None else (found,)

    def progress(self, state: RoundsState) -> Progress:
        return state.patience.progress

    def observe(self, state: RoundsState, z: Vector, primal: float, gap: float) -> None:
        state.patience.learn(primal, gap)
