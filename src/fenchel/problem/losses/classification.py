"""Losses for labels y = -1 and +1. Below, m = y z is the margin and t = y a."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega, xlogy

from fenchel._core import CompiledLoss, kernels
from fenchel.data.typing import Vector
from fenchel.problem.losses.base import Loss, Piece
from fenchel.problem.vectors import inside, set_positive


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)), accurate in both tails; NumPy's exp is many times faster than scipy's expit."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


class MarginLoss(Loss):
    """A loss of the margin m = y z, with t = y a between 0 and a bound."""

    is_classification = True

    @property
    def bound(self) -> float:
        return 1.0

    def domain(self, y: Vector) -> tuple[Vector, Vector]:
        """0 <= t <= bound."""
        end = y * self.bound
        return np.where(y > 0, 0.0, end), np.where(y > 0, end, 0.0)


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """max(0, 1 - m): the support vector machine. -phi*(-a) = t on 0 <= t <= 1."""

    has_straight_parts = True
    lipschitz = 1.0

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - y * z)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.where(y * z < 1.0, -y, 0.0)

    def subdifferential(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        slope = self.derivative(z, y)
        kink = y * z == 1.0
        return np.where(kink, np.minimum(-y, 0.0), slope), np.where(kink, np.maximum(-y, 0.0), slope)

    def kinks(self, y: Vector) -> tuple[Vector, ...]:
        return (y,)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside((u * y >= -1.0) & (u * y <= 0.0), u * y)

    def pieces(self, y: Vector) -> tuple[Piece, ...]:
        """max { a (y - z) } over the domain."""
        return (Piece(y, *self.domain(y)),)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """1 - m - q (t' - t) = 0 gives t' = t + (1 - m) / q, clipped to [0, 1]."""
        return y * np.clip(a * y + (1.0 - y * z) / q, 0.0, 1.0)

    def kernel(self) -> CompiledLoss:
        return kernels.Hinge()


@dataclass(frozen=True)
class SmoothedHinge(MarginLoss):
    """The hinge with its kink replaced by a parabola of width gamma. -phi*(-a) = t - gamma a^2 / 2."""

    has_straight_parts = True
    gamma: float = 1.0
    lipschitz = 1.0

    def __post_init__(self) -> None:
        set_positive(self, "gamma")

    @property
    def smoothness(self) -> float:
        return 1.0 / self.gamma

    def value(self, z: Vector, y: Vector) -> Vector:
        slack = np.maximum(0.0, 1.0 - y * z)
        inner = np.minimum(slack, self.gamma)
        return np.asarray(inner * (inner / (2.0 * self.gamma)) + (slack - inner))

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -y * np.clip((1.0 - y * z) / self.gamma, 0.0, 1.0)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside((u * y >= -1.0) & (u * y <= 0.0), u * y + self.gamma * u * u / 2.0)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """1 - gamma t' - m - q (t' - t) = 0, clipped to [0, 1]."""
        return y * np.clip((1.0 - y * z + q * a * y) / (self.gamma + q), 0.0, 1.0)

    def kernel(self) -> CompiledLoss:
        return kernels.SmoothedHinge(self.gamma)


@dataclass(frozen=True)
class SquaredHinge(MarginLoss):
    """max(0, 1 - m)^2. -phi*(-a) = t - a^2 / 4 on t >= 0."""

    has_straight_parts = True
    bound = np.inf
    smoothness = 2.0

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside(u * y <= 0.0, u * y + u * u / 4.0)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """1 - t'/2 - m - q (t' - t) = 0, at least 0."""
        return y * np.maximum(0.0, (1.0 - y * z + q * a * y) / (0.5 + q))

    def kernel(self) -> CompiledLoss:
        return kernels.SquaredHinge()


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """log(1 + exp(-m)). -phi*(-a) = -t log t - (1 - t) log(1 - t) on 0 <= t <= 1."""

    smoothness = 0.25
    lipschitz = 1.0

    def value(self, z: Vector, y: Vector) -> Vector:
        m = y * z
        return np.log1p(np.exp(-np.abs(m))) + np.maximum(0.0, -m)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -y * sigmoid(-y * z)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        t = np.clip(-u * y, 0.0, 1.0)
        # 0 log 0 = 0 at both ends
        entropy = t * np.log(np.maximum(t, 1e-300)) + (1.0 - t) * np.log1p(-np.minimum(t, 1.0 - 2.0**-53))
        return inside(t == -u * y, entropy)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """With t' = sigmoid(-s) the equation is g(s) = s - m + q t - q sigmoid(-s) = 0, root in [m - q t, m - q t + q].

        g increases, convex left of 0 and concave right of it: Newton's method restricted to the root's side of 0
        converges from every start, from the second step on without overshooting.
        """
        base = y * z - q * a * y
        right = base + 0.5 * q > 0.0  # g(0) < 0
        low = np.where(right, np.maximum(base, 0.0), base)
        high = np.where(right, base + q, np.minimum(base + q, 0.0))
        s = np.clip(y * z, low, high)
        for _ in range(60):
            t = sigmoid(-s)
            step = np.clip(s - (s - base - q * t) / (1.0 + q * t * (1.0 - t)), low, high)
            done = np.abs(step - s) <= 4e-16 * (1.0 + np.abs(s))
            s = step
            if done.all():
                break
        return y * sigmoid(-s)

    def kernel(self) -> CompiledLoss:
        return kernels.Logistic()


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """exp(-m). -phi*(-a) = t - t log t on t >= 0. Differentiable, but neither smooth nor Lipschitz."""

    bound = np.inf

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.exp(-y * z)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return -y * np.exp(-y * z)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        t = np.maximum(-u * y, 0.0)
        return inside(u * y <= 0.0, xlogy(t, t) - t)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """-log t' - m - q (t' - t) = 0: p = q t' solves p + log p = log q - m + q t, Wright's omega function."""
        return np.asarray(y * wrightomega(np.log(q) - y * z + q * a * y) / q)

    def kernel(self) -> CompiledLoss:
        return kernels.Exponential()
