"""A result whose weights, multipliers and evidence are computed when somebody asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate import Certificate
from fenchel.certificate.bounds.samples import Bounds
from fenchel.certificate.deferred import Deferred
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem
from fenchel.solver.result import Result, Row, Stop, Trace


class Found(Result):
    """An optimum that primal coordinate descent found without a solver's loop; w and alpha need not be given."""

    @property
    def w(self) -> Vector:
        """All weights."""
        known = self.__dict__.get("_w")
        if known is None:
            evidence = self.certificate.evidence
            assert isinstance(evidence, Deferred)
            known = self.__dict__["_w"] = evidence.w
        return known

    @w.setter
    def w(self, value: Vector | None) -> None:
        self.__dict__["_w"] = value

    def write(self, w: Vector) -> None:
        """Put the weights into zeros."""
        evidence, known = self.certificate.evidence, self.__dict__.get("_w")
        if known is not None or not isinstance(evidence, Deferred):
            w[:] = self.w
        else:
            w[evidence.columns] = evidence.weights

    @property
    def alpha(self) -> Vector:
        """The multipliers that go with the scores: -phi'(z)."""
        known = self.__dict__.get("_alpha")
        if known is None:
            evidence = self.certificate.evidence
            assert isinstance(evidence, Deferred)
            problem, scores = evidence.problem, evidence.evidence.primal.z  # or an error if X is no longer what it was
            known = self.__dict__["_alpha"] = -problem.loss.derivative(scores, problem.y)
        return known

    @alpha.setter
    def alpha(self, value: Vector | None) -> None:
        self.__dict__["_alpha"] = value

    def __repr__(self) -> str:
        return "Result" + super().__repr__().removeprefix(type(self).__qualname__)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has no data to ask later."""
        return Result, (self.w, self.b, self.alpha, self.certificate, self.trace, self.n_iter, self.solver, self.status)


def nonzeros(result: Result) -> tuple[NDArray[np.intp], Vector]:
    """Which weights are not zero, in any order, and what they are."""
    evidence = result.certificate.evidence
    if not (isinstance(result, Found) and isinstance(evidence, Deferred)) or isinstance(evidence.columns, slice):
        places = np.flatnonzero(result.w)
        return places, result.w[places]
    alive = np.flatnonzero(evidence.weights)
    return evidence.columns[alive], evidence.weights[alive]


def found(
    problem: Problem,
    columns: Indices | slice,
    weights: Vector,
    b: float,
    bounds: Bounds,
    stop: Stop,
    steps: int,
    seconds: float,
) -> Found:
    """A certified result from bounds, with weights on some columns, which nobody changes; no sample is looked at."""
    weights.flags.writeable = False
    trace = Trace()
    trace.append(Row(steps, seconds, bounds.primal, bounds.dual, bounds.gap, int(np.count_nonzero(weights))))
    evidence = Deferred(problem, columns, weights, b, bounds.primal, bounds.upper, bounds.gap)
    unknown: Any = None
    return Found(unknown, b, unknown, _certificate(evidence, bounds, stop), trace, steps, "primal_cd", "certified")


def _certificate(evidence: Deferred, bounds: Bounds, stop: Stop) -> Certificate:
    gap, mu = bounds.gap, evidence.problem.penalty.strong_convexity
    return Certificate(
        bounds.primal,
        bounds.dual,
        gap,
        gap / abs(bounds.primal) if bounds.primal else np.inf,
        max(0.0, gap - (bounds.primal - bounds.dual)),
        stop.tol,
        bounds.how,
        float(np.sqrt(2.0 * gap / mu)) * (1.0 + 1e-12) if mu > 0.0 else np.inf,
        stop.atol,
        bounds.at_zero,
        evidence,
    )
