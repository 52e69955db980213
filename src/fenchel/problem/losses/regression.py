"""Losses for real targets, functions of the residual r = z - y."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledLoss, kernels
from fenchel.data.typing import Vector
from fenchel.problem.losses.base import Loss, Piece
from fenchel.problem.vectors import inside, set_nonnegative, set_number, set_positive, soft


class ResidualLoss(Loss):
    """A loss of the residual, with -bound <= a <= bound."""

    @property
    def unit(self) -> float:
        return 0.0

    @property
    def bound(self) -> float:
        return np.inf

    def domain(self, y: Vector) -> tuple[Vector, Vector]:
        return np.broadcast_to(-self.bound, y.shape), np.broadcast_to(self.bound, y.shape)


@dataclass(frozen=True)
class Squared(ResidualLoss):
    """r^2 / 2. -phi*(-a) = y a - a^2 / 2."""

    quadratic = True
    smoothness = 1.0

    def value(self, z: Vector, y: Vector) -> Vector:
        return (z - y) ** 2 / 2.0

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return z - y

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return u * y + u * u / 2.0

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """y - a' - z - q (a' - a) = 0."""
        return (y - z + q * a) / (1.0 + q)

    def kernel(self) -> CompiledLoss:
        return kernels.Squared()


@dataclass(frozen=True)
class Pinball(Loss):
    """tau (y - z)+ + (1 - tau)(z - y)+: the tau-quantile. -phi*(-a) = y a on tau - 1 <= a <= tau."""

    has_straight_parts = True
    unit = 0.0
    tau: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 < set_number(self, "tau") < 1.0:
            raise ValueError(f"Pinball: tau must lie strictly between 0 and 1, got {self.tau!r}")

    @property
    def lipschitz(self) -> float:
        return max(self.tau, 1.0 - self.tau)

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.where(y > z, self.tau * (y - z), (1.0 - self.tau) * (z - y))

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.where(z < y, -self.tau, np.where(z > y, 1.0 - self.tau, 0.0))

    def subdifferential(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        return np.where(z > y, 1.0 - self.tau, -self.tau), np.where(z < y, -self.tau, 1.0 - self.tau)

    def kinks(self, y: Vector) -> tuple[Vector, ...]:
        return (y,)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside((-self.tau <= u) & (u <= 1.0 - self.tau), u * y)

    def domain(self, y: Vector) -> tuple[Vector, Vector]:
        return np.broadcast_to(self.tau - 1.0, y.shape), np.broadcast_to(self.tau, y.shape)

    def pieces(self, y: Vector) -> tuple[Piece, ...]:
        """max { a (y - z) } over the domain."""
        return (Piece(y, *self.domain(y)),)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """y - z - q (a' - a) = 0, clipped to [tau - 1, tau]."""
        return np.clip(a + (y - z) / q, self.tau - 1.0, self.tau)

    def kernel(self) -> CompiledLoss:
        return kernels.Pinball(self.tau)


class InsensitiveLoss(ResidualLoss):
    """max(0, |r| - epsilon). -phi*(-a) = y a - epsilon |a| on |a| <= 1."""

    has_straight_parts = True
    bound = 1.0
    lipschitz = 1.0

    @property
    def epsilon(self) -> float:
        return 0.0

    @property
    def unit(self) -> float:
        return self.epsilon

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, np.abs(z - y) - self.epsilon)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.sign(soft(z - y, self.epsilon))

    def subdifferential(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        r = z - y
        left = np.where(r > self.epsilon, 1.0, np.where(r > -self.epsilon, 0.0, -1.0))
        right = np.where(r < -self.epsilon, -1.0, np.where(r < self.epsilon, 0.0, 1.0))
        return left, right

    def kinks(self, y: Vector) -> tuple[Vector, ...]:
        return (y - self.epsilon, y + self.epsilon) if self.epsilon else (y,)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside(np.abs(u) <= 1.0, u * y + self.epsilon * np.abs(u))

    def pieces(self, y: Vector) -> tuple[Piece, ...]:
        """(y - epsilon - z)+ and (z - y - epsilon)+; together if epsilon is 0."""
        one, none = np.ones_like(y), np.zeros_like(y)
        if not self.epsilon:
            return (Piece(y, -one, one),)
        return (Piece(y - self.epsilon, none, one), Piece(y + self.epsilon, -one, none))

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """y - epsilon sign(a') - z - q (a' - a) = 0, clipped to [-1, 1]."""
        return np.clip(soft(a * q + (y - z), self.epsilon) / q, -1.0, 1.0)

    def kernel(self) -> CompiledLoss:
        return kernels.EpsilonInsensitive(self.epsilon)


@dataclass(frozen=True)
class EpsilonInsensitive(InsensitiveLoss):
    """max(0, |r| - epsilon): support vector regression. -phi*(-a) = y a - epsilon |a| on |a| <= 1."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        set_nonnegative(self, "epsilon")


@dataclass(frozen=True)
class Absolute(InsensitiveLoss):
    """|r|: the median. -phi*(-a) = y a on |a| <= 1."""


@dataclass(frozen=True)
class SquaredEpsilonInsensitive(ResidualLoss):
    """max(0, |r| - epsilon)^2. -phi*(-a) = y a - epsilon |a| - a^2 / 4."""

    has_straight_parts = True
    epsilon: float = 0.1
    smoothness = 2.0

    def __post_init__(self) -> None:
        set_nonnegative(self, "epsilon")

    @property
    def unit(self) -> float:
        return self.epsilon

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0.0, np.abs(z - y) - self.epsilon) ** 2

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return 2.0 * soft(z - y, self.epsilon)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return u * y + self.epsilon * np.abs(u) + u * u / 4.0

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """y - epsilon sign(a') - a'/2 - z - q (a' - a) = 0."""
        return soft(q * a + (y - z), self.epsilon) / (0.5 + q)

    def kernel(self) -> CompiledLoss:
        return kernels.SquaredEpsilonInsensitive(self.epsilon)


@dataclass(frozen=True)
class Huber(ResidualLoss):
    """r^2 / 2 up to |r| = delta, then delta |r| - delta^2 / 2. -phi*(-a) = y a - a^2 / 2 on |a| <= delta."""

    has_straight_parts = True
    delta: float = 1.35
    smoothness = 1.0

    def __post_init__(self) -> None:
        set_positive(self, "delta")

    @property
    def bound(self) -> float:
        return self.delta

    @property
    def lipschitz(self) -> float:
        return self.delta

    def value(self, z: Vector, y: Vector) -> Vector:
        r = np.abs(z - y)
        inner = np.minimum(r, self.delta)
        return inner * (r - inner / 2.0)

    def derivative(self, z: Vector, y: Vector) -> Vector:
        return np.clip(z - y, -self.delta, self.delta)

    def conjugate(self, u: Vector, y: Vector) -> Vector:
        return inside(np.abs(u) <= self.delta, u * y + u * u / 2.0)

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """y - a' - z - q (a' - a) = 0, clipped to [-delta, delta]."""
        return np.clip((y - z + q * a) / (1.0 + q), -self.delta, self.delta)

    def kernel(self) -> CompiledLoss:
        return kernels.Huber(self.delta)
