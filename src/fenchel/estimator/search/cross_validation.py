"""Cross-validation along a path of penalties, each solve started from its neighbour's solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from fenchel.data.design import Vector
from fenchel.estimator.objective import positive, positive_alpha
from fenchel.problem.penalties import Penalty
from fenchel.solver import NotCertifiedWarning, Result
from fenchel.solver.paths.grid import along
from fenchel.solver.paths.large_path import Needed
from fenchel.solver.seed import seed_of
from fenchel.solver.solve import not_certified

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
Kept = TypeVar("Kept")

#: How many alphas a path has unless it is told.
DEFAULT_COUNT = 100
#: All alphas of a path on which the weights are zero whatever alpha is.
SMALLEST = 1e-15
#: How the error on the folds decides.
RULES = ("best", "one_standard_error")


def scorer_of(estimator: Any, scoring: Any) -> Any:
    """scikit-learn's scorer by name, or the estimator's own score; imported when it is needed."""
    from sklearn.metrics import check_scoring

    return check_scoring(estimator, scoring=scoring)


def folds_of(cv: Any, X: Any, y: Any, classifier: bool) -> list[Fold]:
    """The training and test samples of each fold, by scikit-learn's rules; imported when they are needed."""
    from sklearn.model_selection import check_cv

    return list(check_cv(cv, y, classifier=classifier).split(X, y))


def walk(
    problem: Any,
    penalties: Sequence[Penalty],
    options: dict[str, Any],
    start: Any = None,
    needed: Needed | None = None,
) -> Iterator[tuple[int, Result]]:
    """Solve a problem with each penalty, the heaviest first: weights and multipliers carry over to the next."""
    order = sorted(range(len(penalties)), key=lambda k: -penalties[k].lam)
    results = along(problem, [penalties[k] for k in order], start=start, needed=needed, **options)
    for k, result in zip(order, results, strict=True):
        if result.status == "interrupted":  # a choice among what was not fitted would be none
            raise KeyboardInterrupt
        # a solve that is certified at its first check is over before its callback is heard
        if result.status == "callback" or (options.get("callback") and options["callback"](result.trace[-1])):
            raise RuntimeError("stopped, as another fold was")
        yield k, result


def path(problem: Any, penalties: Sequence[Penalty], options: dict[str, Any]) -> list[Result]:
    """The results of a walk, in the order of the penalties."""
    results = dict(walk(problem, penalties, options))
    return [results[k] for k in range(len(penalties))]


def slim(result: Result) -> Result:
    """What a warning needs of a result, without vectors and data."""
    certificate = replace(result.certificate, evidence=None)
    return replace(result, w=np.empty(0), alpha=np.empty(0), certificate=certificate)


def side_by_side(task: Callable[..., Kept], folds: Sequence[Fold], options: dict[str, Any]) -> list[Kept]:
    """task(fold, options) for each fold, as many at a time as there are threads; each solve has one of them.

    Bars of progress come one after the other. Ctrl-C ends all: no fit to a fold is worth keeping.
    """
    seed = options["random_state"]
    if not (
        seed is None or isinstance(seed, int | np.integer)
    ):  # threads would ask a generator in an order of their own
        options = {**options, "random_state": seed_of(seed)}
    workers = 1 if options["progress"] else min(options["n_threads"], len(folds))
    if workers == 1:
        return [task(fold, options) for fold in folds]
    stopped = Event()
    alone = {**options, "n_threads": 1, "callback": lambda check: stopped.is_set()}
    try:
        found: list[Kept] = Parallel(workers, require="sharedmem")(delayed(task)(fold, alone) for fold in folds)
    finally:
        stopped.set()
    return found


def alpha_grid(problems: Sequence[Any], asked: int | Vector, eps: float) -> Vector:
    """The alphas, the largest first: as given, or so many between the least that makes all weights zero and eps of it.

    The penalties of the problems have lam = 1.
    """
    if not isinstance(asked, int):
        return asked
    largest = max(problem.lam_max() for problem in problems)
    if not largest > SMALLEST:
        return np.full(asked, SMALLEST)
    return np.geomspace(largest, eps * largest, asked)


