"""Newton systems: (ridge + [X, c]' diag(h) [X, c]) p = g over the rows where h is not zero.

For few columns a d x d Gram matrix is factored: of all rows with h > 0 if there are few, else of a random sample, as
the preconditioner of conjugate gradients, reused while few steps suffice. Row i is drawn with probability proportional
to h_i sum_j x_ij^2 / (ridge_j + H_jj), so that columns with few nonzeros are represented: m rows for d columns give a
condition number of about ((1 + r) / (1 - r))^2, r = sqrt(d / m). For many columns the preconditioner is the diagonal
of H.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.steps.base import Overflow
from fenchel.steps.linear_algebra.augmented import AugmentedDesign
from fenchel.steps.linear_algebra.conjugate_gradients import Operator, conjugate_gradients


@dataclass(frozen=True)
class NewtonSystemTuning:
    """When a Gram matrix is sampled; times as parts of those with the present values.

    `python -m benchmarks.tuning steps.linear_algebra.newton_system few_rows 2500 20000 --rows "^logistic 20000"`: 0.91
    and 2.62; `dense_rows 4 64`, 0.90 and 0.83; `stale_after 3 12 --rows "^hinge intercept 7000"`: 1.13 and 1.05;
    `gram_cost 4 16 --rows "^groups auto"`: 0.95 and 1.10. With --rows "^auto sparse", `sparse_rows 16 64`: 1.00 and
    1.00; `gram_cost 1 64`, 1.43 and 0.92 of 20000 x 100.
    """

    dense_rows: int = 8  # sampled rows per column of a dense X, whose Gram matrix is computed by BLAS
    sparse_rows: int = 32  # sampled rows per column of a sparse X
    few_rows: int = 5000  # most rows without a sample, so that weight 2 is exactly equivalent to a repeated row
    stale_after: int = 6  # steps after which a sampled factor is not reused for the next system
    gram_cost: float = 8.0  # largest cost of a Gram matrix of all rows, in products with X


TUNING = NewtonSystemTuning()


@dataclass
class NewtonSystem:
    """Solves a sequence of Newton systems; reuses the factor of a sample."""

    design: AugmentedDesign
    rng: np.random.Generator
    factor: Vector | None = None
    passes: float = field(default=0.0)

    def solve(self, rows: NDArray[np.int64], h: Vector, g: Vector, accuracy: float) -> tuple[Vector, Vector]:
        """p, and the residual g - (ridge + H) p: zero for a direct solve, else |residual|^2 <= accuracy."""
        design = self.design
        nonzero = np.flatnonzero(h)
        if len(nonzero) < 0.7 * len(h):
            rows, h = rows[nonzero], h[nonzero]
        ridge = self._ridge(h)
        width = len(ridge)
        if not limits.may_factor(width):
            p, r = self._iterate(rows, h, g, ridge, self._diagonal(rows, h, ridge), accuracy)
        else:
            most = sample_size(design.problem.design, width)
            if len(nonzero) <= most or design.gram_cost <= TUNING.gram_cost:
                self.factor = None
                p, r = _back_substitute(self._factored(rows, h, ridge), g), np.zeros_like(g)
            else:
                factor = self.factor = self.factor if self.factor is not None else self._sampled(rows, h, ridge, most)
                p, r = self._iterate(rows, h, g, ridge, lambda r: _back_substitute(factor, r), accuracy)
        return p, r + (ridge - design.ridge) * p

    def _ridge(self, h: Vector) -> Vector:
        """The penalty's ridge, and a small one for an unpenalised intercept, whose curvature may be almost zero."""
        ridge, problem = self.design.ridge.copy(), self.design.problem
        if problem.intercept:
            curvature = self.design.column**2 * float(h.sum())
            if problem.loss.quadratic:
                ridge[-1] = 1e-12 * curvature
            else:
                ridge[-1] = 1e-3 * (min(ridge[0], curvature) if curvature > 0.0 else ridge[0])
        return ridge

    def _sampled(self, rows: NDArray[np.int64], h: Vector, ridge: Vector, most: int) -> Vector:
        chance = self._diagonal_fractions(rows, h, ridge)
        total = float(chance.sum())
        chance = np.minimum(1.0, most / total * chance) if total > 0.0 else np.full(len(rows), most / len(rows))
        drawn = np.flatnonzero(self.rng.random(len(rows)) < chance)
        return self._factored(rows[drawn], h[drawn] / chance[drawn], ridge)

    def _factored(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Vector:
        # positive definite in exact arithmetic; if rounding breaks it, a larger ridge still gives a descent direction
        for more in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
            H = self.design.gram(rows, h)
            self.passes += len(rows) / self.design.problem.shape[0]
            diagonal = H.ravel(order="K")[:: len(H) + 1]
            diagonal += ridge + more * diagonal
            factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return np.asarray(factor)
        raise Overflow("the Hessian overflows; rescale the features or lam")

    def _diagonal_fractions(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Vector:
        """h_i sum_j x_ij^2 / (ridge_j + H_jj) for each row i."""
        self.passes += 2 * len(rows) / self.design.problem.shape[0]
        return h * self.design.row_squares(rows, 1.0 / (ridge + self.design.diagonal(rows, h)))

    def _diagonal(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Operator:
        inverse = 1.0 / (ridge + self.design.diagonal(rows, h))
        return lambda r: inverse * r

    def _iterate(
        self, rows: NDArray[np.int64], h: Vector, g: Vector, ridge: Vector, precondition: Operator, accuracy: float
    ) -> tuple[Vector, Vector]:
        """Preconditioned conjugate gradients; a sampled factor that needs many steps is discarded."""

        def hessian(p: Vector) -> Vector:
            return self.design.hessian_product(rows, h, p) + ridge * p

        p, r, steps = conjugate_gradients(hessian, precondition, g, residual_goal=accuracy)
        if steps > TUNING.stale_after:
            self.factor = None
        self.passes += steps * len(rows) / self.design.problem.shape[0]
        return p, r


def sample_size(design: Design, width: int) -> int:
    """The largest number of rows of a Gram matrix of this width."""
    return max(TUNING.few_rows, width * (TUNING.sparse_rows if design.is_sparse else TUNING.dense_rows))


def _back_substitute(factor: Vector, r: Vector) -> Vector:
    return np.asarray(dpotrs(factor, r, lower=1)[0])
