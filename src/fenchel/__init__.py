"""Linear models that prove how good they are."""

from importlib.metadata import version

from fenchel.certificate import Certificate, certify
from fenchel.data import Design, read
from fenchel.estimator import (
    HuberRegressor,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    LogisticRegressionCV,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)
from fenchel.problem import MulticlassProblem, Problem, losses, penalties, sets
from fenchel.solver import NotCertifiedWarning, Result, solve, theory

__version__ = version("fenchel")

__all__ = [
    "Certificate",
    "Design",
    "HuberRegressor",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MulticlassProblem",
    "NotCertifiedWarning",
    "Problem",
    "QuantileRegressor",
    "Result",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "certify",
    "losses",
    "penalties",
    "read",
    "sets",
    "solve",
    "theory",
]
