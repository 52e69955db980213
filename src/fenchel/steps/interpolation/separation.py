"""Whether a hyperplane separates signed rows y_i x_i: Newton steps on the squared hinge loss, without a penalty.

With A the signed rows, f(u) = |max(0, 1 - A u)|^2 / 2 is convex, piecewise quadratic, and attains its minimum (finite
Newton method: Mangasarian 2002). If some u has A u > 0, the minimum is zero, and the steps end as soon as they meet
such a u. Else the residual r = max(0, 1 - A u) >= 0 at the minimum has A'r = 0 and is not zero: a combination of
constraints that is contradictory (Gordan's alternative). The full step of a set of violated rows J leaves the residual
(1 - A_J u)_J projected onto the null space of A_J'; where it is positive on J, it is such a combination already.

Both answers do not depend on the basis of the columns. So they are orthonormal, once for all labelings of the points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, qr, solve_triangular

from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.typing import Indices, Matrix, StoredMatrix, Vector
from fenchel.problem.margin import LargestMargin, Model
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Progress, Solver, Start
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TINY, Patience

#: A Cholesky factor of X'X leaves columns that are orthonormal to e / pivot^2, at least sqrt(e) from pivots of e^(1/4).
INDEPENDENT = 2.0**-13
#: Of the Hessian, whose eigenvalues are at most 1: more than the rounding errors of its factor, e times the order.
RIDGE = 2.0**-36


@dataclass(frozen=True, eq=False)
class Basis:
    """Q with orthonormal columns that span those of T [X, 1]: rows are scaled to length 1, which changes no answer.

    Q u = T (X w + b) for `weights(u)` = (w, b); A'r = 0 for r in terms of the rows of Q is A'(T r) = 0.
    """

    Q: Matrix
    T: Vector
    weights: Callable[[Vector], Vector]

    @staticmethod
    def fits(n: int, columns: int) -> bool:
        """Whether a basis is small enough to be made, and the Hessians of its columns."""
        r = min(n, columns)
        return limits.fits(n, r) and limits.is_factorable(r, max(n, columns))

    @classmethod
    def of(cls, design: Design, intercept: bool) -> Basis:
        """Of the columns of a stored matrix, and of ones with an intercept."""
        lengths = np.hypot(design.row_norms(2.0), float(intercept))
        T = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        X: StoredMatrix
        if design.is_sparse:
            X = sp.csr_array(sp.diags_array(T) @ sp.csr_array(design.matrix).astype(np.float64))
            X = sp.hstack([X, sp.csr_array(T[:, None])], format="csr") if intercept else X
        else:
            X = np.asarray(design.matrix * T[:, None], dtype=np.float64)
            X = np.hstack([X, T[:, None]]) if intercept else X
        n, d = X.shape
        Q, weights = _of_rows(X) if n <= d else _of_columns(X)
        return cls(Q, T, weights)


def _of_rows(X: StoredMatrix) -> tuple[Matrix, Callable[[Vector], Vector]]:
    """From X X' = V S V': w = X'V S^(-1) u has X w = V u."""
    gram = X @ X.T
    values, V = eigh(np.asarray(gram.toarray() if sp.issparse(gram) else gram), check_finite=False)
    kept = values > ROUNDING * values[-1]
    V, values = np.ascontiguousarray(V[:, kept]), values[kept]
    return V, lambda u: np.asarray(X.T @ (V @ (u / values)))


