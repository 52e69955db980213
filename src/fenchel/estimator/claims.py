"""Our own estimators can be certified again, with their data, like anyone else's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel.certificate.adapters.claim import Claim, LinearClaim, MulticlassClaim
from fenchel.certificate.adapters.fitted import codes
from fenchel.certificate.adapters.registry import adapter
from fenchel.data.typing import Vector
from fenchel.estimator.base import dense_rows, with_constant

PACKAGE = "fenchel.estimator"


@adapter("Regression", "RidgeCV", "Lasso", "ElasticNet", package=PACKAGE)
@adapter("LassoCV", "ElasticNetCV", "SparseRegressionCV", package=PACKAGE)
def regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Claim]:
    """The weighted mean loss plus the penalty, for each target."""
    check_is_fitted(model)
    return _claims(model, model._problems(X, y, sample_weight))


@adapter("HuberRegressor", package=PACKAGE)
def huber(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Claim]:
    """The joint objective in w, b and sigma."""
    check_is_fitted(model)
    slopes = -model.dual_coef_ if len(model.dual_coef_) == np.shape(X)[0] else None
    return [model._claim(X, y, sample_weight, model.coef_, model.intercept_, model.scale_, slopes)]


@adapter("Classification", "LogisticRegressionCV", "SparseLogisticRegressionCV", package=PACKAGE)
def classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Claim]:
    """The same as a regression's, for each class against the rest where there are more than two."""
    check_is_fitted(model)
    return _claims(model, model._problems(X, codes(model, y, np.shape(X)[0]), sample_weight))


def _claims(model: Any, problems: list[Any]) -> list[Claim]:
    constant = problems[0].design.constant
    w, b, alpha = dense_rows(model.coef_), np.ravel(model.intercept_), np.atleast_2d(model.dual_coef_)
    w, b = with_constant(w, b, constant)
    if len(problems) == 1 < len(w):
        return [MulticlassClaim(problems[0], w, b, _fitting(alpha.T, problems[0]))]
    return [LinearClaim(problem, w[k], float(b[k]), _fitting(alpha[k], problem)) for k, problem in enumerate(problems)]


def _fitting(alpha: Vector, problem: Any) -> Vector | None:
    """The multipliers of the fit, if the data are as many as then."""
    return alpha if len(alpha) == problem.shape[0] else None
