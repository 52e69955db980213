"""p-norms, 1 <= p <= inf."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def check_exponent(p: float) -> None:
    """Raise unless there is a p-norm."""
    if not p >= 1:
        raise ValueError(f"p must be at least 1, got {p}")


def norm_of_two(a: NDArray[np.float64], b: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """The p-norms of pairs, safe against overflow."""
    largest = np.maximum(a, b)
    if np.isinf(p):
        return np.asarray(largest)
    return np.asarray(largest * ((a / largest) ** p + (b / largest) ** p) ** (1.0 / p))
