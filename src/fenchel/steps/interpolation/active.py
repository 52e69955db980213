"""Dual coordinate ascent on the constraints that matter, for a quadratic penalty and intervals.

A round is a few passes over the samples whose multipliers are not zero or whose scores are outside their intervals, in
one random order. On a face the passes repeat an affine map, so the multipliers are extrapolated from their differences
(Anderson 1965; Bertrand and Massias 2021 for coordinate descent), which is kept if D is larger there.

Two rows that are nearly equal make coordinate ascent slow: each multiplier follows the other. Where a round hardly
helps, the rows of the largest violations are solved for together with those at a small angle to them (`pivoting`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Indices, Mask, Vector
from fenchel.problem import Interpolation
from fenchel.steps.base import Candidate, Overflow, Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.passes import CompiledPasses
from fenchel.steps.interpolation.pivoting import Quadratic
from fenchel.steps.interpolation.state import PlainIterates


@dataclass(frozen=True)
class ActiveTuning:
    """`python -m benchmarks.interpolation --rows margin`, on generated rows and on 2000 to 25000 rows of imdb."""

    first: int = 4  # passes over all samples before the first round
    passes: int = 6  # of a round,
    rounds: int = 8  # which are so many between two certificates
    ridge: float = 1e-10  # of the equations of the extrapolation, beside their mean diagonal
    slow: float = 0.7  # a round that leaves more than this part of the violation is followed by a step on near rows:
    worst: int = 4  # so many rows of the largest violations,
    near: float = 0.4  # with those whose angle to one of them has at least this cosine,
    most: int = 200  # unless they are more than this


TUNING = ActiveTuning()


@dataclass
class ActivePasses:
    """Plain iterates, and the scores after the last round."""

    iterates: PlainIterates
    passes: CompiledPasses
    low: Vector
    high: Vector
    rng: np.random.Generator
    z: Vector = field(init=False)
    violation: float = field(default=np.inf, init=False)

    def __post_init__(self) -> None:
        for _ in range(TUNING.first):
            self.iterates.step()
        self._evaluate()

    @classmethod
    def of(cls, problem: Interpolation, start: Start, seed: int) -> ActivePasses | None:
        """None unless passes are compiled."""
        iterates, ends = Dykstra().begin(problem, start, seed), problem.constraints.ends
        if not (isinstance(iterates, PlainIterates) and isinstance(iterates.passes, CompiledPasses) and ends):
            return None
        return cls(iterates, iterates.passes, ends[0].ravel(), ends[1].ravel(), np.random.default_rng(seed))

    @property
    def problem(self) -> Interpolation:
        return self.passes.problem

    def advance(self, tol: float) -> None:
        """Some rounds, or as many as it takes to a relative gap of about `tol`."""
        for _ in range(TUNING.rounds):
            self.round()
            if self.gap() <= tol:
                break

    def round(self) -> None:
        """Passes over the samples that matter, and an extrapolation; a step on near rows if that hardly helps."""
        before = self.violation
        self._ascend(np.flatnonzero((self.iterates.alpha != 0.0) | (self._distances > 0.0)))
        self._evaluate()
        if self.violation > TUNING.slow * before and self._step_on_near_rows():
            self._evaluate()

    def gap(self) -> float:
        """About the relative gap of the smallest feasible multiple of the model; infinite if there is none.

        D with an intercept has a term of its centre, so there the model's penalty takes its place.
        """
        value = self.problem.penalty.value(self.passes.model(self.iterates.u)[0])
        bound = value if self.problem.intercept else self.iterates.objective()
        end = np.where(np.isfinite(self.low), self.low, -self.high)[self.problem.counts]
        reached = np.where(np.isfinite(self.low), self.z, -self.z)[self.problem.counts]
        if np.any(end <= 0.0) or np.any(reached <= 0.0):
            return np.inf
        upper = float(np.max(end / reached)) ** 2 * value
        return (upper - bound) / upper if upper > 0.0 else np.inf

    def candidates(self) -> list[Candidate]:
        """The present model."""
        return self.iterates.candidates()

    @property
    def _distances(self) -> Vector:
        """From the scores to their intervals."""
        return np.where(self.problem.counts, np.maximum(np.maximum(self.low - self.z, self.z - self.high), 0.0), 0.0)

    def _evaluate(self) -> None:
        w, b = self.passes.model(self.iterates.u)
        self.z = self.problem.scores(w, b)
        self.violation = float(self._distances.max(initial=0.0))

    def _ascend(self, rows: Indices) -> None:
        """Passes over some rows, all others having multipliers of zero, and an extrapolation."""
        iterates, rows = self.iterates, self.rng.permutation(rows)
        run, seen, images = self.passes.over(rows), [iterates.alpha[rows]], []
        for _ in range(TUNING.passes):
            iterates.move_centre()
            run(iterates.alpha, iterates.u)
            seen.append(iterates.alpha[rows])
            images.append(iterates.u - self.passes.origin(iterates.centre))
        if not np.all(np.isfinite(iterates.u)):
            raise Overflow("the multipliers overflow")
        changes = np.diff(np.array(seen), axis=0)
        inner = changes @ changes.T
        if not np.trace(inner) > 0.0:
            return
        inner[np.diag_indices_from(inner)] += TUNING.ridge * np.trace(inner) / len(inner)
        share = np.linalg.solve(inner, np.ones(len(inner)))
        share /= share.sum()
        trial = iterates.alpha.copy()
        trial[rows] = share @ np.array(seen[1:])
        self._try(trial, self.passes.origin(iterates.centre) + share @ np.array(images))

    def _try(self, alpha: Vector, u: Vector) -> bool:
        """Go to other multipliers with this image, as far as they are in the domain, if D is larger there."""
        iterates, inside = self.iterates, self.problem.in_domain(alpha)
        if np.any(inside != alpha):
            u = u + self.passes.image(inside - alpha)
        if not self.passes.dual(inside, u) > iterates.objective():
            return False
        iterates.alpha, iterates.u = inside, u
        return True

    def _step_on_near_rows(self) -> bool:
        """The exact maximum over the multipliers of the worst rows and those near them; whether D is larger there."""
        problem, alpha = self.problem, self.iterates.alpha
        rows = self._near_rows()
        if not 1 < len(rows) <= TUNING.most:
            return False
        fractions = problem.fractions.ravel()[rows]
        K = problem.gram_of(rows) / self.passes.mu + self.passes.inverse_rho
        beta = fractions * alpha[rows]

        def solve(some: Indices, right: Vector) -> Vector:
            return np.asarray(np.linalg.lstsq(K[np.ix_(some, some)], right, rcond=1e-14)[0])

        model = Quadratic(lambda x: K @ x, solve, self.z[rows] - K @ beta, self.low[rows], self.high[rows])
        beta, _, _ = model.minimise(np.sign(beta).astype(np.int8))
        changed = alpha.copy()
        changed[rows] = beta / fractions
        return self._try(changed, self.iterates.u + self.passes.image(changed - alpha))

    def _near_rows(self) -> Indices:
        """The worst rows, and all active or violated ones at a small angle to one of them."""
        problem, active = self.problem, self.iterates.alpha != 0.0
        off = np.where(active, np.minimum(np.abs(self.z - self.low), np.abs(self.z - self.high)), self._distances)
        worst = np.argsort(-off)[: TUNING.worst]
        matters = problem.counts & (active | (self._distances > 0.0))
        chosen: Mask = np.zeros(len(off), dtype=bool)
        chosen[worst] = True
        norms = problem.row_norms
        for i in worst:
            products = np.abs(problem.X.matvec(problem.X.rows(np.array([i]))[0]))
            chosen |= products > TUNING.near * norms[i] * norms
        return np.flatnonzero(chosen & matters)
