"""Ways along a grid of lam that need no solver's loop: what they cannot certify is left to `solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fenchel.certificate.centred import Centred
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import Penalty
from fenchel.solver.base import Result, Stop
from fenchel.solver.blas import blas_threads
from fenchel.solver.gram_path import GramPath
from fenchel.solver.seed import seed_of
from fenchel.solver.wide_path import WidePath
from fenchel.steps.descent_state import Part
from fenchel.steps.primal_cd import is_cheap

#: Options of `solve` that these ways heed, or that make no difference to them; and the solvers that they stand for.
KNOWN = frozenset({"tol", "atol", "n_threads", "random_state", "solver", "callback"})
SOLVERS = ("auto", "primal_cd")


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
    if not _is_least_squares(problem) or not WidePath.suits(problem) or stop.max_seconds is not None:
        return None
    with blas_threads(problem.design.threads), np.errstate(all="ignore"):
        samples, penalty = Centred.of(problem), problem.penalty
        if not samples.are_moderate:
            return None
        way = WidePath(samples)
        steps = int(np.ceil(np.log(max(way.largest / penalty.sparsity / penalty.lam, 1.0)) / np.log(STRIDE)))
        rough = replace(stop, tol=max(stop.tol, ROUGH))
        for lam in penalty.lam * STRIDE ** np.arange(steps - 1, 0, -1):
            if not way.advance([penalty.with_lam(float(lam))], rough):
                return None
        results = way.solve([penalty], stop)
        return results[0] if results else None


def quick_path(problem: Any, options: Mapping[str, Any]) -> QuickPath | None:
    """A quick way for the squared loss and a penalty on groups of weights, where the solver would be primal_cd."""
    asked = {name for name, value in options.items() if value is not None and value is not False}
    if not _is_least_squares(problem) or not asked <= KNOWN or options.get("solver", "auto") not in SOLVERS:
        return None
    seed_of(options.get("random_state"))  # which has no effect, but must be one
    stop = Stop(options.get("tol", 1e-4), options.get("atol", 0.0))
    problem = problem.replace(design=problem.design.using(options.get("n_threads", 1)))
    with blas_threads(problem.design.threads), np.errstate(all="ignore"):
        way = GramPath if is_cheap(Part.whole(problem)) else WidePath if WidePath.suits(problem) else None
        samples = Centred.of(problem) if way is not None else None
        if way is None or samples is None or not samples.are_moderate:
            return None
        return QuickPath(way(samples), stop, problem.design.threads)


def _is_least_squares(problem: Any) -> bool:
    """With a penalty on groups of weights, and no penalised intercept."""
    if not isinstance(problem, Problem) or problem.design.constant or type(problem.loss) is not Squared:
        return False
    return problem.penalty.blocks(problem.shape[1]) is not None
