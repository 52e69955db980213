"""What several threads bring: fits by one and by --threads, in turns, with other seeds, medians and ratios.

    python -m benchmarks.threads [--data FILE | --data-dir DIR --set NAME] [--threads 2] [--repeats 7]

Without data the matrix is generated, as for benchmarks.certify: threads are for large data.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

import fenchel as fl
from benchmarks.datasets import IN_FOLDER, Data, from_file, from_folder, large_text

LOSSES = {
    "hinge": fl.losses.Hinge(),
    "squared hinge": fl.losses.SquaredHinge(),
    "logistic": fl.losses.Logistic(),
    "ridge": fl.losses.Squared(),
}


@click.command(help=__doc__)
@click.option("--data", "file", type=click.Path(exists=True, path_type=Path), help="Your own data, two classes.")
@click.option("--format", "format_", default=None, help="Of the data; told from the file's name by default.")
@click.option(
    "--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="As for benchmarks.race."
)
@click.option("--set", "name", type=click.Choice(list(IN_FOLDER)), default=None, help="A set of the folder.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    default="benchmarks/results",
    show_default=True,
    help="For what is made of sets.",
)
@click.option("--threads", default=2, show_default=True, help="Compared with one.")
@click.option("--repeats", default=7, show_default=True, help="Fits of each kind.")
@click.option("--limit", default=10.0, show_default=True, help="Seconds that a fit may take.")
def main(
    file: Path | None,
    format_: str | None,
    data_dir: Path | None,
    name: str | None,
    cache: Path,
    threads: int,
    repeats: int,
    limit: float,
) -> None:
    data = _data(file, format_, data_dir, name, cache)
    X, y = data.X, data.y
    table = Table(
        Column("loss", no_wrap=True), "lam n", "tol", "solver", "1 thread", f"{threads} threads", "ratio", "ahead"
    )
    for tol in (1e-3, 1e-6):
        for share in (10.0, 1.0, 0.1):
            for called, loss in LOSSES.items():
                task = (X, y, loss, fl.penalties.L2(share / len(y)))
                table.add_row(called, f"{share:g}", f"{tol:g}", *_compare(task, tol, threads, repeats, limit))
    console = Console()
    console.print(str(data))
    console.print(table)
    console.print("> : the limit ended some of the fits. Other work on the cores spoils the ratios.")


def _data(file: Path | None, format_: str | None, data_dir: Path | None, name: str | None, cache: Path) -> Data:
    if (data_dir is None) != (name is None):
        raise click.UsageError("--data-dir and --set belong together")
    if file is not None and name is not None:
        raise click.UsageError("give --data, or --data-dir and --set, not both")
    if file is None and format_ is not None:
        raise click.UsageError("--format belongs to --data")
    if file is not None:
        return from_file(file, format_)
    return large_text() if data_dir is None or name is None else from_folder(data_dir, name, cache)


def _compare(task: Any, tol: float, threads: int, repeats: int, limit: float) -> list[str]:
    one, many = [], []
    for seed in range(repeats):
        one.append(_fit(task, tol, 1, seed, limit))
        many.append(_fit(task, tol, threads, seed, limit))
    before, after = (median(seconds for seconds, _ in fits) for fits in (one, many))
    ahead = sum(a[0] > b[0] for a, b in zip(one, many, strict=True))
    return [many[-1][1].solver, _time(one), _time(many), f"{before / after:.2f}", f"{ahead} of {repeats}"]


def _time(fits: list[tuple[float, Any]]) -> str:
    """The median; with a mark where the limit ended a fit before its tolerance did."""
    ended = all(result.certificate.ok for _, result in fits)
    return f"{'' if ended else '>'}{1e3 * median(seconds for seconds, _ in fits):.0f} ms"


def _fit(task: Any, tol: float, threads: int, seed: int, limit: float) -> tuple[float, Any]:
    start = time.perf_counter()
    result = fl.solve(fl.Problem(*task), tol=tol, n_threads=threads, random_state=seed, max_seconds=limit, warn=False)
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
