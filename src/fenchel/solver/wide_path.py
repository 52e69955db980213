"""Least squares along a grid of lam where samples are few and dense: working sets for several lams at a time.

Weights are looked for in a working set E, on its Gram matrix. The residuals of several lams make one matrix, whose
product with X both certifies them all and names the columns that E lacks; lams up to the first that lacks one are
done.

Rounding: residuals r, as computed, are as good a dual point as any, once their mean is taken off where there is an
intercept. With p_i = s_i / W, S_j = sqrt(sum_i p_i x_ij^2) and |r|_p = sqrt(sum_i p_i r_i^2), their product with column
j is off by at most e S_j |r|_p with e = 8 gamma_(n + 200). And beside a constant they are within 8 gamma_(k + 200) M,
in that norm, of y - X w, for k columns of E and M = S_y + sum_j S_j |w_j|.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from fenchel.certificate.moments import MomentBounds
from fenchel.data.design import Vector, gamma
from fenchel.problem import Problem
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import EVALUATION
from fenchel.problem.penalties.blocks import Blocks, Indices
from fenchel.solver.base import Result, Stop
from fenchel.solver.found import found
from fenchel.solver.gram_path import eased
from fenchel.steps.gram_descent import minimise

#: The most samples, and the most columns of a working set.
MOST_SAMPLES, MOST_COLUMNS = 500, 1000
#: Columns of the first working set, and how many times those that are not zero the next have.
FIRST_COLUMNS, GROWTH = 64, 3
#: How many lams are looked at together: first, and at most.
FIRST_LAMS, MOST_LAMS = 4, 8
#: The accuracy of the descent, as a part of the gap that is asked for: first, and at last.
FIRST_ACCURACY, LEAST_ACCURACY = 1e-6, 1e-12
UP = 1.0 + 1e-9


class WidePath:
    """Solves some penalties after the other; weights and the working set carry over."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.p = problem, problem.weights / problem.total_weight
        self.X, y, d = problem.design.matrix, problem.y, problem.shape[1]
        self.mean, self.centre = np.zeros(d), 0.0
        if problem.intercept:
            total = float(self.p.sum())
            self.mean, self.centre = (self.p @ self.X) / total, float(self.p @ y) / total
        self.y = y - self.centre
        self.lengths = problem.design.column_norms(2.0, problem.weights) / np.sqrt(problem.total_weight) * UP
        self.widest = float(self.lengths.max())
        self.target = float(np.sqrt(problem.mean(y**2))) * UP
        self.lams, self.accuracy, self.w = FIRST_LAMS, FIRST_ACCURACY, np.zeros(d)
        score = np.abs(self._duals(self.y[None])[0])
        #: max |v_j| of w = 0.
        self.largest = float(score.max())
        self._enter(_top(score, FIRST_COLUMNS))

    @property
    def sizes(self) -> tuple[Vector, float]:
        """Of columns and targets."""
        return self.lengths, self.target

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
            b = float(self.centre - self.mean @ w) if self.problem.intercept else 0.0
            problem, seconds = self.problem.replace(penalty=penalty), time.perf_counter() - start
            results.append(found(problem, w, b, bounds, stop, 1, seconds))
        return results

    def advance(self, penalties: Sequence[Penalty], stop: Stop) -> list[tuple[Vector, MomentBounds]]:
        """Weights and bounds for the first of these penalties; the next call goes on from the last of them."""
        while self.accuracy >= LEAST_ACCURACY:
            blocks = [_blocks(penalty, len(self.columns)) for penalty in penalties[: self.lams]]
            weights, residuals = self._descend(blocks, stop)
            V, reached = self._duals(residuals), []
            for one, w, r, v in zip(blocks, weights, residuals, V, strict=True):
                bounds = self._bounds(one, w, r, v)
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
        self.part = self.X[:, self.columns] - self.mean[self.columns]
        weighted = self.p[:, None] * self.part
        self.G, self.c = np.ascontiguousarray(self.part.T @ weighted), weighted.T @ self.y

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
        enough = self.accuracy * max(stop.tol * self.target * self.target, stop.atol)
        for k, blocks in enumerate(penalties):
            H = self.G
            if blocks.ridge:
                H = H.copy()
                H[np.diag_indices_from(H)] += blocks.ridge
            minimise(H, eased(blocks), w, H @ w - self.c, enough)
            weights[k] = w
        return weights, self.y - weights @ self.part.T

    def _duals(self, residuals: Vector) -> Vector:
        """X' diag(p) r for every row r, the columns' means taken off."""
        weighted = residuals * self.p
        V = np.asarray(weighted @ self.X)
        return V - np.outer(weighted.sum(axis=1), self.mean) if self.problem.intercept else V

    def _bounds(self, blocks: Blocks, w: Vector, r: Vector, v: Vector) -> MomentBounds:
        """P at w and its best intercept; D at the best multiple of the residuals, less their mean, that is feasible."""
        p, y = self.p, self.y
        mean = float(p @ r) if self.problem.intercept else 0.0
        square, inner = float(p @ (r - mean) ** 2), float(p @ ((r - mean) * y))
        length, size = float(np.sqrt(square)) * UP, (self.target + float(self.lengths[self.columns] @ np.abs(w))) * UP
        sums, rounding = 8.0 * gamma(len(y) + 200), 8.0 * gamma(len(w) + 200)
        off, penalty_value = (sums + rounding) * size, blocks.value(w)
        primal = 0.5 * square + penalty_value
        reach = length + off
        upper = 0.5 * (reach * reach * (1.0 + sums) + off * off) + penalty_value * (1.0 + rounding)
        error, threshold = sums * (length + abs(mean)), float(blocks.threshold[0])
        if blocks.ridge:
            excess = np.maximum(0.0, np.abs(v) + error * self.lengths - threshold)
            theta, conjugate = 1.0, float(np.sum(excess**2)) / (2.0 * blocks.ridge)
        else:
            largest = max(float(v.max()), -float(v.min()), 1e-300) + error * self.widest
            best = inner / square if square > 0.0 else 1.0
            theta, conjugate = max(0.0, min(threshold / largest * (1.0 - EVALUATION), best)), 0.0
        dual = theta * (inner - 0.5 * theta * square) - conjugate
        # sum p (r - mean) y has terms as large as those of |r|_p S_y
        lower = dual - sums * (theta * (length * self.target + theta * square) + conjugate) - 1e-300
        return MomentBounds(primal, upper * (1.0 + EVALUATION), dual, lower, 0.5 * self.target * self.target)


def _top(score: Vector, count: int) -> Indices:
    """Where the largest so many scores are."""
    if count >= len(score):
        return np.arange(len(score))
    return np.argpartition(-score, count)[:count].astype(np.int64)


def _blocks(penalty: Penalty, d: int) -> Blocks:
    blocks = penalty.blocks(d)
    assert blocks is not None
    return blocks
