"""The group Lasso whose alpha is chosen by cross-validation."""

from __future__ import annotations

from fenchel.data.typing import Seed, VectorLike
from fenchel.estimator.base import SolverLike
from fenchel.estimator.documentation import TARGET, documented
from fenchel.estimator.names import resolve_regression_loss
from fenchel.estimator.search.cross_validation import CrossValidation
from fenchel.estimator.search.lasso_cv import SparseRegressionCV
from fenchel.estimator.sparse.group_lasso import Groups, grouped
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty


@documented(TARGET)
class GroupLassoCV(SparseRegressionCV):
    """The group Lasso with the best of some alphas, certified.

    Minimises what `GroupLasso` does. alpha is chosen by twice the mean loss on folds (the squared error), along paths
    of alphas on which each fit starts from its neighbour's weights and multipliers; the last fit, to all samples,
    starts from the mean over the folds.

    Parameters
    ----------
    groups, weights, loss
        As in `GroupLasso`.

    Attributes
    ----------
    alpha_ : float
    alphas_ : array of shape (alphas,)
    mse_path_ : array of shape (alphas, folds)
        Twice the mean loss of the samples left out.
    sparse_coef_, certified_zeros_, dual_gap_
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
        groups: Groups = 1,
        weights: VectorLike | None = None,
        *,
        loss: str | Loss = "squared",
        eps: float = 1e-3,
        alphas: VectorLike | None = 100,
        fit_intercept: bool = True,
        cv: CrossValidation = None,
        rule: str = "best",
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        random_state: Seed = None,
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
        super()._check_parameters()

    def _loss(self) -> Loss:
        return resolve_regression_loss(self.loss)

    def _penalty(self, alpha: float, ratio: float) -> Penalty:
        return grouped(alpha, self.groups, self.weights, self.n_features_in_)
