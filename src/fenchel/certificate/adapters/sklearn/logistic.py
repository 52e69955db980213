"""scikit-learn's logistic regression: R(w) + C sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))).

R is |w|_2^2 / 2, |w|_1, or l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2; c_i is the weight of the class. LIBLINEAR
penalises the intercept, the other solvers do not. More than two classes have one softmax loss for all, or (LIBLINEAR
and multi_class="ovr", before version 1.8) one problem for each class.
"""

from __future__ import annotations

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim, MulticlassClaim
from fenchel.certificate.adapters.fitted import (
    Codes,
    FittedModel,
    chosen,
    class_weights,
    codes,
    coefficients,
    design,
    elastic_net,
    require,
    require_no_intercept,
    signs_by_class,
)
from fenchel.certificate.adapters.liblinear import penalised_intercept
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.design import Design
from fenchel.data.target import as_weights
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import MulticlassProblem, Problem
from fenchel.problem.losses import Logistic, Multinomial
from fenchel.problem.scaling import lam_from_C

linear_model = adapters_of("sklearn.linear_model")


@linear_model("LogisticRegression")
def logistic_regression(
    model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None
) -> list[Claim]:
    """The parameters as given."""
    return _claims(model, X, y, sample_weight, intercept_scaling=float(model.intercept_scaling))


@linear_model("LogisticRegressionCV")
def logistic_regression_cv(
    model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None
) -> list[Claim]:
    """The parameters that cross-validation chose; the last fit does not use intercept_scaling."""
    require(model, model.refit, "with refit=False its weights are means over the folds, and minimise no one objective")
    return _claims(model, X, y, sample_weight, intercept_scaling=1.0)


def _claims(
    model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None, intercept_scaling: float
) -> list[Claim]:
    coef, intercept = coefficients(model)
    k, solver = len(model.classes_), model.solver
    C, ratio = _parameters(model, len(coef))
    require(
        model,
        getattr(model, "penalty", "l2") is not None and bool(np.all(np.isfinite(C))),
        "it has no penalty, and without one there is no certificate of this kind (separable data have no minimiser)",
    )
    scheme = getattr(model, "multi_class", "auto")
    if solver == "liblinear":
        by_label = hasattr(model, "C_")  # under cross-validation class weights become sample weights
        return penalised_intercept(model, X, y, sample_weight, Logistic(), intercept_scaling, C, ratio, by_label)
    if not model.fit_intercept:
        require_no_intercept(model, intercept)
    matrix = design(X, coef.shape[1])
    labels = codes(model, y, matrix.shape[0])
    s = as_weights(sample_weight, matrix.shape[0])
    if len(coef) == k and scheme != "ovr":
        s = s * class_weights(model, labels, sample_weight)[labels]
        penalty = elastic_net(model, lam_from_C(C[0], float(s.sum())), ratio[0])
        softmax = MulticlassProblem(matrix, labels, Multinomial(), penalty, s, bool(model.fit_intercept), k)
        return [MulticlassClaim(softmax, coef, intercept)]
    if k == 2 and scheme == "multinomial":
        return _two_class_softmax(model, matrix, labels, s * class_weights(model, labels, sample_weight)[labels])
    claims: list[Claim] = []
    for signs, w, b, C_k, ratio_k in zip(signs_by_class(labels, len(coef)), coef, intercept, C, ratio, strict=True):
        part = s * _weights_against_rest(model, sample_weight, labels, signs)
        W = float(part.sum())
        penalty = elastic_net(model, lam_from_C(C_k, W), ratio_k)
        problem = Problem(matrix, signs, Logistic(), penalty, part, bool(model.fit_intercept))
        claims.append(LinearClaim(problem, w, b, scale=C_k * W / (C[0] * float(s.sum()))))
    return claims


def _parameters(model: FittedModel, rows: int) -> tuple[Vector, Vector]:
    """C and l1_ratio of each row of coef_; `penalty` says what l1_ratio is if it is "l1" or "l2"."""
    named = getattr(model, "penalty", "deprecated")
    ratio = float(named == "l1") if named in ("l1", "l2") else chosen(model, "l1_ratio")
    ratio = [0.0 if value is None else value for value in np.asarray(ratio, dtype=object).reshape(-1)]
    C = np.asarray(chosen(model, "C"), dtype=np.float64).reshape(-1)
    return np.broadcast_to(C, rows), np.broadcast_to(np.asarray(ratio, dtype=np.float64), rows)


def _weights_against_rest(model: FittedModel, sample_weight: VectorLike | None, labels: Codes, signs: Vector) -> Vector:
    """Class weights of one problem: by label, but "balanced" weighs the class against the rest (unless under CV)."""
    if model.class_weight != "balanced" or len(model.classes_) == 2 or hasattr(model, "C_"):
        return class_weights(model, labels, sample_weight)[labels]
    side = (signs > 0).astype(np.intp)
    return class_weights(_Sides(model.class_weight), side, sample_weight)[side]


class _Sides:
    """The rest and the class, as a model of two classes."""

    classes_ = np.array([-1.0, 1.0])

    def __init__(self, class_weight: object) -> None:
        self.class_weight = class_weight


def _two_class_softmax(model: FittedModel, matrix: Design, labels: Codes, s: Vector) -> list[Claim]:
    """Two classes with a softmax (multi_class="multinomial", before version 1.8): weights -w and w, coef_ is w.

    The loss is that of u = 2 w. Of all pairs with difference u, -w and w have the least
    penalties, |u|_2^2 / 2 and |u|_1.
    """
    coef, intercept = coefficients(model)
    C, ratio = _parameters(model, 1)
    l1, l2 = ratio[0], (1.0 - ratio[0]) / 2.0
    penalty = elastic_net(model, lam_from_C(C[0], float(s.sum())) * (l1 + l2), l1 / (l1 + l2))
    signs = np.where(labels == 1, 1.0, -1.0)
    problem = Problem(matrix, signs, Logistic(), penalty, s, bool(model.fit_intercept))
    return [LinearClaim(problem, 2.0 * coef[0], 2.0 * intercept[0])]
