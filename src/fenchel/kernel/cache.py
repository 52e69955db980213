"""Rows of a Gram matrix in a bounded store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Indices, Matrix


@dataclass(eq=False)
class RowCache:
    """The rows used last, of n numbers each, in at most `megabytes` MB; none if not even one fits.

    If all n fit, each has the place of its number, and `store` is the matrix itself once all are there.
    """

    n: int
    megabytes: float
    store: Matrix = field(init=False, repr=False)
    _places: OrderedDict[int, int] = field(init=False, repr=False, default_factory=OrderedDict)
    _lock: threading.RLock = field(init=False, repr=False, default_factory=threading.RLock)

    def __post_init__(self) -> None:
        capacity = int(min(self.n, self.megabytes * 2**20 // (8 * self.n)))
        self.store = np.empty((capacity, self.n))  # pages are taken from the system when they are written

    @property
    def capacity(self) -> int:
        """The most rows."""
        return len(self.store)

    @property
    def holds_all(self) -> bool:
        """Whether all rows fit."""
        return self.capacity == self.n

    @property
    def is_complete(self) -> bool:
        """Whether all rows are there."""
        return len(self._places) == self.n

    def missing(self, which: Indices) -> Indices:
        """Those of the rows, each once, that are not there."""
        places = self._places
        return np.array([i for i in dict.fromkeys(which.tolist()) if i not in places], dtype=np.int64)

    def rows(self, which: Indices, compute: Callable[[Indices], Matrix]) -> Matrix:
        """Some rows, as a new array; those that are not there are computed, and kept instead of the oldest."""
        with self._lock:
            missing = self.missing(which)
            if len(missing) <= self.capacity and len(which):
                self._make_room(missing, which)
                if len(missing):
                    self._keep(missing, compute(missing))
                if len(set(which.tolist())) <= self.capacity:
                    return self.store[self._touch(which)]
            out = np.empty((len(which), self.n))
            known = np.array([i in self._places for i in which.tolist()], dtype=bool)
            out[known] = self.store[self._touch(which[known])]
            if not known.all():
                out[~known] = compute(which[~known])
            return out

    def known(self, which: Indices, columns: Indices) -> tuple[Indices, Matrix]:
        """Which of the rows are there, by their places in the list, and some columns of them."""
        with self._lock:
            at = np.array([k for k, i in enumerate(which.tolist()) if i in self._places], dtype=np.int64)
            return at, self.store[np.ix_(self._touch(which[at]), columns)]

    def complete(self, compute: Callable[[slice, Matrix], None], parts: Sequence[slice]) -> Matrix:
        """The matrix itself, if all rows fit: those that are not there are written into their places, part by part."""
        with self._lock:
            for part in () if self.is_complete else parts:
                numbers = range(part.start, part.stop)
                if not all(i in self._places for i in numbers):
                    compute(part, self.store[part])
                    self._places.update(zip(numbers, numbers, strict=True))
            return self.store

    @property
    def free(self) -> int:
        """How many more rows fit without another one leaving."""
        return self.capacity - len(self._places)

    def _touch(self, which: Indices) -> Indices:
        places = self._places
        for i in which.tolist():
            places.move_to_end(i)
        return np.array([places[i] for i in which.tolist()], dtype=np.int64)

    def _make_room(self, missing: Indices, wanted: Indices) -> None:
        """Let the oldest rows go that are not wanted now."""
        if self.holds_all:
            return
        self._touch(np.array([i for i in wanted.tolist() if i in self._places], dtype=np.int64))
        while self.free < len(missing):
            self._places.popitem(last=False)

    def _keep(self, missing: Indices, rows: Matrix) -> None:
        if self.holds_all:
            places = missing.tolist()
        else:
            used = set(self._places.values())
            places = [k for k in range(self.capacity) if k not in used][: len(missing)]
        self.store[places] = rows
        self._places.update(zip(missing.tolist(), places, strict=True))
