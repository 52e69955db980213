"""Ways along a grid of lam that need no solver's loop: what they cannot certify is left to `solve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fenchel.certificate.bounds.centred import Centred
from fenchel.certificate.bounds.responses import Responses
from fenchel.data.design import Design
from fenchel.data.fold_cache import FoldCache
from fenchel.problem import Problem
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import Penalty
from fenchel.solver.blas import blas_threads
from fenchel.solver.paths.gram_path import GramPath, gram_of_all
from fenchel.solver.paths.large_path import LargePath, Needed
from fenchel.solver.paths.smooth_path import SmoothPath
from fenchel.solver.paths.wide_path import FEW_SAMPLES, SMOOTH, WidePath
from fenchel.solver.result import Result, Stop
from fenchel.solver.seed import seed_of
from fenchel.steps.working_set.primal_cd import is_cheap
from fenchel.steps.working_set.state import Part

#: Options of `solve` that these ways heed, or that make no difference to them, and those that are as if not given; and
#: the solvers that they stand for.
KNOWN = frozenset({"tol", "atol", "n_threads", "random_state", "solver", "callback"})
NEUTRAL = {"max_iter": None, "max_seconds": None, "check_every": None, "progress": False}
SOLVERS = ("auto", "primal_cd")

#: Lams in a row, or not, that a way could not certify before it is given up.
MOST_FAILURES = 3


class Way(Protocol):
    """Finds optima one after the other."""

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optima for the first of these penalties; none where the first cannot be certified this way."""


@dataclass
class QuickPath:
    """A way, its tolerance and its threads; it is not asked again once it has failed a few times."""

    way: Way
    stop: Stop
    threads: int
    failures: int = 0

    def solve(self, penalties: Sequence[Penalty], seconds: float | None) -> list[Result]:
        """The optima for the first of these penalties, in order; none where `solve` has to find the next."""
        if self.failures >= MOST_FAILURES:
            return []
        with blas_threads(self.threads), np.errstate(all="ignore"):  # overflow makes a gap infinite, never wrong
            found = self.way.solve(penalties, replace(self.stop, max_seconds=seconds))
        self.failures += not found
        return found


def quick_solve(problem: Any, stop: Stop) -> Result | None:
    """One optimum by a short path to it, on few dense samples; None where that does not certify it."""
    if not _has_groups(problem) or stop.max_seconds is not None:
        return None
    with blas_threads(problem.X.threads), np.errstate(all="ignore"):
        way = WidePath.of(problem, FEW_SAMPLES)
        return None if way is None else way.approach(problem.penalty, stop)


def quick_path(problem: Any, options: Mapping[str, Any], needed: Needed | None = None) -> QuickPath | None:
    """A quick way for a smooth loss and a penalty on groups of weights, where the solver would be primal_cd."""
    if not _is_quick(problem, options):
        return None
    seed_of(options.get("random_state"))  # which has no effect, but must be one
    stop = Stop(options.get("tol", 1e-4), options.get("atol", 0.0))
    problem = problem.replace(X=problem.X.using(options.get("n_threads", 1)))
    with blas_threads(problem.X.threads), np.errstate(all="ignore"):
        way = _way(problem, needed)
        return None if way is None else QuickPath(way, stop, problem.X.threads)


def in_common(problem: Any, options: Mapping[str, Any]) -> Design | None:
    """X for paths on parts of these samples, all others with weight zero, where that is quicker than copies of them.

    It holds what they have in common: columns in sixteen bits, for a look at all of them; or, of least squares with few
    weights, the Gram matrix, from which they take off what the others have in it.
    """
    if not _is_quick(problem, options):
        return None
    cache, design = FoldCache(), problem.X.using(options.get("n_threads", 1))
    with blas_threads(design.threads), np.errstate(all="ignore"):
        if not is_cheap(Part.whole(problem)):
            design = design.sharing(cache)
            WidePath.of(problem.replace(X=design))  # if this engine applies, its first pass fills the cache
        elif type(problem.loss) is Squared and problem.weightless:
            design = (design.stored_by_rows() if design.is_sparse else design).sharing(cache)
            cache.gram = gram_of_all(problem.replace(X=design))
    return design if cache.screens or cache.gram else None


def _is_quick(problem: Any, options: Mapping[str, Any]) -> bool:
    """A problem that these ways are for, and no option that they do not heed."""
    asked = {name for name, value in options.items() if name not in NEUTRAL or value is not NEUTRAL[name]}
    heard = options.get("callback") is None or callable(options["callback"])
    return _has_groups(problem) and asked <= KNOWN and heard and options.get("solver", "auto") in SOLVERS


def _way(problem: Problem, needed: Needed | None) -> Way | None:
    """On all columns where they are few, on working sets where samples are."""
    if not is_cheap(Part.whole(problem)):
        return WidePath.of(problem) or LargePath.of(problem, needed)
    if type(problem.loss) is Squared:
        samples = Centred.of(problem)
        return GramPath(samples) if samples.are_moderate else None
    responses = Responses(problem)
    return SmoothPath(responses) if problem.loss.traits >= SMOOTH and responses.are_moderate else None


def _has_groups(problem: Any) -> bool:
    """A stored matrix, a penalty on groups of weights, and no penalised intercept."""
    if not isinstance(problem, Problem) or problem.X.constant or not problem.is_stored:
        return False
    return problem.penalty.blocks(problem.shape[1]) is not None
