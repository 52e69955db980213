"""The matrix of several outputs: k rows for each sample, block diagonal in the weights of the outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.products import Products, Rounded
from fenchel.data.typing import Matrix, Vector


class Composed(Products):
    """A matrix made from another one, `of`, each of whose entries occurs k times; subclasses are dataclasses."""

    of: Products
    k: int

    @property
    def nnz(self) -> int:  # type: ignore[override]
        return self.k * self.of.nnz

    @property
    def threads(self) -> int:  # type: ignore[override]
        return self.of.threads

    def using(self, threads: int | None) -> Self:
        return replace(self, of=self.of.using(threads))  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class RepeatedColumns(Composed):
    """x_i' with k vectors at once: row i k + j is x_i' in the columns of output j, and zero elsewhere.

    A vector of weights is a k x d matrix B in row-major order, the product the n x k matrix X B' in row-major order.
    """

    of: Products
    k: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        n, d = self.of.shape
        return n * self.k, self.k * d

    @property
    def constant(self) -> float:  # type: ignore[override]
        return self.of.constant

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        return self._joined([self.of.matvec_bounded(row) for row in np.reshape(w, (self.k, -1))], by_sample=True)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        columns = np.reshape(np.asarray(a, dtype=np.float64), (-1, self.k)).T
        return self._joined([self.of.rmatvec_bounded(np.ascontiguousarray(one)) for one in columns], by_sample=False)

    @staticmethod
    def _joined(parts: list[Rounded], by_sample: bool) -> Rounded:
        value, absolute = (np.array([getattr(part, name) for part in parts]) for name in ("value", "absolute"))
        order = (value.T, absolute.T) if by_sample else (value, absolute)
        return Rounded(order[0].ravel(), order[1].ravel(), max(part.depth for part in parts))

    def row_norms(self, p: float = 2.0) -> Vector:
        return np.repeat(self.of.row_norms(p), self.k)

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        if weights is None:
            return np.tile(self.of.column_norms(p), self.k)
        columns = np.reshape(np.asarray(weights, dtype=np.float64), (-1, self.k)).T
        return np.concatenate([self.of.column_norms(p, np.ascontiguousarray(one)) for one in columns])

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        d = self.of.shape[1]
        out = np.zeros((len(which), self.k, d))
        out[np.arange(len(which)), which % self.k] = self.of.rows(which // self.k)
        return out.reshape(len(which), -1)
