"""What accelerated coordinate descent keeps: two sequences whose blocks move one at a time, and their images."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Candidate, Overflow

#: The least epochs between two restarts. They are doubled where the gap is more than SLOW times what it was at the last
#: one, halved where it is less than FAST times.
FIRST, SLOW, FAST = 5, 0.25, 0.01
#: The most weights of a group whose largest curvature is computed; beyond, their sum bounds it.
WIDEST_GROUP = 500


@dataclass
class Sequences(ABC):
    """x = z + square u, the iterates that the theorem is about; `images` holds A z and A u, entry by entry.

    An epoch draws as many blocks as there are. `curvature` is L_g of every block, the intercept's last, or q_i.
    """

    problem: Problem
    z: Vector
    curvature: Vector
    pool: NDArray[np.int64]  # the blocks to draw from
    rng: np.random.Generator
    accelerated: bool
    u: Vector = field(init=False)
    images: Vector = field(init=False)
    theta: float = field(init=False)
    square: float = 0.0
    primal: float = np.inf
    gap: float = np.inf
    passes: float = 0.0
    since: int = 0  # epochs since the last restart
    period: int = FIRST  # epochs until the next one
    level: float = np.inf  # the gap when one was due last

    def __post_init__(self) -> None:
        if not np.all(np.isfinite(self.curvature)):
            raise Overflow("the squares of the features overflow; rescale them")
        self.restart()

    @property
    def x(self) -> Vector:
        """The point that the sequences stand for."""
        return self.z + self.square * self.u

    def restart(self) -> None:
        """Forget all momentum."""
        self.z = self.x if self.square else self.z
        self.u, self.square, self.theta = np.zeros_like(self.z), 0.0, 1.0 / len(self.pool)
        self.refresh()

    def refresh(self) -> None:
        """The images without the rounding of all the steps that made them."""
        self.images = np.column_stack([self.image(self.z), self.image(self.u)]).ravel()

    def epoch(self, restarts: bool) -> None:
        """As many steps as there are blocks; then a restart, where one is due.

        Where P grows as a square around its optimum, runs of the right length make the rate 1/t^2 a linear one (Fercoq
        and Qu 2020). The right length is nobody's to know. It is too short where a run does not make the gap that its
        steps see much smaller, and then doubled; too long where it makes it smaller by far, and then halved.
        """
        order = self.pool[self.rng.integers(len(self.pool), size=len(self.pool))]
        self.advance(order)
        self.passes += 1.0
        if not np.all(np.isfinite(self.z)):
            raise Overflow("an iterate overflows; rescale the features or lam")
        self.since += 1
        if restarts and self.since >= self.period:
            if self.gap > SLOW * self.level:
                self.period *= 2
            elif self.gap < FAST * self.level:
                self.period = max(self.period // 2, FIRST)
            self.since, self.level = 0, self.gap
            self.restart()

    def current_image(self) -> Vector:
        """A x."""
        return self.images[::2] + self.square * self.images[1::2]

    @abstractmethod
    def image(self, x: Vector) -> Vector:
        """A x, without an intercept."""

    @abstractmethod
    def advance(self, order: NDArray[np.int64]) -> None:
        """Steps for these blocks, in the compiled core; `primal` and `gap` are what they see on their way."""

    @abstractmethod
    def candidate(self) -> Candidate:
        """The model, with multipliers if they are what moves."""


@dataclass
class OverWeights(Sequences):
    """Blocks of weights, and the intercept behind them; images are scores."""

    columns: Design = field(kw_only=True)
    blocks: Blocks = field(kw_only=True)

    @classmethod
    def of(cls, problem: Problem, blocks: Blocks, w: Vector, b: float, seed: int, accelerated: bool) -> OverWeights:
        """From weights and an intercept; data stored by rows are copied by columns."""
        columns = problem.design.stored_by_columns()
        curvature = problem.loss.smoothness * group_curvature(columns, blocks, problem)
        if problem.intercept:
            w, curvature = np.append(w, b), np.append(curvature, problem.loss.smoothness)
        pool, rng = np.arange(len(curvature)), np.random.default_rng(seed)
        return cls(problem, w.copy(), curvature, pool, rng, accelerated, columns=columns, blocks=blocks)

    def image(self, x: Vector) -> Vector:
        return self.columns.matvec(x[: self.problem.shape[1]])

    def advance(self, order: NDArray[np.int64]) -> None:
        problem, blocks, loss = self.problem, self.blocks, self.problem.loss.kernel()
        assert loss is not None
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
            self.theta,
            self.accelerated,
            self.images,
            self.z,
            self.u,
        )
        model = self.candidate()
        z = self.current_image() + model.b
        total = loss.respond(z, problem.y, problem.weights, z, 0.0)[2]
        self.primal = total / problem.total_weight + problem.penalty.value(model.w)
        # R* Lipschitzed, where v is not feasible
        self.gap = gap + self.primal * max(0.0, worst - 1.0)

    def candidate(self) -> Candidate:
        x, d = self.x, self.problem.shape[1]
        return Candidate(x[:d], float(x[d]) if self.problem.intercept else 0.0)


@dataclass
class OverSamples(Sequences):
    """Multipliers of single samples; images are v / mu, from which the link makes weights."""

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
        return self.rows.rmatvec(problem.weights * x) / (problem.total_weight * problem.penalty.strong_convexity)

    def advance(self, order: NDArray[np.int64]) -> None:
        problem, loss, link = self.problem, self.problem.loss.kernel(), self.problem.penalty.kernel()
        assert loss is not None
        assert link is not None
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
        # a mean of points in the domain, but for rounding
        return Candidate(self._weights(), 0.0, np.clip(self.x, *self.problem.domain))

    def _weights(self) -> Vector:
        penalty = self.problem.penalty
        return penalty.grad_conjugate(self.current_image() * penalty.strong_convexity)


def group_curvature(columns: Design, blocks: Blocks, problem: Problem) -> Vector:
    """The largest eigenvalue of X_g' S X_g / W for every group g: how much the mean square of the scores bends."""
    share = problem.weights / problem.total_weight
    with np.errstate(over="ignore"):
        found = blocks.sums(columns.column_norms(2.0, share) ** 2)
    if blocks.singles:
        return found
    sizes = np.diff(blocks.first)
    for g in np.flatnonzero((sizes > 1) & (sizes <= WIDEST_GROUP) & np.isfinite(found)):
        group = columns.dense_columns(blocks.column[blocks.first[g] : blocks.first[g + 1]])
        largest = float(np.linalg.eigvalsh(group.T @ (share[:, None] * group))[-1])
        found[g] = min(found[g], largest * (1.0 + 1e-9))
    return found
