"""Pictures of paths: weights against lam, and their proven gaps."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class DrawnPath(Protocol):
    """The interface of a path for its picture."""

    @property
    def lams(self) -> Vector: ...

    @property
    def coefs(self) -> Vector: ...


class DrawnAnchor(Protocol):
    """A lam with a proven bound."""

    @property
    def lam(self) -> float: ...


class DrawnInterval(Protocol):
    """A model and its interval of lam."""

    @property
    def lam(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def solved(self) -> bool: ...

    @property
    def anchors(self) -> Sequence[DrawnAnchor]: ...
    def gap(self, lam: float) -> float: ...
    def objective(self, lam: float) -> float: ...


class DrawnIntervals(Protocol):
    """The interface of a certified path for its picture."""

    @property
    def eps(self) -> float: ...

    @property
    def knots(self) -> Sequence[DrawnInterval]: ...
    @property
    def coefs(self) -> Vector: ...


class Shade(StrEnum):
    """The colours of pictures."""

    INK = "#24292f"
    MUTED = "#8c959f"
    PROVEN = "#0969da"
    OTHER = "#bc4c00"


def new_figure(width: float = 10.0, height: float = 4.8, dpi: int = 150) -> Figure:
    """An empty matplotlib figure, or an error with the command that installs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install fenchel[plot]") from error
    return Figure(figsize=(width, height), layout="constrained", dpi=dpi)


def plot_path(path: DrawnPath, axes: Axes | None = None, title: str = "") -> Axes:
    """Draw the weights of a `Path` against lam, the largest lam on the left."""
    axes = new_figure().add_subplot() if axes is None else axes
    drawn = _largest(path.coefs)
    for k, j in enumerate(drawn):
        axes.plot(path.lams, path.coefs[j], color=f"C{k % 10}", lw=1.2)
    _finish(axes, title, _weights_label(path.coefs, drawn))
    axes.set_xlabel("lam")
    return axes


def plot_certified_path(path: DrawnIntervals, title: str = "") -> Figure:
    """Draw a `CertifiedPath`: the weights of the model used at each lam, and its proven bound.

    Above, the weights, constant on the interval of each model. Below, the proven bound on (P - P*) / P, at most eps.
    """
    if not path.knots:
        raise ValueError("this path has no proven model to draw")
    figure = new_figure(height=6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1.0])
    drawn = _largest(path.coefs)
    lams = np.array([end for knot in path.knots for end in (knot.high, knot.low)])
    for k, j in enumerate(drawn):
        above.plot(lams, np.repeat(path.coefs[j], 2), color=f"C{k % 10}", lw=1.2)
    _finish(above, title, _weights_label(path.coefs, drawn))
    where, bound = band(path)
    below.fill_between(where, 0.0, bound, color=Shade.PROVEN, alpha=0.25, lw=0)
    below.plot(where, bound, color=Shade.PROVEN, lw=1.0)
    below.axhline(path.eps, color=Shade.OTHER, lw=1.2, ls="--")
    below.annotate(
        f"eps = {path.eps:g}",
        (1.0, path.eps),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=Shade.OTHER,
        fontsize=9,
    )
    marks: dict[str, Any] = {"clip_on": False, "ls": "none", "marker": "|", "ms": 9, "zorder": 3}
    for solved, colour, label in ((True, Shade.INK, "solved"), (False, Shade.MUTED, "between two solutions")):
        at = [knot.lam for knot in path.knots if knot.solved is solved]
        if at:
            below.plot(at, np.zeros(len(at)), color=colour, label=f"{len(at)} models, {label}", **marks)
    below.set_ylim(0.0, 1.35 * path.eps)
    _finish(below, "", "proven distance\nto the optimum (relative)", invert=False)
    below.set_xlabel("lam")
    below.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
    return figure


def band(path: DrawnIntervals) -> tuple[Vector, Vector]:
    """Lams (a dozen for each model, and its anchors), the largest first, and the proven relative gap at each."""
    lams, bounds = [], []
    for knot in path.knots:
        even = np.clip(np.geomspace(knot.high, knot.low, 12), knot.low, knot.high)
        for lam in sorted({*even.tolist(), *(anchor.lam for anchor in knot.anchors)}, reverse=True):
            lams.append(lam)
            bounds.append(knot.gap(lam) / knot.objective(lam))
    return np.array(lams), np.array(bounds)


def _largest(coefs: Vector, most: int = 60) -> NDArray[np.intp]:
    """The weights to draw: at most `most`, the largest of those that are not always zero."""
    size = np.abs(coefs).max(axis=1)
    order = np.argsort(-size, kind="stable")[:most]
    return np.sort(order[size[order] > 0])


def _weights_label(coefs: Vector, drawn: NDArray[np.intp]) -> str:
    alive = int(np.count_nonzero(np.any(coefs != 0, axis=1)))
    return "weights" if len(drawn) == alive else f"the {len(drawn)} largest of {alive} weights"


def _finish(axes: Axes, title: str, label: str, invert: bool = True) -> None:
    axes.set(xscale="log", ylabel=label, title=title)
    if invert:
        axes.xaxis.set_inverted(True)
        axes.axhline(0.0, color=Shade.MUTED, lw=0.8)
    axes.margins(x=0.01)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
