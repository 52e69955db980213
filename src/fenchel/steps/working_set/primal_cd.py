"""Primal coordinate descent with working sets, for penalties that set weights or groups of them to zero.

P is minimised over a part of the groups: those that are not zero, and those whose dual vector is nearest to (or
beyond) its threshold. Few weights are solved for by proximal Newton steps on their Hessian (`steps.gram_descent`), many
by walks along their columns (`steps.column_descent`). When the part is solved to a fraction of the gap, all columns are
looked at again (Friedman, Hastie and Tibshirani 2010; Massias, Gramfort and Salmon 2018), and groups that the gap
proves to be zero are left out for good (Ndiaye, Fercoq, Gramfort and Salmon 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Indices, Vector
from fenchel.problem import Problem, Trait
from fenchel.steps.base import Candidate, Progress, Solver, Start, expected_epochs
from fenchel.steps.linear_algebra.augmented import price_of_gram
from fenchel.steps.working_set.column_passes import column_step
from fenchel.steps.working_set.dense_hessian import gram_step
from fenchel.steps.working_set.state import DescentState, Part
from fenchel.steps.working_set.support_newton import face_step

#: Groups in the first working set, and how many times those that are not zero later ones have.
FIRST_SIZE, GROWTH = 64, 2
#: The part of the gap to which a working set is solved; and its models, of the gap that they start from.
ENOUGH, MODEL = 0.1, 1e-9
#: A gap, as a part of P, that no step would make smaller.
NOTHING = 1e-15
#: Steps in a row that change nothing, after which none will.
MOST_IDLE = 25
#: A working set that leaves more of the gap than this was too small.
SLOW = 0.5
#: When groups are screened: after so many working sets, once the gap is below this part of P; and the part of them that
#: may remain for a copy to be worth it.
LATE, WORTH, SURVIVORS = 5, 1e-2, 0.3
#: A working set that is so many times larger than the last will hardly be the last one.
SETTLED = 1.5
#: How many times the groups that are not zero a large working set has that is about as large as the last.
SETTLED_GROWTH = 1.1
#: The most entries of a Hessian; the most for every entry of the data, where passes take long; and the most weights of
#: a set that grows, for a Hessian that does not last.
ALWAYS, PER_ENTRY, PASSING = 1_000_000, 4, 128
#: Multiplications of a factorisation in the time that a pass takes for an entry of the data, and a third of them.
FLOPS = 30.0
#: Passes over the data that the Hessian of all weights may cost, for them to be worked on all at once.
CHEAP = 8.0

#: Epochs of dual coordinate ascent that take less time than working sets do, where both are possible.
MOST_EPOCHS = 50.0


@dataclass(frozen=True)
class PrimalCD(Solver[DescentState]):
    """One proximal Newton step, or a few passes over columns, on a working set."""

    name = "primal_cd"
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.BLOCK_PENALTY})
    steps_per_check = 60
    passes_per_step = 3
    screens = True

    def obstacle(self, problem: Problem) -> str | None:
        """Why this problem cannot be solved this way, beyond its traits."""
        return "has no penalised intercept" if problem.design.constant else None

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Always for a norm; for an elastic net unless dual coordinate ascent is quick and the Hessian dear."""
        mu = problem.penalty.strong_convexity
        return mu == 0.0 or is_cheap(Part.whole(problem)) or expected_epochs(problem, tol) > MOST_EPOCHS

    def begin(self, problem: Problem, start: Start, seed: int) -> DescentState:
        loss, whole = problem.loss.kernel(), Part.whole(problem)
        assert loss is not None
        w, b = start.w.copy(), start.b if problem.intercept else 0.0
        z = problem.scores(w, b) if w.any() else np.full(problem.shape[0], b)
        state = DescentState(problem, loss, whole, whole, w, b, z, FIRST_SIZE)
        if not is_cheap(whole):
            _next_part(state)
        return state

    def step(self, state: DescentState) -> DescentState:
        if state.gap <= NOTHING * abs(state.primal):
            state.passes, state.idle = state.passes + 1.0, state.idle + 1
            return state
        if state.solved:
            _screen(state)
            _next_part(state)
        if not state.narrow and not state.grows and _has_room(state, len(state.w)) and _takes_long(state):
            state.narrow = state.patient = True
        before, accuracy = state.primal, MODEL * min(state.goal, state.gap)
        if state.narrow:
            gram_step(state, accuracy)
        else:
            column_step(state, accuracy)
            face_step(state)
        gap = state.look_at_part()
        stuck = before - state.primal <= 1e-15 * abs(before)
        state.idle = state.idle + 1 if stuck and not gap < 0.5 * state.least_gap else 0
        state.least_gap = min(gap, state.least_gap)
        if state.part is not state.whole and (state.grows or not state.narrow or stuck or gap <= state.goal):
            state.look_at_all()
            state.solved = True
        return state

    def candidates(self, state: DescentState) -> Sequence[Candidate]:
        return [Candidate(state.weights, state.b)]

    def finished(self, state: DescentState) -> bool:
        """Whether no step will make P or the gap any smaller."""
        return state.idle >= MOST_IDLE

    def observe(self, state: DescentState, z: Vector, primal: float, gap: float) -> None:
        """A gap that is not what we believe may be due to groups left out for rounding's sake: take them back in."""
        if gap > 10.0 * state.gap and len(state.whole.members) < state.problem.shape[1]:
            state.whole, state.inside, state.screened_gap = Part.whole(state.problem), None, 0.0
            state.look_at_all()
            state.solved = True

    def progress(self, state: DescentState) -> Progress:
        return Progress(state.primal, state.gap, state.passes)


