"""The figures of Duenner, Forte, Takac and Jaggi 2016, "Primal-Dual Rates and Certificates".

Figure 1 is the Lipschitzing of |.|; Figure 2 compares coordinate descent (Algorithm 1, one random coordinate per step)
with its accelerated form, APPROX, on the Lasso over weights and on the SVM over samples; and APPROX with restarts,
which is not in the paper. Curves are of the last iterates. The Lasso's lower bound is the Lipschitzed one of section
5.2, the SVM's is D at the multipliers.

    from fenchel.papers import certificates
    certificates.figure1().savefig("figure1.png")
    certificates.figure2({"mine": (X, y)}, epochs=30)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fenchel.certificate.bounds.constructions import constructions
from fenchel.data.typing import Vector
from fenchel.draw.paths import new_figure
from fenchel.papers.curves import Curve, follow, reference, svm
from fenchel.papers.datasets import GENERATED, Data, Dataset
from fenchel.papers.panels import DEFAULTS, Colour, Panel, PanelRow, Settings, add_legend, constant, draw_rows
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import L1
from fenchel.steps import APPROX, SDCA, Candidate, Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Figure 1: the radius B of the interval that |.| is restricted to.
RADIUS = 2.0


def figure1(data: Data = None, tick: Callable[[], None] | None = None, **settings: object) -> Figure:
    """|.| restricted to [-B, B], and its conjugate: the indicator of [-1, 1] becomes B max(0, |u| - 1), B-Lipschitz."""
    if data is not None or settings:
        raise ValueError("Figure 1 takes no data and no settings; Figure 2 does")
    figure = new_figure(8.0, 3.4, dpi=130)
    left, right = figure.subplots(1, 2)
    a, u = np.linspace(-3.5, 3.5, 701), np.linspace(-2.5, 2.5, 501)
    inside = np.abs(a) <= RADIUS
    _graph(left, a, np.abs(a), Colour.GREY, "--", "g = |·|")
    _graph(left, a[inside], np.abs(a[inside]), Colour.BLUE, "-", "Lipschitzed")
    _graph(right, u, np.where(np.abs(u) <= 1.0, 0.0, np.nan), Colour.GREY, "--", "g = |·|")
    _graph(right, u, conjugate(a[inside], np.abs(a[inside]), u), Colour.BLUE, "-", "Lipschitzed")
    walls = ((left, RADIUS, RADIUS, Colour.BLUE, "-"), (right, 1.0, 0.0, Colour.GREY, "--"))
    for axes, end, height, colour, style in walls:  # the function is infinite beyond
        axes.vlines([-end, end], height, 4.0, color=colour, ls=style, lw=1.6)
    left.set(title=f"g(α), restricted to |α| ≤ B = {RADIUS:g}", xlabel="α", ylim=(-0.2, 4.0))
    right.set(title="its conjugate g*(u)", xlabel="u", ylim=(-0.2, 4.0))
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if tick is not None:
            tick()
    figure.suptitle("Figure 1: the Lipschitzing trick", fontsize=11)
    add_legend(figure)
    return figure


def figure2(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Coordinate descent and APPROX: the gaps of the Lasso (lam_max / 10) and of the SVM (1/n); dotted, the
    suboptimality of P or D. One row of each for every given lam.
    """
    lams = settings.get("lams")
    if lams is None:
        rows = [
            PanelRow("Lasso, λ = λmax/10", default_lam, _lasso_panel),
            PanelRow("SVM, λ = 1/n", lambda dataset: 1.0 / dataset.n, _svm_panel),
        ]
    else:
        kinds = (("Lasso", _lasso_panel), ("SVM", _svm_panel))
        rows = [PanelRow(f"{name}, λ = {lam:g}", constant(lam), draw) for name, draw in kinds for lam in lams]
    return draw_rows(data, rows, "Figure 2: coordinate descent and APPROX", "gap", settings)


@dataclass(frozen=True)
class Kind:
    """An algorithm in its two forms."""

    name: str
    colour: Colour
    over_weights: Solver[Any]
    over_samples: Solver[Any]


#: Coordinate descent, accelerated, and accelerated with restarts.
KINDS = (
    Kind(
        "CD",
        Colour.ORANGE,
        APPROX(over="weights", accelerate=False),
        SDCA(sampling="uniform", shrink=False, accelerate=False),
    ),
    Kind("APPROX", Colour.BLUE, APPROX(over="weights", restart=False), APPROX(over="samples", restart=False)),
    Kind("APPROX, restarted", Colour.GREEN, APPROX(over="weights"), APPROX(over="samples")),
)

FIGURES: dict[int, Callable[..., Figure]] = {1: figure1, 2: figure2}
TABLES: dict[int, Callable[..., str]] = {}


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of panels of a figure, for these numbers of lams and data sets (None for the defaults)."""
    return 2 if figure == 1 else 2 * (lams or 1) * (sets or GENERATED)


def conjugate(a: Vector, values: Vector, u: Vector) -> Vector:
    """max_a u a - g(a) over a grid of a."""
    return np.asarray(np.max(u[:, None] * a[None, :] - values[None, :], axis=1))


def lasso(dataset: Dataset, lam: float) -> Problem:
    """Least squares on the labels, L1, no intercept."""
    return Problem(dataset.X, dataset.y, Squared(), L1(lam))


def default_lam(dataset: Dataset) -> float:
    """A tenth of the smallest lam for which w = 0 is optimal."""
    return 0.1 * lasso(dataset, 1.0).lam_max()


def lasso_curve(problem: Problem, kind: Kind, epochs: int, seed: int = 0, until: float = DEFAULTS.floor) -> Curve:
    """Steps over weights, with Lipschitzed bounds."""
    return follow(problem, kind.over_weights, epochs, seed, until, bound=_lipschitzed)


def svm_curve(problem: Problem, kind: Kind, epochs: int, seed: int = 0, until: float = DEFAULTS.floor) -> Curve:
    """Steps over samples."""
    return follow(problem, kind.over_samples, epochs, seed, until)


def _lipschitzed(problem: Problem, candidate: Candidate) -> float:
    primal = problem.primal(candidate.w)
    return constructions(problem, problem.scores(candidate.w), primal, primal)["Lipschitzing"].dual


def _lasso_panel(panel: Panel) -> None:
    problem = lasso(panel.dataset, panel.lam)
    best = reference(problem, "auto").dual
    for kind in KINDS:
        curve = lasso_curve(problem, kind, panel.epochs, panel.seed)
        _lines(panel, kind, curve, curve.primal - best)


def _svm_panel(panel: Panel) -> None:
    problem = svm(panel.dataset, panel.lam, 0.0)
    best = reference(problem).primal
    for kind in KINDS:
        curve = svm_curve(problem, kind, panel.epochs, panel.seed)
        _lines(panel, kind, curve, best - curve.dual)


def _lines(panel: Panel, kind: Kind, curve: Curve, suboptimality: Vector) -> None:
    panel.line(curve.epoch, curve.gap, f"{kind.name}: gap", kind.colour)
    panel.line(curve.epoch, suboptimality, "suboptimality", kind.colour, ":", 1.2)


def _graph(axes: Axes, x: Vector, y: Vector, colour: str, style: str, label: str) -> None:
    axes.plot(x, y, style, color=colour, lw=1.6, label=label)
