"""Logistic regression with C and l1_ratio chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Matrix, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import (
    Features,
    InterceptParameters,
    certify_start,
    fit_problems,
    sample_weights,
    solver_options,
    split_constant,
    stored_for,
    warn_short,
)
from fenchel.estimator.classification import Codes, encoded, two_classes, weighted_problems, with_class_weights
from fenchel.estimator.documentation import documented
from fenchel.estimator.logistic import LogisticModel, LogisticRegression, logistic_objective, resolve_l1_ratio
from fenchel.estimator.objective import Objective, one_of, positive_C
from fenchel.estimator.search.cross_validation import (
    Fold,
    Options,
    Scoring,
    SearchParameters,
    comparable,
    folds_of,
    in_parallel,
    mean_start,
    path_results,
    score_on,
    scorer_of,
    some_weight,
    warn_missing,
    with_every_class,
    with_labels,
)
from fenchel.estimator.search.routing import asking_for_weights, routed, routed_score
from fenchel.problem.checks import require_flag
from fenchel.solver import Result

Grid = list[tuple[Result, ...]]


@documented("classes")
class LogisticRegressionCV(SearchParameters, InterceptParameters, LogisticModel):
    """Logistic regression with C and l1_ratio chosen by cross-validation, certified.

    The objective is that of `LogisticRegression`. C and l1_ratio are chosen on folds, along paths of C with warm
    starts; the last fit, to all samples, starts from the mean over the folds.

    Parameters
    ----------
    Cs : int or array of positive numbers, default 10
        A number of values between 1e-4 and 1e4, or the values.
    l1_ratios : array of numbers between 0 and 1, optional
        None: from `penalty`, L2 by default. With more than two classes they must be less than 1.
    penalty : {"auto", "l2", "l1", "elasticnet"}, default "auto"
        "auto" uses l1_ratios alone, and "elasticnet" requires them.
    scoring : str, callable or None
        None is the accuracy; sample weights are used if given.
    class_weight : dict, "balanced" or None
        "balanced" counts the samples of all folds.
    refit : bool, default True
        False is the mean of the folds' best models, with the means of their C and l1_ratio. Its certificate is for the
        objective with these and all samples; it is not the minimiser.
    multi_class : {"auto", "multinomial"}, default "auto"
        The softmax for more than two classes.
    use_legacy_attributes : bool, default True
        The shapes of scikit-learn before 1.10; False: those since.

    Attributes
    ----------
    C_, l1_ratio_ : arrays of shape (1,) or (classes,), the best values repeated; or floats
    Cs_, l1_ratios_ : arrays of the values
        If `l1_ratios` is None, `l1_ratios_` and the arrays `l1_ratio_` contain None.
    scores_ : dict from labels to arrays of shape (folds, Cs, ratios); or an array of shape (folds, ratios, Cs)
    coefs_paths_ : dict from labels to arrays of shape (folds, Cs, ratios, d + 1); or an array of shape \