def _of_columns(X: StoredMatrix) -> tuple[Matrix, Callable[[Vector], Vector]]:
    """X C = Q R with columns scaled by C, from X'X if its Cholesky factor is accurate enough, else with pivoting."""
    dense = np.array(X.toarray() if sp.issparse(X) else X)
    C = np.ones(dense.shape[1])
    for size in (np.abs(dense).max(axis=0, initial=0.0), None):  # twice: squares of the entries may underflow
        lengths = np.linalg.norm(dense, axis=0) if size is None else size
        factor = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        dense *= factor
        C *= factor
    columns = np.arange(len(C))
    try:
        R = cholesky(dense.T @ dense, check_finite=False)
        good = float(np.diagonal(R).min()) > INDEPENDENT
    except LinAlgError:
        good = False
    if good:
        Q = solve_triangular(R, dense.T, trans="T", check_finite=False).T
    else:
        Q, R, columns = qr(dense, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(sizes > ROUNDING * sizes[0]))
        Q, R, columns = Q[:, :rank], R[:rank, :rank], columns[:rank]

    def weights(u: Vector) -> Vector:
        w = np.zeros(len(C))
        w[columns] = C[columns] * solve_triangular(R, u, check_finite=False)
        return w

    return np.ascontiguousarray(Q), weights


@dataclass
class Separation:
    """Newton steps for the signed rows A of a basis.

    They come to u with A u > 0 as computed, `separates`, or to multipliers r >= 0 with A'r = 0 as computed.
    `before` is the residual max(0, 1 - A u) before the last step.
    """

    A: Matrix
    u: Vector
    z: Vector
    residual: Vector
    before: Vector
    separates: bool = False
    r: Vector | None = None
    steps: int = 0

    @classmethod
    def of(cls, A: Matrix) -> Separation:
        """Before the first step."""
        n, d = A.shape
        return cls(A, np.zeros(d), np.zeros(n), np.ones(n), np.ones(n))

    @property
    def ended(self) -> bool:
        """Whether there is an answer."""
        return self.separates or self.r is not None

    def step(self) -> None:
        """One step."""
        A, m = self.A, 1.0 - self.z
        violated = np.flatnonzero(m > 0.0)
        change, left = _newton_step(A, m, violated, identity=self.steps == 0)
        self.steps += 1
        largest = float(left.max(initial=0.0))
        if largest > TINY * m.max() and left.min(initial=np.inf) > TINY * largest:
            self.r = np.zeros(len(m))
            self.r[violated] = left
            return
        t = best_step(m, A @ change)
        self.u, self.before = self.u + t * change, self.residual
        self.z = A @ self.u
        if self.z.min() > 0.0:
            self.separates = True
            return
        self.residual = residual = np.maximum(1.0 - self.z, 0.0)
        if not t > 0.0 or np.linalg.norm(A.T @ residual) <= ROUNDING * np.linalg.norm(residual):
            self.r = residual


def _newton_step(A: Matrix, m: Vector, violated: Indices, identity: bool) -> tuple[Vector, Vector]:
    """The least-squares step for the violated rows, and what it leaves of their residual; A'A is the identity."""
    B, right = A[violated], m[violated]
    if identity:  # all rows are violated
        change = B.T @ right
    else:
        H = B.T @ B
        H[np.diag_indices(len(H))] += RIDGE
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        change = cho_solve(factor, B.T @ right, check_finite=False)
        change += cho_solve(factor, B.T @ (right - B @ change), check_finite=False)
    return change, right - B @ change


