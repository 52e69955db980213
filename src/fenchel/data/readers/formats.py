"""The file formats, and `read`."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fenchel.data.readers.archives import read_npz
from fenchel.data.readers.arrays import Loaded
from fenchel.data.readers.svmlight import ZeroBased, read_svmlight, svmlight_batches
from fenchel.data.readers.tables import Target, csv_batches, parquet_batches, read_csv, read_parquet


@dataclass(frozen=True)
class Format:
    """A reader of an open stream, its file suffixes, and its special options."""

    read: Callable[..., Loaded]
    suffixes: tuple[str, ...]
    options: frozenset[str] = frozenset()
    batches: Callable[..., Iterator[Loaded]] | None = None  # None: only whole files


FORMATS: dict[str, Format] = {
    "svmlight": Format(read_svmlight, (".svm", ".svmlight", ".libsvm"), frozenset({"zero_based"}), svmlight_batches),
    "csv": Format(read_csv, (".csv", ".tsv"), frozenset({"target"}), csv_batches),
    "npz": Format(read_npz, (".npz",)),
    "parquet": Format(read_parquet, (".parquet", ".pq"), frozenset({"target"}), parquet_batches),
}

#: How to open a compressed file, by its suffix.
_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    target: Target = None,
    dtype: DTypeLike = np.float64,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
) -> Loaded:
    """Read a data set from a file.

    The file may be compressed with gzip, bzip2 or xz. A number that is not finite, a missing cell or a malformed line
    is an error with its position.

    Parameters
    ----------
    path : path of the file
    format : {'svmlight', 'csv', 'npz', 'parquet'}, by default from the suffix (before .gz, .bz2 or .xz)
        `svmlight`: lines of `label index:value ...`, as LIBSVM's; `qid:N` and comments are skipped.
        `csv`: cells separated by comma, semicolon or tab. The first line is taken for column names if none
        of its cells is a number, if it has text where the second line has a number, or if `target` is a name.
        `npz`: a matrix saved by `scipy.sparse.save_npz`, or an archive of `np.savez` with X, or with the
        parts data, indices, indptr and shape of a CSR matrix; the target, if there is one, is the array y.
        Nothing is unpickled.
        `parquet`: needs pyarrow. An index that pandas stored is left out.
    target : column of the target of a csv or parquet file, by default the last
        Its name, its position from 0 (or from the end, if negative), or False if there is no target.
    dtype : {float32, float64}
        Of the numbers in X.
    n_features : number of features
        An svmlight file may have fewer (the last columns are then empty); in other formats it must match.
    zero_based : bool or 'auto'
        Whether indices of an svmlight file start at 0. 'auto': they start at 1 unless a 0 occurs.

    Returns
    -------
    X : csr_array (svmlight, sparse npz) or ndarray in C order, of shape (samples, features)
        Indices are int32 if that suffices.
    y : ndarray of shape (samples,), or None if the file has no target
        Numbers or text labels.

    Examples
    --------
    >>> X, y = read("a9a.xz", format="svmlight", n_features=123)  # doctest: +SKIP
    """
    path, name, options = _checked(path, format, target, dtype, n_features, zero_based)
    with _opened(path) as stream:
        return FORMATS[name].read(stream, **options)


def batches(
    path: str | os.PathLike[str],
    rows: int = 10_000,
    *,
    format: str | None = None,
    target: Target = None,
    dtype: DTypeLike = np.float64,
    n_features: int | None = None,
    zero_based: bool = False,
) -> Iterator[Loaded]:
    """Read a data set from a file in pieces, for `stream` and `partial_fit`: the memory is that of one piece.

    Parameters
    ----------
    path : path of the file
        svmlight, csv or parquet, which may be compressed as in `read`.
    rows : int, default 10000
        Samples in a piece; the last one may have fewer.
    format, target, dtype
        As in `read`. The first piece tells whether the labels of a csv file are numbers or text.
    n_features : number of features
        An svmlight file needs it.
    zero_based : bool, default False
        Whether indices of an svmlight file start at 0.

    Yields
    ------
    X, y
        As from `read`. What is wrong with a line is an error when its piece is read.

    Examples
    --------
    >>> for X, y in batches("a9a.xz", format="svmlight", n_features=123):  # doctest: +SKIP
    ...     model.partial_fit(X, y, classes=[-1.0, 1.0])
    """
    if isinstance(rows, bool) or not (isinstance(rows, int | np.integer) and rows >= 1):
        raise ValueError(f"rows must be a whole number of samples, at least 1; got {rows!r}")
    path, name, options = _checked(path, format, target, dtype, n_features, "auto")
    parts = FORMATS[name].batches
    if parts is None:
        raise ValueError(f"{path}: {name} files are read as a whole, by fenchel.read")
    if name == "svmlight":
        options["zero_based"] = zero_based
    elif zero_based:
        _require_options(name, ["zero_based"])
    return _pieces(path, parts, int(rows), options)


def _pieces(path: Path, parts: Callable[..., Iterator[Loaded]], rows: int, options: dict[str, Any]) -> Iterator[Loaded]:
    with _opened(path) as stream:
        yield from parts(stream, rows=rows, **options)


def _checked(
    path: str | os.PathLike[str],
    format: str | None,
    target: Target,
    dtype: DTypeLike,
    n_features: int | None,
    zero_based: ZeroBased,
) -> tuple[Path, str, dict[str, Any]]:
    """The path, the format, and the options of its readers."""
    path = Path(path)
    path.stat()  # report a missing file before an unknown suffix
    name = format if format is not None else _format_of(path)
    if name not in FORMATS:
        raise ValueError(f"unknown format {name!r}; there are {', '.join(FORMATS)}")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype {np.dtype(dtype)} is neither float32 nor float64")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features={n_features} should be at least 1")
    options: dict[str, Any] = {} if target is None else {"target": target}
    if zero_based != "auto":
        options["zero_based"] = zero_based
    _require_options(name, options)
    return path, name, {"dtype": np.dtype(dtype), "n_features": n_features, **options}


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The stream of a file that is not empty; errors of a reader begin with the path."""
    with _errors_name(path), _OPENERS.get(path.suffix.lower(), _open_plain)(path) as stream:
        if not stream.peek(1):
            raise ValueError("the file is empty")
        yield stream


def _open_plain(path: Path) -> BufferedReader:
    return path.open("rb")


def _format_of(path: Path) -> str:
    suffix = Path(path.stem).suffix if path.suffix.lower() in _OPENERS else path.suffix
    for name, known in FORMATS.items():
        if suffix.lower() in known.suffixes:
            return name
    known_suffixes = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
    raise ValueError(
        f"{path}: unknown suffix {suffix!r}; known are {known_suffixes}, each also with {', '.join(_OPENERS)}. "
        f"Otherwise pass format= as one of {', '.join(FORMATS)}"
    )


def _require_options(name: str, given: Iterable[str]) -> None:
    """Raise for an option that the format does not have."""
    for option in sorted(set(given) - FORMATS[name].options):
        having = " and ".join(other for other, known in FORMATS.items() if option in known.options)
        raise ValueError(f"{option} applies to {having}, not to {name}")


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Turn errors of a reader into a ValueError that starts with the path."""
    try:
        yield
    except (ValueError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path}: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise ValueError(f"{path}: {error}") from error  # a damaged .gz or .bz2
