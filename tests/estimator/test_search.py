"""The cross-validated estimators choose what scikit-learn's of the same name choose."""

import importlib
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import LeaveOneOut
from sklearn.preprocessing import scale

import fenchel as fl
from fenchel.estimator.search.leave_one_out import LeaveOneOut as Decomposition

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = scale(CANCER_X)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
ALPHAS = np.logspace(-4, 3, 8)
rng = np.random.default_rng(0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", ["long", "wide"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"alpha_per_target": True},
        {"scoring": "neg_mean_absolute_error"},
        {"alpha_per_target": True, "scoring": "r2"},
    ],
    ids=str,
)
def test_leaving_one_out_agrees(form, shape, weighted, options):
    X = DIABETES_X if shape == "long" else rng.normal(size=(30, 60))
    Y = np.column_stack([DIABETES_Y, np.sin(DIABETES_Y)])[: len(X)]
    weights = rng.uniform(0.5, 3.0, len(X)) if weighted else None
    ours = fl.RidgeCV(ALPHAS, store_cv_results=True, **options).fit(form(X), Y, weights)
    theirs = sklearn.linear_model.RidgeCV(ALPHAS, store_cv_results=True, **options).fit(X, Y, weights)
    np.testing.assert_array_equal(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-7)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9 * np.abs(theirs.coef_).max())
    largest = np.abs(theirs.cv_results_).max()
    np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, atol=1e-6 * largest)
    assert ours.certificate_.ok
    assert fl.certify(ours, form(X), Y, weights).relative_gap < 1e-6


def test_leaving_one_out_is_what_it_says():
    X, y, s = rng.normal(size=(12, 3)), rng.normal(size=12), rng.uniform(0.5, 2.0, 12)
    errors = Decomposition.of(X, s, intercept=True).errors(y, 0.7) / np.sqrt(s)
    for train, test in LeaveOneOut().split(X):
        model = sklearn.linear_model.Ridge(0.7).fit(X[train], y[train], s[train])
        assert errors[test[0]] == pytest.approx(y[test[0]] - model.predict(X[test])[0], rel=1e-9)


def test_leaving_one_out_of_too_much_says_what_to_do():
    with pytest.raises(ValueError, match="cv=5"):
        fl.RidgeCV().fit(sp.random_array((30_000, 20_000), density=1e-6, rng=0), np.zeros(30_000))


def test_ridge_on_folds_agrees():
    ours = fl.RidgeCV(ALPHAS, cv=4, tol=1e-9).fit(DIABETES_X, DIABETES_Y)
    theirs = sklearn.linear_model.RidgeCV(ALPHAS, cv=4).fit(DIABETES_X, DIABETES_Y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3)


def logistic_searches(X, y, ours, theirs, legacy):
    """Both fitted, in the shapes of one version."""
    one = fl.LogisticRegressionCV(**ours, use_legacy_attributes=legacy).fit(X, y)
    other = sklearn.linear_model.LogisticRegressionCV(**theirs)
    if "use_legacy_attributes" in other.get_params():
        other.set_params(use_legacy_attributes=legacy)
    elif not legacy:
        pytest.skip("this version of scikit-learn has the legacy shapes only")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parameters whose defaults will change
        other.fit(X, y)
    return one, other


def assert_same_search(ours, theirs, legacy):
    for name in ("C_", "Cs_", "l1_ratio_", "l1_ratios_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    for name, within in (("scores_", 1e-3), ("coefs_paths_", 1e-2)):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert isinstance(one, dict) == isinstance(other, dict) == legacy
        for key in one if legacy else [...]:
            assert one[key].shape == other[key].shape
            np.testing.assert_allclose(one[key], other[key], atol=within)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("legacy", [True, False])
def test_logistic_paths_agree(classes, legacy):
    X, y = (CANCER_X, CANCER_Y) if classes == 2 else (IRIS_X, np.array(["a", "b", "c"])[IRIS_Y])
    both = {"Cs": [0.01, 0.1, 1.0], "cv": 3, "scoring": "neg_log_loss", "class_weight": "balanced"}
    ours, theirs = logistic_searches(X, y, {**both, "tol": 1e-8}, {**both, "tol": 1e-6, "max_iter": 1000}, legacy)
    assert_same_search(ours, theirs, legacy)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)
    assert fl.certify(ours, X, y).relative_gap < 1e-6


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("legacy", [True, False])
def test_paths_of_elastic_nets_agree(classes, legacy):
    X, y = (CANCER_X[:200, :8], CANCER_Y[:200]) if classes == 2 else (scale(IRIS_X), IRIS_Y)
    ratios = [0.2, 0.9] + [1.0] * (classes == 2)
    both = {"Cs": [0.05, 0.5], "cv": 3, "scoring": "neg_log_loss", "l1_ratios": ratios, "penalty": "elasticnet"}
    theirs = {**both, "solver": "saga", "tol": 1e-9, "max_iter": 10**5, "random_state": 0}
    ours, theirs = logistic_searches(X, y, {**both, "tol": 1e-8}, theirs, legacy)
    assert_same_search(ours, theirs, legacy)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert fl.certify(ours, X, y).relative_gap < 1e-6


def test_a_path_of_l1_alone():
    model = fl.LogisticRegressionCV(Cs=[0.01, 0.1], cv=3, penalty="l1", solver="liblinear", scoring="neg_log_loss")
    assert (model.fit(CANCER_X, CANCER_Y).coef_ == 0.0).any()
    assert model.l1_ratio_.tolist() == [None]
    alone = fl.LogisticRegression(penalty="l1", C=float(model.C_[0])).fit(CANCER_X, CANCER_Y)
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-4)
    with pytest.raises(ValueError, match=r"l1_ratio=0\.9"):
        model.fit(IRIS_X, IRIS_Y)


def test_paths_start_from_their_neighbours(monkeypatch):
    starts, module = [], importlib.import_module("fenchel.solver.solve")
    run = module.run
    monkeypatch.setattr(module, "run", lambda fit, carried: starts.append(fit.start) or run(fit, carried))
    fl.LogisticRegressionCV(Cs=[1.0, 0.01, 0.1], cv=2).fit(CANCER_X, CANCER_Y)
    assert [bool(np.any(start.w)) for start in starts[:6]] == [False, True, True] * 2
    assert [bool(np.any(start.w)) for start in starts[6:]] == [True]  # the last fit, from the folds


def test_fits_to_folds_that_fall_short_are_told_once():
    with pytest.warns(fl.NotCertifiedWarning) as caught:
        fl.LogisticRegressionCV(Cs=[0.1, 1.0], cv=2, max_iter=1, tol=1e-9).fit(CANCER_X, CANCER_Y)
    assert [("of 4 fits to the folds" in str(w.message)) for w in caught] == [True, False]
