"""Differences of scores between classes as rows of a matrix that is not formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.design import Design
from fenchel.data.multi_products import BlockProducts
from fenchel.data.products import Products, Rounded
from fenchel.data.typing import Indices, Matrix, Vector


@dataclass(frozen=True, eq=False)
class ClassPairs(Products):
    """A row for each sample i and each class c other than its own class c_i: x_i.u_(c_i) - x_i.u_c.

    Weights are a k x d matrix U in row-major order; rows are ordered by sample, then by class.
    """

    of: Design
    codes: Indices
    k: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n, d = self.of.shape
        return n * (self.k - 1), self.k * d

    @property
    def nnz(self) -> int:  # type: ignore[override]
        return self.k * self.of.nnz

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.of.threads

    @cached_property
    def others(self) -> Indices:
        """The classes other than its own, for each sample."""
        table = np.array([[c for c in range(self.k) if c != own] for own in range(self.k)])
        return table[self.codes]

    @cached_property
    def _blocks(self) -> BlockProducts:
        return BlockProducts(self.of, np.ones(self.of.shape[0]))

    def differences(self, Z: Vector) -> Vector:
        """z_(c_i) - z_c of scores Z (n x k), n x (k - 1)."""
        own = np.take_along_axis(Z, self.codes[:, None], axis=1)
        return np.asarray(own - np.take_along_axis(Z, self.others, axis=1))

    def spread(self, a: Vector, sign: float = -1.0) -> Vector:
        """sum_r a_r (e_(c_i) - e_c) for every sample, n x k; with sign=1.0 the sum instead of the difference."""
        A = np.reshape(a, (-1, self.k - 1))
        out = np.zeros((len(A), self.k))
        np.put_along_axis(out, self.others, sign * A, axis=1)
        np.put_along_axis(out, self.codes[:, None], A.sum(axis=1, keepdims=True), axis=1)
        return out

    def matvec(self, w: ArrayLike) -> Vector:
        return self.differences(self._blocks.scores(np.reshape(np.asarray(w, dtype=np.float64), (self.k, -1)))).ravel()

    def rmatvec(self, a: ArrayLike) -> Vector:
        return self._blocks.combination(self.spread(np.asarray(a, dtype=np.float64))).ravel()

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        parts = [self.of.matvec_bounded(row) for row in np.reshape(w, (self.k, -1))]
        Z, size = (np.stack([getattr(part, name) for part in parts], axis=1) for name in ("value", "absolute"))
        own = np.take_along_axis(size, self.codes[:, None], axis=1)
        absolute = own + np.take_along_axis(size, self.others, axis=1)
        return Rounded(self.differences(Z).ravel(), absolute.ravel(), max(part.depth for part in parts) + 4)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """The sum over the classes of a sample adds k - 1 roundings."""
        array = np.asarray(a, dtype=np.float64)
        parts = [self.of.rmatvec_bounded(np.ascontiguousarray(one)) for one in self.spread(array).T]
        absolute = [part.absolute for part in parts]
        if np.any(array < 0.0):  # terms of both signs may cancel in that sum
            sizes = self.spread(np.abs(array), sign=1.0).T
            absolute = [self.of.rmatvec_bounded(np.ascontiguousarray(one)).absolute for one in sizes]
        depth = max(part.depth for part in parts) + self.k + 4
        return Rounded(np.concatenate([part.value for part in parts]), np.concatenate(absolute), depth)

    def row_norms(self, p: float = 2.0) -> Vector:
        factor = 1.0 if np.isinf(p) else 2.0 ** (1.0 / p)
        return np.repeat(factor * self.of.row_norms(p), self.k - 1)

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        rows = self.shape[0]
        sums = self.spread(np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64), sign=1.0)
        return np.concatenate([self.of.column_norms(p, np.ascontiguousarray(one)) for one in sums.T])

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        samples, place = np.divmod(np.asarray(which), self.k - 1)
        out, x = np.zeros((len(samples), self.k, self.of.shape[1])), self.of.rows(samples)
        every = np.arange(len(samples))
        out[every, self.codes[samples]] = x
        out[every, self.others[samples, place]] = -x
        return out.reshape(len(samples), -1)

    def using(self, threads: int | None) -> Self:
        return type(self)(self.of.using(threads), self.codes, self.k)
