"""The point of a polytope that is nearest to zero, by Wolfe's method (1976), with a QR factor that follows.

With rows a_r, and e_r of the free intercepts, the dual of the largest margin is

    minimise |A'q|   subject to   q >= 0,  sum_r q_r = 1,  sum_r q_r e_r = 0.

A corral is a set of rows for which the minimiser of |A'q| under the equations alone has q > 0. There a_r.w + e_r.b is
|w|^2 for each of its rows, w = A'q; if it is at least that for all rows, w is the nearest point. Else the row r with
the least value enters: it does not depend on the rows [a, e, 1] of the corral, since all combinations of these with a
sum of coefficients of 1 have the value |w|^2. On the way to the minimiser of the larger set rows whose multipliers
would be negative leave, until none would. |w| falls with every corral, so that none comes back, and the last one is
exact: no step depends on how thin the margin is.

The equations are eliminated by a few rows of the corral, the base: with [e_r, 1] = sum_s C_rs [e_s, 1] over the base,

    A'q = A_base'h + sum_r q_r (a_r - sum_s C_rs a_s),    q_base = h - C'q,    [e_s, 1]'h = (0, ..., 0, 1),

a problem of least squares without constraints, in differences of samples, whose QR factor gains or loses a column with
a row. If zero is in the polytope, w vanishes, and q proves that no model separates the samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import qr, qr_delete, qr_insert, solve_triangular

from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.steps.base import GaveUp
from fenchel.steps.linear_algebra.safeguards import ROUNDING

#: Columns that are nearer to the span of others, beside their length, count as dependent on them.
DEPENDENT = 2.0**-44
#: Values below |w|^2 by this part of |a_r| |w| and |w|^2 are rounding.
STUCK = 2.0**-48
#: The least weight of a row when the base is chosen, beside the row with the largest multiplier.
LEAST = 2.0**-10
#: Combinations of rows of [E, 1], whose entries are -1, 0 and 1, are equal up to this.
SAME = 2.0**-30


@dataclass
class Factor:
    """The rows of a corral: its base, C, and the QR factor of the other rows' columns."""

    base: Indices
    inverse: Matrix  # of the base's rows of [E, 1], which are independent
    others: list[int]
    C: Matrix
    h: Vector
    Q: Matrix
    R: Matrix

    @property
    def rows(self) -> Indices:
        """All of them, the base first."""
        return np.concatenate([self.base, np.array(self.others, dtype=np.int64)])


