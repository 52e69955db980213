"""Linear models that gradient steps move, in one pass over the data or many: the state of the Primal Gradient Solver.

    w_t = grad R*(v_t / (t + offset)),   R(w) = lam/2 |w|_p^2,

v_t minus the sum of t subgradients of the loss, each the mean over a batch (Zhu et al. 2009, Figures 1 and 2; line 6 of
Figure 2 has |w|_q where |w|_p is meant). Several models, of several lam or of several classes against the rest, share
each read of a row (`_core/ascent/primal_gradient.hpp`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel._core import CompiledLoss, kernels
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem.penalties import Penalty


@dataclass(frozen=True)
class GradientRule:
    """The steps of a run.

    offset = 1 is the paper's. offset = 0 makes steps 1/(lam t) for p = 2, and an `eager` projection shortens v together
    with w. A positive `intercept_step` c moves intercepts without a penalty by c / sqrt(t) times the slope.
    """

    p: float = 2.0
    offset: float = 1.0
    constant: float = 0.0  # entry of a constant column
    intercept_step: float = 0.0
    eager: bool = False

    def kernel(self) -> kernels.GradientRule:
        """For a pass."""
        return kernels.GradientRule(self.p, self.offset, self.constant, self.intercept_step, self.eager)


#: Sums over the samples of a pass, each before its step: loss, weight of mistakes, sum_t |g_t|_q^2 / t from above, with
#: g_t the subgradient of step t; and of every fourth sample the loss, mistakes and weight of the average.
SUMS = ("loss", "mistakes", "slopes", "average_loss", "average_mistakes", "average_weight")


@dataclass
class GradientModels:
    """One column for each model; the last row is the weight of a constant column."""

    rule: GradientRule
    lam: Vector
    width: int
    radius: Vector  # |w|_p is at most this, for each model; infinite for none
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
        self.table = np.zeros((shape[0], shape[1] * (2 if averages and not is_power else 1)))
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

    def learn(
        self,
        loss: CompiledLoss,
        rows: kernels.Lines,
        y: Vector,
        weights: Vector,
        order: Indices,
        mean_weight: float,
        batch: int = 1,
        draw: int = 0,
    ) -> tuple[Matrix, Matrix | None]:
        """One pass; `SUMS` for each model, and the models after step `draw` if the pass makes that step."""
        sums = np.zeros((len(SUMS), self.count))
        drawn = np.zeros((self.width + 2, self.count)) if draw > self.t else None
        self.t = kernels.primal_gradient(
            self.rule.kernel(),
            loss,
            rows,
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
        )
        return sums, drawn if drawn is not None and self.t >= draw else None

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
        if not self.rule.eager and np.any(np.isfinite(self.radius)):
            length = np.sqrt(np.sum(np.square(self.v), axis=0))
            scale = np.where(scale * length > self.radius, self.radius / np.maximum(length, 1e-300), scale)
        return np.asarray(self.v * scale)

    def average(self) -> Matrix:
        """The mean of all models after a step, with weights t + offset; as `last`."""
        time = max(self.time, 1e-300)
        if self.sum is not None:
            weights = self.sum / time
        else:
            weights = (self.numbers[1] * self.v - self.table[:, self.count :]) / (self.lam * time)
        return np.vstack([weights, self.numbers[3] / time])

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
