"""The table of all tuning constants: for each one, other values, and what they cost where they matter most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np

import fenchel
from benchmarks.tuning_runs import Compared, Run, compare, measure, reads, rows_of

#: Values to try where those of `others` make no sense, by the constant's name.
OTHERS: dict[str, tuple[Any, ...]] = {
    "certificate.consequences.shifts": ((1e-8, 10.0, 5), (1e-8, 10.0, 20)),
    "certificate.consequences.fractions": ((1e-9, 1.0, 10), (1e-9, 1.0, 38)),
}
#: A constant from which it is a limit on sizes: tried are half, and so little that all is beyond it.
LARGE = 1000
#: Every constant is tried once on so many rows, which are spread over those that read it,
TRIED = 16
#: and then, in all rounds, on those of them where it makes most difference.
SHOWN = 3
#: Rows that take more seconds are left out where there are others.
LONG = 0.5


@dataclass(frozen=True)
class Constant:
    """A field of the `TUNING` of a module, which is named without the package."""

    module: str
    field: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.field}"

    @property
    def tuning(self) -> Any:
        return import_module(f"fenchel.{self.module}").TUNING

    @property
    def value(self) -> Any:
        return getattr(self.tuning, self.field)

    def others(self) -> list[Any]:
        return list(OTHERS.get(self.name, ())) or others(self.value)


def constants() -> list[Constant]:
    """All of fenchel, by name."""
    found = []
    for module in walk_packages(fenchel.__path__, "fenchel."):
        if module.name.endswith("__main__"):
            continue
        tuning = getattr(import_module(module.name), "TUNING", None)
        if tuning is not None and type(tuning).__module__ == module.name:
            found += [Constant(module.name.removeprefix("fenchel."), field) for field in vars(tuning)]
    return sorted(found, key=lambda one: one.name)


def others(value: Any) -> list[Any]:
    """Half and double; half and 1 for large numbers; every second one, and numbers between, for three or more."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, tuple) and len(value) < 3:
        return [tuple(_times(one, 0.5) for one in value), tuple(_times(one, 2.0) for one in value)]
    if isinstance(value, tuple):
        between = [(a + b) / 2 for a, b in pairwise(value)]
        return [value[::2], tuple(sorted((*value, *between), reverse=value[0] > value[-1]))]
    return [_times(value, 0.5), type(value)(1) if value >= LARGE else _times(value, 2.0)]


def _times(value: Any, factor: float) -> Any:
    return int(value * factor) if isinstance(value, int) else float(value * factor)


@dataclass(frozen=True)
class Surveyed:
    """A constant, and its other values on some rows, by name."""

    constant: Constant
    others: list[Any]
    rows: dict[str, Compared]

    def effect(self) -> float:
        """Log of the largest ratio, either way; infinite if a run fails or is worse certified."""
        return max((_effect(one) for one in self.rows.values()), default=0.0)


def _effect(found: Compared) -> float:
    if np.any(found.failed) or np.any(np.abs(np.log(np.maximum(found.gaps, 1e-300))) > 0.05):
        return np.inf
    return float(np.max(np.abs(np.log(np.maximum(found.ratios, 1e-9)))))


def survey(asked: Sequence[Constant], pattern: str, folder: Path | None, rounds: int) -> Iterator[Surveyed]:
    """One after the other; which rows read which constants is found first, in one run of each."""
    tunings = {one.module: one.tuning for one in asked}
    runs: dict[str, tuple[float, Run]] = {}
    readers: dict[tuple[str, str], list[str]] = {}
    for name, make in rows_of(pattern, folder):
        run = make()
        _, seen = reads(tunings, run)
        if seen:
            runs[name] = measure(run, 1).seconds, run
        for one in seen:
            readers.setdefault(one, []).append(name)
    for constant in asked:
        names = readers.get((constant.module, constant.field), [])
        names = [name for name in names if runs[name][0] < LONG] or sorted(names, key=lambda name: runs[name][0])[:1]
        names = names[:: -(-len(names) // TRIED)] if names else []
        yield _surveyed(constant, {name: runs[name][1] for name in names}, rounds)


def _surveyed(constant: Constant, runs: dict[str, Run], rounds: int) -> Surveyed:
    values = constant.others()

    def on(name: str, count: int) -> Compared:
        return compare(constant.tuning, constant.field, values, runs[name], count)

    once = {name: _effect(on(name, 1)) for name in runs}
    worst = sorted(runs, key=lambda name: -once[name])[:SHOWN]
    return Surveyed(constant, values, {name: on(name, rounds) for name in worst})


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_number(one) for one in value)}{',' if len(value) == 1 else ''})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def line(found: Surveyed) -> str:
    """The row of the table: times are geometric means over the rows, gaps the largest ratio on any."""
    constant, rows = found.constant, list(found.rows.values())
    times, gaps = [], []
    for k in range(len(found.others)) if rows else ():
        failed = any(one.failed[k] for one in rows)
        times.append(f"{np.exp(np.mean([np.log(one.ratios[k]) for one in rows])):.2f}{'*' if failed else ''}")
        known = [one.gaps[k] for one in rows if not np.isnan(one.gaps[k])]
        gaps.append(f"{max(known):.3g}" if known else "")
    cells = [
        f"`{constant.name}`",
        _number(constant.value),
        " ".join(_number(value) for value in found.others),
        " ".join(times) or "not read",
        " ".join(gaps).strip(),
        "; ".join(found.rows),
    ]
    return f"| {' | '.join(cells)} |"


_ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) \|")


def written(page: Path) -> dict[str, str]:
    """The rows of a page's table, by the constant's name."""
    return {found[1]: text for text in page.read_text().splitlines() if (found := _ROW.match(text))}


def is_current(constant: Constant, row: str) -> bool:
    """Whether a row of the table is about the present value."""
    found = _ROW.match(row)
    return found is not None and found[2] == _number(constant.value)


def write(page: Path, every: Sequence[Constant], lines: dict[str, str]) -> None:
    """The page with the new rows; those of constants that there are no longer are left out."""
    known = written(page) | lines
    text = page.read_text().splitlines()
    rows = [k for k, one in enumerate(text) if _ROW.match(one)]
    end = next(k for k, one in enumerate(text) if one.startswith("|---")) + 1
    rest = text[rows[-1] + 1 :] if rows else text[end:]
    kept = [known[one.name] for one in every if one.name in known]
    page.write_text("\n".join([*text[:end], *kept, *rest]) + "\n")
