"""Regression with a group Lasso, alone and with alpha chosen by cross-validation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fenchel.estimator.names import resolve_regression_loss
from fenchel.estimator.objective import positive_alpha
from fenchel.estimator.search.lasso_cv import SparseRegressionCV
from fenchel.estimator.sparse.lasso import SparseRegression
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import GroupL2, Penalty


class GroupRegression(SparseRegression):
    """What GroupLasso and its cross-validated form share: a loss, and groups of columns with their weights."""

    def _loss(self) -> Loss:
        return resolve_regression_loss(self.loss)

    def _grouped(self, alpha: float) -> GroupL2:
        """The penalty for as many columns as the data have."""
        groups = groups_of(self.groups, self.n_features_in_)
        weights = self.weights
        if isinstance(weights, str):
            if weights != "sqrt":
                raise ValueError(f"weights must be None, 'sqrt' or one number for each group; got {weights!r}")
            weights = np.sqrt(np.bincount(groups))
        return GroupL2(alpha, groups, weights)


class GroupLasso(GroupRegression):
    """Regression in which groups of weights are zero together, certified.

    Minimises ::

        1/W sum_i s_i phi(x_i.w + b; y_i) + alpha sum_g weights_g |w_g|_2,   phi = (z - y)^2 / 2

    for each target, with W = sum_i s_i and an intercept b that is not penalised. Of the losses for labels,
    `LinearClassifier(loss, penalty=GroupL2(lam, groups))` takes any.

    Parameters
    ----------
    alpha : float, default 1.0
    groups : int, array of labels or sizes, or list of index lists; default 1
        How the columns are grouped: so many neighbours each; d labels, one for each column; fewer numbers, the sizes
        of groups of neighbours, which add up to d; or the columns of each group.
    weights : "sqrt" or array of one positive number for each group, optional
        In the sorted order of the labels, or the order of the groups. None is ones, "sqrt" the square roots of the
        sizes.
    loss : str or Loss, default "squared"
        "squared", "huber", ... or an object such as Huber(0.5).
    fit_intercept : bool, default True
    solver : str, default "auto"
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    max_iter, max_seconds : limits, optional
    random_state : int, RandomState or None
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    verbose : int, default 0
        Anything but 0 shows a progress bar.
    n_threads : int or None, default 1

    Attributes
    ----------
    coef_ : array of shape (d,), or (targets, d)
    intercept_ : float, or array of shape (targets,)
    sparse_coef_ : sparse matrix of shape (targets, d)
    certified_zeros_ : array of booleans, of the shape of `coef_`
        Which weights are proven to be zero in the exact optimum; those of a group are so together.
    dual_coef_ : array of shape (n,), or (targets, n)
    dual_gap_ : float, or array of shape (targets,)
        The certified gap.
    certificate_ : Certificate
        Of the objective; summed over the targets.
    trace_ : Trace, or a list of them
    n_iter_ : int, or an array of them

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import GroupLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GroupLasso(alpha=8.0, groups=[2, 2, 6], weights="sqrt").fit(scale(X), y)
    >>> model.certified_zeros_
    array([ True,  True, False, False, False, False, False, False, False,
           False])
    """

    _several_targets: ClassVar[bool] = True

    def __init__(
        self,
        alpha: float = 1.0,
        groups: Any = 1,
        weights: Any = None,
        *,
        loss: Any = "squared",
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        n_threads: int | None = 1,
    ) -> None:
        self.alpha = alpha
        self.groups = groups
        self.weights = weights
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        positive_alpha(self.alpha)
        self._loss()

    def _penalty(self, total_weight: float) -> Penalty:
        return self._grouped(positive_alpha(self.alpha))


class GroupLassoCV(SparseRegressionCV, GroupRegression):
    """The group Lasso with the best of some alphas, certified.

    Minimises what `GroupLasso` does. alpha is chosen by twice the mean loss on folds (the squared error), along paths
    of alphas on which each fit begins at its neighbour's weights and multipliers; the last fit, to all samples, begins
    at the mean over the folds.

    Parameters
    ----------
    groups, weights, loss, fit_intercept
        As in `GroupLasso`.
    eps : float, default 1e-3
        The smallest alpha as a share of the largest.
    alphas : int or array of positive numbers, default 100
        A number of alphas, which begin at the least that makes all weights zero; or the alphas.
    cv : int, splitter, iterable or None
        None is five folds.
    rule : {"best", "one_standard_error"}, default "best"
        As in `ElasticNetCV`.
    solver : str, default "auto"
    tol : float, default 1e-4
        Every fit ends when its certified gap is at most tol times the objective.
    max_iter : int, optional
        Most steps of each fit.
    random_state : int, RandomState or None
    verbose : int, default 0
        Anything but 0 shows progress bars, one fold after the other.
    n_jobs : int, optional
        Folds at a time: None is one, -1 is as many as there are cores.

    Attributes
    ----------
    alpha_ : float
    alphas_ : array of shape (alphas,)
    mse_path_ : array of shape (alphas, folds)
        Twice the mean loss of the samples left out.
    coef_, intercept_, sparse_coef_, certified_zeros_, dual_coef_, dual_gap_, certificate_, trace_, n_iter_
        As in `GroupLasso`, of the last fit, to all samples.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import GroupLassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GroupLassoCV([2, 2, 6], "sqrt", alphas=10, rule="one_standard_error").fit(scale(X), y)
    >>> model.mse_path_.shape, model.certificate_.ok
    ((10, 5), True)
    """

    def __init__(
        self,
        groups: Any = 1,
        weights: Any = None,
        *,
        loss: Any = "squared",
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        cv: Any = None,
        rule: str = "best",
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.groups = groups
        self.weights = weights
        self.loss = loss
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.rule = rule
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        self._loss()
        self._check_search()

    def _penalty_at(self, alpha: float, ratio: float) -> Penalty:
        return self._grouped(alpha)


def groups_of(groups: Any, d: int) -> NDArray[np.intp]:
    """The group of each of d columns, numbered from 0."""
    if isinstance(groups, int | np.integer) and not isinstance(groups, bool):
        if groups < 1 or d % groups:
            raise ValueError(f"groups={groups} neighbours each: {d} columns cannot be divided so")
        return np.arange(d) // int(groups)
    if isinstance(groups, list | tuple) and len(groups) and all(np.ndim(g) == 1 for g in groups):
        return _from_members([np.asarray(g) for g in groups], d)
    labels = np.asarray(groups)
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iuUSO":
        raise ValueError(
            "groups must be a number of neighbours, a label for each column, sizes, or a list of index lists; "
            f"got {groups!r}"
        )
    if len(labels) == d:
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    if labels.dtype.kind in "iu" and labels.min() > 0 and labels.sum() == d:
        return np.repeat(np.arange(len(labels)), labels)
    raise ValueError(
        f"groups has {len(labels)} entries: neither a label for each of {d} columns nor sizes that add up to {d}"
    )


def _from_members(members: list[NDArray[Any]], d: int) -> NDArray[np.intp]:
    flat = np.concatenate(members)
    if flat.dtype.kind not in "iu" or not np.array_equal(np.sort(flat), np.arange(d)):
        raise ValueError(f"groups must name every column from 0 to {d - 1} exactly once")
    if not all(len(member) for member in members):
        raise ValueError("groups has an empty group")
    labels = np.empty(d, dtype=np.intp)
    for k, member in enumerate(members):
        labels[member] = k
    return labels
