"""Newton systems: (ridge + [X, c]' diag(h) [X, c]) p = g over the rows where h is not zero.

Narrow problems factor a d x d Gram matrix over at most a few rows for every column. That is the matrix itself when no
more rows have h > 0. Otherwise it is a random sample of the rows, the preconditioner of conjugate gradients, kept for
as long as few steps suffice. Row i is drawn with a probability proportional to its part of the scaled diagonal, h_i
sum_j x_ij^2 / (ridge_j + H_jj), so that columns with few nonzeros are represented: m rows for d columns then leave a
condition number of about ((1 + r) / (1 - r))^2, r = sqrt(d / m). Wide problems use the diagonal of H.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.steps.base import Overflow
from fenchel.steps.linear_algebra.augmented import AugmentedDesign
from fenchel.steps.linear_algebra.conjugate_gradients import Operator, conjugate_gradients


@dataclass(frozen=True)
class NewtonSystemTuning:
    """When a Gram matrix is factored, sampled or avoided.

    `python -m benchmarks.race` and `python -m benchmarks.race --sparse` show their effect; the runs that set them are
    not recorded. `max_steps` is a guess that tests hold.
    """

    widest: int = 1000  # most columns of a matrix that is factored: 8 MB
    dense_rows: int = 8  # rows of a sample for every column, of a dense X, whose Gram matrix is made by BLAS
    sparse_rows: int = 32  # the same for a sparse X
    few_rows: int = 5000  # up to this many rows no sample is drawn, so that weight 2 is exactly the row twice
    max_steps: int = 250  # most conjugate-gradient steps for one system
    stale_after: int = 6  # steps after which a sampled factor is no longer used for the next system
    gram_price: float = 8.0  # a Gram matrix of all rows is formed if it costs no more than this many products with X


TUNING = NewtonSystemTuning()


@dataclass
class NewtonSystem:
    """Solves one Newton system after another; keeps the factor of a sample between them."""

    design: AugmentedDesign
    rng: np.random.Generator
    factor: Vector | None = None
    passes: float = field(default=0.0)

    def solve(self, rows: NDArray[np.int64], h: Vector, g: Vector, accuracy: float) -> tuple[Vector, Vector]:
        """p, and the residual g - (ridge + H) p: zero for a direct solve, else |residual|^2 <= accuracy."""
        design = self.design
        curved = np.flatnonzero(h)
        if len(curved) < 0.7 * len(h):
            rows, h = rows[curved], h[curved]
        ridge = self._ridge(h)
        width = len(ridge)
        if width > TUNING.widest:
            p, r = self._iterate(rows, h, g, ridge, self._diagonal(rows, h, ridge), accuracy)
        else:
            most = sample_size(design.problem.design, width)
            if len(curved) <= most or design.price_of_gram <= TUNING.gram_price:
                self.factor = None
                p, r = _back_substitute(self._factored(rows, h, ridge), g), np.zeros_like(g)
            else:
                factor = self.factor = self.factor if self.factor is not None else self._sampled(rows, h, ridge, most)
                p, r = self._iterate(rows, h, g, ridge, lambda r: _back_substitute(factor, r), accuracy)
        return p, r + (ridge - design.ridge) * p

    def _ridge(self, h: Vector) -> Vector:
        """The penalty's ridge, and a small one for an unpenalised intercept, whose own curvature may be almost zero."""
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
        # positive definite in exact arithmetic; where rounding hides it, a little more ridge still gives a descent
        # direction
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
        """h_i sum_j x_ij^2 / (ridge_j + H_jj) for every row i."""
        self.passes += 2 * len(rows) / self.design.problem.shape[0]
        return h * self.design.row_squares(rows, 1.0 / (ridge + self.design.diagonal(rows, h)))

    def _diagonal(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Operator:
        inverse = 1.0 / (ridge + self.design.diagonal(rows, h))
        return lambda r: inverse * r

    def _iterate(
        self, rows: NDArray[np.int64], h: Vector, g: Vector, ridge: Vector, precondition: Operator, accuracy: float
    ) -> tuple[Vector, Vector]:
        """Preconditioned conjugate gradients; a sampled factor that needs many steps is not used again."""

        def hessian(p: Vector) -> Vector:
            return self.design.hessian_product(rows, h, p) + ridge * p

        p, r, steps = conjugate_gradients(hessian, precondition, g, TUNING.max_steps, residual_goal=accuracy)
        if steps > TUNING.stale_after:
            self.factor = None
        self.passes += steps * len(rows) / self.design.problem.shape[0]
        return p, r


def sample_size(design: Design, width: int) -> int:
    """The most rows over which a Gram matrix of this width is formed."""
    return max(TUNING.few_rows, width * (TUNING.sparse_rows if design.is_sparse else TUNING.dense_rows))


def _back_substitute(factor: Vector, r: Vector) -> Vector:
    return np.asarray(dpotrs(factor, r, lower=1)[0])
