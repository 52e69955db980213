"""Constructions of a lower bound from a model, for comparison (section 5.2 of Duenner, Forte, Takac and Jaggi 2016).

Each starts from alpha_i = -phi'(z_i) and its v. If R* is finite (L2, elastic net), D(alpha) is a bound. For a norm,
R*(v) is infinite unless Om*(v) <= lam, and there are two remedies; p = min(P(w), P(0)), m the least mean loss:

    rescaling      theta alpha with the best theta for which Om*(theta v) <= lam (Mairal 2010)
    Lipschitzing   R restricted to R <= p - m, where all optima lie: R*(v) becomes ((p - m) / lam) max(0, Om*(v) - lam)

Rescaling is never worse. With s = Om*(v) / lam > 1 and g(theta) = -mean phi*(-theta alpha), concave with g(0) = m, it
gives at least g(1 / s) >= (g(1) + (s - 1) m) / s = (l + (s - 1) p) / s, where l = g(1) - (s - 1)(p - m) is what
Lipschitzing gives; and l <= P* <= p. A certificate uses the better one, or that of a better alpha. For a penalty that
is neither a norm nor strongly convex, R restricted to R <= p - m has a finite conjugate as well (`Lipschitzed`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.certificate.bounds.dual_point import (
    LowerBound,
    finite,
    finite_conjugate,
    gradient_point,
    lipschitzed,
    lower_bounds,
    rescaled,
)
from fenchel.certificate.bounds.rounding import DOWN, dual_bound, gap_between
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.base import NormPenalty


@dataclass(frozen=True)
class Construction:
    """The bounds of one construction.

    Attributes
    ----------
    dual : float
        A lower bound on the objective of every model.
    gap : float
        A bound on primal - optimum, rounding included.
    relative_gap : float
        gap / |primal|.
    """

    dual: float
    gap: float
    relative_gap: float


@np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
def constructions(problem: Problem, z: Vector, primal: float, primal_upper: float) -> dict[str, Construction]:
    """The constructions by name: "rescaling" and "Lipschitzing" for a norm, "conjugate" for a finite R* or none, for
    other penalties "Lipschitzing".
    """
    point = gradient_point(problem, FreeDirections.of(problem), z)
    bound = dual_bound(problem, point)
    if problem.penalty.is_zero:
        found = dict(zip(["conjugate"], lower_bounds(problem, point, primal_upper), strict=False))
    elif isinstance(problem.penalty, NormPenalty):
        norm = problem.penalty.dual_norm_upper(bound.v, bound.error)
        if not norm >= 0.0:  # not a number: it overflowed
            return dict.fromkeys(("rescaling", "Lipschitzing"), Construction(-np.inf, np.inf, np.inf))
        largest = problem.penalty.lam / norm * DOWN if norm > 0.0 else 1.0
        found = {
            "rescaling": rescaled(problem, bound, largest),
            "Lipschitzing": lipschitzed(problem, bound, norm, primal_upper),
        }
    else:
        name = "conjugate" if problem.penalty.strong_convexity > 0.0 else "Lipschitzing"
        found = {name: finite(problem, bound, finite_conjugate(problem, primal_upper))}
    return {name: _construction(lower, primal, primal_upper) for name, lower in found.items()}


def _construction(found: LowerBound, primal: float, primal_upper: float) -> Construction:
    lower = found.lower if np.isfinite(found.lower) else -np.inf
    gap = gap_between(primal_upper, lower) if np.isfinite(primal_upper + lower) else np.inf
    return Construction(found.value, gap, gap / abs(primal) if primal else (np.inf if gap else 0.0))
