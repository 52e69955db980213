"""What a tuning constant is worth: the rows of the benchmarks with other values of it, in turns, as ratios.

\b
    python -m benchmarks.tuning steps.first_order.fista limit --rows fista          which rows read it
    python -m benchmarks.tuning steps.first_order.fista limit 1 4 --rows fista      and their times with 1 and 4

MODULE is one of fenchel with a `TUNING`, FIELD a field of it. Rows are those of benchmarks.regression_jobs and of
benchmarks.tuning_rows whose name has the regular expression --rows and which read the field; others are left out. In
every round each row is run with the present value and with every other one; the ratios are medians over rounds of
processor time to that with the present value, and their geometric means stand below. One thread. A `*` marks a
run that warned or raised, as one that does not reach its tolerance; for rows whose result is a certificate,
the gap beside that of the present value follows the ratio.
"""

from __future__ import annotations

import ast
import gc
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

import fenchel as fl
from benchmarks.regression_jobs import KINDS, jobs, load
from benchmarks.tuning_rows import ROWS

#: Seconds that one value's part of a round should take.
ROUND = 0.03


@contextmanager
def changed(tuning: Any, field: str, value: Any) -> Iterator[None]:
    """The constants with another value, for all who hold them; the present one afterwards."""
    present = getattr(tuning, field)
    object.__setattr__(tuning, field, value)
    try:
        yield
    finally:
        object.__setattr__(tuning, field, present)


def reads(tuning: Any, run: Callable[[], Any]) -> set[str]:
    """The fields that a run reads."""
    seen: set[str] = set()

    class Watched(type(tuning)):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            seen.add(name)
            return super().__getattribute__(name)

    kind = type(tuning)
    object.__setattr__(tuning, "__class__", Watched)
    try:
        measure(run, 1)
    finally:
        object.__setattr__(tuning, "__class__", kind)
    return seen


@dataclass(frozen=True)
class Measured:
    """Processor time of one run, whether it warned or raised, and the gap of the certificate that it made."""

    seconds: float
    failed: bool
    gap: float


def measure(run: Callable[[], Any], count: int) -> Measured:
    found, failed = None, False
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            for _ in range(count):
                found = run()
        except (ValueError, RuntimeError, ArithmeticError):
            failed = True
        seconds = (time.process_time() - start) / count
    failed = failed or any(issubclass(one.category, fl.NotCertifiedWarning) for one in caught)
    return Measured(seconds, failed, found.gap if isinstance(found, fl.Certificate) else np.nan)


def compare(
    tuning: Any, field: str, values: list[Any], run: Callable[[], Any], rounds: int
) -> tuple[float, np.ndarray, list[str]]:
    """Seconds with the present value, the ratio for each other one, and how it is told."""
    first = measure(run, 1)
    count = max(1, int(ROUND / max(first.seconds, 1e-6)))
    every = [getattr(tuning, field), *values]
    found: list[list[Measured]] = [[] for _ in every]
    for k in range(rounds):
        for which in range(len(every))[:: -1 if k % 2 else 1]:
            with changed(tuning, field, every[which]):
                found[which].append(measure(run, count))
    seconds = np.array([[one.seconds for one in row] for row in found])
    ratios = np.median(seconds[1:] / seconds[0], axis=1)
    told = []
    for ratio, row in zip(ratios, found[1:], strict=True):
        gap = row[0].gap / found[0][0].gap if found[0][0].gap else np.nan
        told.append(f"{ratio:.3f}{'*' if row[0].failed else ''}{'' if np.isnan(gap) else f' gap {gap:.3g}'}")
    return float(np.median(seconds[0])), ratios, told


def rows_of(pattern: str, folder: Path | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and runs of those that are asked for, made when their turn comes."""
    for name, make in ROWS.items():
        if re.search(pattern, name):
            yield name, make()
    for job in jobs(folder is not None):
        if re.search(pattern, job.name):
            yield job.name, KINDS[job.kind](load(job.data, folder and str(folder)), *job.args)


@click.command(help=__doc__)
@click.argument("module")
@click.argument("field")
@click.argument("values", nargs=-1)
@click.option("--rows", "pattern", required=True, help="A regular expression: rows whose name has it.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Of the race's sets.")
def main(module: str, field: str, values: tuple[str, ...], pattern: str, rounds: int, data_dir: Path | None) -> None:
    tuning = import_module(f"fenchel.{module}").TUNING
    if field not in vars(tuning):
        raise click.UsageError(f"{module} has no {field}; its fields are {', '.join(vars(tuning))}")
    others = [ast.literal_eval(value) for value in values]
    every = []
    print(f"{field} = {getattr(tuning, field)}".ljust(66), "ms".rjust(9), *(f"{value:>16}" for value in values))
    with threadpool_limits(1):
        for name, run in rows_of(pattern, data_dir):
            if field not in reads(tuning, run):
                continue
            seconds, ratios, told = compare(tuning, field, others, run, rounds if others else 1)
            every.append(ratios)
            print(f"{name:<66} {1e3 * seconds:9.2f}", *(f"{one:>16}" for one in told), flush=True)
    if not every:
        raise click.ClickException(f"no row with {pattern!r} reads {field}")
    means = np.exp(np.mean(np.log(every), axis=0))
    print(f"{f'geometric mean of {len(every)}':<66} {'':>9}", *(f"{mean:16.3f}" for mean in means))


if __name__ == "__main__":
    main()
