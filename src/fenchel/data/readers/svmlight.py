"""svmlight (LIBSVM) files, read in chunks, in little more memory than the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Literal

import numpy as np
from scipy import sparse

from fenchel._core import kernels
from fenchel.data.readers.arrays import Growing, finite
from fenchel.data.typing import Array, Dtype

ZeroBased = bool | Literal["auto"]


def read_svmlight(
    stream: IO[bytes],
    *,
    dtype: Dtype,
    n_features: int | None,
    zero_based: ZeroBased = "auto",
    chunk_bytes: int = 1 << 18,
) -> tuple[sparse.csr_array, Array]:
    """Read `label [qid:N] index:value ... [# comment]` lines; `qid` is skipped.

    Chunks larger than 256 kB are not faster; files of short entries (a9a) took twice as long in chunks of 4 MB.
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is neither True, False nor 'auto'")
    labels, lengths, values = Growing(np.float64), Growing(np.int64), Growing(dtype)
    indices = Growing(np.int32)
    limit = np.iinfo(np.int32).max
    lowest, highest = limit, -1
    for rows in _parsed(stream, chunk_bytes):
        labels.extend(finite(rows.labels, np.dtype(np.float64), rows.name_label))
        lengths.extend(rows.lengths)
        if rows.indices.size:
            lowest, highest = min(lowest, int(rows.indices.min())), max(highest, int(rows.indices.max()))
        if lowest == 0 and zero_based is False:
            where = rows.name_value(int(rows.indices.argmin()))
            raise ValueError(f"{where} counts from 0, but zero_based=False")
        if highest > limit:
            indices.widen(np.int64)
        indices.extend(rows.indices)
        values.extend(finite(rows.values, dtype, rows.name_value))
    if labels.size == 0:
        raise ValueError("there are no samples")
    first = 1 if zero_based is False or (zero_based == "auto" and lowest > 0) else 0
    X = _matrix(values.array(), indices.array(), lengths.array(), first, _width(highest, first, n_features))
    return X, labels.array()


def svmlight_batches(
    stream: IO[bytes],
    *,
    rows: int,
    dtype: Dtype,
    n_features: int | None,
    zero_based: bool = False,
    chunk_bytes: int = 1 << 18,
) -> Iterator[tuple[sparse.csr_array, Array]]:
    """The same lines, so many samples at a time; the width has to be known."""
    if n_features is None:
        raise ValueError("pass n_features: the first lines of an svmlight file do not tell how many there are")
    first = 0 if zero_based else 1
    index = np.dtype(np.int32 if n_features <= np.iinfo(np.int32).max else np.int64)
    parts: list[tuple[sparse.csr_array, Array]] = []
    count = 0
    for chunk in _parsed(stream, chunk_bytes):
        labels = finite(chunk.labels, np.dtype(np.float64), chunk.name_label)
        if chunk.indices.size:
            if int(chunk.indices.min()) < first:
                where = chunk.name_value(int(chunk.indices.argmin()))
                raise ValueError(f"{where} counts from 0, but zero_based=False")
            _width(int(chunk.indices.max()), first, n_features)
        values = finite(chunk.values, dtype, chunk.name_value)
        indices = chunk.indices.astype(index)
        parts.append((_matrix(values, indices, chunk.lengths, first, n_features), labels))
        count += len(labels)
        if count < rows:
            continue
        X, y = _joined(parts)
        for start in range(0, count - rows + 1, rows):
            yield X[start : start + rows], y[start : start + rows]
        done = count - count % rows
        parts, count = [(X[done:], y[done:])], count - done
    if count:
        yield _joined(parts)


def _joined(parts: list[tuple[sparse.csr_array, Array]]) -> tuple[sparse.csr_array, Array]:
    if len(parts) == 1:
        return parts[0]
    X = sparse.vstack([X for X, _ in parts], format="csr")
    return X, np.concatenate([y for _, y in parts])


@dataclass(frozen=True)
class _Rows:
    """A parsed chunk, with its text for the line numbers of errors."""

    text: bytes
    first_line: int
    labels: Array
    lengths: Array
    indices: Array
    values: Array

    def line(self, row: int) -> int:
        lines = enumerate(self.text.split(b"\n"), start=self.first_line)
        return next(islice((line for line, text in lines if text.partition(b"#")[0].strip()), row, None))

    def name_label(self, row: int) -> str:
        return f"line {self.line(row)}: the label"

    def name_value(self, k: int) -> str:
        row = int(np.searchsorted(np.cumsum(self.lengths), k, side="right"))
        return f"line {self.line(row)}: feature {self.indices[k]}"


def _parsed(stream: IO[bytes], chunk_bytes: int) -> Iterator[_Rows]:
    line = 1
    for text in _whole_lines(stream, chunk_bytes):
        yield _Rows(text, line, *kernels.parse_svmlight(text, line))
        line += text.count(b"\n")


def _whole_lines(stream: IO[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Chunks of the stream that end with a whole line."""
    pending: list[bytes] = []
    while block := stream.read(chunk_bytes):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*pending, block[:cut]))
            pending = []
        pending.append(block[cut:])
    if rest := b"".join(pending):
        yield rest


def _width(highest: int, first: int, n_features: int | None) -> int:
    if n_features is None:
        if highest < 0:
            raise ValueError("no line has an index:value pair: pass n_features")
        return highest + 1 - first
    if highest >= n_features + first:
        raise ValueError(f"index {highest} is beyond n_features={n_features} (indices here count from {first})")
    return n_features


def _matrix(values: Array, indices: Array, lengths: Array, first: int, width: int) -> sparse.csr_array:
    """A CSR matrix of the parts, without a copy."""
    indptr = np.zeros(lengths.size + 1, dtype=indices.dtype if values.size <= np.iinfo(np.int32).max else np.int64)
    np.cumsum(lengths, out=indptr[1:])
    indices -= first
    return sparse.csr_array((values, indices, indptr), shape=(lengths.size, width))
