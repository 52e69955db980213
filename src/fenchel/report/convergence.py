"""Pictures of a run: the certified gap against time, and other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.certificate import percent
from fenchel.draw.paths import Shade, new_figure
from fenchel.solver import Trace
from fenchel.solver.theory import GapBound

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_convergence(
    traces: Mapping[str, Trace] | Trace,
    optimum: float | None = None,
    beside: Sequence[tuple[str, Certificate, float]] = (),
    axes: Axes | None = None,
    title: str = "",
    bound: GapBound | None = None,
    against: str = "seconds",
) -> Axes:
    """Relative certified gap against seconds or steps, one curve per run.

    Parameters
    ----------
    traces : Trace, or traces by name
    optimum : float, optional
        The best known objective: draws the true suboptimality below each gap, shaded between.
    beside : (name, certificate, seconds) of other models, optional
        Drawn as points, their gaps in the legend.
    axes : matplotlib axes, optional
    title : str, optional
    bound : GapBound, optional
        A theorem of `fenchel.theory`, drawn dotted: its gap after as many epochs as the run has steps (a step of SDCA
        or SGD is an epoch).
    against : {"seconds", "steps"}, default "seconds"
        The horizontal axis.

    Returns
    -------
    matplotlib axes
    """
    if against not in ("seconds", "steps"):
        raise ValueError(f"against must be 'seconds' or 'steps', got {against!r}")
    if against == "steps" and beside:
        raise ValueError("beside needs against='seconds': other models have no steps")
    if axes is None:
        axes = new_figure().add_subplot()
    runs = {"fenchel": traces} if isinstance(traces, Trace) else traces
    for k, (name, trace) in enumerate(runs.items()):
        x, scale = trace["seconds" if against == "seconds" else "iteration"], np.abs(trace["primal"])
        colour = Shade.PROVEN if len(runs) == 1 else f"C{k}"
        gap = trace["gap"] / scale
        dots: dict[str, Any] = {"marker": "o", "ms": 4} if len(x) <= 30 else {}  # a line of one point is invisible
        axes.plot(x, gap, color=colour, lw=2, label=f"{name}: proven bound", **dots)
        if optimum is not None:
            true = (trace["primal"] - optimum) / scale
            seen = true > 1e-15
            axes.plot(x[seen], true[seen], color=colour, lw=1, ls="--", label=f"{name}: true error", **dots)
            axes.fill_between(x[seen], true[seen], gap[seen], color=colour, alpha=0.08, lw=0)
        if bound is not None:
            proven = bound.gap(bound.n * trace["iteration"]) / scale
            finite = np.isfinite(proven)
            axes.plot(x[finite], proven[finite], color=colour, lw=1.5, ls=":", label=f"{name}: theorem")
    for marker, (name, certificate, time) in zip(cycle("os^Dv<>p"), beside, strict=False):
        label = f"{name}: {percent(certificate.relative_gap)}"
        axes.plot([time], [certificate.relative_gap], marker, color=Shade.OTHER, ms=7, mec="white", label=label)
    from matplotlib import ticker

    scale_x = "log" if against == "seconds" else "linear"
    axes.set(xscale=scale_x, yscale="log", xlabel=against, ylabel="distance to the optimum (relative)", title=title)
    if scale_x == "log":  # ticks at 1, 2 and 5 of each decade, as plain numbers
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return axes
