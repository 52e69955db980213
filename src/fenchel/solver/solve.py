"""solve: a model and its certificate for a problem, or for a sequence of penalties."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel.certificate.bounds.rounding import distance_to_optimum
from fenchel.certificate.judge import Record
from fenchel.certificate.margin.separated import separated
from fenchel.data.typing import Seed
from fenchel.problem import Statement
from fenchel.problem.checks import require_count, require_flag, shown
from fenchel.problem.penalties import Penalty
from fenchel.solver.result import Callback, NotCertifiedWarning, Result, Stop, counted
from fenchel.solver.run import Carried, Fit, run
from fenchel.steps import Solver, Start
from fenchel.steps.base import Supports
from fenchel.steps.choose import another, choose, solvers_of


@dataclass(frozen=True)
class Request:
    """The options of `solve`, checked."""

    solver: str | Solver[Any] = "auto"
    tol: float = 1e-4
    atol: float = 0.0
    max_iter: int | None = None
    max_seconds: float | None = None
    """For each penalty; a clock limits all of them together."""
    random_state: Seed = None
    callback: Callback | None = None
    progress: bool = False
    n_threads: int | None = 1
    check_every: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    interrupted: threading.Event | None = None
    """Set to end all runs (Ctrl-C); independent of the user's callback."""
    supports: Supports | None = None
    """Supports found by the paths of other folds."""
    certify_start: bool = True
    """Whether a start is certified before the first step; else only if there is no step."""

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable, got {self.callback!r}")
        if self.check_every is not None:
            require_count(self.check_every, "check_every", "steps")
        require_flag(self.progress, "progress")
        self._own_stop  # noqa: B018  (checks the limits)

    @classmethod
    def of(cls, **options: Any) -> Request:
        """From keywords of `solve`; unknown ones are options of the solver."""
        known = {name: options.pop(name) for name in cls.__dataclass_fields__ if name in options}
        return cls(**known, options=options)

    @cached_property
    def _own_stop(self) -> Stop:
        return Stop(self.tol, self.atol, self.max_iter, self.max_seconds)

    def stop(self, clock: Clock) -> Stop:
        """The stop rule."""
        left, own = clock.left, self._own_stop
        return own if left is None else replace(own, max_seconds=min(left, own.max_seconds or left))

    @property
    def is_auto(self) -> bool:
        """Whether the solver is "auto", so that another one may continue if it fails."""
        return isinstance(self.solver, str) and self.solver == "auto" and not self.options


class Clock:
    """A limit on the time of several solves together."""

    def __init__(self, max_seconds: float | None) -> None:
        self._end = (
            None if max_seconds is None else time.monotonic() + (Stop(max_seconds=max_seconds).max_seconds or 0.0)
        )

    @property
    def left(self) -> float | None:
        """Seconds left, at least 1e-9; None without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 1e-9)

    @property
    def over(self) -> bool:
        """Whether the limit is exceeded."""
        return self._end is not None and time.monotonic() >= self._end


def solve(
    problem: Statement,
    solver: str | Solver[Any] = "auto",
    tol: float = 1e-4,
    atol: float = 0.0,
    max_iter: int | None = None,
    max_seconds: float | None = None,
    random_state: Seed = None,
    callback: Callback | None = None,
    progress: bool = False,
    n_threads: int | None = 1,
    start: Result | Sequence[Any] | None = None,
    warn: bool = True,
    check_every: int | None = None,
    weights_tol: float | None = None,
    **solver_options: Any,
) -> Result:
    """Minimise a problem until its certified gap is within the tolerance.

    Parameters
    ----------
    problem : Problem or MulticlassProblem
    solver : str or Solver, default "auto"
        "auto" chooses by the traits of the loss and the penalty, and the shape of X.
    tol, atol : float
        Stop when the certified gap is at most tol |P| or at most atol; or if P is zero up to rounding
        (`Certificate.vanishes`): constant targets with an intercept.
    max_iter : int, optional
        The largest number of steps, by default 100000. 0 certifies the start.
    max_seconds : float, optional
    random_state : int, RandomState or None
        The seed; None is 0, so that runs repeat.
    callback : callable, optional
        Called with a `Check` at every certificate; returning True stops.
    progress : bool, default False
        Show a progress bar.
    n_threads : int or None, default 1
        Threads for products with X and for epochs of dual ascent; None for all cores. With one, results repeat bit for
        bit.
    start : Result or tuple (w, b, alpha), optional
        A warm start: certified first, and returned after 0 steps if it is good enough.
    warn : bool, default True
        Whether to warn if the tolerance is not reached (unless a callback stopped the run).
    check_every : int, optional
        Certify every so many steps. By default certificates are made when the solver estimates that it is done, and
        otherwise after a number of passes over the data for which they cost about a tenth of the run. No clock decides.
    weights_tol : float, optional
        In the place of tol and atol: stop when the weights are proven to be within this distance of the optimum's, that
        is `certificate.weights_radius <= weights_tol`. For strongly convex penalties (L2, elastic net).
    **solver_options
        Options of the chosen solver; unknown ones are an error.

    Returns
    -------
    Result
        The best model found and its certificate, also after Ctrl-C, which ends the run, not the program. If the
        tolerance is not reached, there is a `NotCertifiedWarning`.
    """
    require_flag(warn, "warn")
    if weights_tol is not None:
        if tol != Request.tol:
            raise ValueError(f"weights_tol={weights_tol} takes the place of tol={tol}; pass one of the two")
        tol, atol = 0.0, gap_for_distance(problem, weights_tol, atol)
    request = Request(
        solver,
        tol,
        atol,
        max_iter,
        max_seconds,
        random_state,
        callback,
        progress,
        n_threads,
        check_every,
        solver_options,
    )
    result = solve_request(problem, request, start)
    if warn and result.status not in ("certified", "callback"):
        asked = "" if weights_tol is None else f" weights_tol={weights_tol:g} needs this gap."
        warnings.warn(not_certified(result) + asked, NotCertifiedWarning, stacklevel=2)
    return result


def gap_for_distance(problem: Statement, distance: float, atol: float) -> float:
    """The gap mu distance^2 / 2, mu the penalty's strong convexity: no larger one proves the distance."""
    if atol:
        raise ValueError(f"weights_tol={distance:g} takes the place of atol={atol:g}; pass one of the two")
    if isinstance(distance, bool | np.bool_) or not (isinstance(distance, int | float | np.number) and distance > 0):
        raise ValueError(f"weights_tol must be a positive number, got {shown(distance)}")
    mu = float(problem.penalty.strong_convexity)
    if not mu > 0.0:
        raise ValueError(
            f"weights_tol needs a strongly convex penalty, such as L2 or ElasticNet: with {problem.penalty!r} no gap "
            "bounds the distance of the weights"
        )
    gap = 0.5 * mu * float(distance) ** 2
    while distance_to_optimum(gap, mu) > distance:  # rounding
        gap = float(np.nextafter(gap, 0.0))
    return gap


