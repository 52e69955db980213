"""Ridge regression whose alpha is chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from fenchel.data.design import Vector
from fenchel.estimator.objective import one_of, positive_alpha
from fenchel.estimator.regression import columns
from fenchel.estimator.ridge import Ridge, RidgeRegression, ridge_penalty
from fenchel.estimator.search.cross_validation import folds_of, path, score_on, scorer_of, warn_of
from fenchel.estimator.search.leave_one_out import LeaveOneOut


class RidgeCV(RidgeRegression):
    """Ridge regression with the best of some alphas, certified.

    Minimises what `Ridge` does. Without `cv`, alpha is chosen by leaving out one sample at a time, exactly and in
    closed form; with it, on folds, along a path of alphas on which each fit begins at its neighbour's.

    Parameters
    ----------
    alphas : array of positive numbers, default (0.1, 1.0, 10.0)
    fit_intercept : bool, default True
    scoring : str, callable or None
        None is minus the mean squared error of samples left out (each multiplied by its weight), and R^2 on folds.
    cv : int, splitter, iterable or None
        None leaves out one sample at a time.
    gcv_mode : {None, "auto", "svd", "eigen"}
        A hint to scikit-learn's algorithm; the errors are the same, so any value will do.
    store_cv_results : bool, default False
        Keep `cv_results_`; for cv=None.
    alpha_per_target : bool, default False
        An alpha for each target; for cv=None.
    tol : float, default 1e-6
        Every fit ends when its certified gap is at most tol times the objective.
    solver : str, default "auto"
    max_iter : int, optional
    random_state : int, RandomState or None
    verbose : int, default 0
    n_threads : int or None, default 1

    Attributes
    ----------
    alpha_ : float, or an array of one for each target
    best_score_ : float, or an array of one for each target
    cv_results_ : array of shape (n, alphas), or (n, targets, alphas)
        Squared errors, or predictions if there is a `scoring`, of the samples left out.
    coef_, intercept_, dual_coef_, certificate_, trace_, n_iter_, solver_
        As in `Ridge`, of the last fit, to all samples.

    Notes
    -----
    Weights count in scores on folds. Leaving out a sample of weight 2 is not leaving out one of two.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y).alpha_
    0.01
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        tol: float = 1e-6,
        solver: Any = "auto",
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_threads: int | None = 1,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.tol = tol
        self.solver = solver
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        one_of("gcv_mode", self.gcv_mode, (None, "auto", "svd", "eigen"))
        for name in ("store_cv_results", "alpha_per_target"):
            if self.cv is not None and getattr(self, name):
                raise ValueError(f"{name}=True needs cv=None: it is about samples left out one at a time")
        if not self._candidates():
            raise ValueError("alphas is empty; give at least one")

    def _candidates(self) -> list[float]:
        return [positive_alpha(alpha) for alpha in np.ravel(np.asarray(self.alphas, dtype=object))]

    def _alphas(self) -> NDArray[Any]:
        return np.ravel(self.alpha_)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose alpha, and fit to the targets y."""
        X, y = self._validate(X, y, multi_output=True)
        y = np.asarray(y, dtype=np.float64)
        weights = self._weights(sample_weight, X)
        given = None if sample_weight is None else weights
        starts: list[Any] | None = None
        if self.cv is None:
            decomposition = LeaveOneOut.of(X, weights, self.fit_intercept)
            self._leave_one_out(decomposition, y, given)
            starts = self._closed_form(decomposition, X, y)
        else:
            self._cross_validate(X, y, weights, given)
        self._solve(self._problems(X, y, sample_weight), starts)
        self._take_shape_of(y)
        return self

    def _leave_one_out(self, decomposition: LeaveOneOut, y: Vector, given: Vector | None) -> None:
        alphas, targets = self._candidates(), columns(y)
        # alphas x n x targets
        errors = np.stack([np.column_stack([decomposition.errors(t, alpha) for t in targets]) for alpha in alphas])
        if self.scoring is None:
            results = errors**2
            each = -results.mean(axis=1)
            scores = each if self._per_target(y) else each.mean(axis=1, keepdims=True)
        else:
            root = decomposition.root[:, None]
            results = np.column_stack(targets) - np.divide(errors, root, out=np.zeros_like(errors), where=root > 0.0)
            scores = self._scored(results, y, given)
        best = scores.argmax(axis=0)
        chosen, top = np.asarray(alphas)[best], scores[best, np.arange(scores.shape[1])]
        several = self._per_target(y)
        self.alpha_: Any = chosen if several else float(chosen[0])
        self.best_score_: Any = top if several else top[0]
        if self.store_cv_results:
            self.cv_results_ = np.moveaxis(results, 0, -1) if y.ndim == 2 else results[:, :, 0].T

    def _per_target(self, y: Vector) -> bool:
        return bool(self.alpha_per_target) and y.ndim == 2 and y.shape[1] > 1

    def _scored(self, predictions: Vector, y: Vector, given: Vector | None) -> Vector:
        """The scorer's opinion of the predictions for each alpha; alphas x targets, or one column."""
        scorer = scorer_of(self, self.scoring)
        weighted = {} if given is None else {"sample_weight": given}
        if self._per_target(y):
            pairs = [[(p[:, k], y[:, k]) for k in range(y.shape[1])] for p in predictions]
        else:
            pairs = [[(p if y.ndim == 2 else p[:, 0], y)] for p in predictions]
        return np.array([[scorer(_Predicted(), p, t, **weighted) for p, t in row] for row in pairs])

    def _closed_form(self, decomposition: LeaveOneOut, X: Any, y: Vector) -> list[Any]:
        """The minimiser for each target, which the solver then only has to certify."""
        targets = columns(y)
        starts = []
        for target, alpha in zip(targets, np.broadcast_to(self._alphas(), len(targets)), strict=True):
            w, b = decomposition.weights(X, target, float(alpha))
            starts.append((w, b, target - np.asarray(X @ w).ravel() - b))
        return starts

    def _cross_validate(self, X: Any, y: Vector, weights: Vector, given: Vector | None) -> None:
        scorer, alphas = scorer_of(self, self.scoring), self._candidates()
        self.alpha_ = alphas[0]
        scores, done = [], []
        for train, test in folds_of(self.cv, X, y, classifier=False):
            problems = self._by_rows(self._problems(X[train], y[train], weights[train]))
            penalties = [ridge_penalty(alpha, float(weights[train].sum())) for alpha in alphas]
            paths = [path(problem, penalties, self._options()) for problem in problems]
            done += [result for results in paths for result in results]
            models = [self._fitted([p[k].w for p in paths], [p[k].b for p in paths], y) for k in range(len(alphas))]
            scores.append([score_on(scorer, model, X, y, given, test) for model in models])
        warn_of(done)
        mean = np.mean(scores, axis=0)
        best = int(mean.argmax())
        self.alpha_, self.best_score_ = alphas[best], mean[best]

    def _fitted(self, weights: list[Vector], shifts: list[float], y: Vector) -> Ridge:
        """A model as a scorer wants it."""
        model = Ridge()
        model.coef_, model.intercept_, model.dual_coef_ = (
            np.stack(weights),
            np.array(shifts),
            np.empty((len(shifts), 0)),
        )
        model.n_features_in_ = self.n_features_in_
        model._take_shape_of(y)
        return model


class _Predicted(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A model whose predictions are known."""

    def predict(self, X: Any) -> Any:
        """What is given."""
        return X
