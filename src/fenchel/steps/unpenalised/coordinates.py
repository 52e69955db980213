"""Orthonormal coordinates of the models: as many as X has independent columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, svd

from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Matrix, Vector
from fenchel.problem import MulticlassProblem, Problem


@dataclass(frozen=True)
class Coordinates:
    """z = b + G c, with w = V c and an intercept b beside the means of the columns (0 without one).

    With p_i = s_i / W the columns of G have means 0 if there is an intercept, and G'diag(p) G = I. The weights w = V c
    are those of least length that have these scores. Singular values below the rounding of the largest count as zero;
    columns are brought to the same length first if that leaves none out, since w is then unique.
    """

    problem: Any
    G: Matrix
    V: Matrix
    means: Vector

    @classmethod
    def of(cls, problem: Problem | MulticlassProblem) -> Coordinates:
        X, p = problem.X.rows(np.arange(problem.shape[0])), problem.weights / problem.total_weight
        means = p @ X if problem.intercept else np.zeros(X.shape[1])
        if problem.intercept:
            X = X - means
        weighted = X * np.sqrt(p)[:, None]
        lengths = np.sqrt(np.einsum("ij,ij->j", weighted, weighted))
        V = None
        if np.all((lengths > 1e-150) & (lengths < 1e150)):
            V = _inverse(weighted / lengths)
            V = V / lengths[:, None] if V.shape[1] == X.shape[1] else None
        if V is None:
            V = _inverse(weighted)
        return cls(problem, X @ V, V, means)

    @property
    def rank(self) -> int:
        """The number of coordinates."""
        return int(self.V.shape[1])

    def model(self, c: Vector, b: float) -> tuple[Vector, float]:
        """Weights and intercept."""
        w = self.V @ c
        return w, float(b - self.means @ w) if self.problem.intercept else 0.0


def _inverse(A: Matrix) -> Matrix:
    """V with A V orthonormal, of the right singular vectors over their singular values."""
    n, d = A.shape
    _, sigma, Vt = svd(qr(A, mode="r")[0][:d] if n > d else A, full_matrices=False)
    kept = sigma > 2.0 * max(n, d) * UNIT_ROUNDOFF * sigma.max(initial=0.0)
    return np.asarray(Vt[kept].T / sigma[kept])


def fit(problem: Problem | MulticlassProblem) -> bool:
    """Whether X may be made dense and factorised."""
    n, d = problem.shape
    return limits.fits(n, d) and limits.is_factorable(min(n, d), max(n, d))
