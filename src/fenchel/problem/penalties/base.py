"""The base class of penalties: value, conjugate, gradient of the conjugate, prox, traits."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from fenchel._core import CompiledLink
from fenchel.data import limits
from fenchel.data.products import EVALUATION as EVALUATION
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Mask, Matrix, Vector
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import dual_exponent, p_norm, square_over

#: Relative violation of a constraint (simplex, ball) up to which w stands for the feasible point near it (`slack`).
FEASIBILITY = 1e-9


@dataclass(frozen=True)
class Subgradients:
    """The subdifferential of R at a point, as {point + directions u : low <= u <= high}."""

    point: Vector
    directions: Matrix | sp.csc_array | None = None
    low: Vector | None = None
    high: Vector | None = None

    def dense_directions(self) -> Matrix | None:
        """The directions as an array."""
        if self.directions is None or isinstance(self.directions, np.ndarray):
            return self.directions
        return np.asarray(self.directions.toarray())

    def normals(self) -> Matrix | sp.csc_array | None:
        """A basis Q of the complement of the directions: Q'v = Q'point for every subgradient v. None if too costly."""
        d = len(self.point)
        if self.directions is None or self.directions.shape[1] == 0:
            return sp.eye_array(d, format="csc")
        touched = sp.csc_array(self.directions)
        if np.all(np.diff(touched.indptr) == 1):
            alone = np.ones(d, dtype=bool)
            alone[touched.indices] = False
            rows = np.flatnonzero(alone)
            return sp.csc_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(d, len(rows)))
        return null_space(touched.toarray().T) if d * d <= limits.TUNING.block else None


@dataclass(frozen=True)
class NullSpace:
    """A basis (d x k) of a null space, within `error` (2-norm, per vector) of one in exact arithmetic."""

    basis: Vector
    error: float = 0.0


@dataclass(frozen=True)
class LinkDerivative:
    """The second derivative of R*, diag(diagonal) + factor direction direction'."""

    diagonal: Vector
    factor: float = 0.0
    direction: Vector | None = None

    def times(self, x: Vector) -> Vector:
        """Its product with a vector."""
        product = self.diagonal * x
        if self.direction is not None:
            product += self.factor * float(self.direction @ x) * self.direction
        return product

    def root(self, rows: Matrix) -> Matrix:
        """B = A H^(1/2) for dense rows A: B B' = A H A'.

        With V the diagonal and u = V^(-1/2) direction, H = V^(1/2) (I + factor u u') V^(1/2), and the root in the
        middle is I + s u u' / |u|^2, (1 + s)^2 = 1 + factor |u|^2 >= 0.
        """
        half = np.sqrt(self.diagonal)
        B = rows * half
        if self.direction is None:
            return B
        u = np.divide(self.direction, half, out=np.zeros_like(half), where=half > 0.0)
        square = float(u @ u)
        if not square > 0.0:
            return B
        s = np.sqrt(max(1.0 + self.factor * square, 0.0)) - 1.0
        return np.asarray(B + np.outer(B @ u, (s / square) * u))

    def gram(self, rows: Matrix) -> Matrix:
        """A H A' for dense rows A and this H."""
        used = np.flatnonzero(self.diagonal)
        half = (rows if len(used) == rows.shape[1] else rows[:, used]) * np.sqrt(self.diagonal[used])
        K = np.asarray(half @ half.T)
        if self.direction is not None:
            image = np.asarray(rows @ self.direction)
            K += self.factor * np.outer(image, image)
        return K


@dataclass(frozen=True, eq=False)
class Straight:
    """R(w) = sum_k max { u (D w)_k : low_k <= u <= high_k }, D the identity if it is None."""

    D: sp.csr_array | None
    low: Vector
    high: Vector


