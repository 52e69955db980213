"""Regression that fits every sample exactly, with the least norm."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Self

from fenchel.data import Design
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.estimator.base import sample_weights, validated
from fenchel.estimator.documentation import documented
from fenchel.estimator.interpolation.fitting import ConstraintParameters, check_constrained, fit_constrained, norm_of
from fenchel.estimator.objective import Objective
from fenchel.estimator.regression import Regression, columns, take_shape_of
from fenchel.problem import Interpolation
from fenchel.problem.sets import Point


@documented("targets")
class MinNormRegressor(ConstraintParameters, Regression):
    """The weights of least p-norm that fit every sample exactly, certified.

    Minimises |w|_p^2 / 2 subject to x_i.w + b = y_i for every i. For p = 2 that is the solution by the pseudo-inverse,
    of centred data if there is an intercept; for p near 1 most weights are nearly zero.

    Parameters
    ----------
    p : float, default 2.0
        Above 1, and at most 2.
    on_infeasible : {"raise", "least_violation"}, default "raise"
        If no weights fit all samples: raise `Infeasible`, or fit by least squares, and of all such weights take those
        of least norm.

    Attributes
    ----------
    certificate_ : InterpolationCertificate
        Of |w|_p^2 / 2; summed over the targets.

    Examples
    --------
    >>> from fenchel import MinNormRegressor
    >>> model = MinNormRegressor(p=1.1, fit_intercept=False).fit([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]], [2.0, 1.0])
    >>> model.predict([[1.0, 2.0, 0.0]]).round(6)
    array([2.])
    """

    _several_targets = True

    p: float = 2.0
    _: KW_ONLY

    def _check_parameters(self) -> None:
        norm_of(self.p)
        check_constrained(self)

    def _objective(self) -> Objective:
        raise TypeError("an interpolation has no loss")

    def fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike | None = None) -> Self:
        """Fit the targets y exactly; samples of weight 0 are left out."""
        features, targets = validated(self, X, y, multi_output=True)
        problems = self._problems(features, targets, sample_weights(sample_weight, features))
        fit_constrained(self, problems, of="targets")
        take_shape_of(self, targets)
        return self

    def _problems(self, X: MatrixLike, y: VectorLike, weights: Vector) -> list[Interpolation]:
        """One for each target."""
        design, penalty = Design(X), norm_of(self.p)
        return [
            Interpolation(
                design,
                Point(target),
                penalty,
                intercept=bool(self.fit_intercept),
                sample_weight=weights,
                on_infeasible=self.on_infeasible,
            )
            for target in columns(y)
        ]
