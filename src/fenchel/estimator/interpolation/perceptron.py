"""Perceptrons for p-norms: classifiers with a margin at every sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fenchel.certificate import Infeasible
from fenchel.data import Design
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import sample_weights
from fenchel.estimator.classification import Classification, Codes, encoded, signs_of, with_class_weights
from fenchel.estimator.documentation import documented
from fenchel.estimator.interpolation.fitting import ConstraintParameters, check_constrained, fit_constrained, norm_of
from fenchel.estimator.objective import Objective, one_of
from fenchel.problem import Interpolation
from fenchel.problem.checks import require_flag
from fenchel.problem.sets import HalfLine
from fenchel.problem.vectors import p_norm
from fenchel.solver import Check, Result
from fenchel.solver.solve import Clock


@dataclass(eq=False, repr=False, kw_only=True)
class MarginParameters(ConstraintParameters):
    """Parameters of both perceptrons."""

    accelerate: bool = True
    multi_class: str = "ovr"
    solver: Any = "dykstra"
    max_iter: int | None = 1000


class MarginClassifier(MarginParameters, Classification):
    """A classifier with a margin at every sample; subclasses say in which norm."""

    @abstractmethod
    def _exponent(self, d: int) -> float:
        """p, for d features."""

    def _check_parameters(self) -> None:
        self._exponent(1)
        check_constrained(self)
        require_flag(self.accelerate, "accelerate")
        one_of("multi_class", self.multi_class, ("ovr", "joint"))
        if not self.accelerate and self.solver != "dykstra":
            raise ValueError(
                f"accelerate=False would have no effect: it is an option of 'dykstra', not {self.solver!r}"
            )

    def _objective(self) -> Objective:
        raise TypeError("a perceptron has no loss")

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; samples of weight 0 are left out."""
        features, codes = encoded(self, X, y)
        if self.multi_class == "joint" and len(self.classes_) > 2 and self.fit_intercept:
            raise ValueError('multi_class="joint" has no intercept; pass fit_intercept=False')
        weights = with_class_weights(self, codes, sample_weights(sample_weight, features))
        self.p_ = self._exponent(features.shape[1])
        problems = self._problems(features, codes, weights)
        passes: list[list[int]] = [[] for _ in problems]
        results = self._solve(problems, passes)
        if self.multi_class == "joint" and len(self.classes_) > 2:
            self.coef_ = self.coef_.reshape(len(self.classes_), -1)
            self.intercept_ = np.zeros(len(self.classes_))
        margins = [_margin(problem, result) for problem, result in zip(problems, results, strict=True)]
        self.margin_ = margins[0] if len(margins) == 1 else np.array(margins)
        mistakes = [np.array(each, dtype=np.int64) for each in passes]
        self.n_mistakes_ = mistakes[0] if len(mistakes) == 1 else mistakes
        return self

    def _problems(self, X: MatrixLike, codes: Codes, weights: Vector) -> list[Interpolation]:
        """One for each class against the rest, one for two classes, or one for all classes."""
        count, penalty = len(self.classes_), norm_of(self.p_)
        if self.multi_class == "joint" and count > 2:
            rows, repeated = joint_rows(X, codes, count), np.repeat(weights, count - 1)
            return [Interpolation(rows, HalfLine(1.0), penalty, sample_weight=repeated)]
        design, b = Design(X).stored_by_rows(), bool(self.fit_intercept)
        signs = signs_of(codes, count)
        return [
            Interpolation(design, HalfLine(1.0, sign), penalty, intercept=b, sample_weight=weights) for sign in signs
        ]

    def _solve(self, problems: Sequence[Interpolation], passes: list[list[int]]) -> list[Result]:
        """By the chosen solver; where the classes cannot be separated, the weights that violate margins least."""
        options: dict[str, Any] = {}
        clock = Clock(self.max_seconds)
        if self.solver == "dykstra":
            options = {"accelerate": bool(self.accelerate), "restart": bool(self.accelerate), "steps": "local"}
        watch = [MistakeCounter(*pair) for pair in zip(problems, passes, strict=True)]
        try:
            results = fit_constrained(self, problems, "classes", watch=watch, **options)
            known = all(np.isfinite(result.certificate.gap) for result in results)
        except Infeasible:
            if self.on_infeasible == "raise":
                raise
            results, known = [], False
        if known or self.on_infeasible == "raise":
            return results
        least = [problem.replace(on_infeasible="least_violation") for problem in problems]
        return fit_constrained(self, least, "classes", solver="auto", max_seconds=clock.left)


