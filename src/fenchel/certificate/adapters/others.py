"""celer's models, and torch's linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    ModelFit,
    chosen,
    design,
    elastic_net,
    group_lasso,
    require,
    require_free_signs,
    require_no_intercept,
    weighted_l1,
)
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.problem import Problem
from fenchel.problem.losses import Logistic, Loss, Squared
from fenchel.problem.penalties import Penalty
from fenchel.problem.problem import lam_from_C

celer, torch = adapters_of("celer"), adapters_of("torch.nn")


@celer("Lasso", "LassoCV")
def lasso(fit: ModelFit) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha sum_j weights_j |w_j|; b is not penalised."""
    weights = getattr(fit.model, "weights", None)
    return _least_squares(fit, weighted_l1(fit.model, float(chosen(fit.model, "alpha")), weights))


@celer("ElasticNet", "ElasticNetCV")
def elastic(fit: ModelFit) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b unpenalised."""
    model = fit.model
    require(model, getattr(model, "weights", None) is None, "an elastic net with weights is not supported")
    return _least_squares(fit, elastic_net(model, float(chosen(model, "alpha")), float(chosen(model, "l1_ratio"))))


@celer("GroupLasso", "GroupLassoCV")
def group(fit: ModelFit) -> list[Claim]:
    """(1 / 2W) sum_i s_i (x_i.w + b - y_i)^2 + alpha sum_g weights_g |w_g|_2; b is not penalised."""
    alpha, weights = float(chosen(fit.model, "alpha")), getattr(fit.model, "weights", None)
    return _least_squares(fit, group_lasso(fit.model, alpha, fit.model.groups, weights, fit.coef.shape[1]))


def _least_squares(fit: ModelFit, penalty: Penalty) -> list[Claim]:
    require_free_signs(fit.model)
    require(fit.model, len(fit.coef) == 1, "it has several targets")
    problem = Problem(fit.matrix, fit.y, Squared(), penalty, fit.sample_weight, fit.has_intercept)
    return [LinearClaim(problem, fit.coef[0], fit.intercept[0])]


@celer("LogisticRegression")
def logistic(fit: ModelFit) -> list[Claim]:
    """|w|_1 + C sum_i log(1 + exp(-y_i x_i.w)) for each class against the rest; no intercept."""
    fit.require_no_weights()
    fit.require_rows()
    require_no_intercept(fit.model, fit.intercept)
    penalty = elastic_net(fit.model, lam_from_C(float(fit.model.C), float(fit.n)), 1.0)
    return [
        LinearClaim(Problem(fit.matrix, signs, Logistic(), penalty), w)
        for signs, w in zip(fit.signs, fit.coef, strict=True)
    ]


@torch("Linear", options=("loss", "penalty", "intercept"))
def torch_linear(
    fit: ModelFit, loss: Loss | None = None, penalty: Penalty | None = None, intercept: bool | None = None
) -> list[Claim]:
    """(1/W) sum_i s_i loss(x_i.w + b; y_i) + penalty(w), loss and penalty given by the caller."""
    if loss is None or penalty is None:
        raise TypeError(
            "a torch Linear layer does not store its objective; pass loss and penalty, as in "
            "certify(layer, X, y, loss=fl.losses.Logistic(), penalty=fl.penalties.L2(1e-3))"
        )
    model, weight = fit.model, _numbers(fit.model.weight)
    require(model, len(weight) == 1, f"it has {len(weight)} outputs; only layers with one output are supported")
    free = model.bias is not None if intercept is None else intercept
    problem = Problem(design(fit.X, weight.shape[1]), fit.y, loss, penalty, fit.sample_weight, free)
    b = 0.0 if model.bias is None else float(_numbers(model.bias)[0])
    return [LinearClaim(problem, weight[0], b)]


def _numbers(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().double().numpy(), dtype=np.float64)
