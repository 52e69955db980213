"""Tables with one column per feature and one for the target: csv and parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from types import ModuleType
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from fenchel.data.readers.arrays import Growing, Loaded, check_target, check_width, finite
from fenchel.data.typing import Array, Dtype

if TYPE_CHECKING:
    import pyarrow

# The column of the target: a name, a position, None for the last column, False for none.
Target: TypeAlias = str | int | Literal[False] | None
# The number of a line in the file, and its cells.
Line: TypeAlias = tuple[int, list[str]]

#: Cells that mean a missing value, in lower case.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})


def target_position(target: Target, names: Sequence[str]) -> int | None:
    """The position of the target column, or None if there is none."""
    if target is False:
        return None
    if isinstance(target, str):
        if names.count(target) != 1:
            found = "is the name of several columns" if target in names else "is not a column"
            raise ValueError(f"target {target!r} {found}; there are {_listed(names)}")
        return names.index(target)
    position = -1 if target is None else target
    if target is True or not -len(names) <= position < len(names):
        raise ValueError(f"target={target!r} is not one of the {len(names)} columns")
    return position % len(names)


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def read_csv(stream: IO[bytes], *, dtype: Dtype, n_features: int | None, target: Target = None) -> Loaded:
    """Read lines of numbers; the first line may name the columns."""
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        return _read_rows(_rows(text), dtype, n_features, target)


def csv_batches(
    stream: IO[bytes], *, rows: int, dtype: Dtype, n_features: int | None, target: Target = None
) -> Iterator[Loaded]:
    """The same lines, so many samples at a time; the first ones tell whether labels are numbers or text."""
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        is_text = None
        for X, labels in _parts(_rows(text), rows, dtype, n_features, target):
            yield X, None if labels is None else labels.array(is_text)
            is_text = labels.is_text() if labels is not None and is_text is None else is_text


def _read_rows(rows: Iterator[Line], dtype: Dtype, n_features: int | None, target: Target) -> Loaded:
    X, every, width = Growing(dtype), _Labels(), 0
    has_target = target is not False
    for part, labels in _parts(rows, 4096, dtype, n_features, target):
        X.extend(part)
        width = part.shape[1]
        if labels is not None:
            every.extend(labels)
    return X.array().reshape(-1, width), every.array() if has_target else None


def _parts(
    rows: Iterator[Line], size: int, dtype: Dtype, n_features: int | None, target: Target
) -> Iterator[tuple[Array, _Labels | None]]:
    """Features and labels of so many samples at a time; at least one sample."""
    start = list(islice(rows, 2))
    if not start:
        raise ValueError("there are no samples")
    header = isinstance(target, str) or _is_header(*(cells for _, cells in start))
    width = len(start[0][1])
    position, features = _columns(start[0][1], header, target)
    check_width(len(features), n_features)
    samples, is_empty = chain(start[1:] if header else start, rows), True
    while batch := list(islice(samples, size)):
        labels, is_empty = _Labels(), False
        for line, cells in batch:
            if len(cells) != width:
                raise ValueError(f"line {line} has {len(cells)} cells, but the first line has {width}")
            if position is not None:
                labels.append(line, cells.pop(position))
        yield _numbers(batch, features, dtype), labels if position is not None else None
    if is_empty:
        raise ValueError("there is a header, but there are no samples")


def _columns(first: list[str], header: bool, target: Target) -> tuple[int | None, list[str]]:
    """The position of the target, and the names of the other columns for messages."""
    names = [cell.strip() for cell in first] if header else [str(k + 1) for k in range(len(first))]
    position = target_position(target, names)
    called = [f"column {name!r}" if header else f"column {name}" for name in names]
    features = [name for k, name in enumerate(called) if k != position]
    if not features:
        raise ValueError(
            f"the target, {called[0]}, is the only one; columns are separated by a comma, semicolon or tab"
        )
    return position, features


def _rows(text: IO[str]) -> Iterator[Line]:
    """The nonblank lines: line number and cells."""
    head = list(islice(text, 64))
    reader = csv.reader(chain(head, text), delimiter=_delimiter(head), skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            if len(cells) > 1 or "".join(cells).strip():
                yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error


def _delimiter(head: Iterable[str]) -> str:
    """The delimiter that gives the first two lines the same number of cells; a comma last, it may be a decimal sign."""
    lines = list(islice((line for line in head if line.strip()), 2))
    for delimiter in "\t;,":
        widths = {len(cells) for cells in csv.reader(lines, delimiter=delimiter, skipinitialspace=True)}
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return ","


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which float() ignores


def _is_text(cell: str) -> bool:
    return cell.strip().lower() not in MISSING and not _is_number(cell)


def _is_header(first: list[str], second: Sequence[str] = ()) -> bool:
    """Whether the first line names columns: it has no number, or text above a number."""
    above_number = any(_is_text(name) and _is_number(cell) for name, cell in zip(first, second, strict=False))
    return above_number or not any(map(_is_number, first))


def _numbers(batch: list[Line], features: list[str], dtype: Dtype) -> Array:
    rows = [cells for _, cells in batch]
    try:
        if "_" in "".join(chain.from_iterable(rows)):
            raise ValueError("float() ignores underscores")
        values = np.array(rows, dtype=np.float64)
    except ValueError:
        raise ValueError(_first_bad_cell(batch, features)) from None

    def where(k: int) -> str:
        row, column = divmod(k, len(features))
        return f"line {batch[row][0]}, {features[column]}"

    return finite(values, dtype, where)


def _first_bad_cell(batch: list[Line], features: list[str]) -> str:
    line, name, cell = next(
        (line, name, cell)
        for line, cells in batch
        for name, cell in zip(features, cells, strict=True)
        if not _is_number(cell)
    )
    if _is_text(cell):
        return (
            f"line {line}, {name} is text, {cell!r}: encode it as numbers first, for example with scikit-learn's "
            "OneHotEncoder"
        )
    state = f"missing, {cell!r}" if cell.strip() else "empty"
    return f"line {line}, {name} is {state}: fill it in or leave the line out"


class _Labels:
    """The cells of a target column: numbers if all of them are, else text."""

    def __init__(self) -> None:
        self._cells: list[str] = []
        self._missing: tuple[int, str] | None = None
        self._first_line = 0

    def append(self, line: int, cell: str) -> None:
        cell = cell.strip()
        if not cell:
            raise ValueError(f"line {line}: the target is empty")
        self._first_line = self._first_line or line
        if self._missing is None and cell.lower() in MISSING:
            self._missing = line, cell
        self._cells.append(cell)

    def extend(self, other: _Labels) -> None:
        """Append those of other lines."""
        self._cells += other._cells
        self._missing = self._missing or other._missing

    def is_text(self) -> bool:
        """Whether some cell is not a number."""
        return any(map(_is_text, self._cells))

    def array(self, is_text: bool | None = None) -> Array:
        """Convert the cells; `NA` among numbers is a missing number, among text a label. None: as they are."""
        own = self.is_text()
        if own and is_text is False:
            raise ValueError(f"from line {self._first_line} on a target is text, but those before it are numbers")
        if own or is_text:
            return np.array(self._cells)
        if self._missing is not None:
            raise ValueError("line {}: the target is missing, {!r}".format(*self._missing))
        return check_target(np.array(self._cells).astype(np.float64), len(self._cells))


def read_parquet(stream: IO[bytes], *, dtype: Dtype, n_features: int | None, target: Target = None) -> Loaded:
    """Read columns of numbers, batch by batch."""
    arrow, parquet = _pyarrow()
    file = parquet.ParquetFile(stream)
    columns, label_column = _parquet_columns(arrow, file, n_features, target)
    X, labels, done = np.empty((file.metadata.num_rows, len(columns)), dtype=dtype), [], 0
    for batch in file.iter_batches():
        _fill(X[done : done + batch.num_rows], arrow, batch, columns, dtype, done)
        if label_column is not None:
            labels.append(_without_nulls(batch.column(label_column), file.schema_arrow.names[label_column], done))
        done += batch.num_rows
    return X, check_target(_column_labels(arrow, labels), len(X)) if labels else None


def parquet_batches(
    stream: IO[bytes], *, rows: int, dtype: Dtype, n_features: int | None, target: Target = None
) -> Iterator[Loaded]:
    """The same columns, so many samples at a time."""
    arrow, parquet = _pyarrow()
    file = parquet.ParquetFile(stream)
    columns, label_column = _parquet_columns(arrow, file, n_features, target)
    done = 0
    for batch in file.iter_batches(batch_size=rows):
        X, y = np.empty((batch.num_rows, len(columns)), dtype=dtype), None
        _fill(X, arrow, batch, columns, dtype, done)
        if label_column is not None:
            labels = _without_nulls(batch.column(label_column), file.schema_arrow.names[label_column], done)
            y = check_target(_column_labels(arrow, [labels]), len(X))
        yield X, y
        done += batch.num_rows


def _parquet_columns(
    arrow: ModuleType, file: pyarrow.parquet.ParquetFile, n_features: int | None, target: Target
) -> tuple[list[int], int | None]:
    """The columns of the features, and that of the target."""
    schema = file.schema_arrow
    if file.metadata.num_rows == 0:
        raise ValueError("there are no samples")
    # pandas stores an index other than 0, 1, 2, ... as a column, which is not a feature
    columns = [k for k, name in enumerate(schema.names) if not re.fullmatch(r"__index_level_\d+__", name)]
    position = target_position(target, [schema.names[k] for k in columns])
    label_column = None if position is None else columns.pop(position)
    if not columns:
        raise ValueError("there is no column besides the target")
    check_width(len(columns), n_features)
    for k in columns:
        _check_numeric(arrow, schema.field(k))
    return columns, label_column


def _fill(X: Array, arrow: ModuleType, batch: pyarrow.RecordBatch, columns: list[int], dtype: Dtype, done: int) -> None:
    """The features of a batch, which begins with row number `done`."""
    for j, k in enumerate(columns):
        name = batch.schema.names[k]
        column = _without_nulls(batch.column(k), name, done)
        numbers = column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
        X[:, j] = finite(numbers, dtype, partial(_place, name, done))


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("reading parquet needs pyarrow: pip install fenchel[parquet]") from error
    return pyarrow, pyarrow.parquet


def _place(name: str, start: int, k: int) -> str:
    """The position of the k-th cell of a batch, for messages."""
    return f"row {start + k} (counting from 0), column {name!r}"


def _check_numeric(arrow: ModuleType, field: pyarrow.Field) -> None:
    kinds = ("is_integer", "is_floating", "is_boolean", "is_decimal")
    if not any(getattr(arrow.types, kind)(field.type) for kind in kinds):
        raise ValueError(f"column {field.name!r} holds {field.type}: encode it as numbers first")


def _without_nulls(column: pyarrow.Array, name: str, start: int) -> pyarrow.Array:
    if column.null_count:
        raise ValueError(f"{_place(name, start, column.is_null().to_pylist().index(True))} is missing")
    return column


def _column_labels(arrow: ModuleType, parts: list[pyarrow.Array]) -> Array:
    column = arrow.chunked_array(parts)
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
    labels: Array = np.array(column.to_pylist(), dtype=np.str_) if is_text else column.to_numpy()
    return labels
