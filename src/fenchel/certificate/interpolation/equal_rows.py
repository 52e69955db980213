"""Samples with equal features whose sets do not meet: a contradiction of two constraints.

Their scores z are the same for every model, so that z is in both sets. For any u the multipliers p_i alpha_i = u and
p_j alpha_j = -u have p_i alpha_i x_i + p_j alpha_j x_j = 0 exactly, and sup { u.z : z in Y_j } < inf { u.z : z in Y_i }
is S > 0, up to a factor. Such a u is a - b for the nearest points a and b of the two sets.
"""

from __future__ import annotations

import numpy as np

from fenchel.certificate.bounds.rounding import UNDERFLOW
from fenchel.certificate.interpolation.bounds import SMALL
from fenchel.data.products import EVALUATION
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Interpolation
from fenchel.problem.vectors import row_lengths

#: Products of equal rows with the same vector differ by rounding at most.
NEARLY = 2.0**-30
#: Alternating projections, by which a - b has its direction where one of two sets is round.
PROJECTIONS = 30


def contradictory_pair(problem: Interpolation) -> Vector | None:
    """Multipliers of two samples with equal features whose sets do not meet, or None."""
    order, first = _nearly_equal(problem)
    if not len(order):
        return None
    ends = problem.constraints.ends
    if ends is None:
        one, other = _apart(problem, order, first)
    else:
        low = np.where(problem.counts[:, None], ends[0], -np.inf)
        high = np.where(problem.counts[:, None], ends[1], np.inf)
        starts, groups = np.flatnonzero(first), np.cumsum(first) - 1
        most, least = np.maximum.reduceat(low[order], starts), np.minimum.reduceat(high[order], starts)
        bad = np.flatnonzero(np.any(most > least, axis=1))
        one, other = [], []
        for group in bad:
            rows = order[groups == group]
            j = int(np.argmax(most[group] - least[group]))
            one.append(rows[np.argmax(low[rows, j])])
            other.append(rows[np.argmin(high[rows, j])])
    for i, j in zip(one, other, strict=True):
        if _are_equal(problem, int(i), int(j)):
            return _multipliers(problem, int(i), int(j))
    return None


def _nearly_equal(problem: Interpolation) -> tuple[Indices, np.ndarray]:
    """Samples in groups whose features are nearly equal, as far as one product with random weights tells.

    In an order in which groups are together, and where one begins; without samples that are alone.
    """
    n, k = problem.n_samples, problem.outputs
    with np.errstate(all="ignore"):
        direction = np.random.default_rng(0).normal(size=problem.X.shape[1])
        z = problem.X.matvec(direction).reshape(n, k)[:, 0]
        size = problem.row_norms.reshape(n, k)[:, 0]
    usable = np.flatnonzero(problem.counts & np.isfinite(z) & np.isfinite(size))
    order = usable[np.argsort(z[usable], kind="stable")]
    if len(order) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    near = np.diff(z[order]) <= NEARLY * np.minimum(size[order][1:], size[order][:-1])
    first = np.concatenate([[True], ~near])
    kept = ~first | np.concatenate([near, [False]])
    return order[kept], first[kept]


def _are_equal(problem: Interpolation, i: int, j: int) -> bool:
    k = problem.outputs
    one, other = (problem.X.rows(np.arange(k) + sample * k) for sample in (i, j))
    return bool(np.array_equal(one, other))


def _apart(problem: Interpolation, order: Indices, first: np.ndarray) -> tuple[list[int], list[int]]:
    """Pairs of samples, neighbours in their groups, whose sets seem not to meet: those farthest apart first."""
    starts = np.flatnonzero(first)
    following = np.arange(1, len(order) + 1)
    following[np.append(starts[1:], len(order)) - 1] = starts  # the last of a group is followed by the first
    partner = order[following]
    a, b = _nearest_points(problem, order, partner)
    u = a - b
    S = _separation(problem, order, partner, u)
    ranked = np.argsort(-S / np.maximum(row_lengths(u), UNDERFLOW))
    ranked = ranked[S[ranked] > 0.0]
    return order[ranked].tolist(), partner[ranked].tolist()


def _nearest_points(problem: Interpolation, one: Indices, other: Indices) -> tuple[Vector, Vector]:
    """About those of the sets of pairs of samples."""
    project, Z = problem.constraints.project, np.zeros((problem.n_samples, problem.outputs))
    a = project(Z)[one]
    for _ in range(PROJECTIONS):
        Z[other] = a
        b = project(Z)[other]
        Z[one] = b
        a = project(Z)[one]
    return a, b


def _separation(problem: Interpolation, one: Indices, other: Indices, u: Vector) -> Vector:
    """inf { u.z : z in Y_i } - sup { u.z : z in Y_j } of pairs (i, j)."""
    U = np.zeros((problem.n_samples, problem.outputs))
    U[one] = -u
    least = -problem.constraints.support(U)[one]
    U[other] = u
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(least - problem.constraints.support(U)[other], nan=-np.inf)


def _multipliers(problem: Interpolation, i: int, j: int) -> Vector:
    pair = np.array([i]), np.array([j])
    a, b = _nearest_points(problem, *pair)
    u = a - b
    if problem.constraints.ends is not None:  # the widest gap alone: the others may have no ends there
        u = np.where(np.abs(u) == np.abs(u).max(), u, 0.0)
    beta = np.zeros((problem.n_samples, problem.outputs))
    beta[i], beta[j] = u[0] / np.abs(u).max(), -u[0] / np.abs(u).max()
    return problem.unweighted(beta)


def cancelling(problem: Interpolation, A: Vector) -> tuple[Vector, float] | None:
    """Multipliers of two samples with equal features, p_i alpha_i = -p_j alpha_j in exact arithmetic, and S from below.

    Of A, if it has two rows that are not zero and nearly cancel. alpha_i as rounded is within a relative error of
    2^-53 of the exact one, which changes S by that part of the terms of the supports, at most.
    """
    used = np.flatnonzero(np.any(A != 0.0, axis=1))
    if len(used) != 2 or not problem.constraints.have_product_domains:
        return None
    fractions = problem.fractions[used]
    one, other = fractions * A[used]
    if not np.all(np.abs(one + other) <= 1e-6 * np.abs(one)) or np.any(fractions < SMALL):
        return None
    beta = np.where(np.abs(one) > SMALL, one, 0.0)
    if not beta.any() or not _are_equal(problem, int(used[0]), int(used[1])):
        return None
    B = np.zeros_like(A)
    B[used] = np.array([beta, -beta]) / fractions
    if np.any(np.reshape(problem.in_domain(B), A.shape) != B):
        return None
    lost = 8.0 * EVALUATION * problem.mean(problem.constraints.support_size(-B))
    support = -problem.mean(problem.constraints.support(-B)) - lost - UNDERFLOW
    return (B, support) if support > 0.0 else None
