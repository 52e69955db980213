"""certify: a bound on the suboptimality of any weights, from anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel.certificate.ascent import ascend
from fenchel.certificate.certificate import Certificate
from fenchel.certificate.consequences import Evidence
from fenchel.certificate.dual_point import LowerBound, gradient_point, lower_bounds, zero_bound
from fenchel.certificate.free import FreeDirections
from fenchel.certificate.recovery import projected_points, recovered_points
from fenchel.certificate.rounding import DualPoint, PrimalBound, primal_bound
from fenchel.data.design import UNIT_ROUNDOFF, Vector
from fenchel.data.target import as_vector
from fenchel.problem import Problem


@dataclass(frozen=True)
class Effort:
    """How long to look for a better dual point: the tolerance aimed at, and passes over the data for raising D."""

    tol: float
    recover: bool
    passes: int
    work: float  # entries of X visited in those passes, at least `passes` passes
    smooth_too: bool

    def most_passes(self, entries: int) -> int:
        """More passes over small data."""
        return int(max(self.passes, min(100 * self.passes, self.work / max(entries, 1))))


EFFORTS = {
    "low": Effort(tol=1e-4, recover=False, passes=0, work=0, smooth_too=False),
    "auto": Effort(tol=1e-4, recover=True, passes=300, work=1e8, smooth_too=False),
    "high": Effort(tol=1e-6, recover=True, passes=3000, work=1e9, smooth_too=True),
}

#: Relative gaps between which a better fit to the penalty's subdifferential is tried.
NEGLIGIBLE, WORTH_FITTING = 1e-9, 0.3


def certify_weights(
    problem: Problem, w: Any, b: float = 0.0, alpha: Any = None, effort: str = "auto", tol: float | None = None
) -> Certificate:
    """Certify weights against a problem; see `certify`."""
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, EFFORTS))}, got {effort!r}")
    if tol is not None and not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}")
    plan = replace(EFFORTS[effort], **({} if tol is None else {"tol": float(tol)}))
    w, b = _model(problem, w, b)
    search = _Search(problem, w, b)
    if alpha is not None:
        search.try_point(DualPoint(_multipliers(problem, alpha), how="given multipliers"), satisfy=True)
    gradient = gradient_point(problem, search.free, search.primal.z)
    search.try_point(gradient)
    kinks = bool(problem.loss.kinks(problem.y[:1]))
    if np.isfinite(search.primal.upper):
        search.project(gradient)
        if kinks and plan.recover:
            search.recover(plan)
        if (kinks or plan.smooth_too) and plan.passes:
            search.ascend(plan)
    return search.certificate(plan.tol)


class _Search:
    """The best lower bound so far, for one model."""

    def __init__(self, problem: Problem, w: Vector, b: float) -> None:
        self.problem, self.w, self.b = problem, w, b
        self.primal: PrimalBound = primal_bound(problem, w, b)
        self.free = FreeDirections.of(problem)
        self.best: LowerBound = zero_bound(problem)
        self.feasible: LowerBound = self.best

    @property
    def gap(self) -> float:
        return self.primal.upper - self.best.lower

    def enough(self, plan: Effort) -> bool:
        return self.gap <= plan.tol * abs(self.primal.value)

    def try_point(self, point: DualPoint, satisfy: bool = False) -> None:
        """Keep the bounds of a dual point where they are better."""
        if satisfy:
            point = self.free.satisfy(self.problem, point)
        for bound in lower_bounds(self.problem, point, self.primal.upper):
            if bound.lower > self.best.lower:
                self.best = bound
            if bound.feasible and bound.lower > self.feasible.lower:
                self.feasible = bound

    def project(self, start: DualPoint) -> None:
        """Fit v(alpha) to the subdifferential of a norm at w."""
        if NEGLIGIBLE * abs(self.primal.value) < self.gap < WORTH_FITTING * abs(self.primal.value):
            for point in projected_points(self.problem, self.free, self.w, start):
                self.try_point(point)

    def recover(self, plan: Effort) -> None:
        """Multipliers on the kinks by least squares."""
        for point in recovered_points(self.problem, self.free, self.w, self.primal.z):
            if self.enough(plan):
                return
            self.try_point(point)

    def ascend(self, plan: Effort) -> None:
        """Raise D until the gap is small enough, or nearly all of it is the model's own, or the passes are spent."""
        if self.enough(plan):
            return
        most = plan.most_passes(self.problem.design.nnz)
        for alpha, w, b, passes in ascend(self.problem, self.w, self.b, self.best.alpha):
            self.try_point(DualPoint(alpha, how="dual ascent"), satisfy=True)
            if self.enough(plan) or passes >= most:
                return
            left = primal_bound(self.problem, w, b).upper - self.best.lower
            if left <= 0.1 * self.gap:
                return

    def certificate(self, tol: float) -> Certificate:
        primal, bound = self.primal, self.best
        evidence = Evidence(self.problem, self.w, self.b, primal.z, primal.upper, bound, self.feasible)
        if not (np.isfinite(primal.upper) and np.isfinite(bound.lower)):
            return Certificate(
                primal.value, bound.value, np.inf, np.inf, np.inf, tol, bound.point.how, np.inf, evidence
            )
        gap = primal.upper - bound.lower
        gap += 2.0 * UNIT_ROUNDOFF * (abs(primal.upper) + abs(bound.lower))
        relative = gap / abs(primal.value) if primal.value else (np.inf if gap else 0.0)
        rounding = max(0.0, gap - (primal.value - bound.value))
        return Certificate(
            primal.value, bound.value, gap, relative, rounding, tol, bound.point.how, evidence.radius, evidence
        )


def _model(problem: Problem, w: Any, b: float) -> tuple[Vector, float]:
    d = problem.shape[1]
    w = np.asarray(w)
    if w.dtype.kind not in "fiub":
        raise ValueError(f"w must be numbers, got entries of type {w.dtype}")
    w = np.ascontiguousarray(w, dtype=np.float64)
    if w.shape != (d,):
        raise ValueError(f"w must be a vector of {d} weights (the columns of X), got shape {w.shape}")
    bad = np.flatnonzero(~np.isfinite(w))
    if bad.size:
        raise ValueError(f"w has {w[bad[0]]} at position {bad[0]}; a model with such a weight cannot be certified")
    if np.ndim(b) != 0 or not np.isfinite(b):
        raise ValueError(f"b must be a finite number, got {b!r}")
    if b != 0.0 and not problem.intercept:
        raise ValueError(f"b is {b:g}, but the problem has no intercept; state it with intercept=True")
    return w, float(b)


def _multipliers(problem: Problem, alpha: Any) -> Vector:
    return as_vector(alpha, problem.shape[0], "alpha")
