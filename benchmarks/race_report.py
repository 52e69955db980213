"""What the race found: tables, JSON, a picture."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.entrant import Peer
from benchmarks.installed import version
from benchmarks.timing import Entry, Row, Settings

LEGEND = (
    (2.0, "best peer, at least twice fenchel's time"),
    (1.0, "best peer, slower than fenchel"),
    (0.0, "best peer, faster than fenchel"),
)
CAPTION = "lam and target above; > ended after so many; - out of reach"


def print_lines(console: Console, rows: Sequence[Row]) -> None:
    """A line for every row: the quickest of each side."""
    for row in rows:
        sides = [row.best(ours=True), row.best(ours=False)]
        times = [f"{one.solver} {one.median:.3g} s" if one else "nobody" for one in sides]
        console.print(f"{_name(row)} {row.target:g}: {times[0]}, {times[1]}, ratio {row.ratio:.2f}", highlight=False)


def print_tables(console: Console, rows: Sequence[Row]) -> None:
    """For every objective the seconds of each solver; then the ratios."""
    for (data, loss), group in groupby(rows, key=lambda row: (row.data, row.loss)):
        console.print(_seconds_table(data, loss, list(group)))
    console.print(_ratio_table(rows))
    for row in rows:
        if not row.reference_gap <= 0.01 * row.target:
            console.print(
                f"{_name(row)}: the reference is proven to {row.reference_gap:.1e} only; times there are upper bounds"
            )


def _seconds_table(data: str, loss: str, rows: list[Row]) -> Table:
    """Solvers down, lam and target across; the best in bold."""
    table = Table("solver", title=f"{data}, {loss}: seconds to the target", caption=CAPTION)
    for row in rows:
        table.add_column(f"{row.lam}\n{row.target:g}", justify="right")
    best = [min(entry.median for entry in row.entries) for row in rows]
    order = sorted(range(len(rows[0].entries)), key=lambda k: (not rows[0].entries[k].is_ours, _typical(rows, k)))
    for k in order:
        entries = [row.entries[k] for row in rows]
        cells = [_cell(row.entries[k], quickest) for row, quickest in zip(rows, best, strict=True)]
        table.add_row(entries[0].solver, *cells, style="cyan" if entries[0].is_ours else None)
    return table


def _typical(rows: list[Row], k: int) -> float:
    """The geometric mean of a solver's times, where one it did not reach counts as a thousand seconds."""
    return float(np.mean([np.log(min(row.entries[k].median, 1e3)) for row in rows]))


def _cell(entry: Entry, quickest: float) -> str:
    if not entry.seconds:
        return "-" if entry.waited is None else f"> {entry.waited:.2g}"
    text = f"{entry.median:.3g}"
    return f"[bold]{text}[/]" if entry.median == quickest else text


def _ratio_table(rows: Sequence[Row]) -> Table:
    table = Table("objective", "lam", "target", title=f"{rows[0].data}: best peer / fenchel")
    for column in ("fenchel (s)", "peer (s)", "ratio"):
        table.add_column(column, justify="right")
    table.add_column("who")
    several = len({entry.solver for row in rows for entry in row.entries if entry.is_ours}) > 1
    for row in rows:
        ours, theirs = row.best(ours=True), row.best(ours=False)
        who = theirs.solver if theirs else "-"
        table.add_row(
            row.loss,
            row.lam,
            f"{row.target:g}",
            f"{ours.median:.3g}" if ours else "-",
            f"{theirs.median:.3g}" if theirs else "-",
            f"[{_colour(row.ratio, 'green', 'yellow', 'red')}]{row.ratio:.2f}[/]",
            f"{ours.solver.removeprefix('fenchel ')} / {who}" if several and ours else who,
        )
    return table


def _name(row: Row) -> str:
    return f"{row.data} {row.loss} {row.lam}"


