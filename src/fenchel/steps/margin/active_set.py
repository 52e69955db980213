"""Intervals and a quadratic penalty, one violated constraint at a time (Goldfarb and Idnani 1983).

The model is always the one of least penalty among those with the scores of the active samples at one end of their
intervals, and the multipliers there have the right signs. The sample violated most is added. On the way to its end,
with the active scores where they are, multipliers change in proportion; where one vanishes its sample is dropped. The
penalty rises with every addition, so that no active set comes twice. If the row of the sample depends on active ones,
only multipliers change; if none vanishes then, their change proves that the constraints contradict each other.

Every model comes from orthogonal factors of the active rows. So this goes on where the condition number of the rows is
too large for its square, and for few features or few samples, whose active sets are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Matrix, Vector
from fenchel.problem import Interpolation
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Overflow, Progress, Solver, Start
from fenchel.steps.linear_algebra.orthogonal import ShortestChange
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TINY, Patience


@dataclass
class ActiveSetState:
    """Active samples with their ends and signed multipliers u: w = origin + X'u."""

    problem: Interpolation
    origin: Vector  # w for multipliers of zero
    slope: float  # of w over b_i = s_i alpha_i / W
    w: Vector
    z: Vector
    b: float
    active: list[int] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)  # 1 at the lower end
    u: Vector = field(default_factory=lambda: np.zeros(0))
    length: float = 0.0  # of w - origin, which no step makes shorter
    patience: Patience = field(default_factory=Patience)  # with steps that leave it where it is
    proof: Vector | None = None  # multipliers whose combination of rows vanishes
    settled: bool = False

    def rows(self, more: Sequence[int] = ()) -> Matrix:
        """Of the active samples, and others."""
        return self.problem.X.rows(np.array([*self.active, *more], dtype=np.int64))

    def end(self, i: int, sign: int) -> float:
        """Of the interval of a sample."""
        low, high = self.problem.intervals
        return float(low[i] if sign > 0 else high[i])

    def place(self) -> None:
        """The model and the multipliers of the active set, anew."""
        if not self.active:
            self.u, self.w = np.zeros(0), self.origin.copy()
        else:
            rows = self.rows()
            ends = np.array([self.end(i, sign) for i, sign in zip(self.active, self.signs, strict=True)])
            step, self.u = ShortestChange.of(rows, self.problem.intercept).solve(ends - rows @ self.origin)
            self.w = self.origin + step
            if self.problem.intercept:
                self.b = float(np.mean(ends - rows @ self.w))
        self.z = self.problem.X.matvec(self.w) + (self.b if self.problem.intercept else 0.0)

    def drop(self, k: int) -> None:
        """The k-th active sample."""
        del self.active[k], self.signs[k]
        self.u = np.delete(self.u, k)


