"""Judges: the best model and the best lower bound seen so far, for one problem.

A dual value, once valid, is valid for good, and so is a primal one: both are kept, whatever comes later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from fenchel.certificate.bounds import dual_point
from fenchel.certificate.bounds.differences import denoising_bound
from fenchel.certificate.bounds.dual_point import (
    LowerBound,
    gradient_point,
    lower_bounds,
    moved,
    residual_bound,
    zero_bound,
)
from fenchel.certificate.bounds.rounding import DualPoint, PrimalBound, gap_between, primal_bound
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.certificate.certificate import NOTHING, Certificate, Proof, vanishes
from fenchel.certificate.evidence import Evidence, JudgedBounds
from fenchel.certificate.search.ascent import offers
from fenchel.certificate.search.recovery import projected_points, recovered_points
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import finite, frozen
from fenchel.steps import Candidate, Residual, Scores
from fenchel.steps.base import Model
from fenchel.steps.choose import dual_solvers


@dataclass(frozen=True)
class JudgeTuning:
    """What is tried for a smaller gap, and for how long.

    `python -m benchmarks.tuning all certificate.judge`: times with half and with double are 1.10 and 1.08 for
    `most_rounding`, 0.92 and 1.00 for `mostly_rounding`, 0.91 and 1.06 for `worth_fitting`, 1.01 and 0.97 for
    `patience`, 1.19 and 0.91 for `own`, where double makes the gap 1.04 times as large. Other gaps are the same.
    """

    most_rounding: float = 0.1  # the part of the gap that may be rounding before a product is worth its price
    mostly_rounding: float = 0.7  # a gap that is rounding to this part will not become much smaller
    worth_fitting: float = 0.3  # the relative gap below which a fit to the penalty's subdifferential is tried
    patience: int = 200  # passes that may leave the gap where it is, beside as many as there were before
    own: float = 0.1  # the part of the gap that may be left to the dual point, the rest being the model's own


TUNING = JudgeTuning()


class Record(ABC):
    """The best model (w, b) with its objective, and the best bound; subclasses know how to find better ones."""

    w: Vector
    b: Any
    primal: PrimalBound
    best: Any
    feasible: Any  # the best bound whose dual point is feasible
    last: Any = None  # the bound of the last dual point tried
    problem: Any
    late: Callable[[], bool] = staticmethod(lambda: False)  # whether a search should end: the run's clock
    certifies: type[Certificate] = Certificate

    def prepare(self) -> None:  # noqa: B027  (nothing, unless a subclass knows better)
        """What can be told of a problem before there is a model."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The mean loss where all scores are 0."""

    @property
    @abstractmethod
    def evidence(self) -> Proof:
        """What the certificate of the best model rests on."""

    @abstractmethod
    def consider(self, w: Vector, b: Any, scores: Scores | None = None) -> PrimalBound:
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
    def gradient_is_tight(self) -> bool:
        """Whether the gap of the gradient point goes to zero with the model's suboptimality."""
        return True

    def keep(self, found: list[Any]) -> None:
        """Keep bounds where they are better."""
        self.last = max(found, key=lambda bound: bound.lower, default=None)
        for bound in found:
            if bound.lower > self.best.lower:
                self.best = bound
            if bound.feasible and bound.lower > self.feasible.lower:
                self.feasible = bound

    def try_candidate(self, candidate: Candidate, last: float) -> float:
        """Keep the bound of what a solver that raises D offers; the candidate's own gap, infinite if it is not known.

        `last` is the gap from which progress is counted.
        """
        if candidate.alpha is not None:
            self.try_multipliers(candidate.alpha, "dual ascent", candidate.u)
        return np.inf

    def ascend(self, tol: float, most_passes: int, may_copy: bool = False) -> None:
        """Raise D until the gap is small enough, or nearly all of it is the model's own, or the passes are spent."""
        for problem, method in dual_solvers(self.problem, may_copy):
            if self.reached(tol):
                return
            progress, last = 0, self.gap
            for candidate, passes in offers(problem, method, self.w, self.b, self.best.alpha):
                left = self.try_candidate(candidate, last)
                if self.gap < 0.99 * last:
                    progress, last = passes, self.gap
                if self.reached(tol) or left <= TUNING.own * self.gap:
                    return
                if passes >= most_passes or passes > 2 * progress + max(TUNING.patience, most_passes // 10):
                    break

    @property
    def strong_convexity(self) -> float:
        """That of the objective, by which the gap bounds the distance from the optimum."""
        return float(self.problem.penalty.strong_convexity)

    @property
    def gap(self) -> float:
        """The certified gap of the best model; infinite before there is one."""
        return gap_between(self.primal.upper, float(self.best.lower)) if np.isfinite(self.primal.upper) else np.inf

    @property
    def dual(self) -> float:
        """The best lower bound as computed, before its allowance for rounding."""
        return float(self.best.value)

    @property
    def rounding(self) -> float:
        """The part of the gap that no solver can remove."""
        return float(self.primal.upper - self.primal.value + self.best.value - self.best.lower)

    def is_blurred(self, primal: PrimalBound) -> bool:
        """Whether the error of the scores of a model is so large beside the gap that a sharper product is worth it."""
        return not primal.upper - primal.value <= TUNING.most_rounding * self.gap

    def exhausted(self, tol: float, atol: float = 0.0) -> bool:
        """Whether rounding is most of the gap: that of the best bound, or that of the last dual point.

        The last point counts where its rounding alone is too much: an older bound, such as D(0), may still be better.
        """
        if self.gap <= self.rounding / TUNING.mostly_rounding:
            return True
        if self.last is None:
            return False
        rounding = self.primal.upper - self.primal.value + self.last.value - self.last.lower
        own = gap_between(self.primal.upper, float(self.last.lower))
        return bool(max(tol * abs(self.primal.value), atol) < rounding and own <= rounding / TUNING.mostly_rounding)

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
        return self.certifies.of(
            self.primal.value,
            self.primal.upper,
            self.best.value,
            self.best.lower,
            how=self.best.how,
            tol=tol,
            atol=atol,
            at_zero=self.at_zero,
            strong_convexity=self.strong_convexity,
            evidence=self.evidence,
        )


@singledispatch
def judge_of(problem: object) -> Record:
    """A judge of this kind of problem that has seen nothing yet; each kind registers its own."""
    raise TypeError(f"there is no judge for {type(problem).__name__}; register one with judge_of.register")


class Judge(Record):
    """Looks at models and dual points; keeps the best of each."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.free = FreeDirections.of(problem)
        self.has_kinks = bool(problem.loss.kinks(problem.y[:1]))
        self.w, self.b = np.zeros(problem.shape[1]), 0.0
        self.primal = PrimalBound(np.inf, np.inf, np.zeros(problem.shape[0]))
        self.best: LowerBound = zero_bound(problem)
        self.feasible: LowerBound = self.best

    @cached_property
    def at_zero(self) -> float:
        """The mean loss where all scores are 0."""
        return float(self.problem.loss_at_zero)

    @property
    def evidence(self) -> Evidence:
        """What the certificate of the best model rests on."""
        proof = JudgedBounds(self.primal, self.best, self.feasible)
        model = Model(self.w, self.b)
        return Evidence(self.problem, model, self.primal.value, self.primal.upper, self.best.lower, proof)

    def consider(self, w: Vector, b: float, scores: Scores | None = None) -> PrimalBound:
        """Keep a model if it is the best so far; its scores are computed unless they are given."""
        primal = primal_bound(self.problem, w, b, scores)
        if primal.upper < self.primal.upper or not np.isfinite(self.primal.upper):
            self.w, self.b, self.primal = frozen(w), b, primal
        return primal

    @property
    def gradient_is_tight(self) -> bool:
        """Not where multipliers are not unique: on kinks of the loss, and those of D w."""
        return not self.has_kinks and self.problem.penalty.analysis is None

    def try_point(self, point: DualPoint) -> None:
        """Keep the bounds of a dual point where they are better."""
        self.keep(lower_bounds(self.problem, point, self.primal.upper))

    def try_multipliers(self, alpha: Vector, how: str, u: Vector | None = None) -> None:
        """Multipliers from anywhere, made feasible first; u are those of D w, to begin from."""
        self.try_point(replace(self.free.satisfy(self.problem, DualPoint(finite(alpha), how=how)), u=u))

    def try_residual(self, candidate: Candidate, primal: PrimalBound, how: str) -> bool:
        """The bound of a candidate that says how well its weights and multipliers go together; False where a product
        with X' may give a better one.
        """
        alpha, residual = candidate.alpha, candidate.residual
        if residual is None or alpha is None or primal.error is None:
            return False
        point = self.free.satisfy(self.problem, DualPoint(finite(alpha), how=how))
        residual = moved(self.problem, residual, alpha, point)
        bound = self._residual_bound(point, candidate.w, primal, residual)
        self.keep([bound])
        gap = gap_between(primal.upper, bound.lower)
        return (
            gap - (primal.value - bound.value)
            <= TUNING.most_rounding * gap
            <= TUNING.most_rounding * dual_point.TUNING.far * abs(primal.upper)
        )

    def _residual_bound(self, point: DualPoint, w: Vector, primal: PrimalBound, residual: Residual) -> LowerBound:
        return residual_bound(self.problem, point, w, primal, residual)

    def try_differences(self, u: Vector, how: str) -> bool:
        """The dual point that multipliers u of D w make by themselves; False where X is not the identity."""
        bound = denoising_bound(self.problem, u, how)
        if bound is not None:
            self.keep([bound])
        return bound is not None

    def try_gradient(self, z: Vector | None = None) -> None:
        """The gradient point at some scores; those of the best model by default."""
        self.try_point(gradient_point(self.problem, self.free, self.primal.z if z is None else z))

    def fit(self, tol: float) -> None:
        """Fit v(alpha) to the subdifferential at the best model: norms always, kinks until tol is reached."""
        if not self.exhausted(tol) and self.gap < TUNING.worth_fitting * abs(self.primal.value):
            start = gradient_point(self.problem, self.free, self.primal.z)
            for point in projected_points(self.problem, self.free, self.w, self.primal.z, start):
                self.try_point(point)
        if self.has_kinks and not self.reached(tol):
            for point in recovered_points(self.problem, self.free, self.w, self.primal.z):
                self.try_point(point)
                if self.reached(tol):
                    return

    def try_candidate(self, candidate: Candidate, last: float) -> float:
        """Keep a candidate's bound; what its own gap is, infinite while the bound is rising too fast to ask."""
        own = candidate.u is not None and self.try_differences(candidate.u, how="dual ascent")
        if own or candidate.alpha is not None:
            if candidate.alpha is not None and not own:
                self.try_multipliers(candidate.alpha, "dual ascent", candidate.u)
            if self.gap < 0.7 * last:
                return np.inf
        primal = primal_bound(self.problem, candidate.w, candidate.b)
        if candidate.alpha is None and not own:
            self.try_gradient(primal.z)
        return primal.upper - self.best.lower


judge_of.register(Problem, Judge)
