"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def table(
    names: Sequence[str], rows: Sequence[Sequence[str]], most: int = 24, shown: int = 10, left: bool = False
) -> str:
    """Columns aligned right (or left); of more than `most` rows the first and the last `shown`."""
    if len(rows) > most:
        rows = [*rows[:shown], ["..."] * len(names), *rows[-shown:]]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    align = str.ljust if left else str.rjust
    return "\n".join(
        "  ".join(align(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    )
