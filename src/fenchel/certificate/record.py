"""What every judge keeps, whatever the kind of problem: the best model and the best lower bound seen so far.

A dual value, once valid, is valid for good, and so is a primal one: both are kept, whatever comes later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from fenchel.certificate.bounds.rounding import PrimalBound, gap_between
from fenchel.certificate.certificate import NOTHING, Certificate, Proof, vanishes
from fenchel.data.typing import Vector
from fenchel.steps import Candidate, Scores

#: The share of the gap that may be rounding, or doubt about what a solver knows, before a product is worth its price.
DOUBTFUL = 0.1
#: A gap that is rounding to this part will not become much smaller.
MOSTLY_ROUNDING = 0.7


class Ball(Proof, Protocol):
    """Evidence that knows how far the optimum can be."""

    @property
    def gap(self) -> float: ...
    @property
    def radius(self) -> float: ...


class Record(ABC):
    """The best model (w, b) with its objective, and the best bound; subclasses know how to find better ones."""

    w: Vector
    b: Any
    primal: PrimalBound
    best: Any
    last: Any = None  # the bound of the last dual point tried

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The mean loss where all scores are 0."""

    @property
    @abstractmethod
    def evidence(self) -> Ball:
        """What the certificate of the best model rests on."""

    @abstractmethod
    def look_at(self, w: Vector, b: Any, scores: Scores | None = None) -> PrimalBound:
        """Keep a model if it is the best so far; its scores are computed unless they are given."""

    @abstractmethod
    def try_multipliers(self, alpha: Vector, how: str, u: Vector | None = None) -> None:
        """Keep the bound of these multipliers, made feasible first, if it is the best so far."""

    def try_residual(self, candidate: Candidate, primal: PrimalBound, how: str) -> bool:
        """Keep the bound of a candidate that knows its residual, and say whether no other is worth its price."""
        return False

    def try_differences(self, u: Vector, how: str) -> bool:
        """Keep the bound of multipliers u of D w if they make a dual point by themselves, and say whether they do."""
        return False

    @abstractmethod
    def try_gradient(self, z: Vector | None = None) -> None:
        """The gradient point at some scores; those of the best model by default."""

    @abstractmethod
    def fit(self, tol: float) -> None:
        """Look for a better dual point near the best model."""

    @property
    def gap(self) -> float:
        """The certified gap of the best model; infinite before there is one."""
        return gap_between(self.primal.upper, self.best.lower) if np.isfinite(self.primal.upper) else np.inf

    @property
    def dual(self) -> float:
        """The best lower bound as computed, before its allowance for rounding."""
        return float(self.best.value)

    @property
    def rounding(self) -> float:
        """The part of the gap that no solver can remove."""
        return float(self.primal.upper - self.primal.value + self.best.value - self.best.lower)

    def is_blurred(self, primal: PrimalBound) -> bool:
        """Whether doubt about the scores of a model is so large beside the gap that a sharper product is worth it."""
        return not primal.upper - primal.value <= DOUBTFUL * self.gap

    def exhausted(self, tol: float, atol: float = 0.0) -> bool:
        """Whether rounding is most of the gap: that of the best bound, or that of the last dual point.

        The last point counts where its rounding alone is too much: an older bound, such as D(0), may still be better.
        """
        if self.gap <= self.rounding / MOSTLY_ROUNDING:
            return True
        if self.last is None:
            return False
        rounding = self.primal.upper - self.primal.value + self.last.value - self.last.lower
        own = gap_between(self.primal.upper, self.last.lower)
        return bool(max(tol * abs(self.primal.value), atol) < rounding and own <= rounding / MOSTLY_ROUNDING)

    def reached(self, tol: float, atol: float = 0.0) -> bool:
        """Whether the gap is small enough, or P is zero as far as double precision can tell."""
        gap, value = self.gap, self.primal.value
        if not np.isfinite(gap):
            return False
        if gap <= max(tol * abs(value), atol):
            return True
        # most objectives are far from zero, and need not be compared with what they were
        return abs(value) <= max(self.rounding, NOTHING) and vanishes(value, gap, self.rounding, self.at_zero)

    def certificate(self, tol: float, atol: float = 0.0) -> Certificate:
        """What has been proven about the best model."""
        primal, bound, evidence = self.primal, self.best, self.evidence
        if not (np.isfinite(primal.upper) and np.isfinite(bound.lower)):
            return Certificate(
                primal.value, bound.value, np.inf, np.inf, np.inf, tol, bound.how, np.inf, atol, self.at_zero, evidence
            )
        gap = evidence.gap
        relative = gap / abs(primal.value) if primal.value else (np.inf if gap else 0.0)
        rounding = max(0.0, gap - (primal.value - bound.value))
        return Certificate(
            primal.value,
            bound.value,
            gap,
            relative,
            rounding,
            tol,
            bound.how,
            evidence.radius,
            atol,
            self.at_zero,
            evidence,
        )
