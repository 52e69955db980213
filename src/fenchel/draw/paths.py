"""Pictures of paths: weights against lam, and what is proven of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fenchel.data.design import Vector


class Drawn(Protocol):
    """What a picture of a path needs of it."""

    @property
    def lams(self) -> Vector: ...

    @property
    def coefs(self) -> Vector: ...


class Anchored(Protocol):
    """A lam at which a bound was proven."""

    @property
    def lam(self) -> float: ...


class Piece(Protocol):
    """A model in charge of an interval of lam."""

    @property
    def lam(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def solved(self) -> bool: ...

    @property
    def anchors(self) -> Sequence[Anchored]: ...
    def gap(self, lam: float) -> float: ...
    def objective(self, lam: float) -> float: ...


class DrawnIntervals(Protocol):
    """What a picture of a certified path needs of it."""

    @property
    def eps(self) -> float: ...

    @property
    def knots(self) -> Sequence[Piece]: ...
    @property
    def coefs(self) -> Vector: ...


INK, MUTED, PROVEN, OTHER = "#24292f", "#8c959f", "#0969da", "#bc4c00"
#: The most weights that are drawn, the largest ones.
MOST_LINES = 60
#: Points at which the bound of each model is drawn; between the lams where it was proven it is a straight line.
POINTS = 12


def new_figure(width: float = 10.0, height: float = 4.8) -> Any:
    """An empty figure of matplotlib, or an error that says how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install fenchel[plot]") from error
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def plot_path(path: Drawn, axes: Any = None, title: str = "") -> Any:
    """Draw the weights against lam, the largest lam on the left; a tick above for each solution.

    Parameters
    ----------
    path : Path
    axes : matplotlib axes, optional
    title : str, optional

    Returns
    -------
    matplotlib axes
    """
    axes = new_figure().add_subplot() if axes is None else axes
    drawn = _largest(path.coefs)
    for k, j in enumerate(drawn):
        axes.plot(path.lams, path.coefs[j], color=f"C{k % 10}", lw=1.2)
    _finish(axes, title, _weights_label(path.coefs, drawn))
    axes.set_xlabel("lam")
    return axes


def plot_certified_path(path: DrawnIntervals, title: str = "") -> Any:
    """Draw a certified path: the weights of the model in charge at each lam, and the bound that is proven of it.

    Above, the weights: steps, since one model serves a whole interval. Below, a band from zero up to the proven bound
    on the relative distance to the optimum, (P - P*) / P; it stays below eps at every lam.

    Parameters
    ----------
    path : CertifiedPath
    title : str, optional

    Returns
    -------
    matplotlib figure, with two axes
    """
    if not path.knots:
        raise ValueError("nothing is proven of this path, so there is nothing to draw")
    figure = new_figure(height=6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1.0])
    drawn = _largest(path.coefs)
    lams = np.array([end for knot in path.knots for end in (knot.high, knot.low)])
    for k, j in enumerate(drawn):
        above.plot(lams, np.repeat(path.coefs[j], 2), color=f"C{k % 10}", lw=1.2)
    _finish(above, title, _weights_label(path.coefs, drawn))
    where, bound = band(path)
    below.fill_between(where, 0.0, bound, color=PROVEN, alpha=0.25, lw=0)
    below.plot(where, bound, color=PROVEN, lw=1.0)
    below.axhline(path.eps, color=OTHER, lw=1.2, ls="--")
    below.annotate(
        f"eps = {path.eps:g}",
        (1.0, path.eps),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=OTHER,
        fontsize=9,
    )
    marks = {"clip_on": False, "ls": "none", "marker": "|", "ms": 9, "zorder": 3}
    for solved, colour, label in ((True, INK, "solved"), (False, MUTED, "between two solutions")):
        at = [knot.lam for knot in path.knots if knot.solved is solved]
        if at:
            below.plot(at, np.zeros(len(at)), color=colour, label=f"{len(at)} models, {label}", **marks)
    below.set_ylim(0.0, 1.35 * path.eps)
    _finish(below, "", "proven distance\nto the optimum (relative)", invert=False)
    below.set_xlabel("lam")
    below.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    return figure


def band(path: DrawnIntervals) -> tuple[Vector, Vector]:
    """Lams, the largest first, and the relative gap that is proven at each."""
    lams, bounds = [], []
    for knot in path.knots:
        even = np.clip(np.geomspace(knot.high, knot.low, POINTS), knot.low, knot.high)
        for lam in sorted({*even.tolist(), *(anchor.lam for anchor in knot.anchors)}, reverse=True):
            lams.append(lam)
            bounds.append(knot.gap(lam) / knot.objective(lam))
    return np.array(lams), np.array(bounds)


def _largest(coefs: Vector) -> NDArray[np.intp]:
    """The weights to draw: those that are not always zero, the largest of them if they are many."""
    size = np.abs(coefs).max(axis=1)
    order = np.argsort(-size, kind="stable")[:MOST_LINES]
    return np.sort(order[size[order] > 0])


def _weights_label(coefs: Vector, drawn: NDArray[np.intp]) -> str:
    alive = int(np.count_nonzero(np.any(coefs != 0, axis=1)))
    return "weights" if len(drawn) == alive else f"the {len(drawn)} largest of {alive} weights"


def _finish(axes: Any, title: str, label: str, invert: bool = True) -> None:
    axes.set(xscale="log", ylabel=label, title=title)
    if invert:
        axes.xaxis.set_inverted(True)
        axes.axhline(0.0, color=MUTED, lw=0.8)
    axes.margins(x=0.01)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
