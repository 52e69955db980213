"""Dual coordinate ascent on the constraints that matter, for a quadratic penalty and intervals.

A round is a few over-relaxed passes over the samples whose multipliers are not zero or whose scores are outside their
intervals, in one random order. After each pass the samples whose steps were large are visited again, and again: they
are few, and the largest violation, which limits the gap, is theirs. Nearly equal rows are the worst: each multiplier
follows the other, in steps that are cheap because only these rows are read.

Where few samples are active, of which passes make little, D is maximised over the multipliers of these samples together
(`pivoting`), with a small proximal term because their rows may depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fenchel.data.typing import Indices, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties.bregman import Bregman
from fenchel.steps.base import Candidate, Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.passes import CompiledPasses
from fenchel.steps.interpolation.pivoting import Quadratic
from fenchel.steps.interpolation.state import PlainIterates, require_finite
from fenchel.steps.linear_algebra.safeguards import ROUNDING, Damping


@dataclass(frozen=True)
class ActiveTuning:
    """What passes are worth; times as parts of those with the present values.

    `python -m benchmarks.tuning steps.interpolation.active passes 2 8 --rows "^hard margin"`: 0.97 and 1.22;
    `relaxation 1.0 1.6 --rows "tall"`: 0.95 and 0.83; `worth 3 300 --rows "tall"`: 0.60 and 1.10.
    """

    passes: int = 4  # of a round
    relaxation: float = 1.3  # of their steps: 1 is exact, below 2 no step lowers D
    worth: float = 30.0  # most multiplications of a step on all rows of a round, beside those of all passes so far


TUNING = ActiveTuning()


@dataclass
class ActivePasses:
    """Plain iterates, and the scores after the last round."""

    iterates: PlainIterates
    passes: CompiledPasses
    z: Vector = field(init=False)
    known: tuple[float, float, float] = field(default=(np.inf, np.inf, np.inf), init=False)  # `estimate`, multiple
    violation: float = field(default=np.inf, init=False)
    count: int = field(default=0, init=False)  # passes so far
    work: float = field(default=0.0, init=False)  # entries of X in these passes
    damping: Damping = field(default_factory=Damping, init=False)

    @classmethod
    def of(cls, problem: Interpolation, start: Start, seed: int) -> ActivePasses | None:
        """None unless passes are compiled."""
        iterates = Dykstra().begin(problem, start, seed)
        if not (isinstance(iterates, PlainIterates) and isinstance(iterates.passes, CompiledPasses)):
            return None
        return cls(iterates, iterates.passes)

    @property
    def problem(self) -> Interpolation:
        return self.passes.problem

    def step(self) -> None:
        """A round: passes over the samples that matter. The first one is over all samples."""
        before = self.violation
        if self.count:
            self._ascend(self._active)
        else:
            for _ in range(TUNING.passes):
                self.iterates.step()
        self.count += TUNING.passes
        self._evaluate()
        if self.violation > 0.5 * before and self._maximise_over(self._active):
            self._evaluate()

    def estimate(self) -> tuple[float, float]:
        """About P of the smallest feasible multiple of the model, and its gap; infinite where they are not known."""
        return self.known[:2]

    def _estimate(self, w: Vector) -> tuple[float, float, float]:
        """P, the gap and the multiple itself.

        They are known for half-lines that do not contain 0, without a centre. Without an intercept
        D = (1/W) sum_i s_i alpha_i end_i - R(w); with one the gap of the multiple to the model takes its place.
        """
        problem, counts = self.problem, self.problem.counts
        low, high, z = (each[counts] for each in (*problem.intervals, self.z))
        end = np.where(np.isfinite(low), low, -high)  # of the half-line on the positive side
        reached = np.where(np.isfinite(low), z, -z)
        one_sided = not np.any(np.isfinite(low) & np.isfinite(high))
        if isinstance(problem.penalty, Bregman) or not (one_sided and np.all(end > 0.0) and np.all(reached > 0.0)):
            return np.inf, np.inf, np.inf
        value = problem.penalty.value(w)
        support = float(problem.fractions.ravel()[counts] @ (np.abs(self.iterates.alpha[counts]) * end))
        bound = value if problem.intercept else support - value
        multiple = float(np.max(end / reached))
        return multiple**2 * value, multiple**2 * value - bound, multiple

    def refresh(self) -> None:
        """Recompute the image of the multipliers, without the rounding errors of the steps."""
        self.iterates.refresh()

    def model(self) -> Candidate:
        """The present one."""
        return self.iterates.candidates()[0]

    def candidates(self) -> list[Candidate]:
        """The present model; its smallest feasible multiple, if that is known."""
        found, multiple = self.model(), self.known[2] * (1.0 + ROUNDING)
        return [replace(found, w=multiple * found.w, b=multiple * found.b) if np.isfinite(multiple) else found]

    @property
    def _active(self) -> Indices:
        """The samples whose multipliers are not zero or whose scores are outside their intervals."""
        return np.flatnonzero((self.iterates.alpha != 0.0) | (self.problem.distances(self.z) > 0.0))

    def _evaluate(self) -> None:
        w, b = self.passes.model(self.iterates.u)
        self.z = self.problem.scores(w, b)
        self.violation = float(self.problem.distances(self.z).max(initial=0.0))
        self.known = self._estimate(w)

    def _ascend(self, rows: Indices) -> None:
        """Passes over some rows, all others having multipliers of zero."""
        iterates = self.iterates
        run = self.passes.over(iterates.sampler.rng.permutation(rows), 1.0 / TUNING.relaxation)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(TUNING.passes):
                iterates.move_centre()
                run(iterates.alpha, iterates.u)
            require_finite(iterates.is_finite)
        self.work += TUNING.passes * len(rows) * self._entries

    @property
    def _entries(self) -> float:
        """Of X, for each row."""
        return self.problem.X.nnz / self.problem.n_samples

    def _maximise_over(self, rows: Indices) -> bool:
        """To the maximum of D over the multipliers of some rows, if it is cheap; whether D is larger there."""
        problem, iterates, m = self.problem, self.iterates, len(rows)
        if not 0 < m * m * (m + self._entries) <= TUNING.worth * self.work:
            return False
        fractions = problem.fractions.ravel()[rows]
        K = problem.gram_of(rows) / self.passes.mu + self.passes.inverse_rho
        K[np.diag_indices(m)] += self.damping.value * np.trace(K) / m
        beta = fractions * iterates.alpha[rows]

        def solve(some: Indices, right: Vector) -> Vector:
            return np.asarray(np.linalg.solve(K[np.ix_(some, some)], right))

        low, high = problem.intervals
        model = Quadratic(lambda x: K @ x, solve, self.z[rows] - K @ beta, low[rows], high[rows])
        beta, _, found = model.minimise(np.sign(beta).astype(np.int8))
        self.damping.learn(found)
        alpha = iterates.alpha.copy()
        alpha[rows] = beta / fractions
        alpha = problem.in_domain(alpha)
        u = iterates.image(alpha)
        if not self.passes.dual(alpha, u) > iterates.objective():
            return False
        iterates.alpha, iterates.u = alpha, u
        return True