class Penalty(ABC):
    """A convex function R(w) with a weight lam > 0, as NumPy functions of the vector w.

    A subclass defines `value`, `conjugate` and `prox`; if it is strongly convex also `grad_conjugate` and
    `strong_convexity`; if it is a norm it derives from `NormPenalty`; if it is neither, but grows in every direction,
    `level_radius`. `prox` takes a scalar step; a penalty that is a sum over coordinates sets `separable = True` and
    takes a vector of steps as well.

    Attributes
    ----------
    strong_convexity : float
        The largest known mu with R(x) >= R(w) + g.(x - w) + mu/2 |x - w|_p^2 for subgradients g at w; 0 if none.
    norm : float
        The p of the p-norm in which R is strongly convex.
    is_zero : bool
        Whether R = 0 everywhere.
    """

    lam: float
    separable = False
    quadratic = False
    is_zero = False

    @property
    def evaluation(self) -> float:
        """Bound on the relative rounding error of R, its conjugate or its dual norm."""
        return EVALUATION

    @property
    def strong_convexity(self) -> float:
        """mu >= 0."""
        return 0.0

    @property
    def norm(self) -> float:
        """p of the norm that `strong_convexity` refers to."""
        return 2.0

    @abstractmethod
    def value(self, w: Vector) -> float:
        """R(w), infinite outside its domain."""

    @abstractmethod
    def conjugate(self, v: Vector) -> float:
        """R*(v) = sup_w v.w - R(w)."""

    @abstractmethod
    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """argmin_x R(x) + |x - w|^2 / (2 t)."""

    def grad_conjugate(self, v: Vector) -> Vector:
        """grad R*(v), the w that attains R*(v); exists when R is strongly convex."""
        raise TypeError(f"{type(self).__name__} is not strongly convex: its conjugate has no gradient")

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """A bound on R*(v') over |v' - v| <= error, in exact arithmetic.

        R* is (1/mu)-smooth in the dual norm:  R*(v') <= R*(v) + |grad R*(v)|.error + |error|_*^2 / (2 mu). Infinite
        if R is not strongly convex, except at 0.
        """
        error = error + 4 * UNIT_ROUNDOFF * np.abs(v)
        if not self.strong_convexity > 0.0:
            value = np.inf if np.any(error) else self.conjugate(v)
            return value + self.evaluation * abs(value)
        value = self.conjugate(v)
        if not error.any():  # v = 0
            return value + self.evaluation * abs(value) + 5e-324
        slope = float(np.sum(np.abs(self.grad_conjugate(v)) * error))
        curvature = square_over(p_norm(error, dual_exponent(self.norm)), 2.0 * self.strong_convexity)
        return value + self.evaluation * abs(value) + (1.0 + self.evaluation) * (slope + curvature) + 5e-324

    def value_upper(self, w: Vector) -> float:
        """A bound on R in exact arithmetic, at w or at the feasible point that w stands for (see `slack`)."""
        value = self.value(w)
        return value + self.evaluation * abs(value) + 5e-324

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """A bound on R(u) for all u with |u_j - w_j| <= error_j that satisfy `equations`; infinite if unknown.

        With u = w + e, u is the mean of w + d e_j times the j-th unit vector over all j, so that R is at most the mean
        of its values there, each of which is at most that for e_j = error_j or for e_j = -error_j. Infinite for more
        weights than a square array may have.
        """
        d = len(w)
        if not np.any(error) or not limits.fits(d, d):
            return self.value_upper(w) if not np.any(error) else np.inf
        total, at = 0.0, np.array(w, dtype=np.float64)
        for j in range(d):
            reach = d * (error[j] * (1.0 + EVALUATION)) + EVALUATION * abs(w[j])
            at[j] = w[j] + reach
            above = self.value_upper(at)
            at[j] = w[j] - reach
            total += max(above, self.value_upper(at))
            at[j] = w[j]
        return total / d + EVALUATION * d * abs(total / d) + 5e-324

    def level_radius(self, level: float) -> float:
        """A bound on |w|_p, p = `norm`, where R(w) <= level; infinite if unknown."""
        return np.inf

    def equations(self, d: int) -> tuple[Vector, Vector]:
        """(E, e) with E w = e for every w where R is finite; no rows if there is no such equation."""
        return np.zeros((0, d)), np.zeros(0)

    def domain_support(self, v: Vector, error: Vector) -> float:
        """A bound on sup { v'.w : R(w) finite } over |v' - v| <= error: infinite unless the domain is bounded."""
        return 0.0 if not (np.any(v) or np.any(error)) else np.inf

    def link_derivative(self, v: Vector) -> LinkDerivative | None:
        """The derivative of `grad_conjugate` (one of them at a kink); None if not implemented."""
        return None

    def slack(self, w: Vector) -> float:
        """Relative change of length that moves w into the domain exactly; 0 if R is finite everywhere."""
        return 0.0

    def subgradients(self, w: Vector, tol: float) -> Subgradients | None:
        """The subdifferential at w, with coordinates (or groups) below tol as zero; None if not implemented."""
        return None

    def admissible_steps(self, t: Vector) -> Vector | float:
        """The largest steps below t that `prox` can take: one for all coordinates, unless separable."""
        return t if self.separable else float(t.min())

    @property
    def analysis(self) -> tuple[sp.csr_array, Penalty] | None:
        """(D, S) if this penalty is R(w) = S(D w) and has no prox of its own; S has one."""
        return None

    def null_space(self, d: int) -> NullSpace | None:
        """The directions along which R is constant, if there are any."""
        return None

    def free_weights(self, d: int) -> Mask | None:
        """The weights that R does not depend on, if there are any: v_j must be 0 exactly for these."""
        return None

    @property
    def nonnegative(self) -> tuple[float, float] | None:
        """(l1, l2) if R(w) = l1 sum_j w_j + l2/2 |w|_2^2 for w >= 0, and infinite elsewhere."""
        return None

    def kernel(self) -> CompiledLink | None:
        """The compiled version of the link w(u), u = v / mu, if there is one."""
        return None

    def blocks(self, d: int) -> Blocks | None:
        """R as a sum of group norms and a ridge term, if it is one."""
        return None

    def straight(self, d: int) -> Straight | None:
        """R of d weights as a sum of piecewise linear functions, if it is one."""
        return None

    def check(self, d: int) -> None:  # noqa: B027 - most penalties fit any d
        """Raise if the penalty does not fit d weights."""

    def with_lam(self, lam: float) -> Self:
        """The same penalty with another weight."""
        return dataclasses.replace(self, lam=lam)  # type: ignore[type-var]

    def restricted(self, keep: Mask) -> Penalty | None:
        """The penalty of the kept weights if all others are zero; None if not implemented."""
        return None

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """Which coordinates are zero at every optimum whose dual vector v' has |v' - v| <= radius; none by default."""
        return np.zeros(len(v), dtype=bool)

    @property
    def sparsity(self) -> float:
        """Factor of the sparsity-inducing norm in R, as a multiple of lam; 0 if there is none."""
        return 0.0

    def slope_norm(self, v: Vector) -> float:
        """The dual of the sparsity-inducing norm: w = 0 is optimal where it is at most lam `sparsity`."""
        return float(np.abs(v).max())

    @property
    def traits(self) -> frozenset[Trait]:
        """The properties of this penalty."""
        conditions = {
            Trait.PROX_PENALTY: self.analysis is None,
            Trait.SEPARABLE_PENALTY: self.separable,
            Trait.STRONGLY_CONVEX_PENALTY: self.strong_convexity > 0,
            Trait.NORM_PENALTY: isinstance(self, NormPenalty),
            Trait.COMPILED_LINK: self.kernel() is not None,
            Trait.QUADRATIC_PENALTY: self.quadratic,
            Trait.NO_PENALTY: self.is_zero,
            Trait.NONNEGATIVE_PENALTY: type(self).nonnegative is not Penalty.nonnegative,
            Trait.LINK_DERIVATIVE: type(self).link_derivative is not Penalty.link_derivative,
            Trait.STRAIGHT_PENALTY: type(self).straight is not Penalty.straight,
            Trait.BLOCK_PENALTY: type(self).blocks is not Penalty.blocks,
        }
        return frozenset(trait for trait, holds in conditions.items() if holds)


class NormPenalty(Penalty):
    """R(w) = lam Om(w) for a norm (or seminorm, or gauge) Om. R*(v) = 0 if Om*(v) <= lam, else infinite."""

    @abstractmethod
    def dual_norm(self, v: Vector) -> float:
        """Om*(v) = sup { v.w : Om(w) <= 1 }."""

    def dual_norm_upper(self, v: Vector, error: Vector, near: Vector | None = None) -> float:
        """A bound on Om*(v') over |v' - v| <= error, in exact arithmetic; here for Om*(v) increasing in every |v_j|.

        If Om*(v) is a minimum over u with D'u = v, the search for u starts at `near`.
        """
        return (1.0 + self.evaluation) * self.dual_norm(np.abs(v) + error)

    def slope_norm(self, v: Vector) -> float:
        """Om*(v)."""
        return self.dual_norm(v)

    def conjugate(self, v: Vector) -> float:
        """0 if Om*(v) <= lam, else infinite."""
        return 0.0 if self.dual_norm(v) <= self.lam else np.inf

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        return 0.0 if self.dual_norm_upper(v, error) <= self.lam else np.inf

    @property
    def sparsity(self) -> float:
        return 1.0
