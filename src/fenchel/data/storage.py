"""How a matrix is stored: its lines (rows or columns), a check of every entry, norms of lines."""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse as sp

from fenchel._core import kernels
from fenchel.data.typing import Array, Indices, StoredMatrix, Vector

#: Below this many entries a check of them is over before a second thread has started.
ENTRIES_TO_THREAD = 5_000_000
#: Below this many entries a product is over before a second thread has started.
ENTRIES_PER_THREAD = 100_000


def lines_of(matrix: StoredMatrix, by_rows: bool, checked: bool = False) -> kernels.Lines:
    """The stored rows or columns, as the kernels take them; `checked` if all indices are known to be in range."""
    if not sp.issparse(matrix):
        return kernels.Lines(matrix if by_rows else matrix.T)
    width = matrix.shape[1] if by_rows else matrix.shape[0]
    return kernels.Lines(matrix.indptr, matrix.indices, matrix.data, width, checked)


def line_of(matrix: StoredMatrix, i: int) -> tuple[Array, Array]:
    """Indices and values of a stored line: views."""
    if sp.issparse(matrix):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return matrix.indices[part], matrix.data[part]
    line = matrix[i] if matrix.flags.c_contiguous else matrix[:, i]
    return np.arange(len(line)), line


def across(matrix: StoredMatrix, k: int, axis: int) -> tuple[Array, Array]:
    """Indices and values of a line across those that are stored: axis 0 for a row, 1 for a column."""
    if sp.issparse(matrix):
        part = (matrix[[k]] if axis == 0 else matrix[:, [k]]).tocoo()
        return (part.col if axis == 0 else part.row), part.data
    line = matrix[k] if axis == 0 else matrix[:, k]
    return np.arange(len(line)), line


def columns_of_rows(
    matrix: StoredMatrix, lines: kernels.Lines, columns: Indices, counts: Indices, by_columns: bool
) -> StoredMatrix:
    """Some columns of a CSR matrix, with `counts` entries each: as CSR, or as CSC."""
    (n, d), total = matrix.shape, int(counts.sum())
    place = np.full(d, -1, dtype=np.int32)
    place[columns] = np.arange(len(columns))
    indptr = np.zeros((len(columns) if by_columns else n) + 1, dtype=matrix.indices.dtype)
    if by_columns:
        np.cumsum(counts, out=indptr[1:])
    # an entry of a row is written before it is known whether it stays
    capacity = total if by_columns else total + int(np.diff(matrix.indptr).max(initial=0))
    # NumPy's memory has large pages where the system has them, which halves the time
    indices, data = np.empty(capacity, dtype=matrix.indices.dtype), np.empty(capacity, dtype=matrix.dtype)
    kernels.take(lines, place, by_columns, indptr, indices, data)
    kind = sp.csc_array if by_columns else sp.csr_array
    return kind((data[:total], indices[:total], indptr), shape=(n, len(columns)))


def largest_entry(matrix: StoredMatrix, by_rows: bool, threads: int, name: str) -> float:
    """max |x_ij|; an entry that is not finite is an error that says where the first one is."""
    sparse = sp.issparse(matrix)
    # an array may be longer than what is in use
    values = matrix.data[: matrix.indptr[-1]] if sparse else matrix if by_rows else matrix.T
    k, largest = kernels.check_entries(values.reshape(-1), threads if values.size >= ENTRIES_TO_THREAD else 1)
    if k < 0:
        return largest
    if sparse:
        major, minor = int(np.searchsorted(matrix.indptr, k, side="right")) - 1, int(matrix.indices[k])
    else:
        major, minor = divmod(k, values.shape[1])
    row, column = (major, minor) if by_rows else (minor, major)
    raise ValueError(
        f"{name} has {float(values.reshape(-1)[k])} at row {row}, column {column}; every entry must be a finite "
        "number. Impute or drop missing values first."
    )


def check_exponent(p: float) -> None:
    """Raise unless there is a p-norm."""
    if not p >= 1:
        raise ValueError(f"p must be at least 1, got {p}")


def norm_of_two(a: Vector, b: Vector, p: float) -> Vector:
    """The p-norms of pairs, safe against overflow."""
    largest = np.maximum(a, b)
    if np.isinf(p):
        return np.asarray(largest)
    return np.asarray(largest * ((a / largest) ** p + (b / largest) ** p) ** (1.0 / p))


def usable_threads(entries: int, limit: int | None) -> int:
    """As many as asked for, or as there are cores, and no more than the entries keep busy."""
    if isinstance(limit, bool | np.bool_) or not (
        limit is None or (isinstance(limit, int | np.integer) and limit >= 1)
    ):
        raise ValueError(
            f"the number of threads must be an integer of at least 1, or None for all cores; got {limit!r}"
        )
    return max(1, min(cores() if limit is None else limit, entries // ENTRIES_PER_THREAD))


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
