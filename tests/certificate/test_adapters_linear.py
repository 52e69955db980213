"""Least squares and its relatives, fitted by scikit-learn and certified."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import linear_model as lm
from sklearn.exceptions import ConvergenceWarning

import fenchel as fl
from tests.helpers.models import (
    check,
    classification,
    half_square,
    half_squared,
    hinge,
    insensitive,
    l1,
    logistic,
    mixed,
    perturbed,
    regression,
    squared_hinge,
    weights,
)


def total(model, X, y, s, loss, penalty):
    """sum_k sum_i s_i loss + penalty, over the rows of coef_ and the columns of y."""
    coef = np.atleast_2d(model.coef_)
    b = np.broadcast_to(model.intercept_, len(coef))
    y = np.reshape(y, (len(X), -1))
    return sum(s @ loss(X @ coef[k] + b[k], y[:, k]) + penalty(coef[k], k) for k in range(len(coef)))


# Ridge --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge(intercept, weighted):
    X, y = regression()
    s = weights(len(y)) if weighted else np.ones(len(y))
    model = lm.Ridge(alpha=3.0, fit_intercept=intercept).fit(X, y, s if weighted else None)
    stated = lambda m: total(m, X, y, s, lambda z, t: (z - t) ** 2, lambda w, k: 3.0 * w @ w)  # noqa: E731
    check(model, X, y, stated, 2 * s.sum(), s if weighted else None, within=1e-8)


def test_ridge_with_a_penalty_for_each_target_is_certified_as_the_sum():
    X, y = regression(targets=3)
    alpha = np.array([0.1, 1.0, 10.0])
    model = lm.Ridge(alpha=alpha).fit(X, y)
    stated = lambda m: total(m, X, y, np.ones(80), lambda z, t: (z - t) ** 2, lambda w, k: alpha[k] * w @ w)  # noqa: E731
    found, _ = check(model, X, y, stated, 2 * 80, within=1e-8)
    assert len(found.parts) == 3


@pytest.mark.parametrize("cv", [None, 3])
def test_ridge_cv_reads_the_chosen_alpha(cv):
    X, y = regression()
    model = lm.RidgeCV(alphas=[0.1, 1.0, 10.0], cv=cv).fit(X, y)
    stated = lambda m: total(m, X, y, np.ones(80), lambda z, t: (z - t) ** 2, lambda w, k: m.alpha_ * w @ w)  # noqa: E731
    check(model, X, y, stated, 2 * 80, within=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [lm.RidgeClassifier, lm.RidgeClassifierCV])
def test_ridge_classifier(classes, kind):
    X, y = classification(classes=classes)
    s = weights(len(y))
    balanced = {c: len(y) / (classes * np.sum(y == c)) for c in np.unique(y)}
    model = kind(class_weight="balanced").fit(X, y, s)
    alpha = getattr(model, "alpha_", 1.0)
    full = s * np.array([balanced[label] for label in y])
    signs = np.column_stack([np.where(y == c, 1.0, -1.0) for c in model.classes_[1 if classes == 2 else 0 :]])
    stated = lambda m: total(m, X, signs, full, lambda z, t: (z - t) ** 2, lambda w, k: alpha * w @ w)  # noqa: E731
    check(model, X, y, stated, 2 * full.sum(), s, within=1e-8)


# Lasso and elastic net ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sp.csc_matrix, sp.csr_array, pd.DataFrame, np.float32])
def test_lasso_and_elastic_net(ratio, intercept, storage):
    X, y = regression()
    X = X.astype(np.float32).astype(np.float64)
    s = weights(len(y))
    options = {"alpha": 0.2, "fit_intercept": intercept, "tol": 1e-12, "max_iter": 100_000}
    model = (lm.Lasso(**options) if ratio == 1 else lm.ElasticNet(l1_ratio=ratio, **options)).fit(X, y, s)
    stated = lambda m: total(m, X, y, s, half_squared, lambda w, k: s.sum() * 0.2 * mixed(ratio)(w))  # noqa: E731
    check(model, storage(X), y, stated, s.sum(), s, within=1e-6)


def test_lasso_of_several_targets():
    X, y = regression(targets=2)
    model = lm.Lasso(alpha=0.3, tol=1e-12).fit(X, y)
    stated = lambda m: total(m, X, y, np.ones(80), half_squared, lambda w, k: 80 * 0.3 * l1(w))  # noqa: E731
    check(model, X, y, stated, 80, within=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        lm.LassoCV(tol=1e-10, cv=3, max_iter=100_000),
        lm.ElasticNetCV(l1_ratio=[0.3, 0.8], tol=1e-10, cv=3, max_iter=100_000),
        lm.ElasticNet(alpha=0.1, l1_ratio=0.0, tol=1e-14, max_iter=100_000),
        lm.LassoLars(alpha=0.1),
        lm.LassoLarsCV(cv=3),
        lm.LassoLarsIC(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:Coordinate descent:UserWarning")
@pytest.mark.filterwarnings("ignore:Objective did not converge")
def test_chosen_parameters_and_relatives_of_the_lasso(model):
    X, y = regression()
    model.fit(X, y)
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    stated = lambda m: total(m, X, y, np.ones(80), half_squared, lambda w, k: 80 * alpha * mixed(ratio)(w))  # noqa: E731
    check(model, X, y, stated, 80)


def test_early_stopped_lasso_has_a_gap_that_covers_what_it_lacks():
    X, y = regression()
    stated = lambda m: total(m, X, y, np.ones(80), half_squared, lambda w, k: 80 * 0.1 * l1(w))  # noqa: E731
    tight = lm.Lasso(alpha=0.1, tol=1e-12).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        early = lm.Lasso(alpha=0.1, tol=1e-12, max_iter=1).fit(X, y)
    check(tight, X, y, stated, 80, worse=early, within=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_quantile_regression(intercept):
    X, y = regression()
    s = weights(len(y))
    model = lm.QuantileRegressor(quantile=0.3, alpha=0.05, fit_intercept=intercept).fit(X, y, s)
    pinball = lambda z, t: np.where(t > z, 0.3 * (t - z), 0.7 * (z - t))  # noqa: E731
    stated = lambda m: total(m, X, y, s, pinball, lambda w, k: s.sum() * 0.05 * l1(w))  # noqa: E731
    check(model, X, y, stated, s.sum(), s)


# Stochastic gradient descent ------------------------------------------------------------------------------------

modified_huber = lambda z, y: np.where(y * z >= -1, np.maximum(0, 1 - y * z) ** 2, -4 * y * z)  # noqa: E731
huber = lambda z, y: np.where(np.abs(z - y) <= 0.1, half_squared(z, y), 0.1 * np.abs(z - y) - 0.005)  # noqa: E731
SGD_LOSSES = {
    "hinge": (hinge, 1.0),
    "log_loss": (logistic, 1.0),
    "squared_hinge": (squared_hinge, 1.0),
    "modified_huber": (modified_huber, 4.0),
    "squared_error": (half_squared, 1.0),
    "huber": (huber, 1.0),
    "epsilon_insensitive": (insensitive(0.1), 1.0),
    "squared_epsilon_insensitive": (insensitive(0.1, 2), 1.0),
}
SGD = {"tol": None, "random_state": 0, "alpha": 0.05, "max_iter": 30_000}
AVERAGED = {"learning_rate": "invscaling", "eta0": 0.3, "power_t": 0.75, "average": 900_000, **SGD}


@pytest.mark.parametrize("loss", SGD_LOSSES)
def test_sgd_classifier(loss):
    X, y = classification()
    phi, factor = SGD_LOSSES[loss]
    s = weights(len(y))
    model = lm.SGDClassifier(loss=loss, class_weight={"ape": 2.0}, **AVERAGED)
    model.fit(X, y, sample_weight=s)
    full, signs = s * np.where(y == "ape", 2.0, 1.0), np.where(y == "bee", 1.0, -1.0)
    stated = lambda m: total(m, X, signs, full, phi, lambda w, k: 90 * 0.05 * half_square(w))  # noqa: E731
    check(model, X, y, stated, factor * full.sum(), s, within=5e-3, worse=perturbed(model, 0.5))


@pytest.mark.parametrize("loss", list(SGD_LOSSES)[4:])
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_sgd_regressor(loss, penalty):
    X, y = regression()
    phi, factor = SGD_LOSSES[loss]
    s = weights(len(y))
    model = lm.SGDRegressor(loss=loss, penalty=penalty, l1_ratio=0.3, learning_rate="optimal", **SGD)
    model.fit(X, y, sample_weight=s)
    ratio = 1.0 if penalty == "l1" else 0.3
    stated = lambda m: total(m, X, y, s, phi, lambda w, k: 80 * 0.05 * mixed(ratio)(w))  # noqa: E731
    check(model, X, y, stated, factor * s.sum(), s, within=0.05, worse=perturbed(model, 0.5))


def test_sgd_of_several_classes_weighs_the_positive_class_only():
    X, y = classification(classes=3)
    model = lm.SGDClassifier(loss="log_loss", class_weight={"bee": 3.0}, **AVERAGED).fit(X, y)

    def stated(m):
        return sum(
            np.where(y == c, 3.0 if c == "bee" else 1.0, 1.0)
            @ logistic(X @ m.coef_[k] + m.intercept_[k], np.where(y == c, 1, -1))
            + 90 * 0.05 * half_square(m.coef_[k])
            for k, c in enumerate(m.classes_)
        )

    check(model, X, y, stated, 90, within=5e-3, worse=perturbed(model, 0.5))


@pytest.mark.parametrize("model", [lm.Ridge(0.5, positive=True), lm.Lasso(0.1, positive=True)], ids=str)
def test_weights_that_must_not_be_negative(model):
    """The bound holds for them and is tight; a negative weight has no finite objective."""
    X, y = regression()
    model.set_params(tol=1e-10).fit(X, y)
    assert np.count_nonzero(model.coef_ == 0.0) >= 1
    found = fl.certify(model, X, y)
    assert found.relative_gap <= 1e-4
    free = fl.certify(type(model)(model.alpha, tol=1e-10).fit(X, y), X, y)
    assert found.primal > 1.01 * free.primal
    model.coef_[0] = -1e-6
    assert fl.certify(model, X, y).gap == np.inf


# What raises ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lm.LinearRegression(positive=True), "positive=True without a penalty"),
        (lm.SGDRegressor(early_stopping=True), "early_stopping=True"),
        (lm.Lars(), "greedy"),
        (lm.OrthogonalMatchingPursuit(), "greedy"),
        (lm.TheilSenRegressor(), "does not know the objective"),
        (lm.BayesianRidge(), "the objective of BayesianRidge"),
    ],
)
def test_models_without_an_objective_of_ours_raise(model, message):
    X, y = regression()
    with pytest.raises((TypeError, ValueError), match=message):
        fl.certify(model.fit(X, y), X, y)


def test_multi_task_models_raise():
    X, y = regression(targets=2)
    for model in (lm.MultiTaskLasso(), lm.MultiTaskElasticNetCV(cv=3)):
        with pytest.raises(TypeError, match="couples the weights"):
            fl.certify(model.fit(X, y), X, y)


@pytest.mark.parametrize(
    ("model", "message"), [(lm.Perceptron(), "w = 0 minimises"), (lm.SGDClassifier(loss="perceptron"), "perceptron")]
)
def test_perceptrons_raise(model, message):
    X, y = classification()
    with pytest.raises((TypeError, ValueError), match=message):
        fl.certify(model.fit(X, y), X, y)


def test_sample_weight_for_a_model_without_any_raises():
    X, y = regression()
    with pytest.raises(TypeError, match="without sample_weight"):
        fl.certify(lm.LassoLars(alpha=0.1).fit(X, y), X, y, weights(len(y)))
