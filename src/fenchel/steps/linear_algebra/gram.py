"""Gram matrices X' diag(h) X, and what they cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Vector


def price_of_gram(design: Design) -> float:
    """The cost of a Gram matrix of sparse rows, in products with X.

    A row of m entries adds m^2 / 2 products of two entries; one of them costs about 0.4 of an entry's part in X w.
    """
    lengths = np.diff(design.matrix.indptr).astype(np.float64)
    return 0.2 * float(lengths @ lengths) / max(1.0, float(lengths.sum()))


def gram_of(design: Design, rows: NDArray[np.int64] | None, h: Vector, centre: Vector | None = None) -> Vector:
    """X' diag(h) X over some rows, or all: its lower triangle, in Fortran order.

    Sparse matrices must be stored by rows. `centre` is subtracted from every row, of dense matrices only.
    """
    n, width = design.matrix.shape
    if design.is_sparse:
        return design.lines.gram_some(np.arange(n) if rows is None else rows, h).reshape(width, width, order="F")
    inner = np.zeros((width, width), order="F")
    equal = bool(len(h)) and float(h.min()) == float(h.max())  # no scaled copy is needed
    root, factor = np.sqrt(h), float(h[0]) if equal else 1.0
    size = max(1, 1_000_000 // max(1, width))  # rows scaled at a time: 8 MB, which stay in the cache
    for start in range(0, len(h), size):
        chunk = slice(start, start + size)
        block = design.matrix[chunk if rows is None else rows[chunk]]
        block = block if centre is None else block - centre
        block = block if equal else block * root[chunk, None]
        # Fortran sees the transpose of a C-ordered block
        inner = dsyrk(factor, block.T, beta=1.0, c=inner, trans=0, lower=1, overwrite_c=1)
    return np.asarray(inner)


def price_of_hessian(design: Design) -> float:
    """What the Hessian of all columns costs, in passes over them."""
    n, d = design.shape
    if not design.is_sparse:
        return 0.035 * d  # BLAS is quick
    return price_of_gram(design) if design.by_rows else 0.2 * design.nnz / n


def known_gram(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """That of all columns, formed once for all who share X; not to be changed, and no proof may rest on it."""
    centred = mean is not None
    known = design.grams.get(centred)
    if known is None or not np.array_equal(known[0], c):
        known = design.grams[centred] = (c, gram_matrix(design, c, mean))
    return known[1]


def gram_matrix(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """X' diag(c) X, or the same of columns without their means; symmetric, in C order."""
    if design.is_sparse:
        design = design.stored_by_rows()
    H = gram_of(design, None, c, None if design.is_sparse else mean).T  # its transpose is itself, in C order
    kernels.mirror_lower(H)
    if design.is_sparse and mean is not None:
        H -= float(c.sum()) * np.outer(mean, mean)
    return H


def gram_of_some(design: Design, rows: NDArray[np.int64], fraction: float, mean: Vector | None) -> Vector:
    """fraction sum_i (x_i - mean)(x_i - mean)' over some rows, whatever their own mean is; symmetric, in C order.

    Sparse matrices are stored by rows.
    """
    h = np.full(len(rows), fraction)
    if not design.is_sparse:
        H = gram_of(design, rows, h, mean).T
        kernels.mirror_lower(H)
        return H
    H = gram_of(design, rows, h).T
    kernels.mirror_lower(H)
    if mean is not None:
        weights = np.zeros(design.shape[0])
        weights[rows] = fraction
        cross = np.outer(design.rmatvec(weights), mean)
        H += fraction * len(rows) * np.outer(mean, mean) - cross - cross.T
    return H
