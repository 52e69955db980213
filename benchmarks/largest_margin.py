"""The largest margin and separability: fenchel beside scikit-learn, in turns, medians and ratios, one thread.

    python -m benchmarks.largest_margin [--rows ROW ...] [--repeats 3] [--data-dir DATA]

The rows:

mnist      digits 0 and 1 of mnist (from the folder of data sets; scikit-learn's 8 x 8 digits without it);
text       separable rows of imdb, tf-idf (from the folder; generated text-like rows without it);
separable  random labels of n x 800 normal points, n = 1200, 1500 and 1800: the answer with its proof;
capacity   2000 labelings of 40 x 20 normal points;
kernel     rbf on 5000 generated points in 4 dimensions, less those near the boundary, and kernel-20000 on 20000: beside
           SVC(C=1e10) at the first tolerance with which its margin is within 1e-3, or 1e-6, of the largest.

For mnist and text each fit is to a relative error of the margin of 1e-3 and 1e-6. The peers are SVC(kernel="linear",
C=1e10) and LinearSVC(loss="hinge", fit_intercept=False) at the first C and tolerance that reach it; a peer that does
not reach it is said to fail. Everything is fitted without an intercept where LinearSVC takes part, since it penalises
it; SVC always has one, and is compared with the fit that has one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import fenchel as fl
from benchmarks.datasets import mnist_digits
from benchmarks.interpolation import separable as text_rows

Fit = Callable[[], tuple[np.ndarray, float]]
ERRORS = (1e-3, 1e-6)
LADDER = [(C, tol) for C in (1e2, 1e4, 1e6, 1e10) for tol in (1e-2, 1e-4, 1e-6)]
SVC_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)


def weights(model: Any) -> tuple[np.ndarray, float]:
    """w and b of a fitted model."""
    coef = model.coef_
    return np.ravel(coef.toarray() if sp.issparse(coef) else coef), float(np.ravel(model.intercept_)[0])


def margin(X: Any, y: np.ndarray, found: tuple[np.ndarray, float]) -> float:
    """The least signed distance of a sample to the boundary."""
    w, b = found
    return float(np.min(y * (X @ w + b))) / float(np.linalg.norm(w))


def fitted(model: Any, X: Any, y: np.ndarray) -> Fit:
    """A fit as a function without arguments."""

    def fit() -> tuple[np.ndarray, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return weights(model.fit(X, y))

    return fit


def quickest(
    fits: list[tuple[str, Fit]], reaches: Callable[[tuple[np.ndarray, float]], bool]
) -> tuple[str, Fit] | None:
    """The first of several fits, the quick ones first, that reaches the goal."""
    return next(((name, fit) for name, fit in fits if reaches(fit())), None)


def race(title: str, X: Any, y: np.ndarray, error: float, repeats: int) -> Table:
    """fenchel beside SVC, with an intercept, and LinearSVC, without, to a relative error of the margin."""
    table = Table("intercept", "", "seconds", "beside fenchel", "margin", title=f"{title}, relative error {error:g}")
    for intercept in (True, False):
        exact = fl.MaxMarginClassifier(tol=1e-9, fit_intercept=intercept)
        goal = (1.0 - error) * margin(X, y, fitted(exact, X, y)())
        entries = [("fenchel", fitted(fl.MaxMarginClassifier(tol=error, fit_intercept=intercept), X, y))]
        if intercept:
            models = {f"SVC, tol={tol:g}": SVC(kernel="linear", C=1e10, tol=tol) for tol in SVC_TOLERANCES}
        else:
            shared = {"loss": "hinge", "fit_intercept": False, "max_iter": 20_000, "random_state": 0}
            models = {f"LinearSVC, C={C:g}, tol={tol:g}": LinearSVC(C=C, tol=tol, **shared) for C, tol in LADDER}
        peers = [(name, fitted(model, X, y)) for name, model in models.items()]
        found = quickest(peers, lambda model: margin(X, y, model) >= goal)  # noqa: B023
        if found is not None:
            entries.append(found)
        seconds: dict[str, list[float]] = {name: [] for name, _ in entries}
        last: dict[str, float] = {}
        for _ in range(repeats):
            for name, fit in entries:
                start = time.perf_counter()
                model = fit()
                seconds[name].append(time.perf_counter() - start)
                last[name] = margin(X, y, model)
        first = median(seconds["fenchel"])
        for name, each in seconds.items():
            table.add_row(
                str(intercept), name, f"{median(each):.3f}", f"{median(each) / first:.2f}", f"{last[name]:.9g}"
            )
        if found is None:
            table.add_row(str(intercept), "SVC" if intercept else "LinearSVC", "", "none reached it", "")
    return table


def kernel_race(n: int, error: float, repeats: int) -> Table:
    """MaxMarginClassifier with an rbf kernel beside SVC, to a relative error of the margin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    X, y = X[np.abs(f) > 0.1], np.sign(f[np.abs(f) > 0.1])
    best = fl.MaxMarginClassifier(kernel="rbf", gamma=0.5, tol=1e-9).fit(X, y).margin_interval_.best

    def reached(model: Any) -> float:
        """The share of the largest margin, by margin_interval's own bound."""
        return fl.margin_interval(model, X, y, effort="low").lower / best

    entries = {"fenchel": fl.MaxMarginClassifier(kernel="rbf", gamma=0.5, tol=error)}
    for tol in SVC_TOLERANCES:
        model = SVC(C=1e10, gamma=0.5, tol=tol)
        if reached(model.fit(X, y)) >= 1.0 - error:
            entries[f"SVC, tol={tol:g}"] = model
            break
    seconds: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(repeats):
        for name, model in entries.items():
            start = time.process_time()
            model.fit(X, y)
            seconds[name].append(time.process_time() - start)
    table = Table(
        "", "seconds", "beside fenchel", "share of the margin", title=f"rbf, {len(y)} points, error {error:g}"
    )
    for name, each in seconds.items():
        share = f"{reached(entries[name]):.9f}"
        table.add_row(name, f"{median(each):.3f}", f"{median(each) / median(seconds['fenchel']):.2f}", share)
    if len(entries) == 1:
        table.add_row("SVC", "", "none reached it", "")
    return table


