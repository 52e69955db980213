"""Margins of all methods at equal products with X, as parts of the largest margin.

    python -m benchmarks.margin [--data FILE ...] [--products 1000]

On the bundled digits 0 and 1, and 1 and 8, or on files with two classes; all samples are for training. The tuning of
`fenchel.steps.margin.state` was set with it.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import fenchel as fl
from fenchel.papers.datasets import Dataset
from fenchel.papers.margin import METHODS, bundled, compare, largest_margin

MARKS = (20, 50, 100, 200, 500, 1000, 2000, 5000)


def whole(name: str, X: object, y: np.ndarray) -> Dataset:
    """All samples, the larger label as +1."""
    design = fl.Design(X).stored_by_rows()
    signs = np.where(y == np.unique(y)[-1], 1.0, -1.0)
    return Dataset(name, design.matrix, signs, design.matrix[:1], signs[:1])


@click.command(help=__doc__)
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), multiple=True)
@click.option("--products", type=click.IntRange(min=20), default=1000)
def main(data: tuple[Path, ...], products: int) -> None:
    sets = {path.stem: fl.read(path) for path in data} or bundled(1)
    console, marks = Console(), [mark for mark in MARKS if mark <= products]
    for name, (X, y) in sets.items():
        dataset = whole(name, X, np.asarray(y))
        best = largest_margin(dataset)
        if best is None:
            raise click.UsageError(f"{name}: no plane through the origin separates the classes")
        table = Table("method", *map(str, marks), title=f"{name}: {dataset.X.shape}, largest margin {best:.6g}")
        for method in METHODS:
            curve = compare(dataset, products, methods=[method])[method.label]
            table.add_row(method.label, *(f"{np.max(curve.margin[curve.passes <= p]) / best:.4f}" for p in marks))
        console.print(table)


if __name__ == "__main__":
    main()
