"""How many threads are worth it."""

from __future__ import annotations

import os

import numpy as np

#: Below this many entries a product is over before a second thread has started.
ENTRIES_PER_THREAD = 100_000


def usable_threads(entries: int, limit: int | None) -> int:
    """As many as asked for, or as there are cores, and no more than the entries keep busy."""
    if isinstance(limit, bool | np.bool_) or not (
        limit is None or (isinstance(limit, int | np.integer) and limit >= 1)
    ):
        raise ValueError(
            f"the number of threads must be an integer of at least 1, or None for all cores; got {limit!r}"
        )
    return max(1, min(cores() if limit is None else limit, entries // ENTRIES_PER_THREAD))


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
