"""The experiments of Shalev-Shwartz and Zhang 2013, "Stochastic Dual Coordinate Ascent Methods", section 8.

Figures 1 to 8, on given data or on generated stand-ins for the paper's three sets. SDCA draws samples uniformly with
replacement, SDCA-Perm uses a new random permutation every epoch; the loss is the hinge (gamma = 0) or the smoothed
hinge, the penalty lam/2 |w|^2, without an intercept. Curves are of the last iterates; optima come from a certified
solve, and primal (dual) suboptimality is measured from its lower (upper) bound, so that neither is understated.

    from fenchel.papers import sdca
    sdca.figure1().savefig("figure1.png")
    sdca.figure6({"mine": (X, y)}, lams=[1e-3, 1e-5], epochs=30)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from fenchel.papers.curves import Curve, follow, reference, svm
from fenchel.papers.datasets import GENERATED, Data
from fenchel.papers.panels import DEFAULTS, Colour, Panel, Settings, grid
from fenchel.solver import theory
from fenchel.steps import SDCA, SGD
from fenchel.steps.dual_ascent.averaging import SuffixAverage

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Order:
    """An order of the samples: its label, SDCA's `sampling`, its colour."""

    label: str
    sampling: str
    colour: Colour


#: The orders of Figure 5; the comparisons with SGD have the last two.
ORDERS = (
    Order("cyclic", "cyclic", Colour.ORANGE),
    Order("SDCA", "uniform", Colour.BLUE),
    Order("SDCA-Perm", "permutation", Colour.GREEN),
)
#: The gap at which the paper ends its runs for test errors (Figures 4 and 8).
FINAL_GAP = 1e-5


