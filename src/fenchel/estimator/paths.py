"""Cross-validation along a path of penalties, each solve started from its neighbour's solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fenchel.data.design import Vector
from fenchel.problem.penalties import Penalty
from fenchel.solver import NotCertifiedWarning, Result
from fenchel.solver.path import along
from fenchel.solver.solve import not_certified

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def scorer_of(estimator: Any, scoring: Any) -> Any:
    """scikit-learn's scorer by name, or the estimator's own score; imported when it is needed."""
    from sklearn.metrics import check_scoring

    return check_scoring(estimator, scoring=scoring)


def folds_of(cv: Any, X: Any, y: Any, classifier: bool) -> list[Fold]:
    """The training and test samples of each fold, by scikit-learn's rules; imported when they are needed."""
    from sklearn.model_selection import check_cv

    return list(check_cv(cv, y, classifier=classifier).split(X, y))


def path(problem: Any, penalties: Sequence[Penalty], options: dict[str, Any]) -> list[Result]:
    """Solve a problem with each penalty, the heaviest first: weights and multipliers carry over to the next."""
    order = sorted(range(len(penalties)), key=lambda k: -penalties[k].lam)
    results: dict[int, Result] = {}
    for k, result in zip(order, along(problem, [penalties[k] for k in order], **options), strict=True):
        if result.status == "interrupted":  # a choice among what was not fitted would be none
            raise KeyboardInterrupt
        results[k] = result
    return [results[k] for k in range(len(penalties))]


def mean_start(paths: Sequence[Result], folds: Sequence[Fold], n: int) -> tuple[Vector, Any, Vector]:
    """Where to begin on all of the data: the mean over the folds, of multipliers over those that had the sample."""
    alpha = np.zeros((n, *paths[0].alpha.shape[1:]))
    seen = np.zeros(n)
    for result, (train, _) in zip(paths, folds, strict=True):
        np.add.at(alpha, train, result.alpha)
        np.add.at(seen, train, 1.0)
    alpha /= np.maximum(seen, 1.0).reshape(-1, *[1] * (alpha.ndim - 1))
    return np.mean([r.w for r in paths], axis=0), np.mean([r.b for r in paths], axis=0), alpha


def warn_of(results: Sequence[Result]) -> None:
    """One warning for all the solves on folds that fell short."""
    short = [result for result in results if result.status != "certified"]
    if short:
        worst = max(short, key=lambda result: result.certificate.relative_gap)
        text = f"{len(short)} of {len(results)} fits to the folds fell short: {not_certified(worst)}"
        warnings.warn(text, NotCertifiedWarning, stacklevel=4)


def score_on(
    scorer: Callable[..., float], model: Any, X: Any, y: Any, sample_weight: Vector | None, test: NDArray[np.intp]
) -> float:
    """A model's score on the samples of a fold; weights count where they were given."""
    weighted = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    return float(scorer(model, X[test], y[test], **weighted))
