"""Huber's regression with its scale, with the name and the constants of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Self

import numpy as np

from fenchel.certificate.adapters.huber import HuberClaim, ridge
from fenchel.data import Design
from fenchel.data.convert import as_vector
from fenchel.data.typing import Mask, MatrixLike, Vector, VectorLike
from fenchel.estimator.base import (
    VerboseFitParameters,
    is_single,
    sample_weights,
    solver_options,
    store,
    validated,
    warn_short,
)
from fenchel.estimator.documentation import documented
from fenchel.estimator.objective import Objective, nonnegative_alpha
from fenchel.estimator.regression import Regression, take_shape_of
from fenchel.estimator.robust.huber_scale import ScaleSearch
from fenchel.problem.checks import shown
from fenchel.problem.losses import Huber
from fenchel.problem.problem import lam_from_sum
from fenchel.steps.choose import storage_for


@documented("target")
class HuberRegressor(VerboseFitParameters, Regression):
    """Linear regression that is robust to outliers, with its scale, certified.

    Minimises, as scikit-learn's class of this name does, over w, b and sigma > 0 jointly ::

        sum_i s_i (sigma + sigma H((x_i.w + b - y_i) / sigma)) + alpha |w|_2^2

    with H(z) = z^2 for |z| <= epsilon and 2 epsilon |z| - epsilon^2 beyond. The intercept b is not penalised. The
    minimum over w and b is convex in sigma; a root search on its derivative solves one certified problem per scale, and
    the certificate is that of the joint objective.

    Parameters
    ----------
    epsilon : float, default 1.35
        At least 1. The smaller, the more samples count as outliers.
    max_iter : int, optional
        The largest number of steps over all scales; 100000 by default. 0 certifies the start.
    warm_start : bool, default False
        Start from the weights and the scale of the last fit if shapes agree; if they are good enough, 0 steps are made.

    Attributes
    ----------
    scale_ : float
        The sigma.
    outliers_ : array of n booleans
        Residuals beyond epsilon scale_.
    dual_coef_ : array of shape (n,)
        -H'(r_i / sigma).
    certificate_ : Certificate
        Of the objective divided by the sum of the weights.
    trace_ : Trace, a row for each scale
    n_iter_ : int
        Steps over all scales.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fenchel import HuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = HuberRegressor(alpha=0.1).fit(X, y)
    >>> model.certificate_.ok
    True
    """

    _: KW_ONLY
    epsilon: float = 1.35
    alpha: float = 0.0001
    tol: float = 1e-5

    def _check_parameters(self) -> None:
        nonnegative_alpha(self.alpha)
        if not 1.0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be at least 1 and finite, got {shown(self.epsilon)}")

    def _objective(self) -> Objective:
        """For sigma = 1, where the joint objective divided by the sum of the weights is 1 plus twice this one."""
        alpha = nonnegative_alpha(self.alpha)
        return Objective(
            Huber(float(self.epsilon)), lambda total: ridge(lam_from_sum(alpha, total)), self.fit_intercept
        )

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit to the targets y; a weight of 2 repeats the row."""
        features, targets = validated(self, X, y, multi_output=False)
        claim, d = huber_claim(self, features, targets, sample_weight), features.shape[1]
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (d,):
            b = float(self.intercept_) if self.fit_intercept else 0.0
            slopes = -self.dual_coef_ if len(self.dual_coef_) == len(targets) else None
            w = np.asarray(self.coef_, dtype=np.float64)
            claim = replace(claim, w=w, b=b, sigma=self.scale_, slopes=slopes)
        options = solver_options(self)
        claim = replace(claim, design=storage_for(options["solver"], claim.design, claim.penalty))
        search = ScaleSearch(claim, options)
        result = search.run()
        if is_single(claim.design):
            result = search.in_single_precision(result)
        store(self, [result], constant=0.0, single=is_single(claim.design))
        warn_short([result], "targets")
        take_shape_of(self, targets)
        self.scale_: np.float64 = np.float64(search.claim.sigma)
        r = claim.design.matvec(result.w) + result.b - claim.y
        self.outliers_: Mask = np.abs(r) > self.scale_ * self.epsilon
        return self


def huber_claim(model: HuberRegressor, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> HuberClaim:
    """The joint objective, with w = 0 and sigma = 0."""
    design, weights, objective = Design(X), sample_weights(sample_weight, X), model._objective()
    targets, zero = as_vector(y, design.shape[0], "y"), np.zeros(design.shape[1])
    (half,) = objective.penalties([float(weights.sum())])
    penalty, epsilon = ridge(2.0 * half.lam), float(model.epsilon)
    return HuberClaim(design, targets, weights, penalty, epsilon, objective.free_intercept, zero, 0.0, 0.0)


def fitted_claim(model: HuberRegressor, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None) -> HuberClaim:
    """The joint objective with the weights, the intercept and the scale of a fitted model."""
    slopes: Vector | None = -model.dual_coef_ if len(model.dual_coef_) == np.shape(X)[0] else None
    claim = huber_claim(model, X, y, sample_weight)
    w = np.asarray(model.coef_, dtype=np.float64)
    return replace(claim, w=w, b=float(model.intercept_), sigma=model.scale_, slopes=slopes)
