"""The linear equations of an interior-point step, for features or for samples.

For given q > 0, g (of all rows) and slope = A'a they are

    A dtheta + da / q = g,        A' da = -slope.

Eliminating da leaves the normal equations A' diag(q) A dtheta = A'(q g) + slope. With h the sums of q over the rows of
each sample and Q those of the penalty their matrix is [X, 1]' diag(h) [X, 1] + D' diag(Q) D, as wide as X.

Where there are fewer samples than features and D is the identity, dtheta is eliminated: with s_i the sum of da over the
rows of sample i,

    (diag(1 / h) + X diag(1 / Q) X') s + db 1 = g_s - X (g_p + slope_w / Q),    sum_i s_i = -slope_b,
    da_p = -slope_w - X's,    dw = g_p - da_p / Q,

g_s being the mean of g over the rows of a sample with the weights q. The matrix is multiplied by sqrt(h) from both
sides: a unit matrix plus a positive semidefinite one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.steps.base import GaveUp
from fenchel.steps.linear_algebra.augmented import gram_of
from fenchel.steps.linear_program.rows import Rows

Solve = Callable[[Vector], Vector]
Directions = Callable[[Vector, Vector], tuple[Vector, Vector, Vector]]


def in_samples(rows: Rows) -> bool:
    """Whether the system has an equation for each sample, not for each feature."""
    return rows.D is None and rows.n < rows.problem.shape[1]


def directions_of(rows: Rows, q: Vector) -> Directions:
    """Solves the equations with these q for any g and slope: dtheta, A dtheta and da."""
    h, Q = rows.by_sample(q), q[rows.samples :]
    return _by_samples(rows, q, h, Q) if in_samples(rows) else _by_features(rows, q, h, Q)


def _by_features(rows: Rows, q: Vector, h: Vector, Q: Vector) -> Directions:
    design, d = rows.design, rows.problem.shape[1]
    width, stored = rows.width, design.n_features
    inner = gram_of(design, None, h)
    if width == stored:
        M = inner
    else:
        M = np.zeros((width, width), order="F")
        M[:stored, :stored] = inner
        sums = design.rmatvec(h)  # with the constant column's
        if design.constant:
            M[d - 1, :d] = design.constant * sums
            M[d - 1, d - 1] = design.constant**2 * h.sum()
        if rows.problem.intercept:
            M[-1, :d], M[-1, -1] = sums, h.sum()
    if rows.D is None:
        M.ravel(order="K")[: d * width + d : width + 1][:d] += Q
    else:
        inside = (rows.D.T * Q) @ rows.D
        M[:d, :d] += inside if isinstance(inside, np.ndarray) else inside.toarray()
    solve = _factored(M)

    def directions(g: Vector, slope: Vector) -> tuple[Vector, Vector, Vector]:
        change = solve(rows.backward(q * g) + slope)
        moved = rows.forward(change)
        return change, moved, q * (g - moved)

    return directions


def _by_samples(rows: Rows, q: Vector, h: Vector, Q: Vector) -> Directions:
    design, root, intercept = rows.design, np.sqrt(h), rows.problem.intercept
    K = _outer(rows, 1.0 / np.sqrt(Q), root)
    K.ravel(order="K")[:: len(K) + 1] += 1.0
    solve, d, count = _factored(K), len(Q), rows.samples
    border = solve(root)

    def directions(g: Vector, slope: Vector) -> tuple[Vector, Vector, Vector]:
        step = g[count:] + slope[:d] / Q
        y, db = solve(root * (rows.by_sample(q * g) / h - design.matvec(step))), 0.0
        if intercept:
            db = (slope[-1] + float(root @ y)) / float(root @ border)
            y = y - db * border
        s = root * y
        rest = -slope[:d] - design.rmatvec(s)
        change = g[count:] - rest / Q
        z = design.matvec(change) + db
        da = np.append(s, rest) if rows.pieces == 1 else np.concatenate([*_shared(rows, q, g, s, z), rest])
        moved = np.concatenate([*(z,) * rows.pieces, change])
        return (np.append(change, db) if intercept else change), moved, da

    return directions


def _shared(rows: Rows, q: Vector, g: Vector, s: Vector, z: Vector) -> tuple[Vector, Vector]:
    """The parts of s of the two rows of each sample, q (g - z); that of the larger q by difference."""
    first, second = slice(rows.n), slice(rows.n, rows.samples)
    one, two = q[first] * (g[first] - z), q[second] * (g[second] - z)
    larger = q[first] > q[second]
    return np.where(larger, s - two, one), np.where(larger, two, s - one)


def _outer(rows: Rows, columns: Vector, root: Vector) -> Vector:
    """diag(root) X diag(columns^2) X' diag(root): its lower triangle, in Fortran order."""
    design, n = rows.design, rows.n
    stored = design.n_features
    if design.is_sparse:
        half = sp.csr_array(design.matrix.multiply(root[:, None])).multiply(columns[None, :stored]).tocsr()
        K = np.asfortranarray((half @ half.T).toarray())
    else:
        K = np.zeros((n, n), order="F")
        for part in limits.blocks(stored, n, least=64):
            block = root[:, None] * design.matrix[:, part] * columns[part]
            K = dsyrk(1.0, block.T, beta=1.0, c=K, trans=1, lower=1, overwrite_c=1)
    if design.constant:
        side = design.constant * columns[-1] * root
        K += np.outer(side, side)
    return np.asarray(K)


def _factored(M: Vector) -> Solve:
    """By Cholesky's method; where rounding breaks it, of a matrix with a slightly larger diagonal."""
    scale = 1.0 / np.sqrt(np.diagonal(M))
    if not np.all(np.isfinite(scale)):
        raise GaveUp("the normal equations overflow; rescale the features or lam")
    M = M * scale
    M *= scale[:, None]
    for more in (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7):
        H = M.copy(order="F") if more < 1e-7 else M
        H.ravel(order="K")[:: len(H) + 1] = 1.0 + more
        factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return lambda g: scale * dpotrs(factor, scale * g, lower=1)[0]
    raise GaveUp("the normal equations are singular; rescale the features or lam")
