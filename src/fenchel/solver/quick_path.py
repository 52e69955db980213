"""Ways along a grid of lam that need no solver's loop: what they cannot certify is left to `solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


#: How many times smaller each lam of a short path is than the last, and the relative gap on the way.
STRIDE, ROUGH = 1.8, 0.1


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


def quick_solve(problem: Any, stop: Stop) -> Result | None:
    """One optimum by a short path to it, for least squares on few dense samples; None where that does not certify it.

    From lam_max down every lam has few more weights than the last: that is quicker than the jump, whose first working
    sets are wrong.
    """
    if not isinstance(problem, Problem) or problem.design.constant or type(problem.loss) is not Squared:
        return None
    if not WidePath.suits(problem):
        return None
    with blas_threads(problem.design.threads), np.errstate(all="ignore"):
        way, penalty = WidePath(problem), problem.penalty
        top = way.largest / penalty.sparsity
        steps = int(np.ceil(np.log(max(top / penalty.lam, 1.0)) / np.log(STRIDE))) if np.isfinite(top) else 0
        rough = replace(stop, tol=max(stop.tol, ROUGH))
        for lam in penalty.lam * STRIDE ** np.arange(steps - 1, 0, -1):
            if not way.solve([penalty.with_lam(float(lam))], rough):
                return None
        found = way.solve([penalty], stop)
        return found[0] if found else None


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
