"""A look at every stored entry: are all of them numbers, and how large are they."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel._core import kernels

#: Below this many entries a look at them is over before a second thread has started.
ENTRIES_TO_LOOK_AT = 5_000_000


def largest_entry(matrix: Any, by_rows: bool, threads: int, name: str) -> float:
    """max |x_ij|; the first entry that is no finite number raises an error that says where it is."""
    sparse = sp.issparse(matrix)
    # an array may be longer than what is in use
    values = matrix.data[: matrix.indptr[-1]] if sparse else matrix if by_rows else matrix.T
    k, largest = kernels.look_at_entries(values.reshape(-1), threads if values.size >= ENTRIES_TO_LOOK_AT else 1)
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
