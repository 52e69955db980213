"""Matrices D of differences: products, null space, singular values, dual norm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np
import scipy.sparse as sp

from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION, NullSpace
from fenchel.problem.vectors import p_norm

#: Largest ratio of entries of D for which exact sums are attempted: 10 of the 53 bits.
MOST_UNITS = 2**10
#: Integers up to here are exact in double precision.
EXACT = 2**53


class Differences(ABC):
    """A matrix D with `shape` (m, d); u are the m multipliers of D w."""

    shape: tuple[int, int]

    @cached_property
    @abstractmethod
    def matrix(self) -> sp.csr_array:
        """D as a CSR matrix."""

    @property
    @abstractmethod
    def depth(self) -> int:
        """The most roundings in an entry of D w or D'u."""

    @cached_property
    def overlap(self) -> int:
        """The bandwidth of D D': the largest distance of two rows with a column in common."""
        columns = self.matrix.tocsc().sorted_indices()
        start = columns.indptr
        filled = np.flatnonzero(np.diff(start))
        return int((columns.indices[start[filled + 1] - 1] - columns.indices[start[filled]]).max(initial=0))

    def apply(self, w: Vector) -> Vector:
        """D w."""
        return np.asarray(self.matrix @ w)

    def adjoint(self, u: Vector) -> Vector:
        """D'u."""
        return np.asarray(self.matrix.T @ u)

    @cached_property
    def column_sums(self) -> Vector:
        """|D|'1, the sum of absolute values in each column."""
        sums = np.bincount(self.matrix.indices, np.abs(self.matrix.data), minlength=self.shape[1])
        return np.asarray(sums, dtype=np.float64)

    @property
    def _sizes(self) -> Vector:
        """The absolute values of the nonzero entries."""
        return np.asarray(np.abs(self.matrix.data[self.matrix.data != 0.0]))

    @cached_property
    def unit(self) -> float | None:
        """The smallest |entry|, if it is a power of two and all entries are multiples of it, up to MOST_UNITS."""
        sizes = self._sizes
        smallest = float(sizes.min())
        whole = np.all(sizes / smallest == np.rint(sizes / smallest)) and sizes.max() <= MOST_UNITS * smallest
        return smallest if whole and np.frexp(smallest)[0] == 0.5 else None

    def rounded_multipliers(self, u: Vector, most: float) -> Vector:
        """u clipped to [-most, most]; if D has a `unit`, rounded so that D'u has no rounding error.

        Multiples of a power of two, none larger than 2^52 times it, are added exactly.
        """
        u = np.clip(u, -most, most)
        if self.unit is None or not np.any(u):
            return u
        size = float(np.abs(u).max()) * float(self.column_sums.max()) / self.unit
        quantum = float(np.ldexp(1.0, int(np.frexp(size)[1]) - 52))
        end = np.floor(most / quantum)
        return np.asarray(np.clip(np.rint(u / quantum), -end, end) * quantum)

    @cached_property
    def exact_bits(self) -> int:
        """The number of bits of w, from the leading bit of its largest entry, for which D w is exact."""
        longest = float(self._sizes.max()) * int(np.diff(self.matrix.indptr).max()) / (self.unit or 1.0)
        return 52 - int(np.frexp(longest)[1])

    def applies_exactly(self, w: Vector) -> bool:
        """Whether D w has no rounding error: w has at most `exact_bits` bits."""
        largest = float(np.abs(w).max(initial=0.0))
        if self.unit is None or not 1e-200 < largest < 1e200:
            return False
        scaled = np.ldexp(w, self.exact_bits - int(np.frexp(largest)[1]))
        return bool(np.all(scaled == np.rint(scaled)))

    @property
    @abstractmethod
    def free(self) -> int:
        """The dimension of the null space."""

    @abstractmethod
    def null_space(self) -> NullSpace | None:
        """The null space; None if it is {0}."""

    @abstractmethod
    def potential(self, v: Vector) -> Vector:
        """The u of smallest 2-norm with D'u = v, for v orthogonal to the null space."""

    @abstractmethod
    def smallest_singular_value(self) -> float:
        """A lower bound on the smallest nonzero singular value of D."""

    def dual_norm_upper(self, v: Vector, error: Vector, near: Vector | None = None) -> float:
        """A bound on min { |u|_inf : D'u = v' } over |v' - v| <= error, v' orthogonal to the null space.

        For any u with residual r = D'u - v' there is a correction of 2-norm at most |r| / (smallest singular value).
        The search starts at `near`, if given: the u of smallest 2-norm may have a much larger |u|_inf than necessary.
        """
        if not (np.any(v) or np.any(error)):
            return 0.0
        u = self.potential(v) if near is None else near + self.potential(v - self.adjoint(near))
        rounding = gamma(self.depth + 2) * (self.column_sums * np.abs(u).max(initial=0.0) + np.abs(v))
        residual = np.abs(self.adjoint(u) - v) + error + rounding
        slack = p_norm(residual, 2.0) / self.smallest_singular_value()
        return (float(np.abs(u).max(initial=0.0)) + slack) * (1.0 + EVALUATION)


