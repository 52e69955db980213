"""Proximal Newton steps where weights are few: the Hessian is formed, and coordinate descent works on it alone.

With H = X' diag(s h / W) X and the gradient g at w, a step minimises g.(u - w) + (u - w)'H(u - w)/2 + R(u) over u:
passes over a d x d matrix, however many samples there are. For the squared loss that is the problem itself. Where
coordinate descent has found which groups are zero, Newton steps on all others at once take the rest of the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from fenchel._core import kernels
from fenchel.data.design import Vector
from fenchel.problem.penalties.blocks import Blocks, Indices
from fenchel.steps.border import gram_of
from fenchel.steps.descent_state import DescentState

#: Passes over the matrix between two faces, the most faces of one step, and the most Newton steps on a face.
PASSES, MOST_FACES, MOST_STEPS = 60, 30, 8


def gram_step(state: DescentState, accuracy: float) -> None:
    """Minimise the model until a pass changes it by less than `accuracy`, then a line search."""
    part, intercept = state.part, state.problem.intercept
    d, slope = len(state.w), part.blocks.ridge * state.w - part.design.rmatvec(state.shares * state.a)
    u = state.w.copy()
    if intercept:
        slope, u = np.append(slope, -float(state.shares @ state.a)), np.append(u, state.b)
    model = _Quadratic(_hessian(state), slope, u, _with_intercept(part.blocks) if intercept else part.blocks)
    model.minimise(accuracy)
    shift = float(u[d]) - state.b if intercept else 0.0
    state.passes += 2.0 * part.design.nnz / max(1, state.problem.design.nnz)
    state.search(u[:d].copy(), state.b + shift, part.design.matvec(u[:d] - state.w) + shift)


@dataclass
class _Quadratic:
    """slope.(u' - u) + (u' - u)'H(u' - u)/2 + sum_g threshold_g |u'_g|, with slope and u kept up to date together."""

    H: Vector
    slope: Vector
    u: Vector
    blocks: Blocks

    def minimise(self, accuracy: float) -> None:
        """Coordinate descent and Newton steps in turns, until neither changes the model."""
        blocks, curvature = self.blocks, _curvature(self.H, self.blocks)
        for face in range(MOST_FACES):
            made = kernels.descend_quadratic(
                self.H,
                blocks.column,
                blocks.first,
                curvature,
                blocks.threshold,
                self.u,
                self.slope,
                PASSES,
                accuracy,
            )
            # a pass that changes the model by nothing may still leave a slope: its change is the slope's square
            if (made == 1 and face > 0) or not self._newton_steps():
                break

    def _newton_steps(self) -> bool:
        """Minimise with the zeros held; whether a step was made."""
        face = np.flatnonzero((self.blocks.norms(self.u) > 0.0) | (self.blocks.threshold == 0.0))
        moved = False
        for _ in range(1 if self.blocks.singles else MOST_STEPS):
            step = self._newton(face)
            moved |= step > 0.0
            if not step >= 0.1:
                break
        return moved

    def _newton(self, groups: Indices) -> float:
        """A Newton step on the groups named; how far it went, from 0 to 1."""
        members, blocks = self.blocks.only(groups)
        if not len(members):
            return 0.0
        old, part = self.u[members], self.H[np.ix_(members, members)]
        norms = blocks.norms(old)
        pull = np.where(norms > 0.0, blocks.threshold / np.where(norms > 0.0, norms, 1.0), 0.0)
        if not blocks.singles:
            _add_bend(part, blocks, old, pull, norms)
        part[np.diag_indices_from(part)] *= 1.0 + 1e-14
        right = self.slope[members] + np.repeat(pull, blocks.sizes) * old
        _, p, failed = dposv(part, -right, lower=1)
        if failed or not np.all(np.isfinite(p)):
            return 0.0
        t, new = self._clipped(members, old, p, blocks) if blocks.singles else (0.0, old)
        if t == 0.0:
            t, new = self._shortened(members, old, p, blocks)
        self.u[members] = new
        self.slope += self.H[:, members] @ (new - old)
        return t

    def _clipped(self, members: Indices, old: Vector, p: Vector, blocks: Blocks) -> tuple[float, Vector]:
        """All the way, with weights that change their sign set to zero, if the model is smaller there."""
        new = np.where((old * (old + p) < 0.0) & (blocks.threshold > 0.0), 0.0, old + p)
        return (1.0 if self._change(members, old, new, blocks) <= 0.0 else 0.0), new

    def _shortened(self, members: Indices, old: Vector, p: Vector, blocks: Blocks) -> tuple[float, Vector]:
        """Up to the first weight that changes its sign; with groups half of the way, a quarter of it, ..."""
        if blocks.singles:
            return _up_to_zero(old, p, blocks)
        t, spare = 1.0, 1e-14 * float(blocks.threshold @ blocks.norms(old))
        while t > 1e-4:
            if self._change(members, old, old + t * p, blocks) <= spare:
                return t, old + t * p
            t *= 0.5
        return 0.0, old

    def _change(self, members: Indices, old: Vector, new: Vector, blocks: Blocks) -> float:
        """By how much the model grows from one to the other."""
        move = new - old
        bend = float(move @ (self.H[np.ix_(members, members)] @ move))
        grown = float(blocks.threshold @ (blocks.norms(new) - blocks.norms(old)))
        return float(self.slope[members] @ move) + 0.5 * bend + grown


def _up_to_zero(old: Vector, p: Vector, blocks: Blocks) -> tuple[float, Vector]:
    """How far to go along p, and where that leads: up to the first weight that changes its sign."""
    away = (old * (old + p) < 0.0) & (blocks.threshold > 0.0)
    t = float(np.min(-old[away] / p[away], initial=1.0))
    new = old + t * p
    new[away & (np.abs(new) <= 1e-12 * np.abs(old))] = 0.0
    return t, new


def _add_bend(part: Vector, blocks: Blocks, w: Vector, pull: Vector, norms: Vector) -> None:
    """The penalty's second derivative, threshold (I / |w| - w w' / |w|^3) in every group, in place."""
    for g in np.flatnonzero(pull > 0.0):
        inside = slice(blocks.first[g], blocks.first[g + 1])
        direction = w[inside] / norms[g]
        part[inside, inside] += pull[g] * (np.eye(blocks.sizes[g]) - np.outer(direction, direction))


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
    lower = gram_of(design, np.arange(design.shape[0]), c).T  # symmetric, so that its transpose is itself in C order
    kernels.mirror_lower(lower)
    return lower


def _curvature(H: Vector, blocks: Blocks) -> Vector:
    """The largest curvature inside every group."""
    diagonal = np.diag(H)
    if blocks.singles:
        return diagonal[blocks.column]
    found = np.empty(blocks.count)
    for g in range(blocks.count):
        members = blocks.column[blocks.first[g] : blocks.first[g + 1]]
        inside = H[np.ix_(members, members)]
        found[g] = diagonal[members[0]] if len(members) == 1 else np.linalg.eigvalsh(inside)[-1] * (1.0 + 1e-9)
    return found
