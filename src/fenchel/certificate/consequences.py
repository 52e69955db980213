"""Consequences of a certified gap G: balls around the model, proven labels, zeros and support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate.bounds.differences import zero_differences
from fenchel.certificate.bounds.dual_point import LowerBound
from fenchel.certificate.bounds.rounding import DualBound, DualPoint, dual_bound, gap_between, loss_bound
from fenchel.data.products import UNIT_ROUNDOFF, Products
from fenchel.data.typing import Mask, MatrixLike, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import FusedL1
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.vectors import dual_exponent

if TYPE_CHECKING:
    from fenchel.certificate.evidence import Evidence


def labels(evidence: Evidence, X: MatrixLike) -> tuple[NDArray[np.int_], Mask]:
    """sign(x.w + b), proven where |x.w + b| exceeds |x|_* radius, the interval of b, and rounding."""
    design = _new_design(evidence, X)
    low, high = _score_interval(evidence, design)
    middle = design.matvec(evidence.w) + evidence.b
    return np.where(middle > 0, 1, -1), np.asarray((low > 0) | (high < 0))


def classes(evidence: Sequence[Evidence], X: MatrixLike) -> tuple[NDArray[np.int_], Mask]:
    """The class with the highest score, proven where its lower bound exceeds the upper bounds of all others."""
    design = _new_design(evidence[0], X)
    low, high = (np.stack(ends) for ends in zip(*(_score_interval(e, design) for e in evidence), strict=True))
    best = np.argmax([design.matvec(e.w) + e.b for e in evidence], axis=0)
    rows = np.arange(len(best))
    winner = low[best, rows]
    high[best, rows] = -np.inf
    return best, np.asarray(winner > high.max(axis=0))


def _new_design(evidence: Evidence, X: MatrixLike) -> Products:
    problem = evidence.problem
    if not np.all(np.abs(problem.y) == 1.0):
        raise TypeError("labels are for classification: the targets of this problem are not -1 and +1")
    design = problem.new_rows(X)
    if design.shape[1] != problem.shape[1]:
        raise ValueError(f"X has {design.n_features} columns, but the model has {problem.X.n_features} weights")
    return design


def multipliers(evidence: Evidence) -> tuple[Vector, Vector]:
    """The interval [-phi'(high), -phi'(low)] of alpha_i*, from the interval [low, high] of the optimal score."""
    problem = evidence.problem
    evidence.require_same_data()
    low, high = _score_interval(evidence, problem.X)
    first, last = problem.domain
    with np.errstate(over="ignore", invalid="ignore"):
        least = np.where(np.isfinite(high), -problem.loss.subdifferential(high, problem.y)[1], first)
        most = np.where(np.isfinite(low), -problem.loss.subdifferential(low, problem.y)[0], last)
    return (np.maximum(_outwards(problem, least, -1.0), first), np.minimum(_outwards(problem, most, 1.0), last))


def _outwards(problem: Problem, alpha: Vector, side: float) -> Vector:
    """alpha rounded outwards, unless it is a value that a piecewise linear or flat part of the loss attains exactly."""
    first, last = problem.domain
    exact = problem.loss.has_straight_parts & ((alpha == 0.0) | (alpha == first) | (alpha == last))
    return np.where(exact, alpha, alpha + side * (16 * UNIT_ROUNDOFF * np.abs(alpha) + 5e-324))


def zeros(evidence: Evidence) -> Mask:
    """Gap-safe rule: a beta-smooth loss makes D strongly concave, so sum_i s_i (alpha_i - alpha_i*)^2 <= 2 beta W G.

    Then |v_j - v_j*| <= sqrt(sum_i s_i x_ij^2 / W) sqrt(2 beta G), and `zero_groups` of the penalty applies. For
    lam |D w|_1: the entries of D w that are zero.
    """
    evidence.require_same_data()
    problem, bound = evidence.problem, evidence.feasible
    gap = gap_between(evidence.upper, bound.lower)
    if isinstance(problem.penalty, FusedL1):
        return zero_differences(problem, bound, gap)
    return _zeros_near(problem, bound.v, bound.error, gap)


def zeros_of_fit(evidence: Evidence, v: Vector, error: Vector) -> Mask:
    """The same by |v| of the solver's own dual point, known up to an error."""
    return _zeros_near(evidence.problem, v, error, gap_between(evidence.upper, evidence.own_lower))


