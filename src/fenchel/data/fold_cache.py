"""Quantities derived from X that the folds of one search share."""

from __future__ import annotations

from dataclasses import dataclass, field

from fenchel._core import kernels
from fenchel.data.typing import Matrix, Vector


@dataclass
class FoldCache:
    """Quantities derived from X, shared by the folds of one search.

    Valid while X is unchanged; `end()` empties it.
    """

    screens: dict[bool, kernels.Int16Screen] = field(default_factory=dict)
    """All columns in sixteen bits, as they are (False) or centred (True)."""
    gram: tuple[Matrix, Vector | None] | None = None
    """The Gram matrix of all rows with equal weights, and the column means that were subtracted first, if any."""
    over: bool = False
    """Whether the search has ended."""

    def end(self) -> None:
        """Empty the cache: from now on the entries of X may change."""
        self.over, self.gram = True, None
        self.screens.clear()
