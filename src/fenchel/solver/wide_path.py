"""Least squares along a grid of lam where samples are few and dense: working sets for several lams at a time.

Weights are looked for in a working set E, on its Gram matrix. The residuals of several lams make one matrix, whose
product with X both certifies them all and names the columns that E lacks; lams up to the first that lacks one are
done.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from fenchel.certificate.centred import Centred
from fenchel.certificate.moments import MomentBounds, has_moderate
from fenchel.data.design import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks, Indices
from fenchel.solver.base import Result, Stop
from fenchel.solver.found import found
from fenchel.solver.gram_path import eased
from fenchel.steps.gram_descent import minimise, ridged

#: The most samples, and the most columns of a working set.
MOST_SAMPLES, MOST_COLUMNS = 500, 1000
#: Columns of the first working set, and how many times those that are not zero the next have.
FIRST_COLUMNS, GROWTH = 64, 3
#: How many lams are looked at together: first, and at most.
FIRST_LAMS, MOST_LAMS = 4, 8
#: The accuracy of the descent, as a part of the gap that is asked for: first, and at last.
FIRST_ACCURACY, LEAST_ACCURACY = 1e-6, 1e-12


class WidePath:
    """Solves some penalties after the other; weights and the working set carry over."""

    def __init__(self, samples: Centred) -> None:
        self.problem, self.samples, d = samples.problem, samples, samples.problem.shape[1]
        self.lams, self.accuracy, self.w = FIRST_LAMS, FIRST_ACCURACY, np.zeros(d)
        score = np.abs(self.samples.duals(self.samples.y[None])[0])
        #: max |v_j| of w = 0.
        self.largest = float(score.max())
        self._enter(_top(score, FIRST_COLUMNS))

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Dense data of few samples and more columns, single weights."""
        design, blocks = problem.design, problem.penalty.blocks(problem.shape[1])
        dense = not design.is_sparse and design.dtype == np.float64
        return dense and design.shape[0] <= min(MOST_SAMPLES, design.shape[1]) and blocks is not None and blocks.singles

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optima for the first of these penalties, as many as are found; none where a working set is not enough."""
        start, results = time.perf_counter(), list[Result]()
        for penalty, (w, bounds) in zip(penalties, self.advance(penalties, stop), strict=False):
            problem, seconds = self.problem.replace(penalty=penalty), time.perf_counter() - start
            results.append(found(problem, w, self.samples.intercept(w), bounds, stop, 1, seconds))
        return results

    def advance(self, penalties: Sequence[Penalty], stop: Stop) -> list[tuple[Vector, MomentBounds]]:
        """Weights and bounds for the first of these penalties; the next call goes on from the last of them."""
        while self.accuracy >= LEAST_ACCURACY:
            blocks = [_blocks(penalty, len(self.columns)) for penalty in penalties[: self.lams]]
            if not all(map(has_moderate, blocks)):
                return []
            weights, residuals = self._descend(blocks, stop)
            V, reached = self.samples.duals(residuals), []
            for one, w, r, v in zip(blocks, weights, residuals, V, strict=True):
                bounds = self.samples.bounds(one, self.columns, w, r, v)
                if not bounds.reach(stop.tol, stop.atol):
                    break
                self.w = np.zeros_like(self.w)
                self.w[self.columns] = w
                reached.append((self.w, bounds))
            if len(reached) == len(blocks):
                self.lams = min(2 * self.lams, MOST_LAMS)
                return reached
            self.lams = max(1, self.lams // 2)
            missing = float(blocks[len(reached)].threshold[0]), V[len(reached)]
            if reached or not (self._extend(*missing) or self._sharpen()):
                return reached
        return []

    def _sharpen(self) -> bool:
        """Descend further from now on, unless that was far enough already."""
        self.accuracy *= 1e-3
        return self.accuracy >= LEAST_ACCURACY

    def _enter(self, columns: Indices) -> None:
        """Another working set."""
        self.columns = np.sort(columns)
        self.part = self.problem.design.matrix[:, self.columns]
        if self.samples.mean is not None:
            self.part = self.part - self.samples.mean[self.columns]
        weighted = self.samples.p[:, None] * self.part
        self.G, self.c = np.ascontiguousarray(self.part.T @ weighted), weighted.T @ self.samples.y

    def _extend(self, threshold: float, v: Vector) -> bool:
        """Take in the columns that this dual vector says are missing, and those next to them; False if none are."""
        score = np.abs(v)
        inside = np.zeros(len(v), dtype=bool)
        inside[self.columns] = True
        missing = int(np.count_nonzero((score > threshold) & ~inside))
        if not missing:
            return False
        score[inside] = np.inf
        size, alive = len(self.columns), int(np.count_nonzero(self.w))
        more = max(min(missing, size), GROWTH * alive - size, FIRST_COLUMNS // 2)
        if size + more > MOST_COLUMNS:
            self.accuracy = 0.0  # this is not the way
            return False
        self._enter(_top(score, size + more))
        return True

    def _descend(self, penalties: Sequence[Blocks], stop: Stop) -> tuple[Vector, Vector]:
        """Weights of the working set and residuals, a row for each penalty."""
        w, weights = self.w[self.columns], np.empty((len(penalties), len(self.columns)))
        target = self.samples.sizes[1]
        enough = self.accuracy * max(stop.tol * target * target, stop.atol)
        for k, blocks in enumerate(penalties):
            H = ridged(self.G, blocks.ridge)
            minimise(H, eased(blocks), w, H @ w - self.c, enough)
            weights[k] = w
        return weights, self.samples.y - weights @ self.part.T


def _top(score: Vector, count: int) -> Indices:
    """Where the largest so many scores are."""
    if count >= len(score):
        return np.arange(len(score))
    return np.argpartition(-score, count)[:count].astype(np.int64)


def _blocks(penalty: Penalty, d: int) -> Blocks:
    blocks = penalty.blocks(d)
    assert blocks is not None
    return blocks
