"""The stop rule, the trace, and what a solver returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fenchel.certificate import Certificate
from fenchel.data.typing import Vector


class NotCertifiedWarning(ConvergenceWarning):  # type: ignore[misc]
    """A fit ended before its certificate reached the tolerance; the message says which gap was reached."""


@dataclass(frozen=True)
class Stop:
    """The stop rule, the same for every solver: gap <= tol |P|, or gap <= atol, or too many steps, or too many
    seconds. Where P is zero as far as double precision can tell (`Certificate.vanishes`), it is done as well.
    """

    tol: float = 1e-4
    atol: float = 0.0
    max_iter: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "atol"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 0):
                raise ValueError(f"{name} must be a number >= 0, got {value!r}")
        if self.max_iter is not None and not (
            isinstance(self.max_iter, int | np.integer) and self.max_iter >= 1 and self.max_iter is not True
        ):
            raise ValueError(f"max_iter must be a positive integer or None, got {self.max_iter!r}")
        if self.max_seconds is not None and not (_is_number(self.max_seconds) and self.max_seconds > 0):
            raise ValueError(f"max_seconds must be a positive number or None, got {self.max_seconds!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


@dataclass(frozen=True)
class Row:
    """One row of the trace."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    gap: float
    nonzeros: int


@dataclass(frozen=True)
class Check(Row):
    """What a callback sees: the row that the trace keeps, and the best model so far."""

    w: Vector = field(repr=False)
    b: Any = field(repr=False)


class Trace(Sequence[Row]):
    """The history of a run, one row a check. Columns by name: `trace["gap"]`. `checking` is the time, in seconds, that
    all checks took together.
    """

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self.checking = 0.0

    def append(self, row: Row) -> None:
        """Add a row; weights are kept only by the result."""
        self._rows.append(row if type(row) is Row else Row(*(getattr(row, name) for name in COLUMNS)))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in COLUMNS:
                raise KeyError(f"the trace has no column {key!r}; it has {', '.join(COLUMNS)}")
            return np.array([getattr(row, key) for row in self._rows])
        return self._rows[key]

    def __repr__(self) -> str:
        return f"Trace({len(self)} checks)"


COLUMNS = ("iteration", "seconds", "primal", "dual", "gap", "nonzeros")
Callback = Callable[[Check], Any]


@dataclass(frozen=True)
class Result:
    """A solved problem: the best model found, and the proof of how good it is.

    `status` is "certified", or says why the run ended before that: "max_iter", "max_seconds", "interrupted",
    "callback", "stalled" (what is left of the gap is rounding) or "overflow". For a `MulticlassProblem` w is
    k x d, b has k entries and alpha is n x k.
    """

    w: Vector = field(repr=False)
    b: Any
    alpha: Vector = field(repr=False)
    certificate: Certificate
    trace: Trace
    n_iter: int
    solver: str
    status: str
