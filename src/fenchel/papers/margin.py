"""The experiments of Ji, Srebro and Telgarsky 2021, "Fast Margin Maximization via Dual Acceleration".

Figure 1, on data that can be separated: the margin of every method's weights against products with X, what is missing
to the largest margin, and how far the bound of their multipliers is above it, with Theorem 3.1 and Lemma 3.2. Figure 2,
on data that cannot: test errors. All methods begin at zero. An iteration of momentum and of the gradient methods takes
two products with X (in one pass over the rows), and so does a step that turns out too long; one of the batch perceptron
takes one. The paper's data are mnist, 0 against 1 and 3 against 5; by default they are the 8 x 8 digits packaged with
scikit-learn, on which every pair of digits can be separated, but odd and even ones cannot.

Figure 3, with the kernel of a network at its start and all classes: methods that need n values of the kernel a step,
with Theorem 4.1, and Algorithm 1, which needs n^2, with Theorem 5.1. Figure 4, with the kernels of networks along their
training on 128 samples: the interval of the largest margin and the test error of its predictor, for several seeds.

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
from fenchel.data.class_differences import ClassDifferences
from fenchel.data.samples import load
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.draw.paths import new_figure
from fenchel.kernel import Features
from fenchel.papers.curves import zero_one
from fenchel.papers.datasets import Data, Dataset, datasets
from fenchel.papers.networks import SEEDS, Labelled, initial_gram, labelled, snapshots
from fenchel.papers.panels import Colour, Method, add_legend, dress
from fenchel.problem import Interpolation
from fenchel.problem.sets import HalfLine
from fenchel.solver import NotCertifiedWarning, solve
from fenchel.solver.blas import blas_threads
from fenchel.solver.theory import margin_dual, margin_momentum, margin_multiclass, margin_sampling
from fenchel.steps import (
    BatchPerceptron,
    GradientDescent,
    Margin,
    MarginSampling,
    NormalizedGradient,
    Start,
)
from fenchel.steps.margin.baselines import PerceptronState
from fenchel.steps.margin.state import Descent

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


#: Figure 3; `kernel_methods` adds Algorithm 2 with the parameters of Theorem 4.1, which depend on the number of steps.
KERNEL_METHODS = (
    Maximiser("Algorithm 2, steps of Algorithm 1", Colour.GREEN, MarginSampling()),
    Maximiser("batch perceptron", Colour.ORANGE, BatchPerceptron(), ":", 1),
)
#: Those of which a point needs the whole matrix.
WHOLE_METHODS = (
    Maximiser("batch perceptron, mean", Colour.ORANGE, BatchPerceptron()),
    Maximiser("Algorithm 1 (n² values a step)", Colour.BLUE, Margin(form="dual", step_size=1.0), "--"),
)
BATCH = WHOLE_METHODS[1]


class Settings(TypedDict, total=False):
    """Settings of the figures.

    epochs : of figures 1 and 2 products with X, 2000 by default; of figure 3 steps, 10000 by default; of figure 4
        epochs of training, 300 by default
    runs : networks of figure 4, each from another seed; 4 by default
    seed : of the split, of the rows drawn and of the network of figure 3; 0 by default
    tick : called after every data set
    """

    epochs: int
    runs: int
    seed: int
    tick: Callable[[], None] | None


EPOCHS = 2000
#: Steps of figure 3, and how many of them Algorithm 1 makes at most.
STEPS, BATCH_STEPS = 10_000, 1000
#: Networks of figure 4, and the epochs of training after which it looks at the kernel.
RUNS = 4
LOOKS = (0, 1, 3, 10, 30, 100, 300)
#: The probability with which Theorem 4.1 may fail.
FAILURE = 0.1
#: Points of a curve.
POINTS = 80
#: The smallest part of the largest margin that is drawn as missing.
FLOOR = 1e-5


@dataclass(frozen=True)
class Curve:
    """Products with X, margins of the weights on the training set, what no margin exceeds, and test errors."""

    passes: Vector
    margin: Vector
    upper: Vector
    error: Vector


@dataclass(frozen=True)
class KernelCurve:
    """Steps, margins of the function on the training set, and what no margin exceeds."""

    steps: Vector
    margin: Vector
    upper: Vector


def bundled(figure: int) -> dict[str, tuple[MatrixLike, VectorLike]]:
    """Digits that can be separated (Figure 1), or not (Figure 2)."""
    sample = load("digits")
    if figure == 2:
        return {"digits, odd and even": (sample.X, sample.y % 2)}
    pairs = {"digits 0 and 1": np.isin(sample.y, (0, 1)), "digits 1 and 8": np.isin(sample.y, (1, 8))}
    return {name: (sample.X[which], sample.y[which]) for name, which in pairs.items()}


def figure1(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Margins, what is missing to the largest one, and bounds on it, with Theorem 3.1 and Lemma 3.2."""
    sets = _sets(data, 1, settings)
    figure = new_figure(15.0, 1.6 + 3.4 * len(sets), dpi=130)
    for dataset, (left, middle, right) in zip(sets, figure.subplots(len(sets), 3, squeeze=False), strict=True):
        best, title = largest_margin(dataset), f"{dataset.name} ({dataset.n} x {dataset.X.shape[1]})"
        if best is None:
            raise ValueError(f"{dataset.name}: no plane through the origin separates the classes; draw figure 2")
        found = compare(dataset, settings.get("epochs", EPOCHS), settings.get("seed", 0))
        for method in METHODS:
            curve = found[method.label]
            _line(left, method, curve.passes, curve.margin)
            _line(middle, method, curve.passes, np.maximum(1.0 - curve.margin / best, 0.1 * FLOOR))
            _line(right, method, curve.passes, np.maximum(curve.upper / best - 1.0, 0.1 * FLOOR))
        _bounds(middle, right, dataset, best, found[METHODS[0].label].passes)
        left.axhline(best, color="black", lw=0.8)
        left.set_xscale("log")
        left.set_ylim(-0.3 * best, 1.1 * best)
        middle.set(xscale="log", yscale="log", ylim=(FLOOR, 2.0))
        right.set(xscale="log", yscale="log", ylim=(FLOOR, 20.0))
        _dress(left, title, "margin")
        _dress(middle, title, "part of the largest margin that is missing")
        _dress(right, title, "excess of the bound by the multipliers, relative")
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
        _dress(axes, f"{dataset.name} ({dataset.n} x {dataset.X.shape[1]})", "test error")
        low, high = axes.get_ylim()
        ticks = [digit * 10.0**k for k in range(-5, 0) for digit in (1, 2, 5)]
        shown = [tick for tick in ticks if low <= tick <= high]
        axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
        _tick(settings)
    figure.suptitle("Figure 2: test errors, on data that cannot be separated", fontsize=11)
    add_legend(figure)
    return figure


