"""Weights that are not penalised: their columns, in a basis of their span in which a dual point is easily corrected.

Let A be these columns of X, and a column of ones if there is an intercept. A dual point needs A'S alpha = 0 exactly.
Columns that are proven to be combinations of the others, in exact arithmetic, follow from these and are left out. For
the others any invertible T states the same equations as (A T)'S alpha = 0; with the inverse of a triangular factor of
S^(1/2) A its columns are orthonormal up to rounding, however badly A is scaled, and |A| |T| bounds the error of A T.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from fenchel.certificate.interpolation.rational import implied_rows
from fenchel.data.limits import fits, is_factorable
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem import MulticlassProblem, Problem

#: A squared pivot of a Gram matrix with a unit diagonal above which its Cholesky factor is accurate to half the digits.
ACCURATE = 1e-8


def orthogonal_columns(problem: Problem | MulticlassProblem, free: Mask) -> tuple[Matrix, Matrix] | None:
    """A T and a bound on its error; None where no dependence can be proven, or for want of memory."""
    n, k = problem.shape[0], int(free.sum()) + problem.intercept
    if not (fits(n, k) and is_factorable(k, n)):
        return None
    A = problem.X.rows(np.arange(n))
    A = A if free.all() else A[:, free]
    if problem.intercept:
        A = np.column_stack([np.ones(n), A])
    counted = problem.weights > 0.0
    largest = np.abs(A[counted]).max(axis=0, initial=0.0)
    A = A[:, largest > 0.0]
    A = A * np.exp2(-np.frexp(largest[largest > 0.0])[1])  # exact, unless an entry is 1e-300 of the largest
    if not A.shape[1]:
        return A, A
    weighted = A * np.sqrt(problem.weights / problem.weights.max())[:, None]
    factor = _gram_factor(weighted)
    if factor is None:
        R, order = qr(weighted, mode="r", pivoting=True)
        kept = _independent(A[counted], np.abs(np.diagonal(R)), order)
        if kept is None:
            return None
        A = A[:, kept]
        factor = qr(weighted[:, kept], mode="r")[0][: len(kept)]
    T = np.asarray(solve_triangular(factor, np.eye(len(factor))))
    T *= 1.0 / np.sqrt(problem.weights.max())
    with np.errstate(over="ignore", invalid="ignore"):
        F, error = A @ T, gamma(len(T) + 4) * (np.abs(A) @ np.abs(T)) + 1e-290
    return (F, error) if np.all(np.isfinite(F)) and np.all(np.isfinite(error)) else None


def _gram_factor(weighted: Matrix) -> Matrix | None:
    """The triangular factor of well conditioned columns."""
    gram = weighted.T @ weighted
    diagonal = np.diagonal(gram)
    if not np.all(diagonal > 0.0):
        return None
    try:
        factor = np.asarray(cholesky(gram))
    except LinAlgError:
        return None
    return factor if np.all(np.diagonal(factor) ** 2 > ACCURATE * diagonal) else None


def _independent(A: Matrix, pivots: Vector, order: Indices) -> Indices | None:
    """Columns from which all others follow exactly; None if that is not proven."""
    (n, k), most = A.shape, float(pivots[0])
    rank = int(np.count_nonzero(pivots > 8.0 * max(n, k) * UNIT_ROUNDOFF * most))
    kept, others = np.sort(order[:rank]), order[rank:]
    if not len(others):
        return kept
    if rank < n:  # else no multipliers but zero may be feasible
        coefficients = np.linalg.lstsq(A[:, kept], A[:, others], rcond=None)[0]
        if all(_follows(A[:, kept], c, A[:, j]) for c, j in zip(coefficients.T, others, strict=True)):
            return kept
        return implied_rows(np.ascontiguousarray(A.T))
    return None


def _follows(columns: Matrix, coefficients: Vector, column: Vector) -> bool:
    """Whether a column is exactly a combination of some, with coefficients that are small multiples of 1/64."""
    c = np.rint(64.0 * coefficients) / 64.0
    if not np.allclose(c, coefficients, rtol=0.0, atol=1e-6):
        return False
    used = np.flatnonzero(c)
    if len(used) == 1 and np.frexp(abs(c[used[0]]))[0] == 0.5:  # a power of two: exact
        return bool(np.array_equal(columns[:, used[0]] * c[used[0]], column))
    terms = columns[:, used] * c[used]
    # multiples of 2^-30 times multiples of 1/64: below 2^17 every sum is exact
    multiples = columns[:, used] * 2.0**30
    exact = np.all(np.rint(multiples) == multiples) and np.abs(terms).sum(axis=1).max(initial=0.0) < 2.0**17
    return bool(exact and np.array_equal(terms.sum(axis=1), column))
