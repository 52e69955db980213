"""skglm's models: mean losses with the penalties that are convex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    FittedModel,
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
from fenchel.certificate.adapters.registry import adapters_of, claims_of
from fenchel.data.target import as_vector
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import Hinge, Huber, Logistic, Loss, Squared
from fenchel.problem.penalties import Penalty
from fenchel.problem.scaling import lam_from_C

adapter = adapters_of("skglm")


def _wanted_groups(penalty: Any) -> list[Any]:
    return np.split(np.asarray(penalty.grp_indices), np.asarray(penalty.grp_ptr)[1:-1])


#: Of a general estimator: our loss for a datafit, our penalty for a penalty, by the name of its class.
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
    "WeightedGroupL2": lambda r, d: group_lasso(r, float(r.alpha), _wanted_groups(r), r.weights, d),
}


@adapter("Lasso")
def lasso(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha |w|_1; b is free."""
    return _claims(model, X, y, sample_weight, Squared(), elastic_net(model, float(model.alpha), 1.0))


@adapter("WeightedLasso")
def weighted_lasso(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha sum_j weights_j |w_j|; b is free."""
    return _claims(model, X, y, sample_weight, Squared(), weighted_l1(model, float(model.alpha), model.weights))


@adapter("ElasticNet")
def elastic(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b is free."""
    penalty = elastic_net(model, float(model.alpha), float(model.l1_ratio))
    return _claims(model, X, y, sample_weight, Squared(), penalty)


@adapter("GroupLasso")
def group(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1 / 2n) sum_i (x_i.w + b - y_i)^2 + alpha sum_g weights_g |w_g|_2; b is free."""
    d = coefficients(model)[0].shape[1]
    penalty = group_lasso(model, float(model.alpha), model.groups, model.weights, d)
    return _claims(model, X, y, sample_weight, Squared(), penalty)


@adapter("SparseLogisticRegression")
def sparse_logistic(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """(1/n) sum_i log(1 + exp(-y_i (x_i.w + b))) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2) for each class.

    b is free. (With more than two classes skglm drops the intercepts that it has fitted; that shows as a gap.)
    """
    penalty = elastic_net(model, float(model.alpha), float(getattr(model, "l1_ratio", 1.0)))
    return _claims(model, X, y, sample_weight, Logistic(), penalty)


@adapter("LinearSVC")
def linear_svc(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i max(0, 1 - y_i x_i.w) for each class against the rest; never an intercept.

    dual_coef_ is C y_i alpha_i.
    """
    require_no_weights(model, sample_weight)
    coef, intercept = coefficients(model)
    require_rows(model, coef)
    require_no_intercept(model, intercept)
    matrix = design(X, coef.shape[1])
    n, C = matrix.shape[0], float(model.C)
    penalty = elastic_net(model, lam_from_C(C, float(n)))
    fitted_to = model.dual_coef_.shape[1]
    require(model, fitted_to == n, f"it was fitted to {fitted_to} samples, but X has {n}")
    signs_of_all = signs_by_class(codes(model, y, n), len(coef))
    return [
        LinearClaim(Problem(matrix, signs, Hinge(), penalty), w, 0.0, signs * dual / C)
        for signs, w, dual in zip(signs_of_all, coef, model.dual_coef_, strict=True)
    ]


@adapter("GeneralizedLinearEstimator")
def general(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """datafit(X w + b) + penalty(w), for the datafits and penalties that have a twin here; b is free."""
    datafit, penalty = type(model.datafit).__name__, type(model.penalty).__name__
    require(model, datafit in DATAFITS, f"its datafit {datafit} is none of {', '.join(DATAFITS)}")
    require(model, penalty in PENALTIES, f"its penalty {penalty} is none of {', '.join(PENALTIES)}")
    require_free_signs(model.penalty)
    d = coefficients(model)[0].shape[1]
    own = getattr(model.datafit, "sample_weights", None)
    loss = DATAFITS[datafit](model.datafit)
    return _claims(
        model, X, y, sample_weight, loss, PENALTIES[penalty](model.penalty, d), bool(model.solver.fit_intercept), own
    )


@adapter("GeneralizedLinearEstimatorCV")
def general_cv(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """The objective of the best estimator."""
    require(model, hasattr(model, "best_estimator_"), "it is not fitted")
    return claims_of(model.best_estimator_, X, y, sample_weight, {})


def _claims(
    model: FittedModel,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    loss: Loss,
    penalty: Penalty,
    intercept: bool | None = None,
    own_weights: Any = None,
) -> list[Claim]:
    require_no_weights(model, sample_weight)
    require_free_signs(model)
    coef, intercepts = coefficients(model)
    matrix = design(X, coef.shape[1])
    free = bool(model.fit_intercept) if intercept is None else intercept
    if loss.is_classification:
        require_rows(model, coef)
        columns = signs_by_class(codes(model, y, matrix.shape[0]), len(coef))
    else:
        require(model, len(coef) == 1, "it has several targets")
        columns = [as_vector(y, matrix.shape[0], "y")]
    return [
        LinearClaim(Problem(matrix, column, loss, penalty, own_weights, free), w, b)
        for column, w, b in zip(columns, coef, intercepts, strict=True)
    ]
