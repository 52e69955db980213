"""Small fits beside scikit-learn's: estimators of the same name, each at its own default tolerance.

    python -m benchmarks.small [--only REGEX] [--seconds 1.0]

A grid search makes hundreds of small fits, and there the work around the steps decides. Both sides fit in turns, in
one process and one thread, until the row has taken so many seconds of the processor. The ratio is that of the medians;
that of the quickest fits, which other work on the machine disturbs least, stands beside it. Searches are of 100 fits:
20 values of C or alpha, 5 folds.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import click
import numpy as np
import sklearn.linear_model as theirs_linear
import sklearn.svm as theirs_svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification, make_regression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

import fenchel as fl

#: A row has at least so many rounds.
FEWEST = 3
GRID = np.logspace(-3, 2, 20).tolist()


@dataclass(frozen=True)
class Row:
    """A fit of either side: an estimator by its name, and what is passed to it."""

    data: str
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    searched: str = ""  # the parameter of a grid search
    their: tuple[tuple[str, Any], ...] = ()  # what only scikit-learn needs to be told

    @property
    def label(self) -> str:
        """As it is printed, and as --only finds it."""
        told = ", ".join(f"{name}={value}" for name, value in self.arguments)
        search = f" GridSearchCV {self.searched}" if self.searched else ""
        return f"{self.data} {self.name}({told}){search}"

    def models(self) -> tuple[Any, Any]:
        """Ours and theirs."""
        home = theirs_svm if self.name.startswith("LinearSV") else theirs_linear
        arguments = dict(self.arguments)
        pair = getattr(fl, self.name)(**arguments), getattr(home, self.name)(**arguments, **dict(self.their))
        if not self.searched:
            return pair
        return tuple(GridSearchCV(model, {self.searched: GRID}, cv=5) for model in pair)  # type: ignore[return-value]


@cache
def data_of(name: str) -> tuple[Any, Any]:
    """X and y."""
    if name == "100 x 5 classes":
        return make_classification(n_samples=100, n_features=5, random_state=0)
    if name == "100 x 5 targets":
        return make_regression(n_samples=100, n_features=5, noise=10.0, random_state=0)
    if name == "diabetes, 4 targets":
        X, y = load_diabetes(return_X_y=True)
        return X, np.column_stack([y, y**2 / 100.0, np.sqrt(y), np.log(y)])
    load = {"iris": load_iris, "breast_cancer": load_breast_cancer, "diabetes": load_diabetes}[name]
    X, y = load(return_X_y=True)
    return (scale(X) if name == "breast_cancer" else X), y


def rows() -> Iterator[Row]:
    """All of them."""
    few, targets = "100 x 5 classes", "100 x 5 targets"
    hinge = (("loss", "hinge"),)
    yield Row(few, "LogisticRegression")
    yield Row(few, "LogisticRegression", (("penalty", "l1"), ("solver", "liblinear")))
    yield Row(few, "LinearSVC")
    yield Row(few, "LinearSVC", hinge)
    for name in ("Ridge", "Lasso", "ElasticNet", "HuberRegressor"):
        yield Row(targets, name)
    yield Row(targets, "QuantileRegressor", (("alpha", 0.01),))
    for name in ("LinearSVR", "RidgeCV", "LassoCV"):
        yield Row(targets, name)
    yield Row("iris", "LogisticRegression", searched="C")
    yield Row("iris", "LinearSVC", searched="C")
    yield Row("iris", "LinearSVC", hinge, searched="C")
    yield Row("iris", "LogisticRegressionCV", (("Cs", 2), ("cv", KFold(3))))
    yield Row("breast_cancer", "LinearSVC", hinge, searched="C")
    for name in ("Ridge", "Lasso", "HuberRegressor"):
        yield Row("diabetes", name, searched="alpha")
    yield Row("diabetes", "LinearSVR", searched="C")
    yield Row("diabetes, 4 targets", "Lasso", searched="alpha")


def seconds_of(action: Callable[[], Any]) -> float:
    """Of the processor, for one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def race(row: Row, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds of our fits and of theirs, in turns."""
    X, y = data_of(row.data)
    models = row.models()
    for model in models:  # what is done once: imports, caches
        model.fit(X, y)
    found: tuple[list[float], list[float]] = ([], [])
    end = time.process_time() + seconds
    while len(found[0]) < FEWEST or time.process_time() < end:
        for which in (0, 1) if len(found[0]) % 2 else (1, 0):
            found[which].append(seconds_of(lambda: models[which].fit(X, y)))  # noqa: B023
    return found


@click.command(help=__doc__)
@click.option("--only", default="", help="A regular expression: rows whose name has it.")
@click.option("--seconds", type=float, default=1.0, show_default=True, help="For each row.")
def main(only: str, seconds: float) -> None:
    print(f"{'':<62} {'ours ms':>9} {'theirs ms':>9} {'ratio':>6} {'best':>6} {'rounds':>6}")
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # scikit-learn's fits may not converge at its defaults
        for row in rows():
            if not re.search(only, row.label):
                continue
            ours, theirs = race(row, seconds)
            middle, best = (1e3 * median(ours), 1e3 * median(theirs)), min(ours) / min(theirs)
            told = f"{middle[0]:9.2f} {middle[1]:9.2f} {middle[0] / middle[1]:6.2f} {best:6.2f} {len(ours):6d}"
            print(f"{row.label:<62} {told}", flush=True)


if __name__ == "__main__":
    main()
