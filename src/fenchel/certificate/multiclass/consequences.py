"""Consequences of a certified gap of a multiclass problem: balls around the model, proven labels and zeros."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate.bounds.constructions import Construction
from fenchel.certificate.bounds.rounding import INPUT, PrimalBound, distance_to_optimum, gap_between
from fenchel.certificate.multiclass.bounds import BlockBound, primal_bound
from fenchel.data.design import Design
from fenchel.data.multi_products import BlockProducts
from fenchel.data.typing import Mask, MatrixLike, Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.vectors import dual_exponent


@dataclass(frozen=True)
class MulticlassEvidence:
    """The problem, the model, its scores, and the best bounds of a certificate."""

    problem: MulticlassProblem
    B: Vector
    b: Vector
    Z: Vector
    primal_upper: float
    bound: BlockBound
    feasible: BlockBound

    @property
    def gap(self) -> float:
        """A bound on P(B, b) - P*."""
        return gap_between(self.primal_upper, self.bound.lower)

    @property
    def radius(self) -> float:
        """A bound on |B - B*|, in the norm of R's strong convexity: for L2 the Frobenius norm."""
        return distance_to_optimum(self.gap, self.problem.penalty.strong_convexity)

    @property
    def lower(self) -> float:
        """P* is at least this."""
        return self.bound.lower

    def at(self, w: Vector, b: Vector) -> tuple[PrimalBound, MulticlassEvidence]:
        """The objective of another model of the same X; and its evidence, by the same bound on P*."""
        self.require_same_data()
        with np.errstate(all="ignore"):  # overflow makes a bound infinite, never wrong
            primal = primal_bound(self.problem, w, b)
        return primal, replace(self, B=w, b=b, Z=primal.z, primal_upper=primal.upper)

    def labels(self, X: MatrixLike) -> tuple[NDArray[np.int_], Mask]:
        """The class of the highest score, and whether it is proven to be that of the optimum.

        Two scores differ by <(e_a - e_c) x', B>, which is within |(e_a - e_c) x'|_* radius of the optimum's difference;
        in the 2-norm that is sqrt(2) |x| radius. With (unpenalised) intercepts nothing is proven.
        """
        design = Design(X, constant=self.problem.X.constant)
        if design.shape[1] != self.problem.shape[1]:
            raise ValueError(
                f"X has {design.n_features} columns, but the model has {self.problem.X.n_features} weights"
            )
        Z, error = BlockProducts(design, np.ones(design.shape[0])).scores_bounded(self.B)
        Z = Z + self.b
        best, rows = np.argmax(Z, axis=1), np.arange(len(Z))
        if self.problem.intercept or not np.isfinite(self.radius):
            return best, np.zeros(len(Z), dtype=bool)
        q = dual_exponent(self.problem.penalty.norm)
        spread = 2.0 ** (1.0 / q) * design.row_norms(q) * self.radius * (1.0 + 1e-9)
        spread = np.where(np.isnan(spread), 0.0, spread) + 2.0 * error + 2.0 * INPUT * np.abs(Z).max(axis=1)
        lead = Z[rows, best][:, None] - Z
        lead[rows, best] = np.inf
        return best, np.asarray(lead.min(axis=1) > spread)

    def zeros(self) -> Mask:
        """Gap-safe rule, k x d: with a beta-smooth loss sum_i s_i |alpha_i - alpha_i*|^2 <= 2 beta W G, so
        |V_jf - V*_jf| <= sqrt(sum_i s_i x_if^2 / W) sqrt(2 beta G), and `zero_groups` of the penalty applies.
        """
        problem, bound = self.problem, self.feasible
        self.require_same_data()
        gap, smoothness = gap_between(self.primal_upper, bound.lower), problem.loss.smoothness
        if not (np.isfinite(smoothness) and np.isfinite(gap)):
            return np.zeros(self.B.shape, dtype=bool)
        with np.errstate(over="ignore", invalid="ignore"):
            columns = problem.products.column_norms / np.sqrt(problem.total_weight)
            radius = columns * np.sqrt(2.0 * smoothness * gap) * (1.0 + 1e-9) + bound.error
        radius = np.where(np.isfinite(radius), radius, np.inf)
        return problem.penalty.zero_groups(bound.V.ravel(), radius.ravel()).reshape(self.B.shape)

    def multipliers(self) -> tuple[Vector, Vector]:
        """Not implemented for k scores."""
        raise TypeError("intervals for multipliers (and support vectors) need a problem with one score per sample")

    def constructions(self, primal: float) -> dict[str, Construction]:
        """Not implemented for k scores."""
        raise TypeError("constructions need a problem with one score per sample")

    def require_same_data(self) -> None:
        """Raise if X has been changed in place since the certificate was made."""
        if not np.array_equal(self.problem.scores(self.B, self.b), self.Z, equal_nan=True):
            raise ValueError("X has changed since this certificate was made; certify the model again")
