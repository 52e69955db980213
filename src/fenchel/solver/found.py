"""A result whose multipliers and evidence are computed when somebody asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fenchel.certificate import Certificate
from fenchel.certificate.deferred import Deferred
from fenchel.certificate.moments import MomentBounds
from fenchel.data.design import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import frozen
from fenchel.solver.base import Check, Result, Stop, Trace


class Found(Result):
    """An optimum of the squared loss that primal coordinate descent found on second moments; `alpha` may be None."""

    @property
    def alpha(self) -> Vector:
        """The multipliers of the squared loss: what the model leaves of the targets."""
        known = self.__dict__.get("_alpha")
        if known is None:
            evidence = self.certificate.evidence
            assert isinstance(evidence, Deferred)
            problem = evidence.problem
            known = self.__dict__["_alpha"] = np.asarray(problem.y - problem.scores(self.w, self.b))
        return known

    @alpha.setter
    def alpha(self, value: Vector | None) -> None:
        self.__dict__["_alpha"] = value

    def __repr__(self) -> str:
        return "Result" + super().__repr__().removeprefix(type(self).__qualname__)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has no data to ask later."""
        return Result, (self.w, self.b, self.alpha, self.certificate, self.trace, self.n_iter, self.solver, self.status)


def found(problem: Problem, w: Vector, b: float, bounds: MomentBounds, stop: Stop, steps: int, seconds: float) -> Found:
    """A certified result from bounds; no sample is looked at."""
    trace, nonzeros = Trace(), int(np.count_nonzero(w))
    trace.append(Check(steps, seconds, bounds.primal, bounds.dual, bounds.gap, nonzeros, w, b))
    certificate = _certificate(problem, frozen(w), b, bounds, stop)
    unknown: Any = None
    return Found(w.copy(), b, unknown, certificate, trace, steps, "primal_cd", "certified")


def _certificate(problem: Problem, w: Vector, b: float, bounds: MomentBounds, stop: Stop) -> Certificate:
    gap, mu = bounds.gap, problem.penalty.strong_convexity
    return Certificate(
        bounds.primal,
        bounds.dual,
        gap,
        gap / abs(bounds.primal) if bounds.primal else np.inf,
        max(0.0, gap - (bounds.primal - bounds.dual)),
        stop.tol,
        "gradient, from second moments",
        float(np.sqrt(2.0 * gap / mu)) * (1.0 + 1e-12) if mu > 0.0 else np.inf,
        stop.atol,
        bounds.at_zero,
        Deferred(problem, w, b, bounds.primal, bounds.upper, gap),
    )
