"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence

#: More rows than these are printed as the first and the last few.
MOST_ROWS, SHOWN = 24, 10


def table(names: Sequence[str], rows: Sequence[Sequence[str]], left: bool = False) -> str:
    """Columns set flush right (for words: left); of many rows the first and the last."""
    if len(rows) > MOST_ROWS:
        rows = [*rows[:SHOWN], ["..."] * len(names), *rows[-SHOWN:]]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    set_flush = str.ljust if left else str.rjust
    return "\n".join(
        "  ".join(set_flush(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    )
