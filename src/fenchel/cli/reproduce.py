"""fenchel reproduce: the figures of a paper, on any data."""

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
OPTIONS = {"lams": "--lam", "epochs": "--epochs", "runs": "--runs", "seed": "--seed"}


@click.command("reproduce", help="Draw the figures of a paper, on your data or on generated stand-ins for the paper's.")
@click.argument("paper", type=click.Choice(sorted(PAPERS)))
@click.option("--figure", type=int, default=None, help="Which one; all of them by default.")
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file with two classes, one column of panels; may be repeated.",
)
@click.option("--format", "format_", default=None, help="Of the data; by default from the files' names.")
@click.option("--lam", "lams", type=float, multiple=True, help="One row of panels; may be repeated.")
@click.option(
    "--epochs", type=click.IntRange(min=1), default=None, help="Most passes over the data.  [default: 100, or 20]"
)
@click.option("--runs", type=click.IntRange(min=1), default=None, help="Seeds of interpolation's bands.  [default: 3]")
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
    data: tuple[Path, ...],
    format_: str | None,
    lams: tuple[float, ...],
    epochs: int | None,
    runs: int | None,
    seed: int | None,
    output: Path | None,
) -> None:
    module = importlib.import_module(PAPERS[paper])
    figures: dict[int, Callable[..., Figure]] = module.FIGURES
    if figure is not None and figure not in figures:
        raise click.UsageError(f"{paper} has the figures {', '.join(map(str, figures))}; got {figure}")
    wanted = list(figures) if figure is None else [figure]
    if any(not lam > 0 for lam in lams):
        raise click.UsageError("--lam must be positive")
    if format_ is not None and not data:
        raise click.UsageError("--format needs --data")
    paths = _paths(paper, wanted, output)
    given = {"lams": lams or None, "epochs": epochs, "runs": runs, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    unknown = [option for name, option in OPTIONS.items() if name in settings.keys() - module.Settings.__annotations__]
    if unknown:
        raise click.UsageError(f"{paper} has no option {', '.join(unknown)}")
    panels = [module.panels(k, len(lams) or None, len(data) or None) for k in wanted]
    try:
        sets = _read(data, format_) if data else None
        _draw({k: figures[k] for k in wanted}, paths, sets, settings, sum(panels))
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise click.UsageError(str(error)) from error


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
) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True) as bar:
        task = bar.add_task("", total=panels)
        for (k, draw), path in zip(figures.items(), paths, strict=True):
            bar.update(task, description=f"figure {k}")
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(data, tick=lambda: bar.advance(task), **settings).savefig(path)
            bar.print(f"figure {k}: {path}")
