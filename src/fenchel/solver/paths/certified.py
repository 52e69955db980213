"""certified_path: finitely many models, one of which is proven good enough at every lam of an interval.

Proof. R is lam times a function of w, so P_lam(w, b) is affine in lam for every model, and the optimum

    P*(lam) = min over (w, b) of P_lam(w, b)

is a minimum of affine functions: concave. Hence, for a model and two lams low < high,

    (1 - eps) P_lam(w, b) <= P*(lam)   at lam = low and at lam = high   proves it for all lam between,

since the left side is affine and the right side concave. Lower bounds on P* are dual values at low and at high, or the
chord between dual values further out, which lies below a concave function. So finitely many certificates, each rounded
outwards, prove the whole interval.

Search, from the largest lam down. The smaller gap of two models at neighbouring lams is largest where their P_lam
cross. There both are certified, by the chord and by the same mixture of their dual points (D is jointly concave in
alpha and lam, so that is above the chord). If that is not enough, a model is inserted there: the mixture of the two
models if its certificate suffices (between two kinks of a Lasso path it is exact), else a solver's. The distance to the
next lam is adapted to the last one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fenchel.problem import Problem
from fenchel.problem.checks import require_flag, shown
from fenchel.solver.paths.interval_search import TUNING, IntervalSearch
from fenchel.solver.paths.intervals import CertifiedPath
from fenchel.solver.progress import Bar
from fenchel.solver.result import NotCertifiedWarning
from fenchel.solver.solve import Clock, require_solvable


def certified_path(
    problem: Problem,
    lam_min: float,
    lam_max: float,
    eps: float = 1e-3,
    *,
    share: float = 0.1,
    max_seconds: float | None = None,
    progress: bool = False,
    warn: bool = True,
    **options: Any,
) -> CertifiedPath:
    """A finite list of models such that for every lam from lam_min to lam_max one of them is proven eps-optimal:

        P_lam(w, b) - P*(lam) <= eps P_lam(w, b).

    P_lam(w, b) is affine in lam and P*(lam) concave, so a bound on the relative gap of a model at two lams holds
    between them: a few certificates suffice (see the page on paths). For any loss and any penalty that is lam times a
    function of the weights, with sample weights and an intercept, where the objective is positive (with an entropy it
    may not be).

    Parameters
    ----------
    problem : Problem
        Its own lam is not used.
    lam_min, lam_max : float
        0 < lam_min < lam_max. At `problem.lam_max()` the weights of a sparse model become zero.
    eps : float, default 1e-3
        The relative gap that is proven for every lam, between 0 and 1. (In `path`, eps is the ratio of the smallest to
        the largest lam.)
    share : float, default 0.1
        The tolerance of each solve as a fraction of eps, at most 0.8. A smaller one makes solves longer, and fewer.
    max_seconds : float, optional
        For all solves together.
    progress : bool, default False
        Show a progress bar.
    warn : bool, default True
        Whether to warn if the path ends before lam_min.
    **options
        Passed on to `solve`: the solver and its options, max_iter, random_state, n_threads, callback.

    Returns
    -------
    CertifiedPath
        After Ctrl-C or max_seconds: proven from some lam up to lam_max.
    """
    for flag, name in ((progress, "progress"), (warn, "warn")):
        require_flag(flag, name)
    search = _checked(problem, lam_min, lam_max, eps, share, Clock(max_seconds), options)
    with Bar("certified path", progress) as bar, np.errstate(all="ignore"):
        why = search.run(bar)
    found = search.path()
    if warn and not found.complete:
        reached = f"lam from {found.low:g} to {found.lam_max:g} only" if found.knots else "no lam"
        warnings.warn(f"proven for {reached}: {why}", NotCertifiedWarning, stacklevel=2)
    return found


@np.errstate(all="ignore")
def fixed_grid(
    problem: Problem, lam_min: float, lam_max: float, eps: float = 1e-3, *, share: float = 0.1, **options: Any
) -> int:
    """The fewest lams, in equal ratios from lam_max to lam_min, whose solutions prove the same as `certified_path`.

    A baseline, found by solving on one grid after the other. The parameters are those of `certified_path`.
    """
    search = _checked(problem, lam_min, lam_max, eps, share, Clock(None), options)

    def enough(count: int) -> bool:
        above = search.solve(lam_max, None)
        for lam in np.geomspace(lam_max, lam_min, count)[1:]:
            below = search.solve(float(lam), above)
            if not search.cross(below, above).proves(eps):
                return False
            above = below
        return True

    most = 2
    while not enough(most):
        most *= 2
    least = most // 2  # too few
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def _checked(
    problem: Problem, lam_min: float, lam_max: float, eps: float, share: float, clock: Clock, options: dict[str, Any]
) -> IntervalSearch:
    """The search, with its arguments checked."""
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    for value, name in ((lam_min, "lam_min"), (lam_max, "lam_max"), (eps, "eps"), (share, "share")):
        if not (isinstance(value, int | float | np.number) and not isinstance(value, bool) and 0 < value < np.inf):
            raise ValueError(f"{name} must be a positive finite number, got {shown(value)}")
    if not lam_min < lam_max:
        raise ValueError(f"lam_min must be below lam_max, got {shown(lam_min)} and {shown(lam_max)}")
    if not (eps < 1 and share <= TUNING.share):
        raise ValueError(f"eps must be below 1 and share at most {TUNING.share}, got {shown(eps)} and {shown(share)}")
    for name in sorted({"tol", "atol", "start", "weights_tol"} & set(options)):
        raise TypeError(f"certified_path has no option {name}: the tolerance of a solve is share * eps")
    require_solvable(problem)
    _require_proportional(problem, float(lam_min), float(lam_max))
    return IntervalSearch(problem, float(lam_min), float(lam_max), float(eps), float(share), clock, options)


def _require_proportional(problem: Problem, lam_min: float, lam_max: float) -> None:
    """Raise unless R is proportional to lam, tested at one w: the proof needs it."""
    w = np.where(np.arange(problem.shape[1]) % 2, 1.0, 2.0)
    w = w / float(w.sum())  # inside every penalty's domain, the simplex included
    at_min, at_max = (problem.penalty.with_lam(lam).value(w) / lam for lam in (lam_min, lam_max))
    if np.isfinite(at_min + at_max) and not abs(at_min - at_max) <= 1e-9 * abs(at_min):
        raise TypeError(f"{problem.penalty!r} is not proportional to lam, which certified_path needs")