def best_step(m: Vector, a: Vector) -> float:
    """The t >= 0 that minimises sum_i max(0, m_i - t a_i)^2: the root of a piecewise linear function."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kinks = np.where(a != 0.0, m / a, np.inf)
    leaves, enters = (m > 0.0) & (a > 0.0), (m <= 0.0) & (a < 0.0)
    inside = (m > 0.0) | ((m == 0.0) & (a < 0.0))
    enters &= ~inside
    # the derivative is -slope + t curvature, over the rows inside
    slope, curvature = float(a[inside] @ m[inside]), float(a[inside] @ a[inside])
    moving = np.flatnonzero(leaves | enters)
    order = moving[np.argsort(kinks[moving], kind="stable")]
    sign = np.where(leaves[order], -1.0, 1.0)
    slopes = slope + np.concatenate([[0.0], np.cumsum(sign * a[order] * m[order])])
    curvatures = curvature + np.concatenate([[0.0], np.cumsum(sign * a[order] ** 2)])
    ends = np.concatenate([kinks[order], [np.inf]])
    starts = np.concatenate([[0.0], kinks[order]])
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = np.where(curvatures > 0.0, slopes / curvatures, np.where(slopes > 0.0, np.inf, starts))
    inner = np.flatnonzero(roots <= ends)
    t = float(max(roots[inner[0]], starts[inner[0]])) if len(inner) else float(starts[-1])
    return t if np.isfinite(t) else float(starts[-1])


@dataclass
class SquaredHingeState:
    """The steps for a problem."""

    problem: LargestMargin
    basis: Basis
    steps: Separation
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class SquaredHinge(Solver[SquaredHingeState]):
    """A classifier that separates the samples, or multipliers that prove that there is none; no largest margin.

    Parameters
    ----------
    basis : Basis, optional
        That of other labels of the same points.
    """

    basis: Basis | None = None
    name = "squared_hinge"
    summary = "any positive margin, or a proof that there is none: Newton steps on the squared hinge loss"
    requires = frozenset[Trait]()
    steps_per_check = 1
    passes_per_step = 1

    def obstacle(self, problem: LargestMargin) -> str | None:
        return None if self.basis is not None or basis_fits(problem) else "needs a basis of the columns, too large here"

    @staticmethod
    def suits(problem: LargestMargin, tol: float) -> bool:
        return problem.any_margin

    def begin(self, problem: LargestMargin, start: Start, seed: int) -> SquaredHingeState:
        if start.w.any() and problem.differences(Model(start.w, np.atleast_1d(start.b)))[0].min() > 0.0:
            raise GaveUp("a classifier that separates the samples is known")
        basis = basis_of(problem) if self.basis is None else self.basis
        A = problem.y[:, None] * basis.Q if problem.is_binary else basis.Q
        return SquaredHingeState(problem, basis, Separation.of(A))

    def step(self, state: SquaredHingeState) -> SquaredHingeState:
        if state.steps.ended or state.patience.is_over:
            raise GaveUp("the squared hinge loss is at its minimum")
        violated = int(np.count_nonzero(state.steps.residual))
        state.steps.step()
        residual = state.steps.residual
        state.patience.learn(float(residual @ residual), progress=int(np.count_nonzero(residual)) < violated)
        return state

    def progress(self, state: SquaredHingeState) -> Progress:
        """A certificate is due when the steps have come to an end."""
        return Progress(np.inf, np.inf, float(state.steps.ended))

    def candidates(self, state: SquaredHingeState) -> Sequence[Candidate]:
        steps, basis, problem = state.steps, state.basis, state.problem
        if not steps.ended:
            return ()
        if steps.r is not None:
            return [Candidate(np.zeros(problem.weights_shape), problem.first_intercept(), basis.T * steps.r)]
        w, b = basis.weights(steps.u), problem.first_intercept()
        if problem.intercept and problem.is_binary:
            w, b = w[:-1], float(w[-1])
        elif not problem.is_binary:
            w = w.reshape(problem.k, -1)
            w, b = (w[:, :-1], w[:, -1]) if problem.intercept else (w, b)
        return [Candidate(w, b, basis.T * steps.before)]


def basis_fits(problem: LargestMargin) -> bool:
    """Whether a basis of the columns of the data, or of the rows of differences, may be made."""
    columns = int(np.prod(problem.weights_shape)) + problem.intercept * (problem.k - 1)
    return Basis.fits(problem.n_constraints, columns) and (problem.is_binary or problem.may_form_rows)


def basis_of(problem: LargestMargin) -> Basis:
    """Of the columns of the data, or of the rows of differences."""
    if problem.is_binary:
        return Basis.of(problem.design, problem.intercept)
    return Basis.of(problem.formed_rows(None, float(problem.intercept)), intercept=False)
