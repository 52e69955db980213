"""Sparse logistic regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np

from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import steps_of
from fenchel.estimator.classification import fit_classes
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.logistic import LogisticModel
from fenchel.estimator.objective import Objective, elastic, l1_ratio_of, nonnegative_alpha
from fenchel.estimator.sparse.lasso import require_one_each, weighted_l1
from fenchel.problem.losses import Logistic
from fenchel.problem.penalties import Penalty
from fenchel.solver import Result


class SparseLogisticModel(LogisticModel):
    """One-vs-rest logistic regression."""

    def _is_softmax(self) -> bool:
        return False


def store_zeros_and_steps(model: SparseLogisticModel, results: list[Result]) -> None:
    """Set the attributes of sparse logistic models."""
    model.certified_zeros_ = np.atleast_2d(model.certificate_.zeros())
    model.n_iter_ = steps_of(results)


@documented("classes", "zeros")
class SparseLogisticRegression(Watched, SparseLogisticModel):
    """Logistic regression with an L1 penalty or an elastic net, certified.

    Minimises ::

        1/W sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)

    with class weights c_i, W = sum_i s_i c_i, and an unpenalised intercept b: the objective of
    `LogisticRegression(penalty="l1", C=1 / (alpha W))`, divided by C W. More than two classes: one-vs-rest.

    Parameters
    ----------
    weights : array of d positive numbers, optional
        A factor of the penalty for each feature; with l1_ratio=1.

    Attributes
    ----------
    n_iter_ : array of the steps for each class

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import SparseLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegression(alpha=0.1, tol=1e-6).fit(scale(X), y)
    >>> int((model.coef_ == 0.0).sum()), int(model.certified_zeros_.sum())
    (26, 26)
    """

    alpha: float = 0.01
    _: KW_ONLY
    l1_ratio: float = 1.0
    weights: VectorLike | None = None
    max_seconds: float | None = None
    warm_start: bool = False
    verbose: int = 0
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        self._penalty()

    def _penalty(self) -> Penalty:
        alpha, ratio = nonnegative_alpha(self.alpha), l1_ratio_of(self.l1_ratio)
        if self.weights is None:
            return elastic(alpha, ratio)
        if ratio != 1.0:
            raise ValueError("weights are factors of the L1 norm: they need l1_ratio=1")
        return weighted_l1(alpha, self.weights)

    def _objective(self) -> Objective:
        if self.weights is not None:
            require_one_each(self.weights, self.n_features_in_)
        penalty = self._penalty()
        return Objective(Logistic(), lambda total: penalty, self.fit_intercept)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the labels y; a weight of 2 repeats the row."""
        store_zeros_and_steps(self, fit_classes(self, X, y, sample_weight))
        return self
