"""celer's models, and torch's linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    FittedModel,
    chosen,
    codes,
    coefficients,
    design,
    elastic_net,
    group_lasso,
    require,
    require_free_signs,
    require_no_intercept,
    require_no_weights,
    require_rows,
    signs_by_class,
    weighted_l1,
)
from fenchel.certificate.adapters.registry import adapter
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import Logistic, Loss, Squared
from fenchel.problem.penalties import Penalty
from fenchel.problem.scaling import lam_from_C


@adapter("Lasso", "LassoCV", package="celer")
def lasso(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha sum_j weights_j |w_j|; b is free."""
    penalty = weighted_l1(model, float(chosen(model, "alpha")), getattr(model, "weights", None))
    return _least_squares(model, X, y, sample_weight, penalty)


@adapter("ElasticNet", "ElasticNetCV", package="celer")
def elastic(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b is free."""
    require(model, getattr(model, "weights", None) is None, "an elastic net with weights is not supported")
    penalty = elastic_net(model, float(chosen(model, "alpha")), float(chosen(model, "l1_ratio")))
    return _least_squares(model, X, y, sample_weight, penalty)


@adapter("GroupLasso", "GroupLassoCV", package="celer")
def group(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha sum_g weights_g |w_g|_2; b is free."""
    d = coefficients(model)[0].shape[1]
    alpha, weights = float(chosen(model, "alpha")), getattr(model, "weights", None)
    return _least_squares(model, X, y, sample_weight, group_lasso(model, alpha, model.groups, weights, d))


def _least_squares(
    model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None, penalty: Penalty
) -> list[Claim]:
    require_free_signs(model)
    coef, intercept = coefficients(model)
    require(model, len(coef) == 1, "it has several targets")
    matrix = design(X, coef.shape[1])
    problem = Problem(matrix, y, Squared(), penalty, sample_weight, bool(model.fit_intercept))
    return [LinearClaim(problem, coef[0], intercept[0])]


@adapter("LogisticRegression", package="celer")
def logistic(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_1 + C sum_i log(1 + exp(-y_i x_i.w)) for each class against the rest; no intercept."""
    require_no_weights(model, sample_weight)
    coef, intercept = coefficients(model)
    require_rows(model, coef)
    require_no_intercept(model, intercept)
    matrix = design(X, coef.shape[1])
    n = matrix.shape[0]
    penalty = elastic_net(model, lam_from_C(float(model.C), float(n)), 1.0)
    return [
        LinearClaim(Problem(matrix, signs, Logistic(), penalty), w)
        for signs, w in zip(signs_by_class(codes(model, y, n), len(coef)), coef, strict=True)
    ]


@adapter("Linear", package="torch.nn", options=("loss", "penalty", "intercept"))
def torch_linear(
    model: FittedModel,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    loss: Loss | None = None,
    penalty: Penalty | None = None,
    intercept: bool | None = None,
) -> list[Claim]:
    """(1/W) sum_i s_i loss(x_i.w + b; y_i) + penalty(w): a layer knows no objective, so loss and penalty are given."""
    if loss is None or penalty is None:
        raise TypeError(
            "a torch Linear layer does not know what it was trained to minimise; say it: "
            "certify(layer, X, y, loss=fl.losses.Logistic(), penalty=fl.penalties.L2(1e-3))"
        )
    weight = _numbers(model.weight)
    require(model, len(weight) == 1, f"it has {len(weight)} outputs; certify layers of one output")
    free = model.bias is not None if intercept is None else intercept
    problem = Problem(design(X, weight.shape[1]), y, loss, penalty, sample_weight, free)
    b = 0.0 if model.bias is None else float(_numbers(model.bias)[0])
    return [LinearClaim(problem, weight[0], b)]


def _numbers(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().double().numpy(), dtype=np.float64)
