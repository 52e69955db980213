"""For scikit-learn users."""

from fenchel.estimator import claims as _claims  # noqa: F401 - makes the estimators known to certify
from fenchel.estimator.general import LinearClassifier, LinearRegressor

__all__ = ["LinearClassifier", "LinearRegressor"]
