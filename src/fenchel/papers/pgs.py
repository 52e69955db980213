"""The experiments of Zhu et al. 2009, "Inverse Time Dependency in Convex Regularized Learning", section V.

The more samples there are, the fewer gradient steps of the Primal Gradient Solver to a given accuracy. Figures 5 to 8
and Table II on generated texts or on given data, Figure 9 on the paper's Gaussians; Figures 10 and 11, which are not in
the paper, draw Lemma 1 and Theorem 1 over the runs. A batch is one sample for p = 2, and the paper's n / d, in our
notation d over the entries of a row, for p = 1.8.

The paper takes the lam of the best test accuracy for each number of samples, from the test data ("not scientific", it
says). The proof of its Theorem 2 takes another lam for each accuracy that is asked for. We draw both: the second is the
lam of the fewest steps in runs made before, with other random numbers; it uses the test data as well.

    from fenchel.papers import pgs
    pgs.figure6(runs=20).savefig("figure6.png")
    print(pgs.table2({"mine": (X, y)}))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from fenchel.data.typing import Vector
from fenchel.draw.paths import new_figure
from fenchel.draw.tables import table
from fenchel.papers.curves import certified_gap
from fenchel.papers.datasets import Data, Dataset, Gaussians, datasets, topics
from fenchel.papers.descent import (
    KINDS,
    L2_LOGISTIC,
    L2_SQUARES,
    POWER_LOGISTIC,
    Kind,
    descend,
    journal,
    quasi_newton,
)
from fenchel.papers.panels import Colour, add_legend
from fenchel.papers.studies import Plan, Shape, Study, Toy, halved
from fenchel.problem import Problem
from fenchel.solver.theory import pgs_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Defaults:
    """Sizes with which everything is drawn in some minutes."""

    samples: int = 64_000  # of the largest training set of texts; the paper has 781265
    halvings: int = 5  # training sets are this often halved
    epochs: int = 5  # steps of the longest run, in passes over the largest training set
    runs: int = 5  # the paper has 20
    lams: tuple[float, ...] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
    table_runs: int = 20
    toy_samples: int = 128_000  # the paper has 200000
    toy_epochs: int = 1
    toy_runs: int = 150
    toy_lams: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1)
    dimensions: tuple[int, ...] = (10, 20, 40)
    theory_samples: int = 2000  # of Figures 10 and 11, with as many steps
    theory_lam: float = 1e-3


DEFAULTS = Defaults()
#: The figure that is of generated data only.
TOY_FIGURE = 9
THEORY_FIGURES = (10, 11)


class Settings(TypedDict, total=False):
    """Settings of all figures and tables.

    lams : values of lam to choose from; in Figures 10 and 11 a row of panels each
    samples : of the largest training set; 64000 by default, 128000 in Figure 9, 2000 in Figures 10 and 11
    epochs : steps of the longest run, in passes over the largest training set; 5 by default, 1 in Figures 9 to 11
    runs : of which the median is taken; 5 by default, 20 in Table II and 150 in Figure 9
    seed : of the first of them; 0 by default
    tick : called after each training set
    """

    lams: Sequence[float] | None
    samples: int
    epochs: int
    runs: int
    seed: int
    tick: Callable[[], None] | None


def figure5(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Time and iterations to one accuracy: PGS and L-BFGS for the logistic loss, p = 2 and p = 1.8."""
    rows = []
    for study, other in zip(*(_studies(kind, data, settings) for kind in (L2_LOGISTIC, POWER_LOGISTIC)), strict=True):
        target, lines = min(each.targets[len(each.targets) // 2] for each in (study, other)), []
        for each, style in ((study, "-"), (other, "--")):
            found = [each.medians(m, [each.fewest_steps(m, target)], [target]) for m in each.plan.sizes]
            steps, seconds = (np.array(values)[:, 0] for values in zip(*found, strict=True))
            lines.append(Line(f"PGS, {each.kind.label}", Colour.BLUE, style, steps, seconds))
            newton = np.array([_newton_crossing(each, m, target) for m in each.plan.sizes])
            lines.append(Line(f"L-BFGS, {each.kind.label}", Colour.ORANGE, style, newton[:, 0], newton[:, 1]))
        rows.append(Row(study, f"{100 * target:.1f} %", lines))
    return _rows("Figure 5: PGS and L-BFGS to the same test accuracy", rows, "iterations")


def figure6(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Time and steps of l2-logistic to three accuracies, by the number of samples."""
    return _dependency("Figure 6", L2_LOGISTIC, data, settings)


def figure7(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """The same for l2-least squares."""
    return _dependency("Figure 7", L2_SQUARES, data, settings)


def figure8(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """The same for l1.8-logistic."""
    return _dependency("Figure 8", POWER_LOGISTIC, data, settings)


def figure9(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Steps of l2-logistic to |w/|w| - w*| = 0.05 on two Gaussians, with the shape of Eq. (12)."""
    if data is not None:
        raise ValueError(NO_DATA)
    plan = _plan(settings, DEFAULTS.toy_samples, DEFAULTS.toy_lams, DEFAULTS.toy_epochs, DEFAULTS.toy_runs)
    figure = new_figure(6.4, 5.0, dpi=130)
    axes, m = figure.subplots(), np.array(plan.sizes)
    axes.set(xscale="log", yscale="log")
    missed: dict[int, list[int]] = {}
    for d, colour in zip(DEFAULTS.dimensions, (Colour.BLUE, Colour.GREEN, Colour.PURPLE), strict=True):
        toy = Toy(Gaussians(d, seed=plan.seed), plan)
        steps = np.array([toy.median(size) for size in plan.sizes])
        if not np.isfinite(steps).all():
            missed[d] = m[~np.isfinite(steps)].tolist()
        _points(axes, m, steps, colour, "-", f"{d} features")
        if (shape := Shape.fitted(plan.sizes, steps)) is not None:
            curve = np.geomspace(1.02 * shape.least, m[-1], 400)
            top, label = 3.0 * np.max(steps[np.isfinite(steps)]), "Eq. (12), its two constants fitted"
            curve = curve[shape(curve) <= top]
            axes.plot(curve, shape(curve), "--", color=colour, lw=1.0, label=label)
    _dress(axes, "training samples m", "gradient steps", plan.sizes)
    axes.set_title(f"steps to |w/|w| - w*| = {toy.distance:g}, medians of {plan.runs} runs", fontsize=10)
    figure.suptitle("Figure 9: two Gaussians, ℓ2 logistic", fontsize=11)
    add_legend(figure)
    if missed:
        _say_missed(axes, missed, toy.distance)
    return figure


def figure10(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Lemma 1: the measured regret, under its bound from the measured subgradients."""

    def draw(axes: Axes, problem: Problem, steps: int, seed: int) -> None:
        found = journal(problem, steps, seed)
        axes.plot(found.marks, found.regret(), "o-", color=Colour.BLUE, lw=1.6, ms=3, label="regret")
        every, bound = np.arange(1, steps + 1), found.regret_bound()
        axes.plot(every, bound, "--", color=Colour.GREY, lw=1.6, label="bound of Lemma 1")

    return _theory("Figure 10: the regret and Lemma 1", "regret", draw, data, settings)


def figure11(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Theorem 1: the suboptimality of a random iterate, under its bound."""

    def draw(axes: Axes, problem: Problem, steps: int, seed: int) -> None:
        found, every = journal(problem, steps, seed), np.arange(1, steps + 1)
        axes.plot(every, found.suboptimality, color=Colour.GREEN, lw=0.6, label="this iterate")
        means = np.cumsum(found.suboptimality) / every
        axes.plot(every, means, color=Colour.BLUE, lw=1.8, label="mean over the iterates so far")
        for delta, style, what in ((1.0, "--", "of the mean"), (0.1, ":", "with probability 0.9")):
            bound = pgs_error(found.lipschitz, found.mu, every, delta)
            axes.plot(every, bound, style, color=Colour.GREY, lw=1.6, label=f"Theorem 1, {what}")

    return _theory("Figure 11: the suboptimality and Theorem 1", "P(w) - P*", draw, data, settings)


def table2(data: Data = None, **settings: Unpack[Settings]) -> str:
    """Test accuracy of L-BFGS at the optimum and of PGS after its last step, and seconds, on the largest set."""
    rows = []
    settings = {"runs": DEFAULTS.table_runs, **settings}
    for kind in KINDS:
        for study in _studies(kind, data, settings, halvings=0):
            plan = study.plan
            lam = study.most_accurate(plan.sizes[-1])
            problem = study.problem(plan.sizes[-1], lam)
            newton, w = quasi_newton(problem, study.quality)
            found = [descend(problem, study.quality, [study.steps], plan.seed + run) for run in range(plan.runs)]
            right = np.array([run.quality[-1] for run in found])
            cells = [study.dataset.name, kind.label, f"{lam:g}", f"{newton.quality[-1]:.5f}"]
            cells += [f"{certified_gap(problem, w):.0e}", f"{newton.seconds[-1]:.2f}"]
            cells += [f"{np.median(right):.5f} ± {right.std():.5f}", f"{np.median([run.seconds for run in found]):.2f}"]
            rows.append(cells)
    names = ["data", "objective", "lam", "L-BFGS right", "gap / P", "seconds", "PGS right", "seconds"]
    return f"Table II: PGS, medians and deviations of {settings['runs']} runs\n{table(names, rows)}"


FIGURES: dict[int, Callable[..., Figure]] = dict(
    enumerate((figure5, figure6, figure7, figure8, figure9, figure10, figure11), start=5)
)
TABLES: dict[int, Callable[..., str]] = {2: table2}
FIXED: frozenset[int] = frozenset()
NO_DATA = "Figure 9 is of generated Gaussians and takes no data; choose other figures with --figure"


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """How often a figure calls `tick`, for these numbers of lams and data sets (None for the defaults)."""
    if figure == TOY_FIGURE:
        if sets:
            raise ValueError(NO_DATA)
        return len(DEFAULTS.dimensions) * (DEFAULTS.halvings + 1)
    if figure in THEORY_FIGURES:
        return len(KINDS) * (lams or 1) * (sets or 1)
    objectives = 2 if figure == min(FIGURES) else 1
    return 2 * objectives * (DEFAULTS.halvings + 1) * (sets or 1)


@dataclass(frozen=True)
class Line:
    """Steps and seconds for each number of samples."""

    label: str
    colour: Colour
    style: str
    steps: Vector
    seconds: Vector


@dataclass(frozen=True)
class Row:
    """Two panels of a data set: time and steps."""

    study: Study
    right: str
    lines: Sequence[Line]


def _plan(
    settings: Settings, samples: int, lams: Sequence[float], epochs: int, runs: int, halvings: int | None = None
) -> Plan:
    """The given settings, or these."""
    given = settings.get("lams")
    return Plan(
        sizes=halved(settings.get("samples", samples), DEFAULTS.halvings if halvings is None else halvings),
        lams=tuple(lams if given is None else given),
        passes=settings.get("epochs", epochs),
        runs=settings.get("runs", runs),
        seed=settings.get("seed", 0),
        tick=settings.get("tick") or (lambda: None),
    )


def _sets(data: Data, settings: Settings, samples: int = DEFAULTS.samples) -> list[Dataset]:
    """Training and test sets: the generated one, or the given ones with at most `samples` training samples."""
    if data is None:
        return [topics(settings.get("samples", samples), seed=settings.get("seed", 0))]
    found, most = datasets(data, settings.get("seed", 0)), settings.get("samples")
    return [replace(each, X=each.X[:most], y=each.y[:most]) for each in found]


def _studies(kind: Kind, data: Data, settings: Settings, halvings: int | None = None) -> list[Study]:
    sets = _sets(data, settings)
    plan = _plan(settings, DEFAULTS.samples, DEFAULTS.lams, DEFAULTS.epochs, DEFAULTS.runs, halvings)
    return [Study(kind, each, replace(plan, sizes=halved(each.n, len(plan.sizes) - 1))) for each in sets]


def _newton_crossing(study: Study, m: int, target: float) -> tuple[float, float]:
    problem = study.problem(m, study.fewest_steps(m, target))
    found = quasi_newton(problem, study.quality, target)[0].crossing(target)
    study.plan.tick()
    return found


def _dependency(title: str, kind: Kind, data: Data, settings: Settings) -> Figure:
    """For three accuracies, with the lam of the fewest steps, and dashed with the most accurate lam."""
    rows = []
    for study in _studies(kind, data, settings):
        targets, medians = study.targets, []
        for m in study.plan.sizes:
            lams = [study.fewest_steps(m, target) for target in targets]
            medians.append(study.medians(m, [*lams, *[study.most_accurate(m)] * len(targets)], [*targets, *targets]))
            study.plan.tick()
        steps, seconds = (np.array(values) for values in zip(*medians, strict=True))
        lines = []
        for k, target in enumerate([*targets, *targets]):
            colour = (Colour.BLUE, Colour.GREEN, Colour.PURPLE)[k % len(targets)]
            rule, style = ("lam of the fewest steps", "-") if k < len(targets) else ("most accurate lam", "--")
            lines.append(Line(f"{100 * target:.1f} %, {rule}", colour, style, steps[:, k], seconds[:, k]))
        rows.append(Row(study, "", lines))
    return _rows(f"{title}: {kind.label}, by the size of the training set", rows, "gradient steps")


def _rows(title: str, rows: Sequence[Row], counted: str) -> Figure:
    """Seconds on the left, steps on the right; a row for each data set."""
    figure = new_figure(10.0, 1.5 + 3.4 * len(rows), dpi=130)
    for row, panels in zip(rows, figure.subplots(len(rows), 2, squeeze=False), strict=True):
        plan = row.study.plan
        for axes, what in zip(panels, ("seconds", counted), strict=True):
            axes.set(xscale="log", yscale="log")
            for line in row.lines:
                values = line.seconds if what == "seconds" else line.steps
                _points(axes, np.array(plan.sizes), values, line.colour, line.style, line.label)
            _dress(axes, "training samples m", what, plan.sizes)
            until = f" to {row.right} right" if row.right else ""
            axes.set_title(f"{row.study.dataset.name}: {what}{until}, medians of {plan.runs} runs", fontsize=9)
    figure.suptitle(title, fontsize=11)
    add_legend(figure, 3.0)
    return figure


def _theory(
    title: str, ylabel: str, draw: Callable[[Axes, Problem, int, int], None], data: Data, settings: Settings
) -> Figure:
    """A panel for each objective, a row for each data set and lam."""
    lams, size = settings.get("lams") or [DEFAULTS.theory_lam], settings.get("samples", DEFAULTS.theory_samples)
    sets = _sets(data, settings, DEFAULTS.theory_samples)
    rows = [(each, lam) for each in sets for lam in lams]
    figure = new_figure(11.0, 1.3 + 3.0 * len(rows), dpi=130)
    for (each, lam), panels in zip(rows, figure.subplots(len(rows), len(KINDS), squeeze=False), strict=True):
        for axes, kind in zip(panels, KINDS, strict=True):
            problem = kind.problem(each.X[:size], each.y[:size], lam)
            steps = max(settings.get("epochs", 1) * problem.shape[0], 1)
            axes.set(xscale="log", yscale="log")
            draw(axes, problem, steps, settings.get("seed", 0))
            axes.set_title(f"{kind.label}, λ = {lam:g}", fontsize=10)
            of = f"{each.name}, n = {problem.shape[0]}\n{ylabel}"
            _dress(axes, "gradient steps", of if axes is panels[0] else "")
            if (tick := settings.get("tick")) is not None:
                tick()
    figure.suptitle(title, fontsize=11)
    add_legend(figure)
    return figure


def _points(axes: Axes, m: Vector, values: Vector, colour: Colour, style: str, label: str) -> None:
    """A line through the finite values."""
    finite = np.isfinite(values)
    axes.plot(m[finite], values[finite], style, marker="o", ms=3.5, color=colour, lw=1.6, label=label)


def _say_missed(axes: Axes, missed: dict[int, list[int]], distance: float) -> None:
    """In the figure and as a warning: for which features and samples half of the runs did not come near w*."""
    each = "; ".join(f"{d} features: m = {', '.join(map(str, sizes))}" for d, sizes in missed.items())
    text = f"no median, since half of the runs end farther than {distance:g} from w*, for {each}"
    axes.text(0.5, 0.02, fill(text, 70), transform=axes.transAxes, ha="center", va="bottom", fontsize=7)
    warnings.warn(f"Figure 9: {text}; more --samples, --epochs or another --lam may help", UserWarning, stacklevel=3)


def _dress(axes: Axes, xlabel: str, ylabel: str, sizes: Sequence[int] = ()) -> None:
    """Labels, a light grid, ticks at the sizes if there are some."""
    if sizes:
        axes.set_xticks(sizes, [str(m) for m in sizes])
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.tick_params(which="both", labelsize=8)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
