"""Logistic regression whose C and l1_ratio are chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from fenchel.data import encode_labels
from fenchel.data.design import Vector
from fenchel.estimator.classification import Codes, one_label_each
from fenchel.estimator.logistic import LogisticClassification, LogisticRegression, l1_share
from fenchel.estimator.objective import one_of, positive_C
from fenchel.estimator.search.cross_validation import (
    Fold,
    folds_of,
    mean_start,
    path,
    score_on,
    scorer_of,
    side_by_side,
    warn_of,
)
from fenchel.problem.penalties import Penalty
from fenchel.solver import Result


class LogisticRegressionCV(LogisticClassification):
    """Logistic regression with the best of some C and l1_ratios, certified.

    Minimises what `LogisticRegression` does. C and l1_ratio are chosen on folds, along paths of C on which each
    fit begins at its neighbour's; the last fit, to all samples, begins at the mean over the folds.

    Parameters
    ----------
    Cs : int or array of positive numbers, default 10
        A number of values between 1e-4 and 1e4, or the values.
    l1_ratios : array of numbers between 0 and 1, optional
        None is what `penalty` says, L2 by default. With more than two classes they must be less than 1.
    fit_intercept : bool, default True
    cv : int, splitter, iterable or None
        None is five stratified folds.
    dual : bool, default False
        A hint to scikit-learn's algorithm; the minimiser is the same, so either will do.
    penalty : {"auto", "l2", "l1", "elasticnet"}, default "auto"
        "auto" goes by l1_ratios alone, and "elasticnet" needs them.
    scoring : str, callable or None
        None is the accuracy; weights count where they are given.
    solver : str, default "auto"
        scikit-learn's names are accepted and mean "auto".
    tol : float, default 1e-4
        Every fit ends when its certified gap is at most tol times the objective.
    max_iter : int, optional
        Most steps of each fit.
    class_weight : dict, "balanced" or None
        "balanced" counts the samples of all folds.
    n_jobs : int, optional
        Folds at a time: None is one, -1 is as many as there are cores.
    verbose : int, default 0
    refit : bool, default True
        False is refused: a mean of models minimises nothing, and has no certificate.
    intercept_scaling : float, default 1.0
        The entry of the constant column; for `penalize_intercept=True`.
    random_state : int, RandomState or None
    multi_class : {"auto", "multinomial"}, default "auto"
        More than two classes have one softmax loss for all.
    use_legacy_attributes : bool, default True
        The shapes of scikit-learn before 1.10; False is those from then on.
    penalize_intercept : bool, default False

    Attributes
    ----------
    C_, l1_ratio_ : arrays of shape (1,) or (classes,), the best values repeated; or floats
    Cs_, l1_ratios_ : arrays of the values
        If `l1_ratios` is None, `l1_ratios_` and the arrays `l1_ratio_` hold None.
    scores_ : dict from labels to arrays of shape (folds, Cs, ratios); or an array of shape (folds, ratios, Cs)
    coefs_paths_ : dict from labels to arrays of shape (folds, Cs, ratios, d + 1); or an array of shape \
