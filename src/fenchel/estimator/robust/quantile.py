"""Quantile regression, with the name and the constants of scikit-learn."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import ClassVar

from fenchel.estimator.base import VerboseFitParameters
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.objective import Objective, elastic, nonnegative_alpha
from fenchel.estimator.regression import Regression
from fenchel.problem.checks import shown
from fenchel.problem.losses import Pinball
from fenchel.problem.problem import lam_from_mean


@documented("target")
class QuantileRegressor(Watched, VerboseFitParameters, Regression):
    """Linear regression of a quantile, certified.

    Minimises, as scikit-learn's class of this name does, ::

        (1/W) sum_i s_i pinball(y_i - x_i.w - b) + alpha |w|_1,   pinball(r) = max(q r, (q - 1) r)

    with an unpenalised intercept b.

    Parameters
    ----------
    quantile : float, default 0.5
        Strictly between 0 and 1.
    solver_options : dict, optional
        Options of the solver, as in `solve`; unknown ones are an error.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import QuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = QuantileRegressor(quantile=0.9, alpha=0.01, tol=1e-3).fit(X, y)
    >>> model.certificate_.ok
    True
    """

    _their_solvers: ClassVar[frozenset[str]] = frozenset(
        {"highs", "highs-ds", "highs-ipm", "interior-point", "revised simplex"}
    )

    _: KW_ONLY
    quantile: float = 0.5
    alpha: float = 1.0
    solver_options: Mapping[str, object] | None = None

    def _check_parameters(self) -> None:
        nonnegative_alpha(self.alpha)
        if not (isinstance(self.quantile, numbers.Real) and 0.0 < self.quantile < 1.0):
            raise ValueError(f"quantile must lie strictly between 0 and 1, got {shown(self.quantile)}")

    def _objective(self) -> Objective:
        penalty = elastic(lam_from_mean(nonnegative_alpha(self.alpha)), 1.0)
        return Objective(Pinball(self.quantile), lambda total: penalty, self.fit_intercept)
