"""The figures of Duenner, Forte, Takac and Jaggi 2016, "Primal-Dual Rates and Certificates", and one of its theorems.

Figure 1 is the Lipschitzing of |.|; Figure 2 compares coordinate descent (Algorithm 1, one random coordinate per step)
with its accelerated form, APPROX, on the Lasso over weights and on the SVM over samples; and APPROX with restarts,
which is not in the paper; Figure 3, not in the paper either, draws Theorems 2 and 4 over runs. Curves are of the last
iterates. The Lasso's lower bound is the Lipschitzed one of section 5.2, the SVM's is D at the multipliers.

    from fenchel.papers import certificates
    certificates.figure1().savefig("figure1.png")
    certificates.figure2({"mine": (X, y)}, epochs=30)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fenchel.certificate.bounds.constructions import constructions
from fenchel.data.typing import Vector
from fenchel.draw.paths import new_figure
from fenchel.papers.curves import Curve, follow, reference, solve_quietly, svm
from fenchel.papers.datasets import GENERATED, Data, Dataset, datasets
from fenchel.papers.panels import DEFAULTS, Colour, Method, Panel, PanelRow, Settings, add_legend, constant, draw_rows
from fenchel.problem import Problem
from fenchel.problem.losses import EpsilonInsensitive, Squared
from fenchel.problem.penalties import L1, L2, ElasticNet
from fenchel.solver import theory
from fenchel.steps import APPROX, FISTA, SDCA, Candidate, Solver

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
    """Coordinate descent and APPROX: the gaps of the Lasso (lam_max / 10 and lam_max / 1000) and of the SVM (1/n), for
    targets with more than two values of support vector regression; dotted, the suboptimality of P or D. One row of
    each for every given lam.
    """
    sets, lams = datasets(data, settings.get("seed", 0), regression=True), settings.get("lams")
    machine = "SVM" if all(one.has_labels for one in sets) else "SVR"
    if lams is None:
        rows = [
            *(PanelRow(f"Lasso, λ = λmax/{part}", default_lam(part), _lasso_panel) for part in (10, 1000)),
            PanelRow(f"{machine}, λ = 1/n", lambda dataset: 1.0 / dataset.n, _svm_panel),
        ]
    else:
        kinds = (("Lasso", _lasso_panel), (machine, _svm_panel))
        rows = [PanelRow(f"{name}, λ = {lam:g}", constant(lam), draw) for name, draw in kinds for lam in lams]
    title = "Figure 2: coordinate descent and APPROX, last iterates"
    return draw_rows(sets, rows, title, "gap", settings, label_width=3.4)


def figure3(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Not in the paper: Theorems 2 (elastic net) and 4 (Lasso) turn the rates of FISTA, coordinate descent and APPROX
    into bounds on the gap of their iterates; dashed. lam is lam_max / 10.
    """
    sets, lams = datasets(data, settings.get("seed", 0), regression=True), settings.get("lams")
    heights = [("λmax/10", default_lam(10))] if lams is None else [(f"{lam:g}", constant(lam)) for lam in lams]
    kinds = (("elastic net", 2, _elastic_net), ("Lasso", 4, lasso))
    rows = [
        PanelRow(f"{name}, λ = {height}\nTheorem {number}", lam, partial(_rates_panel, problem_of))
        for name, number, problem_of in kinds
        for height, lam in heights
    ]
    title = "Figure 3: gaps of the last iterates, and their bounds from the algorithms' rates"
    return draw_rows(sets, rows, title, "gap", settings, label_width=3.4)


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

