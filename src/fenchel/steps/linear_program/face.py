"""The face of optima near an interior point: which residuals are zero there, and a model and multipliers on it.

Near the end of an interior-point method every row has either r_k = 0 and a_k inside its interval, or r_k != 0 and a_k
at an end of it: the one whose part of its scale is smaller. Let Z be the rows with r_k = 0. Then

    A_Z theta = t_Z,        A_Z' a_Z = -A' a_N,   a_N at the ends that the signs of r_N say,

are linear equations for theta and for a_Z: of as many rows as columns at a corner, which is then exact up to rounding.
On a larger face the nearest solutions are taken. For weights that are penalised one by one Z says which are zero, and
these and their multipliers need no equations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import FusedL1
from fenchel.steps.first_order.fused_face import face_basis, joins_pairs
from fenchel.steps.linear_program.rows import Rows


@dataclass(frozen=True)
class Corner:
    """A model, multipliers, P, and the gap that they are expected to have."""

    theta: Vector
    a: Vector
    primal: float
    gap: float


@np.errstate(all="ignore")
def corner(rows: Rows, theta: Vector, a: Vector, zero: Mask) -> Corner | None:
    """The model and the multipliers on the face, near given ones; None where the equations cannot be solved."""
    free = np.ones(len(theta), dtype=bool)
    if rows.D is None:
        free[: rows.problem.shape[1]] = ~zero[rows.samples :]
    equations, matrix = _equations(rows, zero, free)
    start = np.where(free, theta, 0.0)
    change = _nearest(matrix, rows.target[equations] - matrix @ start[free])
    if change is None:
        return None
    theta = start.copy()
    theta[free] += change
    r = rows.target - rows.forward(theta)
    a = _at_ends(rows, a, r, zero)
    change = _nearest(matrix.T, -rows.backward(a)[free])
    if change is None:
        return None
    a[equations] = np.clip(a[equations] + change, rows.low[equations], rows.high[equations])
    return _with_gap(rows, theta, a, r, zero)


def _equations(rows: Rows, zero: Mask, free: Mask) -> tuple[Indices, Matrix]:
    """The rows of A, in their order, that make equations for the free entries of theta; and these."""
    equations = np.flatnonzero(zero[: rows.samples])
    matrix = rows.design.rows(equations % rows.n)
    if rows.problem.intercept:
        matrix = np.column_stack([matrix, np.ones(len(matrix))])
    if rows.D is None:
        return equations, matrix[:, free]
    flat = np.flatnonzero(zero[rows.samples :])
    more = rows.D[flat] if isinstance(rows.D, np.ndarray) else rows.D[flat].toarray()
    matrix = np.vstack([matrix, np.pad(more, ((0, 0), (0, matrix.shape[1] - more.shape[1])))])
    return np.append(equations, rows.samples + flat), matrix


def _at_ends(rows: Rows, a: Vector, r: Vector, zero: Mask) -> Vector:
    """The multipliers where r_k is not zero; for weights that are zero those that A'a = 0 asks for."""
    high = np.where(np.isfinite(rows.high), rows.high, 0.0)
    return np.where(zero, a, np.where(r > 0.0, high, rows.low))


def _with_gap(rows: Rows, theta: Vector, a: Vector, r: Vector, zero: Mask) -> Corner | None:
    """The gap, with what it costs to make the multipliers feasible: about P times the largest relative violation."""
    slope, d, samples = rows.backward(a), rows.problem.shape[1], rows.samples
    if rows.D is None:
        asked = np.where(zero[samples:], a[samples:] - slope[:d], a[samples:])
        inside = np.clip(asked, rows.low[samples:], rows.high[samples:])
        slope[:d] += inside - a[samples:]
        a[samples:] = inside
    primal = value_of(rows, r)
    violation = float(np.max(np.abs(slope[:d]), initial=0.0)) / rows.problem.penalty.lam
    if rows.problem.intercept:
        violation += float(abs(slope[-1]))
    gap = primal - float(a @ r) + float(np.abs(theta) @ np.abs(slope)) + primal * violation
    return Corner(theta, a, primal, gap) if np.isfinite(gap) else None


def value_of(rows: Rows, r: Vector) -> float:
    """sum_k max { a r_k : l_k <= a <= u_k }; where u_k is infinite, a positive r_k counts as 0."""
    high = np.where(np.isfinite(rows.high), rows.high, 0.0)
    return float(np.maximum(r, 0.0) @ high + np.minimum(r, 0.0) @ rows.low)


def _nearest(matrix: Matrix, right: Vector) -> Vector | None:
    """The smallest x with the smallest |matrix x - right|; None if there is none in double precision."""
    m, k = matrix.shape
    if m == 0 or k == 0:
        return np.zeros(k)
    try:
        x = np.linalg.solve(matrix, right) if m == k else None
        if x is None or not np.all(np.isfinite(x)):
            x = scipy.linalg.lstsq(matrix, right, lapack_driver="gelsy", check_finite=False)[0]
    except np.linalg.LinAlgError:
        x = scipy.linalg.lstsq(matrix, right, lapack_driver="gelsy", check_finite=False)[0]
    return np.asarray(x) if np.all(np.isfinite(x)) else None


def levelled(problem: Problem, w: Vector, flat: Mask) -> Vector:
    """w with the mean of every set of weights that flat differences of two join; w itself for other differences."""
    penalty = problem.penalty
    D = penalty.on(len(w)) if isinstance(penalty, FusedL1) else None
    if D is None or not joins_pairs(D):
        return w
    Q = face_basis(D, flat)
    assert Q is not None
    return np.asarray(Q @ ((Q.T @ w) / Q.sum(axis=0)))