(folds, ratios, Cs, classes, d + 1)
        Weights, and last the intercept if there is one.
    n_iter_ : array of shape (1, folds, Cs, ratios), or (folds, ratios, Cs)
        If `l1_ratios` is None, none of the former shapes has its axis of ratios, and in the latter it is 1.
    coef_, intercept_, dual_coef_, classes_, certificate_, trace_
        As in `LogisticRegression`, of the last fit, to all samples.

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

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = None,
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: str | None = "auto",
        scoring: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        multi_class: str = "auto",
        use_legacy_attributes: bool = True,
        penalize_intercept: bool = False,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.multi_class = multi_class
        self.use_legacy_attributes = use_legacy_attributes
        self.penalize_intercept = penalize_intercept

    def _check_parameters(self) -> None:
        one_of("dual", self.dual, (True, False))
        one_of("multi_class", self.multi_class, ("auto", "multinomial", "deprecated"))
        if not self.refit:
            raise ValueError("refit=False is not available: a mean over folds minimises nothing; leave refit=True")
        self._candidates()
        self._ratios()

    def _candidates(self) -> Vector:
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool) and self.Cs > 0:
            return np.logspace(-4, 4, int(self.Cs))
        values = np.array([positive_C(C) for C in np.ravel(np.asarray(self.Cs, dtype=object))])
        if np.ndim(self.Cs) == 0 or not len(values):
            raise ValueError(f"Cs must be a positive integer or values of C, got {self.Cs!r}")
        return values

    def _ratios(self) -> NDArray[Any]:
        """The l1_ratios as scikit-learn keeps them: None where there are none; checked."""
        if self.l1_ratios is None:
            l1_share(self.penalty, None)
            return np.array([None])
        values = np.ravel(np.asarray(self.l1_ratios, dtype=np.float64))
        if np.ndim(self.l1_ratios) == 0 or not len(values):
            raise ValueError(f"l1_ratios must be numbers between 0 and 1, or None; got {self.l1_ratios!r}")
        for value in values:
            l1_share(self.penalty, float(value))
        return values

    def _penalty(self, total_weight: float) -> Penalty:
        ratio = l1_share(self.penalty, np.ravel(self.l1_ratio_)[0])
        return self._elastic_net(float(np.ravel(self.C_)[0]), ratio, total_weight)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C, and fit to the labels y."""
        one_label_each(y)
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        given = None if sample_weight is None else self._weights(sample_weight, X)
        weights = self._by_label(codes, self._two_classes(codes, self._weights(sample_weight, X)))
        self.Cs_, self.l1_ratios_ = self._candidates(), self._ratios()
        folds = folds_of(self.cv, X, y, classifier=True)
        self.C_, self.l1_ratio_ = self.Cs_[0], min(self.l1_ratios_, key=lambda ratio: ratio or 0.0)
        grids = side_by_side(partial(self._grid, X, codes, weights), folds, self._options())
        scorer, labels = scorer_of(self, self.scoring or "accuracy"), self.classes_[codes]
        scores = np.array(
            [
                [[score_on(scorer, self._fitted(result), X, labels, given, test) for result in row] for row in grid]
                for grid, (_, test) in zip(grids, folds, strict=True)
            ]
        )
        warn_of([result for grid in grids for row in grid for result in row])
        i, j = np.unravel_index(int(scores.sum(axis=0).argmax()), scores.shape[1:])
        self.C_, self.l1_ratio_ = self.Cs_[i], self.l1_ratios_[j]
        start = mean_start([grid[i][j] for grid in grids], folds, len(codes))
        self._solve(self._weighted_problems(X, codes, weights), [start])
        self._keep_paths(grids, scores)
        return self

    def _grid(self, X: Any, codes: Codes, weights: Vector, fold: Fold, options: Any) -> list[tuple[Result, ...]]:
        """Fits to a fold for each C (rows) and l1_ratio (columns)."""
        train, _ = fold
        total = float(weights[train].sum())
        # stored for the smallest ratio, which has been set: rows are for the smaller ones
        (problem,) = self._by_rows(self._weighted_problems(X[train], codes[train], weights[train]))
        columns = []
        for ratio in self.l1_ratios_:
            share = l1_share(self.penalty, ratio)
            columns.append(path(problem, [self._elastic_net(C, share, total) for C in self.Cs_], options))
        return list(zip(*columns, strict=True))

    def _split(self, result: Result) -> tuple[Vector, Vector]:
        """Weights and intercepts, a row and an entry for each class (or for two)."""
        w, constant = np.atleast_2d(result.w), self._constant()
        return (w[:, :-1], constant * w[:, -1]) if constant else (w, np.atleast_1d(result.b))

    def _fitted(self, result: Result) -> LogisticRegression:
        """A model as a scorer wants it."""
        model = LogisticRegression()
        model.coef_, model.intercept_ = self._split(result)
        model.classes_, model.n_features_in_ = self.classes_, self.n_features_in_
        return model

    def _keep_paths(self, grids: list[list[tuple[Result, ...]]], scores: Vector) -> None:
        """The attributes of the search, in the shapes of either version of scikit-learn."""
        # folds x Cs x ratios x classes x (d + 1)
        coefs = np.array([[[self._joined(result) for result in row] for row in grid] for grid in grids])
        counts = np.array([[[result.n_iter for result in row] for row in grid] for grid in grids])
        self.scores_: Any
        self.coefs_paths_: Any
        if not self.use_legacy_attributes:
            self.C_, self.l1_ratio_ = float(self.C_), l1_share(self.penalty, self.l1_ratio_)
            self.scores_, self.coefs_paths_, self.n_iter_ = (part.swapaxes(1, 2) for part in (scores, coefs, counts))
            return
        if self.l1_ratios is None:
            scores, coefs, counts = scores[:, :, 0], coefs[:, :, 0], counts[:, :, 0]
        keys = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_, self.l1_ratio_ = np.full(len(keys), self.C_), np.full(len(keys), self.l1_ratio_)
        self.n_iter_ = counts[None]
        self.scores_ = {label: scores.copy() for label in keys}
        self.coefs_paths_ = {label: coefs[..., k, :] for k, label in enumerate(keys)}

    def _joined(self, result: Result) -> Vector:
        """Weights, and last the intercept if there is one, a row for each class (or for two)."""
        w, b = self._split(result)
        return np.column_stack([w, b] if self.fit_intercept else [w])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score that `scoring` names, the accuracy by default."""
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer_of(self, self.scoring or "accuracy")(self, X, y, **weighted))
