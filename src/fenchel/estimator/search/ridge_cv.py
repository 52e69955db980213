"""Ridge regression with alpha chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import (
    Features,
    StartLike,
    fit_problems,
    sample_weights,
    solver_options,
    stored_for,
    validated,
    warn_short,
)
from fenchel.estimator.documentation import documented
from fenchel.estimator.objective import Objective, nonnegative_alpha, one_of
from fenchel.estimator.regression import Regression, columns, take_shape_of, target_problems
from fenchel.estimator.ridge import Ridge, ridge_objective, ridge_penalty, store_steps_and_solver
from fenchel.estimator.search.cross_validation import (
    CrossValidation,
    Scoring,
    comparable,
    folds_of,
    path_results,
    require_no_negatives,
    score_on,
    scorer_of,
    some_weight,
)
from fenchel.estimator.search.leave_one_out import LeaveOneOut
from fenchel.estimator.search.routing import Routed, RoutedSearch, asking_for_weights, routed


@documented("targets")
class RidgeCV(RoutedSearch, Regression):
    """Ridge regression with alpha chosen by cross-validation, certified.

    The objective is that of `Ridge`. Without `cv`, alpha is chosen by exact leave-one-out errors in closed form; with
    it, on folds, along a path of alphas with warm starts.

    Parameters
    ----------
    alphas : array of positive numbers, default (0.1, 1.0, 10.0)
    scoring : str, callable or None
        None is minus the mean squared leave-one-out error (each multiplied by its weight), and R^2 on folds.
    cv : int, splitter, iterable or None
        None is leave-one-out.
    gcv_mode : {None, "auto", "svd", "eigen"}
        A hint to scikit-learn's algorithm; it has no effect on the errors.
    store_cv_results : bool, default False
        Store `cv_results_`; for cv=None.
    alpha_per_target : bool, default False
        An alpha for each target; for cv=None.

    Attributes
    ----------
    alpha_ : float, or an array of one for each target
    best_score_ : float, or an array of one for each target
    cv_results_ : array of shape (n, alphas), or (n, targets, alphas)
        Squared leave-one-out errors, or predictions if there is a `scoring`.
    solver_
        As in `Ridge`, of the last fit, to all samples.

    Notes
    -----
    Sample weights are used in scores on folds. Leave-one-out removes a sample of weight 2 as a whole.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1.0]).fit(X, y).alpha_
    0.01
    """

    _several_targets: ClassVar[bool] = True

    alphas: VectorLike = (0.1, 1.0, 10.0)
    _: KW_ONLY
    scoring: Scoring = None
    cv: CrossValidation = None
    gcv_mode: str | None = None
    store_cv_results: bool = False
    alpha_per_target: bool = False
    tol: float = 1e-6
    verbose: int = 0
    n_threads: int | None = 1

    def _check_parameters(self) -> None:
        one_of("gcv_mode", self.gcv_mode, (None, "auto", "svd", "eigen"))
        for name in ("store_cv_results", "alpha_per_target"):
            if self.cv is not None and getattr(self, name):
                raise ValueError(f"cv!=None and {name}=True are incompatible: it is of leave-one-out, cv=None")
        require_no_negatives(self.alphas, "be > 0.0")
        if not self._candidates():
            raise ValueError("alphas is empty; pass at least one")

    def _routed_scorer(self) -> Any:
        if self.scoring is None:  # sample weights are used
            return asking_for_weights(scorer_of(self, "r2"))
        return scorer_of(self, self.scoring)

    def _candidates(self) -> list[float]:
        return [nonnegative_alpha(alpha) for alpha in np.ravel(np.asarray(self.alphas, dtype=object))]

    def _objective(self) -> Objective:
        return ridge_objective(np.ravel(self.alpha_), self.fit_intercept)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None, **params: Any) -> Self:
        """Choose alpha, and fit to the targets y.

        Other keywords, such as groups, are for splitter and scorer, by scikit-learn's metadata routing.
        """
        features, checked = validated(self, X, y, multi_output=True)
        targets = np.asarray(checked, dtype=np.float64)
        weights = sample_weights(sample_weight, features)
        routes = routed(self, None if sample_weight is None else weights, params)
        starts: list[StartLike] | None = None
        if self.cv is None:
            decomposition = LeaveOneOut.of(features, weights, self.fit_intercept)
            self._leave_one_out(decomposition, targets, routes.score)
            starts = self._closed_form(decomposition, features, targets)
        else:
            self._cross_validate(features, targets, weights, routes)
        problems = target_problems(self._objective(), features, targets, weights)
        results = fit_problems(self, problems, starts, of="targets")
        store_steps_and_solver(self, results)
        take_shape_of(self, targets)
        return self

    def _leave_one_out(self, decomposition: LeaveOneOut, y: Vector, params: dict[str, Any]) -> None:
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
            scores = self._scored(results, y, params)
        best = scores.argmax(axis=0)
        chosen, top = np.asarray(alphas)[best], scores[best, np.arange(scores.shape[1])]
        several = self._per_target(y)
        self.alpha_: Vector | float = chosen if several else float(chosen[0])
        self.best_score_: Vector | float = top if several else top[0]
        if self.store_cv_results:
            self.cv_results_ = np.moveaxis(results, 0, -1) if y.ndim == 2 else results[:, :, 0].T

    def _per_target(self, y: Vector) -> bool:
        return bool(self.alpha_per_target) and y.ndim == 2 and y.shape[1] > 1

    def _scored(self, predictions: Vector, y: Vector, params: dict[str, Any]) -> Vector:
        """The scores of the predictions: alphas x targets, or one column."""
        scorer = scorer_of(self, self.scoring)
        if self._per_target(y):
            pairs = [[(p[:, k], y[:, k]) for k in range(y.shape[1])] for p in predictions]
        else:
            pairs = [[(p if y.ndim == 2 else p[:, 0], y)] for p in predictions]
        return np.array([[scorer(_Predicted(), p, t, **params) for p, t in row] for row in pairs])

    def _closed_form(self, decomposition: LeaveOneOut, X: Features, y: Vector) -> list[StartLike]:
        """The minimiser for each target, as a start for the solver."""
        targets = columns(y)
        starts: list[StartLike] = []
        for target, alpha in zip(targets, np.broadcast_to(np.ravel(self.alpha_), len(targets)), strict=True):
            w, b = decomposition.weights(X, target, float(alpha))
            starts.append((w, b, target - np.asarray(X @ w).ravel() - b))
        return starts

    def _cross_validate(self, X: Features, y: Vector, weights: Vector, routes: Routed) -> None:
        scorer, alphas, options = scorer_of(self, self.scoring), self._candidates(), solver_options(self)
        first = ridge_objective(alphas[:1], self.fit_intercept)
        scores, done = [], []
        for train, test in folds_of(self.cv, X, y, classifier=False, params=routes.split):
            some_weight(y[train], weights[train])
            stated = target_problems(first, X[train], y[train], sample_weights(weights[train], X[train]))
            problems = stored_for(options["solver"], stated)
            penalties = [ridge_penalty(alpha, float(weights[train].sum())) for alpha in alphas]
            paths = [path_results(problem, penalties, options) for problem in problems]
            done += [result for results in paths for result in results]
            models = [self._fitted([p[k].w for p in paths], [p[k].b for p in paths], y) for k in range(len(alphas))]
            scores.append([score_on(scorer, model, X, y, routes.score, test) for model in models])
        warn_short(done, "fits to the folds")
        mean = comparable(np.array(scores)).mean(axis=0)
        best = int(mean.argmax())
        self.alpha_, self.best_score_ = alphas[best], mean[best]

    def _fitted(self, weights: list[Vector], shifts: list[float], y: Vector) -> Ridge:
        """A model for a scorer."""
        model = Ridge()
        model.coef_, model.intercept_ = np.stack(weights), np.array(shifts)
        model.dual_coef_, model.n_features_in_ = np.empty((len(shifts), 0)), self.n_features_in_
        take_shape_of(model, y)
        return model


class _Predicted(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A model that returns its input, for scorers of given predictions."""

    def predict(self, X: Vector) -> Vector:
        return X
