"""How many steps a given accuracy takes, by the number of training samples: lam by pilot runs, then medians of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import optimize

from fenchel.data.typing import Matrix, Vector
from fenchel.papers.datasets import Dataset, Gaussians
from fenchel.papers.descent import L2_LOGISTIC, Kind, Quality, Run, accuracy, batch_of, checkpoints, descend, nearness
from fenchel.problem import Problem
from fenchel.solver.theory import pgs_steps

#: Pilot runs have other random numbers than the runs that count.
PILOT_SEED = 1_000_000
#: Test accuracy above the target that a pilot run must have, so that most runs get to the target.
MARGIN = 0.001


@dataclass(frozen=True)
class Plan:
    """What is run.

    sizes : of the training sets, growing
    lams : to choose from
    passes : steps of the longest run, in passes over the largest set
    runs : of which the median is taken
    seed : of the first of them
    tick : called after each training set
    """

    sizes: tuple[int, ...]
    lams: tuple[float, ...]
    passes: int
    runs: int
    seed: int
    tick: Callable[[], None]
    pilot_checkpoints: int = 25
    checkpoints: int = 100


def halved(largest: int, times: int) -> tuple[int, ...]:
    """`largest`, halved up to so many times, in growing order."""
    return tuple(sorted({max(largest >> k, 1) for k in range(times + 1)}))


@dataclass(frozen=True, eq=False)
class Study:
    """One objective on training sets of several sizes.

    Each set is a piece of the samples; where several fit, the runs take them in turn. lam is chosen from pilot runs on
    the first.
    """

    kind: Kind
    dataset: Dataset
    plan: Plan

    def problem(self, m: int, lam: float, run: int = 0) -> Problem:
        """On m samples, other ones for other runs as far as there are enough."""
        first = run % (self.dataset.n // m) * m
        piece = slice(first, first + m)
        return self.kind.problem(self.dataset.X[piece], self.dataset.y[piece], lam)

    @cached_property
    def quality(self) -> Quality:
        """Test accuracy."""
        return accuracy(self.dataset)

    @cached_property
    def steps(self) -> int:
        """Gradient steps of the longest run, the same for all sizes."""
        largest = self.plan.sizes[-1]
        return max(self.plan.passes * largest // batch_of(self.problem(largest, self.plan.lams[0])), 1)

    def checkpoints(self, count: int) -> list[int]:
        """The steps after which a run is looked at."""
        return checkpoints(self.steps, count, max(self.steps // 2000, 1))

    @cached_property
    def pilots(self) -> dict[int, dict[float, Run]]:
        """A run for each size and lam."""
        at, found = self.checkpoints(self.plan.pilot_checkpoints), {}
        for m in self.plan.sizes:
            problem = self.problem(m, self.plan.lams[0])
            found[m] = {
                lam: descend(problem.with_lam(lam), self.quality, at, PILOT_SEED + self.plan.seed)
                for lam in self.plan.lams
            }
            self.plan.tick()
        return found

    def most_accurate(self, m: int) -> float:
        """The paper's lam: of the best test accuracy."""
        return max(self.plan.lams, key=lambda lam: self.pilots[m][lam].best)

    def fewest_steps(self, m: int, target: float) -> float:
        """The lam that first gets a little beyond a test accuracy; the most accurate if none does."""
        steps = {lam: self.pilots[m][lam].crossing(target + MARGIN)[0] for lam in self.plan.lams}
        least = min(steps.values())
        if not np.isfinite(least):
            return self.most_accurate(m)
        return max(lam for lam in self.plan.lams if steps[lam] == least)

    @cached_property
    def targets(self) -> list[float]:
        """Three accuracies: a little below the best for the smallest, a middle and the next to largest set."""
        best = [max(run.best for run in self.pilots[m].values()) for m in self.plan.sizes]
        reached = np.maximum.accumulate(best)
        chosen = (reached[0], reached[len(reached) // 2], reached[-2:][0])
        return sorted({float(np.floor(1000.0 * value - 2.0)) / 1000.0 for value in chosen})

    def medians(self, m: int, lams: Sequence[float], targets: Sequence[float]) -> tuple[Vector, Vector]:
        """Median steps and seconds on m samples to each target, with the lam for it; infinite if half the runs fail."""
        at, crossings = self.checkpoints(self.plan.checkpoints), np.full((2, len(targets), self.plan.runs), np.inf)
        for run in range(self.plan.runs):
            problem = self.problem(m, lams[0], run)
            for lam in set(lams):
                aims = [k for k, own in enumerate(lams) if own == lam]
                enough = max(targets[k] for k in aims)
                found = descend(problem.with_lam(lam), self.quality, at, self.plan.seed + run, enough)
                for k in aims:
                    crossings[:, k, run] = found.crossing(targets[k])
        steps, seconds = np.median(crossings, axis=2)
        return steps, seconds


@dataclass(frozen=True, eq=False)
class Toy:
    """Steps of l2-logistic regression on two Gaussians until w / |w| is near the best direction; new data each run."""

    source: Gaussians
    plan: Plan
    distance: float = 0.05
    pilots: int = 7

    @cached_property
    def best(self) -> Vector:
        """w*."""
        return self.source.best()

    def crossings(self, m: int, lams: Sequence[float], runs: Sequence[int]) -> Matrix:
        """Steps on m samples to the distance, a row for each lam, a column for each run."""
        at, found = checkpoints(self.plan.passes * self.plan.sizes[-1], self.plan.checkpoints, 10), []
        for run in runs:
            X, y = self.source.draw(m, np.random.default_rng([self.source.d, m, run]))
            problem = L2_LOGISTIC.problem(X, y, lams[0])
            each = [descend(problem.with_lam(lam), nearness(self.best), at, run, -self.distance) for lam in lams]
            found.append([run.crossing(-self.distance)[0] for run in each])
        return np.array(found).T

    def lam(self, m: int) -> float:
        """The lam of the fewest median steps in pilot runs; where most of them fail, of the fewest failures."""
        first = PILOT_SEED + self.plan.seed
        steps = self.crossings(m, self.plan.lams, range(first, first + self.pilots))
        order = np.lexsort((np.isinf(steps).mean(axis=1), np.median(steps, axis=1)))
        return self.plan.lams[int(order[0])]

    def median(self, m: int) -> float:
        """Median steps of the runs with that lam; infinite if half of them fail."""
        first = self.plan.seed
        found = float(np.median(self.crossings(m, [self.lam(m)], range(first, first + self.plan.runs))))
        self.plan.tick()
        return found


@dataclass(frozen=True)
class Shape:
    """Eq. (12) as steps(m) = limit / (1 - least / m): the steps for m = infinity, and the samples below which there are
    none. Infinite where m <= least.
    """

    limit: float
    least: float

    def __call__(self, samples: Vector) -> Vector:
        # |w0| = epsilon = delta = 1 and p = 2 make the limit 2, and C = least / 2 that number of samples
        return self.limit * pgs_steps(1.0, 1.0, 2.0, samples, delta=1.0, C=self.least / 2.0) / 2.0

    @classmethod
    def fitted(cls, samples: Sequence[int], steps: Vector) -> Shape | None:
        """Least squares of the logarithms; None for fewer than three finite numbers of steps."""
        m, T = np.asarray(samples, dtype=np.float64)[np.isfinite(steps)], steps[np.isfinite(steps)]
        if len(T) < 3:
            return None

        def residual(part: float) -> Vector:
            values = np.log(T) + np.log1p(-part * m[0] / m)
            return np.asarray(values - values.mean())

        found = optimize.minimize_scalar(
            lambda part: float(np.sum(residual(part) ** 2)), bounds=(1e-6, 1.0 - 1e-6), method="bounded"
        )
        part = float(found.x)
        return cls(float(np.exp(np.mean(np.log(T) + np.log1p(-part * m[0] / m)))), part * float(m[0]))