@documented("classes", "margins")
class LpPerceptron(MarginClassifier):
    """A classifier that minimises a p-norm subject to margins of 1, certified (Raj and Bach 2020).

    Minimises |w|_p^2 / 2 subject to y_i (x_i.w + b) >= 1 for every i, by accelerated dual coordinate ascent. The margin
    in the dual norm, min_i y_i (x_i.w + b) / |w|_p, is then as large as possible.

    Parameters
    ----------
    p : float, default 2.0
        Above 1, and at most 2.
    multi_class : {"ovr", "joint"}, default "ovr"
        More than two classes: each against the rest; or one problem with z_y - z_j >= 1 for all other classes j, which
        needs fit_intercept=False.
    solver : str or Solver, default "dykstra"
        The paper's algorithm. "auto" takes the fastest one.
    max_iter : int, default 1000
        The largest number of passes over the data.
    class_weight : dict, "balanced" or None
        Factors of the sample weights. They matter where they are 0, and for the least violation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import LpPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LpPerceptron().fit(X[:100], y[:100])
    >>> model.score(X[:100], y[:100]), bool(model.margin_ > 0.6)
    (1.0, True)
    """

    p: float = 2.0
    _: KW_ONLY

    def _exponent(self, d: int) -> float:
        return norm_of(self.p).norm


@documented("classes", "margins")
class SparsePerceptron(MarginClassifier):
    """`LpPerceptron` with p = 1 + 1 / log d, for which |w|_p is nearly |w|_1: most weights are nearly zero.

    Parameters
    ----------
    multi_class : {"ovr", "joint"}, default "ovr"
        More than two classes: each against the rest; or one problem with z_y - z_j >= 1 for all other classes j, which
        needs fit_intercept=False.
    solver : str or Solver, default "dykstra"
        The paper's algorithm. "auto" takes the fastest one.
    max_iter : int, default 1000
        The largest number of passes over the data.
    class_weight : dict, "balanced" or None
        Factors of the sample weights. They matter where they are 0, and for the least violation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import SparsePerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> SparsePerceptron().fit(X[:100], y[:100]).score(X[:100], y[:100])
    1.0
    """

    def _exponent(self, d: int) -> float:
        """|w|_p is then within a factor e of |w|_1 (Duchi et al. 2010); 2 for one or two weights."""
        return min(2.0, 1.0 + 1.0 / max(float(np.log(d)), 1.0))


def joint_rows(X: MatrixLike, codes: Codes, count: int) -> sp.csr_array:
    """z_y - z_j as rows, for each sample and other class j: x_i in the columns of its class, -x_i in those of j."""
    n, d = np.shape(X)
    others = np.array([[j for j in range(count) if j != code] for code in range(count)])
    repeated = sp.csr_array(X)[np.repeat(np.arange(n), count - 1)].tocoo()
    own, other = np.repeat(codes, count - 1), others[codes].ravel()
    rows, columns = repeated.coords
    places = np.concatenate([own[rows] * d + columns, other[rows] * d + columns])
    entries = np.concatenate([repeated.data, -repeated.data])
    return sp.csr_array((entries, (np.tile(rows, 2), places)), shape=(n * (count - 1), count * d))


class MistakeCounter:
    """A callback that counts the training samples on the wrong side."""

    def __init__(self, problem: Interpolation, counts: list[int]) -> None:
        self._problem, self._counts = problem, counts
        ends = problem.constraints.ends
        assert ends is not None
        self._sign = np.where(np.isfinite(ends[0][:, 0]), 1.0, -1.0)

    def __call__(self, check: Check) -> None:
        wrong = self._sign * self._problem.scores(check.w, check.b) <= 0.0
        self._counts.append(int(np.count_nonzero(wrong & self._problem.counts)))


def _margin(problem: Interpolation, result: Result) -> float:
    ends = problem.constraints.ends
    assert ends is not None
    sign = np.where(np.isfinite(ends[0][:, 0]), 1.0, -1.0)
    least = float(np.min((sign * problem.scores(result.w, result.b))[problem.counts]))
    length = p_norm(np.ravel(result.w), problem.penalty.norm)
    return least / length if length > 0.0 else 0.0
