"""The number that everything random in a run comes from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """The number that everything random comes from."""
    if isinstance(random_state, bool | np.bool_):
        raise ValueError(f"random_state must be a whole number, a RandomState or None; got {random_state!r}")
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
