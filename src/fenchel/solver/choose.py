"""Which solver: a table, read from the top."""

from __future__ import annotations

import dataclasses
from typing import Any

from fenchel.problem import MulticlassProblem, Problem
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
    TotalVariation,
    Trend,
)

#: Every solver; "auto" takes the first that can solve the problem and says that it suits it.
SOLVERS: dict[str, type[Solver[Any]]] = {
    "newton": Newton,
    "primal_cd": PrimalCD,
    "sdca": SDCA,
    "tv": TotalVariation,
    "trend": Trend,
    "fista": FISTA,
    "pdhg": PDHG,
    "approx": APPROX,
}
#: The same for multiclass problems.
MULTICLASS: dict[str, type[Solver[Any]]] = {"newton": MatrixNewton, "sdca": BlockSDCA}
#: To compare with, on problems that are not multiclass: taken by name only, and never recommended.
BASELINES: dict[str, type[Solver[Any]]] = {"sgd": SGD, "pegasos": Pegasos}

Statement = Problem | MulticlassProblem


def choose(problem: Statement, solver: str | Solver[Any], options: dict[str, Any], tol: float) -> Solver[Any]:
    """The solver by name, or an instance as it is; raise if it cannot solve the problem."""
    if not isinstance(solver, str):
        if not isinstance(solver, Solver):
            raise TypeError(
                f"solver must be a name or an instance of a subclass of fenchel.solver.Solver; got {solver!r}"
            )
        if options:
            raise TypeError(f"{', '.join(options)}: options belong to the solver object that was passed")
        return _require_fit(problem, solver)
    if solver == "auto":
        return _best(problem, options, tol)
    table = _table(problem)
    if table is SOLVERS:
        table = SOLVERS | BASELINES
    if solver not in table:
        raise ValueError(f"unknown solver {solver!r}; there are 'auto', {', '.join(map(repr, table))}")
    return _require_fit(problem, _build(table[solver], options))


def _table(problem: Statement) -> dict[str, type[Solver[Any]]]:
    """The solvers for this kind of problem, the preferred ones first."""
    return MULTICLASS if isinstance(problem, MulticlassProblem) else SOLVERS


def _best(problem: Statement, options: dict[str, Any], tol: float) -> Solver[Any]:
    """The first that fits, knows the options, and suits the problem; whether it suits is not asked if no other does."""
    able = _able(problem)
    if not able:
        raise TypeError(
            f"no solver takes {problem.loss!r} with {problem.penalty!r}; with L2 or ElasticNet there is one"
        )
    knowing = [kind for kind in able if not set(options) - _options(kind)]
    if not knowing:
        offers = "; ".join(f"{kind.name}: {', '.join(sorted(_options(kind))) or 'none'}" for kind in able)
        raise TypeError(f"no solver for this problem has the options {', '.join(map(repr, options))}; {offers}")
    suitable = (kind for kind in knowing if kind.suits(problem, tol))
    return _build(next(suitable, knowing[0]), options)


def _able(problem: Statement) -> list[type[Solver[Any]]]:
    """The solvers that can solve the problem, the preferred ones first."""
    traits = problem.loss.traits | problem.penalty.traits
    return [kind for kind in _table(problem).values() if kind.requires <= traits and _obstacle(problem, kind) is None]


def another(problem: Statement, than: Solver[Any]) -> Solver[Any] | None:
    """A solver to try when the one that "auto" chose has given up."""
    if than.is_final:
        return None
    kind = next((kind for kind in _able(problem) if kind is not type(than)), None)
    return None if kind is None else _build(kind, {})


def _options(kind: type[Solver[Any]]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def _build(kind: type[Solver[Any]], options: dict[str, Any]) -> Solver[Any]:
    name, known = kind.name, _options(kind)
    unknown = sorted(set(options) - known)
    if unknown:
        offers = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise TypeError(f"the solver {name!r} has no option {', '.join(map(repr, unknown))}; {offers}")
    solver: Solver[Any] = kind(**options)
    return solver


def _obstacles(problem: Statement, solver: Any) -> list[str]:
    """What keeps a solver from a problem: traits that are missing, then whatever else the solver itself says."""
    missing = solver.requires - problem.loss.traits - problem.penalty.traits
    if missing:
        parts = " and ".join(sorted(trait.value for trait in missing))
        return [f"needs {parts}, which {problem.loss!r} with {problem.penalty!r} is not"]
    obstacle = _obstacle(problem, solver)
    return [] if obstacle is None else [obstacle]


def _obstacle(problem: Statement, solver: Any) -> str | None:
    """What a solver, or a kind of solver as it is by default, says of a problem beside its traits."""
    if solver.needs_storage and not problem.is_stored:
        return f"needs a matrix that is stored (a Design), which a {type(problem.X).__name__} is not"
    said: str | None = (solver() if isinstance(solver, type) else solver).obstacle(problem)
    return said


def _require_fit(problem: Statement, solver: Solver[Any]) -> Solver[Any]:
    for reason in _obstacles(problem, solver):
        able = [name for name, kind in _table(problem).items() if not _obstacles(problem, kind())]
        raise TypeError(f"the solver {solver.name!r} {reason}; {', '.join(map(repr, able))} would work")
    return solver