def figure1(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Smoothed hinge, gamma = 1: primal and dual suboptimality, gap and the bound of Theorem 5. Straight lines."""
    title = "Figure 1: SDCA, smoothed hinge (γ = 1); curves and bound are of the last iterate"
    return grid(data, lambda panel: _suboptimality(panel, 1.0), title, "suboptimality", settings)


def figure2(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Hinge: primal and dual suboptimality and gap of the last iterate; gap of the average, and its Theorem 2."""
    title = "Figure 2: SDCA, hinge; orange and dashed: of the average, other curves: of the last iterate"
    return grid(data, lambda panel: _suboptimality(panel, 0.0), title, "suboptimality", settings)


def figure3(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """The gap for gamma = 0, 0.01, 0.1 and 1: smoother is faster, the more so the smaller lam."""

    def draw(panel: Panel) -> None:
        for gamma, colour in ((0.0, Colour.ORANGE), (0.01, Colour.PURPLE), (0.1, Colour.GREEN), (1.0, Colour.BLUE)):
            curve = _sdca(panel, gamma, "uniform")
            panel.line(curve.epoch, curve.gap, f"γ = {gamma:g}", colour)

    return grid(data, draw, "Figure 3: SDCA, effect of smoothing", "duality gap", settings)


def figure4(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Test error of the hinge and of the smoothed hinge (gamma = 1), until the gap is 1e-5."""

    def draw(panel: Panel) -> None:
        for gamma, colour, label in ((1.0, Colour.BLUE, "smoothed hinge (γ = 1)"), (0.0, Colour.ORANGE, "hinge")):
            curve = _sdca(panel, gamma, "uniform", until=FINAL_GAP)
            panel.line(curve.epoch[1:], 100 * curve.error[1:], label, colour)

    return grid(data, draw, "Figure 4: SDCA, test error", "test error (%)", settings, log=False)


def figure5(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """The gap for uniform, permuted and cyclic samples; smoothed hinge, gamma = 1. Theorem 5 is for uniform draws."""

    def draw(panel: Panel) -> None:
        for order in ORDERS:
            curve = _sdca(panel, 1.0, order.sampling)
            panel.line(curve.epoch, curve.gap, order.label, order.colour)
        _smooth_bound(panel)

    title = "Figure 5: the order of the samples, smoothed hinge (γ = 1); the bound is of uniform draws, last iterate"
    return grid(data, draw, title, "duality gap", settings)


def figure6(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Primal suboptimality of SDCA, SDCA-Perm and SGD; smoothed hinge, gamma = 1."""
    title = "Figure 6: SDCA and SGD, smoothed hinge (γ = 1)"
    return grid(data, lambda panel: _race(panel, 1.0), title, "primal suboptimality", settings)


def figure7(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Primal suboptimality of SDCA, SDCA-Perm and SGD; hinge."""
    title = "Figure 7: SDCA and SGD, hinge"
    return grid(data, lambda panel: _race(panel, 0.0), title, "primal suboptimality", settings)


def figure8(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Test error of SDCA on the smoothed hinge (gamma = 1, until the gap is 1e-5) and of SGD on the hinge."""

    def draw(panel: Panel) -> None:
        curve = _sdca(panel, 1.0, "uniform", until=FINAL_GAP)
        panel.line(curve.epoch[1:], 100 * curve.error[1:], "SDCA, smoothed hinge (γ = 1)", Colour.BLUE)
        other = _sgd(panel, 0.0, len(curve.epoch) - 1)
        panel.line(other.epoch[1:], 100 * other.error[1:], "SGD, hinge", Colour.ORANGE)

    return grid(data, draw, "Figure 8: SDCA and SGD, test error", "test error (%)", settings, log=False)


FIGURES: dict[int, Callable[..., Figure]] = dict(
    enumerate((figure1, figure2, figure3, figure4, figure5, figure6, figure7, figure8), start=1)
)
TABLES: dict[int, Callable[..., str]] = {}
FIXED: frozenset[int] = frozenset()


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of panels of a figure, for these numbers of lams and data sets (None for the defaults)."""
    return (lams or len(DEFAULTS.multiples)) * (sets or GENERATED)


def _sdca(panel: Panel, gamma: float, sampling: str, until: float = DEFAULTS.floor, output: str = "last") -> Curve:
    problem = svm(panel.dataset, panel.lam, gamma)
    block = 1 if sampling == "permutation" else None
    algorithm = SDCA(sampling=sampling, block=block, shrink=False, accelerate=False, output=output)  # as in the paper
    return follow(problem, algorithm, panel.epochs, panel.seed, until, panel.dataset)


def _sgd(panel: Panel, gamma: float, epochs: int, least: int = 10) -> Curve:
    """SGD has no gap to stop at: it runs for as many epochs as SDCA, and at least `least`."""
    problem = svm(panel.dataset, panel.lam, gamma)
    return follow(problem, SGD(), min(panel.epochs, max(epochs, least)), panel.seed, dataset=panel.dataset)


def _suboptimality(panel: Panel, gamma: float) -> None:
    problem = svm(panel.dataset, panel.lam, gamma)
    best, curve = reference(problem), _sdca(panel, gamma, "uniform")
    panel.line(curve.epoch, curve.primal - best.dual, "primal suboptimality", Colour.GREEN)
    panel.line(curve.epoch, best.primal - curve.dual, "dual suboptimality", Colour.PURPLE)
    panel.line(curve.epoch, curve.gap, "duality gap", Colour.BLUE)
    if gamma > 0.0:
        _smooth_bound(panel)
        return
    n, average = panel.dataset.n, _sdca(panel, gamma, "uniform", output="average")
    panel.line(average.epoch, average.gap, "gap of the average", Colour.ORANGE)
    epochs = np.arange(1.0, panel.longest + 1.0)
    bound = theory.sdca_lipschitz(n, panel.lam, one_sided=True).gap(n * epochs, n * SuffixAverage.skipped(epochs))
    panel.line(epochs, bound, "bound of Theorem 2, that average", Colour.GREY, "--")


def _smooth_bound(panel: Panel) -> None:
    epochs = np.linspace(0.0, panel.longest, 400)
    bound = theory.sdca(svm(panel.dataset, panel.lam, 1.0)).gap(epochs * panel.dataset.n)
    panel.line(epochs, bound, "bound of Theorem 5, last iterate", Colour.GREY, "--")


def _race(panel: Panel, gamma: float) -> None:
    best = reference(svm(panel.dataset, panel.lam, gamma))
    longest = 0
    for order in ORDERS[1:]:
        curve = _sdca(panel, gamma, order.sampling)
        longest = max(longest, len(curve.epoch) - 1)
        panel.line(curve.epoch, curve.primal - best.dual, order.label, order.colour)
    curve = _sgd(panel, gamma, longest)
    panel.line(curve.epoch, curve.primal - best.dual, "SGD", Colour.ORANGE)
