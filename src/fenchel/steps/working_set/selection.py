"""Which columns to work on.

Groups that are not zero, those whose |v_g| exceeds their threshold, and the next ones, so that the set need not grow at
every step (Friedman, Hastie and Tibshirani 2010; Massias, Gramfort and Salmon 2018). From one lam to the next the
sequential strong rule says which will exceed it, or paths on other folds that have been there before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Indices, Vector
from fenchel.steps.working_set.state import WorkingSetState


@dataclass(frozen=True)
class SelectionTuning:
    """`python -m benchmarks.tuning steps.working_set.selection first_size 32 128 --rows "^groups auto"`: 0.37 and 0.95
    of the time, of 60 groups; `growth 1 4`, 0.85 and 0.97; `always 128 512`, 1.05 and 0.94; `patience 5 20`, 1.02
    and 1.10. `settled 1 3 --rows "^race text (lasso|elastic_net) max/50 1e-03"`: 0.96 and 0.84.
    `python -m benchmarks.regression` of builds with `narrow` 1000 and 2000: the path of the Lasso on imdb takes 1.7
    times as long with 1000; with `spare` 1 and 1.05: `LassoCV` of 10 alphas on imdb 1.1 times with 1.
    """

    first_size: int = 64  # groups beside those that are not zero
    growth: float = 2.0  # how many times the groups that are not zero the set has
    settled: float = 1.5  # a set so many times larger than the last will hardly be the last one
    always: int = 256  # the widest set whose Hessian is formed whatever the data
    spare: float = 1.05  # how many times what other folds needed is taken
    narrow: int = 2000  # and the widest at all, if it has no more entries than the data
    patience: int = 10  # steps on a set without a Hessian, after which it is formed: columns may be nearly dependent


TUNING = SelectionTuning()


def select(state: WorkingSetState, fraction: float = 1.0, known: Indices | None = None) -> None:
    """Add the groups above this fraction of their threshold, and the next ones, if one is missing.

    Where groups are known that other folds needed, these are added, and few next ones.
    """
    if state.set.groups is None:
        return
    blocks, w = state.everything.blocks, state.weights
    v = state.v - blocks.ridge * w if blocks.ridge else state.v
    score, alive = blocks.norms(v) / blocks.threshold, blocks.norms(w) > 0.0
    wanted = score > fraction
    if known is not None:
        wanted[known] = True
    missing = int(np.count_nonzero(wanted) - np.count_nonzero(wanted[state.set.groups]))
    if not missing:
        state.grows = False
        return
    first = alive if known is None else alive | wanted
    size = int((TUNING.growth if known is None else TUNING.spare) * np.count_nonzero(first))
    if known is None:
        size += min(missing, state.set.width + TUNING.first_size)
    score[first] = np.inf
    _enter(state, score, max(TUNING.first_size, size))


def select_for(state: WorkingSetState, ratio: float) -> None:
    """The set for another lam, which is `ratio` of the last."""
    lam, supports = state.problem.penalty.lam, state.goal.supports
    # the sequential strong rule: v hardly ever moves by more than its threshold does; on coarse grids it says little
    strong = max(2.0 - 1.0 / ratio, 0.5) if ratio > 0.0 else 0.5
    if supports is not None and strong == 0.5 and lam in supports.groups:
        select(state, known=supports.groups[lam])
    else:
        select(state, strong)


def is_narrow(state: WorkingSetState, width: int) -> bool:
    """Whether a Hessian of so many weights is formed."""
    few = width**2 <= state.problem.design.nnz
    if state.wide_steps >= TUNING.patience:
        return few or limits.may_factor(width)
    grows = state.grows and not state.problem.loss.quadratic  # another Hessian will be needed soon
    return width <= TUNING.always or (few and width <= TUNING.narrow and not grows)


def _enter(state: WorkingSetState, score: Vector, size: int) -> None:
    """The groups with the highest scores, so many of them."""
    blocks, last, state.wide_steps = state.everything.blocks, state.set.width, 0
    if size >= blocks.count:
        state.grows = False
        state.enter(state.everything)
        return
    groups: Indices = np.sort(np.argpartition(-score, size - 1)[:size]).astype(np.int64)
    width = int(blocks.sizes[groups].sum())
    # before the first step for a lam the strong rule has named what is needed
    state.grows = state.steps > 0 and width > TUNING.settled * last
    state.enter(state.everything.only(groups, by_columns=not is_narrow(state, width)))
