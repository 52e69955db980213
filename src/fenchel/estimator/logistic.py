"""Logistic regression, with the name and the constants of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar, Self

import numpy as np
from scipy.special import log_expit, log_softmax, softmax

from fenchel.data.typing import Matrix, MatrixLike, VectorLike
from fenchel.estimator.base import InterceptParameters, SparseWeights, steps_of
from fenchel.estimator.classification import Classification, fit_classes, one_against_rest_probabilities
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, elastic, l1_ratio_of, one_of, penalised_constant, positive_C
from fenchel.problem.losses import Logistic, Multinomial
from fenchel.problem.problem import lam_from_C


class LogisticModel(SparseWeights, Classification):
    """Probabilities of the classes: the softmax of their scores, or one-vs-rest probabilities."""

    _their_solvers: ClassVar[frozenset[str]] = frozenset(
        {"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"}
    )

    def _is_softmax(self) -> bool:
        return len(self.classes_) > 2 and self.multi_class != "ovr"

    def predict_proba(self, X: MatrixLike) -> Matrix:
        """Probabilities of the classes: the softmax of the scores, or one-vs-rest probabilities normalised to sum 1."""
        scores = self.decision_function(X)
        return np.asarray(softmax(scores, axis=1)) if self._is_softmax() else one_against_rest_probabilities(scores)

    def predict_log_proba(self, X: MatrixLike) -> Matrix:
        """Logarithms of the probabilities."""
        return log_probabilities(self.decision_function(X), self._is_softmax())


def log_probabilities(scores: Matrix, is_softmax: bool) -> Matrix:
    """Logarithms of the probabilities, from the scores of `decision_function`."""
    if scores.ndim == 1:
        return np.column_stack([log_expit(-scores), log_expit(scores)])
    if is_softmax:
        return np.asarray(log_softmax(scores, axis=1))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(one_against_rest_probabilities(scores)))


def logistic_objective(model: LogisticModel, C: object, l1_ratio: float) -> Objective:
    """The objective of LogisticRegression and of its cross-validated form, for one C and l1_ratio."""
    checked = positive_C(C)
    constant = penalised_constant(model.fit_intercept, model.penalize_intercept, model.intercept_scaling)
    is_softmax = model._is_softmax()
    if is_softmax and checked < np.inf:
        check_softmax_penalty(l1_ratio, constant, len(model.classes_))
    return Objective(
        Multinomial() if is_softmax else Logistic(),
        lambda total: elastic(lam_from_C(checked, total), l1_ratio),
        model.fit_intercept,
        constant,
    )


def check_softmax_penalty(l1_ratio: float, constant: float, count: int) -> None:
    """Raise for a softmax with a penalty that its solver, dual ascent, does not support."""
    if l1_ratio == 1.0:
        raise ValueError(
            f"the softmax of {count} classes needs a strongly convex penalty, not 'l1': use penalty='elasticnet' with "
            "l1_ratio=0.9, multi_class='ovr' or SparseLogisticRegression"
        )
    if l1_ratio and constant:
        raise ValueError(
            f"penalize_intercept=True with the softmax of {count} classes needs penalty='l2'; "
            "use penalize_intercept=False or multi_class='ovr'"
        )


@documented("classes")
class LogisticRegression(Watched, InterceptParameters, LogisticModel):
    """Logistic regression, certified.

    Minimises, as scikit-learn's class of this name does, ::

        R(w) + C sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))),   R = |w|_2^2 / 2

    with class weights c_i and an unpenalised intercept b. For more than two classes the loss is the softmax cross
    entropy, log sum_j exp(z_ij) - z_iy.

    Parameters
    ----------
    penalty : {"auto", "l2", "l1", "elasticnet", None}, default "auto"
        R is l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2; l1_ratio is 0 for "l2", 1 for "l1", the parameter for "auto".
        None is C infinite.
    C : float, default 1.0
        Inverse weight of the penalty; infinite for no penalty. Then samples that a linear classifier separates have no
        minimiser: a warning says so, with the interval of the largest margin, and the model is nearly the classifier
        of that margin, scaled until the mean loss is at most tol log 2.
    l1_ratio : float, default 0.0
        0 (or None) is the penalty "l2". With the softmax it must be less than 1; fits are slower near 1.
    multi_class : {"auto", "ovr", "multinomial"}, default "auto"
        For more than two classes: "ovr" is one-vs-rest, the others are the softmax.

    Attributes
    ----------
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights; with "ovr", summed over the classes.
    n_iter_ : array of the steps of each problem

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1).fit(scale(X), y)
    >>> model.certificate_.ok
    True
    >>> model.predict_proba(scale(X)[:1]).round(2)
    array([[1., 0.]])
    """

    penalty: str | None = "auto"
    _: KW_ONLY
    C: float = 1.0
    l1_ratio: float | None = 0.0
    dual: bool = False
    multi_class: str = "auto"
    verbose: int = 0
    warm_start: bool = False
    n_jobs: int | None = None
    max_seconds: float | None = None

    def _check_parameters(self) -> None:
        one_of("dual", self.dual, (True, False))
        one_of("multi_class", self.multi_class, ("auto", "ovr", "multinomial", "deprecated"))
        positive_C(self.C)
        resolve_l1_ratio(self.penalty, self.l1_ratio)

    def _objective(self) -> Objective:
        if self.multi_class == "multinomial" and len(self.classes_) == 2:
            raise ValueError(
                "multi_class='multinomial' with two classes is logistic regression with 2 C; "
                "use multi_class='auto' with that C"
            )
        C = np.inf if self.penalty is None else self.C
        return logistic_objective(self, C, resolve_l1_ratio(self.penalty, self.l1_ratio))

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        self.n_iter_ = steps_of(fit_classes(self, X, y, sample_weight))
        return self


def resolve_l1_ratio(penalty: str | None, l1_ratio: float | None) -> float:
    """The l1_ratio of scikit-learn's two parameters."""
    one_of("penalty", penalty, ("auto", "l2", "l1", "elasticnet", "deprecated", None))
    if l1_ratio is not None:
        l1_ratio = l1_ratio_of(l1_ratio)
    if penalty in ("l1", "l2"):
        ratio = 1.0 if penalty == "l1" else 0.0
        if l1_ratio not in (None, 0.0, ratio):
            raise ValueError(f"l1_ratio={l1_ratio!r} contradicts penalty={penalty!r}; use penalty='elasticnet'")
        return ratio
    if penalty == "elasticnet" and l1_ratio is None:
        raise ValueError("penalty='elasticnet' needs an l1_ratio between 0 and 1")
    return float(l1_ratio or 0.0)
