"""The Lasso and the elastic net, by the names and with the constants of scikit-learn's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fenchel.estimator.base import CertifiedZeros
from fenchel.estimator.objective import check_hints, elastic, l1_ratio_of, positive_alpha
from fenchel.estimator.regression import Regression
from fenchel.estimator.sparse.lasso_path import elastic_net_path
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import Penalty
from fenchel.solver import Result


class SparseRegression(CertifiedZeros, Regression):
    """What regressions with many zeros share: the squared loss, the gap by scikit-learn's name, and sparse weights."""

    def _loss(self) -> Loss:
        return Squared()

    def _keep(self, results: list[Result], constant: float) -> None:
        super()._keep(results, constant)
        gaps = np.array([result.certificate.gap for result in results])
        self.dual_gap_: Any = gaps if len(gaps) > 1 else gaps[0]

    def _take_shape_of(self, y: Any) -> None:
        super()._take_shape_of(y)
        self.certified_zeros_ = self.certified_zeros_.reshape(self.coef_.shape)

    @property
    def sparse_coef_(self) -> Any:
        """The weights as a sparse matrix, with a row for each target."""
        return sp.csr_matrix(np.atleast_2d(self.coef_))


class ElasticNet(SparseRegression):
    """Least squares with an L1 and an L2 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)

    for each target, with W = sum_i s_i and an intercept b that is not penalised.

    Parameters
    ----------
    alpha : float, default 1.0
    l1_ratio : float, default 0.5
        Between 0 (only L2) and 1 (the Lasso).
    fit_intercept : bool, default True
    precompute : bool or array, default False
        A hint to scikit-learn's algorithm; the minimiser is the same, so any value will do.
    max_iter : int, optional
        Most steps of our solver.
    copy_X : bool, default True
        X is never changed, so either value will do.
    tol : float, default 1e-4
        The fit ends when its certified gap is at most tol times the objective.
    warm_start : bool, default False
        Begin at the last fit's solution if shapes agree.
    positive : bool, default False
        True is refused: no solver here keeps w >= 0.
    random_state : int, RandomState or None
    selection : {"cyclic", "random"}, default "cyclic"
        A hint to scikit-learn's algorithm; either will do.
    solver : str, default "auto"
    max_seconds : float, optional
    n_threads : int or None, default 1

    Attributes
    ----------
    coef_ : array of shape (d,), or (targets, d)
    intercept_ : float, or array of shape (targets,)
    sparse_coef_ : sparse matrix of shape (targets, d)
    certified_zeros_ : array of booleans, of the shape of `coef_`
        Which weights are proven to be zero in the exact optimum.
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
    >>> from fenchel import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=1.0, l1_ratio=0.9, tol=1e-6).fit(X, y)
    >>> int((model.coef_ == 0.0).sum()), int(model.certified_zeros_.sum())
    (4, 4)
    """

    _several_targets: ClassVar[bool] = True
    path = staticmethod(elastic_net_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = None,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        solver: Any = "auto",
        max_seconds: float | None = None,
        n_threads: int | None = 1,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.max_seconds = max_seconds
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive)
        self._penalty(1.0)

    def _penalty(self, total_weight: float) -> Penalty:
        return elastic(positive_alpha(self.alpha), l1_ratio_of(self.l1_ratio))


class Lasso(SparseRegression):
    """Least squares with an L1 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_1

    for each target, with W = sum_i s_i and an intercept b that is not penalised.

    Parameters
    ----------
    alpha : float, default 1.0
    fit_intercept, precompute, copy_X, max_iter, tol, warm_start, positive, random_state, selection, solver, \
max_seconds, n_threads
        As in `ElasticNet`.

    Attributes
    ----------
    coef_, intercept_, sparse_coef_, certified_zeros_, dual_coef_, dual_gap_, certificate_, trace_, n_iter_
        As in `ElasticNet`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import Lasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Lasso(alpha=0.5, tol=1e-6).fit(X, y)
    >>> model.certified_zeros_
    array([ True,  True, False, False,  True,  True, False,  True, False,
            True])
    """

    _several_targets: ClassVar[bool] = True
    path = staticmethod(elastic_net_path)

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        solver: Any = "auto",
        max_seconds: float | None = None,
        n_threads: int | None = 1,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.max_seconds = max_seconds
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive)
        self._penalty(1.0)

    def _penalty(self, total_weight: float) -> Penalty:
        return elastic(positive_alpha(self.alpha), 1.0)
