"""Time to a true relative suboptimality, for fenchel and for every peer that is installed.

\b
    python -m benchmarks.race                                        bundled and generated data
    python -m benchmarks.race --data mine.svm                        your own, two classes
    python -m benchmarks.race --data-dir DIR --sets imdb,a9a,w8a,mnist
    python -m benchmarks.race --sparse                               the Lasso and its kin; --data and --data-dir too

The objective is the mean loss plus (lam/2) |w|^2, without an intercept; regressions have the labels -1 and +1 as
targets. With --sparse the penalty makes zeros: lasso, elastic_net (half of each part), sparse_logistic, group_lasso on
sets whose columns have groups, and paths of 100 lam from lam_max to lam_max/100, each of which has to reach the target.

One judge for all: the objective in float64 from the weights alone, against the dual bound of a certified reference
solution.

For each solver the quickest rung of its own tolerance ladder that reaches the target is found first. These rungs
are then timed again, --repeats times, in turns; the median counts. The clock covers everything from the arrays to
the weights: conversion, fenchel.Problem, and what a package compiles when it is called. Imports and the first call on a
few rows come before, except for packages that compile when called: they get a fresh process for every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from benchmarks import race_report
from benchmarks.datasets import BUILT_IN, IN_FOLDER, Data, from_file, from_folder
from benchmarks.entrant import LOSSES, SPARSE, Peer
from benchmarks.installed import version
from benchmarks.judge import reference
from benchmarks.listed import POSITIVE, Listed
from benchmarks.objectives import OBJECTIVES
from benchmarks.peers import all_peers, fenchel_peers
from benchmarks.timing import Row, Settings, race_row
from benchmarks.worker import Workers
from fenchel.steps.choose import PROBLEM_SOLVERS

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Programme:
    """What is raced unless the command says otherwise.

    Attributes
    ----------
    losses : names of objectives
    lams : in the unit of these objectives
    built_in, in_folder : names of sets, without a data folder and with one
    """

    losses: tuple[str, ...]
    lams: tuple[float, ...]
    built_in: tuple[str, ...]
    in_folder: tuple[str, ...]


SQUARED_NORM = Programme(
    LOSSES, (10.0, 1.0, 0.1), ("breast_cancer", "text", "correlated"), ("imdb", "a9a", "w8a", "mnist")
)
ZEROS = Programme(SPARSE, (10.0, 50.0, 200.0), ("wide", "text", "attributes"), ("leukemia", "imdb", "a9a", "dna"))


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
@click.option("--sparse", is_flag=True, help="Penalties that make zeros, in place of |w|^2.")
@click.option(
    "--losses",
    type=Listed(str, [*LOSSES, *SPARSE]),
    default=None,
    help=f"Of {', '.join(LOSSES)}; with --sparse of {', '.join(SPARSE)}. All by default.",
)
@click.option(
    "--lams",
    type=POSITIVE,
    default=None,
    help="lam times the number of samples, 10,1,0.1 by default; with --sparse lam_max over lam, 10,50,200 by default.",
)
@click.option("--targets", type=POSITIVE, default="1e-3,1e-6", show_default=True, help="Relative suboptimality.")
@click.option(
    "--fenchel",
    "ours",
    type=Listed(str, ["auto", *(kind.name for kind in PROBLEM_SOLVERS.kinds)]),
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
    sparse: bool,
    losses: list[str] | None,
    lams: list[float] | None,
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
    programme = ZEROS if sparse else SQUARED_NORM
    losses = _losses(losses, lams, programme)
    settings = Settings(losses, lams or programme.lams, targets, repeats, limit, threads, clock)
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    entrants = [*fenchel_peers(ours), *_installed(peers, losses, console)]
    rows: list[Row] = []
    for load in _sets(files, format_, data_dir, sets, programme, out):
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


def _losses(wanted: list[str] | None, lams: list[float] | None, programme: Programme) -> Sequence[str]:
    """The objectives to race, all of one programme."""
    losses = programme.losses if wanted is None else wanted
    if strange := [name for name in losses if name not in programme.losses]:
        raise click.UsageError(f"{', '.join(strange)}: {'not with' if programme is ZEROS else 'only with'} --sparse")
    if lams is not None and all(OBJECTIVES[name].path for name in losses):
        raise click.UsageError("--lams has no effect on paths")
    return losses


def _installed(wanted: list[str] | None, losses: Sequence[str], console: Console) -> list[Peer]:
    """The peers that can minimise one of the objectives."""
    peers = [peer for peer in all_peers() if set(peer.losses) & set(losses)]
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
    files: tuple[Path, ...],
    format_: str | None,
    folder: Path | None,
    names: list[str] | None,
    programme: Programme,
    cache: Path,
) -> list[Callable[[], Data]]:
    """What to load, one after the other."""
    if format_ is not None and not files:
        raise click.UsageError("--format says how to read --data, which is missing")
    if names is None:
        names = list(programme.in_folder if folder is not None else () if files else programme.built_in)
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
        Workers(entrants, data, settings.threads) as workers,
        Progress(console=console, transient=True) as progress,
    ):
        problems = list(_problems(data, settings, console))
        bar = progress.add_task("", total=len(problems))

        def tell(what: str) -> None:
            progress.update(bar, description=what)

        for loss, level in problems:
            stated = OBJECTIVES[loss]
            able = [peer for peer in entrants if peer.takes(data.X, loss)]
            tell(f"{data.name} {loss} {stated.label(level)}: reference")
            known = reference(data, loss, stated.lam(data, level), out, settings.limit)
            yield race_row(data, loss, level, known, able, workers, settings, tell)
            progress.advance(bar)


def _problems(data: Data, settings: Settings, console: Console) -> Iterator[tuple[str, float]]:
    """The objectives that the data allow, with what states lam."""
    for loss in settings.losses:
        if OBJECTIVES[loss].grouped and data.groups is None:
            console.print(f"{data.name} has no groups: {loss} is left out")
            continue
        for level in OBJECTIVES[loss].levels(settings.lams):
            yield loss, level


if __name__ == "__main__":
    main()
