"""The experiments of Raj and Bach 2020, "Explicit Regularization of Stochastic Gradient Methods through Duality".

Section 4, Figures 1 and 2: training and test mistakes by pass over the data, of perceptrons of least p-norm,

    min 1/2 |w|_p^2   subject to   y_i x_i.w >= 1,      p = 2 (Figure 1),   p = 1 + 1 / log d (Figure 2),

on the paper's data, a new set for every run, or on given data. The line is the mean of the runs, the band goes from the
fewest mistakes to the most. All methods draw samples uniformly with replacement and begin at zero; a mistake is
y_i x_i.w <= 0 at the last iterate, and of the accelerated method's two sequences at the one with the 1/t^2 guarantee.
A pass is as many rows looked at as there are samples. Lines that are not in the paper: acceleration with step sizes
from the curvature at hand, where samples that need no step wait and p falls from 2 (`steps.interpolation.local`), which
is what the estimators run; in Figure 2 the p-norm perceptron, which needs fewer passes than the paper's step sizes, and
primal SGD, which looks for another model.

    from fenchel.papers import interpolation
    interpolation.figure1(runs=20).savefig("figure1.png")
    interpolation.figure2({"mine": (X, y)}, epochs=50)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from fenchel.data.typing import Vector
from fenchel.draw.paths import new_figure
from fenchel.papers.datasets import Data, Dataset, datasets
from fenchel.papers.panels import Colour, Method, add_legend, dress
from fenchel.problem import Interpolation
from fenchel.problem.penalties import L2, LpSquared
from fenchel.problem.sets import HalfLine
from fenchel.steps import Solver, Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.mirror import EuclideanDescent, Mirror, Perceptron

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Recipe:
    """The paper's data: Gaussian features with variances 1 / j^decay, labels sign(x.theta + offset)."""

    decay: float
    nonzeros: int | None = None  # of theta, at random places; None for all
    n: int = 1000  # training samples, and as many for testing
    d: int = 2000
    offset: float = 0.005
    margin: float = 0.1  # samples with |x.theta + offset| <= margin are drawn again

    def draw(self, seed: int) -> Dataset:
        """A training and a test set. The training set can be separated, by theta if by no other."""
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal(self.d)
        if self.nonzeros is not None:
            theta[rng.permutation(self.d)[self.nonzeros :]] = 0.0
        scales = np.arange(1.0, self.d + 1.0) ** (-self.decay / 2.0)
        X, z = np.empty((2 * self.n, self.d)), np.zeros(2 * self.n)
        while (missing := np.flatnonzero(np.abs(z) <= self.margin)).size:
            X[missing] = scales * rng.standard_normal((missing.size, self.d))
            z[missing] = X[missing] @ theta + self.offset
        y = np.sign(z)
        return Dataset("generated", X[: self.n], y[: self.n], X[self.n :], y[self.n :])


@dataclass(frozen=True)
class Experiment:
    """A figure: its data, p and its methods."""

    title: str
    recipe: Recipe
    sparse: bool  # p = 1 + 1 / log d instead of 2
    methods: tuple[Method, ...]

    def problem(self, dataset: Dataset) -> Interpolation:
        """The least p-norm with all margins at least 1, without an intercept."""
        p = 1.0 + 1.0 / max(1.0, log(dataset.X.shape[1])) if self.sparse else 2.0
        penalty = L2(1.0) if p == 2.0 else LpSquared(1.0, p)
        return Interpolation(dataset.X, HalfLine(1.0, dataset.y), penalty)


_LOCAL = Method(
    "accelerated, local steps", Colour.BLUE, Dykstra(sampling="uniform", accelerate=True, steps="local"), "--"
)
_ASCENT = (
    _LOCAL,
    Method("accelerated coordinate ascent", Colour.BLUE, Dykstra(sampling="uniform", accelerate=True)),
    Method("coordinate ascent", Colour.GREEN, Dykstra(sampling="uniform")),
)
EXPERIMENTS = {
    1: Experiment(
        "Figure 1: perceptrons of least 2-norm",
        Recipe(decay=1.5),
        False,
        (
            *_ASCENT,
            Method("primal SGD", Colour.ORANGE, EuclideanDescent()),
            Method("perceptron", Colour.PURPLE, Perceptron()),
        ),
    ),
    2: Experiment(
        "Figure 2: sparse perceptrons, p = 1 + 1 / log d",
        Recipe(decay=1.0, nonzeros=50),
        True,
        (
            *_ASCENT,
            Method("mirror descent", Colour.ORANGE, Mirror()),
            Method("primal SGD", Colour.GREY, EuclideanDescent()),
            Method("p-norm perceptron", Colour.PURPLE, Perceptron()),
        ),
    ),
}


class Settings(TypedDict, total=False):
    """Settings of both figures.

    epochs : passes over the data of a run, 20 by default
    runs : seeds, 3 by default; new data each, or a new split of given data
    seed : the first of them; 0 by default
    tick : called after every data set
    """

    epochs: int
    runs: int
    seed: int
    tick: Callable[[], None] | None


EPOCHS, RUNS = 20, 3