@dataclass(frozen=True, eq=False)
class PowerDifferences(Differences):
    """c times the k-th differences of d weights: w_2 - w_1, ... for k = 1; w_1 - 2 w_2 + w_3, ... for k = 2.

    D' is injective; D'u = v is solved by k running sums of v. The null space is the polynomials of degree below k.
    """

    d: int
    order: int = 1
    scale: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.d - self.order, self.d

    @cached_property
    def matrix(self) -> sp.csr_array:
        k = self.order
        stencil = [self.scale * (-1.0) ** (k - j) * comb(k, j) for j in range(k + 1)]
        return sp.diags_array(stencil, offsets=list(range(k + 1)), shape=self.shape).tocsr()

    @property
    def depth(self) -> int:
        return self.order + 1

    @cached_property
    def column_sums(self) -> Vector:
        k = self.order
        sums = abs(self.scale) * np.convolve(np.ones(self.d - k), [float(comb(k, j)) for j in range(k + 1)])
        return np.asarray(sums)

    def apply(self, w: Vector) -> Vector:
        return np.asarray(self.scale * np.diff(w, self.order))

    def adjoint(self, u: Vector) -> Vector:
        return np.asarray(self.scale * (-1.0) ** self.order * np.diff(np.pad(u, self.order), self.order))

    @property
    def overlap(self) -> int:
        return self.order

    @property
    def free(self) -> int:
        return self.order

    def null_space(self) -> NullSpace:
        """1, t, t^2, ... for t = 2 i - (d - 1): integers, and exact."""
        t = 2.0 * np.arange(self.d) - (self.d - 1)
        powers = np.column_stack([t**j for j in range(self.order)])
        _, exponent = np.frexp(np.abs(powers).max(axis=0))
        return NullSpace(np.ldexp(powers, -exponent))

    @property
    def is_exact(self) -> bool:
        """Whether the entries of `null_space` are exact in double precision."""
        return bool((self.d - 1) ** (self.order - 1) < EXACT)

    def potential(self, v: Vector) -> Vector:
        """Running sums from both ends to the middle: rounding errors accumulate over half of v only."""
        middle = self.shape[0] // 2
        forward, backward = (-1.0) ** self.order * self.running_sums(v), self.running_sums(v[::-1])[::-1]
        return np.append(forward[:middle], backward[middle:]) / self.scale

    def running_sums(self, v: Vector) -> Vector:
        """c u but for its sign: running sums along the last axis, `order` times."""
        for _ in range(self.order):
            v = np.cumsum(v, axis=-1)[..., :-1]
        return v

    def smallest_singular_value(self) -> float:
        raise NotImplementedError("not needed: dual_norm_upper bounds the error of each running sum")

    def dual_norm_upper(self, v: Vector, error: Vector, near: Vector | None = None) -> float:
        # from the end with the smaller error bound; both give the same u, since v' is orthogonal to the null space
        forward, backward = self.sums_upper(v, error), self.sums_upper(v[::-1], error[::-1])[::-1]
        return float(np.minimum(forward, backward).max()) / abs(self.scale) * (1.0 + EVALUATION)

    def sums_upper(self, v: Vector, error: Vector) -> Vector:
        """A bound on |c u|: the errors of the terms of each running sum, plus one rounding per addition."""
        for _ in range(self.order):
            sums = np.cumsum(v)
            rounding = UNIT_ROUNDOFF * np.cumsum(np.abs(sums))
            v, error = sums[:-1], (np.cumsum(error) + rounding)[:-1] * (1.0 + 2.0**-30)
        return np.asarray(np.abs(v) + error)

    @cached_property
    def unit(self) -> float | None:
        size = abs(self.scale)
        return size if np.frexp(size)[0] == 0.5 and self.column_sums.max() <= MOST_UNITS * size else None

    @cached_property
    def exact_bits(self) -> int:
        return 51 - self.order

    @classmethod
    def recognised(cls, D: sp.csr_array) -> PowerDifferences | None:
        """D as PowerDifferences, if it is that."""
        m, d = D.shape
        k = d - m
        if not (1 <= k < d) or D.nnz != m * (k + 1):
            return None
        D = D if D.has_sorted_indices else D.sorted_indices()
        columns, values = D.indices.reshape(m, k + 1), D.data.reshape(m, k + 1)
        same = np.array_equal(D.indptr, (k + 1) * np.arange(m + 1))
        if not (same and np.array_equal(columns, np.arange(m)[:, None] + np.arange(k + 1))):
            return None
        scale = float(values[0, -1])
        stencil = scale * np.array([(-1.0) ** (k - j) * comb(k, j) for j in range(k + 1)])
        if not (scale and np.all(values == stencil)):
            return None
        # a rounded c * comb(k, j) would be another matrix, with another null space
        exact = all(
            abs(Fraction(entry)) == abs(Fraction(scale)) * comb(k, j) for j, entry in enumerate(stencil.tolist())
        )
        return cls(d, k, scale) if exact else None


