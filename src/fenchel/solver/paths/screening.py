"""Sequential screening: weights that the last solution proves to be zero at the next lam are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fenchel.certificate.judge import Judge
from fenchel.data import limits
from fenchel.problem import Problem
from fenchel.solver.result import Result
from fenchel.solver.solve import Clock, Request, solve_request
from fenchel.steps.base import Model
from fenchel.steps.choose import choose


def solve_near(problem: Problem, start: Any, request: Request, clock: Clock) -> Result:
    """Solve from a start near the optimum, without the columns that the start proves to be zero.

    The start's weights and multipliers give a gap, and the gap-safe rule (`Certificate.zeros`) the weights that are
    zero in every optimum. The reduced problem is solved, and its model certified on the whole problem; if that misses
    the tolerance, the solver continues with the whole problem. `start` is a result or a tuple (w, b, alpha).
    """
    problem = problem.replace(X=problem.X.using(request.n_threads))
    request = replace(request, certify_start=False)
    tol, atol = request.tol, request.atol
    everything = np.ones(problem.shape[1], dtype=bool)
    chosen = choose(problem, request.solver, request.options, tol, has_start=True)
    if chosen.screens:
        return solve_request(problem, request, start, clock, chosen)
    provable = problem.penalty.restricted(everything) is not None and np.isfinite(problem.loss.smoothness)
    if not (provable and problem.is_stored):
        return solve_request(problem, request, start, clock, chosen)
    w, b, alpha = (start.w, start.b, start.alpha) if isinstance(start, Result) else start
    judge = Judge(problem)
    with np.errstate(all="ignore"):  # overflow makes a bound infinite, never wrong
        judge.consider(w, b)
        judge.try_multipliers(alpha, how="multipliers of the start")
        judge.try_gradient()
        keep = ~judge.evidence.zeros()
    stored = keep[: problem.X.n_features]
    is_small = problem.X.nnz <= limits.TUNING.dense or 2 * stored.sum() <= len(stored)  # what a copy may take
    if not stored.any() or keep.all() or not is_small:
        return solve_request(problem, request, start, clock, chosen)
    reduced = problem.replace(X=problem.design.restricted(keep), penalty=problem.penalty.restricted(keep))
    part = solve_request(reduced, request, (w[keep], b, alpha), clock)
    found = np.zeros(len(keep))
    found[keep] = part.w
    with np.errstate(all="ignore"):
        judge.consider(found, part.b)
        judge.try_multipliers(part.alpha, how="the solver's multipliers")
        if not judge.reached(tol, atol):
            judge.try_gradient()
    whole = (judge.w.copy(), judge.b, judge.best.alpha.copy())
    if judge.reached(tol, atol) or part.status != "certified":
        status = "certified" if judge.reached(tol, atol) else part.status
        w, b, alpha = whole
        certificate = judge.certificate(tol, atol)
        return replace(part, model=Model(w, b), multipliers=alpha, certificate=certificate, status=status)
    rest = solve_request(problem, request, whole, clock)
    return replace(rest, n_iter=part.n_iter + rest.n_iter)
