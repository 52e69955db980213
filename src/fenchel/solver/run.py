"""The one run loop: steps, checks, the stop rule, the clock, Ctrl-C."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.judges import judge_of
from fenchel.certificate.record import Record
from fenchel.problem import MulticlassProblem, Problem
from fenchel.solver.blas import blas_threads
from fenchel.solver.progress import Progress
from fenchel.solver.result import Callback, Check, Result, Stop, Trace
from fenchel.solver.schedule import Schedule
from fenchel.steps import Candidate, Overflow, Solver, Start

DEFAULT_MAX_ITER = 100_000
#: Products with so few entries cost next to nothing: a sharper bound is worth them.
FEW_ENTRIES = 100_000


@dataclass
class Fit:
    """What is asked for, and what is known so far: where one solver gives up, another goes on with it."""

    problem: Problem | MulticlassProblem
    stop: Stop
    start: Start
    seed: int
    callback: Callback | None = None
    progress: bool = False
    check_every: int | None = None
    trace: Trace = field(default_factory=Trace)
    n_iter: int = 0

    def __post_init__(self) -> None:
        self.clock = time.perf_counter()
        self.judge = judge_of(self.problem)
        self.limit = DEFAULT_MAX_ITER if self.stop.max_iter is None else self.stop.max_iter

    @property
    def seconds(self) -> float:
        """Since the first solver began."""
        return time.perf_counter() - self.clock

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.stop.max_seconds is not None and self.seconds > self.stop.max_seconds

    @property
    def is_good_enough(self) -> bool:
        """Whether the tolerance is reached, and a sharper bound would cost something."""
        return self.problem.X.nnz > FEW_ENTRIES and self.judge.reached(self.stop.tol, self.stop.atol)

    def result(self, solver: str, status: str) -> Result:
        """The best model and the best bound seen."""
        judge, stop = self.judge, self.stop
        return Result(
            judge.w.copy(),  # the caller's to change; the certificate keeps its own
            judge.b.copy() if isinstance(judge.b, np.ndarray) else judge.b,
            judge.best.alpha.copy(),
            judge.certificate(stop.tol, stop.atol),
            self.trace,
            self.n_iter,
            solver,
            status,
        )


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def run(fit: Fit, solver: Solver[Any]) -> Result:
    """Step a solver until the stop rule says so, or Ctrl-C; the best model and the best bound seen come back."""
    status = ""
    try:
        # where a solver's own threads work, those of BLAS, which wait in loops, would be in their way
        with blas_threads(1 if solver.has_own_threads else fit.problem.X.threads):
            status = _steps(fit, solver)
            if status != "certified":
                status = _last_effort(fit, status)
        return fit.result(solver.name, status)
    except KeyboardInterrupt:
        status = "certified" if status == "certified" else _last_effort(fit, "interrupted")
        return fit.result(solver.name, status)


def _steps(fit: Fit, solver: Solver[Any]) -> str:
    """The loop itself; why it ended."""
    judge, stop, schedule = fit.judge, fit.stop, Schedule(solver, fit.stop, fit.check_every)
    status = ""
    with Progress(fit.problem, solver.name, stop, enabled=fit.progress) as bar:
        try:
            state = solver.begin(fit.problem, fit.start, fit.seed)
            while not status:
                state = solver.step(state)
                fit.n_iter += 1
                finished = solver.finished(state)
                if not (schedule.due(state) or finished or fit.late or fit.n_iter >= fit.limit):
                    continue
                row = _check(fit, solver, state)
                fit.trace.append(row)
                fit.trace.checking += fit.seconds - row.seconds
                bar.update(row)
                schedule.checked(judge.gap)
                status = _status(judge, stop, row, fit.limit) or ("stalled" if finished else "")
                if not status:
                    solver.observe(state, judge.primal.z, judge.primal.value, judge.gap)
                if fit.callback is not None and _is_true(fit.callback(row)):
                    status = status or "callback"
        except Overflow:
            status = "overflow"
    return status


def _is_true(answer: object) -> bool:
    """Python's True or NumPy's; other truthy values may be accidents."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _check(fit: Fit, solver: Solver[Any], state: Any) -> Check:
    judge, seconds = fit.judge, fit.seconds
    for candidate in solver.candidates(state):
        primal = judge.look_at(candidate.w, candidate.b, candidate.scores)
        _try_dual_points(fit, candidate, primal)
        if candidate.scores is not None and judge.is_blurred(primal) and not fit.is_good_enough:
            judge.look_at(candidate.w, candidate.b)
    nonzeros = int(np.count_nonzero(judge.w))
    return Check(fit.n_iter, seconds, judge.primal.value, judge.dual, judge.gap, nonzeros, judge.w, judge.b)


def _try_dual_points(fit: Fit, candidate: Candidate, primal: PrimalBound) -> None:
    """From what the solver knows already; where that is not sharp, from a product with X', unless it is good enough."""
    judge, how = fit.judge, "the solver's multipliers"
    if judge.try_residual(candidate, primal, how) or fit.is_good_enough:
        return
    if candidate.u is not None and judge.try_differences(candidate.u, how):
        return
    if candidate.alpha is None:
        judge.try_gradient(primal.z)
    else:
        judge.try_multipliers(candidate.alpha, how, candidate.u)


def _status(judge: Record, stop: Stop, row: Check, limit: int) -> str:
    if judge.reached(stop.tol, stop.atol):
        return "certified"
    if judge.exhausted(stop.tol, stop.atol):
        return "stalled"
    if stop.max_seconds is not None and row.seconds >= stop.max_seconds:
        return "max_seconds"
    return "max_iter" if row.iteration >= limit else ""


def _last_effort(fit: Fit, status: str) -> str:
    """An early end: the better dual points of `certify` may still prove the model good enough."""
    judge, stop = fit.judge, fit.stop
    unseen = not np.isfinite(judge.primal.upper)
    judge.look_at(fit.start.w, fit.start.b)  # a run that is cut off early may be worse than where it began
    if unseen:
        judge.try_gradient()
    if status not in ("interrupted", "max_seconds"):  # whoever is waiting has waited enough
        judge.fit(stop.tol)
    return "certified" if judge.reached(stop.tol, stop.atol) else status
