"""Raising D itself, when no cheap dual point is good enough.

D does not depend on w, so anyone's model can wait for it: at worst a certificate costs as much as solving the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Statement
from fenchel.steps import Candidate, Overflow, Solver, Start


def offers(
    problem: Statement,
    method: Solver[Any],
    w: Vector,
    b: float | Vector,
    alpha: Vector,
    late: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Candidate, int]]:
    """The candidates of a method, rarer as it goes on, and the passes made so far.

    The last ones where it gives up, or after the step in which it is `late`.
    """
    if not np.isfinite(problem.penalty.value(np.ravel(w))):
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
            if late():
                goes_on = False
                break
        if steps:
            for candidate in method.candidates(state):
                yield candidate, steps * method.passes_per_step
