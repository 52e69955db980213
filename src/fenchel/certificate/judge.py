"""The judge: the best model and the best lower bound seen so far, for one problem."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.differences import denoising_bound
from fenchel.certificate.bounds.dual_point import FAR, LowerBound, gradient_point, lower_bounds, zero_bound
from fenchel.certificate.bounds.residual import moved, residual_bound
from fenchel.certificate.bounds.rounding import DualPoint, PrimalBound, gap_between, primal_bound
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.certificate.consequences import Evidence
from fenchel.certificate.record import DOUBTFUL, Record
from fenchel.certificate.search.ascent import methods, offers
from fenchel.certificate.search.recovery import projected_points, recovered_points
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.vectors import finite, frozen
from fenchel.steps import Candidate, Scores

#: Relative gaps between which a better fit to the penalty's subdifferential is tried.
NEGLIGIBLE, WORTH_FITTING = 1e-9, 0.3
#: Passes that may leave the gap where it is, beside as many as there were before (or a tenth of all, if that is more).
PATIENCE = 200
#: The share of the gap that may be left to the dual point, the rest being the model's own.
OWN = 0.1


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
        return self.problem.mean(self.problem.loss.value(np.zeros(self.problem.shape[0]), self.problem.y))

    @property
    def evidence(self) -> Evidence:
        """What the certificate of the best model rests on."""
        return Evidence(self.problem, self.w, self.b, self.primal, self.best, self.feasible)

    def look_at(self, w: Vector, b: float, scores: Scores | None = None) -> PrimalBound:
        """Keep a model if it is the best so far; its scores are computed unless they are given."""
        primal = primal_bound(self.problem, w, b, scores)
        if primal.upper < self.primal.upper or not np.isfinite(self.primal.upper):
            self.w, self.b, self.primal = frozen(w), b, primal
        return primal

    def try_point(self, point: DualPoint) -> None:
        """Keep the bounds of a dual point where they are better."""
        self._keep(lower_bounds(self.problem, point, self.primal.upper))

    def _keep(self, found: list[LowerBound]) -> None:
        self.last = max(found, key=lambda bound: bound.lower, default=None)
        for bound in found:
            if bound.lower > self.best.lower:
                self.best = bound
            if bound.feasible and bound.lower > self.feasible.lower:
                self.feasible = bound

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
        bound = residual_bound(self.problem, point, candidate.w, primal, residual)
        self._keep([bound])
        gap = gap_between(primal.upper, bound.lower)
        return gap - (primal.value - bound.value) <= DOUBTFUL * gap <= DOUBTFUL * FAR * abs(primal.upper)

    def try_differences(self, u: Vector, how: str) -> bool:
        """The dual point that multipliers u of D w make by themselves; False where X is not the identity."""
        bound = denoising_bound(self.problem, u, how)
        if bound is not None:
            self._keep([bound])
        return bound is not None

    def try_gradient(self, z: Vector | None = None) -> None:
        """The gradient point at some scores; those of the best model by default."""
        self.try_point(gradient_point(self.problem, self.free, self.primal.z if z is None else z))

    def fit(self, tol: float) -> None:
        """Fit v(alpha) to the subdifferential at the best model: norms always, kinks until tol is reached."""
        if NEGLIGIBLE * abs(self.primal.value) < self.gap < WORTH_FITTING * abs(self.primal.value):
            start = gradient_point(self.problem, self.free, self.primal.z)
            for point in projected_points(self.problem, self.free, self.w, self.primal.z, start):
                self.try_point(point)
        if self.has_kinks and not self.reached(tol):
            for point in recovered_points(self.problem, self.free, self.w, self.primal.z):
                self.try_point(point)
                if self.reached(tol):
                    return

    def ascend(self, tol: float, most_passes: int, may_copy: bool = False) -> None:
        """Raise D until the gap is small enough, or nearly all of it is the model's own, or the passes are spent."""
        for problem, method in methods(self.problem, may_copy):
            if self.reached(tol):
                return
            progress, last = 0, self.gap
            for candidate, passes in offers(problem, method, self.w, self.b, self.best.alpha):
                left = self._try_candidate(candidate, last)
                if self.gap < 0.99 * last:
                    progress, last = passes, self.gap
                if self.reached(tol) or left <= OWN * self.gap:
                    return
                if passes >= most_passes or passes > 2 * progress + max(PATIENCE, most_passes // 10):
                    break

    def _try_candidate(self, candidate: Candidate, last: float) -> float:
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
