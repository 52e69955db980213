"""Logistic regression, by the name and with the constants of scikit-learn's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax, softmax

from fenchel.estimator.base import SparseWeights
from fenchel.estimator.classification import Classification, one_against_rest_probabilities
from fenchel.estimator.objective import L1_RATIO, elastic, l1_ratio_of, one_of, penalised_constant, positive_C
from fenchel.problem.losses import Logistic, Loss, MulticlassLoss, Multinomial
from fenchel.problem.penalties import Penalty
from fenchel.problem.scaling import lam_from_C

PENALTIES = ("auto", "l2", "l1", "elasticnet", "deprecated", None)
SOLVERS = frozenset({"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"})


class LogisticClassification(SparseWeights, Classification):
    """What LogisticRegression and its cross-validated form share: the loss, the penalty, and probabilities."""

    _their_solvers: ClassVar[frozenset[str]] = SOLVERS

    def _loss(self) -> Loss:
        return Logistic()

    def _joint_loss(self) -> MulticlassLoss | None:
        return Multinomial() if self._is_softmax() else None

    def _constant(self) -> float:
        return penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)

    def _is_softmax(self) -> bool:
        return len(self.classes_) > 2 and getattr(self, "multi_class", "auto") != "ovr"

    def _elastic_net(self, C: Any, ratio: float, total_weight: float) -> Penalty:
        if self._is_softmax():
            self._check_softmax_penalty(ratio)
        return elastic(lam_from_C(positive_C(C), total_weight), ratio)

    def _check_softmax_penalty(self, ratio: float) -> None:
        """Dual ascent is the only solver for the softmax with other penalties than L2, and has needs of its own."""
        if ratio == 1.0:
            raise ValueError(
                f"the softmax of {len(self.classes_)} classes needs a strongly convex penalty, which 'l1' is not; "
                "penalty='elasticnet' with l1_ratio=0.9 is, or use multi_class='ovr', or SparseLogisticRegression"
            )
        if ratio and self._constant():
            raise ValueError(
                f"penalize_intercept=True with the softmax of {len(self.classes_)} classes needs penalty='l2'; "
                "leave the intercept unpenalised, or use multi_class='ovr'"
            )

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes: the softmax of the scores, or, one against the rest, made to sum to 1."""
        scores = self.decision_function(X)
        return np.asarray(softmax(scores, axis=1)) if self._is_softmax() else one_against_rest_probabilities(scores)

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of the probabilities."""
        return self._log_probabilities(self.decision_function(X))

    def _log_probabilities(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Of the classes, for the scores of `decision_function`."""
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        if self._is_softmax():
            return np.asarray(log_softmax(scores, axis=1))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(one_against_rest_probabilities(scores)))

    def _n_iter(self, counts: NDArray[np.int_]) -> Any:
        return counts


class LogisticRegression(LogisticClassification):
    """Logistic regression, certified.

    Minimises, as scikit-learn's class of this name does, ::

        R(w) + C sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))),   R = |w|_2^2 / 2

    with the weights c_i of the classes and an intercept b that is not penalised. More than two classes have one
    softmax loss for all of them, log sum_j exp(z_ij) - z_iy.

    Parameters
    ----------
    penalty : {"auto", "l2", "l1", "elasticnet"}, default "auto"
        R is l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2; "l2" and "l1" are its ends, "auto" goes by l1_ratio alone.
    C : float, default 1.0
        The larger, the weaker the penalty.
    l1_ratio : float, default 0.0
        0 (or None) is the penalty "l2". With the softmax it must be less than 1; the nearer it is, the slower the fit.
    dual : bool, default False
        A hint to scikit-learn's algorithm; the minimiser is the same, so either will do.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    fit_intercept : bool, default True
    intercept_scaling : float, default 1
        The entry of the constant column; for `penalize_intercept=True`.
    class_weight : dict, "balanced" or None
    random_state : int, RandomState or None
    solver : str, default "auto"
        scikit-learn's names ("lbfgs", "liblinear", ...) are accepted and mean "auto".
    max_iter : int, optional
        Most steps of our solver; 100000 by default (scikit-learn's number counts other steps).
    multi_class : {"auto", "ovr", "multinomial"}, default "auto"
        For more than two classes: "ovr" is one problem for each against the rest, the others are the softmax.
    verbose : int, default 0
        Anything but 0 shows a progress bar.
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    n_jobs : int, optional
        Threads: None is one, -1 is all cores, -2 all but one.
    penalize_intercept : bool, default False
        True is what scikit-learn's solver="liblinear" does: b is the weight of a column of `intercept_scaling`.
    max_seconds : float, optional

    Attributes
    ----------
    coef_ : array of shape (1, d), or (classes, d)
    intercept_ : array of shape (1,), or (classes,)
    dual_coef_ : array of shape (1, n), or (classes, n)
        The multipliers of the certificate, in the mean form.
    classes_ : the labels
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights; with "ovr", summed over the classes.
    trace_ : Trace, or a list of them
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

    def __init__(
        self,
        penalty: str | None = "auto",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        random_state: Any = None,
        solver: Any = "auto",
        max_iter: int | None = None,
        multi_class: str = "auto",
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        penalize_intercept: bool = False,
        max_seconds: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.multi_class = multi_class
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.penalize_intercept = penalize_intercept
        self.max_seconds = max_seconds

    def _check_parameters(self) -> None:
        one_of("dual", self.dual, (True, False))
        one_of("multi_class", self.multi_class, ("auto", "ovr", "multinomial", "deprecated"))
        positive_C(self.C)
        l1_share(self.penalty, self.l1_ratio)

    def _penalty(self, total_weight: float) -> Penalty:
        ratio = l1_share(self.penalty, self.l1_ratio)
        if self.multi_class == "multinomial" and len(self.classes_) == 2:
            raise ValueError(
                "multi_class='multinomial' with two classes is logistic regression with twice the C; "
                "use multi_class='auto' and the C that you mean"
            )
        return self._elastic_net(self.C, ratio, total_weight)


def l1_share(penalty: Any, l1_ratio: Any) -> float:
    """The l1_ratio that scikit-learn's two parameters mean together."""
    if one_of("penalty", penalty, PENALTIES) is None:
        raise ValueError(
            "penalty=None is not available: there would be no certificate; a large C such as 1e6 comes close"
        )
    if l1_ratio is not None:
        l1_ratio = l1_ratio_of(l1_ratio)
    if penalty in L1_RATIO:
        ratio = L1_RATIO[penalty]
        if l1_ratio not in (None, 0.0, ratio):
            raise ValueError(f"l1_ratio={l1_ratio!r} contradicts penalty={penalty!r}; use penalty='elasticnet'")
        return ratio
    if penalty == "elasticnet" and l1_ratio is None:
        raise ValueError("penalty='elasticnet' needs an l1_ratio between 0 and 1")
    return float(l1_ratio or 0.0)
