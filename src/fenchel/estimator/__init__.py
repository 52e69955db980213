"""scikit-learn estimators with certificates."""

from fenchel.estimator import claims as _claims  # noqa: F401 - registers the estimators for certify
from fenchel.estimator.denoising import Denoised, TotalVariationDenoiser, denoise
from fenchel.estimator.exchange.callbacks import GapMonitor
from fenchel.estimator.general import LinearClassifier, LinearRegressor
from fenchel.estimator.interpolation.max_margin import MaxMarginClassifier
from fenchel.estimator.interpolation.min_norm import MinNormRegressor
from fenchel.estimator.interpolation.perceptron import LpPerceptron, SparsePerceptron
from fenchel.estimator.kernel.classifier import KernelClassifier
from fenchel.estimator.logistic import LogisticRegression
from fenchel.estimator.ridge import Ridge, RidgeClassifier
from fenchel.estimator.robust.huber import HuberRegressor
from fenchel.estimator.robust.quantile import QuantileRegressor
from fenchel.estimator.search.group_lasso_cv import GroupLassoCV
from fenchel.estimator.search.lasso_cv import ElasticNetCV, LassoCV
from fenchel.estimator.search.logistic_cv import LogisticRegressionCV
from fenchel.estimator.search.ridge_cv import RidgeCV
from fenchel.estimator.search.sparse_logistic_cv import SparseLogisticRegressionCV
from fenchel.estimator.sparse.fused import FusedLasso
from fenchel.estimator.sparse.group_lasso import GroupLasso
from fenchel.estimator.sparse.lasso import ElasticNet, Lasso
from fenchel.estimator.sparse.sparse_logistic import SparseLogisticRegression
from fenchel.estimator.stream.lp import LpClassifier, LpRegressor
from fenchel.estimator.svm import LinearSVC, LinearSVR

__all__ = [
    "Denoised",
    "ElasticNet",
    "ElasticNetCV",
    "FusedLasso",
    "GapMonitor",
    "GroupLasso",
    "GroupLassoCV",
    "HuberRegressor",
    "KernelClassifier",
    "Lasso",
    "LassoCV",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "LpClassifier",
    "LpPerceptron",
    "LpRegressor",
    "MaxMarginClassifier",
    "MinNormRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparsePerceptron",
    "TotalVariationDenoiser",
    "denoise",
]