def separability(repeats: int) -> Table:
    """Random labels near the capacity n = 2 d."""
    table = Table("n", "answer", "seconds", "verified in", title="separable, n x 800 normal points")
    for n in (1200, 1500, 1800):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(n, 800)), rng.choice([-1.0, 1.0], size=n)
        seconds, checks = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            found = fl.separable(X, y)
            seconds.append(time.perf_counter() - start)
            start = time.perf_counter()
            assert found.verify(X, y)
            checks.append(time.perf_counter() - start)
        table.add_row(str(n), str(found.answer), f"{median(seconds):.2f}", f"{median(checks):.2f}")
    return table


def capacity() -> Table:
    """Many labelings of the same points."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 20)), rng.choice([-1.0, 1.0], size=(40, 2000))
    start = time.perf_counter()
    answers = [found.answer for found in fl.separable(X, Y, intercept=False)]
    table = Table("labelings", "separable", "undecided", "seconds", title="40 x 20 normal points")
    undecided = sum(answer is None for answer in answers)
    table.add_row(str(len(answers)), str(sum(map(bool, answers))), str(undecided), f"{time.perf_counter() - start:.2f}")
    return table


def digits(folder: Path | None, cache: Path) -> tuple[str, Any, np.ndarray]:
    """Zeros and ones of mnist, or of scikit-learn's digits."""
    if folder is None:
        X, y = load_digits(n_class=2, return_X_y=True)
        return "digits 0 and 1", X / 16.0, 2.0 * y - 1.0
    images, labels = mnist_digits(folder / "mnist")
    some = labels < 2
    return "mnist 0 and 1", images[some] / 255.0, np.where(labels[some] == 1, 1.0, -1.0)


@click.command(help=__doc__)
@click.option("--rows", multiple=True, default=("mnist", "text", "separable", "capacity", "kernel"), show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--samples", default=4000, show_default=True, help="Rows of text.")
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--cache", type=click.Path(path_type=Path), default="benchmarks/results", show_default=True)
def main(rows: tuple[str, ...], repeats: int, samples: int, data_dir: Path | None, cache: Path) -> None:
    console = Console()
    with threadpool_limits(1):
        for error in ERRORS:
            if "mnist" in rows:
                console.print(race(*digits(data_dir, cache), error, repeats))
            if "text" in rows:
                X, y = text_rows(samples, data_dir, cache)
                console.print(race(f"text, {X.shape[0]} x {X.shape[1]}", X, y, error, repeats))
            for row, n in (("kernel", 5000), ("kernel-20000", 20_000)):
                if row in rows:
                    console.print(kernel_race(n, error, repeats))
        if "separable" in rows:
            console.print(separability(repeats))
        if "capacity" in rows:
            console.print(capacity())


if __name__ == "__main__":
    main()
