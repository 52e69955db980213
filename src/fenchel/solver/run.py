"""The one run loop: steps, checks, the stop rule, the clock, Ctrl-C."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fenchel.certificate.judges import judge_of
from fenchel.certificate.record import Record
from fenchel.problem import MulticlassProblem, Problem
from fenchel.solver.base import Callback, Check, Result, Stop, Trace
from fenchel.solver.blas import blas_threads
from fenchel.solver.progress import Progress
from fenchel.solver.schedule import Schedule
from fenchel.steps import Overflow, Solver, Start

DEFAULT_MAX_ITER = 100_000
#: A run is stalled when rounding makes up this much of the gap.
MOSTLY_ROUNDING = 0.7


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def run(
    problem: Problem | MulticlassProblem,
    solver: Solver[Any],
    stop: Stop,
    start: Start,
    seed: int,
    callback: Callback | None,
    progress: bool,
    check_every: int | None,
) -> Result:
    """Step a solver until the stop rule says so; the best model and the best bound seen are what comes back."""
    clock = time.perf_counter()
    judge, trace, schedule = judge_of(problem), Trace(), Schedule(solver, stop, check_every)
    iteration, status = 0, ""
    limit = DEFAULT_MAX_ITER if stop.max_iter is None else stop.max_iter
    with Progress(problem, solver.name, stop, enabled=progress) as bar, blas_threads(problem.design.threads):
        try:
            state = solver.begin(problem, start, seed)
            while not status:
                state = solver.step(state)
                iteration += 1
                late = stop.max_seconds is not None and time.perf_counter() - clock > stop.max_seconds
                if not (schedule.due(state) or late or iteration >= limit):
                    continue
                row = _check(judge, solver, state, iteration, time.perf_counter() - clock)
                trace.append(row)
                bar.update(row)
                schedule.checked(judge.gap)
                status = _status(judge, stop, row, limit)
                if not status and hasattr(solver, "observe"):
                    solver.observe(state, judge.primal.z, judge.primal.value, judge.gap)
                if callback is not None and _is_true(callback(row)):
                    status = status or "callback"
        except KeyboardInterrupt:
            status = "interrupted"
        except Overflow:
            status = "overflow"
    if status != "certified":
        status = _last_effort(judge, start, stop, status)
    return Result(
        judge.w.copy(),  # the caller's to change; the certificate keeps its own
        judge.b.copy() if isinstance(judge.b, np.ndarray) else judge.b,
        judge.best.alpha.copy(),
        judge.certificate(stop.tol, stop.atol),
        trace,
        iteration,
        solver.name,
        status,
    )


def _is_true(answer: object) -> bool:
    """Python's True or NumPy's; other truthy values may be accidents."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _check(judge: Record, solver: Solver[Any], state: Any, iteration: int, seconds: float) -> Check:
    for candidate in solver.candidates(state):
        primal = judge.look_at(candidate.w, candidate.b)
        if candidate.alpha is None:
            judge.try_gradient(primal.z)
        else:
            judge.try_multipliers(candidate.alpha, how="the solver's multipliers")
    nonzeros = int(np.count_nonzero(judge.w))
    return Check(iteration, seconds, judge.primal.value, judge.dual, judge.gap, nonzeros, judge.w, judge.b)


def _status(judge: Record, stop: Stop, row: Check, limit: int) -> str:
    if judge.reached(stop.tol, stop.atol):
        return "certified"
    if judge.gap <= judge.rounding / MOSTLY_ROUNDING:
        return "stalled"
    if stop.max_seconds is not None and row.seconds >= stop.max_seconds:
        return "max_seconds"
    return "max_iter" if row.iteration >= limit else ""


def _last_effort(judge: Record, start: Start, stop: Stop, status: str) -> str:
    """An early end: the better dual points of `certify` may still prove the model good enough."""
    if not np.isfinite(judge.primal.upper):
        judge.look_at(start.w, start.b)
        judge.try_gradient()
    if status not in ("interrupted", "max_seconds"):  # whoever is waiting has waited enough
        judge.fit(stop.tol)
    return "certified" if judge.reached(stop.tol, stop.atol) else status
