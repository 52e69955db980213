"""scikit-learn's penalised least squares, quantile regression and Huber regression."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import ModelFit, chosen, elastic_net, require, targets
from fenchel.certificate.adapters.huber import HuberClaim
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.convert import as_vector
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.losses import Pinball, Squared
from fenchel.problem.problem import lam_from_mean, lam_from_sum

linear_model = adapters_of("sklearn.linear_model")


@linear_model("Ridge", "RidgeCV")
def ridge(fit: ModelFit) -> list[Claim]:
    """sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_2^2, for each target; b is not penalised."""
    return _ridge_claims(fit, targets(fit.y, fit.n, len(fit.coef)), fit.s)


@linear_model("RidgeClassifier", "RidgeClassifierCV")
def ridge_classifier(fit: ModelFit) -> list[Claim]:
    """Ridge with targets -1 and +1, one-vs-rest; class weights multiply sample weights."""
    fit.require_rows()
    return _ridge_claims(fit, fit.signs, fit.s * fit.class_weights()[fit.labels])


@linear_model("LinearRegression")
def linear_regression(fit: ModelFit) -> list[Claim]:
    """sum_i s_i (x_i.w + b - y_i)^2, for each target."""
    return [
        LinearClaim(Problem(fit.matrix, y, Squared(), elastic_net(fit.model, 0.0), fit.s, fit.has_intercept), w, b)
        for y, w, b in zip(targets(fit.y, fit.n, len(fit.coef)), fit.coef, fit.intercept, strict=True)
    ]


def _ridge_claims(fit: ModelFit, columns: list[Vector], s: Vector) -> list[Claim]:
    alphas = np.broadcast_to(np.asarray(chosen(fit.model, "alpha"), dtype=np.float64).reshape(-1), len(fit.coef))
    claims: list[Claim] = []
    for y, w, b, alpha in zip(columns, fit.coef, fit.intercept, alphas, strict=True):
        # r^2 = 2 phi and |w|^2 = 2 (|w|^2 / 2)
        penalty = elastic_net(fit.model, lam_from_sum(2.0 * alpha, float(s.sum()), loss_factor=2.0))
        claims.append(LinearClaim(Problem(fit.matrix, y, Squared(), penalty, s, fit.has_intercept), w, b))
    return claims


@linear_model("Lasso", "LassoCV")
def lasso(fit: ModelFit) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_1, for each target; b is not penalised."""
    return _least_squares(fit, l1_ratio=1.0)


@linear_model("ElasticNet", "ElasticNetCV")
def elastic(fit: ModelFit) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2), for each target."""
    return _least_squares(fit, l1_ratio=float(chosen(fit.model, "l1_ratio")))


@linear_model("LassoLars", "LassoLarsCV", "LassoLarsIC")
def lasso_lars(fit: ModelFit) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha |w|_1 at the last alpha of the path; b is not penalised."""
    fit.require_no_weights()
    return _least_squares(fit, l1_ratio=1.0)


def _least_squares(fit: ModelFit, l1_ratio: float) -> list[Claim]:
    columns = targets(fit.y, fit.n, len(fit.coef))
    penalty = elastic_net(fit.model, lam_from_mean(float(chosen(fit.model, "alpha"))), l1_ratio)
    return [
        LinearClaim(Problem(fit.matrix, column, Squared(), penalty, fit.s, fit.has_intercept), w, b)
        for column, w, b in zip(columns, fit.coef, fit.intercept, strict=True)
    ]


@linear_model("QuantileRegressor")
def quantile(fit: ModelFit) -> list[Claim]:
    """(1/W) sum_i s_i pinball(y_i - x_i.w - b) + alpha |w|_1; b is not penalised."""
    penalty = elastic_net(fit.model, lam_from_mean(float(fit.model.alpha)), 1.0)
    loss = Pinball(float(fit.model.quantile))
    problem = Problem(fit.matrix, fit.y, loss, penalty, fit.sample_weight, fit.has_intercept)
    return [LinearClaim(problem, fit.coef[0], fit.intercept[0])]


@linear_model("HuberRegressor")
def huber(fit: ModelFit) -> list[Claim]:
    """sum_i s_i (sigma + sigma H((x_i.w + b - y_i) / sigma)) + alpha |w|_2^2 in w, b and sigma; see `HuberClaim`."""
    model, w, b = fit.model, fit.coef[0], float(fit.intercept[0])
    require(model, model.scale_ > 0.0, f"its scale_ is {model.scale_}")
    penalty = elastic_net(model, lam_from_sum(2.0 * float(model.alpha), float(fit.s.sum())))
    y, epsilon = as_vector(fit.y, fit.n, "y"), float(model.epsilon)
    return [HuberClaim(fit.matrix, y, fit.s, penalty, epsilon, fit.has_intercept, w, b, float(model.scale_))]
