"""Penalties on differences: the fused Lasso, total variation, trend filtering."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fenchel._core import kernels
from fenchel.data.products import gamma
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION, NormPenalty, NullSpace, Penalty, Straight, Subgradients
from fenchel.problem.penalties.fused.differences import Differences, GeneralDifferences, PowerDifferences
from fenchel.problem.penalties.fused.graphs import GraphDifferences, PixelGrid, grid_matrix
from fenchel.problem.penalties.l1 import L1
from fenchel.problem.vectors import set_positive

#: Largest number of columns of a general D, whose null space is computed densely.
WIDEST_GENERAL = 2000
#: Largest dimension of the null space of D: each direction is an equation for dual points.
MOST_FREE = 50


@dataclass(frozen=True, eq=False)
class FusedL1(NormPenalty):
    """lam |D w|_1, D the first difference (w_2 - w_1, w_3 - w_2, ...) unless given.

    A seminorm: it is 0 on the null space of D (constants, for the first difference), so dual vectors v must be
    orthogonal to it. The dual norm is then min { |u|_inf : D' u = v }.

    `FusedL1.of_image(lam, (height, width))` penalises the differences of neighbouring pixels (total variation),
    `FusedL1.of_order(lam, d, k)` the k-th differences of d weights (trend filtering).

    Parameters
    ----------
    lam : float
    D : array or sparse matrix with d columns, optional
        The differences of a graph (each row c (w_j - w_k)) or k-th differences, of any size, or any matrix with at
        most 2000 columns. Images and k-th differences are recognised by their entries.
    """

    lam: float
    D: ArrayLike | sp.csr_array | None = None

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        if self.D is None:
            return
        if np.ndim(self.D) != 2 and not sp.issparse(self.D):
            raise ValueError("FusedL1: D must be a matrix")
        if not np.all(np.isfinite(self.operator.data)):
            raise ValueError("FusedL1: D has entries that are not finite numbers")
        if not np.any(self.operator.data):
            raise ValueError("FusedL1: D must have entries other than zero")

    @classmethod
    def of_image(cls, lam: float, shape: tuple[int, int]) -> Self:
        """Total variation of an image, flattened row by row: horizontal neighbours, then vertical ones."""
        height, width = _sizes(shape, 2, "shape")
        if height * width < 2:
            raise ValueError("FusedL1: an image needs at least two pixels")
        return cls(lam) if min(height, width) == 1 else cls(lam, grid_matrix((height, width)))

    @classmethod
    def of_order(cls, lam: float, d: int, order: int) -> Self:
        """Trend filtering with differences of the given order: w piecewise constant, linear, quadratic for 1, 2, 3."""
        d, order = _sizes((d, order), 2, "d and order")
        if order >= d:
            raise ValueError(f"FusedL1: differences of order {order} need more than {order} weights, got {d}")
        return cls(lam) if order == 1 else cls(lam, PowerDifferences(d, order).matrix)

    def with_lam(self, lam: float) -> Self:
        """The same penalty with another lam; cached properties of D are kept."""
        other = super().with_lam(lam)
        vars(other).update({name: value for name, value in vars(self).items() if name not in ("lam", "D")})
        return other

    @cached_property
    def operator(self) -> sp.csr_array:
        """D as a CSR matrix."""
        if self.D is not None and np.iscomplexobj(self.D):
            raise ValueError("FusedL1: D has complex entries; only real numbers are supported")
        return sp.csr_array(self.D, dtype=np.float64)

    @cached_property
    def _given(self) -> Differences:
        D = self.operator
        return PowerDifferences.recognised(D) or GraphDifferences.recognised(D) or GeneralDifferences(D)

    def on(self, d: int) -> Differences:
        """D for d weights."""
        return PowerDifferences(d) if self.D is None else self._given

    @property
    def grid(self) -> PixelGrid | None:
        """The pixel grid, if D is the differences of neighbours in an image."""
        return self._given.grid if self.D is not None and isinstance(self._given, GraphDifferences) else None

    @property
    def chain(self) -> float | None:
        """c if D is c times the first difference."""
        if self.D is None:
            return 1.0
        D = self._given
        return D.scale if isinstance(D, PowerDifferences) and D.order == 1 else None

    def check(self, d: int) -> None:
        if self.D is None:
            if d < 2:
                raise ValueError("FusedL1: the first difference needs at least two weights")
            return
        D = self._given
        if D.shape[1] != d:
            raise ValueError(f"FusedL1: D has {D.shape[1]} columns, but there are {d} weights")
        if isinstance(D, PowerDifferences) and not D.is_exact:
            raise ValueError(f"FusedL1: polynomials of degree {D.order - 1} at {d} points exceed double precision")
        if isinstance(D, GeneralDifferences) and d > WIDEST_GENERAL:
            raise ValueError(
                "FusedL1: a D that is neither the differences of a graph nor k-th differences may have at most "
                f"{WIDEST_GENERAL} columns, got {d}"
            )
        if D.free > MOST_FREE:
            raise ValueError(f"FusedL1: the null space of D has {D.free} dimensions; at most {MOST_FREE} are supported")

    def differences(self, w: Vector) -> Vector:
        """D w."""
        return self.on(len(w)).apply(w)

    def value(self, w: Vector) -> float:
        return self.lam * float(np.abs(self.differences(w)).sum())

    def value_upper(self, w: Vector) -> float:
        if self.D is None or self._given.applies_exactly(w):  # without D, one correctly rounded subtraction each
            return super().value_upper(w)
        rounding = self.lam * gamma(self._given.depth) * float((self._given.column_sums * np.abs(w)).sum())
        return super().value_upper(w) + (1.0 + EVALUATION) * rounding

    @property
    def analysis(self) -> tuple[sp.csr_array, Penalty] | None:
        return None if self.chain is not None else (self.operator, L1(self.lam))

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """Exact total-variation denoising in O(d); only for multiples of the first difference (else see `analysis`)."""
        if self.chain is None:
            raise TypeError("FusedL1 with a general D has no proximal map; the solver 'pdhg' splits it")
        return kernels.total_variation(np.ascontiguousarray(w), float(np.min(t)) * self.lam * abs(self.chain))

    def straight(self, d: int) -> Straight:
        D = self.on(d).matrix
        ends = np.full(D.shape[0], self.lam)
        return Straight(D, -ends, ends)

    def null_space(self, d: int) -> NullSpace | None:
        return self.on(d).null_space()

    def potential(self, v: Vector) -> Vector:
        """The u of smallest 2-norm with D' u = v, for v orthogonal to the null space."""
        return self.on(len(v)).potential(v)

    def dual_norm(self, v: Vector) -> float:
        """|u|_inf for the potential u of v: exact if D' is injective, else an upper bound."""
        return float(np.abs(self.potential(v)).max(initial=0.0))

    def dual_norm_upper(self, v: Vector, error: Vector, near: Vector | None = None) -> float:
        return self.on(len(v)).dual_norm_upper(v, error, near)

    def conjugate(self, v: Vector) -> float:
        """0 if v is orthogonal to the null space (up to rounding) and its dual norm is at most lam, else infinite."""
        if not np.any(v):
            return 0.0
        free = self.null_space(len(v))
        if free is not None and np.any(np.abs(free.basis.T @ v) > 1e-9 * (np.abs(free.basis).T @ np.abs(v))):
            return np.inf
        return super().conjugate(v)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """D' u with u_i = lam sign((D w)_i) where it is nonzero, u_i in [-lam, lam] elsewhere."""
        D = self.on(len(w))
        jump = D.apply(w)
        flat = np.flatnonzero(np.abs(jump) <= tol)
        sign = np.sign(jump)
        sign[flat] = 0.0
        ends = np.full(len(flat), self.lam)
        return Subgradients(self.lam * D.adjoint(sign), D.matrix.T.tocsc()[:, flat], -ends, ends)


def _sizes(sizes: Iterable[int], count: int, name: str) -> tuple[int, ...]:
    """`count` integers >= 1, or raise."""
    try:
        found = tuple(sizes)
    except TypeError:
        found = ()
    if len(found) != count or not all(
        isinstance(m, int | np.integer) and not isinstance(m, bool) and m >= 1 for m in found
    ):
        raise ValueError(f"FusedL1: {name} must be {count} whole numbers, at least 1; got {sizes!r}")
    return tuple(int(m) for m in found)
