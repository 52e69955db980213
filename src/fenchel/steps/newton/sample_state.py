"""Some samples of a problem: their scores, and how their multipliers respond to them.

For a smooth loss a(z) = -phi'(z), with h = phi''(z). A loss of straight pieces (hinge, absolute, ...) is smoothed
around a centre c: -a(z) is the derivative of psi(z) = max_a -z a - phi*(-a) - tau (a - c)^2 / 2, whose second
derivative h is 1 / tau for the samples between two pieces, and zero for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem


@dataclass
class Sheet:
    """Rows of the data, with everything that is known of each."""

    problem: Problem
    loss: kernels.Loss
    rows: NDArray[np.int64]
    z: Vector
    c: Vector
    tau: float
    y: Vector = field(init=False)
    s: Vector = field(init=False)
    a: Vector = field(init=False)
    h: Vector = field(init=False)
    loss_sum: float = field(init=False)
    gap_sum: float = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        whole = len(self.rows) == len(problem.y)
        self.y, self.s = (v if whole else v[self.rows] for v in (problem.y, problem.weights))
        self.respond()

    @cached_property
    def domain(self) -> tuple[Vector, Vector]:
        """Where multipliers may lie."""
        low, high = self.problem.domain
        return (low, high) if len(self.rows) == len(low) else (low[self.rows], high[self.rows])

    @cached_property
    def loss_has_kinks(self) -> bool:
        return bool(self.problem.loss.kinks(self.y[:1]))

    def respond(self) -> None:
        """a, h and the sums of s phi and s (phi + phi* + a z) at the current scores."""
        self.a, self.h, self.loss_sum, self.gap_sum = self.loss.respond(self.z, self.y, self.s, self.c, self.tau)

    def slope(self, dz: Vector, t: float) -> tuple[float, float]:
        """First and second derivative of sum s psi(z + t dz)."""
        return self.loss.slope_along(self.z, dz, self.y, self.s, self.c, self.tau, t)

    def part(self, which: NDArray[np.intp]) -> Sheet:
        """Some of these samples."""
        return Sheet(self.problem, self.loss, self.rows[which], self.z[which], self.c[which], self.tau)

    def distance(self) -> Vector:
        """How far each score is from the nearest kink."""
        return np.asarray(np.min(np.abs(np.stack(self.problem.loss.kinks(self.y)) - self.z), axis=0))

    def gain(self) -> float:
        """sum s tau (a - c)^2 / 2: what is lost to the smoothing."""
        return 0.5 * self.tau * float(np.sum(self.s * (self.a - self.c) ** 2))
