"""What takes part in the race: a task, and what can be asked to do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

LOSSES = ("hinge", "squared_hinge", "logistic", "ridge")

#: Solvers that factorise a matrix of d x d numbers take part up to this d.
MOST_FEATURES_TO_FACTORISE = 10_000

#: Passes that no solver should run into: its tolerance is to end it.
MANY = 1_000_000


@dataclass(frozen=True)
class Task:
    """What is to be fitted: data, loss, lam; at which tolerance, on how many threads."""

    X: Any
    y: np.ndarray
    loss: str
    lam: float
    tol: float
    threads: int = 1

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
    losses : those it can minimise
    fit : Task -> w
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
