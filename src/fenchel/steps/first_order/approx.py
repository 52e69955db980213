"""APPROX: accelerated proximal coordinate descent (Fercoq and Richtarik 2015), in the compiled core.

Problem (A) of the certificates paper (Duenner, Forte, Takac and Jaggi 2016), f(A x) + sum_g psi_g(x_g), with one random
block g per step: the objective over blocks of weights (Lasso, elastic net, group Lasso), or minus the dual over samples
(SVM). The expected suboptimality is O(1/t^2); a step costs only its columns of A (`_core/ascent/approx.hpp`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_count, require_flag, require_one_of
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start
from fenchel.steps.dual_ascent.averaging import SuffixAverage, require_start


@dataclass(frozen=True)
class APPROXTuning:
    """`python -m benchmarks.tuning steps.first_order.approx first_period 2 10 --rows "^lasso approx"`: 0.87 and 0.95 of
    the time.
    """

    first_period: int = 5  # epochs to the first restart


TUNING = APPROXTuning()


@dataclass
class ApproxState(ABC):
    """The iterates x = z + square u; `images` holds A z and A u, interleaved entry by entry.

    An epoch draws as many blocks as there are. `curvature` is L_g of each block of weights (the intercept last), or q_i
    of each sample.
    """

    problem: Problem
    z: Vector
    curvature: Vector
    pool: NDArray[np.int64]  # the blocks to draw from
    rng: np.random.Generator
    accelerated: bool
    batch: int = 1  # blocks of a step
    averaging: SuffixAverage | None = None
    u: Vector = field(init=False)
    images: Vector = field(init=False)
    theta: float = field(init=False)
    square: float = 0.0
    primal: float = np.inf
    gap: float = np.inf
    passes: float = 0.0
    since: int = 0  # epochs since the last restart
    period: int = field(default_factory=lambda: TUNING.first_period)  # epochs until the next one
    level: float = np.inf  # the gap at the last one

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.curvature)):
            raise Overflow("the squares of the features overflow; rescale them")
        self.restart()

    @property
    def x(self) -> Vector:
        """The current iterate."""
        return self.z + self.square * self.u

    def restart(self) -> None:
        """Drop the momentum."""
        self.z = self.x if self.square else self.z
        self.u, self.square, self.theta = np.zeros_like(self.z), 0.0, self.batch / len(self.pool)
        self.refresh()

    def refresh(self) -> None:
        """Recompute the images, without the accumulated rounding errors of the steps."""
        self.images = np.column_stack([self.image(self.z), self.image(self.u)]).ravel()

    def epoch(self, restarts: bool) -> None:
        """As many steps as there are blocks, over single ones; then a restart, if one is due.

        If P grows quadratically around its optimum, restarts after a suitable number of epochs make convergence linear
        (Fercoq and Qu 2020). That period is unknown: it is doubled where the gap has not fallen to a quarter.
        """
        self.advance(self.pool[self.draw()])
        self.passes += 1.0
        if not np.all(np.isfinite(self.z)):
            raise Overflow("an iterate overflows; rescale the features or lam")
        self.since += 1
        if restarts and self.since >= self.period:
            if self.gap > 0.25 * self.level:
                self.period *= 2
            self.since, self.level = 0, self.gap
            self.restart()

    def draw(self) -> NDArray[np.int64]:
        """Blocks for an epoch, uniformly with replacement; those of one step are different."""
        count = len(self.pool)
        if self.batch == 1:
            return self.rng.integers(count, size=count)
        steps = max(1, count // self.batch)
        return np.concatenate([self.rng.choice(count, self.batch, replace=False) for _ in range(steps)])

    def current_image(self) -> Vector:
        """A x."""
        return self.images[::2] + self.square * self.images[1::2]

    @abstractmethod
    def image(self, x: Vector) -> Vector:
        """A x; without an intercept over weights."""

    @abstractmethod
    def advance(self, order: NDArray[np.int64]) -> None:
        """Steps for these blocks, in the compiled core; sets `primal` and `gap` from the terms computed."""

    @abstractmethod
    def candidate(self) -> Candidate:
        """The model, with multipliers if the steps are over samples."""


@dataclass
class OverWeights(ApproxState):
    """Blocks of weights, the intercept as the last block; images are scores."""

    columns: Design = field(kw_only=True)
    blocks: Blocks = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, start: Start, seed: int, options: APPROX) -> OverWeights:
        """From weights and an intercept; data stored by rows are copied by columns."""
        columns, w = problem.design.stored_by_columns(), start.w
        count = len(blocks.first) - 1 + problem.intercept
        batch = min(options.batch, count)
        s = problem.weights / problem.total_weight * overlap(problem, count, batch)
        curvature = problem.loss.smoothness * group_curvature(columns, blocks, s)
        if problem.intercept:
            w, curvature = np.append(w, start.b), np.append(curvature, problem.loss.smoothness * float(s.sum()))
        pool, rng = np.arange(count), np.random.default_rng(seed)
        average = SuffixAverage(len(w), np.random.default_rng(seed), options.average_from)
        averaging = average if options.output == "average" else None
        momentum = bool(options.accelerate)
        return cls(problem, w.copy(), curvature, pool, rng, momentum, batch, averaging, columns=columns, blocks=blocks)

    def image(self, x: Vector) -> Vector:
        return self.columns.matvec(x[: self.problem.shape[1]])

    def advance(self, order: NDArray[np.int64]) -> None:
        problem, blocks, loss = self.problem, self.blocks, self.problem.loss.kernel()
        assert loss is not None
        mean = None if self.averaging is None else np.zeros_like(self.z)
        self.theta, self.square, gap, worst = kernels.approx_weights(
            loss,
            self.columns.lines,
            blocks.column,
            blocks.first,
            self.curvature,
            blocks.threshold,
            blocks.ridge,
            problem.intercept,
            problem.y,
            problem.weights / problem.total_weight,
            order,
            self.batch,
            self.theta,
            self.accelerated,
            self.images,
            self.z,
            self.u,
            mean,
        )
        if self.averaging is not None and mean is not None:
            self.averaging.add(mean, mean)
        model = self.candidate()
        z = self.current_image() + model.b
        total = loss.respond(z, problem.y, problem.weights, z, 0.0)[2]
        self.primal = total / problem.total_weight + problem.penalty.value(model.w)
        # an infeasible v: the bound of the Lipschitzed penalty
        self.gap = gap + self.primal * max(0.0, worst - 1.0)

    def candidate(self) -> Candidate:
        return self._model(self.x)

    def average(self) -> Candidate | None:
        """The mean of the iterates in the window, if there is one."""
        return self._model(self.averaging.average) if self.averaging is not None and self.averaging.windows else None

    def _model(self, x: Vector) -> Candidate:
        d = self.problem.shape[1]
        return Candidate(x[:d], float(x[d]) if self.problem.intercept else 0.0)


@dataclass
class OverSamples(ApproxState):
    """Multipliers of single samples; images are v / mu, the argument of the link, and 0 for no intercept."""

    rows: Design = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, alpha: Vector, seed: int, accelerated: bool) -> OverSamples:
        """From multipliers; data stored by columns are copied by rows."""
        rows = problem.design.stored_by_rows()
        q = problem.weights * (rows.squared_row_norms / (problem.penalty.strong_convexity * problem.total_weight))
        pool, rng = np.flatnonzero(problem.weights > 0).astype(np.int64), np.random.default_rng(seed)
        return cls(problem, alpha.copy(), q, pool, rng, accelerated, rows=rows)

    def image(self, x: Vector) -> Vector:
        problem = self.problem
        image = self.rows.rmatvec(problem.weights * x) / (problem.total_weight * problem.penalty.strong_convexity)
        return np.append(image, 0.0)

    def advance(self, order: NDArray[np.int64]) -> None:
        problem, loss, link = self.problem, self.problem.loss.kernel(), self.problem.penalty.kernel()
        assert loss is not None
        assert isinstance(link, kernels.Linear | kernels.Threshold)
        W, mu = problem.total_weight, problem.penalty.strong_convexity
        self.theta, self.square, gap, total = kernels.approx_samples(
            loss,
            link,
            self.rows.lines,
            problem.y,
            problem.weights,
            self.curvature,
            1.0 / (mu * W),
            len(self.pool),
            order,
            self.theta,
            self.accelerated,
            self.images,
            self.z,
            self.u,
        )
        self.primal = total / W + problem.penalty.value(self._weights())
        self.gap = gap / W

    def candidate(self) -> Candidate:
        # x is a mean of points in the domain, up to rounding
        return Candidate(self._weights(), 0.0, np.clip(self.x, *self.problem.domain))

    def _weights(self) -> Vector:
        penalty = self.problem.penalty
        return penalty.grad_conjugate(self.current_image()[:-1] * penalty.strong_convexity)


def overlap(problem: Problem, blocks: int, batch: int) -> Vector | float:
    """1 + (c_i - 1) (tau - 1) / max(1, N - 1) for each row, c_i <= N its nonzeros: with X_g' S X_g for these weights
    tau blocks at once may move as if each were alone, in expectation (Fercoq and Richtarik 2015).
    """
    if batch == 1:
        return 1.0
    n, d = problem.shape
    parts = [np.arange(part.start, part.stop) for part in limits.blocks(n, d)]
    count = np.concatenate([np.count_nonzero(problem.X.rows(part), axis=1) for part in parts]) + problem.intercept
    return np.asarray(1.0 + (np.clip(count, 1, blocks) - 1.0) * (batch - 1.0) / max(1, blocks - 1))


def group_curvature(columns: Design, blocks: Blocks, s: Vector) -> Vector:
    """The largest eigenvalue of X_g' S X_g for each group g, or its trace."""
    with np.errstate(over="ignore"):
        curvature = blocks.sums(columns.column_norms(2.0, s) ** 2)
    if blocks.singles:
        return curvature
    sizes = np.diff(blocks.first)
    for g in np.flatnonzero((sizes > 1) & np.isfinite(curvature)):
        if not limits.may_factor(2 * int(sizes[g])):  # all eigenvalues cost about eight times as much as a factor
            continue
        X_g = columns.dense_columns(blocks.column[blocks.first[g] : blocks.first[g + 1]])
        largest = float(np.linalg.eigvalsh(X_g.T @ (s[:, None] * X_g))[-1])
        curvature[g] = min(curvature[g], largest * (1.0 + 1e-9))
    return curvature


