"""What follows from a certificate whose numbers came without looking at the samples: they are looked at when asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate.bounds.constructions import Construction
from fenchel.certificate.consequences import Evidence
from fenchel.certificate.judge import Judge
from fenchel.data.typing import Indices, Mask, Vector
from fenchel.problem import Problem


@dataclass(frozen=True, eq=False)
class Deferred:
    """A model whose scores, dual point and evidence are found at the first question; it has weights on some columns."""

    problem: Problem
    columns: Indices | slice
    weights: Vector
    b: float
    primal: float
    upper: float
    gap: float

    @property
    def w(self) -> Vector:
        """All weights."""
        w = np.zeros(self.problem.shape[1])
        w[self.columns] = self.weights
        return w

    @cached_property
    def evidence(self) -> Evidence:
        """That of the model and its gradient point; an error if objective and gap are no longer what they were."""
        judge = Judge(self.problem)
        with np.errstate(all="ignore"):  # overflow makes a bound infinite, never wrong
            primal = judge.look_at(self.w, self.b)
            judge.try_gradient()
        rounding, bound = (self.upper - self.primal) + (primal.upper - primal.value), judge.last
        same = abs(primal.value - self.primal) <= rounding
        if bound is not None:  # columns without a weight are in the dual value only
            doubt = 2.0 * (self.gap + bound.value - bound.lower) + 4.0 * rounding
            same = same and primal.value - bound.value <= doubt
        if not same:
            raise ValueError("X has changed since this certificate was made; solve the problem again")
        return judge.evidence

    def labels(self, X: Any) -> tuple[NDArray[np.int_], Mask]:
        """-1 or +1, and where that is proven."""
        return self.evidence.labels(X)

    def zeros(self) -> Mask:
        """Weights that are proven zero."""
        return self.evidence.zeros()

    def multipliers(self) -> tuple[Vector, Vector]:
        """An interval for each optimal multiplier."""
        return self.evidence.multipliers()

    def constructions(self, primal: float) -> dict[str, Construction]:
        """What each construction of a dual point from the model's scores proves."""
        return self.evidence.constructions(primal)
