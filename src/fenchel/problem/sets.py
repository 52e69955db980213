"""Closed convex sets with a projection and a support function: constraints on the scores of an interpolation.

Any object with `project` and `support` can be used instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.products import EVALUATION
from fenchel.data.typing import Mask, Vector
from fenchel.problem.vectors import row_lengths


@runtime_checkable
class ConvexSet(Protocol):
    """A closed convex set C, one per sample (along the first axis)."""

    def project(self, z: Vector) -> Vector:
        """The point of C nearest to z."""

    def support(self, u: Vector) -> Vector:
        """sup { u.z : z in C }, infinite where C is unbounded in the direction u."""


class ClosedSet(ABC):
    """Sets along the first axis of arrays, and what a certificate needs to know of them beyond `ConvexSet`.

    The defaults hold for any closed convex sets whose projections and supports have a relative error below 256 units
    of rounding.
    """

    @abstractmethod
    def project(self, z: Vector) -> Vector:
        """The nearest point of each set."""

    @abstractmethod
    def support(self, u: Vector) -> Vector:
        """sup { u_i.z : z in C_i }, infinite where C_i is unbounded in the direction u_i."""

    @property
    def outputs(self) -> int | None:
        """k of sets in R^k, as far as the parameters tell: None if they do not."""
        return None

    @property
    def outputs_of_one(self) -> int:
        """k, of a set of one sample."""
        return self.outputs or 1

    @property
    def ends(self) -> tuple[Vector, Vector] | None:
        """Lower and upper ends, if the sets are intervals or boxes."""
        return None

    def spread(self, n: int, k: int) -> ClosedSet:
        """The same n sets with a row of k numbers for each."""
        return self

    def project_row(self, row: int, z: Vector, rows: int) -> Vector:
        """The nearest point of one of the sets, of which there are `rows`; here by projecting onto all of them."""
        Z = np.zeros((rows, len(z)))
        Z[row] = z
        return np.asarray(self.project(Z)[row])

    def within_domain(self, u: Vector) -> Vector:
        """u moved to where the support is finite."""
        return u

    def support_size(self, u: Vector) -> Vector:
        """The sum of the absolute terms of the support: relative changes t of all u_ij change it by t times this.

        In one dimension the support is homogeneous; in others |u_j z_j| <= |u_j| `reach`_j for all z in C. Where that
        is infinite, terms are those of the point nearest to 0.
        """
        size = np.abs(self.support(u)) + row_lengths(u) * row_lengths(self.project(np.zeros_like(u)))
        if u.shape[1] == 1:
            return np.asarray(size)
        with np.errstate(invalid="ignore"):
            terms = np.where(u == 0.0, 0.0, np.abs(u) * self.reach(*u.shape)).sum(axis=1)
        return np.asarray(np.where(np.isfinite(terms), np.maximum(size, terms), size))

    def reach(self, n: int, k: int) -> Vector:
        """max |z_j| over z in C_i, n x k; infinite where C_i is unbounded."""
        found = np.zeros((n, k))
        for j in range(k):
            for side in (-1.0, 1.0):
                axis = np.zeros((n, k))
                axis[:, j] = side
                found[:, j] = np.maximum(found[:, j], self.support(axis))
        return found * (1.0 + EVALUATION)

    def projection_error(self, z: Vector) -> Vector:
        """How far a computed projection may be from the set."""
        return EVALUATION * (row_lengths(z) + row_lengths(self.project(z))) + 1e-300

    def contains_ball(self, z: Vector, radius: Vector) -> Mask:
        """Whether z_i + y is in C_i for all |y|_2 <= radius_i, y along the affine hull of C_i; False if in doubt.

        Here by 2k points, the corners of a cross-polytope: if they are within r of C_i, and a ball of radius R is
        between them, one of radius R - r is in C_i. Projections of corners are off by no more than that of z_i and a
        rounding of their distance.
        """
        inside, k, off = np.ones(len(z), dtype=bool), z.shape[1], self.projection_error(z)
        reach = np.sqrt(k) * (radius + 4.0 * k * off) * (1.0 + 8.0 * k * EVALUATION)
        reach = reach + EVALUATION * np.abs(z).max(axis=1)
        for axis in range(k):
            for side in (-1.0, 1.0):
                corner = z.copy()
                corner[:, axis] += side * reach
                inside &= row_lengths(self.project(corner) - corner) <= off
        return inside

    def shrunk(self, part: float, k: int) -> ClosedSet:
        """Sets in R^k inside these, this part of their size away from the boundary.

        Here c + (1 - part) (C - c), c the mean of points of C in all directions of the axes.
        """
        return Shrunk(self, part)


@dataclass(frozen=True, eq=False)
class Shrunk(ClosedSet):
    """c_i + (1 - part) (C_i - c_i) for sets C_i, each with a point c_i inside."""

    of: ClosedSet
    part: float

    def _centres(self, shape: tuple[int, ...]) -> Vector:
        near = self.of.project(np.zeros(shape))
        far = 1.0 + np.abs(near).max(axis=1, keepdims=True)
        corners = [near + side * far * axis for axis in np.eye(shape[1]) for side in (-1.0, 1.0)]
        return np.asarray(np.mean([self.of.project(corner) for corner in corners], axis=0))

    def project(self, z: Vector) -> Vector:
        c = self._centres(z.shape)
        return np.asarray(c + (1.0 - self.part) * (self.of.project(c + (z - c) / (1.0 - self.part)) - c))

    def support(self, u: Vector) -> Vector:
        at = np.asarray((u * self._centres(u.shape)).sum(axis=1))
        return np.asarray(at + (1.0 - self.part) * (self.of.support(u) - at))

    def within_domain(self, u: Vector) -> Vector:
        return self.of.within_domain(u)


def _numbers(owner: object, *names: str) -> None:
    """Make parameters read-only float64 arrays (or floats), or raise."""
    for name in names:
        value = getattr(owner, name)
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{type(owner).__name__}: {name} must be numbers, got {value!r}") from None
        bad = np.argwhere(np.isnan(array))
        if bad.size:
            where = f" at position {tuple(map(int, bad[0]))}" if array.ndim else ""
            raise ValueError(f"{type(owner).__name__}: {name} is NaN{where}")
        array.flags.writeable = False
        object.__setattr__(owner, name, array if array.ndim else float(array))


def _finite(owner: object, *names: str) -> None:
    _numbers(owner, *names)
    for name in names:
        if not np.all(np.isfinite(getattr(owner, name))):
            raise ValueError(f"{type(owner).__name__}: {name} must be finite")


def _rows(values: ArrayLike, n: int, k: int, name: str) -> Vector:
    """Parameters as n rows of k numbers: one for all, one for each sample, a row for all samples, or all of them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return np.full((n, k), float(array))
    if array.ndim == 1 and len(array) == n:
        array = array[:, None]  # one for each sample
    if array.ndim > 2 or array.shape[-1] not in (1, k) or (array.ndim == 2 and array.shape[0] not in (1, n)):
        raise ValueError(f"{name} has shape {array.shape}, which does not fit {n} samples with {k} scores each")
    return np.ascontiguousarray(np.broadcast_to(array, (n, k)))


