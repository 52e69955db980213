"""Primal coordinate descent and Newton steps on working sets, for penalties that set weights or groups to zero.

P is minimised over a working set of groups (`selection`). A narrow set is solved for by proximal Newton steps on its
Hessian (`hessian`), a wide one by passes along its columns and conjugate gradients on the support (`matrix_free`).
After every step one product of all columns with the multipliers says which others are missing, and certifies the
model. Least squares on few columns needs no sample after its Gram matrix (`moments`). Along a path of lam the working
set, the model and the Hessian are carried over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Goal, Solver, Start, expected_epochs
from fenchel.steps.linear_algebra import newton_system
from fenchel.steps.linear_algebra.augmented import hessian_cost
from fenchel.steps.linear_algebra.safeguards import TINY, Patience
from fenchel.steps.measurements import Measurements
from fenchel.steps.working_set.columns import ColumnSet
from fenchel.steps.working_set.hessian import newton_step
from fenchel.steps.working_set.matrix_free import column_step, support_step
from fenchel.steps.working_set.moments import Moments
from fenchel.steps.working_set.selection import is_narrow, select, select_for
from fenchel.steps.working_set.sparse_path import TUNING as PATH
from fenchel.steps.working_set.state import WorkingSetState


@dataclass(frozen=True)
class PrimalTuning:
    """`python -m benchmarks.tuning steps.working_set.primal_cd most_epochs 5 1e9 --rows "^auto elastic net"`: 0.21 and
    1.02 of the time.
    """

    most_epochs: float = 50.0  # of dual coordinate ascent that take less time than working sets do


TUNING = PrimalTuning()


@dataclass(frozen=True)
class PrimalCD(Solver[WorkingSetState]):
    """One proximal Newton step, or a few passes over columns, on a working set; then all columns."""

    name = "primal_cd"
    any_storage = True
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.BLOCK_PENALTY})
    steps_per_check = 1
    passes_per_step = 3
    screens = True
    summary = "sets weights to zero: Newton steps and coordinate descent on a working set of columns"

    def obstacle(self, problem: Problem) -> str | None:
        """Why this problem cannot be solved this way, beyond its traits."""
        return "has no penalised intercept" if problem.design.constant else None

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Always for a norm; for an elastic net unless dual coordinate ascent is quick and the Hessian expensive."""
        mu = problem.penalty.strong_convexity
        return mu == 0.0 or is_cheap(problem) or expected_epochs(problem, tol) > TUNING.most_epochs

    @classmethod
    def suits_path(cls, problem: Problem, tol: float) -> bool:
        """Always: what it knows is carried from one lam to the next."""
        return True

    def begin(self, problem: Problem, start: Start, seed: int) -> WorkingSetState:
        loss, everything = problem.loss.kernel(), ColumnSet.all(problem)
        assert loss is not None
        b = start.b if problem.intercept else 0.0
        cheap = is_cheap(problem)
        moments = Moments.of(problem) if cheap and problem.loss.quadratic and not start.w.any() else None
        state = WorkingSetState(problem, loss, everything, everything, start.w.copy(), b, moments=moments)
        if not cheap:
            nonzero: Indices = np.flatnonzero(everything.blocks.norms(start.w)).astype(np.int64)
            state.enter(everything.only(nonzero))
        return state

    def aim(self, state: WorkingSetState, goal: Goal) -> None:
        state.goal = goal

    def retarget(self, state: WorkingSetState, problem: Problem) -> WorkingSetState:
        """The same weights, and columns that another penalty may want beside those that are there."""
        ratio = min(1.0, problem.penalty.lam / state.problem.penalty.lam)
        blocks = ColumnSet.all(problem).blocks
        state.problem, state.everything, state.set = problem, state.everything.under(blocks), state.set.under(blocks)
        if state.ahead:
            known = [at for penalty, _, at in state.ahead if penalty == problem.penalty]
            state.take(known[0] if known else state.ahead[-1][-1])
            state.ahead = []
        state.gap = state.least_primal = np.inf
        state.steps, state.patience = 0, Patience()
        state.grows = False
        select_for(state, ratio)
        return state

    def step(self, state: WorkingSetState) -> WorkingSetState:
        state.steps += 1
        before = state.primal
        if state.moments is not None:
            _moment_step(state)
        elif state.gap > UNIT_ROUNDOFF * abs(before):
            select(state)
            _step_on_set(state, before)
            state.evaluate()
        primal = state.primal
        # a fall that is rounding beside P, or nothing beside the gap, is no progress
        enough = max(TINY * state.gap, 64.0 * UNIT_ROUNDOFF * abs(primal)) if np.isfinite(state.gap) else 0.0
        falls = primal < state.least_primal - enough
        state.least_primal = primal if falls else state.least_primal
        state.patience.learn(state.gap, falls)
        return state

    def measured(self, state: WorkingSetState) -> Measurements | None:
        # where a step costs little, a model of another lam is not worth a certificate
        return None if state.set.groups is None and not state.steps else state.measured()

    def candidates(self, state: WorkingSetState) -> Sequence[Candidate]:
        return [Candidate(state.weights, state.b)]

    def finished(self, state: WorkingSetState) -> bool:
        """Whether no step will make P or the gap any smaller."""
        return state.patience.is_over

    def observe(self, state: WorkingSetState, z: Vector, primal: float, gap: float) -> None:
        self.learn(state, gap)

    def learn(self, state: WorkingSetState, gap: float) -> None:
        """How good the last step was."""
        left = gap / state.gap if state.gap < np.inf else 0.0
        state.gap, state.refused = gap, True
        if state.hessian is not None and not state.problem.loss.quadratic and state.hessian.is_stale(left):
            state.hessian = None

    def conclude(self, state: WorkingSetState) -> None:
        """Tell paths on other folds which groups were needed."""
        if state.goal.supports is not None:
            groups = np.flatnonzero(state.everything.blocks.norms(state.weights))
            state.goal.supports.add(state.problem.penalty.lam, groups)


def is_cheap(problem: Problem) -> bool:
    """Whether the Hessian of all weights is small, and costs no more than a few passes."""
    return limits.may_factor(problem.shape[1]) and hessian_cost(problem.design) <= newton_system.TUNING.gram_cost


def _moment_step(state: WorkingSetState) -> None:
    """The optimum by second moments: of folds, of these samples; where neither is exact enough, with the samples.

    Where every weight is on its own the penalties that follow are solved for at once.
    """
    moments, goal = state.moments, state.goal
    assert moments is not None
    if state.ahead and not state.refused:  # it has not been certified yet
        return
    several = state.everything.blocks.uniform and not state.ahead
    if state.ahead:
        if not moments.by_difference:
            state.leave_moments()
            return
        state.moments = moments = Moments.of(state.problem, may_share=False)
    penalties = (goal.penalties or (state.problem.penalty,))[: PATH.lams_per_step if several else 1]
    blocks = [one for penalty in penalties if (one := penalty.blocks(state.set.width)) is not None]
    optima = moments.optima(blocks, state.w, goal, TINY)
    state.ahead, state.refused = list(zip(penalties, blocks, optima, strict=True)), False
    state.take(optima[0])


def _step_on_set(state: WorkingSetState, primal: float) -> None:
    """One step on the working set, from a model with this P."""
    if not state.set.width:
        return
    enough = state.goal.gap(primal) or 1e-12 * abs(primal)
    accuracy = TINY * min(enough, state.gap)
    if is_narrow(state, state.set.width):
        newton_step(state, accuracy)
    else:
        state.wide_steps += 1
        column_step(state, accuracy)
        support_step(state)
