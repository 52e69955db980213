"""Preconditioned conjugate gradients (Hestenes and Stiefel 1952; Saad 2003, Algorithm 9.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector

Operator = Callable[[Vector], Vector]


@dataclass(frozen=True)
class ConjugateGradientsTuning:
    """`python -m benchmarks.tuning steps.linear_algebra.conjugate_gradients steps 50 1000 --rows "^multiclass softmax
    lam=0.0001"`: 1.01 and 1.03; it bounds the time between two looks at the clock.
    """

    steps: int = 300  # at most, for each system


TUNING = ConjugateGradientsTuning()


def conjugate_gradients(
    hessian: Operator,
    precondition: Operator,
    g: Vector,
    max_steps: int | None = None,
    *,
    residual_goal: float | None = None,
    energy_goal: Callable[[float], float] = lambda first: 0.0,
) -> tuple[Vector, Vector, int]:
    """Solve H x = g approximately, for a positive definite H given by its products.

    Also ends if rounding makes d'H d or r'M r nonpositive.

    Parameters
    ----------
    hessian, precondition : callable
        x -> H x, and r -> M r for M about the inverse of H.
    g : array
        The right-hand side, of any shape; inner products are sums over all entries.
    max_steps : int, optional
        The largest number of products with H, by default `TUNING.steps`.
    residual_goal : float, optional
        End at |r|^2 <= residual_goal, before M is applied to that residual.
    energy_goal : callable, optional
        End at r'M r <= energy_goal(g'M g).

    Returns
    -------
    x, r : array
        The solution and its residual g - H x.
    steps : int
        The number of products with H.
    """
    x, r, steps, most = np.zeros_like(g), g, 0, TUNING.steps if max_steps is None else max_steps
    d = precondition(r)
    energy = float(np.vdot(r, d))
    goal = energy_goal(energy) if energy > 0.0 else 0.0
    while energy > goal and steps < most:
        steps += 1
        Hd = hessian(d)
        curvature = float(np.vdot(d, Hd))
        if not curvature > 0.0:
            break
        step = energy / curvature
        x, r = x + step * d, r - step * Hd
        if residual_goal is not None and not float(np.vdot(r, r)) > residual_goal:
            break
        q = precondition(r)
        energy, last = float(np.vdot(r, q)), energy
        d = q + (energy / last) * d
    return x, r, steps
