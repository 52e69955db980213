"""The iterates of the algorithms for interpolation: plain ones, and the two sequences of the accelerated one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.steps.base import Candidate, Overflow
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.state import TUNING as ASCENT
from fenchel.steps.interpolation.passes import LocalSteps, Order, Passes, Sequence


@dataclass(frozen=True)
class RestartTuning:
    """Half-lines on 60 normal samples of 100 features, LpSquared(1.0, 1.2): after 400 passes the violation is 4e-12
    with these restarts and 8e-6 without.
    """

    first: int = 20  # passes before the first restart that is due by their number
    growth: float = 1.25  # of that number from one restart to the next


TUNING = RestartTuning()


@dataclass
class Iterates(ABC):
    """Multipliers, whose images give the weights, and the order of the samples.

    An intercept has a quadratic around `centre`. If it moves, then to b after every pass: the proximal-point method,
    which drives sum_i s_i alpha_i to zero.
    """

    passes: Passes
    sampler: Sampler
    alpha: Vector
    centre: Vector = field(init=False)
    moves_centre: bool = field(default=True, kw_only=True)
    b: float | Vector = field(kw_only=True)  # the intercept to begin with
    idle: bool = field(default=False, init=False)  # whether a pass visited all samples and changed nothing

    def __post_init__(self) -> None:
        self.centre = np.zeros(self.passes.tail)
        if self.passes.problem.intercept:
            self.centre += self.b - self.shift(self.alpha)

    def step(self) -> None:
        """One pass over the samples; raise if numbers leave the range."""
        with np.errstate(over="ignore", invalid="ignore"):
            require_finite(self.advance())

    def shift(self, alpha: Vector) -> Vector:
        """b minus its centre, (1 / (rho W)) sum_i s_i alpha_i."""
        return self.passes.mean(alpha) * self.passes.inverse_rho

    def image(self, alpha: Vector) -> Vector:
        """u of multipliers, with the intercept behind."""
        return self.passes.image(alpha) + self.passes.origin(self.centre)

    def candidate(self, alpha: Vector, u: Vector) -> Candidate:
        """The model of multipliers and their image; rounding may have moved a mean of multipliers out of the domain."""
        return Candidate(*self.passes.model(u), self.passes.problem.in_domain(alpha))

    def objective(self) -> float:
        """D, with the present centre."""
        alpha, u = self.point()
        return self.passes.dual(self.passes.problem.in_domain(alpha), u)

    @abstractmethod
    def point(self) -> tuple[Vector, Vector]:
        """The multipliers with the guarantee, and their image."""

    @abstractmethod
    def advance(self) -> bool:
        """One pass over the samples; whether all numbers are finite."""

    @abstractmethod
    def refresh(self) -> None:
        """Recompute images from multipliers, without the accumulated rounding errors of the steps."""

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """The models to certify."""


@dataclass
class PlainIterates(Iterates):
    """One sequence: alpha and its image u; with `averages` also the mean of all models before a step."""

    averages: bool = False
    u: Vector = field(init=False)
    total: Vector | None = field(init=False)
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refresh()
        self.total = np.zeros_like(self.u) if self.averages else None

    def refresh(self) -> None:
        self.u = self.image(self.alpha)

    def point(self) -> tuple[Vector, Vector]:
        return self.alpha, self.u

    def move_centre(self) -> Vector:
        """To the present intercept; returns by how much."""
        drift = self.shift(self.alpha) if self.moves_centre else np.zeros(self.passes.tail)
        self.centre += drift
        self.u[-self.passes.tail :] += drift
        return drift

    def advance(self) -> bool:
        drift = self.move_centre()
        order = self.sampler.next()
        moves = self.passes.plain(order, self.alpha, self.u, self.total)
        self.count += len(order)
        self.idle = self.sampler.visits_once and moves == 0 and not drift.any()
        return self.is_finite

    @property
    def is_finite(self) -> bool:
        """Whether all numbers are."""
        return bool(np.isfinite(self.alpha).all() and np.isfinite(self.u).all())

    def candidates(self) -> list[Candidate]:
        models = [self.candidate(self.alpha, self.u)]
        if self.total is not None and self.count:
            mean, k = self.total / self.count, self.passes.tail
            models.append(Candidate(*self.passes.shaped(mean[:-k], mean[-k:])))
        return models


@dataclass
class AcceleratedIterates(Iterates):
    """APPROX: x = z + theta^2 change carries the 1/t^2 guarantee; z, here alpha, makes the steps.

    `restarts`: momentum is dropped if D(x) falls over a pass, and after a number of passes that grows from one restart
    to the next: where D has quadratic growth, the distance to the optimum falls by a factor each time.
    """

    restarts: bool = False
    momentum: bool = True
    change: Vector = field(init=False)
    images: Vector = field(init=False)  # of z and of the change, side by side
    sequence: Sequence = field(init=False)
    period: float = field(default=TUNING.first, init=False)
    since: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.restart(self.alpha)

    def restart(self, x: Vector) -> None:
        """Drop the momentum at x."""
        self.alpha, self.change, self.since = x, np.zeros_like(x), 0
        self.sequence = Sequence.of(len(self.sampler.pool), self.momentum)
        self.refresh()

    def refresh(self) -> None:
        self.images = np.column_stack([self.image(self.alpha), self.passes.image(self.change)])

    def point(self) -> tuple[Vector, Vector]:
        square = self.sequence.square
        return self.alpha + square * self.change, self.images[:, 0] + square * self.images[:, 1]

    def move_centre(self) -> Vector:
        """To the present intercept; returns by how much."""
        drift = self.shift(self.point()[0])
        self.centre += drift
        self.images[-self.passes.tail :, 0] += drift
        return drift

    def visit(self, order: Order, local: LocalSteps = LocalSteps()) -> bool:  # noqa: B008
        """Steps of these samples; whether all numbers are finite."""
        self.passes.accelerated(order, self.sequence, self.images, self.alpha, self.change, local)
        return bool(np.isfinite(self.images).all() and np.isfinite(self.alpha).all())

    def advance(self) -> bool:
        self.move_centre()
        before = self.objective() if self.restarts else 0.0
        finite = self.visit(self.sampler.next())
        if self.restarts and finite:
            self.restart_if_due(before)
        return finite

    def restart_if_due(self, before: float) -> None:
        """After a pass that began with D(x) = before."""
        self.since += 1
        if self.since >= self.period or self.objective() < before:
            self.period *= TUNING.growth if self.since >= self.period else 1.0
            self.restart(self.passes.problem.in_domain(self.point()[0]))

    def candidates(self) -> list[Candidate]:
        return [self.candidate(*self.point()), self.candidate(self.alpha, self.images[:, 0])]


def require_finite(finite: bool) -> None:
    """Raise if multipliers or images have left the range."""
    if not finite:
        raise Overflow("the multipliers overflow: the constraints may contradict each other, or rescale the features")


def sampler_of(problem: Interpolation, sampling: str, seed: int, L: Vector) -> Sampler:
    """The order of the samples of positive weight; "importance" draws them in proportion to L_i."""
    pool = np.flatnonzero(problem.counts).astype(np.int64)
    sampler = Sampler(sampling, np.random.default_rng(seed), pool, block=ASCENT.block)
    if sampling == "importance":
        sampler.draw_like(np.where(problem.counts, L, 0.0))
    return sampler
