"""Support vector machines, with the names and the constants of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np

from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import InterceptParameters, SparseWeights, VerboseFitParameters
from fenchel.estimator.classification import Classification, fit_classes
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, elastic, one_of, penalised_constant, positive_C
from fenchel.estimator.regression import Regression, fit_targets
from fenchel.problem.losses import (
    CrammerSinger,
    EpsilonInsensitive,
    Hinge,
    Loss,
    MulticlassLoss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from fenchel.problem.problem import lam_from_C


@documented("classes")
class LinearSVC(Watched, InterceptParameters, VerboseFitParameters, SparseWeights, Classification):
    """A linear support vector machine, certified.

    Minimises, as scikit-learn's class of this name does, ::

        |w|_2^2 / 2  (or |w|_1)  +  C sum_i s_i c_i max(0, 1 - y_i (x_i.w + b))   (or its square)

    but b is not penalised unless `penalize_intercept` is True. More than two classes: one-vs-rest (where only the class
    itself has its weight c), or jointly with "crammer_singer".

    Parameters
    ----------
    penalty : {"l2", "l1"}, default "l2"
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
    C : float, default 1.0
        Inverse weight of the penalty.
    multi_class : {"ovr", "crammer_singer"}, default "ovr"
        With "crammer_singer" the loss is max_j (1[j != y] + z_j) - z_y, and `loss` is ignored, as in scikit-learn.

    Attributes
    ----------
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights; summed over the classes.
    n_iter_ : int
        The largest number of steps of a class.

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

    penalty: str = "l2"
    loss: str = "squared_hinge"
    _: KW_ONLY
    C: float = 1.0
    dual: bool | str = "auto"
    multi_class: str = "ovr"

    def _check_parameters(self) -> None:
        one_of("loss", self.loss, ("hinge", "squared_hinge"))
        one_of("dual", self.dual, (True, False, "auto"))
        one_of("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        if one_of("penalty", self.penalty, ("l2", "l1")) == "l1" and self.multi_class == "crammer_singer":
            raise ValueError("multi_class='crammer_singer' needs penalty='l2'; use multi_class='ovr' with penalty='l1'")
        positive_C(self.C)

    def _objective(self) -> Objective:
        C = positive_C(self.C)
        constant = penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)
        l1_ratio = 1.0 if self.penalty == "l1" else 0.0
        loss: Loss | MulticlassLoss = Hinge() if self.loss == "hinge" else SquaredHinge()
        factor = 1.0
        if self.multi_class == "crammer_singer":
            pair = len(self.classes_) == 2
            # two classes: min |w_0|^2 + |w_1|^2 subject to w_1 - w_0 = u is |u|^2 / 2
            loss, factor = (Hinge(), 0.5) if pair else (CrammerSinger(), 1.0)
        # class weights as in LIBLINEAR: with more than two classes only the positive one of each problem has its weight
        return Objective(
            loss,
            lambda total: elastic(factor * lam_from_C(C, total), l1_ratio),
            self.fit_intercept,
            constant,
            weigh_rest=False,
        )

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        results = fit_classes(self, X, y, sample_weight)
        self.n_iter_ = max(result.n_iter for result in results)
        return self


@documented("target")
class LinearSVR(Watched, InterceptParameters, VerboseFitParameters, Regression):
    """Linear support vector regression, certified.

    Minimises, as scikit-learn's class of this name does, ::

        |w|_2^2 / 2  +  C sum_i s_i max(0, |x_i.w + b - y_i| - epsilon)   (or its square)

    but b is not penalised unless `penalize_intercept` is True.

    Parameters
    ----------
    epsilon : float, default 0.0
        Half the width of the tube in which the loss is zero.
    C : float, default 1.0
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default "epsilon_insensitive"

    Attributes
    ----------
    intercept_ : array of shape (1,)
    certificate_ : Certificate
        Of the objective divided by C times the sum of the weights.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> LinearSVR(C=10.0, epsilon=1.0).fit(X, y).certificate_.ok
    True
    """

    _: KW_ONLY
    epsilon: float = 0.0
    C: float = 1.0
    loss: str = "epsilon_insensitive"
    dual: bool | str = "auto"

    def _check_parameters(self) -> None:
        one_of("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        one_of("dual", self.dual, (True, False, "auto"))
        positive_C(self.C)

    def _objective(self) -> Objective:
        C, squared = positive_C(self.C), self.loss == "squared_epsilon_insensitive"
        loss = SquaredEpsilonInsensitive(self.epsilon) if squared else EpsilonInsensitive(self.epsilon)
        constant = penalised_constant(self.fit_intercept, self.penalize_intercept, self.intercept_scaling)
        return Objective(loss, lambda total: elastic(lam_from_C(C, total), 0.0), self.fit_intercept, constant)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        fit_targets(self, X, y, sample_weight)
        self.intercept_ = np.atleast_1d(self.intercept_)
        return self
