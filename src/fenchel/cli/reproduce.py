"""fenchel reproduce: the figures and tables of a paper, on any data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fenchel.cli.pictures import require_picture
from fenchel.papers import PAPERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fenchel.data.typing import MatrixLike, VectorLike
    from fenchel.papers.datasets import Data

#: Setting -> option.
OPTIONS = {"lams": "--lam", "epochs": "--epochs", "runs": "--runs", "samples": "--samples", "seed": "--seed"}


@click.command(
    "reproduce", help="Draw the figures of a paper and print its tables, on your data or on generated stand-ins."
)
@click.argument("paper", type=click.Choice(sorted(PAPERS)))
@click.option("--figure", type=int, default=None, help="Which one; all figures and tables by default.")
@click.option("--table", type=int, default=None, help="Which one, instead of figures.")
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file, one column or row of panels; may be repeated. Two classes, or numbers for certificates.",
)
@click.option("--format", "format_", default=None, help="Of the data; by default from the files' names.")
@click.option(
    "--lam",
    "lams",
    type=float,
    multiple=True,
    help="One row of panels, or for pgs one to choose from; may be repeated.",
)
@click.option(
    "--epochs", type=click.IntRange(min=1), default=None, help="Most passes over the data.  [default: 100, 20 or 5]"
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=None,
    help="Seeds of interpolation's bands, margin's networks and pgs's medians.  [default: 3, 4, 5, or the paper's]",
)
@click.option(
    "--samples", type=click.IntRange(min=1), default=None, help="Of pgs's largest training set.  [default: 64000]"
)
@click.option("--seed", type=int, default=None, help="[default: 0]")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="The picture (PNG, PDF or SVG); a folder if all figures are drawn.  [default: PAPER-figureN.png]",
)
def command(
    paper: str,
    figure: int | None,
    table: int | None,
    data: tuple[Path, ...],
    format_: str | None,
    lams: tuple[float, ...],
    epochs: int | None,
    runs: int | None,
    samples: int | None,
    seed: int | None,
    output: Path | None,
) -> None:
    module = importlib.import_module(PAPERS[paper])
    figures: dict[int, Callable[..., Figure]] = module.FIGURES
    tables: dict[int, Callable[..., str]] = module.TABLES
    drawn = _chosen(paper, "figure", figures, figure, table is not None)
    printed = _chosen(paper, "table", tables, table, figure is not None)
    if any(not lam > 0 for lam in lams):
        raise click.UsageError("--lam must be positive")
    if format_ is not None and not data:
        raise click.UsageError("--format needs --data")
    if output is not None and not drawn:
        raise click.UsageError("--output is for figures; a table is printed")
    paths = _paths(paper, drawn, output)
    given = {"lams": lams or None, "epochs": epochs, "runs": runs, "samples": samples, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    unknown = [option for name, option in OPTIONS.items() if name in settings.keys() - module.Settings.__annotations__]
    if unknown:
        raise click.UsageError(f"{paper} has no option {', '.join(unknown)}")
    try:
        panels = [module.panels(k, len(lams) or None, len(data) or None) for k in drawn]
        sets = _read(data, format_) if data else None
        fixed = module.FIXED if figure is None else frozenset()  # given by number, a figure says itself what it takes
        _draw({k: figures[k] for k in drawn}, paths, sets, settings, sum(panels), fixed)
        for k in printed:
            click.echo(tables[k](sets, **settings))
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise click.UsageError(str(error)) from error


def _chosen(paper: str, kind: str, known: Mapping[int, object], number: int | None, others: bool) -> list[int]:
    """The given one; all if none is given, neither of these nor of the others."""
    if number is None:
        return [] if others else list(known)
    if number not in known:
        those = f"the {kind}s {', '.join(map(str, known))}" if known else f"no {kind}s"
        raise click.UsageError(f"{paper} has {those}; got {number}")
    return [number]


def _paths(paper: str, wanted: list[int], output: Path | None) -> list[Path]:
    if output is not None and len(wanted) == 1:
        require_picture(output)
        return [output]
    folder = Path() if output is None else output
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is a file; all figures need a folder")
    return [folder / f"{paper}-figure{k}.png" for k in wanted]


def _read(files: tuple[Path, ...], format_: str | None) -> dict[str, tuple[MatrixLike, VectorLike]]:
    import fenchel as fl

    names = [path.name.split(".")[0] for path in files]
    if len(set(names)) < len(names):
        names = [str(path) for path in files]
    found: dict[str, tuple[MatrixLike, VectorLike]] = {}
    for name, path in zip(names, files, strict=True):
        X, y = fl.read(path, format=format_)
        if y is None:
            raise ValueError(f"{path} has no targets")
        found[name] = X, y
    return found


def _draw(
    figures: dict[int, Callable[..., Figure]],
    paths: list[Path],
    data: Data,
    settings: Mapping[str, object],
    panels: int,
    fixed: frozenset[int],
) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True) as bar:
        task = bar.add_task("", total=panels)
        for (k, draw), path in zip(figures.items(), paths, strict=True):
            bar.update(task, description=f"figure {k}")
            path.parent.mkdir(parents=True, exist_ok=True)
            given = (None, {}) if k in fixed else (data, settings)
            draw(given[0], tick=lambda: bar.advance(task), **given[1]).savefig(path)
            bar.print(f"figure {k}: {path}")
