"""Raising D itself, when no cheap dual point is good enough.

D does not depend on w, so anyone's model can wait for it: at worst a certificate costs as much as solving the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps import FISTA, PDHG, SDCA, Candidate, Overflow, Solver, Start, TotalVariation, Trend


def methods(problem: Problem, may_copy: bool) -> list[tuple[Problem, Solver[Any]]]:
    """What to try, in this order: each until it no longer helps.

    Coordinate ascent, the best for kinks, needs a stored matrix and visits its rows. Data stored by columns have to be
    copied for it, which costs memory: only where that is allowed.
    """
    by_rows = problem
    if problem.is_stored and (problem.X.walks_rows or may_copy) and problem.traits >= SDCA.requires:
        by_rows = problem.replace(X=problem.design.stored_by_rows())
    kinds: list[tuple[Problem, Solver[Any]]] = [(problem, TotalVariation()), (problem, Trend()), (problem, FISTA())]
    first = next((one for one in kinds if one[1].hindrance(one[0]) is None), None)
    ascent = (by_rows, SDCA(shrink=False)), (problem, PDHG())
    return [first] if first is not None else [one for one in ascent if one[1].hindrance(one[0]) is None]


def offers(
    problem: Problem, method: Solver[Any], w: Vector, b: float, alpha: Vector
) -> Iterator[tuple[Candidate, int]]:
    """The candidates of a method, rarer as it goes on, and the passes made so far; the last where it gives up."""
    if not np.isfinite(problem.penalty.value(w)):
        w = np.zeros_like(w)
    steps, goes_on = 0, True
    try:
        state = method.begin(problem, Start(w, b, alpha), seed=0)
    except Overflow:
        return
    while goes_on:
        for _ in range(max(2, steps // 8)):
            try:
                state = method.step(state)
            except Overflow:
                goes_on = False
                break
            steps += 1
        if steps:
            for candidate in method.candidates(state):
                yield candidate, steps * method.passes_per_step
