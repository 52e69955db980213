"""scikit-learn's logistic regression: R(w) + C sum_i s_i c_i log(1 + exp(-y_i (x_i.w + b))).

R is |w|_2^2 / 2, |w|_1, or l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2; c_i is the weight of the class. LIBLINEAR
penalises the intercept, the other solvers do not. More than two classes have a softmax loss, or (LIBLINEAR and
multi_class="ovr", before version 1.8) one problem for each class.
"""

from __future__ import annotations

import numpy as np

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import (
    ModelFit,
    chosen,
    class_weights,
    elastic_net,
    relative,
    require,
    require_no_intercept,
)
from fenchel.certificate.adapters.liblinear import penalised_intercept
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem, Problem
from fenchel.problem.losses import Logistic, Multinomial
from fenchel.problem.problem import lam_from_C

linear_model = adapters_of("sklearn.linear_model")


@linear_model("LogisticRegression")
def logistic_regression(fit: ModelFit) -> list[Claim]:
    """The objective with the given parameters."""
    return _claims(fit, intercept_scaling=float(fit.model.intercept_scaling))


@linear_model("LogisticRegressionCV")
def logistic_regression_cv(fit: ModelFit) -> list[Claim]:
    """The objective with the parameters chosen by cross-validation; the last fit does not use intercept_scaling."""
    because = "with refit=False its weights are means over the folds, which do not minimise one objective"
    require(fit.model, fit.model.refit, because)
    return _claims(fit, intercept_scaling=1.0)


def _claims(fit: ModelFit, intercept_scaling: float) -> list[Claim]:
    model, k = fit.model, fit.n_classes
    C, ratio = _parameters(fit)
    scheme = getattr(model, "multi_class", "auto")
    if model.solver == "liblinear":
        by_label = hasattr(model, "C_")  # under cross-validation class weights become sample weights
        return penalised_intercept(fit, Logistic(), intercept_scaling, C, ratio, by_label)
    if not model.fit_intercept:
        require_no_intercept(model, fit.intercept)
    if len(fit.coef) == k and scheme != "ovr":
        s = fit.s * fit.class_weights(fit.sample_weight)[fit.labels]
        penalty = elastic_net(model, lam_from_C(C[0], float(s.sum())), ratio[0])
        softmax = MulticlassProblem(fit.matrix, fit.labels, Multinomial(), penalty, s, fit.has_intercept, k)
        return [LinearClaim(softmax, fit.coef, fit.intercept)]
    if k == 2 and scheme == "multinomial":
        return _two_class_softmax(fit, C[0], ratio[0])
    claims: list[Claim] = []
    for signs, w, b, C_k, ratio_k in zip(fit.signs, fit.coef, fit.intercept, C, ratio, strict=True):
        part = fit.s * _weights_against_rest(fit, signs)
        W = float(part.sum())
        penalty = elastic_net(model, lam_from_C(C_k, W), ratio_k)
        problem = Problem(fit.matrix, signs, Logistic(), penalty, part, fit.has_intercept)
        claims.append(LinearClaim(problem, w, b, scale=relative(C_k, C[0]) * W / float(fit.s.sum())))
    return claims


def _parameters(fit: ModelFit) -> tuple[Vector, Vector]:
    """C and l1_ratio of each row of coef_; penalty="l1" or "l2" overrides l1_ratio, penalty=None C."""
    model, rows = fit.model, len(fit.coef)
    named = getattr(model, "penalty", "deprecated")
    ratio = float(named == "l1") if named in ("l1", "l2") else chosen(model, "l1_ratio")
    ratio = [0.0 if value is None else value for value in np.asarray(ratio, dtype=object).reshape(-1)]
    C = np.asarray(np.inf if named is None else chosen(model, "C"), dtype=np.float64).reshape(-1)
    return np.broadcast_to(C, rows), np.broadcast_to(np.asarray(ratio, dtype=np.float64), rows)


def _weights_against_rest(fit: ModelFit, signs: Vector) -> Vector:
    """Class weights of one problem: by label; "balanced" without CV balances the class against the rest."""
    model = fit.model
    if model.class_weight != "balanced" or len(model.classes_) == 2 or hasattr(model, "C_"):
        return fit.class_weights(fit.sample_weight)[fit.labels]
    side = (signs > 0).astype(np.intp)
    return class_weights("balanced", np.array([-1.0, 1.0]), side, fit.sample_weight)[side]


def _two_class_softmax(fit: ModelFit, C: float, l1: float) -> list[Claim]:
    """Two classes with a softmax (multi_class="multinomial", before version 1.8): weights -w and w, coef_ is w.

    The loss is logistic in u = 2 w. Of all pairs with difference u, (-w, w) minimises R: |u|_2^2 / 2 and |u|_1.
    """
    s = fit.s * fit.class_weights(fit.sample_weight)[fit.labels]
    l2 = (1.0 - l1) / 2.0
    penalty = elastic_net(fit.model, lam_from_C(C, float(s.sum())) * (l1 + l2), l1 / (l1 + l2))
    problem = Problem(fit.matrix, fit.signs[0], Logistic(), penalty, s, fit.has_intercept)
    return [LinearClaim(problem, 2.0 * fit.coef[0], 2.0 * fit.intercept[0])]