def alphas_of(alphas: Any, n_alphas: int | None = None) -> int | Vector:
    """How many alphas there are to be, or which, the largest first; None is 100."""
    if n_alphas is not None:
        if alphas is not None and (np.ndim(alphas) > 0 or alphas != DEFAULT_COUNT):
            raise ValueError(f"n_alphas={n_alphas!r} would have no effect: alphas says it all; leave n_alphas out")
        alphas = n_alphas
    alphas = DEFAULT_COUNT if alphas is None else alphas
    if np.ndim(alphas) == 0:
        if isinstance(alphas, bool) or not isinstance(alphas, int | np.integer) or alphas < 1:
            raise ValueError(f"alphas must be a positive integer or values of alpha, got {alphas!r}")
        return int(alphas)
    values = np.array([positive_alpha(alpha) for alpha in np.ravel(np.asarray(alphas, dtype=object))])
    if not len(values):
        raise ValueError("alphas is empty; give at least one")
    return np.sort(values)[::-1]


def require_ends(asked: int | Vector, ratios: Sequence[float], eps: Any) -> None:
    """A path of so many alphas needs a largest one, and a share of it to end at."""
    if isinstance(asked, int):
        if positive("eps", eps, "it is a share") > 1.0:
            raise ValueError(f"eps is the smallest alpha as a share of the largest: at most 1, got {eps!r}")
        if 0.0 in ratios:
            raise ValueError("l1_ratio=0 makes no zeros, so that no alpha is the least to make all; give alphas")


def choice(errors: Vector, rule: str) -> tuple[int, int]:
    """The best of ratios x alphas x folds: the least mean error, or the heaviest penalty that is hardly worse.

    "one_standard_error" keeps the ratio, and takes the largest alpha (they come first) whose mean error is at most the
    least one plus its standard error, s / sqrt(folds).
    """
    mean = errors.mean(axis=2)
    i, j = (int(k) for k in np.unravel_index(int(mean.argmin()), mean.shape))
    if rule == "one_standard_error":
        spread = errors[i, j].std(ddof=1) / np.sqrt(errors.shape[2])
        j = int(np.argmax(mean[i] <= mean[i, j] + spread))
    return i, j


def mean_start(paths: Sequence[Result], folds: Sequence[Fold], n: int) -> tuple[Vector, Any, Vector]:
    """Where to begin on all of the data: the mean over the folds, of multipliers over those that had the sample."""
    alpha = np.zeros((n, *paths[0].alpha.shape[1:]))
    seen = np.zeros(n)
    for result, (train, _) in zip(paths, folds, strict=True):
        np.add.at(alpha, train, result.alpha)
        np.add.at(seen, train, 1.0)
    alpha /= np.maximum(seen, 1.0).reshape(-1, *[1] * (alpha.ndim - 1))
    return np.mean([r.w for r in paths], axis=0), np.mean([r.b for r in paths], axis=0), alpha


def warn_of(results: Sequence[Result], count: int | None = None, what: str = "fits to the folds") -> None:
    """One warning for all the solves that fell short, of so many; of these by default."""
    short = [result for result in results if result.status != "certified"]
    if short:
        worst = max(short, key=lambda result: result.certificate.relative_gap)
        text = f"{len(short)} of {count or len(results)} {what} fell short: {not_certified(worst)}"
        warnings.warn(text, NotCertifiedWarning, stacklevel=4)


def score_on(
    scorer: Callable[..., float], model: Any, X: Any, y: Any, sample_weight: Vector | None, test: NDArray[np.intp]
) -> float:
    """A model's score on the samples of a fold; weights count where they were given."""
    weighted = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    return float(scorer(model, X[test], y[test], **weighted))
