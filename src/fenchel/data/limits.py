"""How much memory and time one step may take, whatever the algorithm."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LimitTuning:
    """WAIT"""

    entries: int = 2**25  # numbers of a matrix that is formed for a while: 256 MB
    multiplications: float = 1e9  # of a factorisation at every step: a few tenths of a second


TUNING = LimitTuning()


def fits(rows: int, columns: int) -> bool:
    """Whether a matrix may be formed for a while."""
    return float(rows) * columns <= TUNING.entries


def may_factor(order: int, width: int = 0) -> bool:
    """Whether a matrix of this order may be factored at every step, after it is formed of `width` products an entry."""
    return float(order) ** 2 * (order + width) <= TUNING.multiplications
