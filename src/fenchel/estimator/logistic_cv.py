"""Logistic regression whose C is chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from fenchel.data import encode_labels
from fenchel.data.design import Vector
from fenchel.estimator.classification import Codes
from fenchel.estimator.logistic import LogisticClassification, LogisticRegression, l1_share
from fenchel.estimator.parameters import one_of, positive_C
from fenchel.estimator.paths import folds_of, mean_start, path, score_on, scorer_of, warn_of
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.scaling import lam_from_C
from fenchel.solver import Result


class LogisticRegressionCV(LogisticClassification):
    """Logistic regression with the best of some C, certified.

    Minimises what `LogisticRegression` does with an L2 penalty. C is chosen on folds, along a path of C on which each
    fit begins at its neighbour's; the last fit, to all samples, begins at the mean over the folds.

    Parameters
    ----------
    Cs : int or array of positive numbers, default 10
        A number of values between 1e-4 and 1e4, or the values.
    l1_ratios : None or array of zeros
        For another penalty, search over LogisticRegression(penalty="elasticnet") with scikit-learn's GridSearchCV.
    fit_intercept : bool, default True
    cv : int, splitter, iterable or None
        None is five stratified folds.
    dual : bool, default False
        A hint to scikit-learn's algorithm; the minimiser is the same, so either will do.
    penalty : {"auto", "l2"}, default "auto"
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
        Threads: None is one, -1 is all cores.
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
    C_ : array of shape (1,) or (classes,), the best value repeated; or a float
    Cs_ : array of the values
    scores_ : dict from labels to arrays of shape (folds, Cs); or an array of shape (folds, 1, Cs)
    coefs_paths_ : dict from labels to arrays of shape (folds, Cs, d + 1); or (folds, 1, Cs, classes, d + 1)
        Weights, and last the intercept if there is one.
    n_iter_ : array of shape (1, folds, Cs), or (folds, 1, Cs)
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
        ratios = [0.0] if self.l1_ratios is None else np.ravel(np.asarray(self.l1_ratios, dtype=np.float64))
        if any(l1_share(self.penalty, float(ratio)) for ratio in ratios):
            raise ValueError(
                "LogisticRegressionCV has the penalty 'l2' only; for others search over "
                "LogisticRegression(penalty='elasticnet', l1_ratio=...) with GridSearchCV"
            )
        if not self.refit:
            raise ValueError("refit=False is not available: a mean over folds minimises nothing; leave refit=True")
        self._candidates()

    def _candidates(self) -> Vector:
        if isinstance(self.Cs, int | np.integer) and not isinstance(self.Cs, bool) and self.Cs > 0:
            return np.logspace(-4, 4, int(self.Cs))
        values = np.array([positive_C(C) for C in np.ravel(np.asarray(self.Cs, dtype=object))])
        if np.ndim(self.Cs) == 0 or not len(values):
            raise ValueError(f"Cs must be a positive integer or values of C, got {self.Cs!r}")
        return values

    def _penalty(self, total_weight: float) -> Penalty:
        return L2(lam_from_C(float(np.ravel(self.C_)[0]), total_weight))

    def _one_problem(self, X: Any, codes: Codes, weights: Vector) -> Any:
        """The problem of these samples, whose weights include those of their classes."""
        design, loss = self._design(X), self._joint_loss()
        if loss is not None:
            return self._joint_problem(design, codes, loss, weights)
        return self._problem(design, np.where(codes == 1, 1.0, -1.0), weights)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C, and fit to the labels y."""
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        given = None if sample_weight is None else self._weights(sample_weight, X)
        weights = self._by_label(codes, self._two_classes(codes, self._weights(sample_weight, X)))
        self.Cs_ = self._candidates()
        self.C_: Any = self.Cs_[0]
        folds = folds_of(self.cv, X, y, classifier=True)
        paths = [self._path(X[train], codes[train], weights[train]) for train, _ in folds]
        scorer, labels = scorer_of(self, self.scoring or "accuracy"), self.classes_[codes]
        scores = np.array(
            [
                [score_on(scorer, self._fitted(result), X, labels, given, test) for result in results]
                for results, (_, test) in zip(paths, folds, strict=True)
            ]
        )
        warn_of([result for results in paths for result in results])
        best = int(scores.sum(axis=0).argmax())
        self.C_ = self.Cs_[best]
        start = mean_start([results[best] for results in paths], folds, len(codes))
        self._solve([self._one_problem(X, codes, weights)], [start])
        self._keep_paths(paths, scores)
        return self

    def _path(self, X: Any, codes: Codes, weights: Vector) -> list[Result]:
        total = float(weights.sum())
        penalties = [L2(lam_from_C(float(C), total)) for C in self.Cs_]
        (problem,) = self._by_rows([self._one_problem(X, codes, weights)])
        return path(problem, penalties, self._options())

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

    def _keep_paths(self, paths: list[list[Result]], scores: Vector) -> None:
        """The attributes of the search, in the shapes of either version of scikit-learn."""
        parts = [[self._split(result) for result in results] for results in paths]
        # folds x Cs x classes x (d + 1)
        coefs = np.array([[np.column_stack([w, b] if self.fit_intercept else [w]) for w, b in row] for row in parts])
        counts = np.array([[result.n_iter for result in results] for results in paths])
        self.scores_: Any
        self.coefs_paths_: Any
        if not self.use_legacy_attributes:
            self.C_, self.n_iter_ = float(self.C_), counts[:, None, :]
            self.scores_, self.coefs_paths_ = scores[:, None, :], coefs[:, None]
            return
        keys = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.C_, self.n_iter_ = np.full(len(keys), self.C_), counts[None]
        self.scores_ = {label: scores.copy() for label in keys}
        self.coefs_paths_ = {label: coefs[:, :, k] for k, label in enumerate(keys)}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score that `scoring` names, the accuracy by default."""
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer_of(self, self.scoring or "accuracy")(self, X, y, **weighted))
