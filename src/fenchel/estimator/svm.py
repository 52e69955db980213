"""Support vector machines, by the names and with the constants of scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.data.design import Vector
from fenchel.estimator.base import SparseWeights
from fenchel.estimator.classification import Classification, Codes, class_weights
from fenchel.estimator.objective import L1_RATIO, elastic, one_of, penalised_constant, positive_C
from fenchel.estimator.regression import Regression
from fenchel.problem.losses import (
    CrammerSinger,
    EpsilonInsensitive,
    Hinge,
    Loss,
    MulticlassLoss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.scaling import lam_from_C

MARGIN_LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}
TUBE_LOSSES = {"epsilon_insensitive": EpsilonInsensitive, "squared_epsilon_insensitive": SquaredEpsilonInsensitive}


class LinearSVC(SparseWeights, Classification):
    """A linear support vector machine, certified.

    Minimises, as scikit-learn's class of this name does, ::

        |w|_2^2 / 2  (or |w|_1)  +  C sum_i s_i c_i max(0, 1 - y_i (x_i.w + b))   (or its square)

    but b is not penalised unless `penalize_intercept` says so. More than two classes: one machine for each against
    the rest (only the class itself has its weight c), or all at once with "crammer_singer".

    Parameters
    ----------
    penalty : {"l2", "l1"}, default "l2"
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
    dual : bool or "auto", default "auto"
        A hint to scikit-learn's algorithm; the minimiser is the same, so any value will do.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    C : float, default 1.0
        The larger, the weaker the penalty.
    multi_class : {"ovr", "crammer_singer"}, default "ovr"
        With "crammer_singer" the loss is max_j (1[j != y] + z_j) - z_y whatever `loss` says, as in scikit-learn.
    fit_intercept : bool, default True
    intercept_scaling : float, default 1
        The entry of the constant column; for `penalize_intercept=True`.
    class_weight : dict, "balanced" or None
    verbose : int, default 0
        Anything but 0 shows a progress bar.
    random_state : int, RandomState or None
    max_iter : int, optional
        Most steps of our solver; 100000 by default (scikit-learn's number counts other steps).
    penalize_intercept : bool, default False
        True is LIBLINEAR's objective, to the last constant: b is the weight of a column of `intercept_scaling`.
    solver : str, default "auto"
    max_seconds : float, optional
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    n_threads : int or None, default 1

    Attributes
    ----------
    coef_ : array of shape (1, d), or (classes, d)
    intercept_ : array of shape (1,), or (classes,)
    dual_coef_ : array of shape (1, n), or (classes, n)
        The multipliers of the certificate, in the mean form.
    classes_ : the labels
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights; summed over the classes.
    trace_ : Trace, or a list of them
    n_iter_ : int
        The most steps over the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearSVC(C=0.1, tol=1e-6).fit(scale(X), y)
    >>> model.certificate_.ok
    True
    >>> labels, proven = model.predict_certified(scale(X))
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int | None = None,
        penalize_intercept: bool = False,
        solver: Any = "auto",
        max_seconds: float | None = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.solver = solver
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        one_of("loss", self.loss, tuple(MARGIN_LOSSES))
        one_of("dual", self.dual, (True, False, "auto"))
        one_of("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        if one_of("penalty", self.penalty, ("l2", "l1")) == "l1" and self.multi_class == "crammer_singer":
            raise ValueError("multi_class='crammer_singer' needs penalty='l2'; use multi_class='ovr' with penalty='l1'")
        positive_C(self.C)

    def _loss(self) -> Loss:
        return Hinge() if self.multi_class == "crammer_singer" else MARGIN_LOSSES[self.loss]

    def _penalty(self, total_weight: float) -> Penalty:
        lam = lam_from_C(positive_C(self.C), total_weight)
        if self.multi_class == "crammer_singer":
            # of two classes: the least |w_0|^2 + |w_1|^2 with w_1 - w_0 = u is |u|^2 / 2
            return L2(lam / 2.0 if len(self.classes_) == 2 else lam)
        return elastic(lam, L1_RATIO[self.penalty])

    def _constant(self) -> float:
        return penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)

    def _parts(self, codes: Codes, weights: Vector) -> Iterator[tuple[Vector, Vector]]:
        """As LIBLINEAR weights classes: of more than two, only the positive one of each problem has its weight."""
        if len(self.classes_) == 2:
            yield from super()._parts(codes, weights)
            return
        each = class_weights(self.class_weight, self.classes_, codes, weights)
        for k, signs in enumerate(self._signs(codes)):
            yield signs, np.where(signs > 0, weights * each[k], weights)

    def _joint_loss(self) -> MulticlassLoss | None:
        return None if self.multi_class == "ovr" or len(self.classes_) == 2 else CrammerSinger()

    def _n_iter(self, counts: NDArray[np.int_]) -> int:
        return int(counts.max())


class LinearSVR(Regression):
    """Linear support vector regression, certified.

    Minimises, as scikit-learn's class of this name does, ::

        |w|_2^2 / 2  +  C sum_i s_i max(0, |x_i.w + b - y_i| - epsilon)   (or its square)

    but b is not penalised unless `penalize_intercept` says so.

    Parameters
    ----------
    epsilon : float, default 0.0
        Half the width of the tube inside which errors cost nothing.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    C : float, default 1.0
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default "epsilon_insensitive"
    fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, penalize_intercept, solver, max_seconds, \
warm_start, n_threads
        As in `LinearSVC`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : array of shape (1,)
    dual_coef_ : array of shape (n,)
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights.
    trace_ : Trace
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> LinearSVR(C=10.0, epsilon=1.0).fit(X, y).certificate_.ok
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int | None = None,
        penalize_intercept: bool = False,
        solver: Any = "auto",
        max_seconds: float | None = None,
        warm_start: bool = False,
        n_threads: int | None = 1,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.solver = solver
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        one_of("loss", self.loss, tuple(TUBE_LOSSES))
        one_of("dual", self.dual, (True, False, "auto"))
        positive_C(self.C)

    def _loss(self) -> Loss:
        loss: Loss = TUBE_LOSSES[self.loss](self.epsilon)
        return loss

    def _penalty(self, total_weight: float) -> Penalty:
        return L2(lam_from_C(positive_C(self.C), total_weight))

    def _constant(self) -> float:
        return penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)

    def _take_shape_of(self, y: Any) -> None:
        super()._take_shape_of(y)
        self.intercept_ = np.atleast_1d(self.intercept_)
