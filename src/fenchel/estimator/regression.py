"""The base of all regressions, for one or several targets."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from fenchel.data import Design
from fenchel.data.convert import as_vector
from fenchel.data.typing import Matrix, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import Features, LinearEstimator, fit_problems, sample_weights, validated
from fenchel.estimator.exchange.callbacks import watched
from fenchel.estimator.exchange.interface import as_csr
from fenchel.estimator.objective import Objective
from fenchel.problem import Problem
from fenchel.solver import Result


class Regression(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Regression estimators."""

    #: Whether y may have several columns.
    _several_targets: ClassVar[bool] = False

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        fit_targets(self, X, y, sample_weight)
        return self

    def _check_data(self, X: Features, sample_weight: VectorLike | None) -> None:
        """Raise for parameters that do not fit the data."""

    def predict(self, X: MatrixLike) -> Matrix:
        """Predicted targets."""
        scores = self._scores(X)
        return scores if self.coef_.ndim == 2 else scores[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_targets
        tags.target_tags.single_output = True
        return tags


class SparseRegression(Regression):
    """Sparse regressions: proven zeros, and the gap by scikit-learn's name."""

    dual_gap_: Vector | np.float64

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        store_zeros(self, fit_targets(self, X, y, sample_weight))
        return self

    @property
    def sparse_coef_(self) -> Any:
        """The weights as a CSR matrix (or array, by scikit-learn's `sparse_interface`), with a row for each target."""
        return as_csr(np.atleast_2d(self.coef_))


def fit_targets(
    model: Regression, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None, **checks: object
) -> list[Result]:
    """Fit a problem for each target, and set the attributes of the model; `checks` are options of validate_data."""
    features, targets = validated(model, X, y, multi_output=model._several_targets, **checks)
    model._check_data(features, sample_weight)
    weights = sample_weights(sample_weight, features)
    problems = target_problems(model._objective(), features, targets, weights)
    fit = partial(fit_problems, model, problems, of="targets")
    results = watched(model, X, y, sample_weight, len(problems), fit)
    take_shape_of(model, targets)
    return results


def target_problems(objective: Objective, X: MatrixLike, y: VectorLike, weights: Vector) -> list[Problem]:
    """One problem for each target."""
    targets = columns(y)
    return objective.problems(Design(X, constant=objective.constant), targets, [weights] * len(targets))


def take_shape_of(model: Regression, y: VectorLike) -> None:
    """Give the attributes the shapes of y: without an axis of targets if there is one target."""
    if np.ndim(y) == 1 or np.shape(y)[1] == 1:
        model.coef_, model.dual_coef_ = model.coef_[0], model.dual_coef_[0]
    if np.ndim(y) == 1:
        model.intercept_ = model.intercept_[0]


def store_zeros(model: SparseRegression, results: list[Result]) -> None:
    """Set the attributes of sparse models."""
    gaps = np.array([result.certificate.gap for result in results])
    model.dual_gap_ = gaps if len(gaps) > 1 else gaps[0]
    model.certified_zeros_ = np.reshape(model.certificate_.zeros_of_fit(), model.coef_.shape)


def columns(y: VectorLike) -> list[Vector]:
    """The targets, one vector each."""
    y = np.asarray(y)
    return [as_vector(column, len(y), "y") for column in (y.T if y.ndim == 2 else [y])]
