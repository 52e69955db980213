"""separable: whether some linear classifier puts every sample on its side, for one labeling or many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fenchel.certificate.margin import MarginInterval, MarginJudge
from fenchel.certificate.margin.separability import Separability, binary_classes, problem_of, without_constant
from fenchel.data.convert import encode_labels
from fenchel.data.design import Design
from fenchel.data.typing import Array, Indices, MatrixLike, VectorLike
from fenchel.problem.checks import require_flag
from fenchel.problem.margin import LargestMargin
from fenchel.solver.blas import blas_threads
from fenchel.solver.margins import EFFORTS, search
from fenchel.solver.progress import Bar
from fenchel.solver.solve import Clock
from fenchel.steps import SquaredHinge
from fenchel.steps.interpolation.separation import basis_fits, basis_of


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
    design = without_constant(X).using(1)
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
    def shared(self) -> SquaredHinge | None:
        """The solver for all labelings with two labels, with their basis; None where that is too large."""
        signs = np.zeros(self.design.shape[0], dtype=np.int64)
        problem = LargestMargin(self.design, signs, 2, self.intercept)
        return SquaredHinge(basis_of(problem)) if basis_fits(problem) else None

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
        problems = [problem_of(self.design, column, classes, self.intercept) for column, classes in labelings]
        interrupted, separated = False, 0
        with blas_threads(1), Bar(f"separable {self.design.shape[0]} x {self.design.shape[1]}", progress) as bar:
            for problem, (_, classes) in zip(problems, labelings, strict=True):
                judge = MarginJudge(problem)
                try:
                    if not interrupted:
                        interrupted = self.decide(judge) == "interrupted"
                except KeyboardInterrupt:
                    interrupted = True
                found.append(_answer(judge, classes))
                separated += found[-1].answer is True
                bar.show(len(found) / len(problems), f"{separated} separable")
        return found

    def decide(self, judge: MarginJudge) -> str:
        """Let the judge see a model that separates, or a proof that there is none; how the search ended."""
        problem = judge.problem
        if self.clock.over or _is_trivial(problem):
            return ""
        if problem.is_binary and (pair := self.opposite(problem.codes)) is not None:
            q = np.zeros(self.design.shape[0])
            q[pair] = 1.0
            judge.try_multipliers(q, "two samples at the same point")
        result = search(judge, EFFORTS["high"], self.clock, chosen=self.shared if problem.is_binary else None)
        if judge.model is not None:
            judge.try_gradient()
        return "" if result is None else result.status


def _is_trivial(problem: LargestMargin) -> bool:
    """Whether an intercept alone separates the samples: all have one label."""
    return problem.intercept and problem.has_one_class


def _answer(judge: MarginJudge, classes: Array) -> Separability:
    problem, proof, model, tol = judge.problem, judge.contradiction, judge.model, EFFORTS["auto"].tol
    if _is_trivial(problem):
        n, d, inf = *problem.X.shape, np.inf
        margin = MarginInterval(inf, inf, inf, problem.p, 0, n, problem.k, True, "one label", tol)
        return Separability(True, margin, True, classes, np.zeros(d), problem.y[:1])
    return Separability(
        True if model is not None else False if proof is not None else None,
        judge.interval(judge.margin, 0, tol),
        problem.intercept,
        classes,
        None if model is None else model.w,
        None if model is None else model.b,
        None if proof is None else np.abs(proof.multipliers),
    )
