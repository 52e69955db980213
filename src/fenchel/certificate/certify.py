"""certify: a bound on the suboptimality of given weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.judge import judge_of
from fenchel.data.convert import as_vector, unmasked
from fenchel.data.typing import Vector
from fenchel.problem import Statement
from fenchel.problem.checks import shown
from fenchel.problem.statement import Shape


@dataclass(frozen=True)
class Effort:
    """Limits of the search for a better dual point; `python -m benchmarks.certify` shows their cost.

    `fl.certify(problem, w, effort=effort)` of 2000 x 100 normal numbers, the hinge loss, L2(1e-2) and the weights of
    `fl.solve(problem, tol=0.1)`: a relative gap of 0.35 in 1.5 ms with "low", of 0.0086 in 31 ms with "auto" and in 72
    ms with "high"; for the logistic loss 2.1e-4 in 0.9 ms, the same in 0.4 ms, and 2.1e-5 in 5.9 ms.
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
        raise ValueError(f"tol must be positive, got {shown(tol)}")
    return EFFORTS[effort] if tol is None else replace(EFFORTS[effort], tol=float(tol))


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def certify_weights(
    problem: Statement, w: Any, b: Any = 0.0, alpha: Any = None, effort: str = "auto", tol: float | None = None
) -> Certificate:
    """Certify weights against a problem of any kind; see `certify`."""
    plan = search_plan(effort, tol)
    weights, intercept, multipliers = problem.shapes
    w = _numbers(w, weights, "w", problem.scored)
    b = _intercept(b, intercept, problem.scored)
    if np.any(b) and not problem.intercept:
        raise ValueError(f"b is {b}, but the problem has no intercept; state it with intercept=True")
    judge = judge_of(problem)
    judge.consider(w, b)
    if alpha is not None:
        alpha = alpha if len(multipliers) > 1 else as_vector(alpha, problem.shape[0], "alpha")
        judge.try_multipliers(_numbers(alpha, multipliers, "alpha", problem.scored), how="given multipliers")
    judge.try_gradient()
    if np.isfinite(judge.primal.upper):
        judge.fit(plan.tol if plan.recover else np.inf)
        if plan.passes and (plan.thorough or not judge.gradient_is_tight):
            passes = plan.most_passes(problem.X.nnz * int(np.prod(multipliers[1:])))
            judge.ascend(plan.tol, passes, may_copy=plan.thorough)
    return judge.certificate(plan.tol)


def _intercept(b: Any, shape: Shape, scored: str) -> Any:
    """One number (or an array of one, as scikit-learn's `intercept_`), or one for each output."""
    if not shape:
        number = b.item() if isinstance(b, np.ndarray | np.generic) and b.size == 1 else b
        if isinstance(number, int | float | np.number) and np.isfinite(number):
            return float(number)
        got = f"an array of shape {b.shape}" if isinstance(b, np.ndarray) and b.size != 1 else repr(number)
        raise ValueError(f"b must be one finite number, got {got}")
    return _numbers(np.broadcast_to(b, shape) if np.ndim(b) == 0 else b, shape, "b", scored)


def _expected(name: str, shape: Shape, scored: str) -> str:
    """The array that is asked for, in words."""
    if len(shape) == 1:
        entries = {"w": "weights (the columns of X)", "b": f"intercepts, one for each {scored}"}
        return f"a vector of {shape[0]} {entries.get(name, 'multipliers, one for each sample')}"
    rows = {"w": f"a row of weights for each {scored}"}
    return f"a matrix of shape {shape}: {rows.get(name, f'a row for each sample, a column for each {scored}')}"


def _numbers(values: Any, shape: Shape, name: str, scored: str) -> Vector:
    """Our own copy, finite and of the right shape: what is proven of it must stay true of it."""
    array = unmasked(values, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got entries of type {array.dtype}")
    array = np.array(array, dtype=np.float64)
    if array.shape != shape:
        flat = f"; pass {name}.ravel()" if array.shape == (1, *shape) else ""
        raise ValueError(f"{name} must be {_expected(name, shape, scored)}, got shape {array.shape}{flat}")
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = tuple(map(int, bad[0]))
        where = place if len(shape) > 1 else place[0]
        raise ValueError(f"{name} has {array[place]} at position {where}; such a model cannot be certified")
    return array
