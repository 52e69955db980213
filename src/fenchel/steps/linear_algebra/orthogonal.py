"""The shortest change of weights that satisfies equations, by orthogonal factors: no square of a condition number.

Of all steps with A step = r the shortest is A'u, A A'u = r. With A' = Q R, rows of A in an order in which the first
are independent, step = Q R^-T r and u = R^-1 R^-T r. With an unpenalised intercept, a reflection H that maps
(1, ..., 1) to a multiple of the first axis leaves it in the first equation alone: A and r are the others of H X, H r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Matrix, Vector


@dataclass(frozen=True)
class ShortestChange:
    """Factors of rows for all right-hand sides."""

    reflector: Vector | None  # h of H = I - h h', if there is an intercept
    A: Matrix
    Q: Matrix
    R: Matrix
    kept: Indices  # the independent rows

    @classmethod
    def of(cls, rows: Matrix, intercept: bool) -> ShortestChange:
        """Rows that depend on others up to rounding are left out."""
        reflector = None
        if intercept:
            reflector = np.ones(len(rows))
            reflector[0] += np.sqrt(len(rows))
            reflector *= np.sqrt(2.0) / np.linalg.norm(reflector)
        A = rows if reflector is None else _reflected(reflector, rows)[1:]
        Q, R = qr(A.T, mode="economic", check_finite=False)
        order = np.arange(len(A))
        negligible = UNIT_ROUNDOFF * max(A.shape, default=0)
        sizes = np.abs(np.diagonal(R))
        if len(A) > A.shape[1] or not sizes.min(initial=np.inf) > negligible * sizes.max(initial=0.0) * len(A):
            Q, R, order = qr(A.T, mode="economic", pivoting=True, check_finite=False)
            sizes = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(sizes > negligible * sizes.max(initial=0.0)))
        return cls(reflector, A, Q[:, :rank], R[:rank, :rank], order[:rank])

    def solve(self, right: Vector) -> tuple[Vector, Vector]:
        """The step and u; both are refined once."""
        r = right if self.reflector is None else _reflected(self.reflector, right)[1:]
        step, u = np.zeros(self.A.shape[1]), np.zeros(len(self.A))
        for _ in range(2):
            g = solve_triangular(self.R, (r - self.A @ step)[self.kept], trans="T", check_finite=False)
            step += self.Q @ g
            u[self.kept] += solve_triangular(self.R, g, check_finite=False)
        return step, u if self.reflector is None else _reflected(self.reflector, np.concatenate([[0.0], u]))


def _reflected(h: Vector, rows: Matrix | Vector) -> Matrix:
    return np.asarray(rows - np.multiply.outer(h, h @ rows))
