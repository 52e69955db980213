"""Rows and columns of a matrix, whichever of them are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fenchel._core import kernels


def lines_of(matrix: Any, by_rows: bool) -> kernels.Lines:
    """What the kernels see: the stored lines, and how long they are."""
    if not sp.issparse(matrix):
        return kernels.Lines(matrix if by_rows else matrix.T)
    width = matrix.shape[1] if by_rows else matrix.shape[0]
    return kernels.Lines(matrix.indptr, matrix.indices, matrix.data, width)


def line_of(matrix: Any, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Indices and values of a stored line: views."""
    if sp.issparse(matrix):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return matrix.indices[part], matrix.data[part]
    line = matrix[i] if matrix.flags.c_contiguous else matrix[:, i]
    return np.arange(len(line)), line


def across(matrix: Any, k: int, axis: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Indices and values of a line across those that are stored: axis 0 for a row, 1 for a column."""
    if sp.issparse(matrix):
        part = (matrix[[k]] if axis == 0 else matrix[:, [k]]).tocoo()
        return (part.col if axis == 0 else part.row), part.data
    line = matrix[k] if axis == 0 else matrix[:, k]
    return np.arange(len(line)), line
