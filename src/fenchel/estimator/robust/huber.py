"""Huber's regression with its scale, by the name and with the constants of scikit-learn's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from fenchel.certificate.adapters.huber import HuberClaim
from fenchel.data.design import Vector
from fenchel.data.target import as_vector
from fenchel.estimator.objective import positive_alpha
from fenchel.estimator.regression import Regression
from fenchel.estimator.robust.huber_scale import ScaleSearch
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.scaling import lam_from_sum


class HuberRegressor(Regression):
    """Linear regression that is robust to outliers, with its scale, certified.

    Minimises, as scikit-learn's class of this name does, over w, b and sigma > 0 together ::

        sum_i s_i (sigma + sigma H((x_i.w + b - y_i) / sigma)) + alpha |w|_2^2

    with H(z) = z^2 for |z| <= epsilon and 2 epsilon |z| - epsilon^2 beyond. The intercept b is not penalised. The
    least value for a given sigma is convex in sigma; a search for the zero of its slope solves one certified problem
    for each scale that it looks at, and the certificate is that of the joint objective.

    Parameters
    ----------
    epsilon : float, default 1.35
        At least 1. The smaller, the more samples count as outliers.
    max_iter : int, optional
        Most steps of our solver, over all scales; 100000 by default.
    alpha : float, default 0.0001
    warm_start : bool, default False
        Begin at the last fit's weights and scale if shapes agree.
    fit_intercept : bool, default True
    tol : float, default 1e-5
        The fit ends when its certified gap is at most tol times the objective.
    solver : str, default "auto"
    random_state : int, RandomState or None
    verbose : int, default 0
        Anything but 0 shows a progress bar for each scale.
    max_seconds : float, optional
    n_threads : int or None, default 1

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : float
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

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        max_iter: int | None = None,
        alpha: float = 0.0001,
        warm_start: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-5,
        solver: Any = "auto",
        random_state: Any = None,
        verbose: int = 0,
        max_seconds: float | None = None,
        n_threads: int | None = 1,
    ) -> None:
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose
        self.max_seconds = max_seconds
        self.n_threads = n_threads

    def _check_parameters(self) -> None:
        positive_alpha(self.alpha)
        if not 1.0 <= self.epsilon < np.inf:
            raise ValueError(f"epsilon must be at least 1 and finite, got {self.epsilon!r}")

    def _penalty(self, total_weight: float) -> Penalty:
        return L2(lam_from_sum(2.0 * positive_alpha(self.alpha), total_weight))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the targets y; weight 2 is the row twice."""
        X, y = self._validate(X, y, multi_output=False)
        d = X.shape[1]
        claim = self._claim(X, y, sample_weight, np.zeros(d), 0.0, 0.0)
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (d,):
            b = self.intercept_ if self.fit_intercept else 0.0
            claim = self._claim(X, y, sample_weight, self.coef_, b, self.scale_)
        claim = replace(claim, design=self._stored_for_fit(claim.design, claim.penalty))
        search = ScaleSearch(claim, self._options())
        self._finish([search.run()], constant=0.0)
        self._take_shape_of(y)
        self.scale_: np.float64 = np.float64(search.claim.sigma)
        r = claim.design.matvec(self.coef_) + self.intercept_ - claim.y
        self.outliers_ = np.abs(r) > self.scale_ * self.epsilon
        return self

    def _claim(
        self, X: Any, y: Any, sample_weight: Any, w: Vector, b: float, sigma: float, slopes: Vector | None = None
    ) -> HuberClaim:
        design, weights = self._design(X), self._weights(sample_weight, X)
        penalty = self._penalty(float(weights.sum()))
        y = as_vector(y, design.shape[0], "y")
        free = bool(self.fit_intercept)
        return HuberClaim(design, y, weights, penalty, float(self.epsilon), free, w, b, sigma, slopes)