def _zeros_near(problem: Problem, v: Vector, error: Vector, gap: float) -> Mask:
    smoothness = problem.loss.smoothness
    if not (np.isfinite(smoothness) and np.isfinite(gap)):
        return np.zeros(problem.shape[1], dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        columns = problem.X.column_norms(2.0, problem.weights) / np.sqrt(problem.total_weight)
        radius = columns * np.sqrt(2.0 * smoothness * gap) * (1.0 + 1e-9) + error
    return problem.penalty.zero_groups(v, np.where(np.isfinite(radius), radius, np.inf))


def _score_interval(evidence: Evidence, design: Products) -> tuple[Vector, Vector]:
    """An interval that contains x.w* + b*, for each row x of a design."""
    product = design.matvec_bounded(evidence.w)
    dual_norm = design.row_norms(dual_exponent(evidence.problem.penalty.norm))
    with np.errstate(invalid="ignore"):
        ball = np.where(dual_norm > 0, evidence.radius * dual_norm * (1.0 + 1e-9), 0.0)
    radius = ball + product.error + EVALUATION * np.abs(product.value)
    low_b, high_b = evidence.intercept_interval
    spare = EVALUATION * (np.abs(product.value) + abs(evidence.b))
    return product.value + low_b - radius - spare, product.value + high_b + radius + spare


def intercept_interval(evidence: Evidence) -> tuple[float, float]:
    """An interval that contains the unpenalised intercept of every optimum.

    For any multipliers alpha, feasible but for sum s_i alpha_i = 0, weak duality with b fixed says
    P(w*, b*) >= D(alpha) - r b*,  r = (1/W) sum s_i alpha_i. The left side is at most P(w, b), so r > 0 bounds b* from
    below and r < 0 from above. Candidates lie between the certificate's own multipliers and those of shifted scores;
    v is linear in alpha, so a whole segment costs one pass over the data.
    """
    problem = evidence.problem
    if not problem.intercept:
        return 0.0, 0.0
    low, high = -np.inf, np.inf
    if not np.isfinite(evidence.radius):
        return low, high
    own: DualBound | LowerBound = evidence.bound
    if problem.penalty.quadratic:  # its v may come from the weights, with a larger error than from a product
        own = dual_bound(problem, own.point)
    spread = float(np.median(np.abs(evidence.z - np.median(evidence.z)))) + 1.0
    # powers of ten, and their roots: half as many of each prove 30 instead of 46 % of the labels in docs/kernels.md
    for shift in spread * np.logspace(-8, 1, 10):
        for side in (-1.0, 1.0):
            alpha = -problem.loss.derivative(evidence.z + side * shift, problem.y)
            shifted = dual_bound(problem, DualPoint(problem.in_domain(np.nan_to_num(alpha))))
            for t in np.logspace(-9, 0, 19):
                least, most = _bounds_between(evidence, own, shifted, t)
                low, high = max(low, least), min(high, most)
    return low, high


def _bounds_between(
    evidence: Evidence, own: DualBound | LowerBound, shifted: DualBound, t: float
) -> tuple[float, float]:
    """Bounds on b* from alpha = (1 - t) own + t shifted: slack + r b* >= 0, slack = P - D(alpha)."""
    problem = evidence.problem
    alpha = problem.in_domain((1.0 - t) * own.point.alpha + t * shifted.point.alpha)
    v = (1.0 - t) * own.v + t * shifted.v
    # both errors allow for hundreds of roundings of every term; mixing adds three
    error = 1.02 * ((1.0 - t) * own.error + t * shifted.error) + 4 * UNIT_ROUNDOFF * np.abs(v)
    _, loss = loss_bound(problem, DualPoint(alpha))
    conjugate = problem.penalty.conjugate_upper(v, error)
    slack = evidence.upper - loss + conjugate
    slack += EVALUATION * (abs(evidence.upper) + abs(loss) + abs(conjugate))
    weighted = problem.weights * alpha / problem.total_weight
    r, r_error = float(weighted.sum()), 4.0 * EVALUATION * float(np.abs(weighted).sum())
    if not np.isfinite(slack) or abs(r) <= 2.0 * r_error:
        return -np.inf, np.inf
    end = max(slack / (abs(r) - r_error), slack / (abs(r) + r_error))
    end += EVALUATION * abs(end)
    return (-end, np.inf) if r > 0 else (-np.inf, end)
