"""Adapters of `certify` for the estimators of this package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import codes
from fenchel.certificate.adapters.registry import adapter
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import LinearEstimator, sample_weights, stored_models
from fenchel.estimator.classification import Classification, class_problems, with_class_weights
from fenchel.estimator.interpolation.min_norm import MinNormRegressor
from fenchel.estimator.interpolation.perceptron import MarginClassifier
from fenchel.estimator.kernel.classifier import KernelClassifier
from fenchel.estimator.regression import Regression, target_problems
from fenchel.estimator.robust.huber import HuberRegressor, fitted_claim
from fenchel.problem import Interpolation, MulticlassProblem, Problem

ours = partial(adapter, package="fenchel.estimator")


@ours("Regression", "LinearSVR", "Ridge", "RidgeCV", "SparseRegression", "Lasso", "ElasticNet", "FusedLasso")
@ours("SparseRegressionCV", "LassoCV", "ElasticNetCV", "LpRegressor")
def regressor(model: Regression, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The weighted mean loss plus the penalty, for each target."""
    check_is_fitted(model)
    return _claims(model, target_problems(model._objective(), X, y, sample_weights(sample_weight, X)))


@ours("MinNormRegressor")
def least_norm(model: MinNormRegressor, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The least norm of weights that fit every sample, for each target."""
    check_is_fitted(model)
    return _constrained_claims(model, model._problems(X, y, sample_weights(sample_weight, X)))


@ours("LpPerceptron", "SparsePerceptron")
def perceptron(model: MarginClassifier, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The least norm of weights with a margin at every sample; several classes against the rest, or jointly."""
    check_is_fitted(model)
    labels = codes(model.classes_, y, np.shape(X)[0])
    weights = with_class_weights(model, labels, sample_weights(sample_weight, X))
    return _constrained_claims(model, model._problems(X, labels, weights))


def _constrained_claims(model: LinearEstimator, problems: Sequence[Interpolation]) -> list[Claim]:
    w, b, alpha = stored_models(model, 0.0)
    if len(problems) == 1 < len(w):  # one problem for all classes, without intercepts
        return [LinearClaim(problems[0], w.ravel(), 0.0, alpha[0])]
    return [
        LinearClaim(problem, w[k], float(b[k]), alpha[k] if len(alpha[k]) == problem.n_samples else None)
        for k, problem in enumerate(problems)
    ]


@ours("HuberRegressor")
def huber(model: HuberRegressor, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The joint objective in w, b and sigma."""
    check_is_fitted(model)
    return [fitted_claim(model, X, y, sample_weight)]


@ours("Classification", "LinearSVC", "LogisticRegression", "LogisticRegressionCV", "RidgeClassifier")
@ours("SparseLogisticRegression", "SparseLogisticRegressionCV", "LpClassifier")
def classifier(model: Classification, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The weighted mean loss plus the penalty; for more than two classes, each against the rest."""
    check_is_fitted(model)
    return _claims(model, class_problems(model, X, codes(model.classes_, y, np.shape(X)[0]), sample_weight))


@ours("KernelClassifier")
def kernel_classifier(
    model: KernelClassifier, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None
) -> list[Claim]:
    """The weighted mean loss plus the penalty, for functions of the kernel; several classes, each against the rest."""
    check_is_fitted(model)
    problems = model._problems(X, codes(model.classes_, y, np.shape(X)[0]), sample_weight)
    n, inside = len(problems[0].gram), int(np.max(model.support_, initial=-1))
    if inside >= n:
        raise ValueError(f"the model has support vectors beyond the {n} rows of X: pass the data of the fit")
    claims: list[Claim] = []
    for problem, own, b in zip(problems, model.dual_coef_, model.intercept_, strict=True):
        beta = np.zeros(n)
        beta[model.support_] = own
        claims.append(LinearClaim(problem, beta, float(b)))
    return claims


def _claims(model: LinearEstimator, problems: Sequence[Problem | MulticlassProblem]) -> list[Claim]:
    w, b, alpha = stored_models(model, problems[0].design.constant)
    claims: list[Claim] = []
    for k, problem in enumerate(problems):
        if isinstance(problem, MulticlassProblem):
            claims.append(LinearClaim(problem, w, b, _of_samples(alpha.T, problem)))
        else:
            claims.append(LinearClaim(problem, w[k], float(b[k]), _of_samples(alpha[k], problem)))
    return claims


def _of_samples(alpha: Vector, problem: Problem | MulticlassProblem) -> Vector | None:
    """The multipliers of the fit, if the number of samples is the same."""
    return alpha if len(alpha) == problem.shape[0] else None
