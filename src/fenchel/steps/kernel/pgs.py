"""The Primal Gradient Solver for functions of a kernel, P-packSVM's problem (Zhu et al. 2009, section VII).

The rule of `fenchel.steps.stochastic` for p = 2, with f = c sum_j v_j k(x_j, .) in place of the weights: a step reads
the row of one sample on the support of v, and changes one v_j and the factor c. Rows are computed for blocks of
samples, with the columns that are in the support or in the block; whole ones are kept while the cache has room.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel._core import CompiledLoss, kernels
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.kernel import Gram
from fenchel.problem import KernelProblem, Problem
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.steps.kernel.ascent import TUNING
from fenchel.steps.stochastic.models import SUMS, GradientModels, GradientRule
from fenchel.steps.stochastic.pgs import PGS, DescentState
from fenchel.steps.stochastic.pgs import TUNING as NUMPY


@dataclass(kw_only=True)
class KernelModels(GradientModels):
    """The coefficients of functions, a column for each; and |v|_H^2, which their entries do not tell."""

    gram: Gram
    squared: Vector = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.squared = np.zeros(self.count)

    def learn_samples(
        self, loss: CompiledLoss, y: Vector, weights: Vector, order: Indices, mean_weight: float, batch: int, draw: int
    ) -> Matrix | None:
        """One pass in this order; the models after step `draw`, if the pass makes that step."""
        n, found = self.width, None
        size = max(1, TUNING.working_set // batch) * batch
        for start in range(0, len(order), size):
            block = order[start : start + size]
            columns = np.union1d(np.flatnonzero(np.any(self.table[:n] != 0.0, axis=1)), block).astype(np.int64)
            rows, where = np.ascontiguousarray(self.gram.block(block, columns)), np.append(columns, n)
            part = np.ascontiguousarray(self.table[where])
            drawn = np.zeros((len(columns) + 2, self.count)) if draw > self.t else None
            self.t = kernels.kernel_gradient(
                self.rule.kernel(),
                loss,
                rows,
                np.searchsorted(columns, block).astype(np.int64),
                np.ascontiguousarray(y[block]),
                np.ascontiguousarray(weights[block]),
                np.arange(len(block)),
                mean_weight,
                self.lam,
                self.radius,
                self.squared,
                batch,
                self.t,
                self.averages,
                part,
                self.numbers,
                np.zeros((len(SUMS), self.count)),
                draw,
                drawn,
            )
            self.table[where] = part
            if drawn is not None and self.t >= draw:
                found = np.zeros((n + 2, self.count))
                found[np.append(where, n + 1)] = drawn
        return found

    def learn_in_numpy(
        self, loss: Loss, y: Vector, share: Vector, order: Indices, batch: int, draw: int
    ) -> Matrix | None:
        """The same steps for a loss without a compiled version; `share` are the weights over their mean."""
        n, rule, found = self.width, self.rule, None
        for first in range(0, len(order), batch):
            samples = order[first : first + batch]
            columns = np.union1d(np.flatnonzero(np.any(self.table[:n] != 0.0, axis=1)), samples).astype(np.int64)
            rows, own = self.gram.block(samples, columns), np.searchsorted(columns, samples)
            f, total, b, b_total = self.numbers
            products = rows @ self.v[columns]
            scale = f * self._shortening() / (self.lam * (self.t + rule.offset)) if self.t else np.zeros(self.count)
            z = products * scale + b
            targets = np.repeat(y[samples, None], self.count, axis=1)
            slopes = loss.derivative(z.ravel(), targets.ravel()).reshape(z.shape)
            slopes *= share[samples, None] / len(samples)
            moves = -slopes / f
            self.squared += np.sum(moves * (2.0 * products + rows[:, own] @ moves), axis=0)
            np.add.at(self.v, samples, moves)
            if self.averages:
                np.add.at(self.table[:, self.count :], samples, moves * total)
            self.t += 1
            moved = rule.intercept_step / np.sqrt(self.t) * slopes.sum(axis=0)
            b -= np.clip(moved, -rule.intercept_limit, rule.intercept_limit)
            b_total += (self.t + rule.offset) * b
            total += f * self._shortening()
            if self.t == draw:
                found = self.last()
        return found

    def _lengths(self) -> Vector:
        return np.sqrt(np.maximum(self.squared, 0.0))

    def start(self, penalty: Penalty, w: Matrix, b: Vector, steps: int) -> None:
        """Go on from given functions; lam f is the derivative of lam/2 |f|_H^2."""
        self.t, time = steps, steps + self.rule.offset
        for c, each in enumerate(w):
            self.v[: len(each), c] = time * self.lam[c] * each
            self.squared[c] = (time * self.lam[c]) ** 2 * self.gram.quadratic(each)[0]
        self.numbers[2] = b
        if self.averages:
            self.numbers[3] = self.time * self.numbers[2]
            self.table[: w.shape[1], self.count :] = -self.lam * self.time * w.T


@dataclass(frozen=True)
class KernelPGS(PGS):
    """The Primal Gradient Solver for functions of a kernel: one pass over the samples is a step.

    Parameters
    ----------
    batch_size : int or "auto", default "auto"
        Samples per gradient step; "auto" is 1, and 16 for a loss without a compiled version.
    ball, sampling, output
        As for `PGS`, with |f|_H for the norm.
    """

    summary = "functions of a kernel: stochastic gradients"
    requires = frozenset()
    needs_storage = False

    def obstacle(self, problem: Problem) -> str | None:
        return None

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Only if no other does: a gap falls like 1 / t."""
        return False

    def _batch(self, problem: Problem) -> int:
        if self.batch_size != "auto":
            return int(self.batch_size)
        return 1 if problem.loss.kernel() is not None else NUMPY.numpy_batch

    def _models(self, problem: Problem, rule: GradientRule, lam: Vector, radius: Vector) -> GradientModels:
        assert isinstance(problem, KernelProblem)
        gram, averages = problem.gram, self.output == "average"
        return KernelModels(rule, lam, len(gram), radius, averages=averages, gram=gram)

    def _learn(self, state: DescentState, order: Indices, mean_weight: float, draw: int) -> Matrix | None:
        problem, models = state.problem, state.models
        assert isinstance(models, KernelModels)
        loss, y, weights = problem.loss.kernel(), problem.y, problem.weights
        if loss is None:
            return models.learn_in_numpy(problem.loss, y, weights / mean_weight, order, state.batch, draw)
        return models.learn_samples(loss, y, weights, order, mean_weight, state.batch, draw)
