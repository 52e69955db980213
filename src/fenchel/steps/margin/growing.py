"""More than two classes, p = 2: of the many differences of scores few are least, and only these determine the model.

The hard-margin problem of some rows is solved, and the rows that its model violates most are added, until none is left.
Multipliers of a part of the rows are multipliers of all rows, so that every solution gives an upper bound; its model
has a margin over all rows, which is a lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.typing import Indices, StoredMatrix, Vector
from fenchel.problem import Interpolation
from fenchel.problem.margin import KernelMargin, LargestMargin, Model
from fenchel.problem.penalties import L2
from fenchel.problem.sets import HalfLine
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Goal, Progress, Solver, Start
from fenchel.steps.inner import Inner
from fenchel.steps.margin.rounds import INNER, SATISFIED, Patience, constant_of


@dataclass(frozen=True)
class GrowingTuning:
    """`python -m benchmarks.tuning steps.margin.growing FIELD VALUE ... --rows "^m.*(digits 4 p=2)"`: times.

    `first` 6 10, from 3: 0.81 and 1.08. `fewest` 100 400: 1.08 and 1.38. `looks` 4 1000, from 12: 0.85 and 1.01.
    """

    first: int = 6  # rows for each pair of classes at first
    fewest: int = 200  # rows that are added at least, beside half as many as there are
    looks: int = 6  # at the solver for one set of rows


TUNING = GrowingTuning()


def nearest_mean(problem: LargestMargin) -> Model:
    """The class whose mean is nearest; without intercepts, the one with the largest inner product."""
    k, X = problem.k, problem.X
    counts = np.maximum(np.bincount(problem.codes, minlength=k), 1)
    if isinstance(problem, KernelMargin) and not problem.is_binary:
        B = (problem.codes == np.arange(k)[:, None]) / counts[:, None]
        squares = [float(each @ X.matvec(each)) for each in B]
        return Model(B, -0.5 * np.array(squares) if problem.intercept else np.zeros(k))
    if isinstance(problem, KernelMargin):  # between the means of the scores, as for linear classifiers
        beta = problem.y / counts[problem.codes]
        f = X.matvec(beta)
        return Model(beta, np.array([-0.5 * sum(f[problem.codes == c].sum() / counts[c] for c in (0, 1))]))
    means = np.stack([X.rmatvec((problem.codes == c) / counts[c]) for c in range(k)])
    b = -0.5 * np.square(means).sum(axis=1) if problem.intercept else np.zeros(k)
    return Model(means[1] - means[0], b[1:] - b[:1]) if problem.is_binary else Model(means, b)


@dataclass
class GrowingRows:
    """Some rows of differences, their multipliers, and the centre of the intercepts."""

    problem: LargestMargin
    constant: float
    which: Indices
    model: Model
    q: Vector  # of all rows
    tol: float = 1e-3
    centre: Vector = field(init=False)  # of the intercepts
    hard: Interpolation | None = None  # the problem of the present rows
    inner: Inner | None = None
    looks: int = 0
    solved: bool = False
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        self.centre = self.model.b

    @classmethod
    def of(cls, problem: LargestMargin) -> GrowingRows:
        """The least differences of each pair of classes for the model of class means."""
        k, model = problem.k, nearest_mean(problem)
        d = problem.differences(model)[0].ravel()
        pair = problem.pair_codes
        order = np.lexsort((d, pair))
        place = np.arange(len(order)) - np.searchsorted(pair[order], pair[order])
        which = np.sort(order[place < TUNING.first])
        return cls(problem, constant_of(problem), which, Model(model.w, np.zeros(k)), np.zeros(len(d)))

    def begin(self) -> Inner:
        """The solver of the present rows."""
        k, rows = self.problem.k, Design(self._rows())
        centre = np.zeros((k, rows.shape[1] // k))
        if self.constant:
            centre[:, -1] = self.centre / self.constant
        self.hard = Interpolation(rows, HalfLine(1.0), L2(1.0), centre=centre.ravel() if centre.any() else None)
        self.looks, self.solved = 0, False
        return Inner.first(self.hard, INNER, Start(np.zeros(rows.shape[1]), 0.0, self.q[self.which]))

    def step(self) -> None:
        """One step of that solver; whether the present rows are solved well enough is looked at now and then."""
        assert self.inner is not None
        if not self.inner.step():
            return
        self.looks += 1
        found = self.inner.candidates
        violation = self.hard.violation(found[0].w) if found and self.hard else np.inf
        enough = violation <= 0.1 * SATISFIED * self.tol or self.looks > TUNING.looks
        self.solved = enough or self.inner.ended
        self.patience.looks += self.solved
        if self.solved:
            self.update()

    def update(self) -> None:
        """Take over the solver's model and its multipliers."""
        found = self.inner.candidates if self.inner is not None else ()
        if not found or found[0].alpha is None:
            return
        U, b = np.asarray(found[0].w).reshape(self.problem.k, -1), np.zeros(self.problem.k)
        if self.constant:
            U, b = np.ascontiguousarray(U[:, :-1]), self.constant * U[:, -1]
        self.model, self.q = Model(U, b), np.zeros(self.problem.n_constraints)
        self.q[self.which] = np.abs(found[0].alpha)

    def extend(self) -> bool:
        """Add the rows that the model violates most; whether there are any, or the intercepts still move."""
        d = self.problem.differences(self.model)[0].ravel()
        d[self.which] = np.inf
        violated = np.flatnonzero(d < 1.0 - SATISFIED * self.tol)
        most = max(TUNING.fewest, len(self.which) // 2)
        added = violated[np.argsort(d[violated], kind="stable")[:most]]
        self.which = np.union1d(self.which, added)
        moved = bool(np.any(self.model.b != self.centre))
        self.centre = self.model.b
        return bool(len(added)) or moved

    @property
    def fits(self) -> bool:
        """Whether the present rows may be formed."""
        if self.problem.design.is_sparse:
            return self.problem.may_form_rows
        return limits.fits(len(self.which), int(np.prod(self.problem.weights_shape)))

    def _rows(self) -> StoredMatrix:
        if self.problem.design.is_sparse:
            return sp.csr_array(self.problem.formed_rows(None, self.constant).matrix[self.which])
        return self.problem.pairs_with(self.constant).rows(self.which)


@dataclass(frozen=True)
class Growing(Solver[GrowingRows]):
    """One step is one of the solver of the present rows."""

    name = "growing"
    summary = "the largest margin of several classes, p = 2: hard margins of the rows that matter"
    requires = frozenset[Trait]()
    steps_per_check = 1  # by its own count
    passes_per_step = 1
    any_storage = True

    def obstacle(self, problem: LargestMargin) -> str | None:
        return "is for more than two classes and p = 2" if problem.is_binary or problem.p != 2.0 else None

    @staticmethod
    def suits(problem: LargestMargin, tol: float) -> bool:
        return not problem.any_margin

    def begin(self, problem: LargestMargin, start: Start, seed: int) -> GrowingRows:
        return GrowingRows.of(problem)

    def aim(self, state: GrowingRows, goal: Goal) -> None:
        state.tol = goal.tol

    def step(self, state: GrowingRows) -> GrowingRows:
        if state.solved:
            state.inner = None
            if state.patience.is_over or not state.extend():
                raise GaveUp("no rows are left that change the model")
        if state.inner is None:
            if not state.fits:
                raise GaveUp("the rows take too much memory")
            state.inner = state.begin()
        state.step()
        return state

    def candidates(self, state: GrowingRows) -> Sequence[Candidate]:
        if not state.solved:
            state.update()
        return [Candidate(state.model.w, state.model.b, state.q)] if state.q.any() else []

    def progress(self, state: GrowingRows) -> Progress:
        return state.patience.progress

    def observe(self, state: GrowingRows, z: Vector, primal: float, gap: float) -> None:
        state.patience.learn(primal, gap)
