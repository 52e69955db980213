"""Cross-validation along paths of penalties: folds in threads, with warm starts along each path.

`follow` solves along one path on one fold; `in_parallel` runs folds concurrently; `search_alpha` does both for sparse
models and chooses alpha and l1_ratio. Of the estimators only this module uses `along`, `Supports`, `shared_design` and
the fold cache of a design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from threading import Event
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from fenchel.data.typing import Matrix, Vector, VectorLike
from fenchel.estimator.base import Features, LinearEstimator, StartLike, Targets, stored_for, warn_caller, warn_short
from fenchel.estimator.objective import l1_ratio_of, nonnegative_alpha, number, one_of, positive
from fenchel.estimator.search.routing import RoutedSearch, of_samples
from fenchel.problem import MulticlassProblem, Problem
from fenchel.problem.checks import shown
from fenchel.problem.penalties import Penalty
from fenchel.problem.vectors import frozen
from fenchel.solver import Result
from fenchel.solver.many import constant_result
from fenchel.solver.paths.grid import along, shared_design
from fenchel.solver.solve import seed_of
from fenchel.steps.base import Supports

Samples: TypeAlias = NDArray[np.intp]
#: The training samples and the test samples.
Fold: TypeAlias = tuple[Samples, Samples]
Scorer: TypeAlias = Callable[..., float]
Scoring: TypeAlias = str | Scorer | None
Options: TypeAlias = dict[str, Any]
Kept = TypeVar("Kept")


class Splitter(Protocol):
    """scikit-learn's splitters of samples into folds."""

    def split(self, X: object, y: object = None, groups: object = None) -> Iterator[Fold]: ...


CrossValidation: TypeAlias = int | Splitter | Iterable[Fold] | None


# Folds and scores -------------------------------------------------------------------------------------------------


def scorer_of(model: LinearEstimator, scoring: Scoring) -> Scorer:
    """scikit-learn's scorer by name, or the estimator's own score; imported on demand."""
    from sklearn.metrics import check_scoring

    scorer: Scorer = check_scoring(model, scoring=scoring)
    return scorer


def with_labels(scorer: Scorer, classes: Targets) -> Scorer:
    """The scorer with all labels, if its metric takes them: the test samples of a fold may lack some."""
    from sklearn.metrics import make_scorer
    from sklearn.metrics._scorer import _BaseScorer

    known = signature(scorer._score_func).parameters if isinstance(scorer, _BaseScorer) else {}
    if not isinstance(scorer, _BaseScorer) or "labels" not in known:
        return scorer
    extra: dict[str, Any] = {"labels": classes}
    average = scorer._kwargs.get("average", known["average"].default if "average" in known else "binary")
    if len(classes) == 2 and "pos_label" in known:
        extra["pos_label"] = classes[1] if average == "binary" else None
    arguments = {**extra, **scorer._kwargs}
    highest, method = scorer._sign > 0, scorer._response_method
    complete: Scorer = make_scorer(scorer._score_func, greater_is_better=highest, response_method=method, **arguments)
    return complete


def warn_missing(classes: Targets, codes: NDArray[np.intp], weights: Vector, folds: Sequence[Fold]) -> None:
    """Warn about classes without weight in the training samples of a fold, with the position of each such fold."""
    gaps = []
    for k, (train, _) in enumerate(folds):
        empty = classes[np.bincount(codes[train], weights[train], len(classes)) == 0.0]
        if len(empty):
            gaps.append(f"fold {k} has no training sample of the class {', '.join(map(str, empty))}")
    if gaps:
        warn_caller(
            f"{'; '.join(gaps)}. The models of such a fold know nothing about the class: their scores on its test "
            "samples say little about the candidates. A stratified splitter keeps every class in every fold",
            UserWarning,
        )


def with_every_class(codes: NDArray[np.intp], weights: Vector, train: Samples) -> tuple[Samples, Vector]:
    """Training samples with their weights, completed by a sample of weight 0 of each class that they lack."""
    present, first = np.unique(codes, return_index=True)
    extra = first[~np.isin(present, codes[train])]
    rows = np.concatenate([np.arange(len(codes))[train], extra])
    return rows, np.concatenate([weights[train], np.zeros(len(extra))])


