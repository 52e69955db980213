"""What takes part in the race: a task, and what can be asked to do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

#: Objectives with |w|^2 / 2, and those whose penalty makes zeros; benchmarks/objectives.py states them.
LOSSES = ("hinge", "squared_hinge", "logistic", "ridge")
PATHS = ("lasso_path", "logistic_path")
SPARSE = ("lasso", "elastic_net", "sparse_logistic", "group_lasso", *PATHS)

#: The share of |w|_1 in the elastic net.
L1_RATIO = 0.5

#: A path has so many points, evenly on a logarithmic scale; its first lam is so many times its last.
PATH_POINTS, PATH_RATIO = 100, 100.0

#: Solvers that factorise a matrix of d x d numbers take part up to this d.
MOST_FEATURES_TO_FACTORISE = 10_000

#: Passes that no solver should run into: its tolerance is to end it.
MANY = 1_000_000


@dataclass(frozen=True)
class Task:
    """What is to be fitted: data, objective, lam; at which tolerance, on how many threads.

    Attributes
    ----------
    loss : the name of the objective
    lam : for a path the last, which is the smallest
    groups : the group of each column, numbered from 0, columns of a group side by side; None where there are none
    """

    X: Any
    y: np.ndarray
    loss: str
    lam: float
    tol: float
    threads: int = 1
    groups: np.ndarray | None = None

    @property
    def lams(self) -> np.ndarray:
        """Every lam, the largest first."""
        if self.loss in PATHS:
            return np.geomspace(PATH_RATIO * self.lam, self.lam, PATH_POINTS)
        return np.array([self.lam])

    @property
    def C(self) -> float:
        return 1.0 / self.alpha

    @property
    def alpha(self) -> float:
        return self.lam * self.y.size


@dataclass(frozen=True)
class Peer:
    """A solver of another package, or one of fenchel's.

    Attributes
    ----------
    name, package : what the table calls it; the distribution that it is part of
    losses : the objectives that it can minimise
    fit : Task -> w; for a path a row for every lam
    ladder : its tolerances, loosest first
    compiles : whether it compiles when it is called, so that every timed run needs a fresh process
    factorises : whether it builds a matrix of d x d numbers
    dense_only : whether it takes dense data only
    imports : modules to import before the clock starts, where no warming up does it
    """

    name: str
    package: str
    losses: tuple[str, ...]
    fit: Callable[[Task], Any]
    ladder: tuple[float, ...]
    compiles: bool = False
    factorises: bool = False
    dense_only: bool = False
    imports: tuple[str, ...] = ()

    def takes(self, X: Any, loss: str) -> bool:
        """Whether it can fit this loss on these data."""
        too_wide = self.factorises and X.shape[1] > MOST_FEATURES_TO_FACTORISE
        return loss in self.losses and not too_wide and not (self.dense_only and sparse.issparse(X))


def half_decades(first: float, last: float) -> tuple[float, ...]:
    """Tolerances from first down to last, by factors of the square root of ten."""
    count = round(2 * np.log10(first / last)) + 1
    return tuple(float(f"{first * 10 ** (-k / 2):.2e}") for k in range(count))
