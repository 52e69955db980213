"""solve_many: independent problems (one-vs-rest classes, several targets), in threads.

Classes without weight have constant models. If all samples with a weight are on one side of a class and the intercept
is not penalised, P(0, b) = phi(b) falls to 0 as b grows to that side, and no objective is below 0. Hinges attain 0 at
|b| = 1; the logistic loss does not attain it. A constant model with P <= tol phi(0) is taken: it is proven to be within
atol = tol phi(0) of the infimum.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fenchel.problem import MulticlassProblem, Problem, Statement
from fenchel.problem.checks import require_flag
from fenchel.solver.result import NotCertifiedWarning, Result
from fenchel.solver.solve import Clock, Request, not_certified, solve_request
from fenchel.steps.choose import choose

#: A wait without end may miss a Ctrl-C that comes as it begins, so the main thread waits for so long at a time.
POLL_SECONDS = 0.1


def solve_many(
    problems: Sequence[Statement],
    *,
    starts: Sequence[Any] | None = None,
    max_seconds: float | None = None,
    n_threads: int | None = 1,
    **options: Any,
) -> list[Result]:
    """Solve independent problems, n_threads at a time.

    The kernels release the GIL, so problems run concurrently, each with one thread; the results do not depend on
    n_threads. Problems with the same `Design` share it and its norms: nothing is copied. Ctrl-C ends all of them, each
    with its best model so far, later ones with their start.

    Parameters
    ----------
    problems : sequence of Problem or MulticlassProblem
    starts : sequence of what `solve` takes as `start`, optional
    max_seconds : float, optional
        For all problems together.
    n_threads : int or None, default 1
        None for all cores; small data use one. A single problem uses all of them.
    **options
        Passed on to `solve`; `warn` is False by default. With progress=True the problems are solved one after the
        other, each with its bar.
    """
    problems, starts = _checked(problems, starts)
    warn = options.pop("warn", False)
    require_flag(warn, "warn")
    seeds = _seeds(options.pop("random_state", None), len(problems))
    interrupted, clock = Event(), Clock(max_seconds)
    request = Request.of(**options, interrupted=interrupted, n_threads=n_threads, random_state=seeds[0] if seeds else 0)

    def one(k: int, threads: int | None) -> Result:
        same = threads is request.n_threads and seeds[k] is request.random_state
        asked = request if same else replace(request, n_threads=threads, random_state=seeds[k])
        result = solve_request(problems[k], asked, starts[k], clock)
        if result.status == "interrupted":
            interrupted.set()
        if warn and result.status not in ("certified", "callback"):
            warnings.warn(not_certified(result), NotCertifiedWarning, stacklevel=2)
        return result

    if len(problems) > 1:
        shared = {id(problem.X): problem.X.using(1) for problem in problems}
        problems = [problem.replace(X=shared[id(problem.X)]) for problem in problems]
    workers = 1 if len(problems) < 2 or request.progress else problems[0].X.using(n_threads).threads
    if workers == 1:
        threads = n_threads if len(problems) < 2 else 1
        results: list[Result] = []
        while len(results) < len(problems):
            try:
                results.append(one(len(results), threads))
            except KeyboardInterrupt:  # between two runs: the later ones end at once
                if interrupted.is_set() or not results:
                    raise
                interrupted.set()
        return results
    futures: list[Future[Result]] = []
    with ThreadPoolExecutor(min(workers, len(problems))) as pool:
        while True:
            try:
                for k in range(len(futures), len(problems)):
                    futures.append(pool.submit(one, k, 1))
                while wait(futures, timeout=POLL_SECONDS).not_done:
                    pass
                return [future.result() for future in futures]
            except KeyboardInterrupt:  # in the main thread: every run ends at its next check
                interrupted.set()


def _checked(problems: Any, starts: Any) -> tuple[list[Statement], list[Any]]:
    """Lists of problems, and of as many starts."""
    if not isinstance(problems, Sequence):
        raise TypeError(f"problems must be a list of fenchel.Problem, got {problems!r}")
    for k, problem in enumerate(problems):
        if not isinstance(problem, Statement):
            raise TypeError(f"problems must be a list of fenchel.Problem; number {k} is {problem!r}")
    if starts is not None and not isinstance(starts, Sequence):
        raise TypeError(f"starts must be a list with one start for each problem, got {starts!r}")
    starts = [None] * len(problems) if starts is None else list(starts)
    if len(starts) != len(problems):
        raise ValueError(f"there are {len(problems)} problems, but {len(starts)} starts")
    return list(problems), starts


def _seeds(random_state: Any, count: int) -> list[Any]:
    """One seed per problem; a generator is used here, since the order of the threads is random."""
    if count > 1 and not (random_state is None or isinstance(random_state, int | np.integer)):
        return [int(seed) for seed in check_random_state(random_state).randint(2**31 - 1, size=count)]
    return [random_state] * count


# Classes without weight -------------------------------------------------------------------------------------------


def solve_classes(
    problems: Sequence[Problem | MulticlassProblem],
    starts: Sequence[Any] | None,
    certify_start: bool,
    options: dict[str, Any],
) -> list[Result]:
    """`solve_many`, with a constant model for every problem that has all its weight on one side."""
    starts = [None] * len(problems) if starts is None else starts
    constant = {k: result for k, problem in enumerate(problems) if (result := constant_result(problem, options))}
    others = [k for k in range(len(problems)) if k not in constant]
    given: list[Statement] = [problems[k] for k in others]
    solved = solve_many(given, starts=[starts[k] for k in others], certify_start=certify_start, **options)
    found = constant | dict(zip(others, solved, strict=True))
    return [found[k] for k in range(len(problems))]


def constant_result(problem: Statement, options: dict[str, Any]) -> Result | None:
    """The constant model of a problem with all its weight on one side; None for other problems."""
    model = constant_model(problem, float(options["tol"]))
    if model is None:
        return None
    asked = Request.of(**options)
    choose(problem, asked.solver, asked.options, asked.tol)  # raises as for other problems
    b, atol = model
    w, _, alpha = problem.shapes
    known = {name: value for name, value in options.items() if name not in asked.options}
    limits = {**known, "solver": "auto", "atol": max(atol, asked.atol), "max_iter": 0}
    (result,) = solve_many([problem], starts=[(np.zeros(w), b, np.zeros(alpha))], **limits)
    return result


def constant_model(problem: Statement, tol: float) -> tuple[Any, float] | None:
    """An intercept with P(0, b) <= tol phi(0), and tol phi(0); None unless all weight is on one side."""
    if not (problem.intercept and isinstance(problem, Problem | MulticlassProblem)):
        return None
    if isinstance(problem, MulticlassProblem):
        side = (problem.class_weights > 0.0).astype(np.float64)
        if side.sum() != 1.0:
            return None
        unit, target = side[None], np.array([int(np.argmax(side))])
    else:
        if not problem.loss.is_classification or problem.loss.quadratic:
            return None
        low, high = (float(end(problem.y, where=problem.weights > 0.0, initial=0.0)) for end in (np.min, np.max))
        if low * high < 0.0 or low == high:
            return None
        unit = target = np.array([low + high])
    if problem.penalty.value(np.zeros(int(np.prod(problem.shapes[0])))) != 0.0:
        raise ValueError(
            f"all samples with a weight are of one class; the model is then an intercept alone, but "
            f"{problem.penalty!r} is not zero for zero weights. Use another penalty, or fit_intercept=False"
        )
    at_zero, t = float(problem.loss.value(0.0 * unit, target)[0]), 1.0
    while float(problem.loss.value(t * unit, target)[0]) > tol * at_zero:
        t *= 2.0
    b = t * unit[0]
    return (b if isinstance(problem, MulticlassProblem) else float(b)), tol * at_zero
