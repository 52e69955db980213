"""LIBLINEAR's objectives: scikit-learn's LinearSVC and LinearSVR, and LIBLINEAR's own model files.

    R(w) + C sum_i s_i c_i loss(x_i.w; y_i),   R = |w|_2^2 / 2 or |w|_1

The intercept is the weight of a constant column, penalised like the others. c_i is the weight of the class; with more
than two classes each is set against the rest, and only the positive one has its weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

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
    require_no_intercept,
    require_rows,
)
from fenchel.certificate.adapters.liblinear_file import ModelFile, read_model
from fenchel.certificate.adapters.registry import adapter
from fenchel.data.design import Design
from fenchel.data.target import as_vector, as_weights
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from fenchel.problem.scaling import lam_from_C

#: Solver types of model files: loss and penalty.
SOLVERS = {
    "L2R_LR": ("logistic_regression", "l2"),
    "L2R_LR_DUAL": ("logistic_regression", "l2"),
    "L2R_L2LOSS_SVC": ("squared_hinge", "l2"),
    "L2R_L2LOSS_SVC_DUAL": ("squared_hinge", "l2"),
    "L2R_L1LOSS_SVC_DUAL": ("hinge", "l2"),
    "L1R_L2LOSS_SVC": ("squared_hinge", "l1"),
    "L1R_LR": ("logistic_regression", "l1"),
    "L2R_L2LOSS_SVR": ("squared_epsilon_insensitive", "l2"),
    "L2R_L2LOSS_SVR_DUAL": ("squared_epsilon_insensitive", "l2"),
    "L2R_L1LOSS_SVR_DUAL": ("epsilon_insensitive", "l2"),
}


def _loss(name: str, epsilon: float = 0.0) -> Loss:
    """A loss by LIBLINEAR's name; `epsilon` is the half width of the tube of a regression loss."""
    match name:
        case "hinge":
            return Hinge()
        case "squared_hinge":
            return SquaredHinge()
        case "logistic_regression":
            return Logistic()
        case "epsilon_insensitive":
            return EpsilonInsensitive(epsilon)
        case "squared_epsilon_insensitive":
            return SquaredEpsilonInsensitive(epsilon)
    raise ValueError(f"unknown loss {name!r}")


