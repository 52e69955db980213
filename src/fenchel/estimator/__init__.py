"""For scikit-learn users."""

from fenchel.estimator import claims as _claims  # noqa: F401 - makes the estimators known to certify
from fenchel.estimator.denoise import Denoised, TotalVariationDenoiser, denoise
from fenchel.estimator.fused import FusedLasso
from fenchel.estimator.general import LinearClassifier, LinearRegressor
from fenchel.estimator.group_lasso import GroupLasso, GroupLassoCV
from fenchel.estimator.huber import HuberRegressor
from fenchel.estimator.lasso import ElasticNet, Lasso
from fenchel.estimator.lasso_cv import ElasticNetCV, LassoCV
from fenchel.estimator.logistic import LogisticRegression
from fenchel.estimator.logistic_cv import LogisticRegressionCV
from fenchel.estimator.quantile import QuantileRegressor
from fenchel.estimator.ridge import Ridge, RidgeClassifier
from fenchel.estimator.ridge_cv import RidgeCV
from fenchel.estimator.sparse_logistic import SparseLogisticRegression, SparseLogisticRegressionCV
from fenchel.estimator.svm import LinearSVC, LinearSVR

__all__ = [
    "Denoised",
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
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "TotalVariationDenoiser",
    "denoise",
]
