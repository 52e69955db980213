"""The Lasso and the elastic net with alpha chosen by cross-validation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import Features, fit_problems, sample_weights, solver_options, validated
from fenchel.estimator.documentation import documented
from fenchel.estimator.objective import Objective, check_hints, elastic
from fenchel.estimator.regression import SparseRegression, store_zeros, take_shape_of, target_problems
from fenchel.estimator.search.cross_validation import (
    AlphaSearch,
    AlphaSearchParameters,
    FoldData,
    FoldModels,
    alphas_of,
    check_search,
    folds_of,
    ratios_of,
    search_alpha,
    some_weight,
)
from fenchel.estimator.search.routing import routed
from fenchel.estimator.sparse.gram import require_gram
from fenchel.estimator.sparse.lasso import LassoHints
from fenchel.estimator.sparse.lasso_path import elastic_net_path, lasso_path
from fenchel.problem import Problem
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import Penalty


class SparseRegressionCV(AlphaSearchParameters, SparseRegression):
    """Sparse regressions with alpha chosen by the squared error on folds."""

    alpha_: float

    def _loss(self) -> Loss:
        return Squared()

    @abstractmethod
    def _penalty(self, alpha: float, ratio: float) -> Penalty:
        """The penalty for one alpha and l1_ratio."""

    def _asked(self) -> tuple[int | Vector, list[float]]:
        """The number of alphas, or the alphas; and the l1_ratios."""
        own = self.get_params(deep=False)
        return alphas_of(self.alphas, own.get("n_alphas")), ratios_of(own.get("l1_ratio", 1.0))

    def _check_parameters(self) -> None:
        check_search(self.rule, *self._asked(), self.eps)

    def _objective_at(self, alpha: float, ratio: float) -> Objective:
        return Objective(self._loss(), lambda total: self._penalty(alpha, ratio), self.fit_intercept)

    def _objective(self) -> Objective:
        return self._objective_at(self.alpha_, getattr(self, "l1_ratio_", 1.0))

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None, **params: Any) -> Self:
        """Choose alpha, and fit to the targets y; sample weights apply to fits and errors.

        Other keywords, such as groups, are for the splitter, by scikit-learn's metadata routing.
        """
        features, targets = validated(self, X, y)
        y = np.asarray(targets, dtype=np.float64)
        self._check_data(features, sample_weight)
        weights = sample_weights(sample_weight, features)
        data = FoldData(features, y, weights, None if sample_weight is None else weights)
        grid = *self._asked(), self.eps, self.rule
        search = AlphaSearch(*grid, self._penalty, self._problems, self._errors, some_weight)
        routes = routed(self, data.error_weights, params)
        folds = folds_of(self.cv, features, y, classifier=False, params=routes.split)
        best = search_alpha(search, data, folds, solver_options(self))
        self.alpha_, self.alphas_, self.mse_path_ = best.alpha, best.alphas, np.squeeze(best.errors)
        if hasattr(self, "l1_ratio"):
            self.l1_ratio_ = best.ratio
        results = fit_problems(self, best.problems, best.starts, of="targets")
        take_shape_of(self, y)
        store_zeros(self, results)
        return self

    def _problems(self, data: FoldData) -> list[Problem]:
        return target_problems(self._objective_at(1.0, 1.0), data.X, data.y, data.weights)

    def _errors(self, models: FoldModels, test: FoldData) -> list[float]:
        """Twice the mean loss: the mean squared error."""
        loss = self._loss()
        each = (loss.value(scores[0], test.y) for scores in models.scores(test.X))
        return [2.0 * float(np.average(values, weights=test.error_weights)) for values in each]


@dataclass(eq=False, repr=False, kw_only=True)
class LassoSearch(LassoHints, SparseRegressionCV):
    """The Lasso and the elastic net with a search for alpha."""

    precompute: object = "auto"
    n_alphas: int | None = None

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive, self.precompute, self.copy_X)
        super()._check_parameters()

    def _check_data(self, X: Features, sample_weight: VectorLike | None) -> None:
        if not isinstance(self.precompute, bool | np.bool_ | str | None):
            require_gram(self.precompute, X, sample_weight)

    def _penalty(self, alpha: float, ratio: float) -> Penalty:
        return elastic(alpha, ratio, bool(self.positive))


@documented("target", "zeros", "sparse", "alpha_path")
class ElasticNetCV(LassoSearch):
    """The elastic net with alpha and l1_ratio chosen by cross-validation, certified.

    The objective is that of `ElasticNet`. alpha and l1_ratio are chosen by the squared error on folds, along paths of
    alphas with warm starts; the last fit, to all samples, starts from the mean over the folds.

    Parameters
    ----------
    l1_ratio : float or array of numbers between 0 and 1, default 0.5
        0 requires `alphas`.

    Attributes
    ----------
    l1_ratio_ : float
    alphas_ : array of shape (alphas,), or (ratios, alphas)
    mse_path_ : array of shape (alphas, folds), or (ratios, alphas, folds)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import ElasticNetCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.9], alphas=[0.0001, 0.001, 0.01]).fit(X, y)
    >>> float(model.alpha_), model.l1_ratio_, model.mse_path_.shape
    (0.0001, 0.9, (2, 3, 5))
    """

    path = staticmethod(elastic_net_path)

    _: KW_ONLY
    l1_ratio: VectorLike = 0.5


@documented("target", "zeros", "sparse", "alpha_path")
class LassoCV(LassoSearch):
    """The Lasso with alpha chosen by cross-validation, certified.

    The objective is that of `Lasso`. alpha is chosen by the squared error on folds, along paths of alphas with warm
    starts; the last fit, to all samples, starts from the mean over the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import LassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> best = LassoCV(alphas=20).fit(X, y)
    >>> sparser = LassoCV(alphas=20, rule="one_standard_error").fit(X, y)
    >>> int((best.coef_ != 0).sum()), int((sparser.coef_ != 0).sum())
    (9, 6)
    """

    path = staticmethod(lasso_path)