@dataclass(frozen=True)
class ActiveSet(Solver[ActiveSetState]):
    """One step adds a sample to the active ones, and drops those whose multipliers vanish."""

    name = "active_set"
    summary = "intervals, quadratic penalties, few features or samples: one violated constraint at a time"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.QUADRATIC_PENALTY, Trait.INTERVALS})
    steps_per_check = 50
    passes_per_step = 2
    needs_storage = False
    any_storage = True

    def obstacle(self, problem: Interpolation) -> str | None:
        low, high = problem.intervals
        if not problem.is_scalar:
            return "takes one score for each sample"
        if np.any(low == high):
            return "takes no points, all of which are active"
        if not limits.may_factor(min(problem.shape), problem.shape[1]):
            return "takes fewer features or samples"
        return None

    def begin(self, problem: Interpolation, start: Start, seed: int) -> ActiveSetState:
        d = problem.X.shape[1]
        longest = float(np.max(problem.row_norms, initial=0.0))
        if not longest * longest < np.inf:
            raise Overflow("the squares of the features overflow; rescale them")
        origin = problem.penalty.grad_conjugate(np.zeros(d))
        derivative = problem.penalty.link_derivative(np.zeros(d))
        slope = 1.0 / problem.penalty.strong_convexity if derivative is None else float(derivative.diagonal[0])
        b = float(start.b) if problem.intercept else 0.0
        state = ActiveSetState(problem, origin, slope, origin, np.zeros(problem.n_samples), b)
        self._begin_at(state, problem.weighted(start.alpha).ravel())
        return state

    @staticmethod
    def _begin_at(state: ActiveSetState, beta: Vector) -> None:
        """At the samples with the largest multipliers, without those whose multipliers have other signs there."""
        most = min(state.problem.shape)
        order = np.argsort(-np.abs(beta), kind="stable")[:most]
        chosen = order[np.abs(beta[order]) > TINY * np.abs(beta).max(initial=0.0)]
        state.active, state.signs = chosen.tolist(), np.sign(beta[chosen]).astype(int).tolist()
        state.place()
        while len(wrong := np.flatnonzero(state.u * np.array(state.signs) <= 0.0)):
            for k in wrong[::-1]:
                state.drop(int(k))
            state.place()

    def step(self, state: ActiveSetState) -> ActiveSetState:
        if state.patience.is_over:
            raise GaveUp("the active constraints come again and again")
        low, high = state.problem.intervals
        off = np.maximum(low - state.z, state.z - high)
        off[state.active] = 0.0
        p = int(np.argmax(off))
        scale = float(np.abs(state.z).max(initial=0.0)) + abs(state.end(p, 1 if low[p] > state.z[p] else -1))
        if not off[p] > ROUNDING * scale:
            state.settled = True
            return state
        self._add(state, p, 1 if low[p] > state.z[p] else -1)
        before, state.length = state.length, float(np.linalg.norm(state.w - state.origin))
        if not (np.isfinite(state.length) and np.all(np.isfinite(state.z))):
            raise Overflow("the weights overflow")
        state.patience.learn(np.inf, progress=state.length > before * (1.0 + ROUNDING))
        return state

    def _add(self, state: ActiveSetState, p: int, sign: int) -> None:
        """Bring the score of p to its end."""
        problem, own = state.problem, 0.0
        missing = sign * (state.end(p, sign) - state.z[p])
        for _ in range(2 * problem.n_samples + 2):
            rows, signs = state.rows([p]), np.array([*state.signs, sign])
            unit = np.zeros(len(rows))
            unit[-1] = sign
            step, u = ShortestChange.of(rows, problem.intercept).solve(unit)
            shift = float(np.mean(unit - rows @ step)) if problem.intercept else 0.0
            moves = bool(np.abs(rows @ step + shift - unit).max() <= TINY)
            if not moves:
                u = self._combination(rows, sign, problem.intercept)
            change, size = u * signs, np.append(state.u, own) * signs  # both times the signs: sizes
            falling = np.flatnonzero(change[:-1] < -ROUNDING * np.abs(change).max())
            times = np.maximum(size[falling], 0.0) / -change[falling]
            first = float(times.min(initial=np.inf))
            if not moves and not len(falling):
                state.proof = np.zeros(problem.n_samples)
                state.proof[[*state.active, p]] = u
                return
            t = min(first, missing) if moves else first
            state.u, own = state.u + t * u[:-1], own + t * u[-1]
            if moves:
                missing -= t
                if t < first:
                    state.active.append(p)
                    state.signs.append(sign)
                    state.place()
                    return
            state.drop(int(falling[np.argmin(times)]))
        raise GaveUp("the active constraints come again and again")

    @staticmethod
    def _combination(rows: Matrix, sign: int, intercept: bool) -> Vector:
        """u with u'rows = 0, and u'1 = 0 with an intercept, whose last entry is the sign."""
        columns = np.vstack([rows.T, np.ones(len(rows))]) if intercept else rows.T
        lengths = np.linalg.norm(columns, axis=1)
        columns = columns / np.where(lengths > 0.0, lengths, 1.0)[:, None]
        others = -sign * np.linalg.lstsq(columns[:, :-1], columns[:, -1], rcond=None)[0]
        return np.append(others, float(sign))

    def progress(self, state: ActiveSetState) -> Progress:
        """A certificate is due when the steps have come to an end."""
        return Progress(np.inf, np.inf, float(state.settled or state.proof is not None))

    def candidates(self, state: ActiveSetState) -> Sequence[Candidate]:
        problem, beta = state.problem, np.zeros(state.problem.n_samples)
        beta[np.array(state.active, dtype=np.int64)] = state.u / state.slope
        found = [Candidate(*problem.shaped(state.w, np.array([state.b])), problem.unweighted(beta))]
        if state.proof is not None:
            found.append(Candidate(*problem.shaped(state.w, np.array([state.b])), problem.unweighted(state.proof)))
        return found

    def finished(self, state: ActiveSetState) -> bool:
        return state.settled or state.proof is not None
