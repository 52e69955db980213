"""The fused Lasso."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

import numpy as np

from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import VerboseFitParameters
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, nonnegative_alpha
from fenchel.estimator.regression import Regression, fit_targets
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import FusedL1, NoPenalty


@documented("target")
class FusedLasso(Watched, VerboseFitParameters, Regression):
    """Least squares with a penalty on differences of weights, certified.

    Minimises, with the constants of scikit-learn's Lasso, ::

        (1 / (2 W)) sum_i s_i (x_i.w + b - y_i)^2 + alpha |D w|_1,    W = sum_i s_i

    with an unpenalised intercept b. D is the first difference of the weights, in the order of the columns of X, unless
    given: many neighbouring weights are equal.

    Parameters
    ----------
    D : array or sparse matrix with a column for each feature, optional
        The differences of a graph (each row c (w_j - w_k)), differences of a higher order, or any matrix with at most
        2000 columns; see `fenchel.penalties.FusedL1`.

    Attributes
    ----------
    dual_coef_ : array of shape (n,)
        The multipliers of the certificate, near the residuals y_i - x_i.w - b.
    certified_zeros_ : boolean array with an entry for each row of D
        Which differences (D w)_k are proven to be zero in the exact optimum. A smaller tol proves more. Only for
        differences of some order (None is the first), where D'u = v has one solution.
    solver_ : str
        The solver that was used.

    Examples
    --------
    >>> import numpy as np
    >>> from fenchel import FusedLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 12))
    >>> y = X @ np.repeat([1.0, -2.0, 0.0], 4) + 0.1 * rng.normal(size=200)
    >>> model = FusedLasso(alpha=0.05, tol=1e-8).fit(X, y)
    >>> np.flatnonzero(~model.certified_zeros_) + 1
    array([4, 8])
    """

    alpha: float = 1.0
    _: KW_ONLY
    D: MatrixLike | None = None

    def _check_parameters(self) -> None:
        nonnegative_alpha(self.alpha)

    def _objective(self) -> Objective:
        alpha = nonnegative_alpha(self.alpha)
        return Objective(Squared(), lambda total: FusedL1(alpha, self.D) if alpha else NoPenalty(), self.fit_intercept)

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        # a single weight has no first difference
        results = fit_targets(self, X, y, sample_weight, ensure_min_features=2 if self.D is None else 1)
        self.certified_zeros_ = np.atleast_1d(self.certificate_.zeros())
        self.solver_ = results[0].solver
        return self
