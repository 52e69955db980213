"""The judge of a multiclass problem: the best matrix and the best lower bound seen so far."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.judge import Record, judge_of
from fenchel.certificate.multiclass.bounds import BlockPoint, balanced, lower_bounds, primal_bound, zero_bound
from fenchel.certificate.multiclass.consequences import MulticlassEvidence
from fenchel.certificate.multiclass.free_weights import FreeClasses
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses.multiclass import off_of
from fenchel.problem.vectors import frozen
from fenchel.steps import Scores


class MulticlassJudge(Record):
    """Evaluates models and dual points; keeps the best of each."""

    def __init__(self, problem: MulticlassProblem) -> None:
        (n, d), k = problem.shape, problem.n_classes
        self.problem = problem
        self.w, self.b = np.zeros((k, d)), np.zeros(k)
        self.primal = PrimalBound(np.inf, np.inf, np.zeros((n, k)))
        self.best = self.feasible = zero_bound(problem)

    @cached_property
    def at_zero(self) -> float:
        """The mean loss where all scores are 0: the same for every sample and class."""
        return float(self.problem.loss.value(np.zeros((1, self.problem.n_classes)), np.zeros(1, dtype=np.int64))[0])

    @property
    def evidence(self) -> MulticlassEvidence:
        """The evidence for the best model."""
        return MulticlassEvidence(
            self.problem, self.w, self.b, self.primal.z, self.primal.upper, self.best, self.feasible
        )

    def consider(self, w: Vector, b: Vector, scores: Scores | None = None) -> PrimalBound:
        """Keep a model if it is the best so far; `scores` is not used."""
        primal = primal_bound(self.problem, w, b)
        if primal.upper < self.primal.upper or not np.isfinite(self.primal.upper):
            self.w, self.b, self.primal = frozen(w), frozen(b), primal
        return primal

    @cached_property
    def free(self) -> FreeClasses:
        """What makes dual points feasible if there is no penalty."""
        return FreeClasses(self.problem)

    def _feasible(self, off: Vector, how: str) -> BlockPoint | None:
        """A dual point near this one that satisfies all equations."""
        if not self.problem.penalty.is_zero:
            return balanced(self.problem, off, how)
        found = self.free.balanced(off)
        return None if found is None else BlockPoint(*found, how)

    def try_point(self, point: BlockPoint | None) -> None:
        """Keep the bounds of a dual point where they are better."""
        self.keep(lower_bounds(self.problem, point, self.primal.upper) if point is not None else [])

    def try_multipliers(self, alpha: Vector, how: str, u: Vector | None = None) -> None:
        """Make any multipliers feasible and keep their bounds if better; u is not used."""
        self.try_point(self._feasible(off_of(alpha, self.problem.y), how))

    def try_gradient(self, z: Vector | None = None) -> None:
        """-alpha_i in the subdifferential at z (by default the best model's scores), at the best intercepts."""
        problem, Z = self.problem, self.primal.z if z is None else z
        if not np.all(np.isfinite(Z)):
            return
        if problem.intercept:
            Z = Z + problem.loss.best_intercepts(Z, problem.y, problem.weights)
        self.try_point(self._feasible(problem.loss.off_class(Z, problem.y), "gradient"))

    def fit(self, tol: float) -> None:
        """Nothing: no other point is known near a model."""

    @property
    def gradient_is_tight(self) -> bool:
        """Not where the loss has kinks."""
        return bool(np.isfinite(self.problem.loss.smoothness))


judge_of.register(MulticlassProblem, MulticlassJudge)
