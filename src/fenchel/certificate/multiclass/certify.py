"""A bound on the suboptimality of a given matrix of weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.certify import search_plan
from fenchel.certificate.multiclass.judge import MulticlassJudge
from fenchel.data.convert import unmasked
from fenchel.data.typing import Vector, VectorLike
from fenchel.problem import MulticlassProblem


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def certify_matrix(
    problem: MulticlassProblem,
    B: ArrayLike,
    b: VectorLike = 0.0,
    alpha: ArrayLike | None = None,
    effort: str = "auto",
    tol: float | None = None,
) -> Certificate:
    """Certify B (k x d) and k intercepts against a multiclass problem; see `certify`."""
    plan = search_plan(effort, tol)
    (n, d), k = problem.shape, problem.n_classes
    B = _numbers(B, (k, d), "the weights", "a row for each class, a column for each column of X")
    b = _numbers(np.broadcast_to(b, k) if np.ndim(b) == 0 else b, (k,), "b", "one for each class")
    if np.any(b) and not problem.intercept:
        raise ValueError("b is not zero, but the problem has no intercept; state it with intercept=True")
    judge = MulticlassJudge(problem)
    judge.consider(B, b)
    if alpha is not None:
        judge.try_multipliers(_numbers(alpha, (n, k), "alpha", "a row for each sample"), how="given multipliers")
    judge.try_gradient()
    if np.isfinite(judge.primal.upper) and plan.passes and (np.isinf(problem.loss.smoothness) or plan.thorough):
        judge.ascend(plan.tol, plan.most_passes(problem.X.nnz * k))
    return judge.certificate(plan.tol)


def _numbers(values: ArrayLike, shape: tuple[int, ...], name: str, meaning: str) -> Vector:
    """A copy, checked for shape and finite entries; the certificate refers to it."""
    array = unmasked(values, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got entries of type {array.dtype}")
    array = np.array(array, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape} ({meaning}), got {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ValueError(
            f"{name} has {array.flat[bad[0]]} at position {np.unravel_index(bad[0], shape)}; "
            "only finite entries can be certified"
        )
    return array
