"""Which method in which regime: a picture of the rates in section 2 of Shalev-Shwartz and Zhang 2013, of their
Remarks 7 and 8, and of the three regimes of Remark 17.

    from fenchel.papers import regimes
    regimes.picture().savefig("regimes.svg")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fenchel.draw.paths import new_figure
from fenchel.papers.panels import Colour
from fenchel.solver import theory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def ahead(n: int, height: np.ndarray, accuracy: np.ndarray, gamma: float, factor: float = 2.0) -> np.ndarray:
    """1 where SGD needs fewer steps than SDCA by more than `factor`, -1 where SDCA does, else 0; lam = height / n."""
    regime = theory.Regime(n, height / n, accuracy, gamma)
    descent, ascent = theory.sgd_rate(regime), theory.sdca_rate(regime)
    return np.where(factor * descent < ascent, 1.0, np.where(factor * ascent < descent, -1.0, 0.0))


def profiles(n: int) -> dict[str, np.ndarray]:
    """gamma_i of three kinds of data: |margin - 1| of each sample at the optimum of the hinge."""
    return {
        "no margin within 0.1 of 1": np.linspace(0.1, 1.0, n),
        "1 % of the margins are 1": np.where(np.arange(n) < n // 100, 0.0, 1.0),
        "margins spread evenly": np.linspace(0.0, 1.0, n),
    }


def picture(n: int = 10_000, lam: float = 1e-3) -> Figure:
    """Left and centre: the faster of SGD and SDCA by lam n and accuracy, Lipschitz and smooth losses. Right: the bounds
    of Theorem 16 for the three `profiles`, beside that of Theorem 2.
    """
    figure = new_figure(12.0, 4.2, dpi=130)
    axes = figure.subplots(1, 3)
    for one, gamma, title in ((axes[0], 0.0, "Lipschitz loss"), (axes[1], 1.0, "smooth loss (γ = 1)")):
        _map(one, n, gamma, title)
    _bounds(axes[2], n, lam)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure


def _map(axes: Axes, n: int, gamma: float, title: str) -> None:
    height, accuracy = np.geomspace(1e-2, 1e3, 150), np.geomspace(1e-6, 0.3, 150)
    grid = ahead(n, height[None, :], accuracy[:, None], gamma)
    colours = [Colour.BLUE, "#d0d7de", Colour.ORANGE]
    axes.contourf(height, accuracy, grid, levels=[-1.5, -0.5, 0.5, 1.5], colors=colours, alpha=0.55)
    axes.plot(height, 1.0 / height, "k--", lw=1.0)
    axes.set(xscale="log", yscale="log", xlabel="λ n", ylabel="accuracy ε", title=title)
    axes.set_ylim(accuracy[0], accuracy[-1])
    axes.text(200.0, 0.06, "SGD", ha="center")
    axes.text(900.0, 8e-4, "ε = 1/(λ n)", ha="right", va="top", fontsize=9)
    axes.text(0.6, 1e-4, "SDCA" if gamma else "the same,\nup to a constant", ha="center")


def _bounds(axes: Axes, n: int, lam: float) -> None:
    epochs = np.geomspace(1.0, 2000.0, 300)
    basic = theory.sdca_lipschitz(n, lam, one_sided=True)
    axes.plot(epochs, basic.dual(n * epochs), "--", color=Colour.GREY, label="Theorem 2, any margins")
    for (label, gamma), colour in zip(profiles(n).items(), (Colour.GREEN, Colour.BLUE, Colour.PURPLE), strict=True):
        bound = theory.AlmostSmoothBound(n, lam, gamma, basic.spread)
        axes.plot(epochs, bound.dual(n * epochs), color=colour, label=label)
    axes.set(
        xscale="log", yscale="log", xlabel="epochs", ylabel="dual suboptimality", title=f"hinge, λ n = {lam * n:g}"
    )
    axes.set_ylim(1e-8, 30.0)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
