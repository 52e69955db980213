"""What several problems on the same matrix know of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels


@dataclass
class Hold:
    """What is known of a matrix that nobody changes as long as this is not over: proofs may rest on it until then."""

    shorts: dict[bool, kernels.Int16Screen] = field(default_factory=dict)
    """All columns in sixteen bits, as they are (False) or without their means (True)."""
    gram: tuple[NDArray[np.float64], NDArray[np.float64] | None] | None = None
    """The Gram matrix of rows that count the same, and the means that were taken off, if there are some."""
    over: bool = False

    def end(self) -> None:
        """From now on entries may change."""
        self.over, self.gram = True, None
        self.shorts.clear()
