"""Linear models that prove how good they are."""

from importlib.metadata import version

from fenchel.certificate import Certificate, certify
from fenchel.data import Design, read
from fenchel.estimator import (
    ElasticNet,
    ElasticNetCV,
    FusedLasso,
    GroupLasso,
    GroupLassoCV,
    HuberRegressor,
    Lasso,
    LassoCV,
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
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    TotalVariationDenoiser,
    denoise,
)
from fenchel.problem import MulticlassProblem, Problem, losses, penalties, sets
from fenchel.solver import CertifiedPath, NotCertifiedWarning, Path, Result, certified_path, path, solve, theory

__version__ = version("fenchel")

__all__ = [
    "Certificate",
    "CertifiedPath",
    "Design",
    "ElasticNet",
    "ElasticNetCV",
    "FusedLasso",
    "GroupLasso",
    "GroupLassoCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MulticlassProblem",
    "NotCertifiedWarning",
    "Path",
    "Problem",
    "QuantileRegressor",
    "Result",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "TotalVariationDenoiser",
    "certified_path",
    "certify",
    "denoise",
    "losses",
    "path",
    "penalties",
    "read",
    "sets",
    "solve",
    "theory",
]