def _is_narrow(state: DescentState, size: int) -> bool:
    """Whether the Hessian of a part is worth its price: a set that will not be the last is solved once or twice, and
    by a loss that is not quadratic with another Hessian each time.
    """
    if state.patient and not state.grows:
        return _has_room(state, size)
    return size**2 <= ALWAYS if state.problem.loss.quadratic or not state.grows else size <= PASSING


def _has_room(state: DescentState, size: int) -> bool:
    """Whether a Hessian of so many weights is not out of proportion to the data."""
    return size**2 <= max(ALWAYS, PER_ENTRY * state.problem.design.nnz)


def _takes_long(state: DescentState) -> bool:
    """Whether passes over the part have cost as much as its Hessian and a factor of it: who goes on may go on for long.

    Then at most twice is paid of what the better way would have cost.
    """
    nnz, size = max(1, state.part.design.nnz), len(state.w)
    passes = (state.passes - state.entered) * state.problem.design.nnz / nnz
    return passes >= _price_of_gram(state.part) + size**3 / (FLOPS * nnz)


def _price_of_gram(part: Part) -> float:
    """What the Hessian of a part costs, in passes over it."""
    n, d = part.design.shape
    if not part.design.is_sparse:
        return 0.035 * d  # BLAS is quick
    return price_of_gram(part.design) if part.design.by_rows else 0.2 * part.design.nnz / n


def is_cheap(whole: Part) -> bool:
    """Whether the Hessian of all weights costs no more than a few passes."""
    return whole.design.shape[1] ** 2 <= ALWAYS and _price_of_gram(whole) <= CHEAP


def _screen(state: DescentState) -> None:
    """Leave out the groups that the gap shows to be zero, once they are most of all.

    D is strongly concave for a loss of smoothness L: with X_g's rows weighted by s / W, the optimal v_g is within
    |X_g|_F sqrt(2 L gap) of any feasible one, and a group whose v_g is below its threshold is zero. With a free
    intercept the multipliers are feasible but for rounding only: `observe` takes back what a certificate contradicts.
    """
    whole, blocks = state.whole, state.whole.blocks
    late = state.parts >= LATE and state.gap <= WORTH * abs(state.primal)
    if not late or state.screened_gap <= 100.0 * state.gap:
        return
    state.screened_gap = state.gap
    reach = np.sqrt(2.0 * state.problem.loss.smoothness * state.gap * blocks.sums(whole.squares(state.shares)))
    bound = state.scale(whole, state.v) * blocks.norms(state.v) + reach
    keep = (bound >= (1.0 - 1e-9) * blocks.threshold) | (blocks.norms(state.weights[whole.members]) > 0.0)
    state.passes += 1.0
    if 0 < np.count_nonzero(keep) <= SURVIVORS * blocks.count:
        kept: Indices = np.flatnonzero(keep)
        state.v = state.v[blocks.only(kept)[0]]
        state.whole, state.inside = whole.only(kept), None


def _size(state: DescentState, nonzero: int) -> int:
    """How many groups the next working set has."""
    count = max(FIRST_SIZE, GROWTH * nonzero)
    if count**2 > ALWAYS and count <= SETTLED * state.last_size:  # few will come, and many make a large Hessian
        return FIRST_SIZE + int(SETTLED_GROWTH * nonzero)
    if state.grows and count > GROWTH * 0.8 * state.last_size:  # nearly all that were tried are not zero
        count *= GROWTH
    if not state.gap <= SLOW * state.last_gap:
        state.size = min(GROWTH * state.size, GROWTH**2 * count)
    return max(state.size, count)


def _next_part(state: DescentState) -> None:
    """The groups that are not zero, and the nearest to it of the others; the same again if it has all that violate."""
    whole, blocks = state.whole, state.whole.blocks
    w = state.weights[whole.members]
    alive = blocks.norms(w) > 0.0
    score = blocks.norms(state.v - blocks.ridge * w) / blocks.threshold
    size = _size(state, int(np.count_nonzero(alive)))
    state.goal, state.last_gap, state.solved = ENOUGH * state.gap, state.gap, False
    if state.inside is not None and not np.any((score > 1.0) & ~state.inside):
        state.grows = False
        return
    score[alive] = np.inf
    everything = size >= blocks.count
    groups: Indices = np.arange(blocks.count)
    if not everything:
        groups = np.sort(np.argpartition(-score, size - 1)[:size]).astype(np.int64)
    width = int(blocks.sizes[groups].sum())
    state.grows = not everything and width > SETTLED * state.last_size
    state.narrow, state.inside = _is_narrow(state, width), None
    if not everything:
        state.inside = np.zeros(blocks.count, dtype=bool)
        state.inside[groups] = True
    state.enter(whole if everything else whole.only(groups, by_columns=not state.narrow))
    state.last_size, state.parts = len(state.w), state.parts + 1
    state.trail.clear()
