"""npz archives, of scipy.sparse.save_npz or of np.savez. Nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np
from scipy import sparse

from fenchel.data.readers.arrays import (
    NUMERIC_KINDS,
    Array,
    Loaded,
    Matrix,
    check_target,
    check_width,
    finite,
)

Archive = Mapping[str, Array]


def read_npz(stream: IO[bytes], *, dtype: np.dtype[Any], n_features: int | None) -> Loaded:
    """Read X, dense or sparse, and the array `y` where there is one."""
    if not zipfile.is_zipfile(stream):
        raise ValueError("this is not an npz archive")
    stream.seek(0)
    with np.load(stream, allow_pickle=False) as archive:
        X = _layout(set(archive.files))(archive, stream, dtype)
        y = archive["y"] if "y" in archive.files else None
    if X.shape[0] == 0:
        raise ValueError("there are no samples")
    check_width(X.shape[1], n_features)
    return X, None if y is None else check_target(y, X.shape[0])


def _dense(archive: Archive, _: IO[bytes], dtype: np.dtype[Any]) -> Matrix:
    X = archive["X"]
    if X.ndim != 2 or X.dtype.kind not in NUMERIC_KINDS:
        raise ValueError(f"X should be a matrix of numbers, but is {X.dtype} of shape {X.shape}")
    return finite(X, dtype, lambda k: "X[{}, {}]".format(*divmod(k, X.shape[1])))


def _parts(archive: Archive, _: IO[bytes], dtype: np.dtype[Any]) -> Matrix:
    for name in ("indices", "indptr"):
        if archive[name].dtype.kind not in "iu":
            raise ValueError(f"{name} holds {archive[name].dtype}, not whole numbers")
    shape = (int(archive["shape"][0]), int(archive["shape"][1]))
    parts = (archive["data"], archive["indices"], archive["indptr"])
    return _checked(sparse.csr_array(parts, shape=shape), dtype)


def _saved_by_scipy(_: Archive, stream: IO[bytes], dtype: np.dtype[Any]) -> Matrix:
    stream.seek(0)
    return _checked(sparse.csr_array(sparse.load_npz(stream)), dtype)


def _checked(X: sparse.csr_array[Any], dtype: np.dtype[Any]) -> Matrix:
    """Trust no index of a file: kernels would follow it."""
    X.check_format(full_check=True)
    if X.data.dtype.kind not in NUMERIC_KINDS:
        raise ValueError(f"data holds {X.data.dtype}, not numbers")
    X.data = finite(X.data, dtype, lambda k: f"X[{np.searchsorted(X.indptr, k, 'right') - 1}, {X.indices[k]}]")
    return X


# The arrays that tell how an archive holds X, the most telling first.
_LAYOUTS: tuple[tuple[frozenset[str], Callable[[Archive, IO[bytes], np.dtype[Any]], Matrix]], ...] = (
    (frozenset({"format", "shape", "data"}), _saved_by_scipy),
    (frozenset({"data", "indices", "indptr", "shape"}), _parts),
    (frozenset({"X"}), _dense),
)


def _layout(names: set[str]) -> Callable[[Archive, IO[bytes], np.dtype[Any]], Matrix]:
    for needed, layout in _LAYOUTS:
        if needed <= names:
            return layout
    raise ValueError(
        f"the archive holds {', '.join(sorted(names)) or 'nothing'}; expected X (and y), the parts data, "
        "indices, indptr and shape of a CSR matrix (and y), or a file of scipy.sparse.save_npz"
    )
