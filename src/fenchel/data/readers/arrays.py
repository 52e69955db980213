"""Growing arrays, and checks of numbers and targets, for all readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from fenchel._core import kernels
from fenchel.data.typing import Array, Dtype

Features: TypeAlias = Array | sparse.csr_array
Loaded: TypeAlias = tuple[Features, Array | None]

#: The kinds of NumPy's types that are numbers.
NUMERIC_KINDS = "biuf"


class Growing:
    """An array to append to, with at most an eighth of unused memory; joining a list of parts would need it twice."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: Array = np.empty(0, dtype=dtype)
        self.size = 0

    def extend(self, part: Array) -> None:
        """Append `part`, cast to the array's dtype."""
        stop = self.size + part.size
        if stop > self._array.size:
            self._array.resize(stop + stop // 8, refcheck=False)
        self._array[self.size : stop] = part.reshape(-1)
        self.size = stop

    def widen(self, dtype: DTypeLike) -> None:
        """Convert the array to `dtype`."""
        self._array = self._array.astype(dtype, copy=False)

    def array(self) -> Array:
        """All entries; unused memory is released."""
        self._array.resize(self.size, refcheck=False)
        return self._array


def finite(values: Array, dtype: Dtype, where: Callable[[int], str]) -> Array:
    """`values` in C order as `dtype`, or an error with the first entry that is not finite; `where` names the k-th."""
    with np.errstate(over="ignore"):
        cast: Array = values.astype(dtype, order="C", copy=False)
    k, _ = kernels.check_entries(cast.reshape(-1), 1)
    if k >= 0:
        raise ValueError(f"{where(k)} is {values.flat[k]}, not a finite {dtype.name} number")
    return cast


def check_width(width: int, n_features: int | None) -> None:
    """Raise unless the matrix has n_features columns (if given)."""
    if n_features is not None and width != n_features:
        raise ValueError(f"there are {width} features, but n_features={n_features}")


def check_target(y: Array, samples: int) -> Array:
    """`y`, or an error unless it has one finite number or label per sample."""
    if y.shape != (samples,):
        raise ValueError(f"y has shape {y.shape}, but X has {samples} samples, so it should be ({samples},)")
    if y.dtype.kind not in NUMERIC_KINDS + "US":
        raise ValueError(f"y holds {y.dtype}, which is neither numbers nor text labels")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        k = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"the target of sample {k} (counting from 0) is {y[k]}, not a finite number")
    return y
