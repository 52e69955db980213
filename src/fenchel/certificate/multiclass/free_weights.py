"""Several scores a sample, without a penalty: dual points with V = 0 exactly.

Let F be independent columns that span those of X, and that of ones if there is an intercept (`bounds.free_weights`). A
dual point needs sum_i s_i f_i (p_i - e_yi)' = 0. For any matrix M the distributions ::

    p_i + J_i M'f_i,   J_i = diag(p_i) - p_i p_i',

have the sums r + H M, where r are those of p, and H, with blocks sum_i s_i (J_i)_cd f_i f_i', maps matrices whose rows
add up to 0 to such matrices, as r is. If its smallest eigenvalue there is at least mu, some M with |M| <= |r| / mu has
the sums 0. The entries of p_i change by a factor 1 + t with |t| <= tau = 2 |M| max_i |f_i|, so that p_i + J_i M'f_i =
(1 - tau) p_i + tau q_i for a distribution q_i: another one mixed in with the weight tau, as by `balanced`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.certificate.bounds.free_weights import orthogonal_columns
from fenchel.certificate.bounds.rounding import UP
from fenchel.certificate.bounds.unpenalised import NEARLY_ZERO
from fenchel.data.limits import is_factorable
from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses.multiclass import multipliers, probabilities, within_simplex, without_class
from fenchel.steps.unpenalised.multiclass import hessian_matrix

#: Moves of a dual point to V = 0: they converge quadratically.
MOVES = 3


class FreeClasses:
    """F with a bound on its error, for one problem."""

    def __init__(self, problem: MulticlassProblem) -> None:
        self.problem = problem
        self.every = self._columns(np.ones(problem.shape[0], dtype=bool))

    def _columns(self, counted: Mask) -> tuple[Matrix, Matrix] | None:
        """F of some samples, zero for the others, and a bound on its error."""
        problem = self.problem
        part = problem if counted.all() else problem.replace(weights=np.where(counted, problem.weights, 0.0))
        if not np.any(part.weights):
            return None
        found = orthogonal_columns(part, np.ones(problem.shape[1], dtype=bool))
        if found is None or not is_factorable(found[0].shape[1] * problem.n_classes, problem.shape[0]):
            return None
        F, error = (np.where(counted[:, None], each, 0.0) for each in found)
        return F, error

    def balanced(self, off: Vector) -> tuple[Vector, float] | None:
        """p near the given one, and the weight of the distribution that makes V = 0; None if none below 1/2 is proven.

        Where the weights go to infinity, the p of samples and classes that they separate go to 0: if nothing is proven
        otherwise, what is nearly 0 is 0, and classes of which nothing is left are left out.
        """
        k = self.problem.n_classes
        found = None if self.every is None else self._moved(off, self.every, np.arange(k))
        if found is None:
            off = np.where(off > NEARLY_ZERO, off, 0.0)
            counted = np.asarray(np.any(off, axis=1), dtype=bool)
            used = off > 0.0
            used[np.flatnonzero(counted), np.asarray(self.problem.y)[counted]] = True
            classes, known = np.flatnonzero(used.any(axis=0)), self._columns(counted)
            found = None if known is None else self._moved(off, known, classes)
        return found

    def _moved(self, off: Vector, known: tuple[Matrix, Matrix], classes: Indices) -> tuple[Vector, float] | None:
        problem, F = self.problem, known[0]
        for _ in range(MOVES):
            P = probabilities(off, problem.y)
            H, r = hessian(F, P[:, classes], problem.weights), self._sums(off, F)[:, classes]
            try:
                M = -cho_solve(cho_factor(H), r.T.ravel()).reshape(r.T.shape).T
            except (LinAlgError, ValueError):
                return None
            G = np.zeros_like(P)
            G[:, classes] = F @ M
            step = np.clip(G - np.sum(P * G, axis=1, keepdims=True), -0.9, 0.9)
            off = within_simplex(np.maximum(without_class(P * (1.0 + step), problem.y), 0.0))
        mix = self._leftover(off, known, classes)
        return (off, mix) if mix < 0.5 else None

    def _sums(self, off: Vector, F: Matrix) -> Matrix:
        """r = sum_i s_i f_i (p_i - e_yi)'."""
        problem = self.problem
        return np.asarray(F.T @ (problem.weights[:, None] * -multipliers(off, problem.y)))

    def _leftover(self, off: Vector, known: tuple[Matrix, Matrix], classes: Indices) -> float:
        """tau, rounding included; the columns of r of other classes are exactly 0."""
        (F, error), problem, s = known, self.problem, self.problem.weights
        n, k = problem.shape[0], problem.n_classes
        size = np.abs(multipliers(off, problem.y))[:, classes] * (1.0 + 8.0 * k * UNIT_ROUNDOFF)
        rounding = (n + 16.0 * k + 64.0) * UNIT_ROUNDOFF
        r = np.abs(self._sums(off, F)[:, classes]) + (rounding * np.abs(F) + error).T @ (s[:, None] * size) * UP
        H = hessian(F, probabilities(off, problem.y)[:, classes], s)
        lengths, errors = np.linalg.norm(F, axis=1), np.linalg.norm(error, axis=1)
        # each entry of J is off by a few roundings of 1, and its norm is at most 1
        noise = (4.0 * rounding + 8.0 * len(H) * UNIT_ROUNDOFF) * float(np.trace(H))
        noise += UP * float(np.sum(s * (16.0 * k * k * UNIT_ROUNDOFF * lengths**2 + errors * (2.0 * lengths + errors))))
        if not (np.all(np.isfinite(H)) and np.isfinite(noise)):
            return np.inf
        least = float(np.linalg.eigvalsh(H)[0]) - noise if len(H) else np.inf
        if not least > 0.0:
            return np.inf
        return 2.0 * float(np.linalg.norm(r)) / least * float((lengths + errors).max()) * (UP + EVALUATION)


def hessian(F: Matrix, P: Matrix, s: Vector) -> Matrix:
    """H, classes by coordinates, with a positive multiple of 11' beside every J: definite where H is on rows that add
    up to 0.
    """
    m, k = F.shape[1], P.shape[1]
    H = hessian_matrix(F, P, s)
    if m:
        H += (float(np.trace(H)) / (k * m * k) + 1e-300) * np.kron(np.ones((k, k)), np.eye(m))
    return H
