"""Equations that every feasible model satisfies, and how far a model is from an exact solution of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.certificate.bounds.rounding import UNDERFLOW
from fenchel.certificate.interpolation.rational import implied_rows
from fenchel.certificate.interpolation.triangular import Triangular
from fenchel.data.limits import blocks, fits, is_factorable
from fenchel.data.products import gamma
from fenchel.data.typing import Matrix, StoredMatrix, Vector
from fenchel.kernel.semidefinite import eigenvalues_above
from fenchel.problem import Interpolation
from fenchel.problem.penalties.base import LinkDerivative
from fenchel.problem.vectors import p_norm

#: Below it the smallest eigenvalue of rows of length 1, whose root counts, has less than half of its digits.
SQUARED = 2.0**-26


@dataclass(frozen=True)
class Equations:
    """All equations that a feasible (w, b) satisfies exactly, F (w, b) = f: points, sums of simplices, the domain of R.

    If (w, b) misses them by r, then (w, b) + D F'y with (F D F') y = r satisfies them, for any positive diagonal D.
    With T = diag(F D F')^(-1/2), y = T x, |x| <= |T r| / lambda, lambda the smallest eigenvalue of T F D F' T: entry j
    moves by at most D_j |(T F)_j| |T r| / lambda, where (T F)_j is a column.

    In the metric of D the shortest way is no longer than |T r| / sqrt(lambda): entry j moves by at most sqrt(D_j) times
    that. Where lambda is small, and its own rounding counts, triangular factors take its place (`triangular`).

    lambda is bounded below: the computed matrix C is off by gamma_(columns + 8) in each entry, whose sizes are at most
    1 after the scaling; and if the Cholesky factorisation of C - c I succeeds in floating point, its smallest
    eigenvalue is at least c - (m + 2) m u (Rump 2006; m rows, u the unit roundoff).
    """

    F: StoredMatrix  # an array, or a CSR matrix
    f: Vector
    summed: int = 1  # how many rows of X an equation adds up, at most
    cancels: bool = False  # whether they cancel in part: then F is not exact enough
    factors: dict[bytes, Triangular | None] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Interpolation) -> Equations:
        """The rows that have equations; an intercept is one more column for each output."""
        M, e = problem.constraints.equations
        counted = np.asarray(M @ np.repeat(problem.counts, problem.outputs).astype(float)) > 0.0
        M, e = M[counted], e[counted]
        F = _times(M, problem)
        summed = int(np.diff(M.indptr).max(initial=1))
        cancels = summed > 1 and bool(problem.is_stored) and _cancels(M, F, problem)
        if problem.intercept:
            outputs = np.tile(np.eye(problem.outputs), (problem.n_samples, 1))
            extra = M @ outputs
            F = sp.hstack([F, sp.csr_array(extra)], format="csr") if sp.issparse(F) else np.hstack([F, extra])
        own, value = problem.penalty.equations(problem.X.shape[1])
        if len(value):
            own = np.hstack([own, np.zeros((len(own), F.shape[1] - own.shape[1]))])
            F = np.vstack([F.toarray() if sp.issparse(F) else F, own])
        f = np.concatenate([e, value])
        if is_factorable(len(f), 0):
            F, f = _distinct(F, f)
        return cls(F, f, summed, cancels)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.f)

    @property
    def fit(self) -> bool:
        """Whether they are few enough for a factorisation."""
        return is_factorable(*self.F.shape)

    @cached_property
    def independent(self) -> Equations | None:
        """Without those that follow from others, exactly; None if none does, or that is too much work."""
        if self.summed > 1 or not self.fit:
            return None
        F = self.F.toarray() if sp.issparse(self.F) else self.F
        kept = implied_rows(np.column_stack([F, self.f]))
        return None if kept is None or len(kept) == self.count else Equations(self.F[kept], self.f[kept])

    def residual(self, x: Vector) -> Vector:
        """A bound on |F x - f|, entry by entry."""
        if sp.issparse(self.F):
            size, depth = abs(self.F) @ np.abs(x), int(np.diff(self.F.indptr).max(initial=0)) + 4
            rounding = gamma(depth + self.summed) * (size + np.abs(self.f)) + UNDERFLOW
            return np.asarray(np.abs(self.F @ x - self.f) + rounding)
        value, size = np.empty(self.count), np.empty(self.count)
        for block in blocks(*self.F.shape):
            terms = np.multiply(self.F[block], x, order="C")
            value[block], size[block] = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        # NumPy adds pairwise: at most 32 + log2(d) additions per term
        rounding = gamma(64 + np.log2(self.F.shape[1] + 1) + self.summed) * (size + np.abs(self.f))
        return np.asarray(np.abs(value - self.f) + rounding + self.F.shape[1] * UNDERFLOW)

    def moves(self, x: Vector, metric: Vector, gram: Matrix | None = None) -> Vector | None:
        """How far each entry of x is from an exact solution near x, at most; None if that cannot be proven."""
        m, d = self.F.shape
        if m == 0:
            return np.zeros(d)
        if self.cancels or not self.fit:
            return None
        if gram is None:
            scaled = self.F * np.sqrt(metric)
            gram = np.asarray((scaled @ scaled.T).toarray() if sp.issparse(scaled) else scaled @ scaled.T)
        diagonal = np.diagonal(gram)
        if not np.all((diagonal > 1e-280) & (diagonal < 1e280)):
            return None
        T = 1.0 / np.sqrt(diagonal)
        smallest = smallest_eigenvalue(gram * T[:, None] * T, d + 2 * self.summed)
        if not smallest > SQUARED:
            moves = self._without_squares(x, metric)
            if moves is not None or not smallest > 0.0:
                return moves if moves is not None or self.independent is None else self.independent.moves(x, metric)
        length = p_norm(T * self.residual(x), 2)
        F, weights = self.F, T * T
        squares = F.power(2).T @ weights if sp.issparse(F) else np.einsum("ij,ij,i->j", F, F, weights)
        columns = metric * (np.sqrt(squares) + 1e-150) * (length / smallest)
        return np.asarray(np.minimum(columns, np.sqrt(metric) * (length / np.sqrt(smallest))) * (1.0 + 1e-9))

    def _without_squares(self, x: Vector, metric: Vector) -> Vector | None:
        """By triangular factors, which are kept for the last metric."""
        if not fits(*self.F.shape):
            return None
        key = metric.tobytes()
        if key not in self.factors:
            self.factors.clear()
            F = self.F.toarray() if sp.issparse(self.F) else self.F
            self.factors[key] = Triangular.of(F, metric, self.summed)
        found = self.factors[key]
        return None if found is None else found.moves(self.residual(x), metric)


def _cancels(M: sp.csr_array, F: StoredMatrix, problem: Interpolation) -> bool:
    X = problem.design.matrix
    return bool(np.any(np.asarray((abs(F) - M @ abs(X.astype(np.float64))).sum()) != 0.0))


def _distinct(F: StoredMatrix, f: Vector) -> tuple[StoredMatrix, Vector]:
    """Without equations 0 = 0, and without those that stand there twice."""
    sums, sparse = np.asarray(F.sum(axis=1)).ravel(), sp.issparse(F)
    ordered = np.sort(sums)
    if np.all(sums != 0.0) and np.all(np.diff(ordered) > 1e-9 * np.abs(ordered[1:])):  # no two rows are the same
        return F, f
    seen: dict[bytes, int] = {}
    for i in range(len(f)):
        part = slice(F.indptr[i], F.indptr[i + 1]) if sparse else slice(None)
        values = F.data[part] if sparse else F[i]
        entries = (F.indices[part].tobytes() if sparse else b"") + (values + 0.0).tobytes()
        if np.any(values) or f[i] != 0.0:
            seen.setdefault(entries + f[i : i + 1].tobytes(), i)
    kept = np.array(sorted(seen.values()), dtype=np.int64)
    return (F, f) if len(kept) == len(f) else (F[kept], f[kept])


def _times(M: sp.csr_array, problem: Interpolation) -> StoredMatrix:
    """M X as a stored matrix, in float64."""
    X = problem.X
    if not M.shape[0]:
        return np.zeros((0, X.shape[1]))
    if problem.is_stored and problem.design.is_sparse:
        return sp.csr_array(M @ sp.csr_array(problem.design.matrix).astype(np.float64))
    if problem.is_stored:
        whole = M.nnz == M.shape[0] == M.shape[1] and np.array_equal(M.indices, np.arange(M.shape[0]))
        dense = np.asarray(problem.design.matrix, dtype=np.float64)
        return dense if whole else np.asarray(M @ dense)
    used = np.unique(M.indices)
    return np.asarray(M[:, used] @ X.rows(used)) if len(used) else np.zeros((M.shape[0], X.shape[1]))


def smallest_eigenvalue(C: Matrix, terms: int) -> float:
    """A bound below the smallest eigenvalue of the exact matrix whose entries C has up to gamma_(terms + 8)."""
    m = len(C)
    spare = 1.1 * m * gamma(terms + 16)
    try:
        factor, x = cho_factor(C, lower=True), np.random.default_rng(0).normal(size=m)
        for _ in range(8):  # inverse iterations
            x = cho_solve(factor, x / np.linalg.norm(x))
        guess = 1.0 / float(np.linalg.norm(x))
        work, diagonal = np.array(C, order="C"), np.diagonal(C).copy()
        for part in (0.8, 0.3, 0.03, 1e-3):
            found = eigenvalues_above(work, diagonal, -part * guess)
            if found is not None:
                return found - spare
    except (LinAlgError, ValueError):
        pass
    return 0.0


def metric_of(derivative: LinkDerivative | None, size: int) -> Vector:
    """A positive diagonal in which corrections are small where the weights can hardly change."""
    if derivative is None:
        return np.ones(size)
    diagonal = derivative.diagonal
    top = float(diagonal.max(initial=0.0))
    if not (0.0 < top < np.inf):
        return np.ones(size)
    return np.concatenate([np.maximum(diagonal / top, 1e-30), np.ones(size - len(diagonal))])
