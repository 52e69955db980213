"""Targets and weights, checked before any work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fenchel.data.convert import as_numbers, unmasked
from fenchel.data.typing import Array, Indices, Vector, VectorLike


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
    """Labels -1 and +1, both of which occur."""
    y = as_vector(values, n, name)
    bad = np.flatnonzero(np.abs(y) != 1.0)
    if bad.size:
        raise ValueError(
            f"{name} has {y[bad[0]]:g} at position {bad[0]}; a classification loss needs labels -1 and +1. "
            "fenchel.data.encode_labels and the estimators translate labels of any kind."
        )
    if y.min() == y.max():
        raise ValueError(f"{name} has one class only ({y[0]:+g} everywhere); a classifier needs two")
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
