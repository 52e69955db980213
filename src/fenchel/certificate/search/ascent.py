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
from fenchel.steps.base import Goal, never
from fenchel.steps.inner import Inner


def offers(
    problem: Statement,
    method: Solver[Any],
    w: Vector,
    b: float | Vector,
    alpha: Vector,
    late: Callable[[], bool] = never,
) -> Iterator[tuple[Candidate, int]]:
    """The candidates of a method, rarer as it goes on, and the passes made so far.

    The last ones where it gives up, or after the step in which it is `late`.
    """
    if not np.isfinite(problem.penalty.value(np.ravel(w))):
        w = np.zeros_like(w)
    try:
        inner = Inner.of(problem, method, Start(w, b, alpha))
    except Overflow:
        return
    if late is not never:
        method.aim(inner.state, Goal((problem.penalty,), 0.0, 0.0, np.inf, late=late))
    ended = False
    while not ended:
        due = inner.step()
        ended = inner.ended or late()
        if due or ended:
            for candidate in inner.candidates:
                yield candidate, inner.passes
