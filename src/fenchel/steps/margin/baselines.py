"""Baselines for margins: the batch perceptron, and the sublinear perceptron.

Both play rows against weights: the largest margin is the value of the game max_w min_q -q'Zw, w in the unit ball and q
in the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.checks import require_count, require_one_of
from fenchel.steps.base import Candidate, Start
from fenchel.steps.margin.rows import MarginRows, MarginSolver


@dataclass
class PerceptronState:
    """w = -Z'a, the scores z = Zw, and the sums of all iterates."""

    rows: MarginRows
    w: Vector
    a: Vector
    z: Vector
    sum_w: Vector = field(init=False)
    sum_a: Vector = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.sum_w, self.sum_a = np.zeros_like(self.w), np.zeros_like(self.a)

    def candidates(self) -> list[Candidate]:
        """The mean of all iterates, and the last one."""
        mean = self.rows.candidate(self.sum_w / max(1, self.steps), np.nan, self.sum_a)
        return [mean, self.rows.candidate(self.w, np.nan, self.a)]


@dataclass(frozen=True)
class BatchPerceptron(MarginSolver[PerceptronState]):
    """Supergradient ascent on the smallest margin (Cotter, Shalev-Shwartz and Srebro 2012); a step is one row.

    Parameters
    ----------
    steps : {"constant", "root"}, default "constant"
        w - z_i for the row with the smallest margin: the perceptron on the worst row; or w - z_i / (sqrt(t) max |z|),
        projected onto the unit ball.
    """

    steps: str = "constant"
    name = "batch_perceptron"
    summary = "baseline: corrections on the row with the smallest margin"
    steps_per_check = 100
    passes_per_step = 1

    def __post_init__(self) -> None:
        require_one_of(self.steps, ("constant", "root"), "batch_perceptron: steps")

    def begin(self, problem: Interpolation, start: Start, seed: int) -> PerceptronState:
        rows = MarginRows.of(problem)
        return PerceptronState(rows, np.zeros(problem.X.shape[1]), np.zeros(rows.n), rows.prior.copy())

    def step(self, state: PerceptronState) -> PerceptronState:
        """One row."""
        i = int(np.argmax(state.z))
        state.steps += 1
        length = 1.0
        if self.steps == "root":
            length = float(np.sqrt(state.rows.unit / state.steps))
        state.w -= length * state.rows.row(i)
        state.z -= length * state.rows.gram_row(i)
        state.a[i] += length
        size = float(np.linalg.norm(state.w))
        if self.steps == "root" and size > 1.0:
            state.w /= size
            state.z /= size
            state.a /= size
        state.sum_w += state.w
        state.sum_a += state.a
        return state


@dataclass
class SublinearState:
    """The sum of the rows drawn, the weights of the rows (their logarithms), and the sum of all iterates."""

    rows: MarginRows
    by_columns: Design
    rng: np.random.Generator
    y: Vector
    log_p: Vector
    drawn: Vector
    sum_x: Vector
    steps: int = 0

    def candidates(self) -> list[Candidate]:
        """The mean iterate, with the rows drawn as multipliers."""
        return [self.rows.candidate(self.sum_x / max(1, self.steps), np.nan, self.drawn)]


@dataclass(frozen=True)
class Sublinear(MarginSolver[SublinearState]):
    """The sublinear perceptron (Clarkson, Hazan and Woodruff 2012): a row and a column at a time.

    With A = -Z scaled to rows of norm at most 1, rows are drawn from p and added to y, x = y / max(1, |y|); a column j
    is drawn with the probability x_j^2 / |x|^2, and p_i is multiplied by 1 - e v_i + e^2 v_i^2, v_i = A_ij |x|^2 / x_j
    clipped to [-1/e, 1/e]. The result is the mean of all x. A step is as many of these as touch as many numbers as one
    pass. Rows stored sparse are copied by columns once.

    Parameters
    ----------
    horizon : int, default 100000
        T, which fixes the step sizes 1 / sqrt(2 T) and e = sqrt(log(n) / T).
    """

    horizon: int = 100_000
    name = "sublinear"
    summary = "baseline: a row and a column at a time"
    steps_per_check = 20
    passes_per_step = 1
    needs_storage = True
    has_own_threads = False

    def __post_init__(self) -> None:
        require_count(self.horizon, "sublinear: horizon", "iterations")

    def begin(self, problem: Interpolation, start: Start, seed: int) -> SublinearState:
        rows, design, d = MarginRows.of(problem), problem.design, problem.X.shape[1]
        by_columns = design.stored_by_columns() if design.is_sparse else design
        zeros = np.zeros(d), rows.prior.copy(), np.zeros(rows.n), np.zeros(d)
        return SublinearState(rows, by_columns, np.random.default_rng(seed), *zeros)

    def step(self, state: SublinearState) -> SublinearState:
        """About one pass."""
        n, d = state.rows.problem.X.shape
        for _ in range(max(1, state.rows.problem.X.nnz // (n + d))):
            self._iterate(state)
        return state

    def _iterate(self, state: SublinearState) -> None:
        rows, rng, T = state.rows, state.rng, self.horizon
        rate = float(np.sqrt(max(np.log(rows.count), 1.0) / T))
        x = state.y / max(1.0, float(np.linalg.norm(state.y)))
        p = np.cumsum(np.exp(state.log_p - state.log_p.max()))
        i = min(int(np.searchsorted(p, rng.random() * p[-1], side="right")), rows.n - 1)
        state.y = state.y - rows.row(i) / (rows.longest * np.sqrt(2.0 * T))
        state.drawn[i] += 1.0
        squares = np.cumsum(x * x)
        if squares[-1] > 0.0:
            j = min(int(np.searchsorted(squares, rng.random() * squares[-1], side="right")), len(x) - 1)
            if x[j] != 0.0:
                which, values = state.by_columns.column(j)
                v = -rows.factor[which] * values * (squares[-1] / (rows.longest * x[j]))
                move = rate * np.clip(v, -1.0 / rate, 1.0 / rate)
                state.log_p[which] += np.log1p(move * move - move)
        state.sum_x += x
        state.steps += 1