def figure3(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """Margins with the kernel of a network at its start, by methods that need n values of it a step."""
    sets, seed = labelled(data, settings.get("seed", 0)), settings.get("seed", 0)
    figure = new_figure(10.5, 1.8 + 3.4 * len(sets), dpi=130)
    for one, (left, right) in zip(sets, figure.subplots(len(sets), 2, squeeze=False), strict=True):
        n = len(one.X)
        found = compare_kernel(one, settings.get("epochs", STEPS), seed)
        best = min(float(curve.upper.min()) for _, curve in found)
        for method, curve in found:
            _line(left, method, curve.steps, curve.margin)
            left.plot(curve.steps, curve.upper, method.style, color=method.colour, lw=0.7)
            _line(right, method, curve.steps, 1.0 - curve.margin / best)
        _kernel_bounds(right, one, best, found)
        left.axhline(best, color="black", lw=0.8)
        left.set(xscale="log", ylim=(-1.5 * best, 3.0 * best))
        right.set(xscale="log", yscale="log", ylim=(1e-2, 1e5))
        for axes, ylabel in (
            (left, "margin (thin: proven bounds)"),
            (right, "part of the least bound that is missing"),
        ):
            _dress(axes, f"{one.name} ({n} samples, {one.k} classes)", ylabel, "steps")
        _tick(settings)
    figure.suptitle("Figure 3: margins with the kernel of a network at its start, n values of it a step", fontsize=11)
    add_legend(figure, 2.6)
    return figure


def figure4(data: Data = None, **settings: Unpack[Settings]) -> Figure:
    """The largest margin, and the test error of its predictor, with kernels along the training of a network."""
    sets, epochs = labelled(data, settings.get("seed", 0)), settings.get("epochs", LOOKS[-1])
    looks = [*(look for look in LOOKS if look < epochs), epochs]
    seeds = network_seeds(settings.get("runs", RUNS))
    figure = new_figure(1.2 + 2.8 * len(seeds), 1.4 + 4.6 * len(sets), dpi=130)
    panels = figure.subplots(2 * len(sets), len(seeds), squeeze=False, sharey="row", sharex=True)
    for one, above, below in zip(sets, panels[::2], panels[1::2], strict=True):
        for j, (seed, top, bottom) in enumerate(zip(seeds, above, below, strict=True)):
            found = snapshots(one, seed, looks)
            lower, upper, kernel, own = np.array(
                [(each.lower, each.upper, each.kernel_error, each.network_error) for each in found]
            ).T
            top.fill_between(looks, lower, upper, color=Colour.BLUE, alpha=0.3, lw=0)
            top.plot(looks, lower, "o-", ms=3, color=Colour.BLUE, lw=1.5, label="interval of the largest margin")
            bottom.plot(looks, kernel, "o-", ms=3, color=Colour.ORANGE, lw=1.5, label="predictor of this margin")
            bottom.plot(looks, own, ":", color=Colour.GREY, lw=1.5, label="network")
            for axes, ylabel in ((top, "margin"), (bottom, "test error")):
                dress(axes, "epoch" if axes is bottom else "", ylabel if j == 0 else "")
                axes.set_xscale("symlog", linthresh=1.0)
                axes.set_xticks([look for look in looks if look != 3], [f"{look}" for look in looks if look != 3])
            bottom.set_ylim(0.0, min(1.0, max(1.4 * float(kernel.max()), bottom.get_ylim()[1] if j else 0.0)))
            top.set_title(f"{one.name}, seed {seed}", fontsize=10)
        _tick(settings)
    figure.suptitle("Figure 4: kernels along the training of a network on few samples", fontsize=11)
    add_legend(figure)
    return figure


FIGURES: dict[int, Callable[..., Figure]] = {1: figure1, 2: figure2, 3: figure3, 4: figure4}
TABLES: dict[int, Callable[..., str]] = {}
FIXED: frozenset[int] = frozenset()


def panels(figure: int, lams: int | None, sets: int | None) -> int:
    """The number of data sets of a figure."""
    return sets or (len(bundled(figure)) if figure in (1, 2) else 1)


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
    rows: list[tuple[float, float, float, float]] = []
    steps, done = 0, 0.0
    for mark in np.unique(np.rint(np.geomspace(1.0, passes, POINTS))):
        while done < mark:
            state, steps = algorithm.step(state), steps + 1
            progress = algorithm.progress(state)  # knows of steps that were tried and were too long
            done = float(algorithm.passes_per_step * steps) if progress is None else progress.passes
        if rows and done == rows[-1][0]:
            continue
        offered = algorithm.candidates(state)[method.shown]
        assert offered.alpha is not None
        rows.append(
            (done, margin_of(dataset, offered.w), bound_of(dataset, offered.alpha), zero_one(offered.w, dataset))
        )
    return Curve(*np.array(rows).T)


def margin_of(dataset: Dataset, w: Vector) -> float:
    """min_i y_i x_i.w / |w|; 0 for w = 0."""
    length = float(np.linalg.norm(w))
    return float(np.min(dataset.y * (dataset.X @ w))) / length if length > 0.0 else 0.0


def bound_of(dataset: Dataset, alpha: Vector) -> float:
    """|sum_i q_i y_i x_i| with q = y alpha scaled to the simplex: no margin is larger."""
    return float(np.linalg.norm(dataset.X.T @ alpha)) / float(np.abs(alpha).sum())


def kernel_methods(steps: int) -> tuple[Maximiser, ...]:
    """Those of figure 3, for so many steps, but for `WHOLE_METHODS`."""
    proven = MarginSampling(steps="proven", horizon=steps)
    return (*KERNEL_METHODS, Maximiser("Algorithm 2, steps of Theorem 4.1", Colour.PURPLE, proven))


def compare_kernel(data: Labelled, steps: int, seed: int = 0) -> list[tuple[Maximiser, KernelCurve]]:
    """The curves of figure 3; without `WHOLE_METHODS` if the Gram matrix does not fit into its cache.

    Weights of this problem would be coefficients of functions, and its penalty not their norm: nothing here looks at
    either, only at the Gram matrix.
    """
    gram = initial_gram(data, seed)
    problem = Interpolation(ClassDifferences(Features(gram), data.codes, data.k), HalfLine(1.0))
    methods = (*kernel_methods(steps), *(WHOLE_METHODS if gram.cache.holds_all else ()))
    with blas_threads(1):
        return [
            (method, follow_kernel(problem, method, min(steps, BATCH_STEPS) if method is BATCH else steps, seed))
            for method in methods
        ]


def follow_kernel(problem: Interpolation, method: Maximiser, steps: int, seed: int = 0) -> KernelCurve:
    """Step a method from zero, by rows of the Gram matrix; margin and bound at points evenly spaced in the logarithm.

    With the scores z = Zw of w = -Z'a, the margin is -max z / |w|, |w|^2 = -a.z, and |w| / sum_i a_i is a bound.
    """
    state = method.algorithm.begin(problem, Start(np.zeros(0), 0.0, np.zeros(0)), seed)
    rows: list[tuple[float, float, float]] = []
    done = 0
    for mark in np.unique(np.rint(np.geomspace(1.0, steps, POINTS))):
        while done < mark:
            state, done = method.algorithm.step(state), done + 1
        bound = None
        if isinstance(state, Descent):
            scale, z, a = state.form.rows.exponent, state.point.z, state.total
            bound = np.sqrt(state.form.square(state.mu, state.M)) / state.mu.sum()
        elif isinstance(state, PerceptronState) and method.shown == 0:
            scale, z, a = state.rows.exponent, -state.rows.gram(state.sum_a), state.sum_a
        else:
            scale, z, a = state.rows.exponent, state.z, state.a
        length = np.sqrt(-(a @ z))
        bound = length / a.sum() if bound is None else bound
        rows.append((mark, np.ldexp(-z.max() / length, scale), np.ldexp(bound, scale)))
    return KernelCurve(*np.array(rows).T)


def network_seeds(runs: int) -> list[int]:
    """The paper's two, then 1, 2, ..."""
    return [*SEEDS, *range(1, runs)][:runs]


def _sets(data: Data, figure: int, settings: Settings) -> Sequence[Dataset]:
    return datasets(bundled(figure) if data is None else data, settings.get("seed", 0))


def _bounds(middle: Axes, right: Axes, dataset: Dataset, best: float, passes: Vector) -> None:
    """Theorem 3.1 and Lemma 3.2 for Algorithm 1; an iteration is two products."""
    t, radius = passes / 2.0, float(Design(dataset.X).row_norms().max())
    for sharp, style, label in ((False, ":", "Theorem 3.1"), (True, "-.", "Theorem 3.1 without log t")):
        bound = margin_momentum(t, dataset.n, best, radius, sharp)
        middle.plot(passes, 1.0 - bound / best, style, color="black", lw=1.0, label=label)
    square = best**2 + 2.0 * margin_dual(t, dataset.n, radius)
    right.plot(passes, np.sqrt(square) / best - 1.0, "--", color="black", lw=1.0, label="Lemma 3.2")


def _kernel_bounds(axes: Axes, data: Labelled, best: float, found: Sequence[tuple[Maximiser, KernelCurve]]) -> None:
    """Theorem 4.1, each of whose points is a run of its own, and Theorem 5.1 for Algorithm 1; rows have norm 1."""
    n, k = data.X.shape[0], data.k
    steps = found[0][1].steps
    drawn = margin_sampling(steps, n * (k - 1), best, FAILURE, np.sqrt(2.0))
    axes.plot(steps, 1.0 - drawn / best, ":", color=Colour.PURPLE, lw=1.2, label=f"Theorem 4.1, δ = {FAILURE:g}")
    for method, curve in found:
        if method is BATCH:
            for sharp, style, label in ((False, ":", "Theorem 5.1"), (True, "-.", "Theorem 5.1 without log t")):
                bound = margin_multiclass(curve.steps, n, k, best, 1.0, sharp)
                axes.plot(curve.steps, 1.0 - bound / best, style, color="black", lw=1.0, label=label)


def _line(axes: Axes, method: Method, x: Vector, y: Vector) -> None:
    axes.plot(x, y, method.style, color=method.colour, lw=1.5, label=method.label)


def _dress(axes: Axes, title: str, ylabel: str, xlabel: str = "products with X") -> None:
    dress(axes, xlabel, ylabel)
    from matplotlib.ticker import LogLocator

    axes.xaxis.set_major_locator(LogLocator())
    axes.set_title(title, fontsize=10)


def _tick(settings: Settings) -> None:
    tick = settings.get("tick")
    if tick is not None:
        tick()
