"""The data matrix, dense or sparse, by rows or by columns; other code does not depend on its storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fenchel._core import kernels
from fenchel.data.convert import as_matrix, is_identity
from fenchel.data.limits import rows_at_a_time
from fenchel.data.products import Products, Rounded, gamma
from fenchel.data.storage import (
    across,
    check_exponent,
    columns_of_rows,
    largest_entry,
    line_of,
    lines_of,
    norm_of_two,
    usable_threads,
)
from fenchel.data.typing import Array, Indices, Mask, Matrix, MatrixLike, StoredMatrix, Vector

#: Integer multiples of UNIT below 2^53 UNIT are exact, and so are their sums below it.
UNIT = 2.0**-20


@dataclass
class FoldCache:
    """Quantities derived from X, shared by the folds of one search.

    Valid while X is unchanged; `end()` empties it.
    """

    screens: dict[bool, kernels.Int16Screen] = field(default_factory=dict)
    """All columns in sixteen bits, as they are (False) or centred (True)."""
    gram: tuple[Matrix, Vector | None] | None = None
    """The Gram matrix of all rows with equal weights, and the column means that were subtracted first, if any."""
    over: bool = False
    """Whether the search has ended."""

    def end(self) -> None:
        """Empty the cache: from now on the entries of X may change."""
        self.over, self.gram = True, None
        self.screens.clear()


class Design(Products):
    """The data matrix X, n samples by d features, in any storage.

    Dense arrays (C or F order, memory maps included) and scipy's CSR and CSC matrices, in float32 or float64, with
    32- or 64-bit indices, are used in place: never copied, never cast. All sums run in float64.

    Converted, once:

    - other sparse formats become CSR; other number types become float64; big-endian numbers the machine's own;
    - dense arrays that are contiguous in neither order are made C-contiguous;
    - sparse matrices with duplicate indices are copied with the duplicates summed; the caller's matrix is unchanged.
      Unsorted indices are used in place.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
        Finite numbers.
    constant : float, default 0
        If not zero, the matrix has one more column with this constant in every row, which is not stored. This is the
        "intercept_scaling" of LIBLINEAR: an intercept that is penalised like a weight.
    threads : int, optional
        The largest number of threads of a product; all cores by default. Small matrices use one.
    name : str, default "X"
        The name of the matrix in error messages.
    """

    def __init__(self, X: MatrixLike, *, constant: float = 0.0, threads: int | None = None, name: str = "X") -> None:
        self.matrix = as_matrix(X, name)
        self.constant = float(constant)
        if not np.isfinite(self.constant):
            raise ValueError(f"constant must be a finite number, got {constant!r}")
        n, d = self.matrix.shape
        self.shape: tuple[int, int] = (n, d + (self.constant != 0.0))
        self.is_sparse = bool(sp.issparse(self.matrix))
        #: Whether the stored lines are rows (CSR, C order) or columns (CSC, F order).
        self.by_rows = bool(self.matrix.format == "csr" if self.is_sparse else self.matrix.flags.c_contiguous)
        self.dtype = self.matrix.dtype
        self.nnz = int(self.matrix.nnz if self.is_sparse else self.matrix.size)
        self.threads = usable_threads(self.nnz, threads)
        largest_entry(self.matrix, self.by_rows, self.threads, name)  # raises if an entry is not finite
        #: Row weights and the Gram matrix of all columns with them, uncentred (False) or centred (True); for paths.
        self.grams: dict[bool, tuple[Vector, Vector]] = {}
        self.counts: list[Indices] = []
        #: Quantities that the folds of one search share.
        self.fold_cache: FoldCache | None = None
        self.lines = lines_of(self.matrix, self.by_rows)
        if self.lines.has_duplicates:
            self.matrix = self.matrix.copy()
            self.matrix.sum_duplicates()
            self.lines = lines_of(self.matrix, self.by_rows)

    @classmethod
    def of(cls, X: MatrixLike | Design, name: str = "X") -> Design:
        """X itself if it is a Design, else a Design of X."""
        return X if isinstance(X, Design) else cls(X, name=name)

    def sharing(self, cache: FoldCache) -> Design:
        """The same matrix, for one fold of a search with this cache."""
        other = object.__new__(Design)
        other.__dict__.update(self.__dict__)
        other.grams, other.fold_cache = {}, cache
        return other

    @cached_property
    def is_identity(self) -> bool:
        """Whether X is the identity (denoising)."""
        return not self.constant and is_identity(self.matrix)

    def stored_by_rows(self) -> Design:
        """This matrix, copied if it is stored by columns."""
        if self.by_rows:
            return self
        rows = self.matrix.tocsr() if self.is_sparse else np.ascontiguousarray(self.matrix)
        return Design(rows, constant=self.constant, threads=self.threads)

    def stored_by_columns(self) -> Design:
        """This matrix, copied if it is stored by rows."""
        if not self.by_rows:
            return self
        columns = self.matrix.tocsc() if self.is_sparse else np.asfortranarray(self.matrix)
        other = Design(columns, constant=self.constant, threads=self.threads)
        if other.by_rows:  # a single row or column is contiguous in both orders
            other.by_rows, other.lines = False, lines_of(columns, by_rows=False)
        return other

    def restricted(self, keep: Mask) -> Design:
        """A copy of the columns with keep_j, the constant column included."""
        columns = np.flatnonzero(keep[: self.n_features])
        constant = self.constant if self.constant and keep[-1] else 0.0
        return Design(self.matrix[:, columns], constant=constant, threads=self.threads)

    def dense_columns(self, which: Indices) -> Matrix:
        """Some stored columns as a dense float64 array."""
        part = self.matrix[:, which]
        return np.asarray(part.toarray() if self.is_sparse else part, dtype=np.float64)

    def only(self, columns: Indices, by_columns: bool = False) -> Design:
        """A copy of some stored columns; a CSR matrix becomes CSR, or CSC if `by_columns`."""
        if not (self.is_sparse and self.by_rows):
            return self._part(self.matrix[:, columns] if self.is_sparse else np.take(self.matrix, columns, axis=1))
        return self._part(columns_of_rows(self.matrix, self.lines, columns, self.column_entries[columns], by_columns))

    @property
    def column_entries(self) -> Indices:
        """The number of stored entries of each column of a CSR matrix; cached."""
        if not self.counts:
            self.counts.append(np.asarray(kernels.entries_across(self.lines)))
        return self.counts[0]

    def _part(self, matrix: StoredMatrix) -> Design:
        """A design of entries that are already checked."""
        part = object.__new__(Design)
        part.matrix, part.constant, part.shape = matrix, 0.0, matrix.shape
        part.is_sparse, part.dtype = self.is_sparse, self.dtype
        part.by_rows = matrix.format == "csr" if self.is_sparse else matrix.flags.c_contiguous
        part.nnz = int(matrix.nnz if self.is_sparse else matrix.size)
        part.threads = min(self.threads, usable_threads(part.nnz, self.threads))
        part.grams, part.counts, part.fold_cache = {}, [], None
        part.lines = lines_of(matrix, part.by_rows, checked=True)
        return part

    def __reduce__(self) -> tuple[Callable[[StoredMatrix, float], Design], tuple[StoredMatrix, float]]:
        return _rebuild, (self.matrix, self.constant)

    def __repr__(self) -> str:
        n, d = self.shape
        layout = self.matrix.format if self.is_sparse else ("C" if self.by_rows else "F") + "-ordered"
        return f"Design({n} x {d}, {layout} {self.dtype}, {self.nnz} entries)"

    # Products -----------------------------------------------------------------------------------------------------

    def matvec(self, w: ArrayLike) -> Vector:
        """X w."""
        return self._forward(w, bounded=False).value

    def rmatvec(self, a: ArrayLike) -> Vector:
        """X' a."""
        return self._backward(a, bounded=False).value

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        """X w with a bound on its rounding error, gamma_k sum_j |x_ij w_j| in row i."""
        return self._forward(w, bounded=True)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """X' a with a bound on its rounding error, gamma_k sum_i |x_ij a_i| in column j."""
        return self._backward(a, bounded=True)

    def matvec_tight(self, w: Vector) -> tuple[Vector, Vector]:
        """X w and a bound on its error: 0 if the sums are exact (integers), from pairwise sums for dense rows."""
        if self.is_sparse or not self.by_rows or self.constant:
            product = self.matvec_bounded(w)
            exact = self._sums_are_exact(w, product.absolute)
            return product.value, np.zeros_like(product.value) if exact else product.error
        n, d = self.shape
        value, size = np.empty(n), np.empty(n)
        rows = rows_at_a_time(d)
        for start in range(0, n, rows):
            block = slice(start, start + rows)
            terms = self.matrix[block] * w
            value[block], size[block] = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        if self._sums_are_exact(w, size):
            return value, np.zeros(n)
        # NumPy adds pairwise: at most 32 + log2(d) additions per term
        return value, gamma(64 + np.log2(d)) * size + d * 5e-324

    def _sums_are_exact(self, w: Vector, size: Vector) -> bool:
        """Whether X w is exact: X is integer, w has multiples of UNIT, and the sums are below 2^53 UNIT."""
        if not float(size.max(initial=0.0)) < UNIT * 2.0**53 or self.constant:
            return False
        entries = self.matrix.data if self.is_sparse else self.matrix
        return bool(np.all(w / UNIT == np.rint(w / UNIT))) and bool(np.all(entries == np.rint(entries)))

    def _forward(self, w: ArrayLike, bounded: bool) -> Rounded:
        w = _vector(w, self.shape[1], "w")
        stored = w[: self.n_features]
        product = self.lines.gather if self.by_rows else self.lines.scatter
        value, absolute, depth = product(stored, bounded, self.threads)
        if self.constant:
            value += self.constant * w[-1]
            if bounded:
                absolute += abs(self.constant * w[-1])
        return Rounded(value, absolute, depth + 2)

    def _backward(self, a: ArrayLike, bounded: bool) -> Rounded:
        a = _vector(a, self.shape[0], "a")
        product = self.lines.scatter if self.by_rows else self.lines.gather
        value, absolute, depth = product(a, bounded, self.threads)
        if self.constant:
            value = np.append(value, self.constant * a.sum())
            if bounded:
                absolute = np.append(absolute, abs(self.constant) * np.abs(a).sum())
        # NumPy adds pairwise: at most 32 + log2(n) additions per term
        return Rounded(value, absolute, depth + 64)

    # Norms and lines ----------------------------------------------------------------------------------------------

    def row_norms(self, p: float = 2.0) -> Vector:
        """The p-norm of each row, 1 <= p <= inf, scaled against overflow."""
        norms = self._stored_row_norms(p)
        if not self.constant:
            return norms
        return norm_of_two(norms, np.full_like(norms, abs(self.constant)), p)

    @cached_property
    def squared_row_norms(self) -> Vector:
        """The squared 2-norm of each row without the constant column; cached."""
        norms = self._stored_row_norms(2.0) ** 2
        norms.flags.writeable = False
        return norms

    def _stored_row_norms(self, p: float) -> Vector:
        check_exponent(p)
        ones = np.ones(self.n_features)
        return self.lines.norms_along(p, None) if self.by_rows else self.lines.norms_across(p, ones)

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        """(sum_i s_i |x_ij|^p)^(1/p) for each column j, 1 <= p <= inf, scaled against overflow."""
        n = self.shape[0]
        s = np.ones(n) if weights is None else _vector(weights, n, "weights")
        check_exponent(p)
        norms = self.lines.norms_across(p, s) if self.by_rows else self.lines.norms_along(p, s)
        if not self.constant:
            return norms
        mass = float(np.any(s > 0)) if np.isinf(p) else float(s.sum()) ** (1.0 / p)
        return np.append(norms, abs(self.constant) * mass)

    def row(self, i: int) -> tuple[Array, Array]:
        """Column indices and values of row i; views if stored by rows."""
        return line_of(self.matrix, i) if self.by_rows else across(self.matrix, i, axis=0)

    def column(self, j: int) -> tuple[Array, Array]:
        """Row indices and values of column j; views if stored by columns."""
        return across(self.matrix, j, axis=1) if self.by_rows else line_of(self.matrix, j)

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        """Some rows as a dense float64 array."""
        part = self.matrix[which]
        dense = np.asarray(part.toarray() if self.is_sparse else part, dtype=np.float64)
        return np.column_stack([dense, np.full(len(dense), self.constant)]) if self.constant else dense

    def of_rows(self, which: NDArray[np.intp]) -> Design:
        """A copy of some rows, stored like this matrix."""
        part = self._part(self.matrix[which])
        part.constant, part.shape = self.constant, (len(which), self.shape[1])
        return part

    def times(self, Q: Matrix | sp.sparray) -> Matrix:
        """X Q as a dense float64 array, for a matrix Q of few columns."""
        inner = Q[: self.n_features]
        product = self.matrix @ inner
        dense = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=np.float64)
        if not self.constant:
            return dense
        last = Q[-1:]
        row = np.asarray(last if isinstance(last, np.ndarray) else last.toarray())
        return np.asarray(dense + self.constant * row)


def _rebuild(matrix: StoredMatrix, constant: float) -> Design:
    return Design(matrix, constant=constant)


def _vector(x: ArrayLike, size: int, name: str) -> Vector:
    vector = np.ascontiguousarray(x, dtype=np.float64)
    if vector.shape != (size,):
        raise ValueError(f"{name} must be a vector of {size} entries, got shape {vector.shape}")
    return vector