(folds, ratios, Cs, classes, d + 1)
        Weights, then the intercept, if any.
    n_iter_ : array of shape (1, folds, Cs, ratios), or (folds, ratios, Cs)
        If `l1_ratios` is None, the former shapes have no axis of ratios, and in the latter ones it is 1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 0.1, 1.0], cv=3).fit(scale(X), y)
    >>> model.scores_[1].shape
    (3, 3)
    >>> model.certificate_.ok
    True
    """

    _: KW_ONLY
    Cs: VectorLike = 10
    l1_ratios: VectorLike | None = None
    dual: bool = False
    penalty: str | None = "auto"
    scoring: Scoring = None
    refit: bool = True
    multi_class: str = "auto"
    use_legacy_attributes: bool = True

    def _check_parameters(self) -> None:
        one_of("dual", self.dual, (True, False))
        one_of("multi_class", self.multi_class, ("auto", "multinomial", "deprecated"))
        require_flag(self.refit, "refit")
        self._candidates()
        self._ratios()

    _scoring_methods = ("fit", "score")

    def _routed_scorer(self) -> Any:
        if self.scoring is None:  # sample weights are used
            return asking_for_weights(scorer_of(self, "accuracy"))
        return scorer_of(self, self.scoring)

    def _candidates(self) -> Vector:
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool) and self.Cs > 0:
            return np.logspace(-4, 4, int(self.Cs))
        values = np.array([positive_C(C) for C in np.ravel(np.asarray(self.Cs, dtype=object))])
        if np.ndim(self.Cs) == 0 or not len(values):
            raise ValueError(f"Cs must be a positive integer or values of C, got {self.Cs!r}")
        return values

    def _ratios(self) -> NDArray[Any]:
        """The l1_ratios, checked; [None] if there are none, as in scikit-learn."""
        if self.penalty is None:
            raise ValueError("penalty=None leaves nothing to choose; use LogisticRegression, or an infinite C in Cs")
        if self.l1_ratios is None:
            resolve_l1_ratio(self.penalty, None)
            return np.array([None])
        values = np.ravel(np.asarray(self.l1_ratios, dtype=np.float64))
        if np.ndim(self.l1_ratios) == 0 or not len(values):
            raise ValueError(f"l1_ratios must be numbers between 0 and 1, or None; got {self.l1_ratios!r}")
        for value in values:
            resolve_l1_ratio(self.penalty, float(value))
        return values

    def _objective_at(self, C: float, l1_ratio: float | None) -> Objective:
        return logistic_objective(self, C, resolve_l1_ratio(self.penalty, l1_ratio))

    def _objective(self) -> Objective:
        return self._objective_at(float(np.ravel(self.C_)[0]), np.ravel(self.l1_ratio_)[0])

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None, **params: Any) -> Self:
        """Choose C, and fit to the labels y.

        Other keywords, such as groups, are for splitter and scorer, by scikit-learn's metadata routing.
        """
        features, codes = encoded(self, X, y)
        weights = two_classes(codes, sample_weights(sample_weight, features), "sample_weight")
        given, full = None if sample_weight is None else weights, with_class_weights(self, codes, weights)
        self.Cs_, self.l1_ratios_ = self._candidates(), self._ratios()
        labels = self.classes_[codes]
        routes = routed(self, given, params)
        folds = folds_of(self.cv, features, labels, classifier=True, params=routes.split)
        for train, _ in folds:
            some_weight(codes[train], full[train])
        warn_missing(self.classes_, codes, full, folds)
        grids = in_parallel(partial(self._grid, features, codes, full), folds, solver_options(self))
        scorer = with_labels(scorer_of(self, self.scoring or "accuracy"), self.classes_)
        constant = self._objective_at(self.Cs_[0], self.l1_ratios_[0]).constant
        scores = np.array(
            [
                [
                    [
                        score_on(scorer, self._fitted(result, constant), features, labels, routes.score, test)
                        for result in row
                    ]
                    for row in grid
                ]
                for grid, (_, test) in zip(grids, folds, strict=True)
            ]
        )
        warn_short([result for grid in grids for row in grid for result in row], "fits to the folds")
        if self.refit:
            i, j = np.unravel_index(int(comparable(scores).mean(axis=0).argmax()), scores.shape[1:])
            self.C_, self.l1_ratio_ = self.Cs_[i], self.l1_ratios_[j]
            best = [grid[i][j] for grid in grids]
        else:
            missing = np.isnan(scores).all(axis=(1, 2))
            kept = [k for k, useless in enumerate(missing) if not useless or missing.all()]
            best = self._best_of_folds([grids[k] for k in kept], comparable(scores))
            folds = [folds[k] for k in kept]
        start = mean_start(best, folds, len(codes))
        problems = weighted_problems(self._objective(), features, codes, full, len(self.classes_))
        if self.refit:
            fit_problems(self, problems, [start])
        else:
            certify_start(self, problems, start)
        self._store_paths(grids, scores, constant)
        return self

    def _best_of_folds(self, grids: list[Grid], scores: Vector) -> list[Result]:
        """The best model of each fold; C and l1_ratio become their means, as in scikit-learn."""
        places = [np.unravel_index(int(own.argmax()), own.shape) for own in scores]
        self.C_ = float(np.mean([self.Cs_[i] for i, _ in places]))
        ratios = [self.l1_ratios_[j] for _, j in places]
        self.l1_ratio_ = None if ratios[0] is None else float(np.mean(ratios))
        return [grid[i][j] for grid, (i, j) in zip(grids, places, strict=True)]

    def _grid(self, X: Features, codes: Codes, weights: Vector, fold: Fold, options: Options) -> Grid:
        """Fits to a fold for each C (rows) and l1_ratio (columns)."""
        train, counted = with_every_class(codes, weights, fold[0])
        # storage for the smallest ratio: its penalty is strongly convex if any is
        least = min(self.l1_ratios_, key=lambda ratio: ratio or 0.0)
        stated = weighted_problems(
            self._objective_at(self.Cs_[0], least), X[train], codes[train], counted, len(self.classes_)
        )
        (problem,) = stored_for(options["solver"], stated)
        columns = []
        for ratio in self.l1_ratios_:
            each = [self._objective_at(C, ratio) for C in self.Cs_]
            total = float(counted.sum())
            penalties = [penalty for objective in each for penalty in objective.penalties([total])]
            columns.append(path_results(problem, penalties, options))
        return list(zip(*columns, strict=True))

    def _fitted(self, result: Result, constant: float) -> LogisticRegression:
        """A model for a scorer."""
        model = LogisticRegression()
        model.coef_, model.intercept_ = split_constant(result, constant)
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        return model

    def _store_paths(self, grids: list[Grid], scores: Vector, constant: float) -> None:
        """Set the attributes of the search, in the shapes of either version of scikit-learn."""

        def joined(result: Result) -> Matrix:
            """Weights, then the intercept, if any; a row for each class (one for two)."""
            w, b = split_constant(result, constant)
            return np.column_stack([w, b] if self.fit_intercept else [w])

        # folds x Cs x ratios x classes x (d + 1)
        coefs = np.array([[[joined(result) for result in row] for row in grid] for grid in grids])
        counts = np.array([[[result.n_iter for result in row] for row in grid] for grid in grids])
        self.scores_: Vector | dict[object, Vector]
        self.coefs_paths_: Vector | dict[object, Vector]
        if not self.use_legacy_attributes:
            self.C_, self.l1_ratio_ = float(self.C_), resolve_l1_ratio(self.penalty, self.l1_ratio_)
            self.scores_, self.coefs_paths_, self.n_iter_ = (each.swapaxes(1, 2) for each in (scores, coefs, counts))
            return
        if self.l1_ratios is None:
            scores, coefs, counts = scores[:, :, 0], coefs[:, :, 0], counts[:, :, 0]
        keys = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_, self.l1_ratio_ = np.full(len(keys), self.C_), np.full(len(keys), self.l1_ratio_)
        self.n_iter_ = counts[None]
        self.scores_ = {label: scores.copy() for label in keys}
        self.coefs_paths_ = {label: coefs[..., k, :] for k, label in enumerate(keys)}

    def score(self, X: MatrixLike, y: VectorLike, **params: Any) -> float:
        """The score by `scoring`, the accuracy by default; keywords, such as sample_weight, are for the scorer."""
        return float(scorer_of(self, self.scoring or "accuracy")(self, X, y, **routed_score(self, params)))
