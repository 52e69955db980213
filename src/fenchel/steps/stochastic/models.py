"""Linear models that gradient steps move, in one pass over the data or many: the state of the Primal Gradient Solver.

    w_t = grad R*(v_t / (t + offset)),   R(w) = lam/2 |w|_p^2,

v_t minus the sum of t subgradients of the loss, each the mean over a batch (Zhu et al. 2009, Figures 1 and 2; line 6 of
Figure 2 has |w|_q where |w|_p is meant). p = 1 stands for the signed entropy. Several models, of several lam or of
several classes against the rest, share each read of a row (`_core/ascent/primal_gradient.hpp`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import L2, LpSquared, Penalty, SignedEntropy
from fenchel.problem.penalties.rkhs import KernelNorm


@dataclass(frozen=True)
class GradientRule:
    """The steps of a run.

    offset = 1 is the paper's. offset = 0 makes steps 1/(lam t) for p = 2, and an `eager` projection shortens v together
    with w. A positive `intercept_step` c moves intercepts without a penalty by c / sqrt(t) times the slope, and by
    `intercept_limit` at most.
    """

    p: float = 2.0  # 1: the signed entropy
    offset: float = 1.0
    constant: float = 0.0  # entry of a constant column
    intercept_step: float = 0.0
    intercept_limit: float = np.inf
    eager: bool = False

    def kernel(self) -> kernels.GradientRule:
        """For a pass."""
        intercept = self.intercept_step, self.intercept_limit
        return kernels.GradientRule(self.p, self.offset, self.constant, *intercept, self.eager)


#: Sums over the samples of a pass, each before its step: loss, weight of mistakes, sum_t |g_t|_q^2 / t from above, with
#: g_t the subgradient of step t; and of every fourth sample the loss, mistakes and weight of the average.
SUMS = ("loss", "mistakes", "slopes", "average_loss", "average_mistakes", "average_weight")


@dataclass(frozen=True, eq=False)
class Saved:
    """Models before some steps: all attributes, and copies of what steps change in place."""

    fields: dict[str, Any]
    arrays: dict[str, Matrix]
    rows: Indices | None  # of the table that may change; None: all
    part: Matrix  # of the table: these rows


@dataclass
class GradientModels:
    """One column for each model; the last row is the weight of a constant column."""

    rule: GradientRule
    lam: Vector
    width: int
    radius: Vector  # |w|_p is at most this, for each model; infinite for none, and finite for p = 1
    classes: Vector | None = None  # the label of each model: 1 for it and -1 for the rest; None: targets as they are
    averages: bool = True
    t: int = 0
    table: Matrix = field(init=False)  # v, and for p = 2 with averages what they lack, behind it
    w: Matrix | None = field(init=False)  # for p < 2
    sum: Matrix | None = field(init=False)  # of (t + offset) w, for p < 2
    numbers: Matrix = field(init=False)  # f, total, b and the sum of (t + offset) b

    def __post_init__(self) -> None:
        shape = (self.width + 1, self.count)
        is_power, averages = self.rule.p < 2.0, self.averages
        self.table = _aligned_zeros(shape[0], shape[1] * (2 if averages and not is_power else 1))
        self.w = np.zeros(shape) if is_power else None
        self.sum = np.zeros(shape) if is_power and averages else None
        self.numbers = np.zeros((4, self.count))
        self.numbers[0] = 1.0

    @property
    def v(self) -> Matrix:
        """Minus the sums of the subgradients, over f."""
        return self.table[:, : self.count]

    @property
    def count(self) -> int:
        """How many models."""
        return len(self.lam)

    def saved(self, rows: Indices | None = None) -> Saved:
        """What `restore` needs after steps on samples with entries in these columns only; None: in any."""
        rows = None if self.w is not None else rows  # for p < 2 a step changes all weights
        arrays = {name: array.copy() for name, array in (("w", self.w), ("sum", self.sum)) if array is not None}
        part = self.table.copy() if rows is None else self.table[rows]
        return Saved(dict(self.__dict__), {**arrays, "numbers": self.numbers.copy()}, rows, part)

    def restore(self, saved: Saved) -> None:
        """The models as they were."""
        self.__dict__.update(saved.fields)
        for name, values in saved.arrays.items():
            getattr(self, name)[:] = values
        self.table[slice(None) if saved.rows is None else saved.rows] = saved.part

    def of(self, columns: Indices) -> GradientModels:
        """Some of the models, which do not change with these."""
        other = copy(self)
        other.lam, other.radius = self.lam[columns], self.radius[columns]
        other.classes = None if self.classes is None else self.classes[columns]
        both = self.table.shape[1] > self.count
        places = np.concatenate([columns, self.count + columns]) if both else columns
        other.table = _aligned_zeros(len(self.table), len(places))
        np.take(self.table, places, axis=1, out=other.table)
        other.numbers = np.ascontiguousarray(self.numbers[:, columns])
        other.w = None if self.w is None else np.ascontiguousarray(self.w[:, columns])
        other.sum = None if self.sum is None else np.ascontiguousarray(self.sum[:, columns])
        return other

    def are_finite(self, rows: Indices | None = None) -> Mask:
        """Whether the last weights and intercepts of each model are, up to an overflow of their sums; rows: of v."""
        if self.w is not None:
            weights = self.w.sum(axis=0)
        else:
            weights = (self.v if rows is None else self.v[rows]).sum(axis=0) * (
                self.numbers[0] / (self.lam * max(self.t + self.rule.offset, 1.0))
            )
        return np.asarray(np.isfinite(weights + self.numbers[2]))

    def learn(
        self,
        loss: Loss,
        rows: Design,
        y: Vector,
        weights: Vector,
        order: Indices,
        mean_weight: float,
        batch: int = 1,
        draw: int = 0,
        each: Matrix | None = None,
    ) -> tuple[Matrix, Matrix | None]:
        """One pass; `SUMS` for each model, and the models after step `draw` if the pass makes that step.

        each: receives the losses of the average for every fourth sample, a row for it, and behind them whether they are
        mistakes. A loss without a compiled version takes the same steps in NumPy.
        """
        sums = np.zeros((len(SUMS), self.count))
        drawn = np.zeros((self.width + 2, self.count)) if draw > self.t else None
        kernel = loss.kernel()
        if kernel is None:
            share = weights / mean_weight
            for first in range(0, len(order), batch):
                self._take_step(loss, rows, y, share, order[first : first + batch], first, sums, each)
                if drawn is not None and self.t == draw:
                    drawn[:] = self.last()
            return sums, drawn if drawn is not None and self.t >= draw else None
        self.t = kernels.primal_gradient(
            self.rule.kernel(),
            kernel,
            rows.lines,
            y,
            weights,
            order,
            mean_weight,
            self.lam,
            self.classes,
            self.radius,
            batch,
            self.t,
            self.averages,
            self.table,
            self.w,
            self.sum,
            self.numbers,
            sums,
            draw,
            drawn,
            each,
        )
        return sums, drawn if drawn is not None and self.t >= draw else None

    def _take_step(
        self,
        loss: Loss,
        rows: Design,
        y: Vector,
        share: Vector,
        batch: Indices,
        first: int,
        sums: Matrix,
        each: Matrix | None,
    ) -> None:
        """One step as in the compiled pass, in which the batch begins with sample number `first`."""
        X, numbers, rule = rows.of_rows(batch), self.numbers, self.rule
        targets = np.repeat(y[batch, None], self.count, axis=1)
        if self.classes is not None:
            targets = np.where(targets == self.classes, 1.0, -1.0)
        s = share[batch, None]

        def evaluate(model: Matrix, which: slice, prefix: str = "") -> Matrix:
            z, own = (X.times(model[:-1]) + model[-1])[which], targets[which]
            values = loss.value(z.ravel(), own.ravel()).reshape(z.shape)
            mistakes = ~(z * own > 0.0)
            sums[SUMS.index(prefix + "loss")] += np.sum(s[which] * values, axis=0)
            sums[SUMS.index(prefix + "mistakes")] += np.sum(s[which] * mistakes, axis=0)
            if prefix and each is not None:
                start = -(-first // 4)
                each[start : start + len(z)] = np.hstack([values, mistakes])
            return np.asarray(z)

        z = evaluate(self.last(), slice(None))
        if self.averages:
            fourth = slice(-first % 4, None, 4)
            evaluate(self.average(), fourth, "average_")
            sums[SUMS.index("average_weight")] += float(s[fourth].sum())
        slope = s / len(batch) * loss.derivative(z.ravel(), targets.ravel()).reshape(z.shape)
        self.t += 1
        length = X.row_norms(np.inf if rule.p == 1.0 else 2.0)
        sums[SUMS.index("slopes")] += (np.abs(slope).T @ length) ** 2 / self.t
        move = np.zeros_like(self.v)
        for c in range(self.count):
            move[: X.shape[1], c] = X.rmatvec(slope[:, c]) / -numbers[0, c]
        self.v[:] += move
        moved = rule.intercept_step / np.sqrt(self.t) * slope.sum(axis=0)
        numbers[2] -= np.clip(moved, -rule.intercept_limit, rule.intercept_limit)
        time = self.t + rule.offset
        numbers[3] += time * numbers[2]
        if self.w is None:
            if self.averages:
                self.table[:, self.count :] += move * numbers[1]
            numbers[1] += numbers[0] * self._shortening()
            return
        entries = self.width + (rule.constant != 0.0)
        for c, (lam, radius) in enumerate(zip(self.lam.tolist(), self.radius.tolist(), strict=True)):
            penalty = penalty_with(lam, rule.p, radius)
            self.w[:entries, c] = penalty.grad_conjugate(self.v[:entries, c] / time)
        if self.sum is not None:
            self.sum += time * self.w

    @property
    def time(self) -> float:
        """sum of t + offset over the steps."""
        return self.t * (self.t + 1) / 2.0 + self.rule.offset * self.t

    def last(self) -> Matrix:
        """The models after the last step: weights, the weight of a constant column, the intercept."""
        return np.vstack([self._weights(), self.numbers[2]])

    def _weights(self) -> Matrix:
        if self.w is not None:
            return self.w
        f, time = self.numbers[0], self.t + self.rule.offset
        if self.t == 0:
            return np.zeros_like(self.v)
        scale = f / (self.lam * time)
        return np.asarray(self.v * (scale if self.rule.eager else scale * self._shortening()))

    def _shortening(self) -> Vector:
        """The factors that bring f v / (lam (t + offset)) into the balls, for p = 2."""
        if not np.any(np.isfinite(self.radius)):
            return np.ones(self.count)
        length = self._lengths() * self.numbers[0] / (self.lam * (self.t + self.rule.offset))
        return np.asarray(np.minimum(1.0, self.radius / np.maximum(length, 1e-300)))

    def _lengths(self) -> Vector:
        """|v|_2 of each model."""
        return np.asarray(np.sqrt(np.sum(np.square(self.v), axis=0)))

    def average(self) -> Matrix:
        """The mean of all models after a step, with weights t + offset; as `last`."""
        time = max(self.time, 1e-300)
        found = np.empty((self.width + 2, self.count))
        weights, found[-1] = found[:-1], self.numbers[3] / time
        if self.sum is not None:
            np.divide(self.sum, time, out=weights)
        else:
            np.multiply(self.v, self.numbers[1], out=weights)
            weights -= self.table[:, self.count :]
            weights /= self.lam * time
        return found

    def start(self, penalty: Penalty, w: Matrix, b: Vector, steps: int) -> None:
        """Go on from given models, a row of w for each, as if so many steps had led there: v = (t + offset) R'(w)."""
        self.t = steps
        for c, each in enumerate(w):
            gradient = penalty.subgradients(each, 0.0)
            assert gradient is not None
            self.v[: len(each), c] = (steps + self.rule.offset) * gradient.point
            if self.w is not None:
                self.w[: len(each), c] = each
        self.numbers[2] = b
        if not self.averages:
            return
        # the average so far is the start: total v - held = lam time w, and likewise for p < 2
        self.numbers[3] = self.time * self.numbers[2]
        if self.sum is not None:
            self.sum[: w.shape[1]] = self.time * w.T
        else:
            self.table[: w.shape[1], self.count :] = -self.lam * self.time * w.T


