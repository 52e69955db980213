"""Penalties on differences: the fused Lasso, total variation, trend filtering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr

from fenchel._core import kernels
from fenchel.data.design import UNIT_ROUNDOFF, Vector, gamma
from fenchel.problem.penalties.base import EVALUATION, NormPenalty, NullSpace, Penalty, Subgradients
from fenchel.problem.penalties.norms import L1
from fenchel.problem.vectors import p_norm, set_positive

#: The widest D, other than the difference operator of a graph, whose null space we compute (by a dense decomposition).
WIDEST_GENERAL = 2000
#: The most directions that D may leave free: each is an equation that dual points must satisfy.
MOST_FREE = 50


@dataclass(frozen=True, eq=False)
class FusedL1(NormPenalty):
    """lam |D w|_1, D the first difference (w_2 - w_1, w_3 - w_2, ...) unless given.

    A seminorm: it does not see the null space of D (constants, for the first difference), so dual vectors v must be
    orthogonal to it. The dual norm is then min { |u|_inf : D' u = v }.

    Parameters
    ----------
    lam : float
    D : array or sparse matrix with d columns, optional
        The differences of a graph (each row c (w_j - w_k)) of any size, or any matrix with at most 2000 columns.
    """

    lam: float
    D: Any = None

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        if self.D is not None and (np.ndim(self.D) != 2 and not sp.issparse(self.D)):
            raise ValueError("FusedL1: D must be a matrix")
        values = self.operator.data if self.D is not None else np.zeros(1)
        if not np.all(np.isfinite(values)):
            raise ValueError("FusedL1: D has entries that are not finite numbers")
        if self.D is not None and not np.any(values):
            raise ValueError("FusedL1: D must have entries other than zero")

    @cached_property
    def operator(self) -> Any:
        """D as a CSR matrix."""
        if np.iscomplexobj(self.D):
            raise ValueError("FusedL1: D has complex entries; only real numbers are supported")
        return sp.csr_array(self.D, dtype=np.float64)

    @cached_property
    def _edges(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector] | None:
        """Tails, heads and scales if every row of D is c (w_j - w_k), else None."""
        D = self.operator
        if not np.all(np.diff(D.indptr) == 2):
            return None
        value, index = D.data.reshape(-1, 2), D.indices.reshape(-1, 2)
        if not np.all((value[:, 0] == -value[:, 1]) & (value[:, 0] != 0)):
            return None
        return index[:, 0], index[:, 1], value[:, 0]

    def check(self, d: int) -> None:
        if self.D is None:
            if d < 2:
                raise ValueError("FusedL1: the first difference needs at least two weights")
            return
        if self.operator.shape[1] != d:
            raise ValueError(f"FusedL1: D has {self.operator.shape[1]} columns, but there are {d} weights")
        if self._edges is None and d > WIDEST_GENERAL:
            raise ValueError(
                f"FusedL1: a D other than the differences of a graph may have at most {WIDEST_GENERAL} columns, got {d}"
            )

        if (free := self._free_directions) > MOST_FREE:
            raise ValueError(
                f"FusedL1: D leaves {free} directions unpenalised (its null space); at most {MOST_FREE} work"
            )

    def differences(self, w: Vector) -> Vector:
        """D w."""
        return np.diff(w) if self.D is None else np.asarray(self.operator @ w)

    def value(self, w: Vector) -> float:
        return self.lam * float(np.abs(self.differences(w)).sum())

    def value_upper(self, w: Vector) -> float:
        if self.D is None:
            return super().value_upper(w)
        terms = int(np.diff(self.operator.indptr).max(initial=0)) + 1
        rounding = self.lam * gamma(terms) * float((abs(self.operator) @ np.abs(w)).sum())
        return super().value_upper(w) + (1.0 + EVALUATION) * rounding

    @property
    def analysis(self) -> tuple[Any, Penalty] | None:
        return None if self.D is None else (self.operator, L1(self.lam))

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """Exact total-variation denoising in O(d); for another D there is no closed form (see `analysis`)."""
        if self.D is not None:
            raise TypeError("FusedL1 with a D of its own has no proximal map; the solver 'pdhg' splits it")
        return kernels.total_variation(np.ascontiguousarray(w), float(np.min(t)) * self.lam)

    @cached_property
    def _free_directions(self) -> int:
        """The dimension of the null space of D."""
        return self._components[0] if self._edges is not None else self._decomposition[0].basis.shape[1]

    @cached_property
    def _components(self) -> tuple[int, NDArray[np.intp]]:
        """How many components the graph has, and the one of each node."""
        assert self._edges is not None
        tail, head, _ = self._edges
        d = self.operator.shape[1]
        graph = sp.coo_array((np.ones(len(tail)), (tail, head)), shape=(d, d))
        count, label = connected_components(graph, directed=False)
        return int(count), label

    @cached_property
    def _decomposition(self) -> tuple[NullSpace, float]:
        """The null space of D, and a lower bound on its smallest nonzero singular value.

        For the differences of a graph the null space is spanned by the indicators of its components, and the bound is
        Mohar's: the algebraic connectivity of a connected graph of d nodes is at least 4 / d^2. Otherwise both come
        from a
        singular value decomposition, whose error is at most a modest multiple of u |D| (Weyl for the values, Wedin
        for the space).
        """
        D, d = self.operator, self.operator.shape[1]
        if self._edges is not None:
            scale = self._edges[2]
            count, label = self._components
            indicators = np.zeros((d, count))
            indicators[np.arange(d), label] = 1.0
            return NullSpace(indicators), float(np.abs(scale).min()) * 2.0 / d
        _, size, rows = np.linalg.svd(D.toarray(), full_matrices=True)
        noise = 64 * UNIT_ROUNDOFF * max(D.shape) * float(size.max(initial=0.0))
        rank = int((size > noise).sum())
        gap = float(size[rank - 1]) - noise if rank else np.inf
        return NullSpace(rows[rank:].T.copy(), noise / gap if rank < d else 0.0), gap

    def null_space(self, d: int) -> NullSpace | None:
        space = NullSpace(np.ones((d, 1))) if self.D is None else self._decomposition[0]
        return space if space.basis.shape[1] else None

    def potential(self, v: Vector) -> Vector:
        """The u of smallest 2-norm with D' u = v (unique for the first difference), for v orthogonal to the null
        space.
        """
        if self.D is None:
            return -np.cumsum(v)[:-1]
        if len(v) <= WIDEST_GENERAL:
            return np.asarray(np.linalg.lstsq(self.operator.T.toarray(), v, rcond=None)[0])
        return np.asarray(lsqr(self.operator.T, v, atol=1e-15, btol=1e-15, iter_lim=10 * len(v))[0])

    def dual_norm(self, v: Vector) -> float:
        """|u|_inf for the potential u of v: exact where u is unique, an upper bound elsewhere. v counts as
        orthogonal to the null space.
        """
        return float(np.abs(self.potential(v)).max(initial=0.0))

    def dual_norm_upper(self, v: Vector, error: Vector) -> float:
        if self.D is None:
            # from either end, whichever has gathered less error: the exact v sums to zero
            forward = np.abs(np.cumsum(v)[:-1]) + _chain_error(v, error)
            backward = np.abs(np.cumsum(v[::-1])[:-1])[::-1] + _chain_error(v[::-1], error[::-1])[::-1]
            return float(np.minimum(forward, backward).max()) * (1.0 + EVALUATION)
        u = self.potential(v)
        residual = (
            np.abs(self.operator.T @ u - v)
            + error
            + self._column_gamma * (abs(self.operator).T @ np.abs(u) + np.abs(v))
        )
        slack = p_norm(residual, 2.0) / self._decomposition[1]
        return (float(np.abs(u).max(initial=0.0)) + slack) * (1.0 + EVALUATION)

    @cached_property
    def _column_gamma(self) -> float:
        """Relative rounding of D' u: its sums run over the longest column of D, one term after the other."""
        return gamma(int(np.diff(self.operator.tocsc().indptr).max(initial=0)) + 4)

    def conjugate(self, v: Vector) -> float:
        """0 if v is orthogonal to the null space (up to rounding) and its dual norm is at most lam, else infinite."""
        free = self.null_space(len(v))
        if free is not None and np.any(np.abs(free.basis.T @ v) > 1e-9 * (np.abs(free.basis).T @ np.abs(v))):
            return np.inf
        return super().conjugate(v)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """D' u with u = lam sign(D w) where there is a jump, anything in [-lam, lam] elsewhere."""
        D = (
            self.operator
            if self.D is not None
            else sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(len(w) - 1, len(w))).tocsr()
        )
        jump = D @ w
        flat = np.flatnonzero(np.abs(jump) <= tol)
        sign = np.sign(jump)
        sign[flat] = 0.0
        ends = np.full(len(flat), self.lam)
        return Subgradients(self.lam * (D.T @ sign), D.T.tocsc()[:, flat], -ends, ends)


def _chain_error(v: Vector, error: Vector) -> Vector:
    """Bound on the error of every running sum of v but the last: the errors of its terms plus one rounding per
    addition.
    """
    rounding = UNIT_ROUNDOFF * np.cumsum(np.abs(np.cumsum(v)))
    return np.asarray((np.cumsum(error) + rounding)[:-1] * (1.0 + 2.0**-30))
