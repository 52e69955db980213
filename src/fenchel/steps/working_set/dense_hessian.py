"""Proximal Newton steps where weights are few: the Hessian is formed, and coordinate descent works on it alone.

With H = X' diag(s h / W) X and the gradient g at w, a step minimises g.(u - w) + (u - w)'H(u - w)/2 + R(u) over u:
passes over a d x d matrix, however many samples there are. For the squared loss that is the problem itself. Where
coordinate descent has found which groups are zero, Newton steps on all others at once take the rest of the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.linear_algebra.augmented import gram_of
from fenchel.steps.working_set.quadratic_model import Model
from fenchel.steps.working_set.state import DescentState

#: Passes over the matrix between two faces, the most faces of one step, and the most Newton steps on a face.
LIMITS = (5, 60, 8)
#: LAPACK's solution of a positive definite system, for the compiled core to call.
POSV = cython_lapack.__pyx_capi__["dposv"]


def gram_step(state: DescentState, accuracy: float) -> None:
    """Minimise the model until a pass changes it by less than `accuracy`, then a line search."""
    model, blocks, u = Model.of(state), state.part.blocks, state.w.copy()
    H, slope = _hessian(state, model.c, model.mean), model.slope.copy()
    minimise(H, blocks, u, slope, accuracy)
    model.go(u)


def minimise(H: Vector, blocks: Blocks, u: Vector, slope: Vector, enough: float) -> None:
    """u and the slope there, changed in place: the minimum of a quadratic and the norms of groups, its ridge in H."""
    kernels.minimise_quadratic(POSV, H, blocks.column, blocks.first, blocks.threshold, u, slope, *LIMITS, enough)


def _hessian(state: DescentState, c: Vector, mean: Vector | None) -> Vector:
    """H with the elastic net's ridge; as long as neither part nor curvature change."""
    known, part = state.hessian, state.part
    if known is None or known[0] is not part or not np.array_equal(known[1], c):
        everything = part.design is state.problem.design
        rows = part.rows if part.design.is_sparse else part.design
        H = known_gram(part.design, c, mean) if everything else gram_matrix(rows, c, mean)
        known = state.hessian = (part, c, ridged(H, part.blocks.ridge))
        state.passes += 2.0 * part.design.nnz / max(1, state.problem.design.nnz)
    return known[2]


def ridged(H: Vector, ridge: float) -> Vector:
    """H with a ridge: a copy, if there is one."""
    if not ridge:
        return H
    H = H.copy()
    H[np.diag_indices_from(H)] += ridge
    return H


def known_gram(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """That of all columns, formed once for all who share X; not to be changed."""
    centred = mean is not None
    known = design.grams.get(centred)
    if known is None or not np.array_equal(known[0], c):
        known = design.grams[centred] = (c, gram_matrix(design, c, mean))
    return known[1]


def gram_matrix(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """X' diag(c) X, or the same of columns without their means; symmetric, in C order."""
    if design.is_sparse:
        design = design.stored_by_rows()
    H = gram_of(design, None, c, None if design.is_sparse else mean).T  # its transpose is itself, in C order
    kernels.mirror_lower(H)
    if design.is_sparse and mean is not None:
        H -= float(c.sum()) * np.outer(mean, mean)
    return H


def gram_of_some(design: Design, rows: NDArray[np.int64], share: float, mean: Vector | None) -> Vector:
    """share sum_i (x_i - mean)(x_i - mean)' over some rows, whatever their own mean is; symmetric, in C order.

    Sparse matrices are stored by rows.
    """
    h = np.full(len(rows), share)
    if not design.is_sparse:
        H = gram_of(design, rows, h, mean).T
        kernels.mirror_lower(H)
        return H
    H = gram_of(design, rows, h).T
    kernels.mirror_lower(H)
    if mean is not None:
        weights = np.zeros(design.shape[0])
        weights[rows] = share
        cross = np.outer(design.rmatvec(weights), mean)
        H += share * len(rows) * np.outer(mean, mean) - cross - cross.T
    return H
