"""A grid of lam where neither weights nor samples are few: a working set that stays from one lam to the next.

Its columns are copied once, and again when they are too few. After every step of primal coordinate descent on them, one
product of all columns with the multipliers says which others are missing, and certifies the model.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.certificate.bounds.responses import Responses
from fenchel.certificate.bounds.samples import Bounds, has_moderate
from fenchel.data.products import Rounded
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import Penalty
from fenchel.solver.paths.found import found
from fenchel.solver.paths.gram_path import eased
from fenchel.solver.paths.wide_path import SMOOTH
from fenchel.solver.result import Result, Stop
from fenchel.steps.working_set.column_passes import column_step
from fenchel.steps.working_set.dense_hessian import gram_matrix, minimise, ridged
from fenchel.steps.working_set.quadratic_model import Elimination
from fenchel.steps.working_set.state import DescentState, Part
from fenchel.steps.working_set.support_newton import face_step

#: Groups of the first working set, and how many times those that are not zero the next has.
FIRST_SIZE, GROWTH = 64, 2
#: The most weights of a working set whose Hessian is formed; and of those, where the Hessian has more entries than the
#: data, so that a look at these is cheaper.
NARROW, ALWAYS = 2000, 128
#: Where lam falls to less than this part, what others needed there says more than the multipliers do; and how much more
#: than that is taken.
COARSE, ROOM = 0.8, 1.05
#: Steps that cost as much as a Hessian: it is formed anew when so many were needed beside the first for each lam, or
#: when a step leaves more of the gap than this.
WASTE, STALE = 8, 0.5
#: A model is good enough for another lam if its gap there is this part of what is asked for: gaps add up along a path.
GOOD = 0.2
#: The accuracy of a step's model, as a part of the gap that is asked for.
MODEL = 1e-7
#: Steps for one lam, and those in a row that may leave more than this part of the gap.
MOST_STEPS, MOST_STUCK, SLOW = 100, 10, 0.5


@dataclass(frozen=True)
class Needed:
    """The groups with weights at every lam, in paths on other parts of the same samples that have been there before."""

    groups: dict[float, Indices] = field(default_factory=dict)

    def tell(self, lam: float, groups: Indices) -> None:
        """What a path needed; threads that do so at the same time may lose one's answer."""
        self.groups[lam] = np.union1d(self.groups.get(lam, groups), groups)


