"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence

#: More rows than these are printed as the first and the last few.
MOST_ROWS, SHOWN = 24, 10


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns set flush right; of many rows the first and the last."""
    if len(rows) > MOST_ROWS:
        rows = [*rows[:SHOWN], ["..."] * len(names), *rows[-SHOWN:]]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (names, *rows)
    )