def complete_classes(data: FoldData, train: Samples) -> FoldData:
    """The training samples of a fold, completed by samples of weight 0 to all classes."""
    rows, weights = with_every_class(data.y, data.weights, train)
    return replace(data.subset(rows), weights=weights)


def folds_of(
    cv: CrossValidation, X: Features, y: Targets, classifier: bool, params: Mapping[str, Any] | None = None
) -> list[Fold]:
    """The training and test samples of each fold, by scikit-learn's rules; `params` are for the splitter (groups)."""
    from sklearn.model_selection import check_cv

    return list(check_cv(cv, y, classifier=classifier).split(X, y, **(params or {})))


def weight_argument(weights: Vector | None) -> dict[str, Vector]:
    """The keyword of scorers for sample weights, if given."""
    return {} if weights is None else {"sample_weight": weights}


def score_on(
    scorer: Scorer, model: LinearEstimator, X: Features, y: Targets, params: dict[str, Any], test: Samples
) -> float:
    """A model's score on the samples of a fold; `params` are keywords of the scorer for all samples."""
    return float(scorer(model, X[test], y[test], **of_samples(params, X, test)))


def comparable(scores: Vector) -> Vector:
    """Scores (folds x candidates) of which the largest mean is the best.

    Folds where no candidate has a score (nan) are left out: a metric may not be defined where the test samples lack a
    class. Any other nan is -inf.
    """
    missing = np.isnan(scores)
    useless = missing.all(axis=tuple(range(1, scores.ndim)))
    if useless.all():
        warn_caller("the scores are nan on every fold; the first candidate is taken", UserWarning)
        return np.full_like(scores, -np.inf)
    return np.where(missing, -np.inf, scores)[~useless]


def in_parallel(task: Callable[[Fold, Options], Kept], folds: Sequence[Fold], options: Options) -> list[Kept]:
    """task(fold, options) for each fold, concurrently in n_threads threads, or one after the other with progress bars.

    Ctrl-C ends all of them.
    """
    seed = options["random_state"]
    if not (seed is None or isinstance(seed, int | np.integer)):  # the order of the threads is random
        options = {**options, "random_state": seed_of(seed)}
    workers = 1 if options["progress"] else min(options["n_threads"], len(folds))
    if workers == 1:
        return [task(fold, options) for fold in folds]
    stopped = Event()
    alone = {**options, "n_threads": 1, "interrupted": stopped}
    try:
        kept: list[Kept] = Parallel(workers, require="sharedmem")(delayed(task)(fold, alone) for fold in folds)
    finally:
        stopped.set()
    return kept


# Paths ------------------------------------------------------------------------------------------------------------


def follow(
    problem: Problem | MulticlassProblem,
    penalties: Sequence[Penalty],
    options: Options,
    start: StartLike = None,
    supports: Supports | None = None,
) -> Iterator[tuple[int, Result]]:
    """Solve a problem with each penalty, the largest lam first, with warm starts; yields positions and results."""
    order = sorted(range(len(penalties)), key=lambda k: -penalties[k].lam)
    constant = constant_result(problem, {name: value for name, value in options.items() if name != "interrupted"})
    if constant is not None:
        yield from ((k, constant) for k in order)
        return
    results = along(problem, [penalties[k] for k in order], start=start, supports=supports, **options)
    for k, result in zip(order, results, strict=True):
        stopped = options.get("interrupted")
        if stopped is not None and stopped.is_set():
            raise RuntimeError("interrupted in another fold")
        if result.status == "interrupted":  # an incomplete path gives no choice
            raise KeyboardInterrupt
        yield k, result


def path_results(problem: Problem | MulticlassProblem, penalties: Sequence[Penalty], options: Options) -> list[Result]:
    """The results of `follow`, in the order of the penalties."""
    results = dict(follow(problem, penalties, options))
    return [results[k] for k in range(len(penalties))]


def mean_start(paths: Sequence[Result], folds: Sequence[Fold], n: int) -> StartLike:
    """The start for all samples: the mean over the folds (for multipliers over the folds that had the sample)."""
    alpha = np.zeros((n, *paths[0].alpha.shape[1:]))
    seen = np.zeros(n)
    for result, (train, _) in zip(paths, folds, strict=True):
        np.add.at(alpha, train, result.alpha[: len(train)])
        np.add.at(seen, train, 1.0)
    alpha /= np.maximum(seen, 1.0).reshape(-1, *[1] * (alpha.ndim - 1))
    return np.mean([r.w for r in paths], axis=0), np.mean([r.b for r in paths], axis=0), alpha


