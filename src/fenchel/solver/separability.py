"""separable: whether some linear classifier puts every sample on its side, for one labeling or many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fenchel.certificate.margin.certify_margin import concluded
from fenchel.certificate.margin.question import MarginQuestion, Model
from fenchel.certificate.margin.search import EFFORTS, MarginSearch, basis_of
from fenchel.certificate.margin.separability import Separability, binary_classes, question_of, without_constant
from fenchel.data.design import Design
from fenchel.data.target import encode_labels
from fenchel.data.typing import Array, Indices, MatrixLike, VectorLike
from fenchel.problem.checks import require_flag
from fenchel.solver.blas import blas_threads
from fenchel.solver.progress import Bar
from fenchel.solver.solve import Clock
from fenchel.steps.interpolation.separation import Basis


def separable(
    X: MatrixLike, y: VectorLike, intercept: bool = True, max_seconds: float | None = None, progress: bool = False
) -> Separability | list[Separability]:
    """Decide, with a proof, whether some linear classifier puts every sample on its side of the boundary.

    Either some (w, b) has y_i (x_i.w + b) > 0 for every sample, or some q >= 0, not zero, has sum_i q_i y_i x_i = 0 and
    sum_i q_i y_i = 0 (Gordan). Both are found by Newton steps on the squared hinge loss in an orthonormal basis of the
    columns, and proven with rounding errors counted in. Where such a basis would be too large, by the solver of
    `Interpolation`. Of samples with a label for each of several classes: whether some scores are highest for the right
    class everywhere.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n, d)
        May be memory-mapped; the basis takes 8 n min(n, d) bytes.
    y : n labels, or array of shape (n, m)
        Labels of any type. With m > 1 columns, each is a labeling of its own with two labels at most: they share the
        basis. A column of one label is separable if there is an intercept.
    intercept : bool, default True
    max_seconds : float, optional
        For all labelings together; those that are not reached get the answer None. So do they after Ctrl-C.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    Separability, or a list of them

    Examples
    --------
    >>> import fenchel as fl
    >>> found = fl.separable([[0.0], [1.0], [2.0]], [-1, 1, -1])
    >>> found.answer, found.verify([[0.0], [1.0], [2.0]], [-1, 1, -1])
    (False, True)
    >>> [each.answer for each in fl.separable([[0.0], [1.0], [2.0]], [[-1, -1], [1, -1], [-1, 1]])]
    [False, True]
    """
    require_flag(intercept, "intercept")
    require_flag(progress, "progress")
    design = without_constant(X)
    clock, array = Clock(max_seconds), np.asarray(y)
    if array.ndim == 2 and array.shape[1] > 1:
        if array.shape[0] != design.shape[0]:
            raise ValueError(f"y has {array.shape[0]} rows, but X has {design.shape[0]}")
        labelings = [(column, binary_classes(column, design.shape[0])) for column in array.T]
        return _Decider(design, bool(intercept), clock).all(labelings, progress)
    classes, _ = encode_labels(array)
    return _Decider(design, bool(intercept), clock).all([(array, classes)], progress)[0]


class _Decider:
    """Decides labelings of the same points."""

    def __init__(self, design: Design, intercept: bool, clock: Clock) -> None:
        self.design, self.intercept, self.clock = design, intercept, clock

    @cached_property
    def shared(self) -> Basis | None:
        """The basis of all labelings with two labels."""
        signs = np.zeros(self.design.shape[0], dtype=np.int64)
        return basis_of(MarginQuestion(self.design, signs, 2, self.intercept))

    @cached_property
    def same_points(self) -> list[Indices]:
        """Groups of samples whose features are equal, as far as one product with random weights tells."""
        design = self.design
        z = design.matvec(np.random.default_rng(0).normal(size=design.shape[1]))
        order = np.argsort(z, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(z[order]) != 0.0) + 1)
        return [group for group in groups if len(group) > 1]

    def opposite(self, codes: Indices) -> Indices | None:
        """Two samples at the same point with different labels, if there are any."""
        for group in self.same_points:
            other = np.flatnonzero(codes[group] != codes[group[0]])
            if len(other):
                pair = group[[0, other[0]]]
                first, second = self.design.rows(pair)
                if np.array_equal(first, second):
                    return pair
        return None

    def all(self, labelings: Sequence[tuple[Array, Array]], progress: bool) -> list[Separability]:
        """The answers; None after Ctrl-C."""
        found: list[Separability] = []
        questions = [question_of(self.design, column, classes, self.intercept) for column, classes in labelings]
        interrupted, late, left = False, lambda: self.clock.over, lambda: self.clock.left
        with blas_threads(1), Bar(f"separable {self.design.shape[0]} x {self.design.shape[1]}", progress) as bar:
            for question, (_, classes) in zip(questions, labelings, strict=True):
                search = MarginSearch(question, EFFORTS["auto"].tol, any_margin=True, late=late, left=left)
                try:
                    if not interrupted:
                        self.decide(search)
                except KeyboardInterrupt:
                    interrupted = True
                found.append(_answer(search, classes))
                bar.show(len(found) / len(questions), f"{sum(one.answer is True for one in found)} separable")
        return found

    def decide(self, search: MarginSearch) -> None:
        """A model that separates, or a proof that there is none."""
        question = search.question
        if self.intercept and question.has_one_class:
            search.best = search.upper = np.inf
            search.model = Model(np.zeros(self.design.shape[1]), question.y[:1])
            return
        if search.late():
            return
        if question.is_binary and (pair := self.opposite(question.codes)) is not None:
            q = np.zeros(self.design.shape[0])
            q[pair] = 1.0
            search.prove(q)
            if search.done:
                return
        basis = self.shared if question.is_binary else basis_of(question)
        if basis is not None:
            search.separate(basis)
        if not search.done and not search.late():
            search.run(EFFORTS["high"].passes)
        if search.model is not None:
            search.guess(search.model)


def _answer(search: MarginSearch, classes: Array) -> Separability:
    proof, model = search.contradiction, search.model
    margin = concluded(search, search.best, 0)
    answer = True if model is not None else False if proof is not None else None
    return Separability(
        answer,
        margin,
        search.question.intercept,
        classes,
        None if model is None else model.w,
        None if model is None else model.b,
        None if proof is None else np.abs(proof.multipliers),
    )
