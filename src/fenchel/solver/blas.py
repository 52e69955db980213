"""The number of threads of BLAS and LAPACK."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_inside: list[dict[Any, int]] = []  # the settings before the first run, once for each active run


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """At most `limit` threads in BLAS and LAPACK.

    Their threads spin while they wait: on busy cores the factorisation of a small matrix can take a thousand times
    longer with two threads than with one. The setting is global; of concurrent runs the first one sets it and the last
    one restores it.
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
    """Limit the libraries that have more threads (setting is slow); their numbers before."""
    before = {library: library.num_threads for library in _libraries() if library.num_threads > limit}
    for library in before:
        library.set_num_threads(limit)
    return before


@cache
def _libraries() -> tuple[Any, ...]:
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
