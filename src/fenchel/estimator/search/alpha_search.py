"""The choice of alpha (and l1_ratio) on folds, for models with many zeros."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from fenchel.data.design import Vector
from fenchel.estimator.base import CertifiedZeros
from fenchel.estimator.objective import one_of
from fenchel.estimator.search.cross_validation import (
    RULES,
    Fold,
    alpha_grid,
    alphas_of,
    choice,
    require_ends,
    side_by_side,
    slim,
    walk,
    warn_of,
)
from fenchel.problem.penalties import Penalty
from fenchel.problem.vectors import frozen
from fenchel.solver import Result
from fenchel.solver.paths.found import nonzeros
from fenchel.solver.paths.large_path import Needed
from fenchel.solver.paths.quick_path import in_common

#: How many scores, or weights, there are at a time.
MOST_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Data:
    """Samples, their targets (or the codes of their labels), and their weights in fits and, if given, in errors."""

    X: Any
    y: Any
    weights: Vector
    counted: Vector | None

    def of(self, which: Any) -> Data:
        """Some of the samples."""
        counted = None if self.counted is None else self.counted[which]
        return Data(self.X[which], self.y[which], self.weights[which], counted)


@dataclass(frozen=True)
class Walk:
    """What is kept of the fits to a fold along one path: for each alpha the error, and for each problem its weights."""

    errors: list[float]
    weights: list[list[tuple[NDArray[np.intp], Vector]]]  # where they are not zero, and what they are there
    intercepts: list[Vector]
    short: list[Result]  # those that were not certified


@dataclass(frozen=True)
class Grid:
    """The alphas of one l1_ratio; and for each problem what the folds tell each other."""

    ratio: float
    alphas: Vector
    needed: list[Needed]


class AlphaSearch(CertifiedZeros):
    """Paths on folds, in threads, from the least alpha that makes all weights zero; then a fit to all samples.

    A subclass says `_penalty_at` and `_stated`, and how large the error of a model is.
    """

    def _penalty_at(self, alpha: float, ratio: float) -> Penalty:
        raise NotImplementedError

    def _stated(self, data: Data) -> list[Any]:
        """The problems of these samples, for the chosen alpha."""
        raise NotImplementedError

    def _error(self, scores: Vector, test: Data) -> float:
        """What is to be small on samples that were left out, from the scores of every problem's model."""
        raise NotImplementedError

    def _errors(self, models: Walk, test: Data) -> list[float]:
        """The error of every alpha."""
        return [self._error(scores, test) for scores in scores_of(models, test.X)]

    def _check_part(self, y: Any, weights: Vector) -> None:
        """Raise where a fit to these samples makes no sense."""
        if not weights.any():
            raise ValueError("no sample outside of a fold has weight; use fewer folds")

    def _ratios(self) -> list[float]:
        """The l1_ratios to try."""
        return [1.0]

    def _choose(self, alpha: Any, ratio: float) -> None:
        """Set the attributes that `_penalty` looks at."""
        self.alpha_ = alpha

    def _check_search(self) -> None:
        one_of("rule", self.rule, RULES)
        require_ends(self._asked(), self._ratios(), self.eps)

    def _asked(self) -> int | Vector:
        return alphas_of(self.alphas, getattr(self, "n_alphas", None))

    def _penalty(self, total_weight: float) -> Penalty:
        return self._penalty_at(self.alpha_, getattr(self, "l1_ratio_", 1.0))

    def _search(self, data: Data, folds: list[Fold]) -> Vector:
        """Choose alpha on the folds, and fit to all samples; the errors, ratios x alphas x folds, are returned."""
        if self.rule == "one_standard_error" and len(folds) < 2:
            raise ValueError("rule='one_standard_error' needs at least two folds: one error has no spread")
        ratios = self._ratios()
        self._choose(1.0, ratios[0])
        # stored as any of the penalties wants it: those that are strongly convex have the least ratio
        whole = self._by_rows(_with(self._stated(data), self._penalty_at(1.0, min(ratios))))
        grids = [self._grid(whole, ratio) for ratio in ratios]
        options = self._options()
        shared = in_common(whole[0], options)
        if shared is not None:
            whole = [problem.replace(design=shared) for problem in whole]
        try:
            walks = side_by_side(partial(self._follow, data, whole, grids), folds, options)
        finally:
            if shared is not None and shared.hold is not None:
                shared.hold.end()
        fits = len(whole) * sum(len(one.errors) for fold in walks for one in fold)
        warn_of([result for fold in walks for one in fold for result in one.short], fits)
        errors = np.moveaxis(np.array([[one.errors for one in fold] for fold in walks]), 0, 2)
        i, j = choice(errors, self.rule)
        self._choose(grids[i].alphas[j], ratios[i])
        one_grid = len(grids) == 1 or not isinstance(self._asked(), int)
        self.alphas_ = grids[0].alphas if one_grid else np.array([grid.alphas for grid in grids])
        problems = _with(whole, self._penalty(data.weights.sum()))
        self._solve(problems, [_mean_start(p, k, [fold[i] for fold in walks], j) for k, p in enumerate(problems)])
        return errors

    def _grid(self, whole: list[Any], ratio: float) -> Grid:
        alphas = alpha_grid(_with(whole, self._penalty_at(1.0, ratio)), self._asked(), self.eps)
        return Grid(ratio, alphas, [Needed() for _ in whole])

    def _follow(self, data: Data, whole: list[Any], grids: list[Grid], fold: Fold, options: Any) -> list[Walk]:
        """The paths of a fold, one for each l1_ratio."""
        test = data.of(fold[1])
        if not len(test.weights):
            raise ValueError("a fold has no samples, and no error then; every fold needs one that is left out")
        if test.counted is not None and not test.counted.any():
            raise ValueError("sample_weight is zero everywhere in a fold, which has no error then; use fewer folds")
        problems = self._on(data, whole, fold[0])
        return [self._walk(problems, test, grid, options) for grid in grids]

    def _on(self, data: Data, whole: list[Any], train: Any) -> list[Any]:
        """The problems of some samples: on X as it is where it has what they share, and most of them count."""
        times = np.zeros(len(data.weights))
        np.add.at(times, train, 1.0)
        self._check_part(data.y, data.weights * times)
        hold = whole[0].design.hold
        if hold is None or 2 * np.count_nonzero(times) < len(times):
            return self._stated(data.of(train))
        design = whole[0].design.sharing(hold)
        return [problem.replace(design=design, weights=frozen(problem.weights * times)) for problem in whole]

    def _walk(self, problems: list[Any], test: Data, grid: Grid, options: Any) -> Walk:
        penalties = [self._penalty_at(alpha, grid.ratio) for alpha in grid.alphas]
        kept, problems = Walk([], [], [], []), self._by_rows(_with(problems, penalties[0]))
        paths = [walk(p, penalties, options, needed=needed) for p, needed in zip(problems, grid.needed, strict=True)]
        for steps in zip(*paths, strict=True):  # alphas come in order, the largest first
            results = [result for _, result in steps]
            kept.weights.append([nonzeros(result) for result in results])
            kept.intercepts.append(np.array([result.b for result in results]))
            kept.short.extend(slim(result) for result in results if result.status != "certified")
        kept.errors.extend(self._errors(kept, test))
        return kept