def _aligned_zeros(rows: int, columns: int) -> Matrix:
    """Zeros from the start of a cache line on: rows of twelve then lie in two lines, not three (86 % of the time)."""
    memory = np.zeros(rows * columns + 8)
    first = -memory.ctypes.data // 8 % 8
    return memory[first : first + rows * columns].reshape(rows, columns)


@dataclass(frozen=True)
class GradientPenalty:
    """What the steps need of a penalty: lam, the norm p, and the radius of |w|_p, infinite if there is none."""

    lam: float
    p: float
    ball: float


def gradient_penalty(penalty: Penalty) -> GradientPenalty | None:
    """Of L2, KernelNorm, LpSquared and SignedEntropy; None for others."""
    if penalty.quadratic or isinstance(penalty, KernelNorm):
        return GradientPenalty(penalty.strong_convexity, 2.0, np.inf)
    if isinstance(penalty, LpSquared | SignedEntropy):
        return GradientPenalty(penalty.lam, penalty.norm, penalty.ball)
    return None


def penalty_with(lam: float, p: float, radius: float) -> Penalty:
    """The penalty of a model."""
    if p == 1.0:
        return SignedEntropy(lam, radius)
    bounded = np.isfinite(radius)
    return L2(lam) if p == 2.0 and not bounded else LpSquared(lam, p, radius if bounded else None)