def summary(rows: Sequence[Row]) -> str:
    """In how many rows fenchel is first, and in how many with half the time."""
    first = sum(row.ratio > 1 for row in rows)
    half = sum(row.ratio >= 2 for row in rows)
    return f"fenchel is first in {first} of {len(rows)} rows, at most half of the best peer's time in {half} rows"


def write_json(path: Path, rows: Sequence[Row], entrants: Sequence[Peer], settings: Settings) -> None:
    """Every timing, the versions and the kind of machine; nothing that names whose it is."""
    packages = dict.fromkeys(peer.package for peer in entrants)
    record = {
        "date": date.today().isoformat(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system()},
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
            **{package: metadata.version(package) for package in ("numpy", "scipy")},
        },
        "settings": asdict(settings),
        "summary": summary(rows),
        "rows": [_as_json(row) for row in rows],
    }
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")


def _as_json(row: Row) -> dict[str, Any]:
    return {
        "data": row.data,
        "loss": row.loss,
        "lam": row.lam,
        "target": row.target,
        "reference_gap": row.reference_gap if np.isfinite(row.reference_gap) else None,
        "ratio": row.ratio if np.isfinite(row.ratio) else None,
        "solvers": {
            entry.solver: {
                "median": entry.median if entry.seconds else None,
                "seconds": entry.seconds,
                "tol": entry.tol,
                "suboptimality": entry.suboptimality if entry.seconds else None,
                "failure": entry.failure,
                "waited": entry.waited,
            }
            for entry in row.entries
        },
    }


def _processor() -> str:
    """The model of the processor, where the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def draw(path: Path, rows: Sequence[Row]) -> None:
    """A panel for every set: the time of each peer over that of fenchel, a line for every problem."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = [(name, list(group)) for name, group in groupby(rows, key=lambda row: row.data)]
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    tallest = max(len(group) for _, group in panels)
    size = (1.0 + 6.0 * across, 1.2 + down * (0.7 + 0.22 * tallest))
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (name, group) in zip(axes.flat, panels, strict=False):
        _panel(axis, name, group)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle("Time of a peer / time of fenchel, at equal true suboptimality", fontsize=12)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _panel(axis: Any, name: str, rows: list[Row]) -> None:
    positions = np.arange(len(rows))[::-1]
    for position, row in zip(positions, rows, strict=True):
        ours = row.best(ours=True)
        others = [entry.median for entry in row.entries if not entry.is_ours and entry.seconds]
        if ours is None or not others:
            who = "nobody" if ours is None and not others else "only fenchel" if not others else "fenchel did not"
            axis.text(1.1, position, f"{who} arrive{'' if who.endswith('not') else 'd'}", va="center", fontsize=7)
            continue
        axis.plot(np.array(others) / ours.median, [position] * len(others), "o", ms=3.5, color="0.7", zorder=2)
        axis.plot(row.ratio, position, "o", ms=6.5, color=_colour(row.ratio), zorder=3)
    for ratio, label in LEGEND:
        axis.plot([], [], "o", ms=6.5, color=_colour(ratio), label=label)
    axis.plot([], [], "o", ms=3.5, color="0.7", label="other peers")
    axis.axvline(1.0, color="black", lw=1, label="as fast as fenchel")
    axis.axvline(2.0, color="black", lw=1, ls=":", label="twice fenchel's time")
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_yticks(positions, [f"{row.loss}  {row.lam}  {row.target:g}" for row in rows], fontsize=7)
    axis.set_ylim(-0.7, len(rows) - 0.3)
    for edge in range(len(rows)):
        if edge and rows[edge].loss != rows[edge - 1].loss:
            axis.axhline(positions[edge] + 0.5, color="0.8", lw=0.8)
    axis.set_title(name, fontsize=10)
    axis.grid(axis="x", color="0.9")
    axis.set_axisbelow(True)


def _colour(ratio: float, half: str = "tab:green", first: str = "tab:orange", lost: str = "tab:red") -> str:
    return half if ratio >= 2 else first if ratio >= 1 else lost
