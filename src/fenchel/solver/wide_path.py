"""A grid of lam where samples are few and dense: working sets for several lams at a time.

Weights are looked for in a working set E. The multipliers of several lams make one matrix, whose product with X both
certifies them all and names the columns that E lacks; lams up to the first that lacks one are done.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from fenchel.certificate.bounds import Bounds, Samples, has_moderate
from fenchel.certificate.centred import Centred
from fenchel.certificate.responses import Response, Responses
from fenchel.data.design import Rounded, Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks, Indices
from fenchel.solver.base import Result, Stop
from fenchel.solver.found import found
from fenchel.solver.gram_path import eased
from fenchel.solver.smooth_path import SmoothPath
from fenchel.steps.gram_descent import minimise, ridged

#: The most samples, and the most columns of a working set.
MOST_SAMPLES, MOST_COLUMNS = 500, 1000
#: Columns of the first working set, and how many times those that are not zero the next have.
FIRST_COLUMNS, GROWTH = 64, 3
#: The part of the largest score, or of the threshold, that the best columns surely exceed.
HALF = 0.5
#: How many lams are looked at together: first, and at most.
FIRST_LAMS, MOST_LAMS = 4, 8
#: The accuracy of the descent, as a part of the gap that is asked for, first and at last: on the objective of least
#: squares, or on a gap that is proven for the working set.
QUADRATIC, PROVEN = (1e-7, 1e-12), (0.1, 1e-5)

Of = TypeVar("Of", bound=Samples)


@dataclass(frozen=True, eq=False)
class Trial:
    """A model of the working set, its multipliers, and what else its bounds need."""

    columns: Indices
    w: Vector
    b: float
    multipliers: Vector
    response: Response | None = None
    steps: int = 1


class WidePath(ABC, Generic[Of]):
    """Solves some penalties after the other; weights and the working set carry over."""

    columns: Indices  # of the working set
    accuracies: tuple[float, float]

    def __init__(self, samples: Of, multipliers: Vector, b: float = 0.0) -> None:
        """With the multipliers and the intercept of w = 0."""
        self.samples, self.problem = samples, samples.problem
        self.last = Trial(np.arange(0), np.zeros(0), b, multipliers)
        self.lams, self.accuracy = FIRST_LAMS, self.accuracies[0]
        self.room = np.empty((MOST_LAMS, self.problem.shape[1]))
        score = np.abs(self._duals([self.last])[0])
        #: max |v_j| of w = 0.
        self.largest = float(score.max())
        self._enter(_top(score, FIRST_COLUMNS, HALF * self.largest))

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Dense data of few samples and more columns; single weights, all with one threshold."""
        design, penalty = problem.design, problem.penalty
        dense = not design.is_sparse and design.dtype == np.float64
        single = penalty.separable and Trait.BLOCK_PENALTY in penalty.traits
        return dense and design.shape[0] <= min(MOST_SAMPLES, design.shape[1]) and single

    @abstractmethod
    def _enter(self, columns: Indices) -> None:
        """Another working set."""

    @abstractmethod
    def _descend(self, penalties: Sequence[Blocks], stop: Stop) -> list[Trial]:
        """A model for each of these penalties on the working set, or for the first of them."""

    @abstractmethod
    def _bounds(self, penalties: Sequence[Blocks], trials: Sequence[Trial], V: Vector) -> list[Bounds]:
        """P and D of models with the products of their multipliers with every column, the rows of V."""

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optima for the first of these penalties, as many as are found; none where a working set is not enough."""
        start, results = time.perf_counter(), list[Result]()
        models = self.advance(penalties, stop)
        seconds = (time.perf_counter() - start) / max(1, len(models))  # for each, of what they took together
        for penalty, (trial, bounds) in zip(penalties, models, strict=False):
            problem = self.problem.replace(penalty=penalty)
            results.append(found(problem, trial.columns, trial.w, trial.b, bounds, stop, trial.steps, seconds))
        return results

    def advance(self, penalties: Sequence[Penalty], stop: Stop) -> list[tuple[Trial, Bounds]]:
        """Models and bounds for the first of these penalties; the next call goes on from the last of them."""
        while self.accuracy >= self.accuracies[1]:
            blocks = [_blocks(penalty, len(self.columns)) for penalty in penalties[: self.lams]]
            if not all(map(has_moderate, blocks)):
                return []
            trials = self._descend(blocks, stop)
            if not trials:
                return []
            V, reached = self._duals(trials), []
            for trial, bounds in zip(trials, self._bounds(blocks[: len(trials)], trials, V), strict=True):
                if not bounds.reach(stop.tol, stop.atol):
                    break
                self.last = trial
                reached.append((trial, bounds))
            if len(reached) == len(trials):
                self.lams = min(2 * self.lams, MOST_LAMS)
                return reached
            self.lams, self.last = max(2, self.lams // 2), self.last if reached else trials[0]
            extended = self._extend(float(blocks[len(reached)].threshold[0]), V[len(reached)])
            if reached or not (extended or self._sharpen()):
                return reached
        return []

    def approach(self, penalty: Penalty, stop: Stop) -> bool:
        """Go through a lam on the way to another: take in the columns that it lacks; False if that is not the way."""
        blocks = _blocks(penalty, len(self.columns))
        trials = self._descend([blocks], stop) if has_moderate(blocks) else []
        if trials:
            self.last = trials[0]
            self._extend(float(blocks.threshold[0]), self._duals(trials)[0])
        return bool(trials) and self.accuracy >= self.accuracies[1]

    def _duals(self, trials: Sequence[Trial]) -> Vector:
        """The products of their multipliers with every column, in the rows of a matrix that is used again."""
        return self.samples.duals(np.array([trial.multipliers for trial in trials]), self.room[: len(trials)])

    def _carried(self) -> Vector:
        """The last weights, on the working set."""
        w = np.zeros(self.problem.shape[1])
        w[self.last.columns] = self.last.w
        return w[self.columns]

    def _sharpen(self) -> bool:
        """Descend further from now on, unless that was far enough already."""
        self.accuracy *= 1e-3
        return self.accuracy >= self.accuracies[1]

    def _extend(self, threshold: float, v: Vector) -> bool:
        """Take in the columns that this dual vector says are missing, and those next to them; False if none are."""
        score = np.abs(v)
        inside = np.zeros(len(v), dtype=bool)
        inside[self.columns] = True
        missing = int(np.count_nonzero((score > threshold) & ~inside))
        if not missing:
            return False
        score[inside] = np.inf
        size, alive = len(self.columns), int(np.count_nonzero(self.last.w))
        more = max(min(missing, size), GROWTH * alive - size, FIRST_COLUMNS // 2)
        if size + more > MOST_COLUMNS:
            self.accuracy = 0.0  # this is not the way
            return False
        self._enter(_top(score, size + more, HALF * threshold))
        return True


class WideLeastSquares(WidePath[Centred]):
    """On the Gram matrix of the working set; the residuals are the multipliers."""

    accuracies = QUADRATIC

    def __init__(self, samples: Centred) -> None:
        super().__init__(samples, samples.y)

    def _enter(self, columns: Indices) -> None:
        samples, self.columns = self.samples, np.sort(columns)
        self.part = self.problem.design.matrix[:, self.columns]
        if samples.mean is not None:
            self.part = self.part - samples.mean[self.columns]
        weighted = samples.p[:, None] * self.part
        self.G, self.c = np.ascontiguousarray(self.part.T @ weighted), weighted.T @ samples.y

    def _descend(self, penalties: Sequence[Blocks], stop: Stop) -> list[Trial]:
        samples, columns = self.samples, self.columns
        w, weights = self._carried(), np.empty((len(penalties), len(columns)))
        enough = self.accuracy * max(stop.tol * samples.target**2, stop.atol)
        H, slope = self.G, self.G @ w - self.c
        for k, blocks in enumerate(penalties):
            if blocks.ridge:
                H = ridged(self.G, blocks.ridge)
                slope = H @ w - self.c
            minimise(H, eased(blocks), w, slope, enough)
            weights[k] = w
        residuals = samples.y - weights @ self.part.T
        return [Trial(columns, w, samples.intercept(w, columns), r) for w, r in zip(weights, residuals, strict=True)]

    def _bounds(self, penalties: Sequence[Blocks], trials: Sequence[Trial], V: Vector) -> list[Bounds]:
        weights = np.array([trial.w for trial in trials])
        residuals = np.array([trial.multipliers for trial in trials])
        return self.samples.bounds(penalties, self.columns, weights, residuals, V)


class WideSmooth(WidePath[Responses]):
    """Newton steps on the working set, to a part of the gap that is proven there."""

    accuracies = PROVEN

    def __init__(self, samples: Responses) -> None:
        b, zeros = samples.best_constant, np.zeros(samples.problem.shape[0])
        super().__init__(samples, samples.at(Rounded(zeros + b, zeros)).a, b)

    def _enter(self, columns: Indices) -> None:
        self.columns = np.sort(columns)
        part = self.problem.replace(design=self.problem.design.only(self.columns))
        self.inner = SmoothPath(Responses(part), self._carried(), self.last.b)

    def _descend(self, penalties: Sequence[Blocks], stop: Stop) -> list[Trial]:
        trials = []
        goal = replace(stop, tol=self.accuracy * stop.tol, atol=self.accuracy * stop.atol)
        for blocks in penalties:
            done = self.inner.descend(blocks, goal)
            if done is None:
                break
            point = self.inner.point
            trials.append(Trial(self.columns, point.w, point.b, point.response.a, point.response, done[0]))
        return trials

    def _bounds(self, penalties: Sequence[Blocks], trials: Sequence[Trial], V: Vector) -> list[Bounds]:
        found = []
        for blocks, trial, v in zip(penalties, trials, V, strict=True):
            assert trial.response is not None
            found.append(self.samples.bounds(blocks, blocks.value(trial.w), trial.response, v))
        return found


def _top(score: Vector, count: int, guess: float) -> Indices:
    """Where the largest so many scores are, which all but surely are larger than the guess."""
    places: Indices = np.flatnonzero(score >= guess)
    if len(places) < count:
        places = np.arange(len(score))
    return places if count >= len(places) else places[np.argpartition(-score[places], count)[:count]]


def _blocks(penalty: Penalty, d: int) -> Blocks:
    blocks = penalty.blocks(d)
    assert blocks is not None
    return blocks
