"""The Lasso and the elastic net, by the names and with the constants of scikit-learn's."""

from __future__ import annotations

from typing import ClassVar

from fenchel.data.typing import Seed
from fenchel.estimator.base import SolverLike
from fenchel.estimator.documentation import TARGETS, documented
from fenchel.estimator.objective import Objective, check_hints, elastic, l1_ratio_of, positive_alpha
from fenchel.estimator.regression import SparseRegression
from fenchel.estimator.sparse.lasso_path import elastic_net_path
from fenchel.problem.losses import Squared


@documented(TARGETS)
class ElasticNet(SparseRegression):
    """Least squares with an L1 and an L2 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)

    for each target, with W = sum_i s_i and an intercept b that is not penalised.

    Attributes
    ----------
    sparse_coef_ : sparse matrix of shape (targets, d)
    certified_zeros_ : array of booleans, of the shape of `coef_`
        Which weights are proven to be zero in the exact optimum.
    dual_gap_ : float, or array of shape (targets,)
        The certified gap.
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
        precompute: object = False,
        max_iter: int | None = None,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Seed = None,
        selection: str = "cyclic",
        solver: SolverLike = "auto",
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
        self._objective()

    def _objective(self) -> Objective:
        penalty = elastic(positive_alpha(self.alpha), l1_ratio_of(self.l1_ratio))
        return Objective(Squared(), lambda total: penalty, self.fit_intercept)


@documented(TARGETS)
class Lasso(SparseRegression):
    """Least squares with an L1 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_1

    for each target, with W = sum_i s_i and an intercept b that is not penalised.

    Attributes
    ----------
    sparse_coef_, certified_zeros_, dual_gap_
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
        precompute: object = False,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Seed = None,
        selection: str = "cyclic",
        solver: SolverLike = "auto",
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
        self._objective()

    def _objective(self) -> Objective:
        penalty = elastic(positive_alpha(self.alpha), 1.0)
        return Objective(Squared(), lambda total: penalty, self.fit_intercept)
