"""Kernel machines with a linear kernel: |w|_2^2 / 2 + C sum_i s_i loss(x_i.w + b; y_i), b free.

They store their dual coefficients, C s_i alpha_i in our terms, which are the best multipliers to start from.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import FittedModel, codes, coefficients, design, elastic_net, require
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.design import Design
from fenchel.data.target import as_weights
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import Problem
from fenchel.problem.losses import EpsilonInsensitive, Hinge
from fenchel.problem.scaling import lam_from_C

svm = adapters_of("sklearn.svm")


@svm("SVC")
def svc(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i c_i max(0, 1 - y_i (x_i.w + b)) for every pair of classes, over the samples of the two.

    c_i is the weight of the class. Of a pair, the first class is the positive one; of two classes in all, the second.
    """
    coef, intercept, matrix = _linear(model, X)
    n = matrix.shape[0]
    labels, s = codes(model, y, n), as_weights(sample_weight, n)
    weights = s * np.asarray(model.class_weight_, dtype=np.float64)[labels]
    k = len(model.classes_)
    pairs = [(1, 0)] if k == 2 else list(combinations(range(k), 2))
    claims: list[Claim] = []
    for (first, second), w, b in zip(pairs, coef, intercept, strict=True):
        inside = (labels == first) | (labels == second)
        part = np.where(inside, weights, 0.0)
        W = float(part.sum())
        penalty = elastic_net(model, lam_from_C(float(model.C), W))
        # the other samples have weight zero, so their sign does not matter
        problem = Problem(matrix, np.where(labels == second, -1.0, 1.0), Hinge(), penalty, part, intercept=True)
        alpha = _multipliers(_pair_duals(model, n, first, second), float(model.C), part)
        claims.append(LinearClaim(problem, w, b, alpha, scale=W / float(s.sum()), evidence=k == 2))
    return claims


@svm("SVR")
def svr(model: FittedModel, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> list[Claim]:
    """|w|_2^2 / 2 + C sum_i s_i max(0, |x_i.w + b - y_i| - epsilon); b is free."""
    coef, intercept, matrix = _linear(model, X)
    n = matrix.shape[0]
    s = as_weights(sample_weight, n)
    penalty = elastic_net(model, lam_from_C(float(model.C), float(s.sum())))
    problem = Problem(matrix, y, EpsilonInsensitive(float(model.epsilon)), penalty, s, intercept=True)
    duals = np.zeros(n)
    duals[model.support_] = _dense(model.dual_coef_)[0]
    return [LinearClaim(problem, coef[0], intercept[0], _multipliers(duals, float(model.C), s))]


def _linear(model: FittedModel, X: MatrixLike) -> tuple[Vector, Vector, Design]:
    require(model, model.kernel == "linear", f"its kernel is {model.kernel!r}; only kernel='linear' is supported")
    coef, intercept = coefficients(model)
    matrix = design(X, coef.shape[1])
    require(
        model,
        bool(np.max(model.support_, initial=-1) < matrix.shape[0]),
        f"it has support vectors beyond the {matrix.shape[0]} rows of X: give the data of the fit",
    )
    return coef, intercept, matrix


def _pair_duals(model: FittedModel, n: int, first: int, second: int) -> Vector:
    """The dual coefficients of one pair.

    LIBSVM keeps them in k - 1 rows; support vectors are sorted by class, and a vector of class i has its coefficient
    against class j in row j - 1 if j > i, else in row j.
    """
    duals, ends = np.zeros(n), np.cumsum(model.n_support_)
    stored = _dense(model.dual_coef_)
    for own, other in ((first, second), (second, first)):
        of_class = slice(ends[own] - model.n_support_[own], ends[own])
        row = other - 1 if other > own else other
        duals[model.support_[of_class]] = stored[row, of_class]
    return duals


def _multipliers(duals: Vector, C: float, weights: Vector) -> Vector:
    return np.divide(duals, C * weights, out=np.zeros_like(duals), where=weights > 0)


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
