"""P and D of the iterates of an algorithm, epoch by epoch.

The trace of `solve` has the best model and the best bound so far; these curves have the last iterates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.certificate import Certificate, certify
from fenchel.data.typing import Vector
from fenchel.papers.datasets import Dataset
from fenchel.problem import Problem
from fenchel.problem.losses import Hinge, Loss, SmoothedHinge
from fenchel.problem.penalties import L2
from fenchel.solver import NotCertifiedWarning, Result, solve
from fenchel.steps import Candidate, Solver, Start


@dataclass(frozen=True)
class Curve:
    """One row per epoch, the first before any step: P(w), D(alpha) (nan without multipliers), test error."""

    epoch: Vector
    primal: Vector
    dual: Vector
    error: Vector

    @property
    def gap(self) -> Vector:
        """P(w) - D(alpha) of the iterates."""
        return self.primal - self.dual


def svm(dataset: Dataset, lam: float, gamma: float) -> Problem:
    """The paper's problem: hinge (gamma = 0) or smoothed hinge, L2, no intercept."""
    loss: Loss = SmoothedHinge(gamma) if gamma > 0 else Hinge()
    return Problem(dataset.X, dataset.y, loss, L2(lam))


def follow(
    problem: Problem,
    algorithm: Solver[Any],
    epochs: int,
    seed: int = 0,
    until: float = 0.0,
    dataset: Dataset | None = None,
    bound: Callable[[Problem, Candidate], float] | None = None,
) -> Curve:
    """Step an algorithm from zero, one pass over the data per step, and evaluate its last candidate.

    Parameters
    ----------
    until : float, default 0
        Stop at this duality gap of an iterate.
    dataset : Dataset, optional
        For test errors; nan without it.
    bound : callable, optional
        The lower bound of an iterate; D at its multipliers by default, nan without multipliers.
    """
    n, d = problem.shape
    problem = problem.replace(X=problem.X.using(1))  # sequential, as in the papers
    candidate = Candidate(np.zeros(d), 0.0, np.zeros(n))
    state = algorithm.begin(problem, Start(candidate.w, 0.0, np.zeros(n)), seed)
    rows: list[tuple[float, float, float]] = []
    for epoch in range(epochs + 1):
        if epoch:
            state = algorithm.step(state)
            candidate = algorithm.candidates(state)[-1]
        dual = _dual(problem, candidate) if bound is None else bound(problem, candidate)
        error = np.nan if dataset is None else zero_one(candidate.w, dataset)
        rows.append((problem.primal(candidate.w), dual, error))
        if rows[-1][0] - dual <= until:
            break
    primal, duals, errors = np.array(rows).T
    return Curve(np.arange(len(rows), dtype=np.float64), primal, duals, errors)


def _dual(problem: Problem, candidate: Candidate) -> float:
    return np.nan if candidate.alpha is None else problem.dual(candidate.alpha)


def zero_one(w: Vector, dataset: Dataset) -> float:
    """The fraction of the test set with the wrong sign."""
    return float(np.mean(np.where(dataset.X_test @ w > 0, 1.0, -1.0) != dataset.y_test))


def reference(problem: Problem, solver: str = "newton", tol: float = 1e-10, max_seconds: float = 60.0) -> Certificate:
    """The optimum, between `dual` and `primal`, to a relative gap `tol` if reached in time."""
    return solve_quietly(problem, solver, tol, max_seconds).certificate


def solve_quietly(problem: Problem, solver: str = "auto", tol: float = 1e-10, max_seconds: float = 60.0) -> Result:
    """`solve`, without a warning where `tol` is not reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        return solve(problem, solver=solver, tol=tol, max_seconds=max_seconds)


def certified_gap(problem: Problem, w: Vector) -> float:
    """A bound on (P(w) - P*) / P(w)."""
    return certify(problem, w).relative_gap
