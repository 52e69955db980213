"""The Hessian of the dual objective of an interpolation over its multipliers, and its linear systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.data import limits
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties.base import LinkDerivative
from fenchel.steps.base import Overflow
from fenchel.steps.linear_algebra.conjugate_gradients import conjugate_gradients
from fenchel.steps.linear_algebra.safeguards import ROUNDING


@dataclass
class MultiplierHessian:
    """K = A H A' + pull 1 1' (for every output) + diag(damping).

    The damping of a row is inverse to its weight: where there is no feasible point, the steps then lead to the least
    weighted mean of squared distances.
    """

    problem: Interpolation
    derivative: LinkDerivative
    damping: Vector
    pull: float
    rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # of the last system
    inverse: Callable[[Vector], Vector] = np.asarray  # solves the last system
    near: Vector = field(default_factory=lambda: np.zeros(0))  # where conjugate gradients begin, if that is nearer,
    level: float = 0.0  # and a residual that is small enough, if a relative one is not

    @classmethod
    def of(cls, problem: Interpolation, derivative: LinkDerivative, damping: float) -> MultiplierHessian:
        """With this part of the mean diagonal as damping."""
        fractions = problem.fractions.ravel()
        counts = fractions > 0.0
        mean = float(np.mean(problem.row_norms[counts] ** 2)) * float(np.mean(derivative.diagonal))
        mean = mean if 0.0 < mean < np.inf else 1.0
        pull = np.count_nonzero(counts) * mean if problem.intercept else 0.0  # about the trace of A H A'
        inverse = np.ones_like(fractions)
        if problem.on_infeasible == "least_violation":  # else weights play no role for the optimum
            np.divide(1.0 / np.count_nonzero(problem.counts), fractions, out=inverse, where=counts)
        return cls(problem, derivative, damping * mean * inverse, pull)

    def times(self, x: Vector) -> Vector:
        """K x."""
        product = self.without_pull(x)
        if self.pull:
            product += np.tile(self.pull * self.problem.totals(x), self.problem.n_samples)
        return product

    def without_pull(self, x: Vector) -> Vector:
        """K x without the intercept's part."""
        return self._undamped(x) + self.damping * x

    def _undamped(self, x: Vector) -> Vector:
        X = self.problem.X
        return X.matvec(self.derivative.times(X.rmatvec(x)))

    def solve(self, rows: Indices, right: Vector) -> Vector:
        """K x = right among some rows; the intercept's part by the formula of Woodbury, which keeps the digits."""
        if not np.array_equal(rows, self.rows):
            fits = self.fits(self.problem, len(rows))
            if len(rows) > self.problem.X.shape[1] and limits.fits(*self.problem.X.shape):
                self.rows, self.inverse = rows, self._factored_by_columns(rows)
            else:
                self.rows = rows
                self.inverse = self._factored(rows) if fits else partial(self._conjugate_gradients, rows)
        solve = self.inverse
        x = solve(right)
        if not self.pull:
            return x
        k = self.problem.outputs
        outputs = np.eye(k)[rows % k]
        columns = np.column_stack([solve(column) for column in np.ascontiguousarray(outputs.T)])
        inner = np.eye(k) / self.pull + outputs.T @ columns
        if not np.all(np.isfinite(inner)):
            raise Overflow("the Hessian overflows")
        return np.asarray(x - columns @ np.linalg.lstsq(inner, outputs.T @ x, rcond=None)[0])

    def _factored(self, rows: Indices) -> Callable[[Vector], Vector]:
        """Solutions by a Cholesky factor, each refined once."""
        K = self._dense(rows)
        scale = float(np.abs(np.diagonal(K)).max(initial=0.0))
        for more in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
            try:
                factor = cho_factor(K + more * scale * np.eye(len(rows)), lower=True, overwrite_a=True)
            except (LinAlgError, ValueError):
                continue

            def solve(right: Vector, factor: Any = factor) -> Vector:
                x = cho_solve(factor, right, check_finite=False)
                return np.asarray(x + cho_solve(factor, right - K @ x, check_finite=False))

            return solve
        raise Overflow("the Hessian cannot be factored")

    def _factored_by_columns(self, rows: Indices) -> Callable[[Vector], Vector]:
        """For more rows than columns, from B B' + D with B = A H^(1/2), each refined once (Woodbury)::

            (B B' + D)^-1 = D^-1 - D^-1 B (I + B'D^-1 B)^-1 B'D^-1.

        D, the damping, is at least a small part of the mean diagonal, whose inverse is what is lost of the digits.
        """
        B, D = self.derivative.root(self.problem.X.rows(rows)), self.damping[rows]
        S = B / D[:, None]
        C = B.T @ S
        C[np.diag_indices(len(C))] += 1.0
        try:
            factor = cho_factor(C, lower=True, overwrite_a=True)
        except (LinAlgError, ValueError):
            raise Overflow("the Hessian cannot be factored") from None

        def once(right: Vector) -> Vector:
            scaled = right / D
            return np.asarray(scaled - S @ cho_solve(factor, B.T @ scaled, check_finite=False))

        def solve(right: Vector) -> Vector:
            x = once(right)
            return np.asarray(x + once(right - B @ (B.T @ x) - D * x))

        return solve

    @staticmethod
    def fits(problem: Interpolation, rows: int) -> bool:
        """Whether the Hessian of so many rows may be factored: else there are conjugate gradients."""
        copied = not (problem.is_stored and (problem.penalty.quadratic or problem.design.is_sparse))
        return limits.fits(rows, max(rows, problem.X.shape[1] if copied else 0))

    def _dense(self, rows: Indices) -> Matrix:
        problem, derivative = self.problem, self.derivative
        every = len(rows) == problem.X.shape[0]
        if problem.penalty.quadratic and limits.fits(problem.X.shape[0], problem.X.shape[0]):
            gram = problem.row_gram
            K = derivative.diagonal[0] * (gram if every else gram[np.ix_(rows, rows)])
        elif problem.penalty.quadratic:
            K = derivative.diagonal[0] * problem.gram_of(rows)
        else:
            K = self._weighted_gram(rows)
        K[np.diag_indices(len(rows))] += self.damping[rows]
        return np.asarray(K)

    def _weighted_gram(self, rows: Indices) -> Matrix:
        problem, derivative = self.problem, self.derivative
        if not (problem.is_stored and problem.design.is_sparse):
            return derivative.gram(problem.X.rows(rows))
        part = sp.csr_array(problem.design.matrix)[rows].astype(np.float64)
        K = np.asarray(((part * derivative.diagonal) @ part.T).toarray())
        if derivative.direction is not None:
            image = np.asarray(part @ derivative.direction)
            K += derivative.factor * np.outer(image, image)
        return K

    def _conjugate_gradients(self, rows: Indices, right: Vector) -> Vector:
        """With the damping too: without it b would be off by K^(-1) diag(damping) b from that of the model."""
        norms = self.problem.row_norms[rows]
        diagonal = norms**2 * float(np.mean(self.derivative.diagonal)) + self.damping[rows]
        diagonal = np.where(diagonal > 0.0, diagonal, 1.0)
        padded = np.zeros(self.problem.X.shape[0])
        every = len(rows) == len(padded)

        def times(x: Vector) -> Vector:
            if every:
                return self.without_pull(x)
            padded[rows] = x
            return self.without_pull(padded)[rows]

        start, size = self.near[rows] if len(self.near) else np.zeros_like(right), float(np.linalg.norm(right))
        left = right - times(start)
        if not np.linalg.norm(left) < size:
            start, left = np.zeros_like(right), right
        goal = max(ROUNDING * size, self.level) ** 2
        x, _, _ = conjugate_gradients(times, lambda r: r / diagonal, left, residual_goal=goal)
        return start + x