@dataclass
class NearestPoint:
    """Rows A and [E, 1], and multipliers q."""

    A: Matrix
    F: Matrix
    q: Vector
    w: Vector = field(init=False)
    b: Vector = field(init=False)  # [b, -|w|^2], as far as the corral determines them
    factor: Factor = field(init=False)
    norms: Vector = field(init=False)
    idle: int = field(default=0, init=False)
    done: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.norms = np.linalg.norm(self.A, axis=1)
        self._begin()

    @property
    def pinned(self) -> Mask:
        """The rows of the factor without which the equations would leave intercepts open: they stay, also at q = 0."""
        kept = np.zeros(len(self.factor.rows), dtype=bool)
        kept[: len(self.factor.base)] = ~np.any(np.abs(self.factor.C) > SAME, axis=0)
        return kept

    def _begin(self) -> None:
        """With the rows of q, as far as they make a corral; else with as few as the equations allow."""
        rows = np.flatnonzero(self.q > 0.0)
        while len(rows):
            found = self._factored(rows)
            if found is None:
                break
            self.factor = found
            q = self._minimiser()
            if np.all(q > 0.0):
                self._take(np.maximum(self._refined(q), 0.0))
                return
            rows = found.rows[q > 0.0]
        self.factor = self._factored(self._fewest())  # type: ignore[assignment]
        self._take(self._minimiser())

    def _fewest(self) -> Indices:
        """A row if there are no equations; else one of some class against another one, and the reverse."""
        E = self.F[:, :-1]
        if not E.shape[1]:
            return np.array([int(np.argmin(self.norms))])
        opposite = np.flatnonzero(np.all(E + E[0] == 0.0, axis=1))
        if not len(opposite):
            raise GaveUp("no multipliers satisfy the equations of the intercepts")
        nearest = np.argmin(np.linalg.norm(self.A[opposite] + self.A[0], axis=1))
        return np.array([0, opposite[nearest]])

    # Factors ------------------------------------------------------------------------------------------------------

    def _factored(self, rows: Indices) -> Factor | None:
        """Of rows that may depend on each other: those that do are left out. None if the equations have no solution."""
        largest = float(self.q[rows].max())
        weights = np.maximum(self.q[rows] / largest, LEAST) if largest > 0.0 else np.ones(len(rows))  # large q stay
        _, R, order = qr((self.F[rows] * weights[:, None]).T, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(sizes > DEPENDENT * sizes[0]))
        base, others = rows[order[:rank]], rows[order[rank:]]
        inverse, h = self._inverted(base)
        if h is None:
            return None
        C = self.F[others] @ inverse
        D = self.A[others] - C @ self.A[base]
        Q, R, order = qr(D.T, mode="economic", pivoting=True, check_finite=False)
        sizes, lengths = np.abs(np.diagonal(R)), np.linalg.norm(D, axis=1)[order[: min(R.shape)]]
        dependent = np.flatnonzero(~(sizes > ROUNDING * lengths))
        rank = int(dependent[0]) if len(dependent) else len(sizes)
        kept = order[:rank]
        return Factor(base, inverse, others[kept].tolist(), C[kept], h, Q[:, :rank], R[:rank, :rank])

    def _inverted(self, base: Indices) -> tuple[Matrix, Vector | None]:
        """What gives C of other rows; and h, if there is one."""
        inverse: Matrix = np.asarray(np.linalg.pinv(self.F[base]))
        h: Vector = inverse[-1]
        solves = np.abs(h @ self.F[base][:, :-1]).max(initial=0.0) <= SAME and abs(float(h.sum()) - 1.0) <= SAME
        return inverse, h if solves else None

    def _minimiser(self) -> Vector:
        """Multipliers of the factor's rows under the equations alone."""
        f = self.factor
        t = np.zeros(len(f.others))
        if len(t):
            t = -solve_triangular(f.R, f.Q.T @ (f.h @ self.A[f.base]), check_finite=False)
        return np.concatenate([f.h - t @ f.C, t])

    def _refined(self, q: Vector) -> Vector:
        """Nearer to the minimiser by the rounding errors of a solution."""
        f, m = self.factor, len(self.factor.base)
        if len(q) == m:
            return q
        t = q[m:] - solve_triangular(f.R, f.Q.T @ (q @ self.A[f.rows]), check_finite=False)
        return np.concatenate([f.h - t @ f.C, t])

    def _take(self, q: Vector) -> None:
        """Multipliers of the factor's rows, and w and b there."""
        rows, base = self.factor.rows, self.factor.base
        self.q = np.zeros(len(self.q))
        self.q[rows] = q
        w, Q = q @ self.A[rows], self.factor.Q
        self.w = w - Q @ (Q.T @ w) if self.factor.others else w  # its rounding errors are of the size of A, not of w
        self.b = -(self.factor.inverse @ (self.A[base] @ self.w))

    def _enter(self, row: int) -> bool:
        """Add a row; whether it is independent of the others."""
        f = self.factor
        c = self.F[row] @ f.inverse
        if not np.allclose(c @ self.F[f.base], self.F[row], rtol=0.0, atol=SAME):  # a class that had no row
            self.factor = self._with_base(np.append(f.base, row))
            return True
        column = self.A[row] - c @ self.A[f.base]
        k = len(f.others)
        if k >= self.A.shape[1]:
            return False
        rest = column - f.Q @ (f.Q.T @ column)
        rest -= f.Q @ (f.Q.T @ rest)
        if not np.linalg.norm(rest) > DEPENDENT * np.linalg.norm(column):
            return False
        if k:
            Q, R = qr_insert(f.Q, f.R, column, k, which="col", check_finite=False)
        else:
            Q, R = qr(column[:, None], mode="economic", check_finite=False)
        self.factor = Factor(f.base, f.inverse, [*f.others, row], np.vstack([f.C, c]), f.h, Q, R)
        return True

    def _with_base(self, base: Indices) -> Factor:
        others = self.factor.others
        inverse, h = self._inverted(base)
        assert h is not None
        C = self.F[others] @ inverse
        Q, R = qr((self.A[others] - C @ self.A[base]).T, mode="economic", check_finite=False)
        return Factor(base, inverse, list(others), C, h, Q, R)

    def _leave(self, place: int) -> bool:
        """Remove the row at this place of the factor's rows; False if that leaves no solution."""
        f, m = self.factor, len(self.factor.base)
        if place >= m:
            j = place - m
            Q, R = qr_delete(f.Q, f.R, j, which="col", check_finite=False)
            others = f.others[:j] + f.others[j + 1 :]
            k = len(others)
            self.factor = Factor(f.base, f.inverse, others, np.delete(f.C, j, axis=0), f.h, Q[:, :k], R[:k])
            return True
        found = self._factored(np.delete(f.rows, place))
        if found is None:
            return False
        self.factor = found
        return True

    # Steps --------------------------------------------------------------------------------------------------------

    @property
    def square(self) -> float:
        """|w|^2."""
        return float(self.w @ self.w)

    def values(self) -> Vector:
        """a_r.w + e_r.b."""
        return np.asarray(self.A @ self.w + self.F[:, :-1] @ self.b[:-1])

    def exchange(self, slack: float) -> None:
        """The next corral; `done` if no value is below |w|^2 by more than this part of it."""
        square = self.square
        late = self.values() - square + STUCK * np.sqrt(square) * self.norms + (STUCK + slack) * square
        late[self.factor.rows] = np.inf
        row = int(np.argmin(late))
        if not late[row] < 0.0 or not self._enter(row):
            self.done = True
            return
        for _ in range(len(self.factor.rows)):
            rows, q = self.factor.rows, self._minimiser()
            old = self.q[rows]
            negative = np.flatnonzero(~(q > 0.0) & ~self.pinned)
            if not len(negative):
                break
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(old[negative] > 0.0, old[negative] / (old[negative] - q[negative]), 0.0)
            first = int(np.argmin(steps))
            moved = old + float(steps[first]) * (q - old)
            moved[negative[first]] = 0.0
            self.q[rows] = np.maximum(moved, 0.0)
            if not self._leave(int(negative[first])):
                self.done = True
                return
        self._take(np.maximum(self._refined(q), 0.0))
        falls = self.square < (1.0 - STUCK) * square
        self.idle = 0 if falls else self.idle + 1  # an exchange may only move an intercept
        self.done = self.idle > self.F.shape[1] or np.sqrt(self.square) <= STUCK * self.norms.max()

    def solve(self, slack: float, most: int) -> bool:
        """So many exchanges at most; whether no row is below by more than this part of |w|^2."""
        self.done, self.idle = False, 0
        for _ in range(most):
            self.exchange(slack)
            if self.done:
                break
        return self.done