class _Ends(ClosedSet):
    """Sets given by their ends: intervals, and products of intervals."""

    @property
    def outputs(self) -> int | None:
        shapes = [np.shape(getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]
        return max((shape[1] for shape in shapes if len(shape) == 2), default=None)

    @property
    def outputs_of_one(self) -> int:
        """A vector has an entry for each score of the sample."""
        return max((np.shape(getattr(self, field.name)) or (1,))[-1] for field in fields(self))  # type: ignore[arg-type]

    def spread(self, n: int, k: int) -> Box:
        ends = self.ends
        assert ends is not None
        low, high = (_rows(end, n, k, type(self).__name__) for end in ends)
        return Box(low, high)


@dataclass(frozen=True, eq=False)
class Point(_Ends):
    """{y}: exact interpolation of real targets."""

    y: ArrayLike

    def __post_init__(self) -> None:
        _finite(self, "y")

    @property
    def ends(self) -> tuple[Vector, Vector]:
        y = np.asarray(self.y)
        return y, y

    def project(self, z: Vector) -> Vector:
        return np.broadcast_to(np.asarray(self.y, dtype=np.float64), z.shape).copy()

    def support(self, u: Vector) -> Vector:
        return np.asarray(u * np.asarray(self.y))


@dataclass(frozen=True, eq=False)
class HalfLine(_Ends):
    """{z : sign z >= bound}: a margin constraint. sign is -1 or +1."""

    bound: Vector | float = 1.0
    sign: Vector | float = 1.0

    def __post_init__(self) -> None:
        _finite(self, "bound", "sign")
        if np.any(np.abs(self.sign) != 1.0):
            raise ValueError("HalfLine: sign must be -1 or +1")

    @property
    def ends(self) -> tuple[Vector, Vector]:
        end, up = np.multiply(self.sign, self.bound), np.asarray(self.sign) > 0
        return np.where(up, end, -np.inf), np.where(up, np.inf, end)

    def project(self, z: Vector) -> Vector:
        return np.asarray(self.sign * np.maximum(self.sign * z, self.bound))

    def support(self, u: Vector) -> Vector:
        """-|u| bound if u points outwards (sign u <= 0), else infinite."""
        t = np.asarray(self.sign * u)
        return np.where(t <= 0, t * self.bound, np.inf)


@dataclass(frozen=True, eq=False)
class Interval(_Ends):
    """[low, high], elementwise; either end may be infinite."""

    low: Vector | float
    high: Vector | float

    def __post_init__(self) -> None:
        _numbers(self, "low", "high")
        low, high = np.asarray(self.low), np.asarray(self.high)
        try:
            empty = np.argwhere(np.atleast_1d((low > high) | (low == np.inf) | (high == -np.inf)))
        except ValueError:
            raise ValueError(f"{type(self).__name__}: low {low.shape} and high {high.shape} differ in shape") from None
        if empty.size:
            where = f" at position {tuple(map(int, empty[0]))}" if max(low.ndim, high.ndim) else ""
            raise ValueError(f"{type(self).__name__}: low must not exceed high{where}: the set would be empty")

    @property
    def ends(self) -> tuple[Vector, Vector]:
        return np.asarray(self.low), np.asarray(self.high)

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

    @property
    def outputs(self) -> int | None:
        return max((np.shape(end)[-1] for end in self.ends if np.ndim(end)), default=None)

    def project_row(self, row: int, z: Vector, rows: int) -> Vector:
        low, high = self.ends
        return np.clip(z, low[row], high[row])

    def within_domain(self, u: Vector) -> Vector:
        """u_j <= 0 where there is no upper end, u_j >= 0 where there is no lower one."""
        low = np.where(np.isfinite(self.low), -np.inf, 0.0)
        high = np.where(np.isfinite(self.high), np.inf, 0.0)
        return np.clip(u, low, high)

    def support_size(self, u: Vector) -> Vector:
        return np.asarray(np.abs(Interval.support(self, u)).sum(axis=-1))

    def projection_error(self, z: Vector) -> Vector:
        """Zero: each entry is that of z or an end."""
        return np.zeros(len(z))

    def contains_ball(self, z: Vector, radius: Vector) -> Mask:
        """Coordinates that are points have no room to move."""
        room = (radius * (1.0 + EVALUATION))[:, None] + EVALUATION * np.abs(z)
        inside = (z - room >= self.low) & (z + room <= self.high)
        return np.asarray(np.all(inside | (np.asarray(self.low) == np.asarray(self.high)), axis=1))

    def shrunk(self, part: float, k: int) -> Box:
        """Half-lines move as the narrowest interval does, and by no more than this part of 1 + |end|."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        with np.errstate(invalid="ignore"):
            room = 0.5 * (high - low)
        room = np.where(np.isinf(room), room[room > 0.0].min(initial=np.inf), room)
        up, down = (part * np.minimum(room, 1.0 + np.abs(np.where(np.isfinite(e), e, 0.0))) for e in (low, high))
        point = low == high
        return Box(np.where(point, low, low + up), np.where(point, high, high - down))


@dataclass(frozen=True, eq=False)
class Ball(ClosedSet):
    """{z : |z - centre|_2 <= radius} in R^k, along the last axis; radius may be one number for each sample."""

    centre: Vector | float
    radius: Vector | float = 1.0

    def __post_init__(self) -> None:
        _finite(self, "centre", "radius")
        if not np.all(np.asarray(self.radius) > 0.0):
            raise ValueError(f"Ball: radius must be a positive finite number, got {self.radius!r}")

    @property
    def _radii(self) -> Vector:
        return np.asarray(self.radius)[..., None] if np.ndim(self.radius) else np.asarray(self.radius)

    @property
    def outputs(self) -> int | None:
        return np.shape(self.centre)[-1] if np.ndim(self.centre) else None

    def spread(self, n: int, k: int) -> Ball:
        radius = np.broadcast_to(np.ravel(self.radius), (n,)) if np.size(self.radius) in (1, n) else None
        if radius is None:
            raise ValueError(f"Ball: radius has {np.size(self.radius)} entries, but there are {n} samples")
        return Ball(_rows(self.centre, n, k, "Ball: centre"), radius)

    def project(self, z: Vector) -> Vector:
        away = z - self.centre
        length = row_lengths(away)[..., None]
        return np.asarray(self.centre + away * np.minimum(1.0, self._radii / np.where(length > 0, length, 1.0)))

    def project_row(self, row: int, z: Vector, rows: int) -> Vector:
        return Ball(np.asarray(self.centre)[row], float(np.asarray(self.radius)[row])).project(z)

    def support(self, u: Vector) -> Vector:
        return np.asarray((u * self.centre).sum(axis=-1) + self.radius * row_lengths(u))

    def support_size(self, u: Vector) -> Vector:
        return np.asarray(np.abs(u * self.centre).sum(axis=-1) + self.radius * row_lengths(u))

    def contains_ball(self, z: Vector, radius: Vector) -> Mask:
        size = np.abs(z).sum(axis=-1) + np.abs(self.centre).sum(axis=-1)
        length = row_lengths(z - self.centre) + EVALUATION * size
        return np.asarray((length + radius) * (1.0 + EVALUATION) <= self.radius)

    def shrunk(self, part: float, k: int) -> Ball:
        return Ball(self.centre, (1.0 - part) * np.asarray(self.radius))


@dataclass(frozen=True, eq=False)
class Simplex(ClosedSet):
    """{z >= least : sum z = total} in R^k, along the last axis."""

    total: Vector | float = 1.0
    least: Vector | float = 0.0

    def __post_init__(self) -> None:
        _finite(self, "total", "least")
        if not np.all(np.asarray(self.total) > 0.0):
            raise ValueError(f"Simplex: total must be a positive finite number, got {self.total!r}")

    def spread(self, n: int, k: int) -> Self:
        parts = [np.broadcast_to(np.ravel(x), (n,)) for x in (self.total, self.least) if np.size(x) in (1, n)]
        if len(parts) < 2:
            raise ValueError(f"Simplex: total and least must have one entry, or one for each of {n} samples")
        if np.any(parts[0] < k * parts[1]):
            raise ValueError(f"Simplex: {k} entries of at least {self.least!r} add up to more than the total")
        return type(self)(*parts)

    @property
    def _columns(self) -> tuple[Vector, Vector]:
        total, least = ((np.asarray(x)[..., None] if np.ndim(x) else np.asarray(x)) for x in (self.total, self.least))
        return total, least

    def project(self, z: Vector) -> Vector:
        """max(z - theta, least) with theta such that the sum is `total`, by sorting."""
        total, least = self._columns
        ordered = -np.sort(-(z - least), axis=-1)
        excess = np.cumsum(ordered, axis=-1) - (total - z.shape[-1] * least)
        count = np.arange(1, z.shape[-1] + 1)
        last = np.maximum(np.sum(ordered * count > excess, axis=-1, keepdims=True), 1)
        threshold = np.take_along_axis(excess, last - 1, axis=-1) / last
        return np.asarray(np.maximum(z - least - threshold, 0.0) + least)

    def project_row(self, row: int, z: Vector, rows: int) -> Vector:
        return Simplex(float(np.asarray(self.total)[row]), float(np.asarray(self.least)[row])).project(z)

    def support(self, u: Vector) -> Vector:
        """least sum u + (total - k least) max u."""
        spare = np.asarray(self.total) - u.shape[-1] * np.asarray(self.least)
        return np.asarray(spare * u.max(axis=-1) + self.least * u.sum(axis=-1))

    def projection_error(self, z: Vector) -> Vector:
        k = z.shape[-1]
        size = np.abs(z).sum(axis=-1) + np.abs(self.total) + k * np.abs(self.least)
        return np.asarray(EVALUATION * k * size + 1e-300)

    def support_size(self, u: Vector) -> Vector:
        k = u.shape[-1]
        return np.asarray((np.abs(self.total) + 2 * k * np.abs(self.least)) * np.abs(u).max(axis=-1))

    def contains_ball(self, z: Vector, radius: Vector) -> Mask:
        """Moves that keep the sum: every entry must stay above the least."""
        room = radius * (1.0 + EVALUATION) + EVALUATION * np.abs(self.least)
        return np.asarray(np.all(z - EVALUATION * np.abs(z) >= (self.least + room)[:, None], axis=1))

    def shrunk(self, part: float, k: int) -> Simplex:
        return Simplex(self.total, (1.0 - part) * np.asarray(self.least) + part * np.asarray(self.total) / k)


@dataclass(frozen=True, eq=False)
class Foreign(ClosedSet):
    """An object with `project` and `support` that is no `ClosedSet`, for samples with k scores."""

    of: ConvexSet
    scalar: bool = False

    def spread(self, n: int, k: int) -> Foreign:
        return Foreign(self.of, scalar=k == 1)

    def project(self, z: Vector) -> Vector:
        inner = z[:, 0] if self.scalar else z
        found = self._checked(self.of.project(inner.copy()), inner.shape, "project").reshape(z.shape)
        if not np.all(np.isfinite(found)) and np.all(np.isfinite(z)):
            raise ValueError(f"project of {self.of!r} must return points of the set, got an infinite one")
        return found

    def support(self, u: Vector) -> Vector:
        inner = u[:, 0] if self.scalar else u
        return self._checked(self.of.support(inner.copy()), (len(u),), "support")

    def _checked(self, values: ArrayLike, shape: tuple[int, ...], name: str) -> Vector:
        array = np.asarray(values, dtype=np.float64)
        if array.shape != shape or np.any(np.isnan(array)):
            got = f"shape {array.shape}" if array.shape != shape else "NaN"
            raise ValueError(f"{name} of {self.of!r} must return numbers of shape {shape}, got {got}")
        return array
