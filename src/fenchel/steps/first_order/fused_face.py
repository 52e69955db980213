"""Least squares on a face of lam |D w|_1: exact minimisers for first-order steps on the fused Lasso.

Given the nonzero jumps (D w)_k and their signs, the fused Lasso is a linear system. First-order steps identify the
jumps long before the weights converge.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fenchel.data import limits
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import FusedL1
from fenchel.problem.penalties.fused.differences import Differences, PowerDifferences
from fenchel.problem.penalties.fused.graphs import GraphDifferences
from fenchel.problem.vectors import sum_of_squares
from fenchel.steps.base import Candidate
from fenchel.steps.linear_algebra import safeguards
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TINY


class FusedFace:
    """Active-set search for the minimiser of P = (1/(2W)) sum_i s_i (x_i.w + b - y_i)^2 + lam |D w|_1 from near it.

    It starts on the face of w. A jump that changes its sign on the way to the face's minimiser is removed. If the
    multipliers u of D w are unique, a jump is added where |u| is largest, until |u| <= lam: the optimum. P decreases
    monotonically if w lies on the face.
    """

    def __init__(self, problem: Problem, penalty: FusedL1) -> None:
        self.problem, self.lam = problem, penalty.lam
        self.D: Differences = penalty.on(problem.shape[1])
        self._last: Vector | None = None
        self._found: tuple[Vector, float] | None = None

    @classmethod
    def of(cls, problem: Problem) -> FusedFace | None:
        """For the squared loss with FusedL1; None for other problems, or if squares of the targets overflow."""
        penalty = problem.penalty
        if not (isinstance(penalty, FusedL1) and isinstance(problem.loss, Squared)):
            return None
        return cls(problem, penalty) if np.isfinite(sum_of_squares(problem.y)) else None

    def minimiser(self, w: Vector, u: Vector | None = None) -> tuple[Vector, float] | None:
        """Weights and intercept of the last face; None if it is too wide or has no unique minimiser.

        Parameters
        ----------
        w : array
            Weights near the optimum.
        u : array, optional
            Multipliers of D w within [-lam, lam], with jumps where they are at a bound. By default the jumps of w.
        """
        D, lam = self.D, self.lam
        sign = np.sign(D.apply(w) if u is None else np.where(np.abs(u) >= lam * (1.0 - ROUNDING), u, 0.0))
        if self._last is not None and np.array_equal(sign, self._last):
            return self._found
        self._last, found = sign.copy(), None
        for _ in range(safeguards.TUNING.patience):
            best = self._on_face(sign)
            if best is None:
                break
            old, new = D.apply(w), D.apply(best[0])
            turned = np.flatnonzero(sign * new < 0.0)
            if len(turned):  # stop at the first jump that vanishes
                fraction = np.clip(old[turned] / (old[turned] - new[turned]), 0.0, 1.0)
                first = int(np.argmin(fraction))
                w = w + float(fraction[first]) * (best[0] - w)
                sign[turned[first]] = 0.0
                continue
            w, found = best[0], best
            if not isinstance(D, PowerDifferences):
                break
            v = self.problem.dual_vector(self.problem.y - self.problem.scores(*best))
            multipliers = np.where(sign == 0.0, D.potential(v), 0.0)
            most = int(np.argmax(np.abs(multipliers)))
            if abs(multipliers[most]) <= lam * (1.0 + ROUNDING):
                break
            sign[most] = np.sign(multipliers[most])
        self._found = found
        return found

    def candidates(self, own: Candidate) -> list[Candidate]:
        """The solver's model and the face's minimiser."""
        best = self.minimiser(own.w, own.u)
        return [own] if best is None else [own, replace(own, w=best[0], b=best[1])]

    def _on_face(self, sign: Vector) -> tuple[Vector, float] | None:
        """The minimiser of the loss + lam sign.D w over w with (D w)_k = 0 where sign_k = 0.

        With w = Q c, A the centred scores of the columns of Q and r the centred targets, both times sqrt(s / W), it
        solves A'A c = A'r - lam Q'D'sign.
        """
        problem, Q = self.problem, face_basis(self.D, sign == 0.0)
        if Q is None:
            return None
        k = Q.shape[1]
        # X Q costs no more than the 20 steps between two checks, or A'A no more than the two passes of one
        if not 0 < k <= len(problem.y) or k > max(20, np.sqrt(2 * len(sign))):
            return None
        fraction = problem.weights / problem.total_weight
        A, y = problem.X.times(Q), problem.y
        centre, level = (fraction @ A, float(fraction @ y)) if problem.intercept else (np.zeros(k), 0.0)
        root = np.sqrt(fraction)
        A = root[:, None] * (A - centre)
        gram, right = A.T @ A, A.T @ (root * (y - level)) - self.lam * (Q.T @ self.D.adjoint(sign))
        if not np.all(np.isfinite(gram)) or not np.linalg.cond(gram) <= TINY**-2:
            return None
        c = np.linalg.solve(gram, right)
        return Q @ c, level - float(centre @ c)


def face_basis(D: Differences, flat: Mask) -> sp.csr_array | None:
    """A basis of the w with (D w)_k = 0 for all flat k: indicators of connected components if D is a graph."""
    d = D.shape[1]
    if not np.any(flat):
        return sp.eye_array(d, format="csr")
    rows = D.matrix[np.flatnonzero(flat)]
    if joins_pairs(D):
        count, label = connected_components(abs(rows).T @ abs(rows), directed=False)
        return sp.csr_array((np.ones(d), (np.arange(d), label)), shape=(d, count))
    # singular vectors cost about thirty times as much as a factor
    return sp.csr_array(scipy.linalg.null_space(rows.toarray())) if limits.may_factor(3 * d) else None


def joins_pairs(D: Differences) -> bool:
    """Whether every row of D is a multiple of the difference of two weights."""
    return isinstance(D, GraphDifferences) or (isinstance(D, PowerDifferences) and D.order == 1)
