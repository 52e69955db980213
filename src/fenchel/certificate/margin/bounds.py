"""Bounds on margins: what a classifier has, and what none exceeds, in exact arithmetic.

With a_r the rows of differences and e_r those of the intercepts (`LargestMargin`), every q >= 0 with sum_r q_r = 1 and
r = sum_r q_r e_r gives

    margin(w, b) |w|_p <= sum_r q_r (a_r.w + e_r.b) = (A'q).w + r.b <= |A'q|_p* |w|_p + |r.b|.

A classifier with |w|_p <= 1 and a margin that is not negative has |b| <= F for two classes, and |b_a - b_c| <= F for
more, F = max_r |a_r|_p*: a sample of each class bounds b from its side. So |r.b| <= |r| F, or F sum_c |r_c| / 2, since
sum_c r_c = 0: multipliers need not satisfy r = 0 exactly, and

    best margin <= (|A'q|_p* + |r| F) / sum_r q_r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.certificate.bounds.rounding import DOWN, UP
from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.margin import LargestMargin, Model

#: Weights with entries outside of these powers of two are scaled first.
FAR = 300


@dataclass(frozen=True, eq=False)
class Margin:
    """A bound below the margin of a model, 0 if w is 0; the differences as computed."""

    lower: float
    differences: Vector
    rounding: float = 0.0  # the relative error of the least difference; 0 if it is bounded as tightly as it can be

    @property
    def misclassified(self) -> int:
        """The number of samples that are not on their side as computed."""
        rows = self.differences.reshape(len(self.differences), -1)
        return int(np.count_nonzero(~(rows.min(axis=1) > 0.0)))


@np.errstate(all="ignore")
def margin_of(problem: LargestMargin, model: Model, accuracy: float = 0.0) -> Margin:
    """The margin of a model.

    Rounding errors are bounded tightly unless they are below this relative accuracy anyway.
    """
    w, b, lost = np.asarray(model.w, dtype=np.float64), np.ravel(np.asarray(model.b, dtype=np.float64)), 0.0
    exponent = int(np.frexp(np.abs(w).max(initial=0.0))[1])
    if abs(exponent) > FAR and w.any():  # as a power of two it is exact, but for entries that underflow
        scaled, shift = np.ldexp(w, -exponent), np.ldexp(b, -exponent)
        if np.any(np.ldexp(scaled, exponent) != w) or np.any(np.ldexp(shift, exponent) != b):
            lost = 2.0**-1070 * (problem.largest_score + 1.0)
        w, b = scaled, shift
    value, error = problem.differences(Model(w, b))
    largest, smallest = float(error.max()), float(value.min())
    rounding = largest / smallest if largest <= accuracy * smallest and smallest > 0.0 else 0.0
    if not largest <= accuracy * smallest:
        value, error = problem.differences(Model(w, b), tight=True)
    below = np.where(np.isfinite(value), value - error, -np.inf) - lost
    least = float(np.min(below)) - 4.0 * UNIT_ROUNDOFF * abs(float(np.min(below)))
    shortest, longest = problem.penalty.lengths(w.ravel())
    if not longest > 0.0:
        return Margin(0.0, value)
    if least > 0.0:
        return Margin(least / longest * DOWN, value, rounding)
    return Margin(least / shortest * UP if shortest > 0.0 else -np.inf, value, rounding)


def balanced(problem: LargestMargin, q: Vector) -> Vector:
    """q scaled so that its sums for both classes agree up to rounding; for more classes as it is."""
    if not (problem.intercept and problem.is_binary):
        return q
    up = problem.y > 0.0
    sums = float(q[up].sum()), float(q[~up].sum())
    if not min(sums) > 0.0:
        return q
    heavier = up if sums[0] > sums[1] else ~up
    return np.where(heavier, q * (min(sums) / max(sums)), q)


@np.errstate(all="ignore")
def exceeded_by_none(problem: LargestMargin, q: Vector) -> float:
    """A bound on the best margin from multipliers q >= 0; infinite for q = 0."""
    q = np.ravel(np.maximum(q, 0.0))
    largest = float(q.max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return np.inf
    q = balanced(problem, np.ldexp(q, -int(np.frexp(largest)[1])))
    if problem.is_binary:
        signed = problem.y * q
        product, sums = problem.X.rmatvec_bounded(signed), np.array([signed.sum()])
    else:
        product, sums = problem.pairs.rmatvec_bounded(q), np.ascontiguousarray(problem.pairs.spread(q).T).sum(axis=1)
    total = float(q.sum())
    apart = 0.0
    if problem.intercept:
        missed = np.abs(sums) + EVALUATION * total
        apart = float(missed.sum()) * (1.0 if problem.is_binary else 0.5) * problem.farthest * UP
    length = problem.penalty.conjugate_upper(product.value, product.error)
    found = (length + apart) * UP / (total * DOWN) * UP
    return found if np.isfinite(found) else np.inf
