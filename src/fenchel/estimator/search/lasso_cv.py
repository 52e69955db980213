"""The Lasso and the elastic net whose alpha is chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fenchel.data.design import Vector
from fenchel.estimator.objective import check_hints, elastic, l1_ratio_of
from fenchel.estimator.search.alpha_search import AlphaSearch, Data
from fenchel.estimator.search.cross_validation import folds_of
from fenchel.estimator.sparse.lasso import SparseRegression
from fenchel.estimator.sparse.lasso_path import elastic_net_path, lasso_path
from fenchel.problem.penalties import Penalty


class SparseRegressionCV(AlphaSearch, SparseRegression):
    """What regressions share that choose alpha by their squared error on folds."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose alpha, and fit to the targets y; weights count in fits and in errors."""
        X, y = self._validate(X, y)
        y = np.asarray(y, dtype=np.float64)
        weights = self._weights(sample_weight, X)
        data = Data(X, y, weights, None if sample_weight is None else weights)
        self.mse_path_ = np.squeeze(self._search(data, folds_of(self.cv, X, y, classifier=False)))
        self._take_shape_of(y)
        return self

    def _stated(self, data: Data) -> list[Any]:
        return self._problems(data.X, data.y, data.weights)

    def _error(self, scores: Vector, test: Data) -> float:
        """Twice the mean loss: the mean squared error."""
        return 2.0 * float(np.average(self._loss().value(scores[0], test.y), weights=test.counted))


class ElasticNetCV(SparseRegressionCV):
    """The elastic net with the best of some alphas and l1_ratios, certified.

    Minimises what `ElasticNet` does. alpha and l1_ratio are chosen by the squared error on folds, along paths of alphas
    on which each fit begins at its neighbour's weights and multipliers; the last fit, to all samples, begins at the
    mean over the folds.

    Parameters
    ----------
    l1_ratio : float or array of numbers between 0 and 1, default 0.5
        0 needs alphas.
    eps : float, default 1e-3
        The smallest alpha as a share of the largest.
    alphas : int or array of positive numbers, default 100
        A number of alphas, which begin at the least that makes all weights zero; or the alphas. None is 100.
    fit_intercept : bool, default True
    precompute : bool, "auto" or array, default "auto"
        A hint to scikit-learn's algorithm; the minimiser is the same, so any value will do.
    max_iter : int, optional
        Most steps of each fit.
    tol : float, default 1e-4
        Every fit ends when its certified gap is at most tol times the objective.
    cv : int, splitter, iterable or None
        None is five folds.
    copy_X : bool, default True
        X is never changed, so either value will do.
    verbose : int, default 0
        Anything but 0 shows progress bars, one fold after the other.
    n_jobs : int, optional
        Folds at a time: None is one, -1 is as many as there are cores.
    positive : bool, default False
        True is refused: no solver here keeps w >= 0.
    random_state : int, RandomState or None
    selection : {"cyclic", "random"}, default "cyclic"
        A hint to scikit-learn's algorithm; either will do.
    n_alphas : int, optional
        What `alphas` was before scikit-learn 1.7, where it is a number.
    rule : {"best", "one_standard_error"}, default "best"
        The least mean error; or the largest alpha (with the same l1_ratio) whose mean error exceeds it by no more than
        its standard error.
    solver : str, default "auto"

    Attributes
    ----------
    alpha_, l1_ratio_ : float
    alphas_ : array of shape (alphas,), or (ratios, alphas)
    mse_path_ : array of shape (alphas, folds), or (ratios, alphas, folds)
    coef_, intercept_, sparse_coef_, certified_zeros_, dual_coef_, dual_gap_, certificate_, trace_, n_iter_
        As in `ElasticNet`, of the last fit, to all samples.

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

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        cv: Any = None,
        copy_X: bool = True,
        verbose: int = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_alphas: int | None = None,
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_alphas = n_alphas
        self.rule = rule
        self.solver = solver

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive)
        self._check_search()

    def _ratios(self) -> list[float]:
        return ratios_of(self.l1_ratio)

    def _choose(self, alpha: Any, ratio: float) -> None:
        super()._choose(alpha, ratio)
        self.l1_ratio_ = ratio

    def _penalty_at(self, alpha: float, ratio: float) -> Penalty:
        return elastic(alpha, ratio)


class LassoCV(SparseRegressionCV):
    """The Lasso with the best of some alphas, certified.

    Minimises what `Lasso` does. alpha is chosen by the squared error on folds, along paths of alphas on which each fit
    begins at its neighbour's weights and multipliers; the last fit, to all samples, begins at the mean over the folds.

    Parameters
    ----------
    eps, alphas, fit_intercept, precompute, max_iter, tol, copy_X, cv, verbose, n_jobs, positive, random_state, \
selection, n_alphas, rule, solver
        As in `ElasticNetCV`.

    Attributes
    ----------
    alpha_ : float
    alphas_ : array of shape (alphas,)
    mse_path_ : array of shape (alphas, folds)
    coef_, intercept_, sparse_coef_, certified_zeros_, dual_coef_, dual_gap_, certificate_, trace_, n_iter_
        As in `ElasticNet`, of the last fit, to all samples.

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

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int | None = None,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        n_alphas: int | None = None,
        rule: str = "best",
        solver: Any = "auto",
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.n_alphas = n_alphas
        self.rule = rule
        self.solver = solver

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive)
        self._check_search()

    def _penalty_at(self, alpha: float, ratio: float) -> Penalty:
        return elastic(alpha, ratio)


def ratios_of(l1_ratio: Any) -> list[float]:
    """One l1_ratio or several, checked."""
    values = [l1_ratio_of(ratio) for ratio in np.ravel(np.asarray(l1_ratio, dtype=object))]
    if not values:
        raise ValueError("l1_ratio is empty; give at least one")
    return values
