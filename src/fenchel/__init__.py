"""Linear models that prove how good they are."""

from fenchel.certificate import Certificate, certify
from fenchel.data import Design, read
from fenchel.estimator import LinearClassifier, LinearRegressor
from fenchel.problem import MulticlassProblem, Problem, losses, penalties, sets
from fenchel.solver import NotCertifiedWarning, Result, solve

__all__ = [
    "Certificate",
    "Design",
    "LinearClassifier",
    "LinearRegressor",
    "MulticlassProblem",
    "NotCertifiedWarning",
    "Problem",
    "Result",
    "certify",
    "losses",
    "penalties",
    "read",
    "sets",
    "solve",
]
