"""Logistic regression with many zeros, alone and with alpha chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from fenchel.data import encode_labels
from fenchel.data.design import Vector
from fenchel.estimator.base import CertifiedZeros
from fenchel.estimator.classification import one_label_each
from fenchel.estimator.logistic import LogisticClassification
from fenchel.estimator.objective import elastic, l1_ratio_of, positive_alpha
from fenchel.estimator.search.alpha_search import AlphaSearch, Data, Walk
from fenchel.estimator.search.cross_validation import folds_of, scorer_of
from fenchel.estimator.search.lasso_cv import ratios_of
from fenchel.problem.penalties import Penalty


class SparseLogisticClassification(CertifiedZeros, LogisticClassification):
    """What both share: one problem for each class against the rest, and an intercept that is not penalised."""

    def _is_softmax(self) -> bool:
        return False

    def _constant(self) -> float:
        return 0.0


class SparseLogisticRegression(SparseLogisticClassification):
    """Logistic regression with an L1 penalty or an elastic net, certified.

    Minimises ::

        1/W sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)

    with the weights c_i of the classes, W = sum_i s_i c_i, and an intercept b that is not penalised: what
    `LogisticRegression(penalty="l1", C=1 / (alpha W))` minimises, in the form of the Lasso. More than two classes: one
    model for each against the rest.

    Parameters
    ----------
    alpha : float, default 0.01
    l1_ratio : float, default 1.0
        Between 0 (only L2) and 1 (only L1).
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None
    solver : str, default "auto"
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    max_iter, max_seconds : limits, optional
    random_state : int, RandomState or None
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    verbose : int, default 0
        Anything but 0 shows a progress bar.
    n_jobs : int, optional
        Threads: None is one, -1 is all cores, -2 all but one.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (classes, d)
    intercept_ : array of shape (1,), or (classes,)
    certified_zeros_ : array of booleans, of the shape of `coef_`
        Which weights are proven to be zero in the exact optimum.
    dual_coef_ : array of shape (1, n), or (classes, n)
    classes_ : the labels
    certificate_ : Certificate
        Of the objective; summed over the classes.
    trace_ : Trace, or a list of them
    n_iter_ : array of the steps for each class

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import SparseLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegression(alpha=0.1, tol=1e-6).fit(scale(X), y)
    >>> int((model.coef_ == 0.0).sum()), int(model.certified_zeros_.sum())
    (26, 26)
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        self._penalty(1.0)

    def _penalty(self, total_weight: float) -> Penalty:
        return elastic(positive_alpha(self.alpha), l1_ratio_of(self.l1_ratio))


class SparseLogisticRegressionCV(AlphaSearch, SparseLogisticClassification):
    """Sparse logistic regression with the best of some alphas and l1_ratios, certified.

    Minimises what `SparseLogisticRegression` does. alpha and l1_ratio are chosen on folds, along paths of alphas on
    which each fit begins at its neighbour's weights and multipliers; the last fit, to all samples, begins at the mean
    over the folds.

    Parameters
    ----------
    l1_ratio : float or array of numbers between 0 and 1, default 1.0
        0 needs alphas.
    eps : float, default 1e-2
        The smallest alpha as a share of the largest.
    alphas : int or array of positive numbers, default 100
        A number of alphas, which begin at the least that makes all weights zero; or the alphas.
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None
        "balanced" counts the samples of all folds.
    cv : int, splitter, iterable or None
        None is five stratified folds.
    scoring : str, callable or None
        None is minus the mean logarithmic loss; weights count where they are given.
    rule : {"best", "one_standard_error"}, default "best"
        As in `ElasticNetCV`.
    solver : str, default "auto"
    tol : float, default 1e-4
        Every fit ends when its certified gap is at most tol times the objective.
    max_iter : int, optional
        Most steps of each fit.
    random_state : int, RandomState or None
    verbose : int, default 0
        Anything but 0 shows progress bars, one fold after the other.
    n_jobs : int, optional
        Folds at a time: None is one, -1 is as many as there are cores.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
    alphas_ : array of shape (alphas,), or (ratios, alphas)
    score_path_ : array of shape (alphas, folds), or (ratios, alphas, folds)
    coef_, intercept_, certified_zeros_, dual_coef_, classes_, certificate_, trace_, n_iter_
        As in `SparseLogisticRegression`, of the last fit, to all samples.

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

    def __init__(
        self,
        *,
        l1_ratio: Any = 1.0,
        eps: float = 1e-2,
        alphas: Any = 100,
        fit_intercept: bool = True,
        class_weight: Any = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "best",
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        if self.scoring is not None:
            scorer_of(self, self.scoring)
        self._check_search()

    def _ratios(self) -> list[float]:
        return ratios_of(self.l1_ratio)

    def _choose(self, alpha: Any, ratio: float) -> None:
        super()._choose(alpha, ratio)
        self.l1_ratio_ = ratio

    def _penalty_at(self, alpha: float, ratio: float) -> Penalty:
        return elastic(alpha, ratio)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose alpha, and fit to the labels y; weights count in fits and in scores."""
        one_label_each(y)
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        weights = self._two_classes(codes, self._weights(sample_weight, X))
        data = Data(X, codes, self._by_label(codes, weights), None if sample_weight is None else weights)
        self.score_path_ = -np.squeeze(self._search(data, folds_of(self.cv, X, y, classifier=True)))
        return self

    def _stated(self, data: Data) -> list[Any]:
        return self._weighted_problems(data.X, data.y, data.weights)

    def _check_part(self, y: Any, weights: Vector) -> None:
        empty = np.flatnonzero(np.bincount(y, weights, len(self.classes_)) == 0.0)
        if len(empty):
            raise ValueError(
                f"the class {self.classes_[empty[0]]} has no weight outside of a fold; use fewer folds, or leave it out"
            )

    def _error(self, scores: Vector, test: Data) -> float:
        """The mean logarithmic loss."""
        loss = -self._log_probabilities(scores[0] if len(scores) == 1 else scores.T)[np.arange(len(test.y)), test.y]
        return float(np.average(loss, weights=test.counted))

    def _errors(self, models: Walk, test: Data) -> list[float]:
        """Minus the scores of the models, if somebody else says what they are."""
        if self.scoring is None:
            return super()._errors(models, test)
        score, errors = scorer_of(self, self.scoring), []
        weighted = {} if test.counted is None else {"sample_weight": test.counted}
        for weights, intercept in zip(models.weights, models.intercepts, strict=True):
            model = SparseLogisticRegression()
            model.coef_, model.intercept_ = np.zeros((len(weights), self.n_features_in_)), intercept
            for row, (places, values) in zip(model.coef_, weights, strict=True):
                row[places] = values
            model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
            errors.append(-float(score(model, test.X, self.classes_[test.y], **weighted)))
        return errors
