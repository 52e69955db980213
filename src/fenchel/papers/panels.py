"""A grid of panels: one column a data set, one row a lam, one legend for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from fenchel.data.design import Vector
from fenchel.papers.datasets import Dataset

#: lam n, where no lam is given: what 1e-3 to 1e-6 are on the 29882 samples of astro-ph.
MULTIPLES = (30.0, 3.0, 0.3, 0.03)
#: Most passes over the data, where no number is given.
EPOCHS = 100
#: Where the logarithmic axes end.
FLOOR = 1e-7
#: Inches for one entry of a legend.
LABEL = 2.0

BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#a2509a", "#6e7781"


class Settings(TypedDict, total=False):
    """What every figure takes.

    lams : values of lam, one row of panels each; 30/n, 3/n, 0.3/n and 0.03/n by default
    epochs : most passes over the data of a run, 100 by default
    seed : of the split, the generated data and the samples drawn; 0 by default
    tick : called after every panel
    """

    lams: Sequence[float] | None
    epochs: int
    seed: int
    tick: Callable[[], None] | None


class Panel:
    """One pair of axes, with a data set and a lam."""

    def __init__(self, axes: Any, dataset: Dataset, lam: float, epochs: int, seed: int) -> None:
        self.axes, self.dataset, self.lam, self.epochs, self.seed = axes, dataset, lam, epochs, seed

    def line(self, x: Vector, y: Vector, label: str, colour: str, style: str = "-", width: float = 1.6) -> None:
        """A curve; what is not finite is left out, what lies below the axis runs out of it."""
        seen = np.isfinite(y)
        if self.axes.get_yscale() == "log":
            y = np.maximum(y, 1e-3 * FLOOR)
        self.axes.plot(x[seen], y[seen], style, color=colour, lw=width, label=label)


@dataclass(frozen=True)
class Row:
    """A row of panels: what its label says, the lam of each data set, and what is drawn."""

    label: str
    lam: Callable[[Dataset], float]
    draw: Callable[[Panel], None]


def grid(
    datasets: Sequence[Dataset],
    draw: Callable[[Panel], None],
    title: str,
    ylabel: str,
    settings: Settings,
    log: bool = True,
) -> Any:
    """The same panel for every lam, one row each; returns a matplotlib Figure."""
    lams = settings.get("lams")
    if lams is None:
        rows = [Row(f"λ = {height:g}/n", _over_n(height), draw) for height in MULTIPLES]
    else:
        rows = [Row(f"λ = {lam:g}", constant(lam), draw) for lam in lams]
    return draw_rows(datasets, rows, title, ylabel, settings, log)


def draw_rows(
    datasets: Sequence[Dataset], rows: Sequence[Row], title: str, ylabel: str, settings: Settings, log: bool = True
) -> Any:
    """Draw every panel; returns a matplotlib Figure."""
    tick, epochs, seed = settings.get("tick"), settings.get("epochs", EPOCHS), settings.get("seed", 0)
    figure = new_figure(1.2 + 3.3 * len(datasets), 1.0 + 2.1 * len(rows))
    panels = figure.subplots(len(rows), len(datasets), squeeze=False)
    for i, row in enumerate(rows):
        for j, dataset in enumerate(datasets):
            axes = panels[i, j]
            axes.set(yscale="log" if log else "linear")
            row.draw(Panel(axes, dataset, row.lam(dataset), epochs, seed))
            _dress(axes, log, f"{row.label}\n{ylabel}" if j == 0 else "", "epochs" if i == len(rows) - 1 else "")
            if i == 0:
                axes.set_title(f"{dataset.name} (n = {dataset.n})", fontsize=10)
            if tick is not None:
                tick()
    figure.suptitle(title, fontsize=11)
    add_legend(figure)
    return figure


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib Figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install fenchel[plot]") from error
    return Figure(figsize=(width, height), layout="constrained", dpi=130)


def add_legend(figure: Any) -> None:
    """One legend for all panels."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    ncols = min(len(found), max(1, int(figure.get_figwidth() // LABEL)))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=ncols, frameon=False, fontsize=9)


def _over_n(height: float) -> Callable[[Dataset], float]:
    return lambda dataset: height / dataset.n


def constant(lam: float) -> Callable[[Dataset], float]:
    """The same lam for every data set."""
    return lambda dataset: lam


def _dress(axes: Any, log: bool, ylabel: str, xlabel: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.margins(x=0.0)
    if log:
        top = axes.get_ylim()[1]
        axes.set_ylim(FLOOR, max(top, 10 * FLOOR))
        axes.minorticks_off()
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
