"""Sparse logistic regression with alpha and l1_ratio chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np

from fenchel.data import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import fit_problems, sample_weights, solver_options
from fenchel.estimator.classification import encoded, signs_of, two_classes, with_class_weights
from fenchel.estimator.documentation import documented
from fenchel.estimator.logistic import log_probabilities
from fenchel.estimator.objective import Objective, elastic
from fenchel.estimator.search.cross_validation import (
    AlphaSearch,
    AlphaSearchParameters,
    FoldData,
    FoldModels,
    Scoring,
    alphas_of,
    check_search,
    complete_classes,
    folds_of,
    ratios_of,
    scorer_of,
    search_alpha,
    some_weight,
    warn_missing,
    weight_argument,
    with_labels,
)
from fenchel.estimator.search.routing import routed
from fenchel.estimator.sparse.sparse_logistic import (
    SparseLogisticModel,
    SparseLogisticRegression,
    store_zeros_and_steps,
)
from fenchel.problem import Problem
from fenchel.problem.losses import Logistic


@documented("classes", "zeros")
class SparseLogisticRegressionCV(AlphaSearchParameters, SparseLogisticModel):
    """Sparse logistic regression with alpha and l1_ratio chosen by cross-validation, certified.

    The objective is that of `SparseLogisticRegression`. alpha and l1_ratio are chosen on folds, along paths of alphas
    with warm starts; the last fit, to all samples, starts from the mean over the folds.

    Parameters
    ----------
    l1_ratio : float or array of numbers between 0 and 1, default 1.0
        0 requires `alphas`.
    class_weight : dict, "balanced" or None
        "balanced" counts the samples of all folds.
    scoring : str, callable or None
        None is minus the mean logarithmic loss; sample weights are used if given.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
    alphas_ : array of shape (alphas,), or (ratios, alphas)
    score_path_ : array of shape (alphas, folds), or (ratios, alphas, folds)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import SparseLogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegressionCV(alphas=5, cv=3, tol=1e-3).fit(scale(X), y)
    >>> model.score_path_.shape, model.certificate_.ok
    ((5, 3), True)
    """

    _: KW_ONLY
    l1_ratio: VectorLike = 1.0
    eps: float = 1e-2
    scoring: Scoring = None

    def _check_parameters(self) -> None:
        if self.scoring is not None:
            scorer_of(self, self.scoring)
        check_search(self.rule, alphas_of(self.alphas), ratios_of(self.l1_ratio), self.eps)

    def _objective(self) -> Objective:
        return self._objective_at(self.alpha_, self.l1_ratio_)

    def _objective_at(self, alpha: float, ratio: float) -> Objective:
        return Objective(Logistic(), lambda total: elastic(alpha, ratio), self.fit_intercept)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None, **params: Any) -> Self:
        """Choose alpha, and fit to the labels y; sample weights apply to fits and scores.

        Other keywords, such as groups, are for the splitter, by scikit-learn's metadata routing.
        """
        features, codes = encoded(self, X, y)
        weights = two_classes(codes, sample_weights(sample_weight, features), "sample_weight")
        full = with_class_weights(self, codes, weights)
        data = FoldData(features, codes, full, None if sample_weight is None else weights)
        grid = alphas_of(self.alphas), ratios_of(self.l1_ratio), self.eps, self.rule
        errors = self._log_losses if self.scoring is None else self._minus_scores
        search = AlphaSearch(*grid, elastic, self._problems, errors, some_weight, complete_classes)
        routes = routed(self, data.error_weights, params)
        folds = folds_of(self.cv, features, self.classes_[codes], classifier=True, params=routes.split)
        warn_missing(self.classes_, codes, full, folds)
        best = search_alpha(search, data, folds, solver_options(self))
        self.alpha_, self.l1_ratio_, self.alphas_ = best.alpha, best.ratio, best.alphas
        self.score_path_ = -np.squeeze(best.errors)
        store_zeros_and_steps(self, fit_problems(self, best.problems, best.starts))
        return self

    def _problems(self, data: FoldData) -> list[Problem]:
        signs = signs_of(data.y, len(self.classes_))
        return self._objective_at(1.0, 1.0).problems(Design(data.X), signs, [data.weights] * len(signs))

    def _log_losses(self, models: FoldModels, test: FoldData) -> list[float]:
        """The mean logarithmic loss for each alpha."""
        losses = []
        for scores in models.scores(test.X):
            each = log_probabilities(scores[0] if len(scores) == 1 else scores.T, is_softmax=False)
            losses.append(float(np.average(-each[np.arange(len(test.y)), test.y], weights=test.error_weights)))
        return losses

    def _minus_scores(self, models: FoldModels, test: FoldData) -> list[float]:
        """Minus the scores of the models by `scoring`."""
        score, errors = with_labels(scorer_of(self, self.scoring), self.classes_), []
        for weights, intercept in zip(models.weights, models.intercepts, strict=True):
            model = SparseLogisticRegression()
            model.coef_, model.intercept_ = np.zeros((len(weights), self.n_features_in_)), intercept
            for row, (places, values) in zip(model.coef_, weights, strict=True):
                row[places] = values
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            errors.append(-float(score(model, test.X, self.classes_[test.y], **weight_argument(test.error_weights))))
        return errors
