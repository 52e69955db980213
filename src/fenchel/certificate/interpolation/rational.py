"""Linear algebra in rational arithmetic: what follows from few rows, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import qr

from fenchel.data.typing import Indices, Matrix, Vector


@dataclass(frozen=True)
class RationalTuning:
    """What may be computed in rational arithmetic.

    `python -m benchmarks.tuning all certificate.interpolation.rational`: 1.05 of the time with half; with 1 repeated
    equations are not certified, in 0.05 of the time.
    """

    most_work: int = 150_000  # multiplications of an elimination


TUNING = RationalTuning()
#: What may be zero beside the largest: then rational arithmetic decides.
NEARLY_ZERO = 1e-9


def implied_rows(rows: Matrix) -> Indices | None:
    """Rows from which all others follow: each of these is a combination of those, in exact arithmetic.

    Rows that are independent up to rounding are taken; the others are reduced by them. None if some row is no
    combination of them, or if that is too much work.
    """
    if rows.size > TUNING.most_work:
        return None
    lengths = np.linalg.norm(rows, axis=1)
    if not np.all((lengths > 0.0) & np.isfinite(lengths)):
        return None
    _, R, order = qr((rows / lengths[:, None]).T, mode="economic", pivoting=True)
    rank = numerical_rank(R)
    if len(rows) * rank * rows.shape[1] > TUNING.most_work:
        return None
    basis: list[tuple[int, list[Fraction]]] = []  # a column, and a row that is 1 there; zero there in all later rows
    for i in order[:rank]:
        left = _reduced(_exactly(rows[i]), basis)
        column = max(range(len(left)), key=lambda j: abs(left[j]))
        if left[column] == 0:
            return None
        basis.append((column, [x / left[column] for x in left]))
    if any(any(_reduced(_exactly(rows[i]), basis)) for i in order[rank:]):
        return None
    return np.sort(order[:rank])


def numerical_rank(R: Matrix) -> int:
    """The number of pivots of a triangular factor, the largest first, that are not nearly zero."""
    diagonal = np.abs(np.diagonal(R))
    return int(np.count_nonzero(diagonal > NEARLY_ZERO * diagonal[0]))


def _exactly(row: Matrix) -> list[Fraction]:
    return [Fraction(float(x)) for x in row]


def _reduced(row: list[Fraction], basis: list[tuple[int, list[Fraction]]]) -> list[Fraction]:
    """What is left of a row, zero in the columns of the basis."""
    for column, other in basis:
        factor = row[column]
        if factor:
            row = [x - factor * y for x, y in zip(row, other, strict=True)]
    return row


def is_small(m: int, d: int) -> bool:
    """Whether m rows of d entries are few enough for `null_vector`: an elimination, and a check of each column."""
    return m**3 <= TUNING.most_work and m * d <= 10 * TUNING.most_work


def null_vector(rows: Matrix, near: Vector) -> list[Fraction] | None:
    """The y with y'rows = 0 exactly whose free entries are those of `near`, scaled to a largest entry of 1.

    None where it is zero. Columns are taken in the order of a factorisation with pivots, up to their rank as far as
    rounding tells; the others are checked.
    """
    m, d = rows.shape
    if not d:
        return _scaled([Fraction(float(x)) for x in near])
    _, R, pivots = qr(rows / np.abs(rows).max(axis=0), mode="economic", pivoting=True)
    for rank in dict.fromkeys((min(m, numerical_rank(R)), min(m - 1, d))):  # rounding may tell too small a rank
        y = _null_vector([_exactly(rows[:, j]) for j in pivots[:rank]], near)
        if y is not None and not any(_times(y, rows[:, j]) for j in range(d)):
            return y
    return None


def _null_vector(table: list[list[Fraction]], near: Vector) -> list[Fraction] | None:
    """The solution of equations, one in each row, whose free unknowns are those of `near`; scaled."""
    m, lead = len(near), list[int]()
    for row in range(len(table)):
        column = max((c for c in range(m) if c not in lead), key=lambda c: abs(table[row][c]), default=None)
        if column is None or table[row][column] == 0:
            return None
        lead.append(column)
        first = table[row][column]
        table[row] = [x / first for x in table[row]]
        for other in range(len(table)):
            if other != row and table[other][column] != 0:
                factor = table[other][column]
                table[other] = [x - factor * y for x, y in zip(table[other], table[row], strict=True)]
    free = [c for c in range(m) if c not in lead]
    y = [Fraction(0)] * m
    for c in free:
        y[c] = Fraction(float(near[c]))
    for row, column in enumerate(lead):
        y[column] = -sum((table[row][c] * y[c] for c in free), Fraction(0))
    return _scaled(y)


def _scaled(y: list[Fraction]) -> list[Fraction] | None:
    largest = max((abs(x) for x in y), default=Fraction(0))
    return [x / largest for x in y] if largest else None


def _times(y: list[Fraction], column: Vector) -> Fraction:
    return sum((value * Fraction(float(x)) for value, x in zip(y, column, strict=True) if x), Fraction(0))
