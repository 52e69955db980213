"""What all regressions share: one target or, for some, several."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from fenchel.data.target import as_vector
from fenchel.data.typing import Vector
from fenchel.estimator.base import LinearEstimator
from fenchel.problem import Problem


class Regression(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Targets are numbers."""

    _parts_are: ClassVar[str] = "targets"
    #: Whether y may have several columns.
    _several_targets: ClassVar[bool] = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the targets y; weight 2 is the row twice."""
        X, y = self._validate(X, y, multi_output=self._several_targets)
        self._solve(self._problems(X, y, sample_weight))
        self._take_shape_of(y)
        return self

    def _problems(self, X: Any, y: Any, sample_weight: Any) -> list[Problem]:
        """One problem for each target."""
        weights, design = self._weights(sample_weight, X), self._design(X)
        return [self._problem(design, column, weights) for column in columns(y)]

    def _take_shape_of(self, y: Any) -> None:
        """One target has a vector of weights and one intercept; several have a row and an entry each."""
        if np.ndim(y) == 1 or np.shape(y)[1] == 1:
            self.coef_, self.dual_coef_ = self.coef_[0], self.dual_coef_[0]
        if np.ndim(y) == 1:
            self.intercept_ = self.intercept_[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted targets."""
        scores = self._scores(X)
        return scores if self.coef_.ndim == 2 else scores[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_targets
        tags.target_tags.single_output = True
        return tags


def columns(y: Any) -> list[Vector]:
    """The targets, one vector each."""
    y = np.asarray(y)
    return [as_vector(column, len(y), "y") for column in (y.T if y.ndim == 2 else [y])]
