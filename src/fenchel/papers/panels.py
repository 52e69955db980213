"""A grid of panels: a column for each data set, a row for each lam, one legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from fenchel.data.typing import Vector
from fenchel.draw.paths import new_figure
from fenchel.papers.datasets import Data, Dataset, datasets
from fenchel.steps import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Defaults:
    """Defaults of the figures."""

    # lam n: 1e-3 to 1e-6 on the 29882 samples of astro-ph, and 1e-3 on the 781265 of CCAT
    multiples: tuple[float, ...] = (800.0, 30.0, 3.0, 0.3, 0.03)
    epochs: int = 100  # most passes over the data
    floor: float = 1e-7  # lower end of the logarithmic axes, and of the runs
    label_width: float = 2.0  # inches of one entry of a legend


DEFAULTS = Defaults()


class Colour(StrEnum):
    """The colours of lines."""

    BLUE = "#0072b2"
    ORANGE = "#d55e00"
    GREEN = "#009e73"
    PURPLE = "#a2509a"
    GREY = "#6e7781"


@dataclass(frozen=True)
class Method:
    """A line of a figure."""

    label: str
    colour: Colour
    algorithm: Solver[Any]
    style: str = "-"


class Settings(TypedDict, total=False):
    """Settings of every figure.

    lams : values of lam, one row of panels each; 800/n, 30/n, 3/n, 0.3/n and 0.03/n by default
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

    def __init__(self, axes: Axes, dataset: Dataset, lam: float, epochs: int, seed: int) -> None:
        self.axes, self.dataset, self.lam, self.epochs, self.seed = axes, dataset, lam, epochs, seed

    @property
    def longest(self) -> float:
        """The end of the longest curve so far."""
        return max(float(np.max(line.get_xdata())) for line in self.axes.get_lines())

    def line(self, x: Vector, y: Vector, label: str, colour: str, style: str = "-", width: float = 1.6) -> None:
        """A curve; values that are not finite are left out, values below the axis are clipped."""
        finite = np.isfinite(y)
        if self.axes.get_yscale() == "log":
            y = np.maximum(y, 1e-3 * DEFAULTS.floor)
        self.axes.plot(x[finite], y[finite], style, color=colour, lw=width, label=label)


@dataclass(frozen=True)
class PanelRow:
    """A row of panels: its label, the lam of each data set, and the drawing function."""

    label: str
    lam: Callable[[Dataset], float]
    draw: Callable[[Panel], None]


def grid(
    data: Data, draw: Callable[[Panel], None], title: str, ylabel: str, settings: Settings, log: bool = True
) -> Figure:
    """The same panel for every lam, one row each; returns a matplotlib Figure."""
    lams = settings.get("lams")
    if lams is None:
        rows = [PanelRow(f"λ = {height:g}/n", _over_n(height), draw) for height in DEFAULTS.multiples]
    else:
        rows = [PanelRow(f"λ = {lam:g}", constant(lam), draw) for lam in lams]
    return draw_rows(datasets(data, settings.get("seed", 0)), rows, title, ylabel, settings, log)


def draw_rows(
    sets: Sequence[Dataset],
    rows: Sequence[PanelRow],
    title: str,
    ylabel: str,
    settings: Settings,
    log: bool = True,
    label_width: float = DEFAULTS.label_width,
) -> Figure:
    """Draw every panel; returns a matplotlib Figure."""
    tick, epochs, seed = settings.get("tick"), settings.get("epochs", DEFAULTS.epochs), settings.get("seed", 0)
    figure = new_figure(1.2 + 3.3 * len(sets), 1.0 + 2.1 * len(rows), dpi=130)
    panels = figure.subplots(len(rows), len(sets), squeeze=False)
    for i, row in enumerate(rows):
        for j, dataset in enumerate(sets):
            axes = panels[i, j]
            axes.set(yscale="log" if log else "linear")
            row.draw(Panel(axes, dataset, row.lam(dataset), epochs, seed))
            if log:
                axes.set_ylim(DEFAULTS.floor, max(axes.get_ylim()[1], 10 * DEFAULTS.floor))
            dress(axes, "epochs" if i == len(rows) - 1 else "", f"{row.label}\n{ylabel}" if j == 0 else "")
            if i == 0:
                axes.set_title(f"{dataset.name} (n = {dataset.n})", fontsize=10)
            if tick is not None:
                tick()
    figure.suptitle(title, fontsize=11)
    add_legend(figure, label_width)
    return figure


def add_legend(figure: Figure, width: float = DEFAULTS.label_width) -> None:
    """One legend for all panels, with entries of so many inches."""
    found = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    ncols = min(len(found), max(1, int(figure.get_figwidth() // width)))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=ncols, frameon=False, fontsize=9)


def _over_n(height: float) -> Callable[[Dataset], float]:
    return lambda dataset: height / dataset.n


def constant(lam: float) -> Callable[[Dataset], float]:
    """The same lam for every data set."""
    return lambda dataset: lam


def dress(axes: Axes, xlabel: str = "", ylabel: str = "") -> None:
    """Labels, ticks at whole epochs, a light grid."""
    from matplotlib.ticker import MaxNLocator

    axes.margins(x=0.0)
    axes.minorticks_off()
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
