"""For scikit-learn users."""

from fenchel.estimator.general import LinearClassifier, LinearRegressor

__all__ = ["LinearClassifier", "LinearRegressor"]
