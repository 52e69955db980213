"""Newton systems: (ridge + [X, c]' diag(h) [X, c]) p = g over the rows where h is not zero.

Narrow problems factor the matrix of at most a few rows for every column. That is the matrix itself when no more rows
are curved, and else a sample of it: the preconditioner of conjugate gradients, kept for as long as it works. Rows are
drawn by their share of the diagonal, h_i sum_j x_ij^2 / (ridge + H_jj), so that columns which few rows have are seen,
too: m rows for d columns then leave a condition number of about ((1 + r) / (1 - r))^2, r = sqrt(d / m). Wide problems
use the diagonal itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from fenchel.data.typing import Vector
from fenchel.steps.base import Overflow
from fenchel.steps.linear_algebra.augmented import Border

#: The widest matrix that is factored: 8 MB.
WIDEST = 1000
#: Rows of a sample for every column: dense rows go to BLAS, sparse ones are cheap.
DENSE_ROWS, SPARSE_ROWS = 8, 32
#: So few rows that looking at all of them costs next to nothing: no samples are drawn, and weight 2 is the row twice.
FEW_ROWS = 5000
#: Conjugate-gradient steps: at most, and after which a sampled factor has gone stale.
MOST, STALE = 250, 6
#: What a Gram matrix may cost to be preferred to a sample of it and conjugate gradients, in their steps.
MOST_STEPS = 8.0


@dataclass
class Curvature:
    """Solves one Newton system after another; remembers the factor of a sample between them."""

    border: Border
    rng: np.random.Generator
    factor: Vector | None = None
    passes: float = field(default=0.0)

    def solve(self, rows: NDArray[np.int64], h: Vector, g: Vector, accuracy: float) -> tuple[Vector, Vector]:
        """p, and the residual g - (ridge + H) p: next to nothing, or |residual|^2 <= accuracy."""
        border = self.border
        curved = np.flatnonzero(h)
        if len(curved) < 0.7 * len(h):
            rows, h = rows[curved], h[curved]
        ridge = self._ridge(h)
        width = len(ridge)
        if width > WIDEST:
            p, r = self._iterate(rows, h, g, ridge, self._diagonal(rows, h, ridge), accuracy)
        else:
            most = max(FEW_ROWS, width * (SPARSE_ROWS if border.problem.design.is_sparse else DENSE_ROWS))
            if len(curved) <= most or border.price_of_gram <= MOST_STEPS:
                self.factor = None
                p, r = _back_substitute(self._factored(rows, h, ridge), g), np.zeros_like(g)
            else:
                factor = self.factor = self.factor if self.factor is not None else self._sampled(rows, h, ridge, most)
                p, r = self._iterate(rows, h, g, ridge, lambda r: _back_substitute(factor, r), accuracy)
        return p, r + (ridge - border.ridge) * p

    def _ridge(self, h: Vector) -> Vector:
        """The penalty's, and a little for an unpenalised intercept, which may see next to no curvature of its own."""
        ridge, problem = self.border.ridge.copy(), self.border.problem
        if problem.intercept:
            curvature = self.border.column**2 * float(h.sum())
            if problem.loss.quadratic:
                ridge[-1] = 1e-12 * curvature
            else:
                ridge[-1] = 1e-3 * (min(ridge[0], curvature) if curvature > 0.0 else ridge[0])
        return ridge

    def _sampled(self, rows: NDArray[np.int64], h: Vector, ridge: Vector, most: int) -> Vector:
        chance = self._shares(rows, h, ridge)
        total = float(chance.sum())
        chance = np.minimum(1.0, most / total * chance) if total > 0.0 else np.full(len(rows), most / len(rows))
        part = np.flatnonzero(self.rng.random(len(rows)) < chance)
        return self._factored(rows[part], h[part] / chance[part], ridge)

    def _factored(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Vector:
        # positive definite in exact arithmetic; where rounding hides it, a little more ridge still gives a way down
        for more in (0.0, 1e-15, 1e-13, 1e-11, 1e-9):
            H = self.border.gram(rows, h)
            self.passes += len(rows) / self.border.problem.shape[0]
            diagonal = H.ravel(order="K")[:: len(H) + 1]
            diagonal += ridge + more * diagonal
            factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
            if not failed:
                return np.asarray(factor)
        raise Overflow("the Hessian overflows; rescale the features or lam")

    def _shares(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Vector:
        """How much of the diagonal each row makes up."""
        self.passes += 2 * len(rows) / self.border.problem.shape[0]
        return h * self.border.energy(rows, 1.0 / (ridge + self.border.diagonal(rows, h)))

    def _diagonal(self, rows: NDArray[np.int64], h: Vector, ridge: Vector) -> Callable[[Vector], Vector]:
        inverse = 1.0 / (ridge + self.border.diagonal(rows, h))
        return lambda r: inverse * r

    def _iterate(
        self,
        rows: NDArray[np.int64],
        h: Vector,
        g: Vector,
        ridge: Vector,
        precondition: Callable[[Vector], Any],
        accuracy: float,
    ) -> tuple[Vector, Vector]:
        """Preconditioned conjugate gradients."""
        x, r = np.zeros_like(g), g
        q = precondition(r)
        d, rho = q, float(r @ q)
        if not rho > 0.0:
            return x, r
        count = 0
        while count < MOST:
            count += 1
            Hd = self.border.curve(rows, h, d) + ridge * d
            bend = float(d @ Hd)
            if not bend > 0.0:
                break
            step = rho / bend
            x, r = x + step * d, r - step * Hd
            if not float(r @ r) > accuracy:
                break
            q = precondition(r)
            rho, last = float(r @ q), rho
            if not rho > 0.0:
                break
            d = q + (rho / last) * d
        if count > STALE:
            self.factor = None
        self.passes += count * len(rows) / self.border.problem.shape[0]
        return x, r


def _back_substitute(factor: Vector, r: Vector) -> Vector:
    return np.asarray(dpotrs(factor, r, lower=1)[0])
