"""The matrix of a multiclass margin problem: a row for each sample and wrong class, never formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.design import Design
from fenchel.data.multi_products import BlockProducts
from fenchel.data.products import Products, Rounded
from fenchel.data.typing import Matrix, Vector


@dataclass(frozen=True, eq=False)
class ClassDifferences(Products):
    """x_i (e_c - e_j)' for the class c of sample i and every other class j: the reduction of several classes to two.

    A vector of weights is the k x d matrix U in row-major order; row i (k - 1) + r has the score

        u_c.x_i - u_j.x_i,    j = r if r < c, else r + 1.

    Its products are those of X with U, and of X' with the n x k matrix whose row i has -a_ij in column j and
    sum_j a_ij in column c. `Interpolation(ClassDifferences(X, codes, k), HalfLine(1.0))` has the largest multiclass
    margin, min_i min_j (u_c - u_j).x_i / |U|_F.

    Parameters
    ----------
    of : Design
        X, without a constant column.
    codes : array of n integers
        The classes, 0 .. k - 1.
    k : int
        How many there are, at least 2.
    """

    of: Design
    codes: NDArray[np.int64]
    k: int

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes)
        if codes.shape != (self.of.shape[0],) or not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(f"codes must be {self.of.shape[0]} integers; got shape {codes.shape}, {codes.dtype}")
        if self.k < 2 or (codes.size and not (codes.min() >= 0 and codes.max() < self.k)):
            raise ValueError(f"codes must be from 0 to k - 1, with k = {self.k} at least 2")
        if self.of.constant:
            raise ValueError("X must not have a constant column")
        object.__setattr__(self, "codes", codes.astype(np.int64))

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
    def others(self) -> NDArray[np.int64]:
        """The class j of every row, n x (k - 1)."""
        r = np.arange(self.k - 1)
        return np.where(r < self.codes[:, None], r, r + 1)

    @cached_property
    def _blocks(self) -> BlockProducts:
        return BlockProducts(self.of, np.ones(self.of.shape[0]))

    def _differences(self, scores: Vector, sign: float = -1.0) -> Vector:
        """s_ic + sign s_ij of n x k numbers."""
        i = np.arange(len(scores))
        return np.asarray(scores[i, self.codes][:, None] + sign * scores[i[:, None], self.others]).ravel()

    def _by_class(self, a: ArrayLike, sign: float = -1.0) -> Matrix:
        """The n x k matrix of a."""
        each = np.reshape(np.asarray(a, dtype=np.float64), (-1, self.k - 1))
        out, i = np.zeros((len(each), self.k)), np.arange(len(each))
        out[i[:, None], self.others] = sign * each
        out[i, self.codes] = each.sum(axis=1)
        return out

    def matvec(self, w: ArrayLike) -> Vector:
        return self._differences(self._blocks.scores(np.reshape(w, (self.k, -1))))

    def rmatvec(self, a: ArrayLike) -> Vector:
        return self._blocks.combination(self._by_class(a)).ravel()

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        parts = [self.of.matvec_bounded(u) for u in np.reshape(np.asarray(w, dtype=np.float64), (self.k, -1))]
        value, absolute = (np.column_stack([getattr(part, name) for part in parts]) for name in ("value", "absolute"))
        depth = max(part.depth for part in parts) + 2
        return Rounded(self._differences(value), self._differences(absolute, 1.0), depth)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """A sum of k - 1 numbers more for every term, whose error is that of a sum of absolute values."""
        coefficients, sizes = self._by_class(a), self._by_class(np.abs(a), 1.0)
        values = [self.of.rmatvec_bounded(np.ascontiguousarray(column)) for column in coefficients.T]
        absolute = [self.of.rmatvec_bounded(np.ascontiguousarray(column)).absolute for column in sizes.T]
        depth = max(part.depth for part in values) + self.k + 2
        return Rounded(np.concatenate([part.value for part in values]), np.concatenate(absolute), depth)

    def row_norms(self, p: float = 2.0) -> Vector:
        """2^(1/p) |x_i|_p."""
        return np.repeat(self.of.row_norms(p) * 2.0 ** (1.0 / p), self.k - 1)

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        """Column j of X counts with the weights of the rows that have x_i in the place of their class."""
        n = self.of.shape[0]
        given = np.ones((n, self.k - 1)) if weights is None else np.reshape(weights, (n, self.k - 1))
        shares = self._by_class(np.asarray(given, dtype=np.float64), 1.0)
        return np.concatenate([self.of.column_norms(p, np.ascontiguousarray(one)) for one in shares.T])

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        d = self.of.shape[1]
        out, row = np.zeros((len(which), self.k, d)), np.arange(len(which))
        sample = which // (self.k - 1)
        x = self.of.rows(sample)
        out[row, self.codes[sample]] = x
        out[row, self.others.ravel()[which]] = -x
        return out.reshape(len(which), -1)

    def gram_row(self, i: int) -> Vector:
        """<x, x_i> times the inner products of e_c - e_j: only two columns of classes are touched."""
        sample, own, other = i // (self.k - 1), self.codes[i // (self.k - 1)], self.others.ravel()[i]
        scores = np.zeros((self.of.shape[0], self.k))
        scores[:, own] = self.of.gram_row(sample)
        scores[:, other] = -scores[:, own]
        return self._differences(scores)

    def using(self, threads: int | None) -> Self:
        return type(self)(self.of.using(threads), self.codes, self.k)
