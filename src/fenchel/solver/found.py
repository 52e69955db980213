"""A result whose multipliers and evidence are computed when somebody asks for them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.deferred import Deferred
from fenchel.certificate.moments import MomentBounds
from fenchel.data.design import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import frozen
from fenchel.solver.base import Check, Result, Stop, Trace


class Found(Result):
    """An optimum of the squared loss that primal coordinate descent found on second moments."""

    def __init__(
        self, problem: Problem, w: Vector, b: float, found: MomentBounds, stop: Stop, steps: int, seconds: float
    ) -> None:
        trace, nonzeros = Trace(), int(np.count_nonzero(w))
        trace.append(Check(steps, seconds, found.primal, found.dual, found.gap, nonzeros, w, b))
        certificate = _certificate(problem, frozen(w), b, found, stop)
        known = {"w": w.copy(), "b": b, "certificate": certificate, "trace": trace}
        for name, value in {**known, "n_iter": steps, "solver": "primal_cd", "status": "certified"}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_problem", problem)

    @cached_property
    def alpha(self) -> Vector:
        """The multipliers of the squared loss: what the model leaves of the targets."""
        problem: Problem = self.__dict__["_problem"]
        return np.asarray(problem.y - problem.scores(self.w, self.b))


def _certificate(problem: Problem, w: Vector, b: float, found: MomentBounds, stop: Stop) -> Certificate:
    gap, mu = found.gap, problem.penalty.strong_convexity
    return Certificate(
        found.primal,
        found.dual,
        gap,
        gap / abs(found.primal) if found.primal else np.inf,
        max(0.0, gap - (found.primal - found.dual)),
        stop.tol,
        "gradient, from second moments",
        float(np.sqrt(2.0 * gap / mu)) * (1.0 + 1e-12) if mu > 0.0 else np.inf,
        stop.atol,
        found.at_zero,
        Deferred(problem, w, b, found.primal, found.upper),
    )
