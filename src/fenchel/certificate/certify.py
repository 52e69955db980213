"""certify: a bound on the suboptimality of given weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.judge import Judge
from fenchel.data.convert import unmasked
from fenchel.data.target import as_vector
from fenchel.data.typing import Vector
from fenchel.problem import Problem


@dataclass(frozen=True)
class Effort:
    """Limits of the search for a better dual point; `python -m benchmarks.certify` shows their cost.

    The runs that set the values are not recorded.
    """

    tol: float
    recover: bool  # fit the multipliers at kinks by least squares
    passes: int  # of dual ascent, or
    work: float  # entries of X they may read, if that allows more passes
    thorough: bool  # dual ascent for smooth losses as well; copy data stored by columns if that helps
    overhead: int = 30_000  # of a pass, in entries

    def most_passes(self, entries: int) -> int:
        """The largest number of passes over X with this many entries."""
        return int(max(self.passes, self.work / (entries + self.overhead)))


EFFORTS = {
    "low": Effort(tol=1e-4, recover=False, passes=0, work=0, thorough=False),
    "auto": Effort(tol=1e-4, recover=True, passes=300, work=6e7, thorough=False),
    "high": Effort(tol=1e-6, recover=True, passes=3000, work=1e9, thorough=True),
}


def search_plan(effort: str, tol: float | None) -> Effort:
    """The effort of that name, with `tol` if given."""
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, EFFORTS))}, got {effort!r}")
    if tol is not None and not (isinstance(tol, int | float | np.number) and tol > 0):
        raise ValueError(f"tol must be positive, got {tol!r}")
    return EFFORTS[effort] if tol is None else replace(EFFORTS[effort], tol=float(tol))


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def certify_weights(
    problem: Problem, w: Any, b: float = 0.0, alpha: Any = None, effort: str = "auto", tol: float | None = None
) -> Certificate:
    """Certify weights against a problem; see `certify`."""
    plan = search_plan(effort, tol)
    w, b = _model(problem, w, b)
    judge = Judge(problem)
    judge.consider(w, b)
    if alpha is not None:
        judge.try_multipliers(as_vector(alpha, problem.shape[0], "alpha"), how="given multipliers")
    judge.try_gradient()
    if np.isfinite(judge.primal.upper):
        judge.fit(plan.tol if plan.recover else np.inf)
        # the multipliers u of D w may not be unique, as those of a loss with kinks: the gradient does not give them
        if (judge.has_kinks or problem.penalty.analysis is not None or plan.thorough) and plan.passes:
            judge.ascend(plan.tol, plan.most_passes(problem.X.nnz), may_copy=plan.thorough)
    return judge.certificate(plan.tol)


def _model(problem: Problem, w: Any, b: float) -> tuple[Vector, float]:
    d = problem.shape[1]
    w = unmasked(w, "w")
    if w.dtype.kind not in "fiub":
        raise ValueError(f"w must be numbers, got entries of type {w.dtype}")
    w = np.array(w, dtype=np.float64)  # a copy: the certificate refers to it
    if w.shape != (d,):
        raise ValueError(f"w must be a vector of {d} weights (the columns of X), got shape {w.shape}")
    bad = np.flatnonzero(~np.isfinite(w))
    if bad.size:
        raise ValueError(f"w has {w[bad[0]]} at position {bad[0]}; only finite weights can be certified")
    if not (isinstance(b, int | float | np.number) and np.isfinite(b)):
        raise ValueError(f"b must be a finite number, got {b!r}")
    if b != 0.0 and not problem.intercept:
        raise ValueError(f"b is {b:g}, but the problem has no intercept; state it with intercept=True")
    return w, float(b)
