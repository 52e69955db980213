"""Which solver: a table, read from the top. The only place that chooses algorithms."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from fenchel.data.design import Design
from fenchel.draw.tables import table
from fenchel.problem import MulticlassProblem, Problem, Statement, Trait
from fenchel.problem.checks import require_flag
from fenchel.problem.penalties import Penalty
from fenchel.solver.result import Stop
from fenchel.steps import (
    APPROX,
    FISTA,
    PDHG,
    SDCA,
    SGD,
    BlockSDCA,
    MatrixNewton,
    Newton,
    Pegasos,
    PrimalCD,
    Solver,
    SparsePath,
    TotalVariation,
    Trend,
)

Kind = type[Solver[Any]]


@dataclass(frozen=True)
class Solvers:
    """The solvers for one kind of problem, the preferred ones first; and baselines, which are taken by name only."""

    kinds: tuple[Kind, ...]
    baselines: tuple[Kind, ...] = ()

    def named(self) -> dict[str, Kind]:
        """All of them."""
        return {kind.name: kind for kind in self.kinds + self.baselines}


@singledispatch
def solvers_of(problem: object) -> Solvers:
    """The solvers for a problem; each kind of statement registers its own."""
    raise TypeError(f"there are no solvers for {type(problem).__name__}; register them with solvers_of.register")


PROBLEM_SOLVERS = Solvers(
    (Newton, SparsePath, PrimalCD, SDCA, TotalVariation, Trend, FISTA, PDHG, APPROX), (SGD, Pegasos)
)


@solvers_of.register
def _(problem: Problem) -> Solvers:
    return PROBLEM_SOLVERS


@solvers_of.register
def _(problem: MulticlassProblem) -> Solvers:
    return Solvers((MatrixNewton, BlockSDCA))


def choose(
    problem: Statement,
    solver: str | Solver[Any],
    options: dict[str, Any],
    tol: float,
    has_start: bool = False,
    is_path: bool = False,
) -> Solver[Any]:
    """The solver by name, or an instance as it is; raise if it cannot solve the problem."""
    if not isinstance(solver, str):
        if not isinstance(solver, Solver):
            raise TypeError(f"solver must be a name or an object of a subclass of Solver; got {solver!r}")
        if options:
            raise TypeError(f"{', '.join(options)}: options belong to the solver object that was passed")
        return _require_fit(problem, solver)
    if solver == "auto":
        return _best(problem, options, tol, has_start, is_path)
    known = solvers_of(problem).named()
    if solver not in known:
        raise ValueError(f"unknown solver {solver!r}; there are 'auto', {', '.join(map(repr, known))}")
    return _require_fit(problem, _build(known[solver], options))


def another(problem: Statement, than: Solver[Any]) -> Solver[Any] | None:
    """A solver to try when the one that "auto" chose has given up."""
    if than.is_final:
        return None
    kind = next((kind for kind in _able(problem) if kind is not type(than) and not kind().ignores_start), None)
    return None if kind is None else _build(kind, {})


def storage_for(solver: str | Solver[Any], design: Design, penalty: Penalty) -> Design:
    """X by rows, copied if need be, where the solver goes row by row: by "auto" those for strongly convex penalties."""
    kind = PROBLEM_SOLVERS.named().get(solver) if isinstance(solver, str) else solver
    as_it_is = Trait.STRONGLY_CONVEX_PENALTY not in penalty.traits or (kind is not None and kind.any_storage)
    return design if as_it_is else design.stored_by_rows()


@dataclass(frozen=True)
class Explanation:
    """Which solver "auto" takes for a problem, and why not the others.

    Attributes
    ----------
    solver : str
        The one that is taken.
    reasons : dict
        For every solver, in the order in which they are asked: what it is for, or what keeps it from the problem.
    """

    solver: str
    reasons: dict[str, str]

    def __str__(self) -> str:
        rows = [("->" if name == self.solver else "", name, reason) for name, reason in self.reasons.items()]
        return table(("", "solver", "why"), rows, left=True)


def explain(problem: Statement, tol: float = 1e-4, *, path: bool = False) -> Explanation:
    """Say which solver "auto" takes for a problem, and why.

    Parameters
    ----------
    problem : Problem or MulticlassProblem
    tol : float, default 1e-4
        The relative gap that will be asked for: some solvers are quicker to a rough model, others to an exact one.
    path : bool, default False
        Whether many lams are to be solved for, as by `path`.

    Returns
    -------
    Explanation
        It prints as a table.
    """
    if not isinstance(problem, Statement):
        raise TypeError(f"problem must be a fenchel.Problem, got {type(problem).__name__}")
    require_flag(path, "path")
    tol = Stop(tol).tol
    taken, reasons = _best(problem, {}, tol, is_path=path).name, {}
    for kind in solvers_of(problem).kinds:
        hindrance = kind().hindrance(problem)
        if hindrance is not None:
            reasons[kind.name] = f"cannot: it {hindrance}"
        elif kind.name == taken:
            reasons[kind.name] = f"taken: {kind.summary}"
        elif _suits(kind, problem, tol, path):
            reasons[kind.name] = "would do, after the one that is taken"
        else:
            reasons[kind.name] = "could, but is expected to take longer here"
    return Explanation(taken, reasons)


def _best(
    problem: Statement, options: dict[str, Any], tol: float, has_start: bool = False, is_path: bool = False
) -> Solver[Any]:
    """The first that fits, knows the options, and suits the problem; whether it suits is not asked if no other does."""
    fitting = []
    for kind in solvers_of(problem).kinds:
        if set(options) - _options(kind) or kind().hindrance(problem) is not None:
            continue
        # one that cannot use a start is taken only if nothing else would get further
        if has_start and kind(**options).ignores_start and not kind.is_final:
            continue
        if _suits(kind, problem, tol, is_path):
            return _build(kind, options)
        fitting.append(kind)
    if fitting:
        return _build(fitting[0], options)
    able = _able(problem)
    if not able:
        raise TypeError(f"no solver takes {problem.described}; with L2 or ElasticNet there is one")
    offers = "; ".join(f"{kind.name}: {', '.join(sorted(_options(kind))) or 'none'}" for kind in able)
    raise TypeError(f"no solver for this problem has the options {', '.join(map(repr, options))}; {offers}")


def _suits(kind: Kind, problem: Statement, tol: float, is_path: bool) -> bool:
    return kind.suits_path(problem, tol) if is_path else kind.suits(problem, tol)


def _able(problem: Statement) -> list[Kind]:
    """The solvers that can solve the problem, the preferred ones first."""
    return [kind for kind in solvers_of(problem).kinds if kind().hindrance(problem) is None]


def _options(kind: Kind) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _build(kind: Kind, options: dict[str, Any]) -> Solver[Any]:
    name, known = kind.name, _options(kind)
    unknown = sorted(set(options) - known)
    if unknown:
        offers = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise TypeError(f"the solver {name!r} has no option {', '.join(map(repr, unknown))}; {offers}")
    return kind(**options)


def _require_fit(problem: Statement, solver: Solver[Any]) -> Solver[Any]:
    reason = solver.hindrance(problem)
    if reason is not None:
        able = ", ".join(repr(kind.name) for kind in _able(problem))
        raise TypeError(f"the solver {solver.name!r} {reason}; {able} would work")
    return solver
