"""skglm's models with convex penalties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    ModelFit,
    elastic_net,
    group_lasso,
    require,
    require_free_signs,
    require_no_intercept,
    weighted_l1,
)
from fenchel.certificate.adapters.registry import adapters_of, claims_of
from fenchel.data.convert import as_vector
from fenchel.problem import Problem
from fenchel.problem.losses import Hinge, Huber, Logistic, Loss, Squared
from fenchel.problem.penalties import Penalty
from fenchel.problem.problem import lam_from_C

adapter = adapters_of("skglm")


def _members(penalty: Any) -> list[Any]:
    """The members of each group."""
    return np.split(np.asarray(penalty.grp_indices), np.asarray(penalty.grp_ptr)[1:-1])


#: Losses and penalties of a GeneralizedLinearEstimator by the names of its datafit and penalty classes.
DATAFITS: dict[str, Callable[[Any], Loss]] = {
    "Quadratic": lambda _: Squared(),
    "WeightedQuadratic": lambda _: Squared(),
    "QuadraticGroup": lambda _: Squared(),
    "Logistic": lambda _: Logistic(),
    "LogisticGroup": lambda _: Logistic(),
    "Huber": lambda datafit: Huber(float(datafit.delta)),
}
PENALTIES: dict[str, Callable[[Any, int], Penalty]] = {
    "L1": lambda r, d: elastic_net(r, float(r.alpha), 1.0),
    "L2": lambda r, d: elastic_net(r, float(r.alpha), 0.0),
    "L1_plus_L2": lambda r, d: elastic_net(r, float(r.alpha), float(r.l1_ratio)),
    "WeightedL1": lambda r, d: weighted_l1(r, float(r.alpha), r.weights),
    "WeightedGroupL2": lambda r, d: group_lasso(r, float(r.alpha), _members(r), r.weights, d),
}


@adapter("Lasso", "WeightedLasso")
def lasso(fit: ModelFit) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha sum_j weights_j |w_j|; b is not penalised."""
    weights = getattr(fit.model, "weights", None)
    return _claims(fit, Squared(), weighted_l1(fit.model, float(fit.model.alpha), weights))


@adapter("ElasticNet")
def elastic(fit: ModelFit) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b is not penalised."""
    return _claims(fit, Squared(), elastic_net(fit.model, float(fit.model.alpha), float(fit.model.l1_ratio)))


@adapter("GroupLasso")
def group(fit: ModelFit) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha sum_g weights_g |w_g|_2; b is not penalised."""
    model, d = fit.model, fit.coef.shape[1]
    return _claims(fit, Squared(), group_lasso(model, float(model.alpha), model.groups, model.weights, d))


@adapter("SparseLogisticRegression")
def sparse_logistic(fit: ModelFit) -> list[Claim]:
    """(1/n) sum_i log(1 + exp(-y_i (x_i.w + b))) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2) for each class.

    b is not penalised. (With more than two classes skglm drops the intercepts that it has fitted; that shows as a gap.)
    """
    l1_ratio = float(getattr(fit.model, "l1_ratio", 1.0))
    return _claims(fit, Logistic(), elastic_net(fit.model, float(fit.model.alpha), l1_ratio))


@adapter("LinearSVC")
def linear_svc(fit: ModelFit) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i max(0, 1 - y_i x_i.w) for each class against the rest; never an intercept.

    dual_coef_ is C y_i alpha_i.
    """
    fit.require_no_weights()
    fit.require_rows()
    require_no_intercept(fit.model, fit.intercept)
    model, n, C = fit.model, fit.n, float(fit.model.C)
    penalty = elastic_net(model, lam_from_C(C, float(n)))
    fitted_to = model.dual_coef_.shape[1]
    require(model, fitted_to == n, f"it was fitted to {fitted_to} samples, but X has {n}")
    return [
        LinearClaim(Problem(fit.matrix, signs, Hinge(), penalty), w, 0.0, signs * dual / C)
        for signs, w, dual in zip(fit.signs, fit.coef, model.dual_coef_, strict=True)
    ]


@adapter("GeneralizedLinearEstimator")
def general(fit: ModelFit) -> list[Claim]:
    """datafit(X w + b) + penalty(w) for the datafits and penalties listed above; b is not penalised."""
    model = fit.model
    datafit, penalty = type(model.datafit).__name__, type(model.penalty).__name__
    require(model, datafit in DATAFITS, f"its datafit {datafit} is none of {', '.join(DATAFITS)}")
    require(model, penalty in PENALTIES, f"its penalty {penalty} is none of {', '.join(PENALTIES)}")
    require_free_signs(model.penalty)
    own = getattr(model.datafit, "sample_weights", None)
    loss, ours = DATAFITS[datafit](model.datafit), PENALTIES[penalty](model.penalty, fit.coef.shape[1])
    return _claims(fit, loss, ours, bool(model.solver.fit_intercept), own)


@adapter("GeneralizedLinearEstimatorCV")
def general_cv(fit: ModelFit) -> list[Claim]:
    """The objective of the best estimator."""
    require(fit.model, hasattr(fit.model, "best_estimator_"), "it is not fitted")
    return claims_of(fit.model.best_estimator_, fit.X, fit.y, fit.sample_weight, {})


def _claims(
    fit: ModelFit, loss: Loss, penalty: Penalty, intercept: bool | None = None, own_weights: Any = None
) -> list[Claim]:
    fit.require_no_weights()
    require_free_signs(fit.model)
    free = fit.has_intercept if intercept is None else intercept
    if loss.is_classification:
        fit.require_rows()
        columns = fit.signs
    else:
        require(fit.model, len(fit.coef) == 1, "it has several targets")
        columns = [as_vector(fit.y, fit.n, "y")]
    return [
        LinearClaim(Problem(fit.matrix, column, loss, penalty, own_weights, free), w, b)
        for column, w, b in zip(columns, fit.coef, fit.intercept, strict=True)
    ]
