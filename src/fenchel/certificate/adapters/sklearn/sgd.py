"""scikit-learn's stochastic gradient descent: (1/n) sum_i s_i loss_i + alpha R(w).

The sum is divided by the number of samples n, not by their weight: each step shrinks w by eta alpha, whatever the
sample's weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    FittedModel,
    against_rest,
    class_weights,
    codes,
    coefficients,
    design,
    elastic_net,
    require,
    require_rows,
)
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.target import as_weights
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from fenchel.problem.penalties import Penalty
from fenchel.problem.scaling import lam_from_sum

linear_model = adapters_of("sklearn.linear_model")


@dataclass(frozen=True)
class _Scaled:
    """A loss that is `factor` times one of ours, made from the model's epsilon."""

    make: Callable[[float], Loss]
    factor: float = 1.0


LOSSES = {
    "hinge": _Scaled(lambda _: Hinge()),
    "log_loss": _Scaled(lambda _: Logistic()),
    "squared_hinge": _Scaled(lambda _: SquaredHinge()),
    # max(0, 1 - m)^2 for m >= -1, -4 m below
    "modified_huber": _Scaled(lambda _: SmoothedHinge(2.0), factor=4.0),
    "squared_error": _Scaled(lambda _: Squared()),
    "huber": _Scaled(Huber),
    "epsilon_insensitive": _Scaled(EpsilonInsensitive),
    "squared_epsilon_insensitive": _Scaled(SquaredEpsilonInsensitive),
}


@linear_model("SGDRegressor")
def sgd_regressor(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1/n) sum_i s_i loss(x_i.w + b; y_i) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b is free."""
    loss, factor = _loss(model)
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    s = as_weights(sample_weight, matrix.shape[0])
    penalty = _penalty(model, matrix.shape[0], float(s.sum()), factor)
    return [LinearClaim(Problem(matrix, y, loss, penalty, s, bool(model.fit_intercept)), coef[0], intercept[0])]


@linear_model("SGDClassifier")
def sgd_classifier(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1/n) sum_i s_i c_i loss(x_i.w + b; y_i) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2) for each class.

    y is -1 and +1, for the regression losses too; b is free; c_i is the weight of the class, of the positive class only
    if there are more than two. modified_huber is four times the smoothed hinge with gamma = 2.
    """
    loss, factor = _loss(model)
    coef, intercept = coefficients(model)
    require_rows(model, coef)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    s, labels = as_weights(sample_weight, n), codes(model, y, n)
    weights = class_weights(model, labels)
    claims: list[Claim] = []
    for (signs, part), w, b in zip(against_rest(labels, len(coef), s, weights), coef, intercept, strict=True):
        W = float(part.sum())
        problem = Problem(matrix, signs, loss, _penalty(model, n, W, factor), part, bool(model.fit_intercept))
        claims.append(LinearClaim(problem, w, b, scale=W / float(s.sum())))
    return claims


def _loss(model: FittedModel) -> tuple[Loss, float]:
    known = ", ".join(LOSSES)
    require(model, model.loss in LOSSES, f"its loss {model.loss!r} is none of those with a certificate ({known})")
    require(
        model,
        not model.early_stopping,
        "with early_stopping=True a part of the data was set aside, and the objective is that of the rest",
    )
    scaled = LOSSES[model.loss]
    return scaled.make(float(model.epsilon)), scaled.factor


def _penalty(model: FittedModel, n: int, W: float, factor: float) -> Penalty:
    known = model.penalty in ("l2", "l1", "elasticnet")
    lam = lam_from_sum(model.alpha * n, W, factor) if known else 0.0
    l1_ratio = float(model.l1_ratio) if model.penalty == "elasticnet" else float(model.penalty == "l1")
    return elastic_net(model, float(lam), l1_ratio)