@adapter("LinearSVC", package="sklearn.svm")
def linear_svc(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_2^2 / 2 or |w|_1, plus C sum_i s_i c_i max(0, 1 - y_i x_i.w) or its square; the intercept is penalised."""
    require(
        model,
        model.multi_class == "ovr",
        f"multi_class={model.multi_class!r} is not supported (its loss is joint in all classes)",
    )
    require(model, model.penalty in ("l1", "l2"), f"its penalty {model.penalty!r} is not known")
    loss, scaling, l1_ratio = _loss(model.loss), float(model.intercept_scaling), float(model.penalty == "l1")
    return penalised_intercept(model, X, y, sample_weight, loss, scaling, float(model.C), l1_ratio)


@adapter("LinearSVR", package="sklearn.svm")
def linear_svr(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i max(0, |x_i.w - y_i| - epsilon) or its square; the intercept is penalised."""
    coef, intercept = coefficients(model)
    constant = float(model.intercept_scaling) if model.fit_intercept else 0.0
    matrix = design(X, coef.shape[1], constant)
    s = as_weights(sample_weight, matrix.shape[0])
    penalty = elastic_net(model, lam_from_C(float(model.C), float(s.sum())))
    problem = Problem(matrix, y, _loss(model.loss, float(model.epsilon)), penalty, s)
    return [LinearClaim(problem, _with_constant(model, coef[0], intercept[0], constant))]


def penalised_intercept(
    model: FittedModel,
    X: MatrixLike,
    y: VectorLike,
    sample_weight: VectorLike | None,
    loss: Loss,
    intercept_scaling: float,
    C: Vector | float,
    l1_ratio: Vector | float,
    by_label: bool = False,
) -> list[Claim]:
    """The problems of a classifier that LIBLINEAR fitted for scikit-learn; C and l1_ratio for all rows or for each.

    With `by_label`, every sample has the weight of its class in every problem.
    """
    coef, intercept = coefficients(model)
    require_rows(model, coef)
    constant = intercept_scaling if model.fit_intercept else 0.0
    matrix = design(X, coef.shape[1], constant)
    n = matrix.shape[0]
    s, labels = as_weights(sample_weight, n), codes(model, y, n)
    each = class_weights(model, labels, sample_weight)
    if by_label:
        full, each = s * each[labels], np.ones_like(each)
    else:
        full = s
    parts = against_rest(labels, len(coef), full, each)
    weights = [_with_constant(model, w, b, constant) for w, b in zip(coef, intercept, strict=True)]
    return _classifiers(model, matrix, parts, loss, l1_ratio, C, weights, s)


def _classifiers(
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
    """One claim for each pair of signs and sample weights; `free` are unpenalised intercepts."""
    claims: list[Claim] = []
    C, l1_ratio = np.broadcast_to(C, len(weights)), np.broadcast_to(l1_ratio, len(weights))
    for k, ((signs, part), w) in enumerate(zip(parts, weights, strict=True)):
        W = float(part.sum())
        penalty = elastic_net(model, lam_from_C(C[k], W), l1_ratio[k])
        problem = Problem(matrix, signs, loss, penalty, part, intercept=free is not None)
        b = 0.0 if free is None else float(free[k])
        claims.append(LinearClaim(problem, w, b, scale=C[k] * W / (C[0] * float(s.sum()))))
    return claims


def _with_constant(model: object, w: Vector, b: float, constant: float) -> Vector:
    """The weights with that of the constant column."""
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
    """A file that LIBLINEAR's train wrote; C, epsilon (-p), class weights (-wi) and -R are not stored in it."""
    model = read_model(path)
    if C is None:
        raise TypeError("a LIBLINEAR model file does not store C (option -c of train): give C=..., 1 if it was not set")
    require(model, model.solver in SOLVERS, f"its solver type {model.solver} is not supported")
    loss, penalty = SOLVERS[model.solver]
    constant = max(model.bias, 0.0)
    matrix = design(X, model.features, constant if regularize_bias else 0.0)
    s = as_weights(sample_weight, matrix.shape[0])
    weights, free = model.weights(matrix.shape[1])
    if not _loss(loss).is_classification:
        return _regression(model, matrix, y, s, loss, float(C), epsilon, weights[0], free)
    if epsilon is not None:
        raise TypeError(f"certify does not use epsilon for a classifier ({model.solver})")
    labels = codes(model, y, matrix.shape[0])
    if len(weights) == 1:  # the first label of the file is the positive one
        labels = 1 - labels
        model = model.reversed()
    given = class_weight or {}
    each = np.array([float(given.get(label, 1.0)) for label in model.classes_.tolist()])
    parts = against_rest(labels, len(weights), s, each)
    return _classifiers(model, matrix, parts, _loss(loss), float(penalty == "l1"), float(C), weights, s, free)


def _regression(
    model: ModelFile,
    matrix: Design,
    y: VectorLike,
    s: Vector,
    loss: str,
    C: float,
    epsilon: float | None,
    w: Vector,
    free: Vector | None,
) -> list[Claim]:
    if epsilon is None:
        raise TypeError(
            "a LIBLINEAR model file does not store the width of the tube (option -p of train): give epsilon=..., "
            "0.1 if it was not set"
        )
    penalty = elastic_net(model, lam_from_C(C, float(s.sum())))
    y = as_vector(y, matrix.shape[0], "y")
    problem = Problem(matrix, y, _loss(loss, float(epsilon)), penalty, s, intercept=free is not None)
    return [LinearClaim(problem, w, 0.0 if free is None else float(free[0]))]
