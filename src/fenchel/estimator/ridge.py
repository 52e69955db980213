"""Ridge regression and its classifier, with the names and the constants of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from fenchel.data import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import VerboseFitParameters, sample_weights, steps_of
from fenchel.estimator.classification import Classification, fit_classes
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, elastic, nonnegative_alpha
from fenchel.estimator.regression import Regression, fit_targets
from fenchel.problem import Problem
from fenchel.problem.checks import require_flag
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import NoPenalty, Penalty
from fenchel.problem.problem import lam_from_sum
from fenchel.solver import Result
from fenchel.steps.unpenalised import coordinates
from fenchel.steps.unpenalised.coordinates import Coordinates


def ridge_penalty(alpha: object, total_weight: float, nonnegative: bool = False) -> Penalty:
    """The penalty of sum_i s_i r_i^2 + alpha |w|^2 divided by 2 W."""
    return elastic(lam_from_sum(2.0 * nonnegative_alpha(alpha), total_weight, loss_factor=2.0), 0.0, nonnegative)


def ridge_objective(alphas: Iterable[object], fit_intercept: bool, nonnegative: bool = False) -> Objective:
    """Least squares with one alpha, or with one for each target."""
    penalties = tuple(partial(ridge_penalty, alpha, nonnegative=nonnegative) for alpha in alphas)
    return Objective(Squared(), penalties if len(penalties) > 1 else penalties[0], fit_intercept)


def store_steps_and_solver(model: Regression | Classification, results: list[Result]) -> None:
    """Set the attributes of scikit-learn's ridge estimators."""
    model.n_iter_, model.solver_ = steps_of(results), results[0].solver


def store_rank(model: Ridge, X: MatrixLike, sample_weight: VectorLike | None) -> None:
    """Set `rank_` where there is no penalty: of the columns, centred if there is an intercept."""
    model.__dict__.pop("rank_", None)  # of an earlier fit
    if any(nonnegative_alpha(alpha) == 0.0 for alpha in _each(model.alpha)):
        s = sample_weights(sample_weight, X)
        problem = Problem(Design(X), np.zeros(len(s)), Squared(), NoPenalty(), s, model.fit_intercept)
        if coordinates.fit(problem):
            model.rank_ = Coordinates.of(problem).rank


@dataclass(eq=False, repr=False)
class RidgeParameters(VerboseFitParameters):
    """Parameters of both ridge estimators."""

    _their_solvers: ClassVar[frozenset[str]] = frozenset(
        {"svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}
    )

    alpha: VectorLike = 1.0
    _: KW_ONLY
    copy_X: bool = True
    positive: bool = False


@documented("targets")
class Ridge(Watched, RidgeParameters, Regression):
    """Least squares with an L2 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_2^2

    for each target, with an unpenalised intercept b.

    Parameters
    ----------
    alpha : float or array of one for each target, default 1.0
        0 is no penalty: the least squares of minimum norm.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective. scikit-learn's direct solvers are exact
        up to rounding.

    Attributes
    ----------
    dual_coef_ : array of shape (n,), or (targets, n)
        The residuals y_i - x_i.w - b, the multipliers for the mean loss.
    certificate_ : Certificate
        Of the objective divided by twice the sum of the weights; summed over the targets.
    n_iter_ : array of the steps for each target
    rank_ : int
        If there is no penalty: how many columns of X are independent (centred ones, if there is an intercept).
    solver_ : str
        The solver that was used.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> Ridge(alpha=0.1, tol=1e-8).fit(X, y).certificate_.ok
    True
    """

    _several_targets: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        require_flag(self.positive, "positive")
        require_flag(self.copy_X, "copy_X")
        for alpha in _each(self.alpha):
            nonnegative_alpha(alpha)

    def _objective(self) -> Objective:
        return ridge_objective(_each(self.alpha), self.fit_intercept, bool(self.positive))

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        store_steps_and_solver(self, fit_targets(self, X, y, sample_weight))
        store_rank(self, X, sample_weight)
        return self


def _each(alpha: VectorLike) -> list[object]:
    return list(np.ravel(np.asarray(alpha, dtype=object)))


@documented("classes")
class RidgeClassifier(Watched, RidgeParameters, Classification):
    """Ridge regression on labels -1 and +1, certified.

    Minimises sum_i s_i c_i (x_i.w + b - y_i)^2 + alpha |w|_2^2 for each class against the rest (once for two classes),
    as scikit-learn's class of this name does, with class weights c_i.

    Attributes
    ----------
    coef_ : array of shape (d,) for two classes, or (classes, d)
        As in scikit-learn, whose documentation says (1, d).
    certificate_ : Certificate
        Of the objective divided by twice the sum of the weights; summed over the classes.
    n_iter_ : array of the steps for each class
    solver_ : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> len(model.certificate_.parts)
    3
    """

    alpha: float = 1.0

    def _check_parameters(self) -> None:
        require_flag(self.positive, "positive")
        require_flag(self.copy_X, "copy_X")
        nonnegative_alpha(self.alpha)

    def _objective(self) -> Objective:
        return ridge_objective([self.alpha], self.fit_intercept, bool(self.positive))

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        results = fit_classes(self, X, y, sample_weight)
        store_steps_and_solver(self, results)
        if len(results) == 1:
            self.coef_ = self.coef_[0]
        return self
