"""scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from fenchel import LinearClassifier, LinearRegressor
from fenchel.problem import penalties

ESTIMATORS = [
    LinearClassifier(),
    LinearClassifier(loss="hinge", tol=1e-6),
    LinearClassifier(loss="squared_hinge", penalty="l1"),
    LinearClassifier(loss="logistic", penalty=penalties.ElasticNet(0.01, 0.3), class_weight="balanced"),
    LinearRegressor(),
    LinearRegressor(loss="huber", penalty="elastic_net"),
    LinearRegressor(loss="absolute", penalty="l1", lam=0.01, tol=1e-6),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
