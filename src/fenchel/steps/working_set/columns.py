"""Some groups of weights on their own: the working set, or all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.data.design import Design
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks


@dataclass(frozen=True)
class ColumnSet:
    """Some groups of columns, copied out of X; all other weights are zero."""

    members: Indices  # the columns of X, in the order of this set
    design: Design
    blocks: Blocks
    groups: Indices | None = None  # those that are here; None if all are

    @classmethod
    def all(cls, problem: Problem) -> ColumnSet:
        """All columns; nothing is copied."""
        d = problem.shape[1]
        blocks = problem.penalty.blocks(d)
        assert blocks is not None
        return cls(np.arange(d), problem.design, blocks)

    def only(self, groups: Indices, by_columns: bool = False) -> ColumnSet:
        """Some of all groups; sparse rows stay rows, or become columns."""
        columns, blocks = self.blocks.only(groups)
        return ColumnSet(self.members[columns], self.design.only(columns, by_columns), blocks, groups)

    def under(self, blocks: Blocks) -> ColumnSet:
        """The same columns under another penalty, given for all of them; copies that were made are kept."""
        other = object.__new__(ColumnSet)
        other.__dict__.update(self.__dict__, blocks=blocks if self.groups is None else blocks.only(self.groups)[1])
        return other

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.members)

    def squares(self, fractions: Vector) -> Vector:
        """sum_i p_i x_ij^2 for every column."""
        lines, n = self.design.lines, self.design.shape[0]
        if self.design.by_rows:
            return lines.squares_some(np.arange(n), fractions)
        return lines.energy_some(np.arange(self.width), fractions)

    @cached_property
    def rows(self) -> Design:
        """Stored by rows if sparse, for Gram matrices."""
        return self.design.stored_by_rows() if self.design.is_sparse else self.design

    @cached_property
    def columns(self) -> Design:
        """Stored by columns, for passes along them."""
        return self.design.stored_by_columns()
