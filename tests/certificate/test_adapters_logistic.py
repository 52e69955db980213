"""Logistic regression, of two classes and of many, fitted by scikit-learn and certified."""

import warnings
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.class_weight import compute_class_weight

import fenchel as fl
from tests.helpers.models import (
    check,
    classification,
    half_square,
    l1,
    logistic,
    mixed,
    perturbed,
    weights,
)

MODERN = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
pytestmark = [pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")]


def fitted(ratio, X, y, s=None, **options):
    """A tightly fitted model, its penalty said as this version of scikit-learn likes it."""
    named = {0.0: "l2", 1.0: "l1"}.get(ratio, "elasticnet")
    how = {"l1_ratio": ratio} if MODERN else {"penalty": named, "l1_ratio": ratio if named == "elasticnet" else None}
    options = {"tol": 1e-10, "max_iter": 100_000, "random_state": 0, **how, **options}
    return LogisticRegression(**options).fit(X, y, s)


def two_classes(X, y, full, C, penalty, scaling=None):
    """penalty + C sum s_i log loss; `scaling` if the intercept is penalised."""

    def stated(m):
        w = m.coef_[0] if scaling is None else np.append(m.coef_[0], m.intercept_ / scaling)
        return penalty(w) + C * full @ logistic(X @ m.coef_[0] + m.intercept_, np.where(y == "bee", 1.0, -1.0))

    return stated


def softmax(X, y, full, C, penalty):
    """penalty of the matrix + C sum s_i (log sum exp - score of the class)."""

    def stated(m):
        Z = X @ m.coef_.T + m.intercept_
        own = Z[np.arange(len(y)), np.searchsorted(m.classes_, y)]
        return penalty(m.coef_) + C * full @ (np.logaddexp.reduce(Z, axis=1) - own)

    return stated


# Two classes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
@pytest.mark.parametrize("intercept", [True, False])
def test_every_solver_with_a_free_intercept(solver, intercept):
    X, y = classification()
    s = weights(len(y))
    model = fitted(0.0, X, y, s, C=0.4, solver=solver, fit_intercept=intercept, class_weight={"ape": 2.0})
    full = s * np.where(y == "ape", 2.0, 1.0)
    check(model, X, y, two_classes(X, y, full, 0.4, half_square), 0.4 * full.sum(), s, within=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_saga_with_l1_and_elastic_net(ratio, storage):
    X, y = classification()
    model = fitted(ratio, X, y, C=0.4, solver="saga")
    check(model, storage(X), y, two_classes(X, y, np.ones(90), 0.4, mixed(ratio)), 0.4 * 90)


@pytest.mark.parametrize("ratio", [0.0, 1.0])
@pytest.mark.parametrize("scaling", [1.0, 10.0])
def test_liblinear_penalises_the_intercept(ratio, scaling):
    X, y = classification()
    s = weights(len(y))
    options = {"solver": "liblinear", "intercept_scaling": scaling, "class_weight": "balanced"}
    model = fitted(ratio, X, y, s, C=0.4, **options)
    counted = s if "sample_weight" in signature(compute_class_weight).parameters else np.ones(90)
    each = {c: counted.sum() / (2 * counted[y == c].sum()) for c in ("ape", "bee")}
    full = s * np.array([each[label] for label in y])
    check(model, X, y, two_classes(X, y, full, 0.4, mixed(ratio), scaling), 0.4 * full.sum(), s)


def test_the_parameter_penalty_is_read_too():
    X, y = classification()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(penalty="l1", solver="saga", C=0.4, tol=1e-10, max_iter=100_000).fit(X, y)
    check(model, X, y, two_classes(X, y, np.ones(90), 0.4, l1), 0.4 * 90)


@pytest.mark.parametrize("options", [{"C": np.inf}, {"penalty": None}])
def test_models_without_a_penalty_are_certified(options):
    X, y = classification()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(**options, tol=1e-10, max_iter=10_000).fit(X, y)
    assert fl.certify(model, X, y).relative_gap <= 1e-6
    better = fl.certify(model, X, y).primal
    model.coef_ *= 1.1
    found = fl.certify(model, X, y)
    assert found.gap >= found.primal - better > 0.0


@pytest.mark.skipif(MODERN, reason="multi_class is gone")
@pytest.mark.parametrize("ratio", [0.0, 1.0, 0.3])
def test_two_classes_by_softmax(ratio):
    X, y = classification()
    model = fitted(ratio, X, y, C=0.4, solver="saga", multi_class="multinomial")

    def stated(m):
        B, b = np.vstack([-m.coef_, m.coef_]), np.append(-m.intercept_, m.intercept_)
        Z = X @ B.T + b
        return mixed(ratio)(B) + 0.4 * np.sum(
            np.logaddexp.reduce(Z, axis=1) - Z[np.arange(90), (y == "bee").astype(int)]
        )

    check(model, X, y, stated, 0.4 * 90)


# Cross-validation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lbfgs", "saga", "liblinear"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_cross_validation(solver):
    X, y = classification()
    options = {"Cs": [0.1, 1.0], "cv": 3, "tol": 1e-10, "max_iter": 100_000, "solver": solver, "scoring": "accuracy"}
    if solver == "saga":
        options |= {"l1_ratios": [0.2, 0.9]} | ({} if MODERN else {"penalty": "elasticnet"})
    if MODERN:
        options["use_legacy_attributes"] = False
    model = LogisticRegressionCV(intercept_scaling=7.0, **options).fit(X, y)
    C = float(np.ravel(model.C_)[0])
    ratio = float(np.ravel(model.l1_ratio_)[0] or 0.0)
    stated = two_classes(X, y, np.ones(90), C, mixed(ratio), 1.0 if solver == "liblinear" else None)
    check(model, X, y, stated, C * 90)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_cross_validation_of_several_classes_and_without_a_last_fit():
    X, y = classification(classes=3)
    model = LogisticRegressionCV(Cs=[0.1, 1.0], cv=3, tol=1e-10, max_iter=10_000, scoring="accuracy").fit(X, y)
    C = float(model.C_[0])
    check(model, X, y, softmax(X, y, np.ones(90), C, half_square), C * 90, within=1e-6)
    with pytest.raises(ValueError, match="refit=False"):
        fl.certify(LogisticRegressionCV(Cs=[0.1], cv=3, refit=False, scoring="accuracy").fit(X, y), X, y)


# Several classes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
@pytest.mark.parametrize("intercept", [True, False])
def test_softmax_with_l2(solver, intercept):
    X, y = classification(classes=4)
    s = weights(len(y))
    model = fitted(0.0, X, y, s, C=0.4, solver=solver, fit_intercept=intercept, class_weight={"dog": 2.0})
    full = s * np.where(y == "dog", 2.0, 1.0)
    found, worse = check(model, X, y, softmax(X, y, full, 0.4, half_square), 0.4 * full.sum(), s, within=1e-6)
    assert found.weights_radius < 1e-2 < worse.weights_radius
    assert np.linalg.norm(perturbed(model).coef_ - model.coef_) <= worse.weights_radius + found.weights_radius


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_softmax_with_l1_and_elastic_net(ratio, intercept, storage):
    X, y = classification(classes=3)
    model = fitted(ratio, X, y, C=0.4, solver="saga", fit_intercept=intercept)
    check(model, storage(X), y, softmax(X, y, np.ones(90), 0.4, mixed(ratio)), 0.4 * 90)


def test_early_stopped_softmax():
    X, y = classification(classes=3)
    with pytest.warns(ConvergenceWarning):
        early = LogisticRegression(C=10.0, max_iter=3).fit(X, y)
    tight = fitted(0.0, X, y, C=10.0)
    check(tight, X, y, softmax(X, y, np.ones(90), 10.0, half_square), 10.0 * 90, worse=early, within=1e-6)


def test_softmax_of_zero_weights_and_of_huge_ones_is_still_bounded():
    X, y = classification(classes=3)
    model = fitted(0.0, X, y, C=0.4)
    best = fl.certify(model, X, y).dual
    for size in (0.0, 1e-3, 30.0, 1e8, 1e160):
        other = perturbed(model)
        other.coef_, other.intercept_ = size * model.coef_, size * model.intercept_
        found = fl.certify(other, X, y)
        assert found.dual <= best * (1 + 1e-9)
        assert found.gap >= 0
        assert not found.ok


def test_softmax_without_samples_of_a_class_in_the_weights_is_still_bounded():
    X, y = classification(classes=3)
    s = np.where(y == "cat", 0.0, 1.0)
    model = fitted(0.0, X, y, s, C=0.4)
    found = fl.certify(model, X, y, s)
    assert np.isfinite(found.gap)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
def test_one_against_rest_around_logistic_regression(solver):
    X, y = classification(classes=3)
    model = OneVsRestClassifier(LogisticRegression(C=0.4, solver=solver, tol=1e-10, max_iter=10_000)).fit(X, y)
    found = fl.certify(model, X, y)
    value = sum(
        two_classes(
            X, np.where(y == c, "bee", "ape"), np.ones(90), 0.4, half_square, 1.0 if solver == "liblinear" else None
        )(m)
        for c, m in zip(model.classes_, model.estimators_, strict=True)
    )
    assert found.primal == pytest.approx(value / (0.4 * 90))
    assert found.relative_gap <= 1e-6


@pytest.mark.skipif(MODERN, reason="multi_class is gone")
@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"bee": 3.0}])
def test_one_against_rest_of_older_versions(solver, class_weight):
    X, y = classification(classes=3)
    model = fitted(0.0, X, y, C=0.4, solver=solver, multi_class="ovr", class_weight=class_weight)
    assert fl.certify(model, X, y).relative_gap <= 1e-6
    assert fl.certify(perturbed(model), X, y).relative_gap > 1e-4


@pytest.mark.skipif(MODERN, reason="multi_class is gone")
@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"bee": 3.0}])
def test_one_against_rest_of_older_versions_under_cross_validation(solver, class_weight):
    X, y = classification(classes=3)
    options = {"Cs": [0.1, 1.0], "cv": 3, "tol": 1e-10, "max_iter": 10_000, "multi_class": "ovr"}
    model = LogisticRegressionCV(solver=solver, class_weight=class_weight, **options).fit(X, y)
    assert fl.certify(model, X, y).relative_gap <= 1e-6