class LargePath:
    """Solves one penalty after the other; model and working set carry over."""

    def __init__(self, samples: Responses, needed: Needed) -> None:
        self.samples, self.needed = samples, needed
        problem, kernel = samples.problem, samples.problem.loss.kernel()
        assert kernel is not None
        whole, nothing, b = Part.whole(problem), np.arange(0), samples.best_constant
        part = Part(nothing, problem.design.only(nothing), whole.blocks.only(nothing)[1])
        z = np.full(problem.shape[0], b)
        self.state = DescentState(problem, kernel, whole, part, np.zeros(0), b, z, FIRST_SIZE)
        self.inside = np.zeros(whole.blocks.count, dtype=bool)
        self.lam, self.waste = np.inf, 0
        self.hessian: tuple[Elimination, Vector] | None = None
        self._look(part.design.matvec_bounded(self.state.w))

    @classmethod
    def of(cls, problem: Problem, needed: Needed | None = None) -> LargePath | None:
        """For a smooth loss, unless its numbers are too large or too small for the bounds here."""
        if not problem.loss.traits >= SMOOTH:
            return None
        samples = Responses(problem)
        return cls(samples, needed or Needed()) if samples.are_moderate else None

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optimum for the first of these penalties, if it can be certified."""
        start, problem = time.perf_counter(), self.samples.problem.replace(penalty=penalties[0])
        end = np.inf if stop.max_seconds is None else start + stop.max_seconds
        if not has_moderate(Part.whole(problem).blocks):
            return []
        self._aim(problem)
        done = self._descend(stop, end)
        if done is None:
            return []
        steps, bounds = done
        state, alive = self.state, np.flatnonzero(self.state.w)
        columns, weights = state.part.members[alive], state.w[alive]
        self.needed.tell(problem.penalty.lam, np.flatnonzero(state.whole.blocks.norms(state.weights)))
        return [found(problem, columns, weights, state.b, bounds, stop, steps, time.perf_counter() - start)]

    def _aim(self, problem: Problem) -> None:
        """Another penalty: the same weights, and columns that it may want beside those that are there."""
        state, blocks = self.state, Part.whole(problem).blocks
        state.problem, state.whole = problem, state.whole.under(blocks)
        state.part = state.part.under(blocks.only(np.flatnonzero(self.inside))[1])
        state.primal = self.response.loss + state.part.blocks.value(state.w)
        ratio, self.lam = min(1.0, problem.penalty.lam / self.lam), problem.penalty.lam
        if ratio < COARSE and self.lam in self.needed.groups:
            self._take(self.needed.groups[self.lam])
        else:  # the sequential strong rule: v hardly ever moves by more than its threshold does
            self._extend(2.0 - 1.0 / ratio if ratio > 0.67 else 0.5)

    def _descend(self, stop: Stop, end: float) -> tuple[int, Bounds] | None:
        """Steps on working sets until the gap of all columns is proven to be small enough."""
        bounds = self._bounds()
        if bounds.reach(GOOD * stop.tol, GOOD * stop.atol):
            return 0, bounds
        if not len(self.state.w):  # no column is above its threshold, so that no step makes the gap any smaller
            return (0, bounds) if bounds.reach(stop.tol, stop.atol) else None
        stuck = 0
        for steps in range(1, MOST_STEPS + 1):
            enough, before = max(stop.tol * self.state.primal, stop.atol), bounds.gap
            self._step(MODEL * enough, patient=stuck > 0)
            bounds = self._bounds()
            if bounds.reach(stop.tol, stop.atol):
                return steps, bounds
            self._review(bounds.gap / before)
            stuck = 0 if self._extend(1.0) or bounds.gap <= SLOW * before else stuck + 1
            out_of_reach = bounds.rounding > max(stop.tol * abs(bounds.primal), stop.atol)
            if out_of_reach or stuck > MOST_STUCK or time.perf_counter() > end or not np.isfinite(bounds.primal):
                break
        return None

    def _review(self, left: float) -> None:
        """Give up a Hessian that has become too old, after a step that has left this part of the gap."""
        self.waste += 1
        if not self.state.problem.loss.quadratic and (self.waste >= WASTE or not left <= STALE):
            self.hessian, self.waste = None, 0

    def _step(self, accuracy: float, patient: bool) -> None:
        """One on the working set, with conjugate gradients where coordinates alone were slow; and a look at all."""
        state = self.state
        if self._is_narrow(len(state.w)):
            self._newton(accuracy)
            return
        column_step(state, accuracy)
        if patient:
            face_step(state)
        self._look(state.part.design.matvec_bounded(state.w))

    def _is_narrow(self, width: int) -> bool:
        """Whether a Hessian of so many weights is formed."""
        return width <= ALWAYS or width**2 <= min(NARROW**2, self.state.problem.X.nnz)

    def _newton(self, accuracy: float) -> None:
        """To the minimum of a quadratic model with the last Hessian, or as far as P falls."""
        state, blocks = self.state, self.state.part.blocks
        if self.hessian is None:
            c = state.curvature()
            rows = state.part.rows if state.part.design.is_sparse else state.part.design
            intercept = Elimination.of(rows, c, state.problem.intercept)
            self.hessian = intercept, gram_matrix(rows, c, intercept.mean)
        (intercept, H), u = self.hessian, state.w.copy()
        v, miss = state.dual_vector(state.part), float(state.shares @ state.a)
        slope, old = intercept.slope(blocks.ridge * state.w - v, miss), state.w
        minimise(ridged(H, blocks.ridge), eased(blocks), u, slope, accuracy)
        b, product = state.b + intercept.shift(u - old, miss), state.part.design.matvec_bounded(u)
        state.search(u, b, product.value + b - state.z)
        self._look(product if state.w is u else state.part.design.matvec_bounded(state.w))

    def _look(self, product: Rounded) -> None:
        """What follows from scores that were computed anew: the best intercept, multipliers, the dual vector."""
        state = self.state
        state.b, self.response = self.samples.balanced(product, state.b)
        state.z, state.a, state.h = self.response.scores.value, self.response.a, self.response.h
        state.primal = self.response.loss + state.part.blocks.value(state.w)
        state.v = state.problem.X.rmatvec(state.shares * state.a)
        state.know(state.v[state.part.members])

    def _bounds(self) -> Bounds:
        state = self.state
        value = state.part.blocks.value(state.w)
        return self.samples.bounds(state.whole.blocks, value, self.response, state.v)

    def _extend(self, share: float) -> bool:
        """Take in the groups above this share of their threshold, and the next ones; False if none are missing."""
        state, blocks = self.state, self.state.whole.blocks
        score = blocks.norms(state.v) / blocks.threshold
        missing = int(np.count_nonzero((score > share) & ~self.inside))
        if not missing:
            return False
        alive = blocks.norms(state.weights) > 0.0
        size = max(FIRST_SIZE, GROWTH * int(np.count_nonzero(alive)) + min(missing, len(state.w) + FIRST_SIZE))
        score[alive] = np.inf
        self._enter(score, size)
        return True

    def _take(self, known: Indices) -> None:
        """Take in the groups that others needed, those above their threshold, and few more."""
        state, blocks = self.state, self.state.whole.blocks
        score = blocks.norms(state.v) / blocks.threshold
        wanted = score > 1.0
        wanted[known] = True
        if not np.any(wanted & ~self.inside):
            return
        wanted |= blocks.norms(state.weights) > 0.0
        score[wanted] = np.inf
        self._enter(score, max(FIRST_SIZE, int(ROOM * np.count_nonzero(wanted))))

    def _enter(self, score: Vector, size: int) -> None:
        """So many groups with the highest scores."""
        state, blocks = self.state, self.state.whole.blocks
        groups: Indices = np.arange(blocks.count)
        if size < blocks.count:
            groups = np.sort(np.argpartition(-score, size - 1)[:size]).astype(np.int64)
        narrow = self._is_narrow(int(blocks.sizes[groups].sum()))
        state.enter(state.whole.only(groups, by_columns=not narrow))
        state.know(state.v[state.part.members])
        state.trail.clear()
        self.hessian, self.waste = None, 0
        self.inside = np.zeros(blocks.count, dtype=bool)
        self.inside[groups] = True
