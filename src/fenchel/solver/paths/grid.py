"""path: solutions along a grid of lam, with warm starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from inspect import signature
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate import Certificate
from fenchel.certificate.certificate import percent
from fenchel.data.convert import as_vector
from fenchel.data.design import Design, FoldCache
from fenchel.data.typing import Vector
from fenchel.draw.paths import plot_path
from fenchel.draw.tables import table
from fenchel.problem import Problem, Statement
from fenchel.problem.checks import require_count, require_flag, shown
from fenchel.problem.penalties import Penalty
from fenchel.problem.vectors import frozen
from fenchel.solver.blas import blas_threads
from fenchel.solver.paths.screening import solve_near
from fenchel.solver.progress import Bar
from fenchel.solver.result import NotCertifiedWarning, Result, Trace
from fenchel.solver.solve import Clock, Request, follow, not_certified, solve, solve_request
from fenchel.steps import Overflow, PrimalCD, SparsePath, Start
from fenchel.steps.choose import choose
from fenchel.steps.working_set.moments import gram_for_folds
from fenchel.steps.working_set.primal_cd import is_cheap

#: The default grid: number of lams, and ratio of the last to the first.
N_LAMS, EPS = 100, 1e-3


@dataclass(frozen=True, eq=False)
class Path(Sequence[Result]):
    """Solutions of one problem along a grid of lam, each with its certificate; a sequence of their results.

    Attributes
    ----------
    lams : array of m
        The largest first.
    results : tuple of m results
        The results of `solve` for the whole problem at each lam.
    """

    lams: Vector
    results: tuple[Result, ...] = field(repr=False)

    @property
    def width(self) -> int:
        """The number of weights of a model."""
        return len(self.results[0].w) if self.results else 0

    @cached_property
    def coefs(self) -> Vector:
        """The weights, d x m: a column for each lam."""
        rows = np.zeros((len(self.results), self.width))
        for row, result in zip(rows, self.results, strict=True):
            result.write(row)
        rows.flags.writeable = False
        return rows.T

    @cached_property
    def intercepts(self) -> Vector:
        """The m intercepts."""
        return frozen(np.array([result.b for result in self.results], dtype=np.float64))

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificate of each lam."""
        return tuple(result.certificate for result in self.results)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The history of each solve."""
        return tuple(result.trace for result in self.results)

    @cached_property
    def nonzeros(self) -> NDArray[np.intp]:
        """The number of nonzero weights at each lam."""
        return frozen(np.count_nonzero(self.coefs, axis=0))

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, k: Any) -> Any:
        return self.results[k]

    def __str__(self) -> str:
        rows = [
            (
                f"{lam:.6g}",
                f"{r.certificate.primal:.8g}",
                percent(r.certificate.relative_gap),
                f"{count}",
                f"{r.n_iter}",
            )
            for lam, r, count in zip(self.lams, self.results, self.nonzeros, strict=True)
        ]
        return table(("lam", "objective", "proven within", "nonzeros", "steps"), rows)

    def plot(self, axes: Any = None, title: str = "") -> Any:
        """Draw the weights against lam; see `fenchel.report.plot_path`."""
        return plot_path(self, axes=axes, title=title)


def path(
    problem: Problem,
    lams: Any = None,
    eps: float | None = None,
    n_lams: int | None = None,
    tol: float = 1e-4,
    *,
    screen: bool = True,
    max_seconds: float | None = None,
    progress: bool = False,
    warn: bool = True,
    **options: Any,
) -> Path:
    """Solve a problem along a grid of lam, the largest first, with warm starts.

    Weights that the last solution proves to be zero at the next lam (gap-safe rule) are left out there. Every
    certificate is for the whole problem.

    Parameters
    ----------
    problem : Problem
        Its own lam is not used.
    lams : array of positive numbers, optional
        In any order. By default n_lams of them, in equal ratios, from `problem.lam_max()`, where the weights become
        zero, to eps times that; required for penalties without a lam_max.
    eps : float in (0, 1), optional
        The ratio of the smallest to the largest lam of the default grid; 1e-3 by default. (In `certified_path`, eps is
        the relative gap that is proven.)
    n_lams : int, optional
        The number of lams of the default grid; 100 by default.
    tol : float, default 1e-4
        The tolerance for the relative gap of each solution.
    screen : bool, default True
        Whether to leave out weights that are proven zero; the other columns are copied. The solver "primal_cd" screens
        itself.
    max_seconds : float, optional
        For all lams together.
    progress : bool, default False
        Show a progress bar.
    warn : bool, default True
        Whether to warn if a solution misses the tolerance.
    **options
        Passed on to `solve`: the solver and its options, atol, max_iter, random_state, n_threads, callback.

    Returns
    -------
    Path
        After Ctrl-C or max_seconds: the solutions found so far, the last with its current certificate.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    for flag, name in ((screen, "screen"), (progress, "progress"), (warn, "warn")):
        require_flag(flag, name)
    if "start" in options:
        raise TypeError("path has no option 'start': the largest lam starts at zero, each other at the last solution")
    for name in sorted({"supports", "interrupted", "options", "certify_start", "weights_tol"} & options.keys()):
        raise TypeError(f"path has no option {name!r}")
    for name in options.keys() - signature(solve).parameters.keys():
        for near in get_close_matches(name, ("lams", "eps", "n_lams", "screen", "max_seconds"), n=1, cutoff=0.75):
            raise TypeError(f"path has no option {name!r}; did you mean {near}?")
    grid = _grid(problem, lams, eps, n_lams)
    clock, results = Clock(max_seconds), list[Result]()
    with Bar(f"path of {len(grid)} lams", progress) as bar:
        penalties = [problem.penalty.with_lam(float(lam)) for lam in grid]
        for result in _until_interrupted(along(problem, penalties, screen=screen, clock=clock, tol=tol, **options)):
            results.append(result)
            if progress:
                state = f"lam {grid[len(results) - 1]:.3g}, {np.count_nonzero(result.w)} nonzeros"
                bar.show(len(results) / len(grid), state)
            if clock.over or result.status == "interrupted":
                break
    if warn:
        _warn(results, len(grid))
    return Path(frozen(grid[: len(results)]), tuple(results))


