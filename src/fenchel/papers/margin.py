"""The experiments of Ji, Srebro and Telgarsky 2021, "Fast Margin Maximization via Dual Acceleration".

Figure 1, on data that can be separated: the margin of every method's weights against products with X, what is missing
to the largest margin, and the bounds of Theorem 3.1. Figure 2, on data that cannot: test errors. All methods begin at
zero. An iteration of momentum and of the gradient methods takes two products with X (in one pass over the rows), and so
does a step that turns out too long; one of the batch perceptron takes one. The paper's data are mnist, 0 against 1 and
3 against 5; by default they are the 8 x 8 digits packaged with scikit-learn, on which every pair of digits can be
separated, but odd and even ones cannot.

    from fenchel.papers import margin
    margin.figure1().savefig("figure1.png")
    margin.figure2({"mine": (X, y)}, epochs=1000)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from fenchel.certificate import Infeasible
from fenchel.data import Design
from fenchel.data.samples import load
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.draw.paths import new_figure
from fenchel.papers.curves import zero_one
from fenchel.papers.datasets import Data, Dataset, datasets
from fenchel.papers.panels import Colour, Method, add_legend, dress
from fenchel.problem import Interpolation
from fenchel.problem.sets import HalfLine
from fenchel.solver import NotCertifiedWarning, solve
from fenchel.solver.theory import margin_momentum
from fenchel.steps import (
    BatchPerceptron,
    GradientDescent,
    Margin,
    MarginSampling,
    NormalizedGradient,
    Start,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Maximiser(Method):
    """A method, and which of its candidates is shown."""

    shown: int = 0


METHODS = (
    Maximiser("momentum, adaptive steps", Colour.BLUE, Margin()),
    Maximiser("momentum (Algorithm 1)", Colour.BLUE, Margin(step_size=1.0), "--"),
    Maximiser("momentum, logistic loss", Colour.GREEN, Margin(loss="logistic")),
    Maximiser("batch perceptron, mean", Colour.ORANGE, BatchPerceptron()),
    Maximiser("batch perceptron", Colour.ORANGE, BatchPerceptron(), ":", 1),
    Maximiser("sampling (Algorithm 2)", Colour.GREEN, MarginSampling(), ":"),
    Maximiser("normalised gradient", Colour.PURPLE, NormalizedGradient()),
    Maximiser("normalised, 1/√t", Colour.PURPLE, NormalizedGradient(steps="root"), "--"),
    Maximiser("gradient descent", Colour.GREY, GradientDescent()),
)


class Settings(TypedDict, total=False):
    """Settings of both figures.

    epochs : products with X of a run, 2000 by default
    seed : of the split and of the rows drawn; 0 by default
    tick : called after every data set
    """

    epochs: int
    seed: int
    tick: Callable[[], None] | None


EPOCHS = 2000
#: Points of a curve.
POINTS = 80
#: The smallest part of the largest margin that is drawn as missing.
FLOOR = 1e-5


@dataclass(frozen=True)
class Curve:
    """Products with X, the margin of the weights on the training set, and the test error."""

    passes: Vector
    margin: Vector
    error: Vector


def bundled(figure: int) -> dict[str, tuple[MatrixLike, VectorLike]]:
    """Digits that can be separated (Figure 1), or not (Figure 2)."""
    sample = load("digits")
    if figure == 2:
        return {"digits, odd and even": (sample.X, sample.y % 2)}
    pairs = {"digits 0 and 1": np.isin(sample.y, (0, 1)), "digits 1 and 8": np.isin(sample.y, (1, 8))}
    return {name: (sample.X[which], sample.y[which]) for name, which in pairs.items()}


def figure1(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Margins against products with X, and what is missing to the largest one, with the bounds of Theorem 3.1."""
    sets = _sets(data, 1, settings)
    figure = new_figure(10.5, 1.6 + 3.4 * len(sets), dpi=130)
    for dataset, (left, right) in zip(sets, figure.subplots(len(sets), 2, squeeze=False), strict=True):
        best = largest_margin(dataset)
        if best is None:
            raise ValueError(f"{dataset.name}: no plane through the origin separates the classes; draw figure 2")
        found = compare(dataset, settings.get("epochs", EPOCHS), settings.get("seed", 0))
        for method in METHODS:
            curve = found[method.label]
            _line(left, method, curve.passes, curve.margin)
            _line(right, method, curve.passes, np.maximum(1.0 - curve.margin / best, 0.1 * FLOOR))
        _bounds(right, dataset, best, found[METHODS[0].label].passes)
        left.axhline(best, color="black", lw=0.8)
        left.set_xscale("log")
        left.set_ylim(-0.3 * best, 1.1 * best)
        right.set(xscale="log", yscale="log", ylim=(FLOOR, 2.0))
        _dress(left, dataset, "margin")
        _dress(right, dataset, "part of the largest margin that is missing")
        _tick(settings)
    figure.suptitle("Figure 1: margins, on data that can be separated", fontsize=11)
    add_legend(figure)
    return figure


