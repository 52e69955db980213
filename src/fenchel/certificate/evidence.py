"""What a certificate rests on, and what can be asked of it later."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel.certificate import consequences
from fenchel.certificate.bounds.constructions import Construction, constructions
from fenchel.certificate.bounds.dual_point import LowerBound, gradient_point, lower_bounds, zero_bound
from fenchel.certificate.bounds.rounding import PrimalBound, distance_to_optimum, gap_between, primal_bound
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.data.typing import Mask, MatrixLike, Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import p_norm
from fenchel.steps.base import Model

#: By which part of its terms a product may differ from what it was before the data are said to have changed.
CHANGED = 1e-6
DATA_HAVE_CHANGED = "X has changed since this certificate was made; solve the problem again"


@dataclass(frozen=True, eq=False)
class JudgedBounds:
    """The model's objective and scores, the best lower bound, and the best one whose dual point is feasible."""

    primal: PrimalBound
    bound: LowerBound
    feasible: LowerBound


@dataclass(frozen=True, eq=False)
class Evidence:
    """The problem, the model, and the bounds on P and P*.

    A judge hands over its scores and dual points. Bounds that were made from a solver's products have none: they are
    computed when a consequence of the certificate is asked for.
    """

    problem: Problem
    model: Model
    value: float
    """P(w, b) as computed."""
    upper: float
    """P(w, b) is at most this."""
    lower: float
    """P* is at least this."""
    known: JudgedBounds | None = None
    own_lower: float = -np.inf
    """What the model's own multipliers have proven of P*, where no judge has seen them."""
    own_v: tuple[Vector, Vector] | None = None
    """|v| of these, as the solver has computed it, and a bound on its error."""

    @cached_property
    def w(self) -> Vector:
        """The model's weights."""
        return self.model.dense()

    @property
    def b(self) -> float:
        """The model's intercept."""
        return float(self.model.b)

    @property
    def gap(self) -> float:
        """P(w, b) - P* is at most this."""
        return gap_between(self.upper, self.lower)

    @cached_property
    def primal(self) -> PrimalBound:
        """The model's objective and scores; an error if columns with a weight are no longer what they were."""
        if self.known is not None:
            return self.known.primal
        with np.errstate(all="ignore"):  # overflow makes a bound infinite, never wrong
            primal = primal_bound(self.problem, self.w, self.b)
        if not abs(primal.value - self.value) <= self._rounding(primal):
            raise ValueError(DATA_HAVE_CHANGED)
        return primal

    def _rounding(self, primal: PrimalBound) -> float:
        """By how much P may differ from what it was."""
        return (self.upper - self.value) + (primal.upper - primal.value)

    @cached_property
    def proof(self) -> JudgedBounds:
        """Scores and dual points; an error if X is no longer what it was when the bounds were made."""
        if self.known is not None:
            return self.known
        problem, primal = self.problem, self.primal
        with np.errstate(all="ignore"):
            point = gradient_point(problem, FreeDirections.of(problem), primal.z)
            found = lower_bounds(problem, point, primal.upper)
        last = max(found, key=lambda bound: bound.lower, default=None)
        if last is not None:  # columns without a weight are in the dual value only
            own_gap = gap_between(self.upper, self.own_lower)
            allowed = 2.0 * (own_gap + last.value - last.lower) + 4.0 * self._rounding(primal)
            if not primal.value - last.value <= allowed:
                raise ValueError(DATA_HAVE_CHANGED)
        found.append(zero_bound(problem))
        best = max(found, key=lambda bound: bound.lower)
        feasible = max((bound for bound in found if bound.feasible), key=lambda bound: bound.lower)
        return JudgedBounds(primal, best, feasible)

    @property
    def bound(self) -> LowerBound:
        """The best lower bound, with its dual point."""
        return self.proof.bound

    @property
    def feasible(self) -> LowerBound:
        """The best lower bound whose dual point is feasible."""
        return self.proof.feasible

    @property
    def z(self) -> Vector:
        """The model's scores."""
        return self.primal.z

    @cached_property
    def alpha(self) -> Vector:
        """The multipliers of the best dual point; of bounds from a solver's products, -phi'(z)."""
        if self.known is not None:
            return self.known.bound.alpha
        return -self.problem.loss.derivative(self.z, self.problem.y)

    @cached_property
    def intercept_interval(self) -> tuple[float, float]:
        """Where the intercept of every optimum lies; twenty passes over the data, once."""
        if self.problem.intercept:
            self.require_same_data()
        return consequences.intercept_interval(self)

    def require_same_data(self) -> None:
        """Raise if X has been changed in place since the certificate was made: nothing is proven about the new one."""
        if self.known is None and "proof" not in vars(self):
            _ = self.proof  # made from X as it is now, with a check of its own
            return
        problem, bound, error = self.problem, self.feasible, self.primal.error
        with np.errstate(over="ignore", invalid="ignore"):
            scores = problem.X.matvec_bounded(self.w)
            now = scores.value + self.b
            changed = ~((now == self.z) | (np.isnan(now) & np.isnan(self.z)))
            if error is not None:  # a solver may have computed them in another order
                changed &= ~(np.abs(now - self.z) <= error + scores.error)
            product = problem.X.rmatvec_bounded(problem.weights * bound.alpha / problem.total_weight)
            apart = np.abs(product.value - bound.v)
            far = bool(np.any(apart > bound.error + CHANGED * product.absolute))
            if bound.distance is not None:
                far = not p_norm(apart, 2) <= bound.distance + p_norm(CHANGED * product.absolute, 2)
        if np.any(changed) or far:  # columns without a weight are in the second product only
            raise ValueError("X has changed since this certificate was made; certify the model again")

    def at(self, w: Vector, b: float) -> tuple[PrimalBound, Evidence]:
        """The objective of another model of the same X; and its evidence, by the same bound on P*."""
        self.require_same_data()
        with np.errstate(all="ignore"):  # overflow makes a bound infinite, never wrong
            primal = primal_bound(self.problem, w, b)
        return primal, OtherModel(
            self.problem, Model(w, b), primal.value, primal.upper, self.lower, at_model=primal, original=self
        )

    @property
    def radius(self) -> float:
        """A bound on |w - w*|, in the norm of R's strong convexity."""
        return distance_to_optimum(self.gap, self.problem.penalty.strong_convexity)

    def labels(self, X: MatrixLike) -> tuple[NDArray[np.int_], Mask]:
        """-1 or +1, and where that is proven."""
        return consequences.labels(self, X)

    def zeros(self) -> Mask:
        """Weights that are proven zero."""
        return consequences.zeros(self)

    def zeros_of_fit(self) -> Mask:
        """Weights that are proven zero, by what the solver has computed of X as it was."""
        return consequences.zeros(self) if self.own_v is None else consequences.zeros_of_fit(self, *self.own_v)

    def multipliers(self) -> tuple[Vector, Vector]:
        """An interval for each optimal multiplier."""
        return consequences.multipliers(self)

    def constructions(self, primal: float) -> dict[str, Construction]:
        """What each construction of a dual point from the model's scores proves."""
        self.require_same_data()
        return constructions(self.problem, self.z, primal, self.upper)


@dataclass(frozen=True, eq=False)
class OtherModel(Evidence):
    """Another model of the same problem, such as one that is rounded: its own scores, the original's dual points."""

    at_model: PrimalBound = field(kw_only=True)
    original: Evidence = field(kw_only=True)

    @cached_property
    def primal(self) -> PrimalBound:
        """The model's objective and scores."""
        return self.at_model

    @cached_property
    def proof(self) -> JudgedBounds:
        """The model's scores, the original's dual points."""
        return JudgedBounds(self.at_model, self.original.bound, self.original.feasible)

    @cached_property
    def alpha(self) -> Vector:
        """The original's multipliers."""
        return self.original.alpha

    def require_same_data(self) -> None:
        """Raise if X has been changed in place since the original's certificate was made."""
        self.original.require_same_data()
