"""Proximal Newton steps where weights are few: the Hessian is formed, and coordinate descent works on it alone.

With H = X' diag(s h / W) X and the gradient g at w, a step minimises g.(u - w) + (u - w)'H(u - w)/2 + R(u) over u:
passes over a d x d matrix, however many samples there are. For the squared loss that is the problem itself. Where
coordinate descent has found which groups are zero, Newton steps on all others at once take the rest of the way.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cython_lapack

from fenchel._core import kernels
from fenchel.data.design import Vector
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.border import gram_of
from fenchel.steps.descent_state import DescentState

#: Passes over the matrix between two faces, the most faces of one step, and the most Newton steps on a face.
LIMITS = (10, 60, 8)
#: LAPACK's solution of a positive definite system, for the compiled core to call.
POSV = cython_lapack.__pyx_capi__["dposv"]


def gram_step(state: DescentState, accuracy: float) -> None:
    """Minimise the model until a pass changes it by less than `accuracy`, then a line search."""
    part, intercept = state.part, state.problem.intercept
    d, slope = len(state.w), part.blocks.ridge * state.w - part.design.rmatvec(state.shares * state.a)
    u = state.w.copy()
    if intercept:
        slope, u = np.append(slope, -float(state.shares @ state.a)), np.append(u, state.b)
    blocks = _with_intercept(part.blocks) if intercept else part.blocks
    kernels.minimise_quadratic(
        POSV, _hessian(state), blocks.column, blocks.first, blocks.threshold, u, slope, *LIMITS, accuracy
    )
    shift = float(u[d]) - state.b if intercept else 0.0
    state.passes += 2.0 * part.design.nnz / max(1, state.problem.design.nnz)
    state.search(u[:d].copy(), state.b + shift, part.design.matvec(u[:d] - state.w) + shift)


def _with_intercept(blocks: Blocks) -> Blocks:
    """One more weight, without a penalty."""
    d = len(blocks.column)
    return Blocks(np.append(blocks.column, d), np.append(blocks.first, d + 1), np.append(blocks.threshold, 0.0))


def _hessian(state: DescentState) -> Vector:
    """H with the elastic net's ridge, bordered by the intercept's row; as long as neither part nor curvature change."""
    c, known = state.curvature(), state.hessian
    if known is None or known[0] is not state.part or not np.array_equal(known[1], c):
        known = state.hessian = (state.part, c, _bordered_gram(state, c))
    return known[2]


def _bordered_gram(state: DescentState, c: Vector) -> Vector:
    """Symmetric, in C order."""
    design = state.part.rows
    H = _known_gram(state, c) if state.part.design is state.problem.design else _gram(state, c)
    H[np.diag_indices_from(H)] += state.part.blocks.ridge
    if state.problem.intercept:
        edge = design.rmatvec(c)
        H = np.block([[H, edge[:, None]], [edge[None, :], np.array([[float(c.sum())]])]])
    return np.ascontiguousarray(H)


def _known_gram(state: DescentState, c: Vector) -> Vector:
    """That of all columns, formed once for all who share X."""
    known = state.problem.design.grams
    if not known or not np.array_equal(known[0][0], c):
        known[:] = [(c, _gram(state, c))]
    return known[0][1].copy()


def _gram(state: DescentState, c: Vector) -> Vector:
    design = state.part.rows
    state.passes += 2.0 * design.nnz / max(1, state.problem.design.nnz)
    lower = gram_of(design, None, c).T  # symmetric, so that its transpose is itself in C order
    kernels.mirror_lower(lower)
    return lower
