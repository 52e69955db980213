"""Runs with other values of a tuning constant: what they read, their time, and the gap of what they return."""

from __future__ import annotations

import gc
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fenchel as fl
from benchmarks.regression_jobs import KINDS, jobs, load
from benchmarks.tuning_rows import ROWS

#: Seconds that one value's part of a round should take.
ROUND = 0.03
#: A run with another value is ended, and counts as failed, after so many times the present one's and a second.
LIMIT = 20.0

Run = Callable[[], Any]


class Overdue(RuntimeError):
    """A run that takes too long."""


@contextmanager
def changed(tuning: Any, field: str, value: Any) -> Iterator[None]:
    """The constants with another value, for all who hold them; the present one afterwards."""
    present = getattr(tuning, field)
    object.__setattr__(tuning, field, value)
    try:
        yield
    finally:
        object.__setattr__(tuning, field, present)


@contextmanager
def _watched(tuning: Any, seen: set[str]) -> Iterator[None]:
    """Names of attributes that are read until the end are added to `seen`."""

    class Watched(type(tuning)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            seen.add(name)
            return super().__getattribute__(name)

    kind = type(tuning)
    object.__setattr__(tuning, "__class__", Watched)
    try:
        yield
    finally:
        object.__setattr__(tuning, "__class__", kind)


def reads(tunings: Mapping[str, Any], run: Run) -> tuple[Measured, set[tuple[str, str]]]:
    """One run, and which fields of which constants it reads."""
    seen: dict[str, set[str]] = {name: set() for name in tunings}
    with ExitStack() as stack:
        for name, tuning in tunings.items():
            stack.enter_context(_watched(tuning, seen[name]))
        measured = measure(run, 1)
    return measured, {(name, field) for name in tunings for field in seen[name] & set(vars(tunings[name]))}


@dataclass(frozen=True)
class Measured:
    """Processor time of one run, whether it warned or raised, and the gap of the certificate that it made."""

    seconds: float
    failed: bool
    gap: float


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raise Overdue after so many seconds of the processor; never, for infinity."""

    def end(*_: object) -> None:
        raise Overdue

    if np.isinf(seconds):
        yield
        return
    former = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again, where compiled code was busy
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, former)


def measure(run: Run, count: int, limit: float = np.inf) -> Measured:
    """The mean of `count` runs, which may take `limit` seconds in all."""
    found, failed = None, False
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            with _ended_after(limit):
                for _ in range(count):
                    found = run()
        except Exception:  # whatever a senseless value leads to
            failed = True
        seconds = (time.process_time() - start) / count
    failed = failed or any(issubclass(one.category, fl.NotCertifiedWarning) for one in caught)
    return Measured(seconds, failed, found.gap if isinstance(found, fl.Certificate) else np.nan)


@dataclass(frozen=True)
class Compared:
    """Seconds with the present value, and for every other one the ratio, the ratio of gaps, and whether it failed."""

    seconds: float
    ratios: np.ndarray
    gaps: np.ndarray
    failed: np.ndarray

    def told(self) -> list[str]:
        return [
            f"{ratio:.3f}{'*' if failed else ''}{'' if np.isnan(gap) else f' gap {gap:.3g}'}"
            for ratio, gap, failed in zip(self.ratios, self.gaps, self.failed, strict=True)
        ]


def compare(tuning: Any, field: str, values: list[Any], run: Run, rounds: int) -> Compared:
    """Each value in turns with the present one, in every round; medians over rounds."""
    first = measure(run, 1)
    count = max(1, int(ROUND / max(first.seconds, 1e-6)))
    limit = 1.0 + LIMIT * count * first.seconds
    every = [getattr(tuning, field), *values]
    found: list[list[Measured]] = [[] for _ in every]
    for k in range(rounds):
        for which in range(len(every))[:: -1 if k % 2 else 1]:
            with changed(tuning, field, every[which]):
                found[which].append(measure(run, count, limit))
    seconds = np.array([[one.seconds for one in row] for row in found])
    gaps = np.array([row[0].gap for row in found])
    return Compared(
        float(np.median(seconds[0])),
        np.median(seconds[1:] / seconds[0], axis=1),
        gaps[1:] / gaps[0] if gaps[0] else np.full(len(values), np.nan),
        np.array([row[0].failed and not found[0][0].failed for row in found[1:]]),
    )


def rows_of(pattern: str, folder: Path | None) -> Iterator[tuple[str, Callable[[], Run]]]:
    """Names of the rows that are asked for, and what makes their runs."""
    for name, make in ROWS.items():
        if re.search(pattern, name):
            yield name, make
    for job in jobs(folder is not None):
        if re.search(pattern, job.name):
            yield job.name, partial(_job, job.kind, job.data, folder, job.args)


def _job(kind: str, data: str, folder: Path | None, args: tuple[Any, ...]) -> Run:
    return KINDS[kind](load(data, folder and str(folder)), *args)
