"""What a kernel is: blocks of values, with a bound on their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from fenchel.data.typing import Matrix, Vector
from fenchel.kernel.samples import Samples

#: Covers the rounding of a bound made of a few positive terms.
UP = 1.0 + 1e-9


class NotPositiveSemidefinite(ValueError):
    """A kernel matrix has a negative eigenvalue."""


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How far computed values K_ij are from the kernel in exact arithmetic: at most

        |K_ij| (u_i + v_j) + p_i q_j + constant,

    with `relative` = (u, v) and `product` = (p, q), numbers for each row and each column.
    """

    relative: tuple[Vector, Vector]
    product: tuple[Vector, Vector]
    constant: float

    @classmethod
    def uniform(cls, rows: int, columns: int, relative: float = 0.0, constant: float = 0.0) -> Accuracy:
        """The same bound for all values; none by default, for values that are the kernel."""
        half = np.full(rows, 0.5 * relative), np.full(columns, 0.5 * relative)
        return cls(half, (np.zeros(rows), np.zeros(columns)), constant)

    def errors(self, K: Matrix) -> Matrix:
        """The bound for each value."""
        (u, v), (p, q) = self.relative, self.product
        return (np.abs(K) * (u[:, None] + v) + p[:, None] * q + self.constant) * UP


class Kernel(ABC):
    """A positive semidefinite function k(x, x') of two samples, evaluated for blocks of samples in float64.

    Of your own subclasses `Gram` verifies it.

    Attributes
    ----------
    nonnegative : bool
        Whether all values are at least 0.
    is_given : bool
        Whether the values are somebody else's, so that they are checked as they come.
    """

    nonnegative = False
    is_given = False

    @abstractmethod
    def block(self, A: Samples, B: Samples) -> Matrix:
        """k(a_i, b_j) for all i and j, a new array."""

    @abstractmethod
    def accuracy(self, A: Samples, B: Samples) -> Accuracy:
        """A bound on the errors of these values."""

    @abstractmethod
    def diagonal(self, A: Samples) -> tuple[Vector, Vector]:
        """k(a_i, a_i), and bounds on their errors."""

    def rows_at_once(self, columns: int) -> int:
        """How many rows of so many values a block should have at least; more than 1 where one row costs as much."""
        return 1

    def fitted(self, A: Samples) -> Self:
        """The kernel with parameters that depend on the samples, such as gamma="scale", as numbers."""
        return self
