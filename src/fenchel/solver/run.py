"""The one run loop: steps, checks, the stop rule, the clock, Ctrl-C; for one penalty or for several in a row."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.bounds.measured import Bounds, blur, measured_bounds, own_dual_vector
from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.evidence import Evidence
from fenchel.certificate.judge import TUNING as JUDGE
from fenchel.certificate.judge import Record, judge_of
from fenchel.problem.penalties import Penalty
from fenchel.problem.vectors import frozen
from fenchel.solver.blas import blas_threads
from fenchel.solver.progress import FitProgress
from fenchel.solver.result import Callback, Check, Result, Row, Stop, Trace
from fenchel.solver.schedule import Schedule
from fenchel.steps import Candidate, Overflow, Solver, Start
from fenchel.steps.base import GaveUp, Goal, Model, Supports
from fenchel.steps.measurements import Measurements

DEFAULT_MAX_ITER = 100_000


@dataclass(frozen=True)
class RunTuning:
    """What a path carries on.

    `python -m benchmarks.tuning all solver.run`: 0.96 of the time with half, 0.98 with double.
    """

    carried: float = 0.2  # the part of the tolerance at which a model from another lam is good enough: gaps add up


TUNING = RunTuning()

State = TypeVar("State")


@dataclass
class Fit:
    """What is asked for, and what is known so far: where one solver gives up, another goes on with it."""

    problem: Any  # a Statement
    stop: Stop
    begin_at: Start | Result | None  # None: without weights, at the problem's own intercept
    seed: int
    callback: Callback | None = None
    progress: bool = False
    check_every: int | None = None
    interrupted: threading.Event | None = None  # set after Ctrl-C in another thread
    penalties: Sequence[Penalty] = ()  # those to come, the present one first
    supports: Supports | None = None
    known: Record | None = None  # a judge that has seen models or bounds already
    certify_start: bool = False  # before the first step
    trace: Trace = field(default_factory=Trace)
    n_iter: int = 0
    ended: bool = False  # by Ctrl-C, whatever the model is worth
    goes_on: int | None = None  # the step at which it began, for a solver that goes on where another gave up
    least: tuple[float, int] = (np.inf, 0)  # the last gap that was clearly smaller than before, and its step
    bound: Bounds | None = None  # of the last measured models,
    model: Model | None = None  # and the first of these
    clock: float = field(init=False)

    def __post_init__(self) -> None:
        self.clock = time.perf_counter()

    @property
    def start(self) -> Start:
        """Where a solver begins."""
        at = self.begin_at
        if at is None:
            return replace(self.origin, b=self.problem.first_intercept())
        return at if isinstance(at, Start) else Start(at.w, at.b, at.alpha)

    @property
    def origin(self) -> Start:
        """Zeros: for solvers that begin at a point of their own."""
        w, b, alpha = self.problem.shapes
        return Start(np.zeros(w), np.zeros(b) if b else 0.0, np.zeros(alpha))

    @cached_property
    def judge(self) -> Record:
        """Keeps the best model and the best bound."""
        judge = judge_of(self.problem) if self.known is None else self.known
        judge.late = lambda: self.late
        return judge

    @property
    def limit(self) -> int:
        """The most steps."""
        return DEFAULT_MAX_ITER if self.stop.max_iter is None else self.stop.max_iter

    @property
    def seconds(self) -> float:
        """Since the first solver began."""
        return time.perf_counter() - self.clock

    @property
    def late(self) -> bool:
        """Whether the time is over, or the run was interrupted."""
        if self.interrupted is not None and self.interrupted.is_set():
            return True
        return self.stop.max_seconds is not None and self.seconds > self.stop.max_seconds

    @property
    def goal(self) -> Goal:
        """What a solver is told of it."""
        left = np.inf if self.stop.max_seconds is None else max(self.stop.max_seconds - self.seconds, 1e-9)
        penalties = tuple(self.penalties) or (self.problem.penalty,)
        told = self.callback is not None or self.check_every is not None or self.progress or self.late
        steps = 1 if told else self.limit - self.n_iter
        tol, atol = float(self.stop.tol), float(self.stop.atol)
        return Goal(penalties, tol, atol, left, self.supports, steps, lambda: self.late)

    def is_stuck(self) -> bool:
        """After a check: whether a solver that goes on for another has left the gap where it is for too long."""
        gap, at = self.least
        if self.judge.gap < 0.99 * gap:
            self.least = self.judge.gap, self.n_iter
            return False
        began = self.goes_on
        return began is not None and self.n_iter - began > 2 * (at - began) + JUDGE.patience

    @property
    def is_good_enough(self) -> bool:
        """Whether the tolerance is reached, so that products for a sharper bound are not worth their price."""
        return self.judge.reached(self.stop.tol, self.stop.atol)

    def stops(self, row: Check) -> bool:
        """Whether the callback says so: Python's True or NumPy's, for other truthy values may be accidents."""
        answer = None if self.callback is None else self.callback(row)
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def result(self, solver: str, status: str) -> Result:
        """The best model and the best bound that the judge has seen."""
        judge, stop = self.judge, self.stop
        certificate = judge.certificate(stop.tol, stop.atol)
        return Result(Model(judge.w, judge.b), certificate, self.trace, self.n_iter, solver, status, judge.best.alpha)


@dataclass
class Carried(Generic[State]):
    """A solver and where it is: it goes on from there with the next penalty, if it can."""

    solver: Solver[State]
    state: State | None = None


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def run(fit: Fit, carried: Carried[Any]) -> list[Result]:
    """Step a solver until the stop rule says so, or Ctrl-C; the best model and the best bound seen come back.

    A solver that has found models for the penalties that follow, too, has their results behind the first.
    """
    solver, status = carried.solver, ""
    try:
        # where a solver's own threads work, those of BLAS, which wait in loops, would slow them down
        with blas_threads(1 if solver.has_own_threads else fit.problem.X.threads):
            found = _start_status(fit) or _steps(fit, carried)
            if isinstance(found, list):
                return found
            status = found
            if status != "certified":
                status = _last_effort(fit, status)
        return [fit.result(solver.name, status)]
    except KeyboardInterrupt:
        carried.state, fit.ended = None, True
        status = "certified" if status == "certified" else _last_effort(fit, "interrupted")
        return [fit.result(solver.name, status)]


def _start_status(fit: Fit) -> str:
    """Certify the start: why the run ends there, or "" if it goes on."""
    if fit.problem.may_contradict:
        fit.judge.prepare()
    if not fit.certify_start and fit.limit > 0:
        return ""
    judge, start, seconds = fit.judge, fit.start, fit.seconds
    primal = judge.consider(start.w, start.b)
    if np.any(start.alpha):
        judge.try_multipliers(start.alpha, "multipliers of the start")
    if not judge.reached(fit.stop.tol, fit.stop.atol):
        judge.try_gradient(primal.z)
    row = _judged_row(fit, seconds)
    fit.trace.append(row)
    fit.trace.checking += fit.seconds - seconds
    stopped = fit.stops(row)
    if judge.reached(fit.stop.tol, fit.stop.atol):
        return "certified"
    if fit.limit == 0:
        return "max_iter"
    return "callback" if stopped else ""


def _steps(fit: Fit, carried: Carried[Any]) -> str | list[Result]:
    """The loop itself: why it ended, or the results of measured models that are certified."""
    solver, schedule = carried.solver, Schedule(carried.solver, fit.stop)
    before, carried.state, status = carried.state, None, ""  # nothing is carried on unless this ends well
    state = None
    with FitProgress(fit.problem, solver.name, fit.stop) if fit.progress else nullcontext() as bar:
        try:
            state = None if before is None else solver.retarget(before, fit.problem)
            if state is None:
                state = solver.begin(fit.problem, fit.origin if solver.ignores_start else fit.start, fit.seed)
                solver.aim(state, fit.goal)
            else:
                solver.aim(state, fit.goal)
                measured = _check_measured(fit, solver, state, TUNING.carried)
                if measured is not None and measured.results:
                    carried.state = state
                    return measured.results
            while not status:
                state = solver.step(state)
                fit.n_iter += solver.made(state)
                finished = solver.finished(state)
                ends = finished or fit.late or fit.n_iter >= fit.limit
                if fit.check_every is not None and fit.n_iter % fit.check_every and not ends:
                    continue
                measured = _check_measured(fit, solver, state)
                if measured is not None:
                    if bar is not None:
                        bar.update(fit.trace[-1])
                    if measured.results:
                        carried.state = state
                        return measured.results
                    due = measured.stopped or not measured.sharp
                else:
                    due = fit.check_every is not None or schedule.due(state)
                if not (due or ends):
                    continue
                row = _check(fit, solver, state)
                fit.trace.append(row)
                fit.trace.checking += fit.seconds - row.seconds
                if bar is not None:
                    bar.update(row)
                schedule.checked(fit.judge.gap)
                status = _status(fit, row) or ("stalled" if finished else "gave_up" if fit.is_stuck() else "")
                if not status:
                    solver.observe(state, fit.judge.primal.z, fit.judge.primal.value, fit.judge.gap)
                stopped = fit.stops(row) if measured is None else measured.stopped
                status = status or ("callback" if stopped else "")
        except Overflow as error:
            if fit.check_every is not None and state is not None:  # the last states may not have been certified
                fit.trace.append(_check(fit, solver, state))
            return "max_seconds" if fit.late else "gave_up" if isinstance(error, GaveUp) else "overflow"
    if status == "certified":
        carried.state = state
        solver.conclude(state)
    return status


@dataclass(frozen=True)
class MeasuredCheck:
    """What a check of measured models has come to."""

    results: list[Result]  # those that are certified, from the present penalty on
    sharp: bool  # whether the gap is the model's, and not the rounding of what was measured
    stopped: bool  # by the callback


def _check_measured(fit: Fit, solver: Solver[Any], state: Any, part: float = 1.0) -> MeasuredCheck | None:
    """Certify what a solver has measured, without a product; the gap must be this part of what is asked for."""
    offer = solver.measured(state)
    if offer is None:
        return None
    began, bounds = fit.seconds, measured_bounds(fit.problem, offer)
    bounds = bounds if fit.bound is None else bounds.with_lower(fit.bound)
    fit.bound = bounds
    reached = bounds.meet(part * fit.stop.tol, part * fit.stop.atol)
    count = len(reached) if reached.all() else int(np.argmin(reached))
    if not count and part < 1.0:
        solver.learn(state, float(bounds.gap[0]))
        return None
    results = _results(fit, solver, offer, bounds, count, began / max(1, count))
    fit.trace.checking += fit.seconds - began
    if count:
        solver.conclude(state)
        return MeasuredCheck(results, True, False)
    row = _row(fit, offer, bounds, 0, began)
    fit.trace.append(row)
    gap = float(bounds.gap[0])
    solver.learn(state, gap)
    model = fit.model = offer.model(0, fit.problem.shape[1])
    stopped = fit.callback is not None and fit.stops(_with_model(row, model))
    return MeasuredCheck([], blur(offer, bounds) <= JUDGE.mostly_rounding * gap, stopped)


def _results(
    fit: Fit, solver: Solver[Any], offer: Measurements, bounds: Bounds, count: int, seconds: float
) -> list[Result]:
    """The results of the first so many measured models; their weights and multipliers are computed when asked for."""
    results, stop = [], fit.stop
    for k in range(count):
        problem = fit.problem if k == 0 else fit.problem.replace(penalty=fit.penalties[k])
        model = offer.model(k, problem.shape[1])
        primal, upper, dual, lower = bounds.numbers[k]
        certificate = Certificate.of(
            primal,
            upper,
            dual,
            lower,
            how=bounds.how(k),
            tol=stop.tol,
            atol=stop.atol,
            at_zero=offer.sizes.at_zero,
            strong_convexity=problem.penalty.strong_convexity,
            evidence=Evidence(
                problem,
                model,
                primal,
                upper,
                lower,
                own_lower=float(bounds.own_lower[k]),
                own_v=own_dual_vector(offer, bounds, k),
            ),
        )
        if k == 0:  # a step of the solver may have been several
            fit.n_iter = max(fit.n_iter, int(offer.steps[0]))
        trace, row = fit.trace if k == 0 else Trace(), _row(fit, offer, bounds, k, seconds)
        trace.append(row)
        results.append(Result(model, certificate, trace, row.iteration, solver.name, "certified"))
    for told, result in enumerate(results if fit.callback is not None else (), start=1):
        try:
            fit.stops(_with_model(result.trace[-1], result.model))
        except KeyboardInterrupt:  # what was found stays found
            fit.ended = True
            return results[:told]
    return results


def _row(fit: Fit, offer: Measurements, bounds: Bounds, k: int, seconds: float) -> Row:
    primal, _, dual, _ = bounds.numbers[k]
    steps = int(offer.steps[k]) if k else fit.n_iter
    return Row(steps, seconds, primal, dual, float(bounds.gap[k]), int(offer.nonzeros[k]))


def _with_model(row: Row, model: Model) -> Check:
    return Check(**vars(row), w=frozen(model.dense()), b=model.b)


def _check(fit: Fit, solver: Solver[Any], state: Any) -> Check:
    """Certify what a solver offers, by products with X where it has none that are sharp enough."""
    judge, seconds = fit.judge, fit.seconds
    for candidate in solver.candidates(state):
        primal = judge.consider(candidate.w, candidate.b, candidate.scores)
        _try_dual_points(fit, candidate, primal)
        if candidate.scores is not None and judge.is_blurred(primal) and not fit.is_good_enough:
            judge.consider(candidate.w, candidate.b)
    return _judged_row(fit, seconds)


def _judged_row(fit: Fit, seconds: float) -> Check:
    """The judge's best model and bound, as a row of the trace."""
    judge, nonzeros = fit.judge, int(np.count_nonzero(fit.judge.w))
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


def _status(fit: Fit, row: Check) -> str:
    judge, stop = fit.judge, fit.stop
    if judge.reached(stop.tol, stop.atol):
        return "certified"
    if fit.interrupted is not None and fit.interrupted.is_set():
        return "interrupted"
    if judge.exhausted(stop.tol, stop.atol):
        return "stalled"
    if stop.max_seconds is not None and row.seconds >= stop.max_seconds:
        return "max_seconds"
    return "max_iter" if row.iteration >= fit.limit else ""


def _last_effort(fit: Fit, status: str) -> str:
    """An early end: the better dual points of `certify` may still prove the model good enough."""
    judge, stop = fit.judge, fit.stop
    unseen = not np.isfinite(judge.primal.upper)
    if fit.model is not None:
        judge.consider(fit.model.dense(), fit.model.b)
    start = fit.start
    judge.consider(start.w, start.b)  # a run that is cut off early may be worse than where it began
    if unseen or status not in ("interrupted", "max_seconds"):
        judge.try_gradient()
    if status not in ("interrupted", "max_seconds"):  # end at once: a fit takes time
        judge.fit(stop.tol)
    return "certified" if judge.reached(stop.tol, stop.atol) else status
