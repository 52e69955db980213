"""The matrix of a multiclass margin problem: a row for each sample and wrong class, never formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.design import Design
from fenchel.data.multi_products import BlockProducts
from fenchel.data.products import Products, Rounded
from fenchel.data.repeated import Composed
from fenchel.data.typing import Matrix, Vector


@dataclass(frozen=True, eq=False)
class ClassDifferences(Composed):
    """x_i (e_c - e_j)' for the class c of sample i and every other class j: the reduction of several classes to two.

    A vector of weights is the k x d matrix U in row-major order; row i (k - 1) + r has the score

        u_c.x_i - u_j.x_i,    j = r if r < c, else r + 1.

    Its products are those of X with U, and of X' with the n x k matrix whose row i has -a_ij in column j and
    sum_j a_ij in column c. `Interpolation(ClassDifferences(X, codes, k), HalfLine(1.0))` has the largest multiclass
    margin, min_i min_j (u_c - u_j).x_i / |U|_F.

    Parameters
    ----------
    of : Design or Products
        X; the weights of a constant column are penalised intercepts.
    codes : array of n integers
        The classes, 0 .. k - 1.
    k : int
        How many there are, at least 2.
    """

    of: Products
    codes: NDArray[np.int64]
    k: int

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes)
        if codes.shape != (self.of.shape[0],) or not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(f"codes must be {self.of.shape[0]} integers; got shape {codes.shape}, {codes.dtype}")
        if self.k < 2 or (codes.size and not (codes.min() >= 0 and codes.max() < self.k)):
            raise ValueError(f"codes must be from 0 to k - 1, with k = {self.k} at least 2")
        object.__setattr__(self, "codes", codes.astype(np.int64))

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n, d = self.of.shape
        return n * (self.k - 1), self.k * d

    @cached_property
    def others(self) -> NDArray[np.int64]:
        """The class j of every row, n x (k - 1)."""
        r = np.arange(self.k - 1)
        return np.where(r < self.codes[:, None], r, r + 1)

    @cached_property
    def _blocks(self) -> BlockProducts | None:
        """Compiled products with k vectors at once, of a stored matrix."""
        return BlockProducts(self.of, np.ones(self.of.shape[0])) if isinstance(self.of, Design) else None

    def differences(self, Z: Vector, sign: float = -1.0) -> Vector:
        """z_ic + sign z_ij of n x k numbers, n x (k - 1)."""
        own = np.take_along_axis(Z, self.codes[:, None], axis=1)
        return np.asarray(own + sign * np.take_along_axis(Z, self.others, axis=1))

    def spread(self, a: ArrayLike, sign: float = -1.0) -> Matrix:
        """sum_r a_r (e_c + sign e_j) for every sample, n x k."""
        each = np.reshape(np.asarray(a, dtype=np.float64), (-1, self.k - 1))
        out = np.zeros((len(each), self.k))
        np.put_along_axis(out, self.others, sign * each, axis=1)
        np.put_along_axis(out, self.codes[:, None], each.sum(axis=1, keepdims=True), axis=1)
        return out

    def matvec(self, w: ArrayLike) -> Vector:
        U = np.reshape(np.asarray(w, dtype=np.float64), (self.k, -1))
        return self.differences(self.of.times(U.T) if self._blocks is None else self._blocks.scores(U)).ravel()

    def rmatvec(self, a: ArrayLike) -> Vector:
        each = self.spread(a)
        if self._blocks is None:
            return np.concatenate([self.of.rmatvec(np.ascontiguousarray(one)) for one in each.T])
        return self._blocks.combination(each).ravel()

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        parts = [self.of.matvec_bounded(u) for u in np.reshape(np.asarray(w, dtype=np.float64), (self.k, -1))]
        value, absolute = (np.stack([getattr(part, name) for part in parts], axis=1) for name in ("value", "absolute"))
        depth = max(part.depth for part in parts) + 4
        return Rounded(self.differences(value).ravel(), self.differences(absolute, 1.0).ravel(), depth)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """The sum over the classes of a sample adds k - 1 roundings."""
        array = np.asarray(a, dtype=np.float64)
        parts = [self.of.rmatvec_bounded(np.ascontiguousarray(one)) for one in self.spread(array).T]
        absolute = [part.absolute for part in parts]
        if np.any(array < 0.0):  # terms of both signs may cancel in that sum
            sizes = self.spread(np.abs(array), 1.0).T
            absolute = [self.of.rmatvec_bounded(np.ascontiguousarray(one)).absolute for one in sizes]
        depth = max(part.depth for part in parts) + self.k + 4
        return Rounded(np.concatenate([part.value for part in parts]), np.concatenate(absolute), depth)

    def row_norms(self, p: float = 2.0) -> Vector:
        """2^(1/p) |x_i|_p."""
        return np.repeat(self.of.row_norms(p) * 2.0 ** (1.0 / p), self.k - 1)

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        """Column j of X counts with the weights of the rows that have x_i in the place of their class."""
        n = self.of.shape[0]
        given = np.ones((n, self.k - 1)) if weights is None else np.reshape(weights, (n, self.k - 1))
        shares = self.spread(given, 1.0)
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
        return self.differences(scores).ravel()
