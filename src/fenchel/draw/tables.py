"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def table(
    names: Sequence[str], rows: Sequence[Sequence[str]], most: int = 24, shown: int = 10, left: bool = False
) -> str:
    """Columns set flush right (for words: left); of more than `most` rows the first and the last `shown`."""
    if len(rows) > most:
        rows = [*rows[:shown], ["..."] * len(names), *rows[-shown:]]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    set_flush = str.ljust if left else str.rjust
    return "\n".join(
        "  ".join(set_flush(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    )