def figure2(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Test errors against products with X."""
    sets = _sets(data, 2, settings)
    figure = new_figure(6.5, 1.8 + 3.4 * len(sets), dpi=130)
    for dataset, (axes,) in zip(sets, figure.subplots(len(sets), 1, squeeze=False), strict=True):
        found = compare(dataset, settings.get("epochs", EPOCHS), settings.get("seed", 0))
        for method in METHODS:
            curve = found[method.label]
            _line(axes, method, curve.passes, np.maximum(curve.error, 0.5 / len(dataset.y_test)))
        axes.set(xscale="log", yscale="log")
        _dress(axes, dataset, "test error")
        low, high = axes.get_ylim()
        ticks = [digit * 10.0**k for k in range(-5, 0) for digit in (1, 2, 5)]
        shown = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        _tick(settings)
    figure.suptitle("Figure 2: test errors, on data that cannot be separated", fontsize=11)
    add_legend(figure)
    return figure


FIGURES: dict[int, Callable[..., Figure]] = {1: figure1, 2: figure2}
TABLES: dict[int, Callable[..., str]] = {}
FIXED: frozenset[int] = frozenset()


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of data sets of a figure."""
    return sets or len(bundled(figure))


def problem_of(dataset: Dataset) -> Interpolation:
    """The least |w| with all margins at least 1, without an intercept."""
    return Interpolation(dataset.X, HalfLine(1.0, dataset.y))


def largest_margin(dataset: Dataset) -> float | None:
    """The largest margin, to a relative 1e-7; None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            result = solve(problem_of(dataset), tol=1e-7)
    except Infeasible:
        return None
    length = float(np.linalg.norm(result.w))
    return 1.0 / length if np.isfinite(result.certificate.gap) and length > 0.0 else None


def compare(
    dataset: Dataset, passes: int, seed: int = 0, methods: Sequence[Maximiser] = METHODS
) -> Mapping[str, Curve]:
    """The curves of some methods, by label."""
    return {method.label: follow(dataset, method, passes, seed) for method in methods}


def follow(dataset: Dataset, method: Maximiser, passes: int, seed: int = 0) -> Curve:
    """Step a method from zero; margin and test error at points that are evenly spaced on a logarithmic axis."""
    problem, algorithm = problem_of(dataset), method.algorithm
    weights, _, multipliers = problem.shapes
    state = algorithm.begin(problem, Start(np.zeros(weights), 0.0, np.zeros(multipliers)), seed)
    rows: list[tuple[float, float, float]] = []
    steps, done = 0, 0.0
    for mark in np.unique(np.rint(np.geomspace(1.0, passes, POINTS))):
        while done < mark:
            state, steps = algorithm.step(state), steps + 1
            progress = algorithm.progress(state)  # knows of steps that were tried and were too long
            done = float(algorithm.passes_per_step * steps) if progress is None else progress.passes
        if rows and done == rows[-1][0]:
            continue
        w = algorithm.candidates(state)[method.shown].w
        rows.append((done, margin_of(dataset, w), zero_one(w, dataset)))
    return Curve(*np.array(rows).T)


def margin_of(dataset: Dataset, w: Vector) -> float:
    """min_i y_i x_i.w / |w|; 0 for w = 0."""
    length = float(np.linalg.norm(w))
    return float(np.min(dataset.y * (dataset.X @ w))) / length if length > 0.0 else 0.0


def _sets(data: Data, figure: int, settings: Settings) -> Sequence[Dataset]:
    return datasets(bundled(figure) if data is None else data, settings.get("seed", 0))


def _bounds(axes: Axes, dataset: Dataset, best: float, passes: Vector) -> None:
    """Theorem 3.1 for Algorithm 1, as printed and without the logarithm of t; an iteration is two products."""
    t, radius = passes / 2.0, float(Design(dataset.X).row_norms().max())
    for sharp, style, label in ((False, ":", "Theorem 3.1"), (True, "-.", "Theorem 3.1 without log t")):
        bound = margin_momentum(t, dataset.n, best, radius, sharp)
        axes.plot(passes, 1.0 - bound / best, style, color="black", lw=1.0, label=label)


def _line(axes: Axes, method: Maximiser, x: Vector, y: Vector) -> None:
    axes.plot(x, y, method.style, color=method.colour, lw=1.5, label=method.label)


def _dress(axes: Axes, dataset: Dataset, ylabel: str) -> None:
    dress(axes, "products with X", ylabel)
    from matplotlib.ticker import LogLocator

    axes.xaxis.set_major_locator(LogLocator())
    axes.set_title(f"{dataset.name} ({dataset.n} x {dataset.X.shape[1]})", fontsize=10)


def _tick(settings: Settings) -> None:
    tick = settings.get("tick")
    if tick is not None:
        tick()