def solve_request(
    problem: Statement,
    request: Request,
    start: Any = None,
    clock: Clock | None = None,
    chosen: Solver[Any] | None = None,
    judge: Record | None = None,
) -> Result:
    """`solve`, without its warning; by a solver that was chosen for this problem already, if there is one.

    A `judge` may know models and bounds already; what is found is kept there.
    """
    if not isinstance(problem, Statement):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    (result,) = follow(problem, [problem.penalty], request, start, clock or Clock(None), chosen, judge)
    return result


def follow(
    problem: Statement,
    penalties: Sequence[Penalty],
    request: Request,
    start: Any,
    clock: Clock,
    chosen: Solver[Any] | None = None,
    judge: Record | None = None,
) -> Iterator[Result]:
    """Solve a problem with one penalty after the other; the solver continues from its state, or from the last result.

    If the solver chosen by "auto" fails, others continue. A `judge` is that of the first penalty.
    """
    require_solvable(problem)
    problem = problem.replace(X=problem.X.using(request.n_threads))
    seed, done = seed_of(request.random_state), 0
    has_start, is_path = start is not None, len(penalties) > 1
    if chosen is None:
        if request.options and isinstance(request.solver, str):
            _suggest(problem, request.options)
        chosen = choose(problem, request.solver, request.options, request.tol, has_start, is_path)
    if has_start and not request.is_auto and chosen.ignores_start:
        raise ValueError(f"{chosen.name} with these options ignores start")
    carried = Carried(chosen)
    last: Start | Result | None = None if start is None else _start(problem, start)
    while done < len(penalties):
        problem = problem.replace(penalty=penalties[done])
        fit = Fit(
            problem,
            request.stop(clock),
            last,
            seed,
            request.callback,
            request.progress,
            request.check_every,
            request.interrupted,
            penalties[done:],
            request.supports,
            judge if done == 0 else None,
            certify_start=request.certify_start and has_start and not done,
        )
        found, tried = run(fit, carried), [carried.solver]
        # if P overflows at the start, no solver helps
        while found[0].status in ("overflow", "gave_up") and np.isfinite(found[0].certificate.primal):
            other = another(problem, tried) if request.is_auto else None
            if other is None:
                break
            fit.begin_at, carried = found[0], Carried(other)
            fit.goes_on, fit.least = fit.n_iter, (np.inf, fit.n_iter)
            found = [replace(found[0], status="max_seconds")] if fit.late else run(fit, carried)
            tried.append(other)
        if problem.penalty.is_zero and not fit.ended:
            found = [_if_separated(problem, result, partial(_widen, request, clock)) for result in found]
        done, last = done + len(found), found[-1]
        yield from found
        if fit.ended:
            return


def require_solvable(problem: Statement) -> None:
    """Raise if there is nothing to learn."""
    if (reason := problem.unsolvable()) is not None:
        raise ValueError(reason)


