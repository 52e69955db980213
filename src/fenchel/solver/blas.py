"""How many threads the linear algebra libraries below NumPy and SciPy may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[Any] = []  # the limiter that the first run made, once for every run that is inside


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """At most so many threads in BLAS and LAPACK.

    Their threads wait for one another in loops: on busy cores a factor of a small matrix can take a thousand times
    longer with two threads than with one. The setting belongs to the whole process, so that of several runs side by
    side the first one sets it and the last one puts it back.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _libraries().limit(limits=limit, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limiter = _inside.pop()
            if not _inside:
                limiter.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