def along(
    problem: Statement,
    penalties: Sequence[Penalty],
    *,
    start: Any = None,
    screen: bool = True,
    clock: Clock | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Solve a problem with one penalty after the other, with warm starts and, unless the solver does it, screening."""
    clock = clock or Clock(None)
    parts = [list(part) for _, part in groupby(penalties, key=lambda penalty: penalty.is_zero)]
    if len(parts) > 1:  # another solver where there is no penalty
        for part in parts:
            one = problem.replace(penalty=part[0])
            yield from along(one, part, start=start, screen=screen, clock=clock, **options)
        return
    request = Request.of(**options)  # `path` warns once for all
    chosen = choose(problem, request.solver, request.options, request.tol, start is not None, len(penalties) > 1)
    if chosen.screens or not screen or not isinstance(problem, Problem):
        yield from follow(problem, penalties, request, start, clock, chosen)
        return
    last = solve_request(problem.replace(penalty=penalties[0]), request, start, clock)
    yield last
    for penalty in penalties[1:]:
        last = solve_near(problem.replace(penalty=penalty), last, request, clock)
        yield last


def _until_interrupted(results: Iterator[Result]) -> Iterator[Result]:
    """The results, until Ctrl-C between two solves; before the first result Ctrl-C is raised."""
    found = False
    while True:
        try:
            result = next(results, None)
        except KeyboardInterrupt:
            if not found:
                raise
            return
        if result is None:
            return
        found = True
        yield result


def _grid(problem: Problem, lams: Any, eps: float | None, n_lams: int | None) -> Vector:
    """The lams, checked, the largest first."""
    if lams is not None:
        for value, name in ((eps, "eps"), (n_lams, "n_lams")):
            if value is not None:
                raise ValueError(f"{name} is for the default grid; do not pass it with lams")
        grid = as_vector(lams, np.size(lams), "lams")
        if not len(grid) or not np.all(grid > 0):
            raise ValueError("lams must be positive numbers, at least one")
        return np.sort(grid)[::-1]
    eps = EPS if eps is None else eps
    if not (isinstance(eps, float | np.floating) and 0.0 < eps < 1.0):
        raise ValueError(f"eps must lie between 0 and 1, got {shown(eps)}")
    n_lams = N_LAMS if n_lams is None else n_lams
    require_count(n_lams, "n_lams", "lams")
    top = largest_lam(problem, "lams")
    return top * np.geomspace(1.0, float(eps), int(n_lams)) if n_lams > 1 else np.array([top])


def largest_lam(problem: Problem, name: str) -> float:
    """`problem.lam_max()`, or an error that asks for the argument `name` instead."""
    try:
        top = problem.lam_max()
    except TypeError as error:
        raise TypeError(f"{error}; pass {name}") from error
    if not 0.0 < top < np.inf:
        raise ValueError(f"lam_max is {top:g}, so w = 0 is optimal for every lam; pass {name} to override")
    return top


def _warn(results: Sequence[Result], asked: int) -> None:
    short = [result for result in results if result.status not in ("certified", "callback")]
    if len(results) < asked or short:
        worst = max(short or results, key=lambda result: result.certificate.relative_gap)
        reached = f"{len(results)} of {asked} lams were reached, {len(short)} of them miss the tolerance"
        ended = "" if len(results) == asked else ": interrupted, or out of time"
        text = f"{reached}: {not_certified(worst)}" if short else reached + ended
        warnings.warn(text, NotCertifiedWarning, stacklevel=3)


@np.errstate(all="ignore")
def shared_design(problem: Statement, **options: Any) -> Design | None:
    """X for paths on folds given by sample weights of zero, if that is faster than copies of the folds; else None.

    Its cache has the columns in 16 bits, for the compiled path; or, for least squares with few weights, the Gram
    matrix, from which each fold subtracts the terms of the samples left out.
    """
    request = Request.of(**options)
    solver = choose(problem, request.solver, request.options, request.tol, is_path=True)
    if not (isinstance(problem, Problem) and problem.is_stored) or not isinstance(solver, PrimalCD | SparsePath):
        return None
    cache, design = FoldCache(), problem.design
    design = design.using(request.n_threads)
    with blas_threads(design.threads):
        if isinstance(solver, SparsePath):
            design = design.sharing(cache)
            n, d = problem.shape
            try:  # its screen fills the cache
                solver.begin(problem.replace(X=design), Start(np.zeros(d), 0.0, np.zeros(n)), seed=0)
            except Overflow:
                return None
        elif is_cheap(problem) and problem.loss.quadratic and problem.weightless:
            design = (design.stored_by_rows() if design.is_sparse else design).sharing(cache)
            cache.gram = gram_for_folds(problem.replace(X=design))
    return design if cache.screens or cache.gram else None
