"""Time to a true relative suboptimality, for fenchel and for every peer that is installed.

\b
    python -m benchmarks.race                                        bundled and generated data
    python -m benchmarks.race --data mine.svm                        your own, two classes
    python -m benchmarks.race --data-dir DIR --sets imdb,a9a,w8a,mnist

The objective is the mean loss plus (lam/2) |w|^2, without an intercept; ridge has the labels -1 and +1 as targets.
One judge for all: the objective in float64 from the weights alone, against the dual bound of a certified
reference solution.

For each solver the quickest rung of its own tolerance ladder that reaches the target is found first. These rungs
are then timed again, --repeats times, in turns; the median counts. The clock covers everything from the arrays to
the weights: conversion, fenchel.Problem, and what a package compiles when it is called. Imports and the first call on a
few rows come before, except for packages that compile when called: they get a fresh process for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from benchmarks import race_report
from benchmarks.datasets import BUILT_IN, IN_FOLDER, Data, from_file, from_folder
from benchmarks.entrant import LOSSES, Peer
from benchmarks.judge import reference
from benchmarks.peers import all_peers, fenchel_peers, version
from benchmarks.timing import Row, Settings, race_row
from benchmarks.worker import Workers
from fenchel.solver.choose import SOLVERS

RESULTS = Path(__file__).parent / "results"


class Listed(click.ParamType):
    """Values separated by commas, each of which `convert_one` understands."""

    name = "list"

    def __init__(self, convert_one: Callable[[str], Any], known: Sequence[str] = ()) -> None:
        self._convert, self._known = convert_one, known

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = [part.strip() for part in value.split(",") if part.strip()]
        if not parts:
            self.fail("nothing is listed", param, ctx)
        for part in parts:
            if self._known and part not in self._known:
                self.fail(f"{part!r} is unknown; there are {', '.join(self._known)}", param, ctx)
        try:
            return [self._convert(part) for part in parts]
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < np.inf:
        raise ValueError(f"{text} is not a positive number")
    return value


POSITIVE = Listed(_positive)


@click.command(help=__doc__)
@click.option(
    "--data",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file that fenchel.read reads, two classes; may be given again.",
)
@click.option("--format", "format_", default=None, help="Of the files; told from their names by default.")
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help=f"Folder with a folder for each of {', '.join(IN_FOLDER)}.",
)
@click.option(
    "--sets",
    type=Listed(str, [*BUILT_IN, *IN_FOLDER]),
    default=None,
    help=f"Names of sets: {', '.join(BUILT_IN)}; with --data-dir also {', '.join(IN_FOLDER)}.",
)
@click.option("--losses", type=Listed(str, LOSSES), default=",".join(LOSSES), show_default=True)
@click.option("--lams", type=POSITIVE, default="10,1,0.1", show_default=True, help="lam times the number of samples.")
@click.option("--targets", type=POSITIVE, default="1e-3,1e-6", show_default=True, help="Relative suboptimality.")
@click.option(
    "--fenchel",
    "ours",
    type=Listed(str, ["auto", *SOLVERS]),
    default="auto",
    show_default=True,
    help="fenchel's solvers.",
)
@click.option(
    "--peers",
    type=Listed(str),
    default=None,
    help="Only peers whose name or package contains one of these; all by default.",
)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Timed runs of each.")
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds that one fit may take.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="For every solver; with more than one, solvers that cannot use them still run.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="cpu counts the processor's time: steadier on a busy machine, and fair with one thread only.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=RESULTS,
    help="Folder for race.json, race.png and cached references; benchmarks/results by default.",
)
def main(
    files: tuple[Path, ...],
    format_: str | None,
    data_dir: Path | None,
    sets: list[str] | None,
    losses: list[str],
    lams: list[float],
    targets: list[float],
    ours: list[str],
    peers: list[str] | None,
    repeats: int,
    limit: float,
    threads: int,
    clock: str,
    out: Path,
) -> None:
    if clock == "cpu" and threads > 1:
        raise click.UsageError("--clock cpu adds up the time of all threads; use --clock wall with --threads")
    settings = Settings(losses, lams, targets, repeats, limit, threads, clock)
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    entrants = [*fenchel_peers(ours), *_installed(peers, console)]
    rows: list[Row] = []
    for load in _sets(files, format_, data_dir, sets, out):
        try:
            data = load()
        except (OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error
        console.print(f"[bold]{data}[/]")
        start = len(rows)
        for found in _race_set(data, entrants, settings, out, console):
            rows += found
            race_report.print_lines(console, found)
            race_report.write_json(out / "race.json", rows, entrants, settings)
        race_report.print_tables(console, rows[start:])
        race_report.draw(out / "race.png", rows)
    console.print(race_report.summary(rows))
    console.print(f"written: {out / 'race.json'}, {out / 'race.png'}")


def _installed(wanted: list[str] | None, console: Console) -> list[Peer]:
    peers = all_peers()
    if wanted is not None:
        for word in wanted:
            if not any(word in peer.name or word in peer.package for peer in peers):
                raise click.BadParameter(f"no peer has {word!r} in its name or package", param_hint="--peers")
        peers = [peer for peer in peers if any(word in peer.name or word in peer.package for word in wanted)]
    for package in dict.fromkeys(peer.package for peer in peers):
        if version(package) is None:
            console.print(f"{package} is not installed and does not take part")
    return [peer for peer in peers if version(peer.package) is not None]


def _sets(
    files: tuple[Path, ...], format_: str | None, folder: Path | None, names: list[str] | None, cache: Path
) -> list[Callable[[], Data]]:
    """What to load, one after the other."""
    if format_ is not None and not files:
        raise click.UsageError("--format says how to read --data, which is missing")
    if names is None:
        names = list(IN_FOLDER) if folder is not None else [] if files else list(BUILT_IN)
    elif folder is None and (missing := [name for name in names if name in IN_FOLDER]):
        raise click.UsageError(f"{', '.join(missing)}: give the folder that holds it with --data-dir")
    elif folder is not None and not any(name in IN_FOLDER for name in names):
        raise click.UsageError(f"--data-dir has no effect on {', '.join(names)}")
    loads: list[Callable[[], Data]] = [partial(from_file, path, format_) for path in files]
    for name in names:
        loads.append(BUILT_IN[name] if name in BUILT_IN else partial(from_folder, folder, name, cache))
    return loads


def _race_set(
    data: Data, entrants: Sequence[Peer], settings: Settings, out: Path, console: Console
) -> Iterator[list[Row]]:
    """The rows of each problem, as soon as it is raced."""
    with (
        threadpool_limits(settings.threads),
        Workers(entrants, data.X, data.y, settings.threads) as workers,
        Progress(console=console, transient=True) as progress,
    ):
        bar = progress.add_task("", total=len(settings.losses) * len(settings.lams))

        def tell(what: str) -> None:
            progress.update(bar, description=what)

        for loss in settings.losses:
            able = [peer for peer in entrants if peer.takes(data.X, loss)]
            for lam_n in settings.lams:
                tell(f"{data.name} {loss} {lam_n:g}/n: reference")
                known = reference(data, loss, lam_n / data.y.size, out, settings.limit)
                yield race_row(data, loss, lam_n, known, able, workers, settings, tell)
                progress.advance(bar)


if __name__ == "__main__":
    main()
