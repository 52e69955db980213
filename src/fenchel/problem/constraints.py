"""The sets of all samples of an interpolation: one for each, of any kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fenchel.data.products import EVALUATION
from fenchel.data.typing import Indices, Mask, Vector
from fenchel.problem.sets import Ball, Box, ClosedSet, ConvexSet, Foreign, Simplex
from fenchel.problem.vectors import row_lengths


@dataclass(frozen=True, eq=False)
class Constraints:
    """n sets in R^k, as parts of one kind each; scores and multipliers are arrays of shape (n, k)."""

    n: int
    k: int
    parts: tuple[tuple[Indices, ClosedSet], ...]

    @classmethod
    def of(cls, sets: ConvexSet | Sequence[ConvexSet], n: int, k: int) -> Constraints:
        """From one object for all samples, or a sequence of n objects."""
        if not isinstance(sets, Sequence):
            return cls(n, k, ((np.arange(n), _known(sets, "sets").spread(n, k)),))
        known = [_known(one, f"sets[{i}]") for i, one in enumerate(sets)]
        if len(known) != n:
            raise ValueError(f"there are {len(known)} sets, but X has {n} samples")
        groups: dict[object, list[int]] = {}
        for i, one in enumerate(known):
            kind = Box if one.ends is not None else type(one) if isinstance(one, Ball | Simplex) else i
            groups.setdefault(kind, []).append(i)
        return cls(n, k, tuple((np.array(rows), _stacked([known[i] for i in rows], k)) for rows in groups.values()))

    # What solvers use ---------------------------------------------------------------------------------------------

    def project(self, Z: Vector) -> Vector:
        """The nearest point of each set."""
        return self._each(Z, lambda part, z: part.project(z))

    def project_sample(self, i: int, z: Vector) -> Vector:
        """The point of the set of sample i nearest to z."""
        part, row = self._places[i]
        rows, one = self.parts[part]
        return one.project_row(row, z, len(rows))

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """The part of each sample, and its row there."""
        places = [(0, 0)] * self.n
        for part, (rows, _) in enumerate(self.parts):
            for row, i in enumerate(rows):
                places[i] = (part, row)
        return places

    def support(self, U: Vector) -> Vector:
        """sup { u_i.z : z in Y_i } for each sample."""
        return self._each(U, lambda part, u: part.support(u), flat=True)

    def within_domain(self, U: Vector) -> Vector:
        """U moved to where the supports are finite."""
        return self._each(U, lambda part, u: part.within_domain(u))

    @cached_property
    def ends(self) -> tuple[Vector, Vector] | None:
        """Lower and upper ends, each n x k, if all sets are intervals or boxes."""
        low, high = np.empty((self.n, self.k)), np.empty((self.n, self.k))
        for rows, part in self.parts:
            if part.ends is None:
                return None
            low[rows], high[rows] = part.ends
        return low, high

    def only(self, rows: Indices) -> Constraints:
        """Those of some samples; for intervals and boxes."""
        assert self.ends is not None
        low, high = self.ends
        return Constraints(len(rows), self.k, ((np.arange(len(rows)), Box(low[rows], high[rows])),))

    def shrunk(self, fraction: float) -> Constraints:
        """Sets inside these ones, away from their boundaries where they have an interior."""
        return Constraints(self.n, self.k, tuple((rows, part.shrunk(fraction, self.k)) for rows, part in self.parts))

    # What certificates use ----------------------------------------------------------------------------------------

    def support_size(self, U: Vector) -> Vector:
        """The sums of the absolute terms of the supports, which bound their change by relative changes of U."""
        return self._each(U, lambda part, u: part.support_size(u), flat=True)

    def distance_upper(self, Z: Vector, error: Vector) -> Vector:
        """A bound on the distance of each row to its set; the rows are within `error` (2-norm) of Z."""
        distance = row_lengths(Z - self.project(Z)) * (1.0 + EVALUATION)
        return np.asarray(distance) + error + self._each(Z, lambda part, z: part.projection_error(z), flat=True)

    def contains_ball(self, Z: Vector, radius: Vector) -> Mask:
        """Whether every point within `radius` of a row is in its set, as long as the set's equations hold."""
        inside = np.zeros(self.n, dtype=bool)
        for rows, part in self.parts:
            inside[rows] = part.contains_ball(Z[rows], radius[rows])
        return inside

    @cached_property
    def equations(self) -> tuple[sp.csr_array, Vector]:
        """(M, e): the scores in row-major order satisfy M z = e exactly: points, and the sums of simplices."""
        rows: list[Indices] = []
        values: list[Vector] = []
        for samples, part in self.parts:
            first = samples[:, None] * self.k + np.arange(self.k)
            if part.ends is not None:
                low, high = part.ends
                point = low == high
                rows.extend(first[point][:, None])
                values.append(low[point])
            elif isinstance(part, Simplex):
                rows.extend(first)
                values.append(np.broadcast_to(np.asarray(part.total), (len(samples),)))
        order = sorted(range(len(rows)), key=lambda row: int(rows[row][0]))  # as the samples are
        rows, value = [rows[row] for row in order], np.concatenate([*values, np.zeros(0)])[order]
        starts = np.cumsum([0, *map(len, rows)])
        indices = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        return sp.csr_array((np.ones(len(indices)), indices, starts), shape=(len(rows), self.n * self.k)), value

    @property
    def are_known(self) -> bool:
        """Whether all are of `fenchel.sets`: the domains of their supports are products."""
        return all(type(part) in (Box, Ball, Simplex) for _, part in self.parts)

    @cached_property
    def have_product_domains(self) -> bool:
        """Whether multipliers may be scaled entry by entry: one score each, known sets, or bounded ones."""
        if self.k == 1 or self.are_known:
            return True
        return all(np.all(np.isfinite(part.reach(len(rows), self.k))) for rows, part in self.parts)

    def _each(self, Z: Vector, f: Callable[[ClosedSet, Vector], Vector], flat: bool = False) -> Vector:
        if len(self.parts) == 1:
            return f(self.parts[0][1], Z)
        out = np.empty(self.n if flat else (self.n, self.k))
        for rows, part in self.parts:
            out[rows] = f(part, Z[rows])
        return out


def _known(one: object, name: str) -> ClosedSet:
    if isinstance(one, ClosedSet):
        return one
    if isinstance(one, type) or not isinstance(one, ConvexSet):
        hint = " (an instance, not the class)" if isinstance(one, type) else ""
        raise TypeError(
            f"{name} must be a set of fenchel.sets, such as Point(y), or have project and support{hint}; got {one!r}"
        )
    return Foreign(one)


def _stacked(parts: Sequence[ClosedSet], k: int) -> ClosedSet:
    """Sets of single samples as one object."""
    rows = [part.spread(1, k) for part in parts]
    if isinstance(first := rows[0], Ball):
        balls = [one for one in rows if isinstance(one, Ball)]
        return Ball(np.vstack([one.centre for one in balls]), np.concatenate([np.ravel(one.radius) for one in balls]))
    if isinstance(first, Simplex):
        simplices = [one for one in rows if isinstance(one, Simplex)]
        return Simplex(
            *(
                np.concatenate([np.ravel(x) for x in xs])
                for xs in zip(*((s.total, s.least) for s in simplices), strict=True)
            )
        )
    if first.ends is not None:
        low, high = (np.vstack(ends) for ends in zip(*(one.ends for one in rows if one.ends is not None), strict=True))
        return Box(low, high)
    return first
