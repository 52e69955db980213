"""Closed convex sets with a projection and a support function: constraints on the scores of an interpolation.

Any object with `project` and `support` can be used instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.problem.vectors import set_positive


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set C, one per sample (along the first axis)."""

    def project(self, z: Vector) -> Vector:
        """The point of C nearest to z."""

    def support(self, u: Vector) -> Vector:
        """sup { u.z : z in C }, infinite where C is unbounded in the direction u."""


@dataclass(frozen=True, eq=False)
class Point:
    """{y}: exact interpolation of real targets."""

    y: ArrayLike

    def project(self, z: Vector) -> Vector:
        return np.broadcast_to(np.asarray(self.y, dtype=np.float64), z.shape).copy()

    def support(self, u: Vector) -> Vector:
        return np.asarray(u * np.asarray(self.y))


@dataclass(frozen=True, eq=False)
class HalfLine:
    """{z : sign z >= bound}: a margin constraint. sign is -1 or +1."""

    bound: Vector | float = 1.0
    sign: Vector | float = 1.0

    def project(self, z: Vector) -> Vector:
        return np.asarray(self.sign * np.maximum(self.sign * z, self.bound))

    def support(self, u: Vector) -> Vector:
        """-|u| bound if u points outwards (sign u <= 0), else infinite."""
        t = np.asarray(self.sign * u)
        return np.where(t <= 0, t * self.bound, np.inf)


@dataclass(frozen=True, eq=False)
class Interval:
    """[low, high], elementwise; either end may be infinite."""

    low: Vector | float
    high: Vector | float

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.low) > np.asarray(self.high)):
            raise ValueError("Interval: low must not exceed high")

    def project(self, z: Vector) -> Vector:
        return np.clip(z, self.low, self.high)

    def support(self, u: Vector) -> Vector:
        end = np.where(u > 0, self.high, self.low)
        return np.where(u == 0, 0.0, u * np.where(u == 0, 0.0, end))


@dataclass(frozen=True, eq=False)
class Box(Interval):
    """{z : low <= z <= high} in R^k, along the last axis; the support is a sum over coordinates."""

    def support(self, u: Vector) -> Vector:
        return np.asarray(super().support(u).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Ball:
    """{z : |z - centre|_2 <= radius} in R^k, along the last axis."""

    centre: Vector | float
    radius: float = 1.0

    def __post_init__(self) -> None:
        set_positive(self, "radius")

    def project(self, z: Vector) -> Vector:
        away = z - self.centre
        length = np.linalg.norm(away, axis=-1, keepdims=True)
        return np.asarray(self.centre + away * np.minimum(1.0, self.radius / np.where(length > 0, length, 1.0)))

    def support(self, u: Vector) -> Vector:
        return np.asarray((u * self.centre).sum(axis=-1) + self.radius * np.linalg.norm(u, axis=-1))


@dataclass(frozen=True)
class Simplex:
    """{z >= 0 : sum z = total} in R^k, along the last axis."""

    total: float = 1.0

    def __post_init__(self) -> None:
        set_positive(self, "total")

    def project(self, z: Vector) -> Vector:
        """max(z - theta, 0) with theta such that the sum is `total`, by sorting."""
        ordered = -np.sort(-z, axis=-1)
        excess = np.cumsum(ordered, axis=-1) - self.total
        count = np.arange(1, z.shape[-1] + 1)
        last = np.sum(ordered * count > excess, axis=-1, keepdims=True)
        threshold = np.take_along_axis(excess, last - 1, axis=-1) / last
        return np.asarray(np.maximum(z - threshold, 0.0))

    def support(self, u: Vector) -> Vector:
        return np.asarray(self.total * u.max(axis=-1))
