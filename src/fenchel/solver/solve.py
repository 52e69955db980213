"""solve: state a problem, get a model and its certificate."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from fenchel.certificate.bounds.rounding import clip_to_domain
from fenchel.certificate.certificate import percent
from fenchel.problem import MulticlassProblem, Problem
from fenchel.problem.checks import require_count, require_flag
from fenchel.problem.intercept import best_shift
from fenchel.problem.losses.multiclass import multipliers, off_of
from fenchel.solver.choose import another, choose
from fenchel.solver.paths.quick_path import quick_solve
from fenchel.solver.result import Callback, NotCertifiedWarning, Result, Stop
from fenchel.solver.run import Fit, run
from fenchel.solver.seed import seed_of
from fenchel.steps import Start

#: How many samples tell well enough where the targets are.
ENOUGH_SAMPLES = 10_000


def solve(
    problem: Problem | MulticlassProblem,
    solver: Any = "auto",
    tol: float = 1e-4,
    atol: float = 0.0,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    progress: bool = False,
    n_threads: int | None = 1,
    start: Any = None,
    warn: bool = True,
    check_every: int | None = None,
    **solver_options: Any,
) -> Result:
    """Minimise a problem until its certificate is good enough.

    Parameters
    ----------
    problem : Problem or MulticlassProblem
    solver : str or Solver, default "auto"
        "auto" chooses by what the loss and the penalty promise.
    tol, atol : float
        Stop when the certified gap is at most tol |P| or at most atol; or where P is zero as far as double precision
        can tell (`Certificate.vanishes`): constant targets with an intercept.
    max_iter : int, optional
        Most steps of the solver; 100000 if not given.
    max_seconds : float, optional
    random_state : int, RandomState or None
        Everything random; None is the seed 0, so that runs repeat.
    callback : callable, optional
        Called with a `Check` at every certificate; returning True stops.
    progress : bool, default False
        Show a progress bar.
    n_threads : int or None, default 1
        Threads for products with X and for epochs of dual ascent; None for all cores. Results repeat bit for bit with
        one.
    start : Result or tuple (w, b, alpha), optional
        Where to begin.
    warn : bool, default True
        Whether a certificate short of the tolerance gives a warning; a run that a callback stops gives none.
    check_every : int, optional
        Certify every so many steps; by default as often as a tenth of the run's time allows, and when the solver
        believes that it is done.
    **solver_options
        What the chosen solver takes; anything else is an error.

    Returns
    -------
    Result
        With the best model found and its certificate, also when it was interrupted: Ctrl-C ends the run, not the
        program. A certificate short of the tolerance comes with a `NotCertifiedWarning`.
    """
    if not isinstance(problem, Problem | MulticlassProblem):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r}")
    if check_every is not None:
        require_count(check_every, "check_every", "steps")
    require_flag(progress, "progress")
    require_flag(warn, "warn")
    stop = Stop(tol, atol, max_iter, max_seconds)
    problem = problem.replace(X=problem.X.using(n_threads))
    auto, seed = isinstance(solver, str) and solver == "auto" and not solver_options, seed_of(random_state)
    if auto and start is None and callback is None and check_every is None and max_iter is None and not progress:
        found = quick_solve(problem, stop)
        if found is not None:
            return found
    chosen = choose(problem, solver, solver_options, tol)
    if start is not None and not auto and chosen.ignores_start:
        raise ValueError(f"{chosen.name}, as it is set up, begins at a point of its own: start would have no effect")
    fit = Fit(problem, stop, _start(problem, start), seed, callback, bool(progress), check_every)
    result = run(fit, chosen)
    if auto and result.status == "overflow":
        # where P overflows at its start no solver gets anywhere
        other = another(problem, chosen) if np.isfinite(result.certificate.primal) else None
        if other is not None:
            fit.start = Start(result.w, result.b, result.alpha)
            result = replace(result, status="max_seconds") if fit.late else run(fit, other)
    if warn and result.status not in ("certified", "callback"):
        warnings.warn(not_certified(result), NotCertifiedWarning, stacklevel=2)
    return result


def _start(problem: Problem | MulticlassProblem, start: Any) -> Start:
    (n, d), several = problem.shape, isinstance(problem, MulticlassProblem)
    k = problem.n_classes if isinstance(problem, MulticlassProblem) else 1
    shapes = ((k, d), (k,), (n, k)) if several else ((d,), (), (n,))
    if start is None:
        b = _central(problem) if isinstance(problem, Problem) else np.zeros(k)
        return Start(np.zeros(shapes[0]), b, np.zeros(shapes[2]))
    parts = (start.w, start.b, start.alpha) if isinstance(start, Result | Start) else start
    if not (isinstance(parts, tuple | list) and len(parts) == 3):
        raise TypeError(f"start must be a Result or a tuple (w, b, alpha), got {start!r}")
    try:
        w, b, alpha = (np.array(part, dtype=np.float64) for part in parts)
    except (TypeError, ValueError):
        raise TypeError(
            "start must be a Result or a tuple (w, b, alpha) of numbers; one of its parts is none"
        ) from None
    if not all(np.all(np.isfinite(part)) for part in (w, b, alpha)):
        raise ValueError("start must be finite: its weights, intercept or multipliers have a NaN or an infinity")
    if (w.shape, b.shape, alpha.shape) != shapes:
        raise ValueError(
            f"start must have {d} weights and {n} multipliers{f' for each of {k} classes' if several else ''}, "
            f"and an intercept of shape {shapes[1]}; got shapes {w.shape}, {alpha.shape} and {b.shape}"
        )
    if isinstance(problem, MulticlassProblem):
        return Start(w, b if problem.intercept else np.zeros(k), multipliers(off_of(alpha, problem.y), problem.y))
    return Start(w, float(b) if problem.intercept else 0.0, clip_to_domain(problem, alpha))


def _central(problem: Problem) -> float:
    """The intercept that alone fits the targets of some samples best; 0 for labels, which are near 0 anyway.

    Targets may be far from 0 and from each other, and a step on multipliers that have a bound moves b by so much only.
    """
    if problem.loss.is_classification or not problem.intercept:
        return 0.0
    some = slice(None, None, -(-problem.shape[0] // ENOUGH_SAMPLES))
    y, weights = problem.y[some], problem.weights[some]
    b = best_shift(problem.loss, np.zeros_like(y), y, weights)
    return b if np.isfinite(b) else 0.0


def not_certified(result: Result) -> str:
    """What a run that fell short has to say."""
    certificate = result.certificate
    reasons = {
        "max_iter": f"stopped after {result.n_iter} steps; raise max_iter, or scale the features",
        "max_seconds": f"stopped after {max(result.trace['seconds'], default=0.0):.2g} seconds",
        "interrupted": "interrupted",
        "overflow": "double precision does not allow more; rescale the features, the targets or lam",
        "stalled": "what is left of the gap is rounding; a smaller gap cannot be proven in double precision",
    }
    return (
        f"{result.solver} did not reach tol={certificate.tol:g}: the model is proven to be within "
        f"{percent(certificate.relative_gap)} of the optimum (gap {certificate.gap:.3g}); {reasons[result.status]}."
    )
