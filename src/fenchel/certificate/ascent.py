"""Raising D itself, when no cheap dual point is good enough.

D does not depend on w, so anyone's model can wait for it: at worst a certificate costs as much as solving the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fenchel.data.design import Vector
from fenchel.problem import Problem, Trait
from fenchel.steps import FISTA, PDHG, Candidate, CoordinateAscent, Overflow, Solver, Start

#: Passes over the data that a step of each method makes.
PASSES = {FISTA: 2, PDHG: 2, CoordinateAscent: 1}


def methods(problem: Problem) -> list[Solver[Any]]:
    """What to try, in this order: each until it no longer helps."""
    traits = problem.loss.traits | problem.penalty.traits
    if traits >= FISTA.requires:
        return [FISTA()]
    if traits >= CoordinateAscent.requires and problem.design.by_rows and Trait.DIFFERENTIABLE_LOSS not in traits:
        return [CoordinateAscent(), PDHG()]
    return [PDHG()]


def offers(
    problem: Problem, method: Solver[Any], w: Vector, b: float, alpha: Vector
) -> Iterator[tuple[Candidate, int]]:
    """The candidates of a method, rarer as it goes on, and the passes made so far."""
    if not np.isfinite(problem.penalty.value(w)):
        w = np.zeros_like(w)
    try:
        state = method.init(problem, Start(w, b, alpha), seed=0)
        steps = 0
        while True:
            for _ in range(max(2, min(method.steps_per_check, steps // 2), steps // 10)):
                state = method.step(state)
                steps += 1
            for candidate in method.candidates(state):
                yield candidate, steps * PASSES[type(method)]
    except Overflow:
        return