def _if_separated(problem: Statement, result: Result, widen: Callable[[Record, float, int], Result]) -> Result:
    """The result; for samples that its model separates, where it is not certified, a scaled model with the proof."""
    if result.status in ("certified", "interrupted", "callback", "max_seconds"):
        return result
    found = separated(problem, result.w, result.b, result.certificate, widen)
    if found is None:
        return result
    status = "certified" if found.margin is None else "separated" if found.certificate.ok else result.status
    return replace(
        result,
        model=found.model,
        certificate=found.certificate,
        status=status,
        multipliers=found.alpha,
        margin=found.margin,
    )


def _widen(request: Request, clock: Clock, judge: Record, tol: float, steps: int) -> Result:
    """Look for a larger margin than a judge knows."""
    asked = Request(tol=tol, max_iter=steps, max_seconds=request.max_seconds, interrupted=request.interrupted)
    return solve_request(judge.problem, asked, clock=clock, judge=judge)


def _suggest(problem: Statement, options: Iterable[str]) -> None:
    """Raise for an option that no solver has, if a known one has nearly its name."""
    of_solvers = {field.name for kind in solvers_of(problem).named().values() for field in fields(kind)}
    known = sorted(of_solvers | signature(solve).parameters.keys() - {"problem", "solver_options"})
    for name in options:
        near = get_close_matches(name, known, n=1, cutoff=0.75) or [each for each in known if name.startswith(each)]
        if name not in of_solvers and near:
            raise TypeError(f"there is no option {name!r}; did you mean {near[0]}?")


def _start(problem: Statement, start: Any) -> Start:
    shapes = problem.shapes
    parts = (start.w, start.b, start.alpha) if isinstance(start, Result | Start) else start
    if not (isinstance(parts, tuple | list) and len(parts) == 3):
        raise TypeError(f"start must be a Result or a tuple (w, b, alpha), got {start!r}")
    try:
        w, b, alpha = (np.array(part, dtype=np.float64) for part in parts)
    except (TypeError, ValueError):
        raise TypeError("start must be a Result or a tuple (w, b, alpha) of numbers; one of its parts is not") from None
    if not all(np.all(np.isfinite(part)) for part in (w, b, alpha)):
        raise ValueError("start must be finite: its weights, intercept or multipliers have a NaN or an infinity")
    if (w.shape, b.shape, alpha.shape) != shapes:
        (n, d), k = problem.shape, len(shapes[0])
        several = f" for each of {shapes[0][0]} classes" if k > 1 else ""
        raise ValueError(
            f"start must have {d} weights and {n} multipliers{several}, "
            f"and an intercept of shape {shapes[1]}; got shapes {w.shape}, {alpha.shape} and {b.shape}"
        )
    none: Any = np.zeros(shapes[1]) if shapes[1] else 0.0
    return Start(w, (b if shapes[1] else float(b)) if problem.intercept else none, problem.in_domain(alpha))


def seed_of(random_state: Seed) -> int:
    """The seed of a run."""
    if isinstance(random_state, bool | np.bool_):
        raise ValueError(f"random_state must be a whole number, a RandomState or None; got {random_state!r}")
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def not_certified(result: Result) -> str:
    """The text of a NotCertifiedWarning."""
    certificate = result.certificate
    if result.margin is not None:
        return (
            f"a linear classifier separates the samples (the largest margin is between {result.margin.best:.3g} and "
            f"{result.margin.upper:.3g}): the objective falls to 0 as its weights grow, and no minimiser exists; it is "
            f"scaled until the objective is at most {certificate.atol:.3g}."
        )
    reasons = {
        "max_iter": f"stopped after {counted(result.n_iter, 'step')}; raise max_iter, or scale the features",
        "max_seconds": f"stopped after {max(result.trace['seconds'], default=0.0):.2g} seconds",
        "interrupted": "interrupted",
        "overflow": "double precision does not allow more; rescale the features, the targets or lam",
        "gave_up": "it finds no better model; another solver may",
        "precision": "the weights are rounded to the single precision of X; pass X in double precision for more",
        "stalled": "the gap is rounding; a smaller one cannot be proven in double precision",
    }
    if not np.isfinite(certificate.gap):
        reasons["stalled"] = "the solver gets no further"
    elif (
        certificate.how == "zero" and certificate.evidence is not None and certificate.evidence.problem.penalty.is_zero
    ):
        reasons["stalled"] = (
            "without a penalty multipliers must be orthogonal to every column of X, and none are proven to be, as "
            "where columns depend on each other up to rounding; a small penalty has a certificate"
        )
    asked = f"tol={certificate.tol:g}" if certificate.tol or not certificate.atol else f"atol={certificate.atol:g}"
    return (
        f"{result.solver} did not reach {asked}: it is only proven that {certificate.proven} "
        f"(gap {certificate.gap:.3g}); {reasons[result.status]}."
    )
