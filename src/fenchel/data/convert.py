"""What users pass, as arrays and sparse matrices of numbers, checked before any work; copied only if it must be."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fenchel.data.typing import Array, Indices, MatrixLike, StoredMatrix, Vector, VectorLike


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


def require_unmasked(**named: object) -> None:
    """Raise for masked entries, of what is converted elsewhere."""
    for name, values in named.items():
        if isinstance(values, np.ma.MaskedArray):
            unmasked(values, name)


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


# Targets, labels and weights --------------------------------------------------------------------------------------


def as_vector(values: VectorLike, n: int, name: str) -> Vector:
    """`values` as n finite float64 numbers; errors name the argument and the first bad position."""
    array = unmasked(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be a vector, got an array of shape {array.shape}")
    if len(array) != n:
        raise ValueError(f"{name} has {len(array)} entries, but X has {n} rows")
    array = np.ascontiguousarray(as_numbers(array, name), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name} has {array[bad[0]]} at position {bad[0]}; every entry must be a finite number")
    return array


def as_signs(values: VectorLike, n: int, name: str = "y") -> Vector:
    """Labels -1 and +1."""
    y = as_vector(values, n, name)
    bad = np.flatnonzero(np.abs(y) != 1.0)
    if bad.size:
        raise ValueError(
            f"{name} has {y[bad[0]]:g} at position {bad[0]}; a classification loss needs labels -1 and +1. "
            "fenchel.data.encode_labels and the estimators translate labels of any kind."
        )
    return y


def as_codes(values: VectorLike, n: int, n_classes: int | None = None, name: str = "y") -> tuple[Indices, int]:
    """Classes 0 .. k-1 of n samples, and k >= 2 (n_classes, if given)."""
    y = as_vector(values, n, name)
    bad = np.flatnonzero((y < 0) | (y != np.floor(y)) | (y > 2**31))
    if bad.size:
        raise ValueError(
            f"{name} has {y[bad[0]]:g} at position {bad[0]}; classes are the integers 0 .. k-1. "
            "fenchel.data.encode_labels and the estimators translate labels of any kind."
        )
    found = int(y.max()) + 1
    if n_classes is not None and not (
        isinstance(n_classes, int | np.integer) and not isinstance(n_classes, bool) and n_classes >= 1
    ):
        raise ValueError(f"n_classes must be a positive integer, got {n_classes!r}")
    if n_classes is None and found > n:
        raise ValueError(
            f"{name} has the class {found - 1}, but only {n} samples: classes are numbered 0 .. k-1. "
            "fenchel.data.encode_labels numbers them; pass n_classes if some classes have no sample"
        )
    k = found if n_classes is None else int(n_classes)
    if found > k:
        raise ValueError(f"{name} has the class {found - 1}, but n_classes is {k}")
    if k < 2:
        raise ValueError(f"{name} has one class only; a classifier needs at least two")
    return y.astype(np.int64), k


def as_weights(values: VectorLike | None, n: int, name: str = "sample_weight") -> Vector:
    """Nonnegative weights with a positive sum; ones if None. Extreme ones are scaled, exactly, by a power of two."""
    if values is None:
        return np.ones(n)
    s = as_vector(np.full(n, values) if np.ndim(values) == 0 else values, n, name)
    bad = np.flatnonzero(~(s >= 0))
    if bad.size:
        raise ValueError(f"{name} has {s[bad[0]]:g} at position {bad[0]}; weights must not be negative")
    if not s.any():
        raise ValueError(f"{name} is zero everywhere; at least one sample needs a positive weight")
    exponent = int(np.frexp(s.max())[1])
    return np.ldexp(s, -exponent) if abs(exponent) > 30 else s  # else products with small losses may underflow


def as_labels(y: VectorLike) -> Array:
    """One label for each sample, of any type."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y must be a vector of labels, got an array of shape {labels.shape}")
    return labels


def encode_labels(y: VectorLike) -> tuple[Array, NDArray[np.intp]]:
    """The distinct labels, sorted, and the position of each sample's label among them.

    Labels may be of any sortable type. Missing labels and a single class are errors.
    """
    labels = as_labels(y)
    if labels.size == 0:
        raise ValueError("y is empty")
    missing = (
        np.flatnonzero(
            np.isnan(labels) if labels.dtype.kind == "f" else [label is None or label != label for label in labels]
        )
        if labels.dtype.kind in "fO"
        else np.empty(0, int)
    )
    if missing.size:
        raise ValueError(f"y has a missing label ({labels[missing[0]]}) at position {missing[0]}")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}); a classifier needs at least two")
    return classes, codes.reshape(-1)
