"""Ways along a grid of lam that need no solver's loop: what they cannot certify is left to `solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import Penalty
from fenchel.solver.base import Result, Stop
from fenchel.solver.blas import blas_threads
from fenchel.solver.gram_path import GramPath
from fenchel.solver.wide_path import WidePath
from fenchel.steps.descent_state import Part
from fenchel.steps.primal_cd import is_cheap

#: Options of `solve` that these ways heed, or that make no difference to them.
KNOWN = frozenset({"tol", "atol", "n_threads", "random_state", "solver"})


class Way(Protocol):
    """Finds optima one after the other."""

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optima for the first of these penalties; none where the first cannot be certified this way."""


@dataclass
class QuickPath:
    """A way, its tolerance and its threads."""

    way: Way
    stop: Stop
    threads: int

    def solve(self, penalties: Sequence[Penalty]) -> list[Result]:
        """The optima for the first of these penalties, in order; none where `solve` has to find the next."""
        with blas_threads(self.threads), np.errstate(all="ignore"):  # overflow makes a gap infinite, never wrong
            return self.way.solve(penalties, self.stop)


def quick_path(problem: Any, options: Mapping[str, Any]) -> QuickPath | None:
    """A quick way for the squared loss and a penalty on groups of weights, where the solver would be primal_cd."""
    if not isinstance(problem, Problem) or not set(options) <= KNOWN or problem.design.constant:
        return None
    if options.get("solver", "auto") not in ("auto", "primal_cd") or type(problem.loss) is not Squared:
        return None
    blocks = problem.penalty.blocks(problem.shape[1])
    if blocks is None:
        return None
    stop = Stop(options.get("tol", 1e-4), options.get("atol", 0.0))
    problem = problem.replace(design=problem.design.using(options.get("n_threads", 1)))
    with blas_threads(problem.design.threads), np.errstate(all="ignore"):
        if is_cheap(Part.whole(problem)):
            return QuickPath(GramPath(problem), stop, problem.design.threads)
        return QuickPath(WidePath(problem), stop, problem.design.threads) if WidePath.suits(problem) else None