def scores_of(models: Walk, X: Any) -> Iterator[Vector]:
    """X w + b for every alpha, with a row for each problem: one product for many of them."""
    count = len(models.intercepts[0])
    width = max(1, MOST_NUMBERS // (max(X.shape) * count))
    for start in range(0, len(models.weights), width):
        some = slice(start, start + width)
        each = [model for problems in models.weights[some] for model in problems]
        columns = np.unique(np.concatenate([places for places, _ in each]))
        w = np.zeros((len(columns), len(each)))
        for k, (places, values) in enumerate(each):
            w[np.searchsorted(columns, places), k] = values
        few = len(columns) < X.shape[1]
        scores = safe_sparse_dot(X[:, columns] if few else X, w).T + np.concatenate(models.intercepts[some])[:, None]
        yield from scores.reshape(-1, count, X.shape[0])


def _with(problems: list[Any], penalty: Penalty) -> list[Any]:
    return [problem.replace(penalty=penalty) for problem in problems]


def _mean_start(problem: Any, k: int, walks: list[Walk], j: int) -> tuple[Vector, float, Vector]:
    """Where to begin on all of the data: the mean over the folds of the k-th model for the j-th alpha, -phi' there."""
    w = np.zeros(problem.shape[1])
    for one in walks:
        places, values = one.weights[j][k]
        w[places] += values / len(walks)
    b = float(np.mean([one.intercepts[j][k] for one in walks]))
    return w, b, -problem.loss.derivative(problem.scores(w, b), problem.y)
