"""scikit-learn's least squares with a penalty, the median's relatives, and Huber's regression."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    FittedModel,
    chosen,
    class_weights,
    codes,
    coefficients,
    design,
    elastic_net,
    require,
    require_free_signs,
    require_no_weights,
    require_rows,
    signs_by_class,
    targets,
)
from fenchel.certificate.adapters.huber import HuberClaim
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.design import Design
from fenchel.data.target import as_vector, as_weights
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import Pinball, Squared
from fenchel.problem.scaling import lam_from_mean, lam_from_sum

linear_model = adapters_of("sklearn.linear_model")


@linear_model("Ridge", "RidgeCV")
def ridge(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_2^2, for each target; b is free."""
    require_free_signs(model)
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    s = as_weights(sample_weight, n)
    return _ridge_claims(model, matrix, targets(y, n, len(coef)), s, coef, intercept)


@linear_model("RidgeClassifier", "RidgeClassifierCV")
def ridge_classifier(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """Ridge with targets -1 and +1 for each class against the rest; class weights multiply those of the samples."""
    require_free_signs(model)
    coef, intercept = coefficients(model)
    require_rows(model, coef)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    labels = codes(model, y, n)
    s = as_weights(sample_weight, n) * class_weights(model, labels)[labels]
    return _ridge_claims(model, matrix, signs_by_class(labels, len(coef)), s, coef, intercept)


def _ridge_claims(
    model: FittedModel, matrix: Design, columns: list[Vector], s: Vector, coef: Vector, intercept: Vector
) -> list[Claim]:
    alphas = np.broadcast_to(np.asarray(chosen(model, "alpha"), dtype=np.float64).reshape(-1), len(coef))
    claims: list[Claim] = []
    for y, w, b, alpha in zip(columns, coef, intercept, alphas, strict=True):
        # squares are 2 phi, and |w|^2 is twice the half square
        penalty = elastic_net(model, lam_from_sum(2.0 * alpha, float(s.sum()), loss_factor=2.0))
        claims.append(LinearClaim(Problem(matrix, y, Squared(), penalty, s, bool(model.fit_intercept)), w, b))
    return claims


@linear_model("Lasso", "LassoCV")
def lasso(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_1, for each target; b is free."""
    return _least_squares(model, X, y, sample_weight, l1_ratio=1.0)


@linear_model("ElasticNet", "ElasticNetCV")
def elastic(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2), for each target."""
    return _least_squares(model, X, y, sample_weight, l1_ratio=float(chosen(model, "l1_ratio")))


@linear_model("LassoLars", "LassoLarsCV", "LassoLarsIC")
def lasso_lars(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha |w|_1, where the path stopped; b is free."""
    require_no_weights(model, sample_weight)
    return _least_squares(model, X, y, None, l1_ratio=1.0)


def _least_squares(
    model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None, l1_ratio: float
) -> list[Claim]:
    require_free_signs(model)
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    s = as_weights(sample_weight, n)
    penalty = elastic_net(model, lam_from_mean(float(chosen(model, "alpha"))), l1_ratio)
    return [
        LinearClaim(Problem(matrix, column, Squared(), penalty, s, bool(model.fit_intercept)), w, b)
        for column, w, b in zip(targets(y, n, len(coef)), coef, intercept, strict=True)
    ]


@linear_model("QuantileRegressor")
def quantile(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1/W) sum_i s_i pinball(y_i - x_i.w - b) + alpha |w|_1; b is free."""
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    penalty = elastic_net(model, lam_from_mean(float(model.alpha)), 1.0)
    problem = Problem(matrix, y, Pinball(float(model.quantile)), penalty, sample_weight, bool(model.fit_intercept))
    return [LinearClaim(problem, coef[0], intercept[0])]


@linear_model("HuberRegressor")
def huber(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """sum_i s_i (sigma + sigma H((x_i.w + b - y_i) / sigma)) + alpha |w|_2^2 in w, b and sigma; see `HuberClaim`."""
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    s = as_weights(sample_weight, n)
    require(model, model.scale_ > 0.0, f"its scale_ is {model.scale_}")
    penalty = elastic_net(model, lam_from_sum(2.0 * float(model.alpha), float(s.sum())))
    return [
        HuberClaim(
            matrix,
            as_vector(y, n, "y"),
            s,
            penalty,
            float(model.epsilon),
            bool(model.fit_intercept),
            coef[0],
            float(intercept[0]),
            float(model.scale_),
        )
    ]
