"""Dual points that fit the subdifferential of the penalty at w.

For a norm penalty the gradient point violates the constraint by the distance of w from the optimum, to first order.
Projecting the multipliers to where v(alpha) is a subgradient of R at w makes the violation second order.

A sample at a kink of the loss has an interval of subgradients, and an arbitrary one gives a poor bound. These
multipliers are chosen, the others fixed, so that v(alpha) is closest to the subdifferential of R at w: a
box-constrained least-squares problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from fenchel.certificate.bounds.rounding import DualPoint
from fenchel.certificate.bounds.unpenalised import FreeDirections, move_inside
from fenchel.data import limits
from fenchel.data.limits import is_factorable
from fenchel.data.typing import Mask, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import Subgradients
from fenchel.problem.penalties.base import NormPenalty


@dataclass(frozen=True)
class RecoveryTuning:
    """Dual points that are tried.

    `python -m benchmarks.tuning all certificate.search.recovery`: with every second of `windows` the gap is 37 times as
    large, in 1.27 of the time; with twice as many the time is 1.15. Without the middle one of `thresholds` the time is
    0.93, with two more 1.09, and gaps are the same; but weights off by 1e-6 have gaps 1.3 times as large without it.
    """

    windows: tuple[float, ...] = (1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # distance to a kink, relative to scores
    thresholds: tuple[float, ...] = (0.0, 1e-5, 1e-3)  # relative size up to which a weight counts as zero


TUNING = RecoveryTuning()
#: The most iterations of least squares in a box.
ITERATIONS = 200


def projected_points(
    problem: Problem, free: FreeDirections, w: Vector, z: Vector, start: DualPoint
) -> Iterator[DualPoint]:
    """The gradient point moved to Q'v(alpha) = Q'g for the subgradients g of R at w (see `Subgradients.normals`).

    On the support of w these are the signs. The support is taken at a few thresholds.
    """
    if not isinstance(problem.penalty, NormPenalty):
        return
    n, _ = problem.shape
    size = weight_size(w, z)
    seen = -1
    for threshold in TUNING.thresholds:
        target = problem.penalty.subgradients(w, threshold * size)
        normals = None if target is None else target.normals()
        if target is None or normals is None or normals.shape[1] == seen:
            continue
        cost, most = n * normals.shape[1] * (normals.shape[1] + 10), limits.TUNING.block + problem.X.nnz
        if cost > 100 * most:
            return
        if cost > most:
            continue  # forming the equations costs more than a few passes
        seen = normals.shape[1]
        if seen == 0:
            return
        F = np.hstack([free.F, problem.X.times(normals)])
        goal = np.append(np.zeros(free.F.shape[1]), (normals.T @ target.point) * problem.total_weight)
        alpha = start.alpha
        for _ in range(3):
            alpha = move_inside(problem, alpha, F, goal)
        yield free.satisfy(problem, DualPoint(alpha, how="projected"))


def weight_size(w: Vector, z: Vector) -> float:
    """The scale for thresholds of weights: the largest |w_j|, or that divided by the spread of the scores."""
    largest, spread = float(np.abs(w).max(initial=0.0)), float(np.ptp(z))
    return max(largest, largest / spread) if spread > 0.0 else np.inf


def recovered_points(problem: Problem, free: FreeDirections, w: Vector, z: Vector) -> Iterator[DualPoint]:
    """Dual points for several windows around the kinks; the multipliers of samples in a window are free."""
    kinks = problem.loss.kinks(problem.y)
    if not kinks or not np.all(np.isfinite(z)):
        return
    if problem.penalty.subgradients(w, 0.0) is None:
        return
    distance = np.min([np.abs(z - kink) for kink in kinks], axis=0)
    scale = 1.0 + float(np.median(np.abs(z)))
    seen = -1
    for window in TUNING.windows:
        on_kink = (distance <= window * scale) & (problem.weights > 0)
        count = int(on_kink.sum())
        if count == seen:
            continue
        if not _is_solvable(problem.shape[1], count):
            return
        seen = count
        yield free.satisfy(problem, _fit(problem, free, w, z, on_kink, window))


def _fit(problem: Problem, free: FreeDirections, w: Vector, z: Vector, on_kink: Mask, window: float) -> DualPoint:
    """The least-squares choice of the multipliers on kinks."""
    alpha = -problem.loss.derivative(z, problem.y)
    which = np.flatnonzero(on_kink)
    low, high = _intervals(problem, z[which], which)
    alpha[which] = 0.5 * (low + high)
    if len(which):
        alpha[which] = _least_squares(problem, free, w, z, alpha, which, low, high, window)
    return DualPoint(alpha, how="least-squares recovery")


def _intervals(problem: Problem, z: Vector, which: NDArray[np.intp]) -> tuple[Vector, Vector]:
    """The multipliers -dphi at the kink nearest to each score."""
    y = problem.y[which]
    kinks = np.stack(problem.loss.kinks(y))
    nearest = kinks[np.argmin(np.abs(kinks - z), axis=0), np.arange(len(z))]
    beside = 1e-9 * (1.0 + np.abs(nearest))  # the kink itself may be rounded to either side
    return -problem.loss.derivative(nearest + beside, y), -problem.loss.derivative(nearest - beside, y)


def _least_squares(
    problem: Problem,
    free: FreeDirections,
    w: Vector,
    z: Vector,
    alpha: Vector,
    which: NDArray[np.intp],
    low: Vector,
    high: Vector,
    window: float,
) -> Vector:
    """min | v(alpha) - (point + directions u) |^2 over the free multipliers and u, each in its box.

    The equations of the unpenalised directions are extra rows. Unknowns are scaled by the size of their box.
    """
    target = problem.penalty.subgradients(w, window * weight_size(w, z))
    assert target is not None
    fixed = alpha.copy()
    fixed[which] = 0.0
    fraction = problem.weights[which] / problem.total_weight
    columns = problem.X.rows(which).T * fraction
    rhs = target.point - problem.dual_vector(fixed)
    keep, extra = _extra_columns(target, len(which))
    columns, rhs = columns[keep], rhs[keep]
    size = float(np.abs(columns).max(initial=0.0)) or 1.0
    equations = free.F[which].T * fraction
    equations_rhs = -free.F.T @ (problem.weights * fixed) / problem.total_weight
    weight = 10.0 * size / (np.abs(equations).max(axis=1, initial=0.0) + 1e-300)
    m = 0 if extra is None else extra.shape[1]
    A = np.vstack([columns, equations * weight[:, None]])
    if extra is not None and target.low is not None and target.high is not None:
        A = np.hstack([A, np.vstack([-extra, np.zeros((len(weight), m))])])
        low, high = np.append(low, target.low), np.append(high, target.high)
    scale = np.where(np.isfinite(high - low) & (high > low), high - low, 1.0)
    b = np.append(rhs, equations_rhs * weight)
    norm = float(np.abs(A * scale).max(initial=0.0)) or 1.0
    scaled, goal = A * scale / norm, b / norm
    if not (np.all(np.isfinite(scaled)) and np.linalg.norm(goal) < 1e100):
        return alpha[which]
    small = A.shape[1] <= 200
    fit = lsq_linear(
        scaled,
        goal,
        bounds=(low / scale, np.maximum(high / scale, low / scale + 1e-12)),
        method="bvls" if small else "trf",
        tol=1e-15,
        lsq_solver="exact",
        max_iter=ITERATIONS,
    )
    return np.asarray(np.clip(fit.x * scale, low, high)[: len(which)])


def _is_solvable(equations: int, unknowns: int) -> bool:
    """Whether least squares in a box are worth their work: a small matrix, and a factorisation in each iteration."""
    small = equations * unknowns <= limits.TUNING.block
    return small and is_factorable(unknowns, ITERATIONS * (equations + unknowns))


def _extra_columns(target: Subgradients, count: int) -> tuple[NDArray[np.intp], Vector | None]:
    """The rows to fit, and the dense directions of the subdifferential.

    If there are too many directions, the rows they touch are left out: there v may be anything in an interval, and the
    dual norm of the result decides.
    """
    d = len(target.point)
    everything = np.arange(d)
    if target.directions is None or target.directions.shape[1] == 0:
        return everything, None
    if _is_solvable(d, target.directions.shape[1] + count):
        return everything, target.dense_directions()
    return np.setdiff1d(everything, sp.coo_array(target.directions).coords[0]), None
