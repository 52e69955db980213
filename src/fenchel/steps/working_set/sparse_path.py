"""Few dense samples and single weights: a compiled path of working sets and Newton steps, many lams in one call.

All columns are screened in sixteen-bit integers, with a proven error (`_core/sparse/int16_screen.hpp`). The engine
finds models; whether they are good enough is for the certificate to say. A single lam is approached along a short path:
from lam_max down every lam has few more weights than the last, which is quicker than the jump, whose first sets are
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cython_blas

from fenchel._core import kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.intercept import best_shift
from fenchel.problem.penalties import Penalty
from fenchel.steps.base import Candidate, GaveUp, Goal, Overflow, Solver, Start
from fenchel.steps.measurements import AtSamples, DualVector, Measurements, Sizes, is_moderate, reduced
from fenchel.steps.working_set.dual_newton import DualNewton
from fenchel.steps.working_set.hessian import POSV
from fenchel.steps.working_set.moments import Centre

#: BLAS's product of a matrix with its transpose, for the compiled core to call.
SYRK = kernels.Syrk(cython_blas.__pyx_capi__["dsyrk"])


@dataclass(frozen=True)
class PathTuning:
    """`python -m benchmarks.tuning steps.working_set.sparse_path few_samples 100 1000 --rows "^logistic lasso wide"`:
    2.95 and 1.00 of the time; `stride 1.5 4`, 1.50 and 1.06; `lams_per_step 10 40 --rows "^path auto"`: 1.06 and
    1.07; `most_samples 1000 4000`: 0.99 and 1.15. `crowded` 2 and 8: 1.05 and 3.10, of
    single runs of the elastic nets in `python -m benchmarks.programs`.
    """

    few_samples: int = 500  # the most for a single lam, to which there are quicker methods from more,
    most_samples: int = 2000  # and for a path
    lams_per_step: int = 20  # Ctrl-C comes through between two steps
    crowded: float = 4.0  # nonzero weights per sample beyond which Newton steps on the multipliers are quicker
    stride: float = 2.2  # how many times smaller each lam of a short path is than the last


TUNING = PathTuning()
#: The compiled engine's own, at their defaults: sparse/sparse_path.hpp says what they are.
ENGINE = kernels.SparsePathTuning()


@dataclass
class PathState:
    """The compiled path, what is asked for, and what its last call found."""

    problem: Problem
    path: kernels.SparsePath
    sizes: Sizes
    centre: Centre  # of the squared loss, whose samples are centred
    goal: Goal | None = None
    begun: bool = False
    found: Measurements | None = None
    refused: bool = False  # whether what was found is not good enough
    others_go_on: bool = False  # where there are many weights: Newton steps on the multipliers
    crowded: bool = False  # whether there are

    def look(self, found: Measurements | None) -> None:
        """Count the weights of the last model."""
        if found is not None and self.others_go_on:
            self.crowded = bool(found.nonzeros[-1] > TUNING.crowded * self.problem.shape[0])


@dataclass(frozen=True)
class SparsePath(Solver[PathState]):
    """A step solves for as many lams as there are, up to twenty; the model and the working set carry over."""

    name = "sparse_path"
    any_storage = True
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.BLOCK_PENALTY, Trait.SEPARABLE_PENALTY})
    steps_per_check = 1
    passes_per_step = 1
    screens = True
    summary = "few dense samples, single weights set to zero: compiled working sets and Newton steps"

    @property
    def ignores_start(self) -> bool:
        return True

    def obstacle(self, problem: Problem) -> str | None:
        design = problem.design
        if design.constant:
            return "has no penalised intercept"
        if design.is_sparse:
            return "needs a dense X; 'primal_cd' takes a sparse one"
        return None if design.shape[0] <= design.shape[1] else "needs as many columns as samples, at least"

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        return problem.shape[0] <= TUNING.few_samples

    @classmethod
    def suits_path(cls, problem: Problem, tol: float) -> bool:
        return problem.shape[0] <= TUNING.most_samples

    def begin(self, problem: Problem, start: Start, seed: int) -> PathState:
        """At zero weights, whatever the start."""
        kernel, p, design = problem.loss.kernel(), problem.weights / problem.total_weight, problem.design
        assert kernel is not None
        centre = Centre.of(problem) if problem.loss.quadratic else Centre(None, 0.0)
        y, mean, intercept = problem.y - centre.target, centre.columns, problem.intercept and not problem.loss.quadratic
        b = best_shift(problem.loss, np.zeros_like(y), y, problem.weights) if intercept else 0.0
        screen, times, offset = _screen(problem, p, mean)
        lengths = screen.lengths() * np.sqrt(times)  # of the columns without their means, from above
        sizes = Sizes.of(problem, lengths if mean is None else lengths + np.abs(mean))
        if not sizes.are_moderate:
            raise Overflow("columns or targets are too large or too small for the compiled path")
        samples = kernel, y, p, problem.loss.smoothness, intercept, b
        path = kernels.sparse_path(design.lines, design.by_rows, mean, screen, offset, *samples, POSV, SYRK, ENGINE)
        return PathState(problem, path, sizes, centre, others_go_on=DualNewton().hindrance(problem) is None)

    def aim(self, state: PathState, goal: Goal) -> None:
        state.goal = goal

    def retarget(self, state: PathState, problem: Problem) -> PathState:
        state.problem, state.found, state.refused = problem, None, False
        return state

    def step(self, state: PathState) -> PathState:
        if state.refused:
            raise GaveUp("the compiled path finds no better model for this lam")
        if state.crowded:
            raise GaveUp("there are so many weights that Newton steps on the multipliers are quicker")
        if state.found is not None:  # it has not been certified yet
            return state
        goal = state.goal or Goal((state.problem.penalty,), 1e-4, 0.0, np.inf)
        penalties, tol, skip = list(goal.penalties[: TUNING.lams_per_step]), goal.tol, 0
        tols = np.full(len(penalties), float(tol))
        if len(goal.penalties) == 1 and not state.begun:
            strides = _strides(state.path.largest, penalties[0])
            while strides and state.others_go_on and not state.crowded:
                state.look(_advance(state, [strides.pop(0)], np.array([max(tol, 0.1)]), 0, goal))
            if state.crowded:
                raise GaveUp("there are so many weights that Newton steps on the multipliers are quicker")
            penalties, skip = [*strides, *penalties], len(strides)
            tols = np.append(np.full(skip, max(tol, 0.1)), tols)
        state.begun, state.found = True, _advance(state, penalties, tols, skip, goal)
        if state.found is None:
            raise GaveUp("the compiled path does not get to this lam")
        state.look(state.found)
        return state

    def measured(self, state: PathState) -> Measurements | None:
        return state.found

    def learn(self, state: PathState, gap: float) -> None:
        state.refused = True

    def candidates(self, state: PathState) -> Sequence[Candidate]:
        if state.found is None:
            return []
        model = state.found.model(0, state.problem.shape[1])
        return [Candidate(model.dense(), model.b)]


def _screen(problem: Problem, p: Vector, mean: Vector | None) -> tuple[kernels.Int16Screen, float, float]:
    """X in sixteen bits, without the means of columns if there are some; how many times the weight fractions that it
    was made for those of this problem are, at most; and how far its means may be apart from these, in column lengths.

    What folds share has equal fractions 1/n, and its own means: with S_j = sqrt(sum_i x_ij^2 / n), sums of p_i x_ij^2
    over samples with p <= c/n are at most c S_j^2. So are the squares of differences between means.
    """
    design, n, shared = problem.design, len(p), problem.design.fold_cache
    times = float(p.max()) * n
    if shared is None or shared.over or not times <= 4.0:
        return kernels.int16_screen(design.lines, design.by_rows, mean, p), 1.0, 0.0
    known = shared.screens.get(mean is not None)
    if known is None:
        even = np.full(n, 1.0 / n)
        centre = mean if mean is None or problem.weightless else design.rmatvec(even)
        known = shared.screens[mean is not None] = kernels.int16_screen(design.lines, design.by_rows, centre, even)
    times = max(1.0, times)
    return known, times, 0.0 if mean is None else float(np.sqrt(times))


def _strides(largest: float, penalty: Penalty) -> list[Penalty]:
    """Penalties from lam_max down to one, which is not among them; `largest` is max |v_j| of zero weights."""
    ratio = max(largest / penalty.sparsity / penalty.lam, 1.0) if penalty.sparsity > 0.0 else np.inf
    if not ratio * UNIT_ROUNDOFF <= 1.0:
        raise GaveUp("lam is too far from lam_max for the compiled path")
    steps = np.ceil(np.log(ratio) / np.log(TUNING.stride))
    return [penalty.with_lam(float(lam)) for lam in penalty.lam * TUNING.stride ** np.arange(int(steps) - 1, 0, -1)]


def _advance(state: PathState, penalties: list[Penalty], tol: Vector, skip: int, goal: Goal) -> Measurements | None:
    """The compiled path along some penalties; its models without the first ones, which are only on the way."""
    blocks = [penalty.blocks(1) for penalty in penalties]
    threshold = np.array([float(one.threshold[0]) for one in blocks if one is not None])
    ridge = np.array([one.ridge for one in blocks if one is not None])
    if not is_moderate(*threshold, *ridge):
        return None
    starts, columns, weights, cut, near, near_starts, b, loss, a, steps = state.path.advance(
        threshold, ridge, tol, float(goal.atol), goal.seconds, skip
    )
    if not len(steps):
        return None
    mean = state.centre.columns
    if mean is not None:
        b = state.centre.target - reduced(np.add, starts, weights * mean[columns])
    at = AtSamples(loss, a.reshape(len(steps), -1), centred=mean is not None)
    dual, last = DualVector(cut, near, near_starts), skip + len(steps)
    penalty = threshold[skip:last], ridge[skip:last]
    return Measurements(state.sizes, *penalty, starts, columns, weights, b, at, dual, steps)