# Alphas -----------------------------------------------------------------------------------------------------------


def alphas_of(alphas: VectorLike | None, n_alphas: int | None = None) -> int | Vector:
    """The number of alphas, or the alphas, the largest first; None is 100.

    "warn" and "deprecated" are scikit-learn's words (1.7 to 1.10) for parameters that are not given.
    """
    alphas = None if isinstance(alphas, str) and alphas == "warn" else alphas
    n_alphas = None if isinstance(n_alphas, str) and n_alphas == "deprecated" else n_alphas
    if n_alphas is not None:
        if alphas is not None and (np.ndim(alphas) > 0 or alphas != 100):
            raise ValueError(f"n_alphas={n_alphas!r} would have no effect beside alphas; leave n_alphas out")
        alphas = n_alphas
    alphas = 100 if alphas is None else alphas
    if np.ndim(alphas) == 0:
        if isinstance(alphas, bool) or not isinstance(alphas, int | np.integer) or alphas < 1:
            raise ValueError(f"alphas must be a positive integer or values of alpha, got {alphas!r}")
        return int(alphas)
    require_no_negatives(alphas, "be >= 0.0")
    values = np.array([nonnegative_alpha(alpha) for alpha in np.ravel(np.asarray(alphas, dtype=object))])
    if not len(values):
        raise ValueError("alphas is empty; pass at least one")
    return np.sort(values)[::-1]


def require_no_negatives(alphas: VectorLike, must: str) -> None:
    """Raise for an entry that is no number, or negative, in scikit-learn's words."""
    for k, alpha in enumerate(np.ravel(np.asarray(alphas, dtype=object))):
        if isinstance(alpha, str):
            raise TypeError(f"alphas[{k}] must be an instance of float, not str")
        if number("alphas", alpha) < 0.0:
            raise ValueError(f"alphas[{k}] == {shown(alpha)}, must {must}.")


def ratios_of(l1_ratio: VectorLike) -> list[float]:
    """One l1_ratio or several, checked."""
    values = [l1_ratio_of(ratio) for ratio in np.ravel(np.asarray(l1_ratio, dtype=object))]
    if not values:
        raise ValueError("l1_ratio is empty; pass at least one")
    return values


def require_ends(asked: int | Vector, ratios: Sequence[float], eps: float) -> None:
    """Raise unless a grid can be derived: eps <= 1, and every l1_ratio > 0."""
    if isinstance(asked, int):
        if positive("eps", eps, "it is a ratio") > 1.0:
            raise ValueError(f"eps is the smallest alpha relative to the largest: at most 1, got {shown(eps)}")
        if 0.0 in ratios:
            raise ValueError(
                "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid by providing "
                "your estimator with the appropriate `alphas=` argument. (No alpha gives weights of zero.)"
            )


def alpha_grid(problems: Sequence[Problem], asked: int | Vector, eps: float) -> Vector:
    """The alphas, the largest first: as given, or a geometric grid from lam_max to eps lam_max.

    The penalties of the problems have lam = 1.
    """
    if not isinstance(asked, int):
        return asked
    largest, smallest = max(problem.lam_max() for problem in problems), 1e-15
    if not largest > smallest:  # the weights are zero for every alpha
        return np.full(asked, smallest)
    return np.geomspace(largest, eps * largest, asked)


def choice(errors: Vector, rule: str) -> tuple[int, int]:
    """The position of the best of ratios x alphas x folds: the smallest mean error.

    "one_standard_error" keeps the ratio, and takes the largest alpha (they come first) whose mean error is at most the
    smallest one plus its standard error, s / sqrt(folds).
    """
    errors = -comparable(-np.moveaxis(errors, 2, 0))
    folds, mean = len(errors), errors.mean(axis=0)
    i, j = (int(k) for k in np.unravel_index(int(mean.argmin()), mean.shape))
    if rule == "one_standard_error" and folds > 1 and np.isfinite(mean[i, j]):
        spread = errors[:, i, j].std(ddof=1) / np.sqrt(folds)
        j = int(np.argmax(mean[i] <= mean[i, j] + spread))
    return i, j


