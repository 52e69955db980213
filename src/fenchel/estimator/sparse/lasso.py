"""The Lasso and the elastic net, with the names and the constants of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np

from fenchel.data.convert import as_numbers, unmasked
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import Features, FitParameters
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, check_hints, elastic, l1_ratio_of, nonnegative_alpha
from fenchel.estimator.regression import SparseRegression, fit_targets, store_zeros
from fenchel.estimator.sparse.gram import require_gram
from fenchel.estimator.sparse.lasso_path import elastic_net_path
from fenchel.problem.checks import require_flag
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import GroupL2, NoPenalty, Penalty


@dataclass(eq=False, repr=False, kw_only=True)
class LassoHints:
    """Hints to the algorithm of scikit-learn's Lasso."""

    precompute: object = False
    copy_X: bool = True
    positive: bool = False
    selection: str = "cyclic"


@dataclass(eq=False, repr=False)
class LassoModel(Watched, LassoHints, FitParameters, SparseRegression):
    """The Lasso and the elastic net, for any number of targets."""

    _several_targets: ClassVar[bool] = True
    path = staticmethod(elastic_net_path)

    alpha: float = 1.0

    def _ratio(self) -> float:
        return 1.0

    def _check_parameters(self) -> None:
        check_hints(self.selection, self.positive, self.precompute, self.copy_X)
        self._objective()

    def _check_data(self, X: Features, sample_weight: VectorLike | None) -> None:
        if not isinstance(self.precompute, bool | np.bool_ | str | None):
            require_gram(self.precompute, X, sample_weight)

    def fit(
        self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None, check_input: bool = True
    ) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row.

        check_input=False leaves out scikit-learn's checks; that all entries are finite is checked nevertheless.
        """
        require_flag(check_input, "check_input")
        store_zeros(self, fit_targets(self, X, y, sample_weight, skip_check_array=not check_input))
        return self

    def _objective(self) -> Objective:
        penalty = elastic(nonnegative_alpha(self.alpha), self._ratio(), bool(self.positive))
        return Objective(Squared(), lambda total: penalty, self.fit_intercept)


@documented("targets", "zeros", "sparse")
class ElasticNet(LassoModel):
    """Least squares with an L1 and an L2 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2)

    for each target, with W = sum_i s_i and an unpenalised intercept b.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import ElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNet(alpha=1.0, l1_ratio=0.9, tol=1e-6).fit(X, y)
    >>> int((model.coef_ == 0.0).sum()), int(model.certified_zeros_.sum())
    (4, 4)
    """

    _: KW_ONLY
    l1_ratio: float = 0.5

    def _ratio(self) -> float:
        return l1_ratio_of(self.l1_ratio)


@documented("targets", "zeros", "sparse")
class Lasso(LassoModel):
    """Least squares with an L1 penalty, certified.

    Minimises, as scikit-learn's class of this name does, ::

        1/(2 W) sum_i s_i (x_i.w + b - y_i)^2 + alpha |w|_1

    for each target, with W = sum_i s_i and an unpenalised intercept b; with `weights` alpha sum_j weights_j |w_j|.

    Parameters
    ----------
    weights : array of d positive numbers, optional
        The adaptive Lasso: a factor of the penalty for each feature. Not with positive=True.

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

    _: KW_ONLY
    weights: VectorLike | None = None

    def _objective(self) -> Objective:
        if self.weights is None:
            return super()._objective()
        if self.positive:
            raise ValueError("weights cannot be combined with positive=True; scale the columns of X instead")
        penalty = weighted_l1(nonnegative_alpha(self.alpha), self.weights)
        return Objective(Squared(), lambda total: penalty, self.fit_intercept)

    def _check_data(self, X: Features, sample_weight: VectorLike | None) -> None:
        super()._check_data(X, sample_weight)
        if self.weights is not None:
            require_one_each(self.weights, X.shape[1])


def weighted_l1(alpha: float, weights: VectorLike) -> Penalty:
    """alpha sum_j weights_j |w_j|; alpha may be 0."""
    factors = factors_of(weights)
    return GroupL2(alpha, np.arange(len(factors)), factors) if alpha else NoPenalty()


def require_one_each(weights: VectorLike, d: int) -> None:
    """Raise unless there is a factor for each of d features."""
    count = len(factors_of(weights))
    if count != d:
        raise ValueError(f"weights has {count} entries, but X has {d} features")


def factors_of(weights: VectorLike) -> Vector:
    """Factors of the penalty, one for each feature, checked."""
    factors = np.asarray(as_numbers(unmasked(weights, "weights"), "weights"), dtype=np.float64)
    if factors.ndim != 1:
        raise ValueError(f"weights must be a vector, one number for each feature, got shape {factors.shape}")
    bad = np.flatnonzero(~((factors > 0.0) & (factors < np.inf)))
    if len(bad):
        raise ValueError(
            f"weights must be positive and finite, got {factors[bad[0]]:g} for feature {bad[0]}; "
            "a small weight such as 1e-3 hardly penalises a feature"
        )
    return factors
