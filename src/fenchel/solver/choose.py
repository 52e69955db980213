"""Which solver: a table, read from the top."""

from __future__ import annotations

import dataclasses
from typing import Any

from fenchel.problem import Problem
from fenchel.steps import FISTA, PDHG, SDCA, Newton, Solver

#: Every solver; "auto" takes the first that can solve the problem and says that it suits it.
SOLVERS: dict[str, type[Any]] = {"newton": Newton, "sdca": SDCA, "fista": FISTA, "pdhg": PDHG}


def choose(problem: Problem, solver: str | Solver[Any], options: dict[str, Any], tol: float) -> Solver[Any]:
    """The solver by name, or an instance as it is; raise if it cannot solve the problem."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not all(hasattr(solver, part) for part in ("begin", "step", "candidates")):
            raise TypeError(f"solver must be a name or an object with begin, step and candidates; got {solver!r}")
        if options:
            raise TypeError(f"{', '.join(options)}: options belong to the solver object that was passed")
        return _require_fit(problem, solver)
    if solver == "auto":
        return _best(problem, options, tol)
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; there are 'auto', {', '.join(map(repr, SOLVERS))}")
    return _require_fit(problem, _build(solver, options))


def _best(problem: Problem, options: dict[str, Any], tol: float) -> Solver[Any]:
    """The first that fits, knows the options, and suits the problem; whether it suits is not asked if no other does."""
    able = [name for name in SOLVERS if not _obstacles(problem, SOLVERS[name]())]
    knowing = [name for name in able if not set(options) - _options(name)]
    if not knowing:
        offers = "; ".join(f"{name}: {', '.join(sorted(_options(name))) or 'none'}" for name in able)
        raise TypeError(f"no solver for this problem has the options {', '.join(map(repr, options))}; {offers}")
    suitable = (name for name in knowing if not hasattr(SOLVERS[name], "suits") or SOLVERS[name].suits(problem, tol))
    return _build(next(suitable, knowing[0]), options)


def _options(name: str) -> set[str]:
    return {field.name for field in dataclasses.fields(SOLVERS[name])}


def _build(name: str, options: dict[str, Any]) -> Solver[Any]:
    known = _options(name)
    unknown = sorted(set(options) - known)
    if unknown:
        offers = f"its options are {', '.join(sorted(known))}" if known else "it has no options"
        raise TypeError(f"the solver {name!r} has no option {', '.join(map(repr, unknown))}; {offers}")
    solver: Solver[Any] = SOLVERS[name](**options)
    return solver


def _obstacles(problem: Problem, solver: Any) -> list[str]:
    """What keeps a solver from a problem: traits that are missing, then whatever else the solver itself says."""
    missing = solver.requires - problem.loss.traits - problem.penalty.traits
    if missing:
        parts = " and ".join(sorted(trait.value for trait in missing))
        return [f"needs {parts}, which {problem.loss!r} with {problem.penalty!r} is not"]
    obstacle = solver.obstacle(problem) if hasattr(solver, "obstacle") else None
    return [] if obstacle is None else [obstacle]


def _require_fit(problem: Problem, solver: Solver[Any]) -> Solver[Any]:
    for reason in _obstacles(problem, solver):
        able = [name for name, kind in SOLVERS.items() if not _obstacles(problem, kind())]
        raise TypeError(f"the solver {solver.name!r} {reason}; {', '.join(map(repr, able))} would work")
    return solver
