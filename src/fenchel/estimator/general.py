"""The general two: any loss with any penalty."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel.data import encode_labels
from fenchel.data.design import Vector
from fenchel.data.target import as_vector
from fenchel.estimator.base import LinearEstimator
from fenchel.estimator.names import resolve_loss
from fenchel.problem import Problem
from fenchel.problem.losses import Logistic
from fenchel.problem.vectors import Mask


def _is_logistic(self: LinearClassifier) -> bool:
    if isinstance(resolve_loss(self.loss), Logistic):
        return True
    raise AttributeError(f"probabilities need the logistic loss; this model has {self.loss!r}")


class LinearClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """A linear classifier with any loss and any penalty, certified.

    Minimises the weighted mean loss plus the penalty, with an intercept that is not penalised. More than two classes:
    one classifier for each against the rest.

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        "hinge", "squared_hinge", "logistic", ... or an object such as SmoothedHinge(0.5).
    penalty : str or Penalty, default "l2"
        "l2", "l1", "elastic_net", ... with weight `lam`, or an object such as GroupL2(0.1, groups).
    lam : float, optional
        Weight of a penalty given by name; 1 / (sum of the weights) by default, which is C = 1 in scikit-learn's form.
    fit_intercept : bool, default True
    class_weight : dict, "balanced" or None
    solver : str, default "auto"
    tol, atol : float
        The fit ends when its certified gap is at most tol |objective| or atol.
    max_iter, max_seconds : limits, optional
    random_state : int, RandomState or None
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    n_threads : int or None, default 1
    progress : bool, default False

    Attributes
    ----------
    coef_ : array of shape (1, d), or (classes, d)
    intercept_ : array of shape (1,), or (classes,)
    dual_coef_ : array of shape (1, n), or (classes, n)
        The multipliers of the certificate.
    classes_ : the labels
    certificate_ : Certificate
    trace_ : Trace, or a list of them
    n_iter_ : int, or an array of them

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LinearClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearClassifier(loss="logistic", tol=1e-6).fit(scale(X), y)
    >>> model.certificate_.ok
    True
    """

    def __init__(
        self,
        loss: Any = "logistic",
        penalty: Any = "l2",
        lam: float | None = None,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: Any = "auto",
        tol: float = 1e-4,
        atol: float = 0.0,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
        progress: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.atol = atol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the labels y; weight 2 is the row twice."""
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        self._solve(self._problems(X, codes, sample_weight))
        return self

    def _problems(self, X: Any, codes: NDArray[np.intp], sample_weight: Any) -> list[Problem]:
        """One problem for two classes, else one for each class against the rest."""
        weights = self._weights(sample_weight, X)
        if np.count_nonzero(np.bincount(codes, weights)) < 2:
            raise ValueError("sample_weight leaves one class only; a classifier needs two with positive weight")
        weights = weights * _class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        count = len(self.classes_)
        first = self._problem(X, np.where(codes == count - 1, 1.0, -1.0), weights)
        return [first] if count == 2 else [first.replace(y=np.where(codes == k, 1.0, -1.0)) for k in range(count)]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores: one a row for two classes, else one a class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely labels."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_certified(self, X: Any) -> tuple[NDArray[Any], Mask]:
        """Labels, and whether the exact optimum of the objective provably predicts the same ones."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
        labels, proven = self.certificate_.labels(X)
        codes = (labels > 0).astype(np.intp) if len(self.classes_) == 2 else labels
        return np.asarray(self.classes_[codes]), proven

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes; with more than two, the one-against-rest ones made to sum to 1."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        chances = expit(scores)
        total = chances.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, chances / np.where(total > 0, total, 1.0), 1.0 / chances.shape[1]))

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def _class_weights(class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], weights: Vector) -> Vector:
    """The factor of each class; "balanced" gives every class the same total, counting weighted samples."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights, len(classes))
        return np.asarray(weights.sum() / (len(classes) * np.where(totals > 0, totals, 1.0)))
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]), dtype=np.float64)


class LinearRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """A linear regression with any loss and any penalty, certified.

    Minimises the weighted mean loss plus the penalty, with an intercept that is not penalised.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared", "absolute", "huber", "epsilon_insensitive", ... or an object such as Pinball(0.9).
    penalty, lam, fit_intercept, solver, tol, atol, max_iter, max_seconds, random_state, warm_start, n_threads, progress
        As in `LinearClassifier`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
    dual_coef_ : array of shape (n,)
    certificate_ : Certificate
    trace_ : Trace
    n_iter_ : int
    """

    def __init__(
        self,
        loss: Any = "squared",
        penalty: Any = "l2",
        lam: float | None = None,
        *,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-4,
        atol: float = 0.0,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
        progress: bool = False,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.atol = atol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the targets y; weight 2 is the row twice."""
        X, y = self._validate(X, y)
        self._solve(self._problems(X, y, sample_weight))
        self.coef_, self.intercept_, self.dual_coef_ = self.coef_[0], float(self.intercept_[0]), self.dual_coef_[0]
        return self

    def _problems(self, X: Any, y: Any, sample_weight: Any) -> list[Problem]:
        loss = resolve_loss(self.loss)
        if loss.is_classification:
            raise ValueError(f"{loss!r} is a classification loss; use LinearClassifier")
        return [self._problem(X, as_vector(y, len(y), "y"), self._weights(sample_weight, X))]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted targets."""
        return self._scores(X)[:, 0]
