"""scikit-learn's stochastic gradient descent: (1/n) sum_i s_i loss_i + alpha R(w).

The sum is divided by n, not by the total weight: each step shrinks w by eta alpha, independent of the sample's weight.
"""

from __future__ import annotations

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import ModelFit, against_rest, elastic_net, named_loss, require
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.problem import Problem
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.problem.problem import lam_from_sum

linear_model = adapters_of("sklearn.linear_model")


@linear_model("SGDRegressor")
def sgd_regressor(fit: ModelFit) -> list[Claim]:
    """(1/n) sum_i s_i loss(x_i.w + b; y_i) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2); b is not penalised."""
    loss, factor = _loss(fit)
    penalty = _penalty(fit, float(fit.s.sum()), factor)
    problem = Problem(fit.matrix, fit.y, loss, penalty, fit.s, fit.has_intercept)
    return [LinearClaim(problem, fit.coef[0], fit.intercept[0])]


@linear_model("SGDClassifier")
def sgd_classifier(fit: ModelFit) -> list[Claim]:
    """(1/n) sum_i s_i c_i loss(x_i.w + b; y_i) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2) for each class.

    y is -1 and +1, for regression losses as well; b is not penalised; c_i is the weight of the class, with more than
    two classes only of the positive one. modified_huber is four times the smoothed hinge with gamma = 2.
    """
    loss, factor = _loss(fit)
    fit.require_rows()
    parts = against_rest(fit.labels, len(fit.coef), fit.s, fit.class_weights())
    claims: list[Claim] = []
    for (signs, part), w, b in zip(parts, fit.coef, fit.intercept, strict=True):
        W = float(part.sum())
        problem = Problem(fit.matrix, signs, loss, _penalty(fit, W, factor), part, fit.has_intercept)
        claims.append(LinearClaim(problem, w, b, scale=W / float(fit.s.sum())))
    return claims


def _loss(fit: ModelFit) -> tuple[Loss, float]:
    """The loss, and the factor c of the model's loss c phi."""
    loss = named_loss(fit.model, fit.model.loss, float(fit.model.epsilon))
    because = "with early_stopping=True it was fitted to an unknown part of the data"
    require(fit.model, not fit.model.early_stopping, because)
    # modified_huber is max(0, 1 - m)^2 for m >= -1, -4 m below
    return loss, 4.0 if fit.model.loss == "modified_huber" else 1.0


def _penalty(fit: ModelFit, W: float, factor: float) -> Penalty:
    model = fit.model
    known = model.penalty in ("l2", "l1", "elasticnet")
    lam = lam_from_sum(model.alpha * fit.n, W, factor) if known else 0.0
    l1_ratio = float(model.l1_ratio) if model.penalty == "elasticnet" else float(model.penalty == "l1")
    return elastic_net(model, float(lam), l1_ratio)
