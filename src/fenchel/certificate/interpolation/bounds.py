"""Bounds of an interpolation in exact arithmetic: D from below, scores, and points that satisfy equations exactly.

Multipliers are arrays A of shape (n, k), with the fractions p_i = s_i / W; v = sum_i p_i A_i x_i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fenchel.certificate.bounds.rounding import UNDERFLOW, dual_of
from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.vectors import row_lengths

#: Products of numbers above this with entries of X and fractions do not underflow.
SMALL = 1e-140


@dataclass(frozen=True)
class Multipliers:
    """A dual point known up to a little: some feasible point has entries theta_ij A_ij, 1 - shrink <= theta <= 1."""

    A: Vector
    shrink: float
    how: str

    @classmethod
    def of(cls, problem: Interpolation, alpha: Vector, how: str) -> Multipliers:
        """Multipliers from anywhere: in the domain of the supports, with sum_i s_i A_ij = 0 if there is an intercept.

        Scaling the positive or the negative entries of an output down keeps them in the domain.
        """
        A = np.reshape(problem.in_domain(np.nan_to_num(alpha)), (-1, problem.outputs))
        if not problem.intercept:
            return cls(A, 0.0, how)
        terms = np.ascontiguousarray((problem.fractions * A).T)  # sums along rows are pairwise
        up, down = (np.sum(np.maximum(side * terms, 0.0), axis=1) for side in (1.0, -1.0))
        if not problem.constraints.have_product_domains:
            return cls(np.zeros_like(A), 0.0, "zero")
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where((up > 0.0) & (down > 0.0), np.minimum(up, down) / np.maximum(up, down), 0.0)
        heavy = np.where(up > down, A > 0.0, A < 0.0)
        return cls(np.where(heavy, ratio * A, np.where(ratio > 0.0, A, 0.0)), 2.0 * EVALUATION, how)


@dataclass(frozen=True)
class DualValue:
    """D at a dual point as computed, and a bound below it; S, the part of the sets, and v with its error."""

    value: float
    lower: float
    alpha: Vector  # of the shape of the problem's multipliers
    how: str
    support: float  # S = -sum_i p_i sigma_i(-A_i)
    support_lower: float
    v: Vector
    error: Vector
    absolute: Vector  # sum_i p_i |A_i| |x_i|
    cancellation: float  # |v| beside sum_i p_i |A_i| max_i |x_i|: near 0 for multipliers that prove a contradiction
    feasible = True


def dual_bound(problem: Interpolation, point: Multipliers) -> DualValue:
    """D(A) and a bound below it at the exact feasible point near A."""
    A = point.A
    with np.errstate(all="ignore"):
        weighted = (problem.fractions * A).ravel()
        if not A.any():
            nothing = np.zeros(problem.X.shape[1])
            return _dual_value(problem, point, nothing, nothing, nothing)
        product = problem.X.rmatvec_bounded(weighted)
        error = product.error + (4.0 * EVALUATION + point.shrink) * product.absolute
        used = A.ravel() != 0.0
        if np.any(np.abs(weighted[used]) < SMALL):  # products may have underflowed
            error = error + UNDERFLOW * problem.X.rmatvec_bounded(used.astype(np.float64)).absolute + UNDERFLOW
        if not product.absolute.any() and not np.any(problem.X.row_norms(np.inf)[used]):
            error = np.zeros_like(error)
    return _dual_value(problem, point, product.value, error, product.absolute)


def _dual_value(problem: Interpolation, point: Multipliers, v: Vector, error: Vector, absolute: Vector) -> DualValue:
    """From v(A) within `error` of that of the exact feasible point near A."""
    A, constraints, penalty = point.A, problem.constraints, problem.penalty
    with np.errstate(all="ignore"):
        S, size = -problem.mean(constraints.support(-A)), problem.mean(constraints.support_size(-A))
        lost = (4.0 * EVALUATION + point.shrink) * size + UNDERFLOW
        value, lower = dual_of(S, S - lost, penalty.conjugate(v), penalty.conjugate_upper(v, error))
    if not np.isfinite(lower):
        value = lower = -np.inf
    alpha = A.reshape(problem.shapes[2])
    longest = float(problem.row_norms.max(initial=0.0)) * float(np.abs(problem.fractions * A).sum())
    cancellation = float(np.linalg.norm(v)) / max(longest, UNDERFLOW)
    return DualValue(value, lower, alpha, point.how, S, S - lost, v, error, absolute, cancellation)


def scaled_bound(problem: Interpolation, point: Multipliers) -> DualValue:
    """The better of D(A) and D(t A) with t = S / (2 R*(v)), the best one where R* is homogeneous of degree 2.

    t A as rounded has entries t A_ij (1 + e), |e| <= u, as `_dual_value` allows for; t v(A) is v of the exact t A.
    Where entries may underflow, v is computed from t A as rounded.
    """
    bound = dual_bound(problem, point)
    twice = 2.0 * problem.penalty.conjugate(bound.v)
    t = bound.support / twice if twice > 0.0 else np.inf
    if not (0.0 < t < np.inf) or abs(t - 1.0) < 1e-14:
        return bound
    with np.errstate(all="ignore"):
        scaled = replace(point, A=t * point.A)
        least = np.minimum(np.abs(scaled.A), np.abs(problem.fractions * scaled.A))
        if np.any(least[point.A != 0.0] < SMALL):
            other = dual_bound(problem, scaled)
        else:
            v, absolute = t * bound.v, t * bound.absolute
            error = t * bound.error * (1.0 + EVALUATION) + EVALUATION * np.abs(v) + UNDERFLOW
            other = _dual_value(problem, scaled, v, error, absolute)
    return other if other.lower > bound.lower else bound


@dataclass(frozen=True)
class ScoreBounds:
    """Scores as computed, n x k; how far each sample's are from the exact ones, at most, in the 2-norm."""

    Z: Vector
    error: Vector

    @classmethod
    def of(cls, problem: Interpolation, w: Vector, b: float | Vector) -> ScoreBounds:
        """Of a model; of the feasible point that w stands for (`Penalty.slack`)."""
        product, slack = problem.X.matvec_bounded(np.ravel(w)), problem.penalty.slack(np.ravel(w))
        Z = product.value.reshape(-1, problem.outputs) + b
        error = product.error + 1.01 * slack * product.absolute
        if np.any(product.absolute == 0.0):  # no product of two numbers, or one that has underflowed
            error = np.where((problem.X.row_norms(np.inf) > 0.0) & np.any(w), error, 0.0)
        error = error.reshape(Z.shape)
        error = error + 2.0 * UNIT_ROUNDOFF * (np.abs(Z) + np.abs(b))
        return cls(Z, row_lengths(error) * (1.0 + EVALUATION))

    def largest_distance(self, problem: Interpolation) -> float:
        """A bound on the largest distance of a score to its set."""
        return float(problem.constraints.distance_upper(self.Z, self.error)[problem.counts].max(initial=0.0))

    def mean_square(self, problem: Interpolation) -> float:
        """A bound on the root of the weighted mean squared distance."""
        distance = np.where(problem.counts, problem.constraints.distance_upper(self.Z, self.error), 0.0)
        return root_mean_square(problem, distance)


def root_mean_square(problem: Interpolation, lengths: Vector) -> float:
    """The root of the weighted mean of squares, from above; scaled, so that squares do not underflow."""
    largest = float(np.max(lengths, initial=0.0))
    if not 0.0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(problem.mean(np.square(lengths / largest)))) * (1.0 + EVALUATION) + UNDERFLOW
