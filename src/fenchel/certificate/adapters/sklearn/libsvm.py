"""Kernel machines with a linear kernel: |w|_2^2 / 2 + C sum_i s_i loss(x_i.w + b; y_i), b unpenalised.

They store the dual coefficients C s_i alpha_i, which give the multipliers.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import ModelFit, elastic_net, require
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.losses import EpsilonInsensitive, Hinge
from fenchel.problem.scaling import lam_from_C

svm = adapters_of("sklearn.svm")


@svm("SVC")
def svc(fit: ModelFit) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i c_i max(0, 1 - y_i (x_i.w + b)) for each pair of classes, over the samples of the two.

    c_i is the weight of the class. The first class of a pair is the positive one; the second if there are only two.
    """
    _require_linear(fit)
    labels, k, C = fit.labels, len(fit.model.classes_), float(fit.model.C)
    weights = fit.s * np.asarray(fit.model.class_weight_, dtype=np.float64)[labels]
    pairs = [(1, 0)] if k == 2 else list(combinations(range(k), 2))
    claims: list[Claim] = []
    for (first, second), w, b in zip(pairs, fit.coef, fit.intercept, strict=True):
        inside = (labels == first) | (labels == second)
        part = np.where(inside, weights, 0.0)
        W = float(part.sum())
        penalty = elastic_net(fit.model, lam_from_C(C, W))
        # the other samples have weight zero, so their sign does not matter
        problem = Problem(fit.matrix, np.where(labels == second, -1.0, 1.0), Hinge(), penalty, part, intercept=True)
        alpha = _multipliers(_pair_duals(fit, first, second), C, part)
        claims.append(LinearClaim(problem, w, b, alpha, scale=W / float(fit.s.sum()), evidence=k == 2))
    return claims


@svm("SVR")
def svr(fit: ModelFit) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i max(0, |x_i.w + b - y_i| - epsilon); b is not penalised."""
    _require_linear(fit)
    model, s, C = fit.model, fit.s, float(fit.model.C)
    penalty = elastic_net(model, lam_from_C(C, float(s.sum())))
    problem = Problem(fit.matrix, fit.y, EpsilonInsensitive(float(model.epsilon)), penalty, s, intercept=True)
    duals = np.zeros(fit.n)
    duals[model.support_] = _dense(model.dual_coef_)[0]
    return [LinearClaim(problem, fit.coef[0], fit.intercept[0], _multipliers(duals, C, s))]


def _require_linear(fit: ModelFit) -> None:
    model = fit.model
    require(model, model.kernel == "linear", f"its kernel is {model.kernel!r}; only kernel='linear' is supported")
    inside = bool(np.max(model.support_, initial=-1) < fit.n)
    require(model, inside, f"it has support vectors beyond the {fit.n} rows of X: pass the data of the fit")


def _pair_duals(fit: ModelFit, first: int, second: int) -> Vector:
    """The dual coefficients of one pair.

    LIBSVM stores them in k - 1 rows; support vectors are sorted by class, and a vector of class i has its coefficient
    against class j in row j - 1 if j > i, else in row j.
    """
    model, duals = fit.model, np.zeros(fit.n)
    stored, ends = _dense(model.dual_coef_), np.cumsum(model.n_support_)
    for own, other in ((first, second), (second, first)):
        of_class = slice(ends[own] - model.n_support_[own], ends[own])
        row = other - 1 if other > own else other
        duals[model.support_[of_class]] = stored[row, of_class]
    return duals


def _multipliers(duals: Vector, C: float, weights: Vector) -> Vector:
    return np.divide(duals, C * weights, out=np.zeros_like(duals), where=weights > 0)


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
