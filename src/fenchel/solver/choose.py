"""Which solver: a table, read from the top."""

from __future__ import annotations

import dataclasses
from typing import Any

from fenchel.problem import Problem
from fenchel.steps import FISTA, PDHG, SDCA, Newton, Solver

#: Every solver, the preferred ones first; "auto" takes the first whose requirements the problem meets.
SOLVERS: dict[str, type[Any]] = {"fista": FISTA, "pdhg": PDHG, "sdca": SDCA, "newton": Newton}


def choose(problem: Problem, solver: str | Solver[Any], options: dict[str, Any]) -> Solver[Any]:
    """The solver by name, or an instance as it is; raise if it cannot solve the problem."""
    if not isinstance(solver, str):
        if isinstance(solver, type) or not all(hasattr(solver, part) for part in ("begin", "step", "candidates")):
            raise TypeError(f"solver must be a name or an object with begin, step and candidates; got {solver!r}")
        if options:
            raise TypeError(f"{', '.join(options)}: options belong to the solver object that was passed")
        return _require_fit(problem, solver)
    if solver == "auto":
        name = next(name for name, kind in SOLVERS.items() if not _obstacles(problem, kind))
        return _build(name, options)
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}; there are 'auto', {', '.join(map(repr, SOLVERS))}")
    return _require_fit(problem, _build(solver, options))


def _build(name: str, options: dict[str, Any]) -> Solver[Any]:
    known = {field.name for field in dataclasses.fields(SOLVERS[name])}
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
        able = [name for name, kind in SOLVERS.items() if not _obstacles(problem, kind)]
        raise TypeError(f"the solver {solver.name!r} {reason}; {', '.join(map(repr, able))} would work")
    return solver
