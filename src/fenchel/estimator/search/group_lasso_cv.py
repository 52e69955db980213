"""The group Lasso with alpha chosen by cross-validation."""

from __future__ import annotations

from dataclasses import KW_ONLY

from fenchel.data.typing import VectorLike
from fenchel.estimator.documentation import documented
from fenchel.estimator.names import resolve_regression_loss
from fenchel.estimator.search.lasso_cv import SparseRegressionCV
from fenchel.estimator.sparse.group_lasso import Groups, grouped
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty


@documented("target", "zeros", "sparse", "alpha_path")
class GroupLassoCV(SparseRegressionCV):
    """The group Lasso with alpha chosen by cross-validation, certified.

    The objective is that of `GroupLasso`. alpha is chosen by twice the mean loss on folds (the squared error), along
    paths of alphas with warm starts; the last fit, to all samples, starts from the mean over the folds.

    Parameters
    ----------
    groups, weights, loss
        As in `GroupLasso`.

    Attributes
    ----------
    mse_path_ : array of shape (alphas, folds)
        Twice the mean loss of the test samples.

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

    groups: Groups = 1
    weights: VectorLike | None = None
    _: KW_ONLY
    loss: str | Loss = "squared"

    def _check_parameters(self) -> None:
        self._loss()
        super()._check_parameters()

    def _loss(self) -> Loss:
        return resolve_regression_loss(self.loss)

    def _penalty(self, alpha: float, ratio: float) -> Penalty:
        return grouped(alpha, self.groups, self.weights, self.n_features_in_)
