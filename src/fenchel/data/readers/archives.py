"""npz archives, of scipy.sparse.save_npz or of np.savez. Nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from typing import IO, TypeAlias

import numpy as np
from scipy import sparse

from fenchel.data.readers.arrays import NUMERIC_KINDS, Features, Loaded, check_target, check_width, finite
from fenchel.data.typing import Array, Dtype

Archive: TypeAlias = Mapping[str, Array]
Layout: TypeAlias = Callable[[Archive, IO[bytes], Dtype], Features]


def read_npz(stream: IO[bytes], *, dtype: Dtype, n_features: int | None) -> Loaded:
    """Read X, dense or sparse, and the array `y`, if there is one."""
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


def _dense(archive: Archive, _: IO[bytes], dtype: Dtype) -> Features:
    X = archive["X"]
    if X.ndim != 2 or X.dtype.kind not in NUMERIC_KINDS:
        raise ValueError(f"X should be a matrix of numbers, but is {X.dtype} of shape {X.shape}")
    return finite(X, dtype, lambda k: "X[{}, {}]".format(*divmod(k, X.shape[1])))


def _parts(archive: Archive, _: IO[bytes], dtype: Dtype) -> Features:
    for name in ("indices", "indptr"):
        if archive[name].dtype.kind not in "iu":
            raise ValueError(f"{name} holds {archive[name].dtype}, not whole numbers")
    shape = (int(archive["shape"][0]), int(archive["shape"][1]))
    parts = (archive["data"], archive["indices"], archive["indptr"])
    return _checked(sparse.csr_array(parts, shape=shape), dtype)


def _saved_by_scipy(_: Archive, stream: IO[bytes], dtype: Dtype) -> Features:
    stream.seek(0)
    return _checked(sparse.csr_array(sparse.load_npz(stream)), dtype)


def _checked(X: sparse.csr_array, dtype: Dtype) -> Features:
    """X with its indices and values checked: kernels do not check bounds."""
    X.check_format(full_check=True)
    if X.data.dtype.kind not in NUMERIC_KINDS:
        raise ValueError(f"data holds {X.data.dtype}, not numbers")
    X.data = finite(X.data, dtype, lambda k: f"X[{np.searchsorted(X.indptr, k, 'right') - 1}, {X.indices[k]}]")
    return X


def _layout(names: set[str]) -> Layout:
    """The layout of X in an archive with these arrays; the most specific one first."""
    if names >= {"format", "shape", "data"}:
        return _saved_by_scipy
    if names >= {"data", "indices", "indptr", "shape"}:
        return _parts
    if "X" in names:
        return _dense
    raise ValueError(
        f"the archive holds {', '.join(sorted(names)) or 'nothing'}; expected X (and y), the parts data, "
        "indices, indptr and shape of a CSR matrix (and y), or a file of scipy.sparse.save_npz"
    )