# The search for alpha and l1_ratio --------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class SearchParameters(RoutedSearch):
    """Parameters of every search that runs folds in threads."""

    cv: CrossValidation = None
    verbose: int = 0
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class AlphaSearchParameters(SearchParameters):
    """Parameters of a search along a path of alphas."""

    eps: float = 1e-3
    alphas: VectorLike | None = 100
    rule: str = "best"


@dataclass(frozen=True)
class FoldData:
    """Samples, targets (or codes of labels), and sample weights for fits and, if given, for errors."""

    X: Features
    y: NDArray[Any]
    weights: Vector
    error_weights: Vector | None

    def subset(self, which: Samples) -> FoldData:
        """Some of the samples."""
        weights = None if self.error_weights is None else self.error_weights[which]
        return FoldData(self.X[which], self.y[which], self.weights[which], weights)


@dataclass(frozen=True)
class FoldModels:
    """The fits to a fold along one path: for each alpha the error, and the nonzero weights of each problem."""

    errors: list[float] = field(default_factory=list)
    weights: list[list[tuple[Samples, Vector]]] = field(default_factory=list)  # columns and values
    intercepts: list[Vector] = field(default_factory=list)
    short: list[Result] = field(default_factory=list)  # results that miss the tolerance

    def scores(self, X: Features) -> Iterator[Matrix]:
        """X w + b for each alpha, a row for each problem; one product for many alphas."""
        count, most_numbers = len(self.intercepts[0]), 4_000_000  # scores or weights at a time: 32 MB
        width = max(1, most_numbers // (max(X.shape) * count))
        for start in range(0, len(self.weights), width):
            some = slice(start, start + width)
            each = [model for problems in self.weights[some] for model in problems]
            columns = np.unique(np.concatenate([places for places, _ in each]))
            w = np.zeros((len(columns), len(each)))
            for k, (places, values) in enumerate(each):
                w[np.searchsorted(columns, places), k] = values
            few = len(columns) < X.shape[1]
            scores = safe_sparse_dot(X[:, columns] if few else X, w).T
            yield from (scores + np.concatenate(self.intercepts[some])[:, None]).reshape(-1, count, X.shape[0])


@dataclass(frozen=True)
class AlphaSearch:
    """A search for alpha and l1_ratio, with the functions of its estimator.

    `problems` states the problems of samples, with any penalty; `errors` gives the error on test samples for each
    alpha; `require` raises if a fold cannot be fitted.
    """

    alphas: int | Vector
    ratios: list[float]
    eps: float
    rule: str
    penalty: Callable[[float, float], Penalty]  # of alpha and l1_ratio
    problems: Callable[[FoldData], Sequence[Problem]]
    errors: Callable[[FoldModels, FoldData], list[float]]
    require: Callable[[NDArray[Any], Vector], None]
    complete: Callable[[FoldData, Samples], FoldData] = FoldData.subset  # the training samples of a fold


@dataclass(frozen=True)
class AlphaGrid:
    """The alphas of one l1_ratio; and for each problem the supports found by other folds."""

    ratio: float
    alphas: Vector
    supports: list[Supports]


@dataclass(frozen=True)
class Best:
    """The chosen alpha and l1_ratio, the errors (ratios x alphas x folds), and the problems of all samples."""

    alpha: float
    ratio: float
    alphas: Vector
    errors: Vector
    problems: list[Problem]
    starts: list[StartLike]


def some_weight(y: NDArray[Any], weights: Vector) -> None:
    """Raise if no training sample of a fold has a weight."""
    if not weights.any():
        raise ValueError("all training samples of a fold have weight zero; use fewer folds")


def check_search(rule: str, alphas: int | Vector, ratios: list[float], eps: float) -> None:
    """Raise for invalid parameters of a search."""
    one_of("rule", rule, ("best", "one_standard_error"))
    require_ends(alphas, ratios, eps)


def search_alpha(search: AlphaSearch, data: FoldData, folds: list[Fold], options: Options) -> Best:
    """Follow the paths of all folds, and choose by their errors."""
    if search.rule == "one_standard_error" and len(folds) < 2:
        raise ValueError("rule='one_standard_error' needs at least two folds")
    # storage for the smallest ratio: its penalty is strongly convex if any is
    unit = _with_penalty(search.problems(data), search.penalty(1.0, min(search.ratios)))
    whole = stored_for(options["solver"], unit)
    grids = [_grid(search, whole, ratio) for ratio in search.ratios]
    shared = shared_design(whole[0], **options)
    if shared is not None:
        whole = [problem.replace(X=shared) for problem in whole]
    try:
        models = in_parallel(partial(_follow_fold, search, data, whole, grids), folds, options)
    finally:
        if shared is not None and shared.fold_cache is not None:
            shared.fold_cache.end()
    fits = len(whole) * sum(len(one.errors) for fold in models for one in fold)
    warn_short([result for fold in models for one in fold for result in one.short], "fits to the folds", fits)
    errors = np.moveaxis(np.array([[one.errors for one in fold] for fold in models]), 0, 2)
    i, j = choice(errors, search.rule)
    one_grid = len(grids) == 1 or not isinstance(search.alphas, int)
    problems = _with_penalty(whole, search.penalty(grids[i].alphas[j], search.ratios[i]))
    chosen = [fold[i] for fold in models]
    return Best(
        grids[i].alphas[j],
        search.ratios[i],
        grids[0].alphas if one_grid else np.array([grid.alphas for grid in grids]),
        errors,
        problems,
        [_mean_model(problem, k, chosen, j) for k, problem in enumerate(problems)],
    )


def _grid(search: AlphaSearch, whole: Sequence[Problem], ratio: float) -> AlphaGrid:
    alphas = alpha_grid(_with_penalty(whole, search.penalty(1.0, ratio)), search.alphas, search.eps)
    return AlphaGrid(ratio, alphas, [Supports({}) for _ in whole])


def _follow_fold(
    search: AlphaSearch, data: FoldData, whole: list[Problem], grids: list[AlphaGrid], fold: Fold, options: Options
) -> list[FoldModels]:
    """The paths of a fold, one for each l1_ratio."""
    test = data.subset(fold[1])
    if not len(test.weights):
        raise ValueError("a fold has no test samples")
    if test.error_weights is not None and not test.error_weights.any():
        raise ValueError("sample_weight is zero for all test samples of a fold; use fewer folds")
    problems = _training_problems(search, data, whole, fold[0])
    return [_follow_grid(search, problems, test, grid, options) for grid in grids]


def _training_problems(search: AlphaSearch, data: FoldData, whole: list[Problem], train: Samples) -> Sequence[Problem]:
    """The problems of a fold: by weights on all of X if it has a fold cache and most samples are used; else copies."""
    times = np.zeros(len(data.weights))
    np.add.at(times, train, 1.0)
    search.require(data.y, data.weights * times)
    cache = whole[0].design.fold_cache
    if cache is None or 2 * np.count_nonzero(times) < len(times):
        return search.problems(search.complete(data, train))
    design = whole[0].design.sharing(cache)
    return [problem.replace(X=design, weights=frozen(problem.weights * times)) for problem in whole]


def _follow_grid(
    search: AlphaSearch, problems: Sequence[Problem], test: FoldData, grid: AlphaGrid, options: Options
) -> FoldModels:
    penalties = [search.penalty(alpha, grid.ratio) for alpha in grid.alphas]
    models, stated = FoldModels(), stored_for(options["solver"], _with_penalty(problems, penalties[0]))
    paths = [follow(p, penalties, options, supports=s) for p, s in zip(stated, grid.supports, strict=True)]
    for steps in zip(*paths, strict=True):  # the largest alpha first
        results = [result for _, result in steps]
        models.weights.append([result.nonzeros() for result in results])
        models.intercepts.append(np.array([result.b for result in results]))
        models.short.extend(result.without_data() for result in results if result.status != "certified")
    models.errors.extend(search.errors(models, test))
    return models


def _with_penalty(problems: Sequence[Problem], penalty: Penalty) -> list[Problem]:
    return [problem.replace(penalty=penalty) for problem in problems]


def _mean_model(problem: Problem, k: int, folds: list[FoldModels], j: int) -> StartLike:
    """The mean over the folds of the model of problem k for alpha j, with alpha_i = -phi'(z_i)."""
    w = np.zeros(problem.shape[1])
    for models in folds:
        places, values = models.weights[j][k]
        w[places] += values / len(folds)
    b = float(np.mean([models.intercepts[j][k] for models in folds]))
    return w, b, -problem.loss.derivative(problem.scores(w, b), problem.y)
