"""Models that cannot be certified, and the reasons."""

from __future__ import annotations

from fenchel.certificate.adapters.registry import reject

reject(
    "Lars",
    "LarsCV",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    package="sklearn.linear_model",
    because="it is a greedy procedure, not the minimiser of an objective; LassoLars is one",
)
reject(
    "Perceptron",
    package="sklearn.linear_model",
    because="w = 0 minimises its objective, so its suboptimality says nothing about the model",
)
reject(
    "PassiveAggressiveClassifier",
    "PassiveAggressiveRegressor",
    package="sklearn.linear_model",
    because="it is an online procedure, not the minimiser of an objective",
)
reject(
    "SGDOneClassSVM",
    package="sklearn.linear_model",
    because="its objective has an offset variable, which fenchel does not support",
)
reject(
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    package="sklearn.svm",
    because="the width of its margin or tube is a variable of the problem; the C-form (SVC, SVR) is supported",
)
reject(
    "MaxMarginClassifier",
    package="fenchel",
    because="its objective is the margin: fl.margin_interval(model, X, y) says how much of the largest one it has",
)
reject("MCPRegression", package="skglm", because="its penalty is not convex")
reject("CoxEstimator", package="skglm", because="its loss couples samples, which fenchel does not support")
for package in ("sklearn.linear_model", "celer", "skglm"):
    reject(
        "MultiTaskLasso",
        "MultiTaskLassoCV",
        "MultiTaskElasticNet",
        "MultiTaskElasticNetCV",
        package=package,
        because="its penalty couples the weights of all targets, which fenchel does not support",
    )