def figure1(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """p = 2, variances 1 / j^(3/2): dual ascent, primal SGD and the perceptron."""
    return _figure(EXPERIMENTS[1], data, settings)


def figure2(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """p = 1 + 1 / log d, variances 1 / j, 50 relevant features: dual ascent, mirror descent, SGD, p-norm perceptron."""
    return _figure(EXPERIMENTS[2], data, settings)


FIGURES: dict[int, Callable[..., Figure]] = {1: figure1, 2: figure2}
TABLES: dict[int, Callable[..., str]] = {}
FIXED: frozenset[int] = frozenset()


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of data sets of a figure, each with a panel for training and one for testing."""
    return sets or 1


@dataclass(frozen=True)
class Mistakes:
    """Mistakes before the first step and after every pass: a column for each of them, a row for each run."""

    train: Vector
    test: Vector

    @property
    def passes_to_none(self) -> Vector:
        """The number of passes after which a run first makes no training mistake; infinite if it always makes some."""
        none = self.train == 0
        return np.where(none.any(axis=1), none.argmax(axis=1), np.inf)


def mistakes(problem: Interpolation, dataset: Dataset, algorithm: Solver[Any], passes: int, seed: int = 0) -> Mistakes:
    """Step an algorithm from zero, and count the samples with y x.w <= 0 after every pass: one run."""
    n, d = dataset.X.shape
    w, state = np.zeros(d), algorithm.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)
    train, test = [], []
    for done in range(passes + 1):
        if done:
            state = algorithm.step(state)
            w = algorithm.candidates(state)[0].w
        train.append(np.count_nonzero(dataset.y * (dataset.X @ w) <= 0.0))
        test.append(np.count_nonzero(dataset.y_test * (dataset.X_test @ w) <= 0.0))
    return Mistakes(np.array([train], dtype=np.float64), np.array([test], dtype=np.float64))


def compare(
    experiment: Experiment, sets: Sequence[Dataset], passes: int, seed: int = 0, methods: Sequence[Method] | None = None
) -> dict[str, Mistakes]:
    """The mistakes of all methods of an experiment, or of the given ones, a run on each data set; by label."""
    found: dict[str, list[Mistakes]] = {}
    for run, dataset in enumerate(sets):
        problem = experiment.problem(dataset)
        for method in experiment.methods if methods is None else methods:
            one = mistakes(problem, dataset, method.algorithm, passes, seed + run)
            found.setdefault(method.label, []).append(one)
    return {
        label: Mistakes(np.vstack([one.train for one in runs]), np.vstack([one.test for one in runs]))
        for label, runs in found.items()
    }


def _figure(experiment: Experiment, data: Data, settings: Settings) -> Figure:
    passes, runs = settings.get("epochs", EPOCHS), settings.get("runs", RUNS)
    first, tick = settings.get("seed", 0), settings.get("tick")
    sets = _sets(experiment.recipe, data, range(first, first + runs))
    figure = new_figure(10.0, 1.1 + 3.0 * len(sets), dpi=130)
    rows = figure.subplots(len(sets), 2, squeeze=False)
    for (name, each), (left, right) in zip(sets.items(), rows, strict=True):
        found = compare(experiment, each, passes, first)
        for method in experiment.methods:
            curve = found[method.label]
            _band(left, curve.train, method)
            _band(right, curve.test, method)
        sizes = (len(each[0].y), len(each[0].y_test))
        for axes, kind, size in zip((left, right), ("training", "test"), sizes, strict=True):
            _dress(axes, f"{kind} mistakes, of {size}", name)
        if tick is not None:
            tick()
    for axes in rows[-1]:
        axes.set_xlabel("passes over the data", fontsize=9)
    several = f"mean and range of {runs} runs" if runs > 1 else "one run"
    figure.suptitle(f"{experiment.title} ({several})", fontsize=11)
    add_legend(figure)
    return figure


def _sets(recipe: Recipe, data: Data, seeds: Sequence[int]) -> Mapping[str, Sequence[Dataset]]:
    """The data sets of all runs, by name: new ones, or new splits of the given ones."""
    if data is None:
        return {"": [recipe.draw(seed) for seed in seeds]}
    found: dict[str, list[Dataset]] = {}
    for seed in seeds:
        for dataset in datasets(data, seed):
            found.setdefault(dataset.name, []).append(dataset)
    return found


def _band(axes: Axes, runs: Vector, method: Method) -> None:
    """The mean of the runs after every pass, over the band from the fewest mistakes to the most."""
    passes = np.arange(1, runs.shape[1])
    axes.plot(passes, runs.mean(axis=0)[1:], method.style, color=method.colour, lw=1.6, label=method.label)
    low, high = runs.min(axis=0)[1:], runs.max(axis=0)[1:]
    axes.fill_between(passes, low, high, color=method.colour, alpha=0.15, lw=0.0)


def _dress(axes: Axes, title: str, name: str) -> None:
    """A logarithmic axis; where some run is below one mistake, down to 1, and 0 below it."""
    low, high = axes.dataLim.ymin, 1.3 * axes.dataLim.ymax
    if low < 1.0:
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.4)
        axes.set_ylim(-0.15, high)
        ticks = [0, *(digit * 10**k for k in range(6) for digit in (1, 3))]
    else:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.3, high)
        ticks = [digit * 10**k for k in range(6) for digit in (1, 2, 3, 5, 7)]
    shown = [tick for tick in ticks if (low / 1.3 if low >= 1.0 else 0) <= tick <= high]
    axes.set_yticks(shown, [str(tick) for tick in shown])
    axes.set_title(f"{name}: {title}" if name else title, fontsize=10)
    dress(axes, ylabel="mistakes")
