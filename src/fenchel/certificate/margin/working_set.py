"""More than two classes, p = 2: of the many differences of scores few are least, and only these determine the model.

The hard-margin problem of some rows is solved, and the rows that its model violates most are added, until none is left.
Multipliers of a part of the rows are multipliers of all rows, so that every solution gives an upper bound; its model
has a margin over all rows, which is a lower one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.margin.question import MarginQuestion, Model
from fenchel.certificate.search.ascent import offers
from fenchel.data.design import Design
from fenchel.data.typing import Indices, StoredMatrix, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties import L2
from fenchel.problem.sets import HalfLine
from fenchel.steps.choose import dual_solvers


@dataclass(frozen=True)
class WorkingSetTuning:
    """`MaxMarginClassifier().fit` on scikit-learn's digits (1797 x 64, 10 classes)."""

    first: int = 3  # rows for each pair of classes at first
    growth: float = 0.5  # rows that are added, beside those that are there,
    fewest: int = 200  # and at least
    satisfied: float = 0.02  # of the tolerance: rows violated by less are not added
    offers: int = 12  # of the solver for one set of rows
    most_entries: float = 2e8  # of rows that are formed as an array


TUNING = WorkingSetTuning()


def nearest_mean(question: MarginQuestion) -> Model:
    """The class whose mean is nearest; without intercepts, the one with the largest inner product."""
    k, X = question.k, question.design
    counts = np.bincount(question.codes, minlength=k)
    means = np.stack([X.rmatvec((question.codes == c) / max(counts[c], 1)) for c in range(k)])
    b = -0.5 * np.square(means).sum(axis=1) if question.intercept else np.zeros(k)
    return Model(means[1] - means[0], b[1:] - b[:1]) if question.is_binary else Model(means, b)


@dataclass
class WorkingSet:
    """Some rows of differences, their multipliers, and the centre of the intercepts."""

    question: MarginQuestion
    constant: float
    tol: float
    which: Indices
    q: Vector  # of all rows
    model: Model
    size: float = 0.0  # of the last step in the intercepts

    @classmethod
    def of(cls, question: MarginQuestion, constant: float, tol: float) -> WorkingSet:
        """The least differences of each pair of classes for the model of class means."""
        k, model = question.k, nearest_mean(question)
        d = question.differences(model)[0].ravel()
        pair = (np.repeat(question.codes, k - 1) * k + question.pairs.others.ravel()).astype(np.int64)
        order = np.lexsort((d, pair))
        place = np.arange(len(order)) - np.searchsorted(pair[order], pair[order])
        which = np.sort(order[place < TUNING.first])
        return cls(question, constant, tol, which, np.zeros(len(d)), Model(model.w, np.zeros(k)))

    def solve(self, late: Callable[[], bool] = lambda: False) -> tuple[Model, Vector]:
        """The model and the multipliers of the present rows, as far as they are found before it is `late`."""
        question, k = self.question, self.question.k
        rows = Design(self._rows())
        centre = np.zeros((k, rows.shape[1] // k))
        if self.constant:
            centre[:, -1] = self.model.b / self.constant
        problem = Interpolation(rows, HalfLine(1.0), L2(1.0), centre=centre.ravel() if centre.any() else None)
        w, q = np.zeros(rows.shape[1]), self.q[self.which]
        for stated, method in dual_solvers(problem, may_copy=False)[:1]:
            for count, (candidate, _) in enumerate(offers(stated, method, w, 0.0, q, late)):
                if candidate.alpha is not None:
                    w, q = np.asarray(candidate.w), np.abs(candidate.alpha)
                if count >= TUNING.offers or problem.violation(w) <= 0.1 * TUNING.satisfied * self.tol:
                    break
        U, b = w.reshape(k, -1), np.zeros(k)
        if self.constant:
            U, b = np.ascontiguousarray(U[:, :-1]), self.constant * U[:, -1]
        self.size = float(np.abs(b - self.model.b).max())
        self.model, self.q = Model(U, b), np.zeros(question.n_constraints)
        self.q[self.which] = q
        return self.model, self.q

    def extend(self) -> bool:
        """Add the rows that the model violates most; whether there are any, or the intercepts still move."""
        d = self.question.differences(self.model)[0].ravel()
        d[self.which] = np.inf
        violated = np.flatnonzero(d < 1.0 - TUNING.satisfied * self.tol)
        most = max(TUNING.fewest, int(TUNING.growth * len(self.which)))
        added = violated[np.argsort(d[violated], kind="stable")[:most]]
        self.which = np.union1d(self.which, added)
        return bool(len(added)) or self.size > 0.0

    @property
    def fits(self) -> bool:
        """Whether the present rows may be formed."""
        if self.question.design.is_sparse:
            return self.question.may_form_rows
        return len(self.which) * float(np.prod(self.question.shape)) <= TUNING.most_entries

    def _rows(self) -> StoredMatrix:
        if self.question.design.is_sparse:
            return sp.csr_array(self.question.formed_rows(None, self.constant).matrix[self.which])
        return self.question.pairs_with(self.constant).rows(self.which)
