"""LIBLINEAR's objectives: scikit-learn's LinearSVC and LinearSVR, and LIBLINEAR's own model files.

    R(w) + C sum_i s_i c_i loss(x_i.w; y_i),   R = |w|_2^2 / 2 or |w|_1

The intercept is the weight of a constant column, penalised like the others. c_i is the weight of the class; with more
than two classes (one-vs-rest) only the positive class of each problem has its weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    ModelFit,
    against_rest,
    class_weights,
    codes,
    design,
    elastic_net,
    named_loss,
    relative,
    require,
    require_no_intercept,
)
from fenchel.certificate.adapters.liblinear_file import read_model
from fenchel.certificate.adapters.registry import adapter, adapters_of
from fenchel.data.convert import as_vector, as_weights
from fenchel.data.design import Design
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import Loss
from fenchel.problem.problem import lam_from_C

#: Solver types of model files: loss and penalty.
SOLVERS = {
    "L2R_LR": ("log_loss", "l2"),
    "L2R_LR_DUAL": ("log_loss", "l2"),
    "L2R_L2LOSS_SVC": ("squared_hinge", "l2"),
    "L2R_L2LOSS_SVC_DUAL": ("squared_hinge", "l2"),
    "L2R_L1LOSS_SVC_DUAL": ("hinge", "l2"),
    "L1R_L2LOSS_SVC": ("squared_hinge", "l1"),
    "L1R_LR": ("log_loss", "l1"),
    "L2R_L2LOSS_SVR": ("squared_epsilon_insensitive", "l2"),
    "L2R_L2LOSS_SVR_DUAL": ("squared_epsilon_insensitive", "l2"),
    "L2R_L1LOSS_SVR_DUAL": ("epsilon_insensitive", "l2"),
}


svm = adapters_of("sklearn.svm")


@svm("LinearSVC")
def linear_svc(fit: ModelFit) -> list[Claim]:
    """|w|_2^2 / 2 or |w|_1, plus C sum_i s_i c_i max(0, 1 - y_i x_i.w) or its square; the intercept is penalised."""
    model = fit.model
    because = f"multi_class={model.multi_class!r} is not supported (its loss is joint in all classes)"
    require(model, model.multi_class == "ovr", because)
    require(model, model.penalty in ("l1", "l2"), f"its penalty {model.penalty!r} is not known")
    loss, scaling, l1_ratio = (
        named_loss(model, model.loss),
        float(model.intercept_scaling),
        float(model.penalty == "l1"),
    )
    return penalised_intercept(fit, loss, scaling, float(model.C), l1_ratio)


@svm("LinearSVR")
def linear_svr(fit: ModelFit) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i max(0, |x_i.w - y_i| - epsilon) or its square; the intercept is penalised."""
    model = fit.model
    constant = float(model.intercept_scaling) if model.fit_intercept else 0.0
    matrix = design(fit.X, fit.coef.shape[1], constant)
    s = as_weights(fit.sample_weight, matrix.shape[0])
    penalty = elastic_net(model, lam_from_C(float(model.C), float(s.sum())))
    problem = Problem(matrix, fit.y, named_loss(model, model.loss, float(model.epsilon)), penalty, s)
    return [LinearClaim(problem, _with_constant(model, fit.coef[0], fit.intercept[0], constant))]


def penalised_intercept(
    fit: ModelFit,
    loss: Loss,
    intercept_scaling: float,
    C: Vector | float,
    l1_ratio: Vector | float,
    by_label: bool = False,
) -> list[Claim]:
    """The problems of a scikit-learn classifier fitted by LIBLINEAR; C and l1_ratio are shared or per row of coef_.

    With `by_label`, every sample has the weight of its class in every problem.
    """
    model, constant = fit.model, intercept_scaling if fit.has_intercept else 0.0
    fit.require_rows()
    matrix = design(fit.X, fit.coef.shape[1], constant)
    n = matrix.shape[0]
    s, labels = as_weights(fit.sample_weight, n), codes(model.classes_, fit.y, n)
    full, each = s, class_weights(model.class_weight, model.classes_, labels, fit.sample_weight)
    if by_label:
        full, each = s * each[labels], np.ones_like(each)
    parts = against_rest(labels, len(fit.coef), full, each)
    weights = [_with_constant(model, w, b, constant) for w, b in zip(*fit.coefficients, strict=True)]
    return _claims(model, matrix, parts, loss, l1_ratio, C, weights, s)


def _claims(
    model: object,
    matrix: Design,
    parts: Iterable[tuple[Vector, Vector]],
    loss: Loss,
    l1_ratio: Vector | float,
    C: Vector | float,
    weights: list[Vector],
    s: Vector,
    free: Vector | None = None,
) -> list[Claim]:
    """One claim for each pair of targets and sample weights; `free`: unpenalised intercepts, if any."""
    claims: list[Claim] = []
    C, l1_ratio = np.broadcast_to(C, len(weights)), np.broadcast_to(l1_ratio, len(weights))
    for k, ((y, part), w) in enumerate(zip(parts, weights, strict=True)):
        W = float(part.sum())
        penalty = elastic_net(model, lam_from_C(C[k], W), l1_ratio[k])
        problem = Problem(matrix, y, loss, penalty, part, intercept=free is not None)
        b = 0.0 if free is None else float(free[k])
        claims.append(LinearClaim(problem, w, b, scale=relative(C[k], C[0]) * W / float(s.sum())))
    return claims


def _with_constant(model: object, w: Vector, b: float, constant: float) -> Vector:
    """The weights, with the weight of the constant column."""
    if constant:
        return np.append(w, b / constant)
    require_no_intercept(model, np.array([b]))
    return w


@adapter("str", package="builtins", options=("C", "epsilon", "class_weight", "regularize_bias"))
@adapter("PurePath", package="pathlib", options=("C", "epsilon", "class_weight", "regularize_bias"))
def model_file(
    path: str | PurePath,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    C: float | None = None,
    epsilon: float | None = None,
    class_weight: dict[int, float] | None = None,
    regularize_bias: bool = True,
) -> list[Claim]:
    """A file written by LIBLINEAR's train; it does not store C, epsilon (-p), class weights (-wi) and -R."""
    model = read_model(path)
    if C is None:
        raise TypeError("a LIBLINEAR model file does not store C (option -c of train): pass C=..., by default 1")
    require(model, model.solver in SOLVERS, f"its solver type {model.solver} is not supported")
    name, penalty = SOLVERS[model.solver]
    loss = named_loss(model, name, float(epsilon or 0.0))
    matrix = design(X, model.features, max(model.bias, 0.0) if regularize_bias else 0.0)
    s = as_weights(sample_weight, matrix.shape[0])
    weights, free = model.weights(matrix.shape[1])
    parts: Iterable[tuple[Vector, Vector]]
    if loss.is_classification:
        if epsilon is not None:
            raise TypeError(f"certify does not use epsilon for a classifier ({model.solver})")
        labels = codes(model.classes_, y, matrix.shape[0])
        if len(weights) == 1:  # the first label of the file is the positive one
            labels = 1 - labels
            model = model.reversed()
        given = class_weight or {}
        each = np.array([float(given.get(label, 1.0)) for label in model.classes_.tolist()])
        parts = against_rest(labels, len(weights), s, each)
    elif epsilon is None:
        raise TypeError(
            "a LIBLINEAR model file does not store epsilon (option -p of train): pass epsilon=..., by default 0.1"
        )
    else:
        parts = [(as_vector(y, matrix.shape[0], "y"), s)]
    return _claims(model, matrix, parts, loss, float(penalty == "l1"), float(C), weights, s, free)
