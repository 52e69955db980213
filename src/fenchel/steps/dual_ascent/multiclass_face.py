"""The best dual point on a face: all free multipliers of a piecewise linear loss at once.

Dual ascent finds out soon which entries of the p_i are zero, and is slow to set the others. On the face where the zeros
stay zero, D is a concave quadratic for an L2 penalty. With t a step of p_ij at the cost of the largest entry p_im,
its maximiser makes the margins g = (c_j + z_j) - (c_m + z_m) vanish::

    sum over (i', j') of  s_i' t_i'j' x_i.x_i' (e_j - e_m).(e_j' - e_m') / (lam W)  =  g_ij

and a quadratic on the intercepts adds a constant to x_i.x_i'. One dense linear system; where the way leads out of the
simplex, the entries that would be negative become zero, and the next face is a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lstsq

from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses.multiclass import multipliers, off_of, probabilities, within_simplex, without_class

Rows = NDArray[np.intp]

#: The most free multipliers for which the system is solved.
MOST_FREE = 2500
#: Faces to go through at one time.
MOST_FACES = 40
#: What a system costs beside its size cubed, in the products that a pass over the data makes.
SYSTEM_COST = 0.1
#: Entries of a distribution that count as zero.
ROUNDED = 1e-13
#: How weak the quadratic on the intercepts is, in mean squared norms of the free rows.
REACH = 100.0


@dataclass(frozen=True)
class FacePoint:
    """What was found on the faces, and the work that it took, in products."""

    alpha: Vector
    b: Vector
    work: float


def ascend_faces(problem: MulticlassProblem, alpha: Vector, B: Vector, b: Vector, allowance: float) -> FacePoint | None:
    """The best steps on a few faces, each inside the last; None where even one is more work than is allowed."""
    P = probabilities(off_of(alpha, problem.y), problem.y)
    P[P < ROUNDED] = 0.0  # an entry of the true class is what the others leave of 1
    free = np.flatnonzero(((P > 0.0).sum(axis=1) > 1) & (problem.weights > 0))
    size = int((P[free] > 0.0).sum()) - len(free)
    cost = SYSTEM_COST * float(size) ** 3
    work = len(free) ** 2 * problem.design.nnz / problem.shape[0]  # the Gram matrix
    if not 0 < size <= MOST_FREE or work + cost > allowance:
        return None
    face = Face(problem, free, B, b, P)
    for _ in range(MOST_FACES):
        work += cost
        if not face.step() or work + cost > allowance:
            break
    P[free] = face.P
    found = multipliers(within_simplex(without_class(P, problem.y)), problem.y)
    return FacePoint(found, face.b, work)


class Face:
    """The free samples, their Gram matrix, distributions and scores."""

    def __init__(self, problem: MulticlassProblem, free: Rows, B: Vector, b: Vector, P: Vector) -> None:
        X = problem.design.matrix[free].astype(np.float64)
        gram = X @ X.T
        self.gram = np.asarray(gram.toarray() if sp.issparse(gram) else gram)
        # a quadratic on the intercepts, as in the passes, but a weak one: nearly all of the way in one step
        self.reach = REACH * float(np.mean(np.diag(self.gram))) if problem.intercept else 0.0
        self.gram = self.gram + (problem.design.constant**2 + self.reach)
        self.s = problem.weights[free]
        self.scale = 1.0 / (problem.penalty.strong_convexity * problem.total_weight)
        self.b, self.P = b.copy(), P[free]
        self.C = np.asarray(X @ B[:, : X.shape[1]].T) + 1.0 + b
        if problem.design.constant:
            self.C += problem.design.constant * B[:, -1]
        self.C[np.arange(len(free)), problem.y[free]] -= 1.0

    def step(self) -> bool:
        """Go towards the best point of the face; whether an entry became zero on the way."""
        move = self._solve()
        if move is None:
            return False
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move < 0.0, self.P / -move, np.inf)
        theta = float(room.min())
        if theta >= 1.0:
            self._add(move)
            return False
        # up to the first entry that vanishes, or past it with all that would be negative at zero: whatever gains more
        first = np.where(room <= theta, 0.0, np.maximum(self.P + theta * move, 0.0)) - self.P
        beyond = np.maximum(self.P + move, 0.0)
        beyond = beyond / beyond.sum(axis=1, keepdims=True) - self.P
        self._add(max(first, beyond, key=self._gain))
        return True

    def _gain(self, move: Vector) -> float:
        """W times the change of D."""
        weighted = self.s[:, None] * move
        return float(np.sum(weighted * self.C) - 0.5 * self.scale * np.sum(weighted * (self.gram @ weighted)))

    def _add(self, move: Vector) -> None:
        weighted = self.s[:, None] * move
        self.P = np.maximum(self.P + move, 0.0)
        self.C -= self.scale * (self.gram @ weighted)
        self.b -= self.scale * self.reach * weighted.sum(axis=0)

    def _solve(self) -> Vector | None:
        """The way to the best point of the face; least squares, since free samples may outnumber the weights."""
        rows, k = np.arange(len(self.P)), self.P.shape[1]
        top, spare = np.argmax(self.P, axis=1), self.P > 0.0
        spare[rows, top] = False
        i, j = np.nonzero(spare)
        m, count = top[i], len(i)
        if not count:
            return None
        E = np.zeros((count, k))
        E[np.arange(count), j] = 1.0
        E[np.arange(count), m] -= 1.0
        system = self.scale * self.gram[np.ix_(i, i)] * (E @ E.T)
        right = self.C[i, j] - self.C[i, m]
        if not (np.all(np.isfinite(system)) and np.all(np.isfinite(right))):
            return None
        t = lstsq(system, right, cond=1e-13, lapack_driver="gelsy")[0] / self.s[i]
        move = np.zeros_like(self.P)
        move[i, j] = t
        np.subtract.at(move, (i, m), t)
        return move