@dataclass(frozen=True)
class APPROX(Solver[ApproxState]):
    """One step is an epoch: as many blocks as there are, drawn uniformly with replacement.

    Data stored by rows for steps over weights, or by columns for steps over samples, are copied once.

    Parameters
    ----------
    over : {"weights", "samples"}, optional
        "weights" needs a smooth loss and L1, ElasticNet, GroupL2 or L2; "samples" needs L2 or ElasticNet, and no
        intercept. By default weights if the loss is smooth and the penalty is not L2, else samples.
    accelerate : bool, default True
        False for plain randomised coordinate descent, Algorithm 1 of the certificates paper.
    restart : bool, optional
        Drop the momentum periodically, about each time the gap has decreased to a quarter; by default if `accelerate`.
    batch : int, default 1
        Over weights: the blocks that a step draws, the paper's tau. Moves are shorter, the more blocks a row has
        nonzeros in; on one processor nothing is gained, and it is for comparison with the theory.
    output : {"last", "average"}, default "last"
        Over weights without acceleration: certify the average over the last half of the run or more as well (Theorem 9
        and Corollary 10).
    average_from : int, optional
        T0 of the theorems, in epochs: the average is of the iterates after so many epochs.
    """

    over: str | None = None
    accelerate: bool = True
    restart: bool | None = None
    batch: int = 1
    output: str = "last"
    average_from: int | None = None
    name = "approx"
    summary = "baseline: accelerated coordinate descent"
    requires = frozenset({Trait.COMPILED_LOSS})
    steps_per_check = 20
    passes_per_step = 2

    def __post_init__(self) -> None:
        if self.over is not None:
            require_one_of(self.over, ("weights", "samples"), "approx: over")
        require_flag(self.accelerate, "approx: accelerate")
        if self.restart is not None:
            require_flag(self.restart, "approx: restart")
            if not self.accelerate:
                raise ValueError("approx: restart needs accelerate=True")
        require_count(self.batch, "approx: batch", "blocks")
        require_one_of(self.output, ("last", "average"), "approx: output")
        require_start(self.average_from, self.output, "approx")
        if self.output == "average" and self.accelerate:
            raise ValueError('approx: output="average" needs accelerate=False')

    def obstacle(self, problem: Problem) -> str | None:
        loss, penalty = problem.loss, problem.penalty
        if problem.X.constant:
            return "has no penalised intercept; use intercept=True for an unpenalised one"
        if self._side(problem) == "weights":
            if not np.isfinite(loss.smoothness):
                return f"needs, over weights, a loss with a Lipschitz derivative, which {loss!r} is not"
            if _blocks(problem) is None:
                return f"needs L1, ElasticNet, GroupL2 or L2 over weights, got {penalty!r}"
            return None
        if self.batch > 1 or self.output == "average":
            return 'supports batch and output="average" over weights only; sdca has the average over samples'
        if not isinstance(penalty.kernel(), kernels.Linear | kernels.Threshold):
            return f"needs L2 or ElasticNet over samples, got {penalty!r}"
        return "does not support an intercept over samples" if problem.intercept else None

    def begin(self, problem: Problem, start: Start, seed: int) -> ApproxState:
        if self._side(problem) == "samples":
            return OverSamples.of(problem, start.alpha, seed, bool(self.accelerate))
        blocks = _blocks(problem)
        assert blocks is not None
        return OverWeights.of(problem, blocks, start, seed, self)

    def step(self, state: ApproxState) -> ApproxState:
        """One epoch."""
        state.epoch(restarts=bool(self.accelerate) and self.restart is not False)
        return state

    def candidates(self, state: ApproxState) -> Sequence[Candidate]:
        mean = state.average() if isinstance(state, OverWeights) else None
        return [state.candidate()] if mean is None else [state.candidate(), mean]

    def progress(self, state: ApproxState) -> Progress:
        """P and the gap, from the terms computed in the last epoch."""
        return Progress(state.primal, state.gap, state.passes)

    def observe(self, state: ApproxState, z: Vector, primal: float, gap: float) -> None:
        """After a check: recompute the images."""
        state.refresh()

    def _side(self, problem: Problem) -> str:
        if self.over is not None:
            return self.over
        over_samples = not np.isfinite(problem.loss.smoothness) or (problem.penalty.quadratic and not problem.intercept)
        return "samples" if over_samples else "weights"


def _blocks(problem: Problem) -> Blocks | None:
    """The penalty on blocks of weights; L2 as a ridge on single weights."""
    d, penalty = problem.shape[1], problem.penalty
    return Blocks.single(d, 0.0, penalty.strong_convexity) if penalty.quadratic else penalty.blocks(d)
