"""What a computation may take, in numbers and multiplications: one place for all that decide by the sizes of arrays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LimitsTuning:
    """Sizes of arrays and of work."""

    product: int = 100_000  # entries of a product that takes about as long as to start a thread for it,
    block: int = 2**20  # numbers that are made at a time, of arrays that are not kept: 8 MB
    dense: int = 36_000_000  # numbers of an array that is made and kept, as of a Gram matrix of 6000 rows: 288 MB
    work: float = 4e11  # multiplications of a factorisation: 7 s at 5.7e10 a second of one core,
    step: float = 1e9  # and of one that every step of a solver makes


TUNING = LimitsTuning()


def rows_at_a_time(columns: int) -> int:
    """How many rows of so many columns are a block, at least one."""
    return max(1, TUNING.block // max(1, columns))


def is_factorable(rows: int, columns: int) -> bool:
    """Whether the Gram matrix of so many rows, of so many columns, is worth its memory and its multiplications."""
    return rows * rows <= TUNING.dense and rows * rows * float(columns) <= TUNING.work


def fits(rows: int, columns: int) -> bool:
    """Whether an array of this shape may be made and kept."""
    return float(rows) * columns <= TUNING.dense


def may_factor(order: int, width: int = 0) -> bool:
    """Whether every step may factor a matrix of this order, and form it of rows that are so wide."""
    return float(order) ** 2 * (order + width) <= TUNING.step
