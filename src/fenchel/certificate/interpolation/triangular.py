"""How far a model is from an exact solution of equations, without squaring the condition number of their rows.

A solution of F x = f at x + D^(1/2) delta, D a positive diagonal, has S delta = T (f - F x) =: r for S = T F D^(1/2),
T any positive diagonal. With S' = Q R as computed, L = R', G = Q', and E = S - L G,

    S = L (G + L^-1 E),   so that   |delta| <= |L^-1 r| / (sigma - eta)   for the shortest delta,

sigma a lower bound on the least singular value of G, eta >= |L^-1 E|. With X about L^-1 and e >= |I - X L| < 1,
L^-1 = (I - (I - X L))^-1 X, so that |L^-1 r| <= | |X| |r| | / (1 - e) and eta = |X| |E| / (1 - e). All norms of
matrices are Frobenius norms, and sigma^2 >= 1 - |I - G G'|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, qr, solve_triangular

from fenchel.data.products import EVALUATION, gamma
from fenchel.data.typing import Matrix, Vector
from fenchel.problem.vectors import p_norm


@dataclass(frozen=True)
class Triangular:
    """|X| and T, and what |delta| is at most for a | |X| |r| | of 1."""

    inverse: Matrix
    T: Vector
    factor: float

    @classmethod
    def of(cls, F: Matrix, metric: Vector, summed: int = 1) -> Triangular | None:
        """Of rows each of which is a sum of so many; None if they are too nearly dependent for a proof."""
        m, d = F.shape
        if not 0 < m <= d:
            return None
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(F * np.sqrt(metric), axis=1)
            T = 1.0 / lengths
            S = T[:, None] * F * np.sqrt(metric)
            least = np.abs(S[F != 0.0]).min(initial=1.0)
        if not (np.all(np.isfinite(S)) and np.all(np.isfinite(lengths)) and least > 1e-150):
            return None
        try:
            Q, R = qr(S.T, mode="economic", check_finite=False)
            L, G = R.T, Q.T
            X = solve_triangular(R, np.eye(m), check_finite=False).T
        except (LinAlgError, ValueError):
            return None
        return cls._proven(S, L, G, X, T, gamma(m + 8 + 2 * summed))

    @classmethod
    def _proven(cls, S: Matrix, L: Matrix, G: Matrix, X: Matrix, T: Vector, u: float) -> Triangular | None:
        (m, d), grown = S.shape, 1.0 + EVALUATION * 8.0
        size_L, size_G, size_X = (_length(each) for each in (L, G, X))
        with np.errstate(all="ignore"):
            # entries of S are sums, rounded a few times more; those of L G and X L are sums of m products
            E = (_length(S - L @ G) + u * (size_L * size_G + _length(S))) * grown
            e = (_length(np.eye(m) - X @ L) + u * (_length(np.abs(X) @ np.abs(L)) + 1.0)) * grown
            square = 1.0 - (_length(np.eye(m) - G @ G.T) + gamma(d + 8) * (size_G**2 + 1.0)) * grown
            sigma = np.sqrt(square) * (1.0 - EVALUATION) if square > 0.0 else 0.0
            if not e < 0.5:
                return None
            eta = size_X * E / (1.0 - e) * grown
        if not eta < 0.5 * sigma:
            return None
        return cls(np.abs(X), T, grown / ((1.0 - e) * (sigma - eta)))

    def moves(self, residual: Vector, metric: Vector) -> Vector:
        """Bounds on the entries of D^(1/2) delta, from bounds on those of |f - F x|."""
        length = p_norm(self.inverse @ (self.T * residual), 2) * self.factor * (1.0 + 1e-9)
        return np.asarray(np.sqrt(metric) * length * (1.0 + 1e-9))


def _length(A: Matrix) -> float:
    """The Frobenius norm, from above."""
    return float(np.linalg.norm(A)) * (1.0 + 1e-9) + 1e-150
