"""Newton steps on a face of the dual: all free multipliers of a piecewise linear loss at once.

Dual ascent soon identifies which entries of the p_i are zero, and converges slowly in the others. On the face with
these zeros D is a concave quadratic for an L2 penalty. With t_ij a step that moves mass from the largest entry p_im to
p_ij, its maximiser makes the margins g = (c_j + z_j) - (c_m + z_m) vanish::

    sum over (i', j') of  s_i' t_i'j' x_i.x_i' (e_j - e_m).(e_j' - e_m') / (lam W)  =  g_ij

and a quadratic on the intercepts adds a constant to x_i.x_i'. It is one dense linear system; if the step leaves the
simplex, negative entries become zero, and the next face is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lstsq

from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses.multiclass import multipliers, off_of, probabilities, within_simplex, without_class
from fenchel.steps.linear_algebra.safeguards import ROUNDING

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class FaceTuning:
    """`python -m benchmarks.tuning steps.dual_ascent.multiclass_face epochs 10 40 --rows "^multiclass hinge
    lam=0.01$"`: 1.18 and 0.86 of the time, to 1e-4. To 1e-8 that takes twice as long without faces.
    """

    epochs: int = 20  # epochs of dual ascent between two attempts


TUNING = FaceTuning()


@dataclass(frozen=True)
class FacePoint:
    """Multipliers and intercepts after steps on faces, and their cost in products of a pass."""

    alpha: Vector
    b: Vector
    work: float


def ascend_faces(problem: MulticlassProblem, alpha: Vector, B: Vector, b: Vector, allowance: float) -> FacePoint | None:
    """Newton steps on a sequence of faces, each inside the last; None if one costs more than the allowance."""
    P = probabilities(off_of(alpha, problem.y), problem.y)
    P[P < ROUNDING] = 0.0  # the entry of the true class is 1 minus the others
    free = np.flatnonzero(((P > 0.0).sum(axis=1) > 1) & (problem.weights > 0))
    size = int((P[free] > 0.0).sum()) - len(free)
    cost = 0.1 * float(size) ** 3  # of a system, in products of a pass
    work = len(free) ** 2 * problem.design.nnz / problem.shape[0]  # the Gram matrix
    if not (size and limits.fits(size, size)) or work + cost > allowance:
        return None
    face, goes_on = Face(problem, free, B, b, P), True
    while goes_on and work + cost <= allowance:
        work, goes_on = work + cost, face.step()
    P[free] = face.P
    best = multipliers(within_simplex(without_class(P, problem.y)), problem.y)
    return FacePoint(best, face.b, work)


class Face:
    """The free samples, their Gram matrix, distributions and scores."""

    def __init__(self, problem: MulticlassProblem, free: Rows, B: Vector, b: Vector, P: Vector) -> None:
        X = problem.design.matrix[free].astype(np.float64)
        gram = X @ X.T
        self.gram = np.asarray(gram.toarray() if sp.issparse(gram) else gram)
        # a quadratic on the intercepts, as in the epochs, but weaker: 1 / rho is the trace
        self.inverse_rho = float(np.trace(self.gram)) if problem.intercept else 0.0
        self.gram = self.gram + (problem.design.constant**2 + self.inverse_rho)
        self.s = problem.weights[free]
        self.scale = 1.0 / (problem.penalty.strong_convexity * problem.total_weight)
        self.b, self.P = b.copy(), P[free]
        self.C = np.asarray(X @ B[:, : X.shape[1]].T) + 1.0 + b
        if problem.design.constant:
            self.C += problem.design.constant * B[:, -1]
        self.C[np.arange(len(free)), problem.y[free]] -= 1.0

    def step(self) -> bool:
        """Step towards the maximiser on the face; whether an entry became zero on the way."""
        move = self._solve()
        if move is None:
            return False
        with np.errstate(divide="ignore", invalid="ignore"):
            longest = np.where(move < 0.0, self.P / -move, np.inf)
        theta = float(longest.min())
        if theta >= 1.0:
            self._add(move)
            return False
        # stop at the first entry that becomes zero, or project the full step: whichever increases D more
        first = np.where(longest <= theta, 0.0, np.maximum(self.P + theta * move, 0.0)) - self.P
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
        self.b -= self.scale * self.inverse_rho * weighted.sum(axis=0)

    def _solve(self) -> Vector | None:
        """The step to the maximiser on the face; least squares, since free samples may outnumber the weights."""
        rows, k = np.arange(len(self.P)), self.P.shape[1]
        top, free = np.argmax(self.P, axis=1), self.P > 0.0
        free[rows, top] = False
        i, j = np.nonzero(free)
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
