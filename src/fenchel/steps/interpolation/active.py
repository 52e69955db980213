"""Dual coordinate ascent on the constraints that matter, for a quadratic penalty and intervals.

A round is a few passes over the samples whose multipliers are not zero or whose scores are outside their intervals, in
one random order. On a face the passes repeat an affine map, so the multipliers are extrapolated from their differences
(Anderson 1965; Bertrand and Massias 2021 for coordinate descent), which is kept if D is larger there.

Two rows that are nearly equal make coordinate ascent slow: each multiplier follows the other. Where a round hardly
helps, the rows of the largest violations are solved for together with those similar to them (`pivoting`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Indices, Mask, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties.bregman import Bregman
from fenchel.steps.base import Candidate, Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.passes import CompiledPasses
from fenchel.steps.interpolation.pivoting import Quadratic
from fenchel.steps.interpolation.state import PlainIterates, require_finite


@dataclass(frozen=True)
class ActiveTuning:
    """`python -m benchmarks.interpolation --rows margin`, on generated rows and on 2000 to 25000 rows of imdb."""

    first: int = 4  # passes over all samples before the first round
    passes: int = 6  # of a round
    ridge: float = 1e-10  # of the equations of the extrapolation, beside their mean diagonal
    slow: float = 0.7  # a round that leaves more than this part of the violation is followed by a step on some rows:
    worst: int = 4  # so many of the largest violations,
    similar: float = 0.4  # with those whose cosine with one of them is at least this in size,
    most: int = 200  # unless they are more than this


TUNING = ActiveTuning()


@dataclass
class ActivePasses:
    """Plain iterates, and the scores after the last round."""

    iterates: PlainIterates
    passes: CompiledPasses
    low: Vector
    high: Vector
    z: Vector = field(init=False)
    violation: float = field(default=np.inf, init=False)
    count: int = field(default=0, init=False)  # passes so far

    @classmethod
    def of(cls, problem: Interpolation, start: Start, seed: int) -> ActivePasses | None:
        """None unless passes are compiled."""
        iterates, ends = Dykstra().begin(problem, start, seed), problem.constraints.ends
        if not (isinstance(iterates, PlainIterates) and isinstance(iterates.passes, CompiledPasses) and ends):
            return None
        return cls(iterates, iterates.passes, ends[0].ravel(), ends[1].ravel())

    @property
    def problem(self) -> Interpolation:
        return self.passes.problem

    def step(self) -> None:
        """A round: passes over the samples that matter, and an extrapolation; a step on some rows if it hardly helps.

        The first one is a few passes over all samples.
        """
        if not self.count:
            for _ in range(TUNING.first):
                self.iterates.step()
            self.count += TUNING.first
            self._evaluate()
            return
        before = self.violation
        self._ascend(np.flatnonzero((self.iterates.alpha != 0.0) | (self._distances > 0.0)))
        self.count += TUNING.passes
        self._evaluate()
        if self.violation > TUNING.slow * before and self._step_on_similar_rows():
            self._evaluate()

    def estimate(self) -> tuple[float, float]:
        """About P of the smallest feasible multiple of the model, and its gap; infinite where they are not known.

        They are known for half-lines that do not contain 0, without a centre. D with an intercept has a term of its
        own centre, so the model's penalty takes its place.
        """
        counts, finite = self.problem.counts, np.isfinite(self.low)
        end, reached = np.where(finite, self.low, -self.high)[counts], np.where(finite, self.z, -self.z)[counts]
        one_sided = not np.any((finite & np.isfinite(self.high))[counts])
        if isinstance(self.problem.penalty, Bregman) or not (one_sided and np.all(end > 0.0) and np.all(reached > 0.0)):
            return np.inf, np.inf
        value = self.problem.penalty.value(self.passes.model(self.iterates.u)[0])
        bound = value if self.problem.intercept else self.iterates.objective()
        primal = float(np.max(end / reached)) ** 2 * value
        return primal, primal - bound

    def refresh(self) -> None:
        """Recompute the image of the multipliers, without the rounding errors of the steps."""
        self.iterates.refresh()

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
        iterates, origin = self.iterates, self.passes.origin
        rows = iterates.sampler.rng.permutation(rows)
        run, points, images = self.passes.over(rows), [iterates.alpha[rows]], []
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(TUNING.passes):
                iterates.move_centre()
                run(iterates.alpha, iterates.u)
                points.append(iterates.alpha[rows])
                images.append(iterates.u - origin(iterates.centre))
            require_finite(iterates.is_finite)
        share = _extrapolation(np.array(points))
        if share is None:
            return
        trial = iterates.alpha.copy()
        trial[rows] = share @ np.array(points[1:])
        self._try(trial, origin(iterates.centre) + share @ np.array(images))

    def _try(self, alpha: Vector, u: Vector) -> bool:
        """Go to other multipliers with this image, as far as they are in the domain, if D is larger there."""
        iterates, inside = self.iterates, self.problem.in_domain(alpha)
        if np.any(inside != alpha):
            u = u + self.passes.image(inside - alpha)
        if not self.passes.dual(inside, u) > iterates.objective():
            return False
        iterates.alpha, iterates.u = inside, u
        return True

    def _step_on_similar_rows(self) -> bool:
        """The exact maximum over the multipliers of the worst rows and similar ones; whether D is larger there."""
        problem, alpha = self.problem, self.iterates.alpha
        rows = self._similar_rows()
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

    def _similar_rows(self) -> Indices:
        """The worst rows, and all active or violated ones whose cosine with one of them is large."""
        problem, alpha = self.problem, self.iterates.alpha
        active, end = alpha != 0.0, np.where(alpha > 0.0, self.low, self.high)
        off = np.where(active, np.abs(self.z - np.where(active, end, 0.0)), self._distances)
        worst = np.argsort(-off)[: TUNING.worst]
        chosen: Mask = np.zeros(len(off), dtype=bool)
        chosen[worst] = True
        norms = problem.row_norms
        for i in worst:
            products = np.abs(problem.X.matvec(problem.X.rows(np.array([i]))[0]))
            chosen |= products > TUNING.similar * norms[i] * norms
        return np.flatnonzero(chosen & problem.counts & (active | (self._distances > 0.0)))


def _extrapolation(points: Vector) -> Vector | None:
    """Coefficients of the points but the first, with the sum 1, for which the combined change is smallest.

    None if nothing changed. They do not depend on the scale of the changes, which may be at the end of the range.
    """
    changes = np.diff(points, axis=0)
    largest = float(np.abs(changes).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return None
    changes = changes / largest
    inner = changes @ changes.T
    inner[np.diag_indices_from(inner)] += TUNING.ridge * np.trace(inner) / len(inner)
    share = np.linalg.solve(inner, np.ones(len(inner)))
    return np.asarray(share / share.sum())
