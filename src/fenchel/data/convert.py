"""Conversion of user input to arrays and sparse matrices of numbers; copied only if it must be converted."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
import scipy.sparse as sp

from fenchel.data.typing import Array, MatrixLike, StoredMatrix


def as_matrix(X: MatrixLike, name: str) -> StoredMatrix:
    """A C- or F-contiguous array, or a CSR or CSC matrix, of float32 or float64."""
    matrix = _as_sparse(X, name) if sp.issparse(X) else _as_dense(X, name)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (samples x features), got {matrix.ndim}")
    if 0 in matrix.shape:
        raise ValueError(f"{name} is empty: its shape is {matrix.shape[0]} x {matrix.shape[1]}")
    return matrix


def as_numbers(array: Array, name: str) -> Array:
    """The array if its entries are real numbers; objects are converted, or the first that is no number is an error."""
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind == "c":
        raise ValueError(f"{name} has complex entries; only real numbers are supported")
    for position, entry in np.ndenumerate(array):
        if isinstance(entry, str | bytes) or not _is_number(entry):
            raise ValueError(f"{name} has {entry!r} at {_place(position)}, which is not a number; encode it first")
    return array.astype(np.float64)


def unmasked(values: object, name: str) -> Array:
    """An array; masked entries are missing values and raise."""
    if np.ma.is_masked(values):
        place = tuple(int(k) for k in np.argwhere(np.ma.getmaskarray(np.ma.asarray(values)))[0])
        raise ValueError(f"{name} has a masked entry at {_place(place)}; impute or drop missing values first")
    return np.asarray(values)


def is_identity(matrix: StoredMatrix) -> bool:
    """Whether a matrix from `as_matrix` is the identity."""
    n, d = matrix.shape
    if n != d:
        return False
    if sp.issparse(matrix):
        if matrix.nnz != n or not np.array_equal(matrix.indptr, np.arange(n + 1)):
            return False
        return bool(np.array_equal(matrix.indices[:n], np.arange(n)) and np.all(matrix.data[:n] == 1))
    return bool(np.all(np.diagonal(matrix) == 1) and np.count_nonzero(matrix) == n)


def _as_sparse(X: StoredMatrix, name: str) -> StoredMatrix:
    if X.ndim != 2:
        return X
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{name} has entries of type {X.dtype}; only real numbers are supported")
    matrix = X if X.format in ("csr", "csc") else X.tocsr()
    if matrix.dtype not in (np.float32, np.float64) or not matrix.dtype.isnative:
        matrix = matrix.astype(np.float64)
    parts = (matrix.data, matrix.indices, matrix.indptr)
    index = matrix.indices.dtype if matrix.indices.dtype == matrix.indptr.dtype else np.dtype(np.int64)
    plain = [np.require(part, kind, ["C", "A"]) for part, kind in zip(parts, (None, index, index), strict=True)]
    if any(new is not old for new, old in zip(plain, parts, strict=True)):
        matrix = type(matrix)(tuple(plain), shape=matrix.shape, copy=False)
    return matrix


def _as_dense(X: MatrixLike, name: str) -> Array:
    array = as_numbers(unmasked(X, name), name)
    if array.dtype not in (np.float32, np.float64) or not array.dtype.isnative:
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    if not (array.flags.c_contiguous or array.flags.f_contiguous) or not array.flags.aligned:
        array = np.array(array, order="C")
    return array


def _is_number(entry: SupportsFloat) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


def _place(position: tuple[int, ...]) -> str:
    if len(position) == 2:
        return f"row {position[0]}, column {position[1]}"
    return f"position {', '.join(map(str, position)) or 0}"
