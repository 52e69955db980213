"""Where the working-set method is: the weights it works on, their scores, and what the loss is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fenchel._core import CompiledLoss
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.intercept import best_shift
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Goal, Model, Overflow
from fenchel.steps.linear_algebra.safeguards import ROUNDING, Damping, Patience, backtracked
from fenchel.steps.measurements import AtSamples, Measurements, Sizes, is_moderate
from fenchel.steps.working_set.columns import ColumnSet
from fenchel.steps.working_set.hessian import Hessian
from fenchel.steps.working_set.moments import AtWeights, Moments

#: Penalties, in two forms, and the models found for them.
Ahead = list[tuple[Penalty, Blocks, AtWeights]]


@dataclass(frozen=True)
class StateTuning:
    """`python -m benchmarks.tuning steps.working_set.state first_damping 1e-3 1e-1 --rows "^logistic lasso$"`: 0.95 and
    0.97 of the time; with 1e-3 Huber's loss takes 1.7 times as long (`--rows "^huber lasso"`).
    """

    first_damping: float = 1e-2  # the least curvature of a sample in the quadratic model, as a part of the largest


TUNING = StateTuning()


@dataclass
class WorkingSetState:
    """Weights of the working set, intercept and scores; a = -phi'(z), h = phi''(z); v = X'(p a) of all columns."""

    problem: Problem
    loss: CompiledLoss
    everything: ColumnSet
    set: ColumnSet
    w: Vector  # of the working set
    b: float
    z: Vector = field(init=False)
    a: Vector = field(init=False)
    h: Vector = field(init=False)
    v: Vector = field(init=False)
    mean_loss: float = field(init=False)
    product: Vector | None = None  # X w, if it was computed for the present weights
    moments: Moments | None = None  # the squared loss on few columns: no sample is needed
    ahead: Ahead = field(default_factory=list)  # models of the present penalty and those that follow, from moments
    refused: bool = False  # whether the model of the present penalty was not good enough
    goal: Goal = field(default_factory=lambda: Goal((), 0.0, 0.0, np.inf))
    gap: float = np.inf  # of the last certificate
    least_primal: float = np.inf
    hessian: Hessian | None = None
    steps: int = 0  # for this penalty
    wide_steps: int = 0  # on the present set without a Hessian
    patience: Patience = field(default_factory=Patience)  # with steps that make neither P nor the gap smaller
    grows: bool = False  # whether the working set is much larger than the last, and so hardly the final one
    damping: Damping = field(default_factory=lambda: Damping(1e-10, TUNING.first_damping))

    def __post_init__(self) -> None:
        if self.moments is None:
            self.evaluate()
        else:
            self.take(self.moments.at(self.w))

    @cached_property
    def sizes(self) -> Sizes:
        """What rounding errors are bounded by."""
        return Sizes.of(self.problem)

    @cached_property
    def fractions(self) -> Vector:
        """p_i = s_i / W."""
        return self.problem.weights / self.problem.total_weight

    @property
    def primal(self) -> float:
        """P at the present weights."""
        return self.mean_loss + self.set.blocks.value(self.w)

    @property
    def weights(self) -> Vector:
        """All weights of the problem."""
        w = np.zeros(self.problem.shape[1])
        w[self.set.members] = self.w
        return w

    def enter(self, columns: ColumnSet) -> None:
        """Work on another set, which has all weights that are not zero."""
        self.w, self.set, self.hessian = self.weights[columns.members], columns, None

    # Evaluation ---------------------------------------------------------------------------------------------------

    def response(self, z: Vector) -> tuple[Vector, Vector, float]:
        """Multipliers, second derivatives and the mean loss at some scores."""
        problem = self.problem
        a, h, total, _ = self.loss.respond(z, problem.y, problem.weights, z, 0.0)
        return a, h, total / problem.total_weight

    def curvature(self) -> Vector:
        """Second derivatives of the quadratic model along the scores, weighted by p."""
        most = self.problem.loss.smoothness
        if self.damping.value <= self.damping.least:  # where all curvature fades, as that of separable labels does
            most = min(most, float(self.h.max(initial=0.0)) or most)
        return self.fractions * np.maximum(self.h, self.damping.value * most)

    def offer(self, w: Vector, b: float, product: Vector) -> bool:
        """Move to a model with the scores product + b if P is no larger there."""
        z = product + b if b else product  # neither is changed in place
        a, h, mean = self.response(z)
        if not mean + self.set.blocks.value(w) <= self.primal * (1.0 + 1e-14):
            return False
        self.w, self.b, self.z, self.a, self.h, self.mean_loss = w, b, z, a, h, mean
        return True

    def go_to(self, w: Vector, b: float, product: Vector) -> None:
        """Towards a model with the scores product + b: all the way, or half of it, ..., as far as P falls."""

        def offer(t: float) -> bool:
            if t == 1.0:
                return self.offer(w, b, product)
            at = self.z - self.b
            return self.offer(self.w + t * (w - self.w), self.b + t * (b - self.b), at + t * (product - at))

        whole = backtracked(offer) == 1.0
        self.product = product if whole else None
        self.damping.learn(whole)

    def evaluate(self) -> None:
        """Scores anew, so that rounding does not add up; the best intercept; multipliers; v of all columns."""
        if self.product is None:
            self.product = self.set.design.matvec(self.w) if self.w.any() else np.zeros(self.problem.shape[0])
            self.z = self.product + self.b
            self.a, self.h, self.mean_loss = self.response(self.z)
        if self.problem.intercept:
            self._balance(self.product)
        self.product = None
        if not np.isfinite(self.mean_loss):
            raise Overflow("the objective overflows; rescale the features or lam")
        self.v = self.problem.design.rmatvec(self.fractions * self.a)

    def _balance(self, product: Vector) -> None:
        """The intercept nearly at its best for the scores X w."""
        for _ in range(4):  # Newton steps: each has twice as many digits
            term, curved = self.fractions * self.a, float(self.fractions @ self.h)
            missing = float(term.sum())
            if abs(missing) <= ROUNDING * float(np.abs(term).sum()):
                break
            if curved > 0.0:
                b = self.b + missing / curved
            else:  # a Newton step cannot find the best one where the loss has no curvature
                b = best_shift(self.problem.loss, product, self.problem.y, self.problem.weights)
            if not self.offer(self.w, b, product):
                break

    def take(self, at: AtWeights) -> None:
        """The same from second moments alone."""
        assert self.moments is not None
        self.w, self.v, self.b = at.w, at.v, self.moments.intercept(at.w)
        self.mean_loss = 0.5 * max(at.square, 0.0)

    def leave_moments(self) -> None:
        """Go on with the samples: they are more exact."""
        self.moments, self.ahead, self.hessian = None, [], None
        self.evaluate()

    # What is offered ----------------------------------------------------------------------------------------------

    def measured(self) -> Measurements | None:
        """The present model with all that was computed of it; None where numbers are too large or small for bounds."""
        blocks, sizes = self.everything.blocks, self.sizes if self.moments is None else self.moments.sizes
        if not (sizes.are_moderate and is_moderate(*blocks.limits)):
            return None
        if self.moments is not None:
            _, penalties, models = zip(*self.ahead, strict=True) if self.ahead else ((), (), ())
            return self.moments.measured(penalties, models, self.steps) if models else None
        alive = np.flatnonzero(self.w)
        model = Model(self.w[alive], self.b, self.set.members[alive], self.problem.shape[1])
        at = AtSamples(np.array([self.mean_loss]), self.a[None, :])
        return Measurements.of(sizes, [blocks], [model], at, self.steps, self.v)
