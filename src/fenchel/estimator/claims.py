"""Our own estimators can be certified again, with their data, like anyone else's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fenchel.certificate.models.claim import Claim, LinearClaim
from fenchel.certificate.models.fitted import codes
from fenchel.certificate.models.registry import adapter
from fenchel.data.design import Vector
from fenchel.problem import Problem


@adapter("LinearRegressor", package="fenchel.estimator")
def regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Claim]:
    """The weighted mean loss plus the penalty."""
    check_is_fitted(model)
    return _claims(model, model._problems(X, y, sample_weight))


@adapter("LinearClassifier", package="fenchel.estimator")
def classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Claim]:
    """The same, for each class against the rest where there are more than two."""
    check_is_fitted(model)
    return _claims(model, model._problems(X, codes(model, y, np.shape(X)[0]), sample_weight))


def _claims(model: Any, problems: list[Problem]) -> list[Claim]:
    weights, shifts, multipliers = (np.atleast_2d(part) for part in (model.coef_, model.intercept_, model.dual_coef_))
    return [
        LinearClaim(problem, w, float(b), _fitting(alpha, problem))
        for problem, w, b, alpha in zip(problems, weights, shifts.reshape(-1), multipliers, strict=True)
    ]


def _fitting(alpha: Vector, problem: Problem) -> Vector | None:
    """The multipliers of the fit, if the data are as many as then."""
    return alpha if len(alpha) == problem.shape[0] else None