FIGURES: dict[int, Callable[..., Figure]] = {1: figure1, 2: figure2, 3: figure3}
TABLES: dict[int, Callable[..., str]] = {}
FIXED = frozenset({1})


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of panels of a figure, for these numbers of lams and data sets (None for the defaults)."""
    rows = 3 if figure == 2 and lams is None else 2 * (lams or 1)
    return 2 if figure == 1 else rows * (sets or GENERATED)


def conjugate(a: Vector, values: Vector, u: Vector) -> Vector:
    """max_a u a - g(a) over a grid of a."""
    return np.asarray(np.max(u[:, None] * a[None, :] - values[None, :], axis=1))


def lasso(dataset: Dataset, lam: float) -> Problem:
    """Least squares on the labels, L1, no intercept."""
    return Problem(dataset.X, dataset.y, Squared(), L1(lam))


def machine(dataset: Dataset, lam: float) -> Problem:
    """The support vector machine, or for numbers support vector regression with epsilon = 0.1."""
    if dataset.has_labels:
        return svm(dataset, lam, 0.0)
    return Problem(dataset.X, dataset.y, EpsilonInsensitive(0.1), L2(lam))


def default_lam(part: float) -> Callable[[Dataset], float]:
    """The smallest lam for which w = 0 is optimal for the Lasso, divided by `part`."""
    return lambda dataset: lasso(dataset, 1.0).lam_max() / part


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
    problem = machine(panel.dataset, panel.lam)
    best = reference(problem).primal
    for kind in KINDS:
        curve = svm_curve(problem, kind, panel.epochs, panel.seed)
        _lines(panel, kind, curve, best - curve.dual)


def _lines(panel: Panel, kind: Kind, curve: Curve, suboptimality: Vector) -> None:
    panel.line(curve.epoch, curve.gap, f"{kind.name}: gap", kind.colour)
    panel.line(curve.epoch, suboptimality, f"{kind.name}: suboptimality", kind.colour, ":", 1.2)


def _elastic_net(dataset: Dataset, lam: float) -> Problem:
    return Problem(dataset.X, dataset.y, Squared(), ElasticNet(lam, 0.5))


def _rates_panel(problem_of: Callable[[Dataset, float], Problem], panel: Panel) -> None:
    problem = problem_of(panel.dataset, panel.lam)
    bound = _gradient_bound if isinstance(problem.penalty, ElasticNet) else _lipschitzed
    runs = rated(problem)
    curves = [
        follow(problem, run.method.algorithm, panel.epochs, panel.seed, DEFAULTS.floor, bound=bound) for run in runs
    ]
    epochs = np.arange(1.0, max(curve.epoch[-1] for curve in curves) + 1.0)
    for run, curve in zip(runs, curves, strict=True):
        label, colour = run.method.label, run.method.colour
        panel.line(curve.epoch, curve.gap, f"{label}: gap", colour)
        panel.line(epochs, run.gaps.gap(epochs * run.steps), f"{label}: bound", colour, "--")


@dataclass(frozen=True)
class Rated:
    """An algorithm, its steps in an epoch, and the bound on its gap that follows from its rate."""

    method: Method
    steps: int
    gaps: theory.GapOfRate


def rated(problem: Problem) -> list[Rated]:
    """FISTA, coordinate descent and APPROX over weights. Their rates need |w*|, here that of a certified solve."""
    found = solve_quietly(problem)
    d, w, start = problem.shape[1], found.w, problem.loss_at_zero - found.certificate.primal + found.certificate.gap
    distance = float(np.sqrt(theory.approx_curvature(problem) @ w**2))
    smoothness = problem.loss.smoothness * theory.spectral_sigma(problem)
    methods = (
        (Method("FISTA", Colour.PURPLE, FISTA(restart=False)), 1, theory.fista_rate(smoothness, _length(w))),
        (Method("CD", Colour.ORANGE, KINDS[0].over_weights), d, theory.descent_rate(d, distance, start)),
        (Method("APPROX", Colour.BLUE, KINDS[1].over_weights), d, theory.approx_rate(d, distance, start)),
    )
    return [Rated(method, steps, theory.gap_of_rate(problem, rate)) for method, steps, rate in methods]


def _length(w: Vector) -> float:
    return float(np.linalg.norm(w))


def _gradient_bound(problem: Problem, candidate: Candidate) -> float:
    """D at the gradient's multipliers."""
    return problem.dual(-problem.loss.derivative(problem.scores(candidate.w), problem.y))


def _graph(axes: Axes, x: Vector, y: Vector, colour: str, style: str, label: str) -> None:
    axes.plot(x, y, style, color=colour, lw=1.6, label=label)
