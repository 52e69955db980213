"""The samples of a kernel: a part of a matrix at a time in float64, with the lengths of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from fenchel.data.design import Design
from fenchel.data.limits import blocks
from fenchel.data.typing import Indices, Matrix, MatrixLike, StoredMatrix, Vector

#: Lengths of rows that may be divided by: the inverse is a normal number, with a relative error of one rounding.
SHORTEST, LONGEST = 1e-290, 1e290


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of a dense or CSR matrix of float32 or float64, which is used in place; CSC is copied to CSR.

    `index` are the places of these rows among all of them; `largest` is the largest 2-norm of all.
    """

    matrix: StoredMatrix
    lengths: Vector
    index: Indices
    largest: float

    @classmethod
    def of(cls, X: MatrixLike | Design, name: str = "X") -> Samples:
        """All rows of a matrix, checked."""
        design = X if isinstance(X, Design) else Design(X, name=name)
        if design.constant:
            raise ValueError("a kernel has no constant column; pass intercept=True to the problem instead")
        matrix = design.matrix.tocsr() if design.is_sparse else design.matrix
        lengths = _lengths(matrix)
        return cls(matrix, lengths, np.arange(len(lengths)), float(lengths.max()))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.matrix.shape[1])

    @cached_property
    def depth(self) -> int:
        """The most terms of an inner product."""
        if self.is_sparse:
            return int(np.diff(self.matrix.indptr).max(initial=0))
        return self.width

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is CSR."""
        return bool(sp.issparse(self.matrix))

    def take(self, which: Indices | slice) -> Samples:
        """Some of the rows; a view of dense ones if `which` is a slice."""
        return Samples(self.matrix[which], self.lengths[which], self.index[which], self.largest)

    @cached_property
    def values(self) -> StoredMatrix:
        """The entries in float64; the matrix itself if it has this type."""
        return self.matrix.astype(np.float64, copy=False)

    @cached_property
    def squares(self) -> Vector:
        """The squared 2-norm of every row, each within gamma_{d + 2} of the exact one."""
        values = self.values
        if self.is_sparse:
            return np.asarray(values.multiply(values).sum(axis=1), dtype=np.float64).ravel()
        return np.asarray(np.einsum("ij,ij->i", values, values))

    @property
    def unit(self) -> StoredMatrix:
        """The rows divided by their lengths, each entry to a relative error gamma_{d + 10}; rows of zeros stay."""
        self.check_lengths()
        inverse = 1.0 / np.where(self.lengths > 0.0, self.lengths, 1.0)
        if self.is_sparse:
            return sp.diags_array(inverse) @ self.values
        return self.values * inverse[:, None]

    def check_lengths(self) -> None:
        """Raise for lengths that are close to overflow, or to underflow, where they are not accurate."""
        bad = np.flatnonzero((self.lengths != 0.0) & ~((self.lengths >= SHORTEST) & (self.lengths <= LONGEST)))
        if bad.size:
            raise ValueError(
                f"row {self.index[bad[0]]} of X has the length {self.lengths[bad[0]]:.3g}, outside "
                f"[{SHORTEST:g}, {LONGEST:g}]: it cannot be divided by it accurately; rescale the features"
            )

    def dense(self, columns: Indices | slice) -> Matrix:
        """Some columns, dense."""
        part = self.values[:, columns]
        return np.ascontiguousarray(part.toarray() if self.is_sparse else part)

    def equal_pair(self, codes: Indices) -> Indices | None:
        """Two rows with the same entries and different codes, if there are any; rows are compared by their bytes."""
        first: dict[bytes, int] = {}
        for part in self.chunks():
            rows = self.take(part)
            for row, place in zip(rows.entries(), rows.index.tolist(), strict=True):
                other = first.setdefault(row, place)
                if codes[other] != codes[place]:
                    return np.array([other, place])
        return None

    def entries(self) -> Iterator[bytes]:
        """What each row consists of."""
        if sp.issparse(self.matrix):
            csr = sp.csr_array(self.matrix).sorted_indices()
            for start, end in pairwise(csr.indptr):
                yield csr.indices[start:end].tobytes() + csr.data[start:end].tobytes()
        else:
            yield from (row.tobytes() for row in np.ascontiguousarray(self.matrix))

    def chunks(self, columns: int | None = None) -> list[slice]:
        """The rows in consecutive parts: blocks if they have so many columns, those of the matrix by default."""
        return blocks(len(self), self.width if columns is None else columns)


def inner_products(A: StoredMatrix, B: StoredMatrix) -> Matrix:
    """A B', by BLAS or by products of sparse matrices."""
    product = A @ B.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def used_columns(A: Samples, B: Samples) -> list[Indices | slice]:
    """All columns that may differ from zero, in parts such that both blocks may be made dense."""
    longest = max(len(A), len(B))
    if not (A.is_sparse and B.is_sparse):
        return [*blocks(A.width, longest)]
    used = np.union1d(A.matrix.indices, B.matrix.indices).astype(np.int64)
    return [used[part] for part in blocks(len(used), longest)]


def _lengths(matrix: StoredMatrix) -> Vector:
    """The 2-norm of every row, scaled against overflow; relative error gamma_{d + 8}, and absolute 5e-324."""
    n, d = matrix.shape
    if sp.issparse(matrix):
        largest = np.asarray(abs(matrix).max(axis=1).toarray(), dtype=np.float64).ravel()
        scale = np.where(largest > 0.0, largest, 1.0)
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        ratio = matrix.data / scale[rows]
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(largest * np.sqrt(np.bincount(rows, ratio * ratio, minlength=n)))
    lengths = np.empty(n)
    for block in blocks(n, d):
        part = np.asarray(matrix[block], dtype=np.float64)
        largest = np.abs(part).max(axis=1)
        ratio = part / np.where(largest > 0.0, largest, 1.0)[:, None]
        with np.errstate(over="ignore", under="ignore"):
            lengths[block] = largest * np.sqrt(np.einsum("ij,ij->i", ratio, ratio))
    return lengths
