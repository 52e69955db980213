"""How many threads the linear algebra libraries below NumPy and SciPy may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_limits: list[Any] = []  # the limiter of whoever came first, and a place for everyone inside


@contextmanager
def blas_threads(limit: int | None) -> Iterator[None]:
    """At most so many threads in BLAS and LAPACK; None leaves them alone.

    Their threads wait for one another in loops: on busy cores a factor of a small matrix can take a thousand times
    longer with two threads than with one. The setting belongs to the whole process, so that of several runs side by
    side the first one sets it and the last one puts it back.
    """
    if limit is None:
        yield
        return
    with _lock:
        _limits.append(None if _limits else _libraries().limit(limits=limit, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            first = _limits[0]
            _limits.pop()
            if not _limits:
                first.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
