"""What a computation may take, in numbers and multiplications: one place for all that decide by the sizes of arrays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LimitsTuning:
    """Sizes of arrays and of work.

    `python -m benchmarks.tuning all data.limits`: with `block` 2^16 0.70 of the time, but a gap 129 times as large,
    with 2^24 1.44; with `product` 10^4 and 10^6 1.12 and 0.89, of rows of few milliseconds; with `dense` 1 2.38, and
    equations are not certified, with half 1.03; with `work` 1 2.43 and the same, with half 1.02.
    """

    product: int = 100_000  # entries of a product that takes about as long as to start a thread for it,
    block: int = 2**20  # numbers that are made at a time, of arrays that are not kept: 8 MB
    dense: int = 36_000_000  # numbers of an array that is made and kept, as of a Gram matrix of 6000 rows: 288 MB
    work: float = 4e11  # multiplications of a factorisation: 7 s at 5.7e10 a second of one core,
    step: float = 1e9  # and of one that every step of a solver makes


TUNING = LimitsTuning()


def blocks(count: int, columns: int, least: int = 1) -> list[slice]:
    """So many rows, of so many columns, in consecutive blocks of at least `least` rows."""
    return parts(count, max(least, TUNING.block // max(1, columns)))


def parts(count: int, step: int, start: int = 0) -> list[slice]:
    """start .. count - 1 in consecutive parts of so many."""
    return [slice(first, min(first + step, count)) for first in range(start, count, step)]


def is_factorable(rows: int, columns: int) -> bool:
    """Whether the Gram matrix of so many rows, of so many columns, is worth its memory and its multiplications."""
    return rows * rows <= TUNING.dense and rows * rows * float(columns) <= TUNING.work


def fits(rows: int, columns: int) -> bool:
    """Whether an array of this shape may be made and kept."""
    return float(rows) * columns <= TUNING.dense


def may_factor(order: int, width: int = 0) -> bool:
    """Whether every step may factor a matrix of this order, and form it of rows that are so wide."""
    return float(order) ** 2 * (order + width) <= TUNING.step
