"""Raising D itself, when no cheap dual point is good enough: D does not depend on w, so anyone's model can wait
for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fenchel._core import kernels
from fenchel.certificate.saddle import Overflow, Saddle
from fenchel.data.design import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import L2, ElasticNet

#: What an ascent offers from time to time: multipliers, a primal point that goes with them, and the passes made so far.
Offer = tuple[Vector, Vector, float, int]

STEPS_BETWEEN_OFFERS = 25


def ascend(problem: Problem, w: Vector, b: float, alpha: Vector) -> Iterator[Offer]:
    """Dual coordinate steps where a compiled kernel fits the problem, primal-dual steps elsewhere."""
    fits = isinstance(problem.penalty, L2 | ElasticNet) and problem.loss.kernel() is not None
    if fits and problem.design.by_rows:
        return coordinate_ascent(problem, alpha)
    return primal_dual_ascent(problem, w, b, alpha)


def coordinate_ascent(problem: Problem, alpha: Vector) -> Iterator[Offer]:
    """Dual coordinate ascent in random order (Shalev-Shwartz and Zhang 2013); offers get rarer as it goes on.

    A constant column is a quadratic on the intercept, lam/2 (b/c)^2. An unpenalised intercept is the limit of such
    quadratics around a centre b0 that follows b: the proximal-point method, whose steps keep the sum of the
    multipliers going to zero.
    """
    n, _ = problem.shape
    design, penalty, W = problem.design, problem.penalty, problem.total_weight
    mu, threshold = penalty.strong_convexity, getattr(penalty, "l1", 0.0) / penalty.strong_convexity
    stored = design.matrix.shape[1]
    norms = design.row_norms(2.0) ** 2 - design.constant**2
    rng = np.random.default_rng(0)
    alpha = alpha.copy()
    u = problem.dual_vector(alpha) / mu
    if design.constant:
        inverse_rho = design.constant**2 / mu
    else:
        inverse_rho = float(np.mean(norms)) / mu if problem.intercept else 0.0
    loss, centre, passes, wait = problem.loss.kernel(), 0.0, 0, 1
    assert loss is not None
    u = u[:stored].copy()
    while True:
        for _ in range(wait):
            b = centre + _mean(problem, alpha) * inverse_rho
            b = kernels.ascend(
                loss,
                design.lines,
                problem.y,
                problem.weights,
                norms,
                rng.permutation(n),
                alpha,
                u,
                mu,
                threshold,
                inverse_rho,
                W,
                b,
            )
            centre = b if problem.intercept else 0.0
        passes += wait
        wait = max(1, passes // 5)
        w = u - np.clip(u, -threshold, threshold)
        if design.constant:
            w, b = np.append(w, b / design.constant), 0.0
        yield alpha.copy(), w, b, passes


def primal_dual_ascent(problem: Problem, w: Vector, b: float, alpha: Vector) -> Iterator[Offer]:
    """Restarted primal-dual steps from the given point; two passes each."""
    saddle = Saddle(problem)
    state = saddle.start(w, b, alpha)
    while True:
        try:
            for _ in range(STEPS_BETWEEN_OFFERS):
                state = saddle.step(state)
        except Overflow:
            return
        w, b, alpha = saddle.candidate(state)
        yield alpha, w, b, 2 * state.total


def _mean(problem: Problem, alpha: Vector) -> float:
    return float(np.sum(problem.weights * alpha)) / problem.total_weight
