"""Classes without weight: constant models.

If all samples with a weight are on one side of a class and the intercept is not penalised, P(0, b) = phi(b) falls to 0
as b grows to that side, and no objective is below 0. Hinges attain 0 at |b| = 1; the logistic loss does not attain it.
A constant model with P <= tol phi(0) is taken: it is proven to be within atol = tol phi(0) of the infimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fenchel.problem import MulticlassProblem, Problem, Statement
from fenchel.solver.many import solve_many
from fenchel.solver.result import Result


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
    b, atol = model
    w, _, alpha = problem.shapes
    limits = {**options, "solver": "auto", "atol": max(atol, options.get("atol", 0.0)), "max_iter": 0}
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
        raise ValueError(f"all samples with a weight are of one class, for which {problem.penalty!r} has no minimum")
    at_zero, t = float(problem.loss.value(0.0 * unit, target)[0]), 1.0
    while float(problem.loss.value(t * unit, target)[0]) > tol * at_zero:
        t *= 2.0
    b = t * unit[0]
    return (b if isinstance(problem, MulticlassProblem) else float(b)), tol * at_zero