@dataclass(frozen=True, eq=False)
class GeneralDifferences(Differences):
    """Any matrix D that is small enough for a singular value decomposition."""

    matrix: sp.csr_array

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.matrix.shape  # type: ignore[no-any-return]

    @cached_property
    def depth(self) -> int:
        rows, columns = (np.diff(part.indptr).max(initial=0) for part in (self.matrix, self.matrix.tocsc()))
        return int(max(rows, columns)) + 4

    @cached_property
    def _decomposition(self) -> tuple[NullSpace, float]:
        """The null space and a lower bound on the smallest nonzero singular value.

        The error of a computed decomposition is at most a modest multiple of u |D| (values: Weyl; space: Wedin).
        """
        _, size, rows = np.linalg.svd(self.matrix.toarray(), full_matrices=True)
        noise = 64 * UNIT_ROUNDOFF * max(self.shape) * float(size.max(initial=0.0))
        rank = int((size > noise).sum())
        gap = float(size[rank - 1]) - noise if rank else np.inf
        return NullSpace(rows[rank:].T.copy(), noise / gap if rank < self.shape[1] else 0.0), gap

    @property
    def free(self) -> int:
        return int(self._decomposition[0].basis.shape[1])

    def null_space(self) -> NullSpace | None:
        return self._decomposition[0] if self.free else None

    def smallest_singular_value(self) -> float:
        return self._decomposition[1]

    def potential(self, v: Vector) -> Vector:
        return np.asarray(np.linalg.lstsq(self.matrix.T.toarray(), v, rcond=None)[0])
