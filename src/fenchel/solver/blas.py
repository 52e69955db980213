"""How many threads the linear algebra libraries below NumPy and SciPy may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[dict[Any, int]] = []  # what the first run changed, once for every run that is inside


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """At most so many threads in BLAS and LAPACK.

    Their threads wait for one another in loops: on busy cores a factor of a small matrix can take a thousand times
    longer with two threads than with one. The setting belongs to the whole process, so that of several runs side by
    side the first one sets it and the last one puts it back.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _limited(limit))
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                for library, threads in before.items():
                    library.set_num_threads(threads)


def _limited(limit: int) -> dict[Any, int]:
    """Limit the libraries; those that had more, with what they had. Asking is quick, setting is not."""
    before = {library: library.num_threads for library in _libraries() if library.num_threads > limit}
    for library in before:
        library.set_num_threads(limit)
    return before


@cache
def _libraries() -> tuple[Any, ...]:
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
