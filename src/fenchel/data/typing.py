"""Type aliases: arrays, and user input (converted by `convert` and `target`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.int64]
#: Numbers, or labels, of any type.
Array: TypeAlias = NDArray[Any]
Dtype: TypeAlias = np.dtype[Any]
#: A C- or F-contiguous array, or a CSR or CSC matrix; scipy's matrices are not typed.
StoredMatrix: TypeAlias = Any


class DataFrame(Protocol):
    """A data frame of pandas or polars: named columns, convertible to an array."""

    @property
    def columns(self) -> object: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def to_numpy(self) -> NDArray[np.generic]: ...


#: Features: an array, nested lists, a sparse matrix or a data frame.
MatrixLike: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix | DataFrame
#: Targets, labels or weights: an array, a list or a column of a data frame.
VectorLike: TypeAlias = ArrayLike
#: A label of a class.
Label: TypeAlias = Hashable
#: A seed, as scikit-learn takes it.
Seed: TypeAlias = int | np.integer | np.random.RandomState | None
