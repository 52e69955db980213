"""A grid of lam where samples are few and dense: a compiled path on working sets, many lams at a time.

The compiled core finds the models; whether they are good enough is decided here, by bounds on P and D that need
nothing but their weights, their multipliers and the columns near the threshold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from scipy.linalg import cython_blas

from fenchel._core import kernels
from fenchel.certificate.bounds.batch import Models
from fenchel.certificate.bounds.centred import Centred
from fenchel.certificate.bounds.responses import Responses
from fenchel.certificate.bounds.samples import is_moderate
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import Penalty
from fenchel.solver.paths.found import found
from fenchel.solver.result import Result, Stop
from fenchel.steps.working_set.dense_hessian import POSV

#: BLAS's product of a matrix with its transpose, for the compiled core to call.
SYRK = cython_blas.__pyx_capi__["dsyrk"]
#: The most samples: for one penalty, to which there are quicker ways from more, and for many.
FEW_SAMPLES, MOST_SAMPLES = 500, 2000
#: How many lams go into one call: Ctrl-C comes through between two.
MOST_LAMS = 20
#: How many times smaller each lam of a short path is than the last, the relative gap on the way, and the most of them.
STRIDE, ROUGH, MOST_STEPS = 2.2, 0.1, 50
SMOOTH = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS})
#: Problems on parts of the same samples look at the same columns in sixteen bits, unless a sample has more than so many
#: times the mean share, which would make them too rough.
MOST_TIMES = 4.0


def short_columns(problem: Problem, p: Vector, mean: Vector | None) -> tuple[kernels.ShortColumns, float, float]:
    """X in sixteen bits, without the means of columns if there are some; how many times the shares that it was made for
    those of this problem are, at most; and how far its means may be apart from these, in lengths of columns.

    What problems share has equal shares 1/n, and its own means: with S_j = sqrt(sum_i x_ij^2 / n), sums of p_i x_ij^2
    over samples with shares p <= c/n are at most c S_j^2. So are the squares of differences between means.
    """
    design, n, cache = problem.design, len(p), problem.design.fold_cache
    times = float(p.max()) * n
    if cache is None or cache.over or not times <= MOST_TIMES:
        return kernels.short_columns(design.lines, design.by_rows, mean, p), 1.0, 0.0
    known = cache.screens.get(mean is not None)
    if known is None:
        even = np.full(n, 1.0 / n)
        centre = mean if mean is None or problem.weightless else design.rmatvec(even)
        known = cache.screens[mean is not None] = kernels.short_columns(design.lines, design.by_rows, centre, even)
    times = max(1.0, times)
    return known, times, 0.0 if mean is None else float(np.sqrt(times))


class WidePath:
    """Solves some penalties after the other; model and working set carry over."""

    def __init__(self, samples: Centred | Responses) -> None:
        self.samples, self.problem = samples, samples.problem
        problem, design, kernel = samples.problem, samples.problem.design, samples.problem.loss.kernel()
        assert kernel is not None
        y, mean, b, intercept = problem.y, None, 0.0, problem.intercept
        if isinstance(samples, Centred):
            y, mean, intercept = samples.y, samples.mean, False
        else:
            b = samples.best_constant
        shorts, times, apart = short_columns(samples.problem, samples.p, mean)
        lengths = shorts.lengths()  # of the columns without their means, from above
        lengths *= np.sqrt(times)
        samples.know_lengths(lengths if mean is None else np.hypot(lengths, mean))
        self._path = kernels.wide_path(
            design.lines,
            design.by_rows,
            mean,
            shorts,
            apart,
            kernel,
            y,
            samples.p,
            problem.loss.smoothness,
            intercept,
            b,
            POSV,
            SYRK,
        )

    @classmethod
    def of(cls, problem: Problem, most: int = MOST_SAMPLES) -> WidePath | None:
        """For dense data of few samples and more columns; single weights, all with one threshold."""
        design, penalty = problem.design, problem.penalty
        single = penalty.separable and Trait.BLOCK_PENALTY in penalty.traits
        if design.is_sparse or design.shape[0] > min(most, design.shape[1]) or not single:
            return None
        if type(problem.loss) is not Squared and not problem.loss.traits >= SMOOTH:
            return None
        path = cls(Centred.of(problem) if type(problem.loss) is Squared else Responses(problem))
        return path if path.samples.are_moderate else None

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optima for the first of these penalties, as many as are found."""
        some = penalties[:MOST_LAMS]
        return self._results(some, np.full(len(some), float(stop.tol)), stop)

    def approach(self, penalty: Penalty, stop: Stop) -> Result | None:
        """The optimum for a penalty by a short path to it.

        From lam_max down every lam has few more weights than the last: that is quicker than the jump, whose first
        working sets are wrong.
        """
        ratio = max(self._path.largest / penalty.sparsity / penalty.lam, 1.0) if penalty.sparsity > 0.0 else np.inf
        steps = np.ceil(np.log(ratio) / np.log(STRIDE))
        if not steps <= MOST_STEPS:
            return None
        way = [penalty.with_lam(float(lam)) for lam in penalty.lam * STRIDE ** np.arange(int(steps) - 1, 0, -1)]
        tol = np.append(np.full(len(way), max(stop.tol, ROUGH)), float(stop.tol))
        results = self._results([*way, penalty], tol, stop, skip=len(way))
        return results[0] if results else None

    def _results(self, penalties: Sequence[Penalty], tol: Vector, stop: Stop, skip: int = 0) -> list[Result]:
        """Of the first of these penalties, without some that are only on the way."""
        start, results = time.perf_counter(), list[Result]()
        models = self._advance(penalties, tol, stop)
        bounds = [] if models is None else self.samples.bounds_of(models)
        seconds = (time.perf_counter() - start) / max(1, len(bounds))  # for each, of what they took together
        for k in range(skip, len(bounds)):
            if models is None or not bounds[k].reach(stop.tol, stop.atol):
                break
            problem, part = self.problem.replace(penalty=penalties[k]), models.part(k)
            columns, weights, steps = models.columns[part], models.weights[part], int(models.steps[k])
            b = float(models.b[k])
            if isinstance(self.samples, Centred):
                b = self.samples.intercept(weights, columns)
            results.append(found(problem, columns, weights, b, bounds[k], stop, steps, seconds))
        return results

    def _advance(self, penalties: Sequence[Penalty], tol: Vector, stop: Stop) -> Models | None:
        """The compiled path along some penalties."""
        blocks = [penalty.blocks(1) for penalty in penalties]
        threshold = np.array([float(one.threshold[0]) for one in blocks if one is not None])
        ridge = np.array([one.ridge for one in blocks if one is not None])
        if not (is_moderate(threshold) and is_moderate(ridge)):
            return None
        seconds = 1e9 if stop.max_seconds is None else stop.max_seconds
        starts, columns, weights, largest, near_starts, near, b, loss, multipliers, steps = self._path.advance(
            threshold, ridge, tol, float(stop.atol), seconds
        )
        m = len(steps)
        found_of_each = (starts, columns, weights, largest, near_starts, near, b, loss)
        a = multipliers.reshape(m, self.problem.shape[0])
        return Models(threshold[:m], ridge[:m], *found_of_each, a, steps)
