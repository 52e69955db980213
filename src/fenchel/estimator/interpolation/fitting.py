"""What estimators with hard constraints share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.estimator.base import LinearEstimator, solver_options, store, warn_short
from fenchel.estimator.objective import number, one_of
from fenchel.problem import Interpolation
from fenchel.problem.penalties import L2, LpSquared, Penalty
from fenchel.solver import Result, solve_many
from fenchel.solver.result import Callback
from fenchel.solver.solve import Clock


@dataclass(eq=False, repr=False, kw_only=True)
class ConstraintParameters:
    """Parameters of estimators with hard constraints."""

    tol: float = 1e-6
    on_infeasible: str = "raise"
    max_seconds: float | None = None
    progress: bool = False
    n_threads: int | None = 1


def norm_of(p: object) -> Penalty:
    """|w|_p^2 / 2."""
    checked = number("p", p)
    if not 1.0 < checked <= 2.0:
        raise ValueError(f"p must be above 1 and at most 2, got {checked!r}")
    return L2(1.0) if checked == 2.0 else LpSquared(1.0, checked)


def check_constrained(model: Any) -> None:
    """Raise for invalid shared parameters."""
    one_of("on_infeasible", model.on_infeasible, ("raise", "least_violation"))


def fit_constrained(
    model: LinearEstimator,
    problems: Sequence[Interpolation],
    of: str,
    watch: Sequence[Callback] | None = None,
    **options: Any,
) -> list[Result]:
    """Solve all problems, and set the attributes of the model; `watch` has a callback for each, after every step.

    Where a solver that was not chosen by "auto" has no feasible point in the end, those that "auto" takes go on.
    """
    options = solver_options(model) | options
    if watch is None:
        results = solve_many(problems, **options)
    else:
        clock, results = Clock(options.pop("max_seconds", None)), []
        shared = {name: options[name] for name in ("tol", "progress", "n_threads") if name in options}
        for problem, callback in zip(problems, watch, strict=True):
            (found,) = solve_many([problem], max_seconds=clock.left, callback=callback, check_every=1, **options)
            if found.status in ("max_iter", "stalled", "gave_up") and not np.isfinite(found.certificate.gap):
                (other,) = solve_many([problem], max_seconds=clock.left, **shared)
                found = other if np.isfinite(other.certificate.gap) else found
            results.append(found)
    store(model, results, 0.0)
    warn_short(results, of)
    return results
