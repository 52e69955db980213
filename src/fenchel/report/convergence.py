"""Pictures of a run: the certified gap against time, with other models beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.certificate import percent
from fenchel.solver import Trace

INK, MUTED, PROVEN, OTHER = "#24292f", "#8c959f", "#0969da", "#bc4c00"


def plot_convergence(
    traces: Mapping[str, Trace] | Trace,
    optimum: float | None = None,
    beside: Sequence[tuple[str, Certificate, float]] = (),
    axes: Any = None,
    title: str = "",
) -> Any:
    """Relative certified gap against seconds, one curve a run.

    Parameters
    ----------
    traces : Trace, or traces by name
    optimum : float, optional
        The best known objective: draws the true suboptimality below each gap, shaded between.
    beside : (name, certificate, seconds) of other models, optional
        Drawn as points, their gaps in the legend.
    axes : matplotlib axes, optional
    title : str, optional

    Returns
    -------
    matplotlib axes
    """
    if axes is None:
        axes = _new_axes()
    runs = {"fenchel": traces} if isinstance(traces, Trace) else traces
    for k, (name, trace) in enumerate(runs.items()):
        seconds, scale = trace["seconds"], np.abs(trace["primal"])
        colour = PROVEN if len(runs) == 1 else f"C{k}"
        gap = trace["gap"] / scale
        axes.plot(seconds, gap, color=colour, lw=2, label=f"{name}: proven bound")
        if optimum is not None:
            true = (trace["primal"] - optimum) / scale
            seen = true > 1e-15
            axes.plot(seconds[seen], true[seen], color=colour, lw=1, ls="--", label=f"{name}: true error")
            axes.fill_between(seconds[seen], true[seen], gap[seen], color=colour, alpha=0.08, lw=0)
    for marker, (name, certificate, time) in zip(cycle("os^Dv<>p"), beside, strict=False):
        label = f"{name}: {percent(certificate.relative_gap)}"
        axes.plot([time], [certificate.relative_gap], marker, color=OTHER, ms=7, mec="white", label=label)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="distance to the optimum (relative)", title=title)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return axes


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install fenchel[plot]") from error
    figure = Figure(figsize=(10, 4.8), layout="constrained", dpi=150)
    return figure.add_subplot()
