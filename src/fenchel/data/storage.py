"""Storage of a matrix by lines (rows or columns): access to lines, check of the entries, threads."""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse as sp

from fenchel._core import kernels
from fenchel.data import limits
from fenchel.data.typing import Array, Indices, StoredMatrix, Vector


def lines_of(matrix: StoredMatrix, by_rows: bool, checked: bool = False) -> kernels.Lines:
    """The stored rows or columns for the kernels; `checked` if all indices are known to be in range."""
    if not sp.issparse(matrix):
        return kernels.Lines(matrix if by_rows else matrix.T)
    width = matrix.shape[1] if by_rows else matrix.shape[0]
    return kernels.Lines(matrix.indptr, matrix.indices, matrix.data, width, checked)


def line_of(matrix: StoredMatrix, i: int) -> tuple[Array, Array]:
    """Indices and values of a stored line, as views."""
    if sp.issparse(matrix):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return matrix.indices[part], matrix.data[part]
    line = matrix[i] if matrix.flags.c_contiguous else matrix[:, i]
    return np.arange(len(line)), line


def across(matrix: StoredMatrix, k: int, axis: int) -> tuple[Array, Array]:
    """Indices and values of a line across the stored ones: a row (axis 0) or a column (axis 1)."""
    if sp.issparse(matrix):
        part = (matrix[[k]] if axis == 0 else matrix[:, [k]]).tocoo()
        return (part.col if axis == 0 else part.row), part.data
    line = matrix[k] if axis == 0 else matrix[:, k]
    return np.arange(len(line)), line


def columns_of_rows(
    matrix: StoredMatrix, lines: kernels.Lines, columns: Indices, counts: Indices, by_columns: bool
) -> StoredMatrix:
    """Some columns of a CSR matrix, with `counts` entries each, as CSR or CSC."""
    (n, d), total = matrix.shape, int(counts.sum())
    place = np.full(d, -1, dtype=np.int32)
    place[columns] = np.arange(len(columns))
    indptr = np.zeros((len(columns) if by_columns else n) + 1, dtype=matrix.indices.dtype)
    if by_columns:
        np.cumsum(counts, out=indptr[1:])
    # the kernel writes each entry of a row before it decides whether to keep it
    capacity = total if by_columns else total + int(np.diff(matrix.indptr).max(initial=0))
    # allocated by NumPy for its huge pages, which halve the time
    indices, data = np.empty(capacity, dtype=matrix.indices.dtype), np.empty(capacity, dtype=matrix.dtype)
    kernels.take(lines, place, by_columns, indptr, indices, data)
    kind = sp.csc_array if by_columns else sp.csr_array
    return kind((data[:total], indices[:total], indptr), shape=(n, len(columns)))


def largest_entry(matrix: StoredMatrix, by_rows: bool, threads: int, name: str) -> float:
    """max |x_ij|, or an error with the position of the first entry that is not finite."""
    sparse = sp.issparse(matrix)
    # matrix.data may be longer than nnz
    values = matrix.data[: matrix.indptr[-1]] if sparse else matrix if by_rows else matrix.T
    k, largest = kernels.check_entries(values.reshape(-1), threads)
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
    """Raise unless p >= 1."""
    if not p >= 1:
        raise ValueError(f"p must be at least 1, got {p}")


def norm_of_two(a: Vector, b: Vector, p: float) -> Vector:
    """The p-norms of the pairs (a_i, b_i), scaled against overflow."""
    largest = np.maximum(a, b)
    if np.isinf(p):
        return np.asarray(largest)
    return np.asarray(largest * ((a / largest) ** p + (b / largest) ** p) ** (1.0 / p))


def usable_threads(entries: int, limit: int | None) -> int:
    """The given limit, or the number of cores, reduced for few entries."""
    if isinstance(limit, bool | np.bool_) or not (
        limit is None or (isinstance(limit, int | np.integer) and limit >= 1)
    ):
        raise ValueError(
            f"the number of threads must be an integer of at least 1, or None for all cores; got {limit!r}"
        )
    return max(1, min(cores() if limit is None else limit, entries // limits.TUNING.product))


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
