"""The cross-validated sparse models choose what scikit-learn's choose, in any number of threads."""

import importlib
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import KFold, cross_val_score
from sklearn.preprocessing import scale

import fenchel as fl
from fenchel.estimator.search.cross_validation import choice
from fenchel.steps.linear_algebra import newton_system

DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
SCALED_X = scale(DIABETES_X)
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X, CANCER_Y = scale(CANCER_X)[:200, :8], CANCER_Y[:200]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
rng = np.random.default_rng(0)

SEARCHES = [
    ("LassoCV", {"alphas": 12}),
    ("LassoCV", {"alphas": [0.1, 10.0, 1.0], "cv": 3}),
    ("LassoCV", {"alphas": 6, "fit_intercept": False, "eps": 0.01}),
    ("ElasticNetCV", {"alphas": 6}),
    ("ElasticNetCV", {"alphas": 6, "l1_ratio": [0.3, 0.9, 1.0], "cv": 3}),
    ("ElasticNetCV", {"alphas": [0.01, 1.0], "l1_ratio": [0.0, 0.9]}),
]


@pytest.mark.parametrize(("name", "parameters"), SEARCHES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_choose_what_scikit_learn_chooses(name, parameters, weighted):
    weights = rng.uniform(0.2, 3.0, len(DIABETES_Y)) if weighted else None
    ours = getattr(fl, name)(**parameters, tol=1e-8).fit(SCALED_X, DIABETES_Y, sample_weight=weights)
    theirs = getattr(sklearn.linear_model, name)(**parameters, tol=1e-10, max_iter=10**6)
    theirs.fit(SCALED_X, DIABETES_Y, sample_weight=weights)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-10)
    assert getattr(ours, "l1_ratio_", None) == getattr(theirs, "l1_ratio_", None)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-10)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-4)
    # the mean of (z - z*)^2 / 2 is at most the gap, for either
    again = fl.certify(theirs, SCALED_X, DIABETES_Y, sample_weight=weights)
    apart = np.average((ours.predict(SCALED_X) - theirs.predict(SCALED_X)) ** 2, weights=weights)
    assert np.sqrt(apart) <= np.sqrt(2.0 * ours.dual_gap_) + np.sqrt(2.0 * again.gap)
    assert apart < 1e-3
    assert ours.dual_gap_ == ours.certificate_.gap
    assert ours.certificate_.ok
    assert fl.certify(ours, SCALED_X, DIABETES_Y, sample_weight=weights).relative_gap < 1.1e-8


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, np.asfortranarray])
def test_storage_does_not_change_the_choice(form):
    X = np.maximum(SCALED_X, 0.0)
    one = fl.LassoCV(alphas=5, cv=3, tol=1e-8).fit(X, DIABETES_Y)
    other = fl.LassoCV(alphas=5, cv=3, tol=1e-8).fit(form(X), DIABETES_Y)
    assert one.alpha_ == pytest.approx(other.alpha_, rel=1e-12)
    np.testing.assert_allclose(one.mse_path_, other.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


MODELS = [
    fl.LassoCV(alphas=4, cv=3),
    fl.ElasticNetCV(alphas=3, l1_ratio=[0.5, 1.0], cv=3),
    fl.SparseLogisticRegressionCV(alphas=4, cv=3),
    fl.GroupLassoCV(2, alphas=4, cv=3),
]


def data_for(model):
    return (CANCER_X, CANCER_Y) if hasattr(model, "predict_proba") else (SCALED_X, DIABETES_Y)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_folds_side_by_side_give_the_same_bits(model):
    X, y = data_for(model)
    one, other = (
        clone(model).set_params(n_jobs=n_jobs, random_state=np.random.RandomState(3)).fit(X, y) for n_jobs in (None, 3)
    )
    path = "score_path_" if hasattr(one, "score_path_") else "mse_path_"
    np.testing.assert_array_equal(getattr(one, path), getattr(other, path))
    assert one.alpha_ == other.alpha_


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_one_standard_error_rule_takes_the_heaviest_that_is_hardly_worse(model):
    X, y = data_for(model)
    parameters = {"alphas": np.geomspace(0.3, 0.001, 8) if hasattr(model, "predict_proba") else 8}
    best = clone(model).set_params(**parameters).fit(X, y)
    sparser = clone(model).set_params(**parameters, rule="one_standard_error").fit(X, y)
    assert sparser.alpha_ > best.alpha_
    assert getattr(sparser, "l1_ratio_", 1.0) == getattr(best, "l1_ratio_", 1.0)
    assert (sparser.coef_ != 0).sum() <= (best.coef_ != 0).sum()
    with pytest.raises(ValueError, match="at least two folds"):
        sparser.set_params(cv=[(np.arange(100), np.arange(100, 200))]).fit(X[:200], y[:200])


def test_the_rules_by_hand():
    errors = np.array(
        [[[3.0, 5.0], [2.2, 2.6], [1.0, 3.0], [1.9, 1.9]]]
    )  # means 4, 2.4, 2, 1.9; the least has no spread
    assert choice(errors, "best") == (0, 3)
    assert choice(errors, "one_standard_error") == (0, 3)
    errors[0, 3] = 1.5, 2.3  # the standard error of 1.9 is 0.4: 2.0 is within, 2.4 is not
    assert choice(errors, "one_standard_error") == (0, 2)
    errors[0, 3] = 1.3, 2.5  # now it is 0.6
    assert choice(errors, "one_standard_error") == (0, 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_logistic_regression_chooses_what_cross_val_score_would(weighted):
    alphas = [0.1, 0.03, 0.01]
    weights = rng.uniform(0.5, 2.0, len(CANCER_Y)) if weighted else None
    model = fl.SparseLogisticRegressionCV(alphas=alphas, cv=KFold(3), tol=1e-7).fit(CANCER_X, CANCER_Y, weights)
    if not weighted:
        for k, alpha in enumerate(alphas):
            one = fl.SparseLogisticRegression(alpha, tol=1e-7)
            scores = cross_val_score(one, CANCER_X, CANCER_Y, cv=KFold(3), scoring="neg_log_loss")
            np.testing.assert_allclose(model.score_path_[k], scores, rtol=1e-3)
        named = fl.SparseLogisticRegressionCV(alphas=alphas, cv=KFold(3), tol=1e-7, scoring="neg_log_loss")
        np.testing.assert_allclose(named.fit(CANCER_X, CANCER_Y).score_path_, model.score_path_, rtol=1e-9)
    assert model.alpha_ == alphas[model.score_path_.mean(axis=1).argmax()]
    assert fl.certify(model, CANCER_X, CANCER_Y, sample_weight=weights).relative_gap < 1.1e-7
    accurate = fl.SparseLogisticRegressionCV(alphas=alphas, cv=KFold(3), scoring="accuracy")
    assert 0.0 <= 1.0 - accurate.fit(CANCER_X, CANCER_Y, weights).score_path_.max() < 0.5


def test_several_classes_share_one_alpha():
    model = fl.SparseLogisticRegressionCV(alphas=4, cv=3, l1_ratio=[0.5, 1.0]).fit(IRIS_X, IRIS_Y)
    assert model.score_path_.shape == (2, 4, 3)
    assert model.coef_.shape == model.certified_zeros_.shape == (3, 4)
    assert 1.0 - model.score(IRIS_X, IRIS_Y) < 0.15
    assert fl.certify(model, IRIS_X, IRIS_Y).ok
    with pytest.warns(UserWarning, match="fold 2 has no training sample of the class 2"):
        assert model.set_params(cv=KFold(3)).fit(IRIS_X, IRIS_Y).certificate_.ok


def test_groups_on_folds():
    model = fl.GroupLassoCV([5, 5], "sqrt", alphas=5, cv=3, tol=1e-6).fit(SCALED_X, DIABETES_Y)
    assert model.mse_path_.shape == (5, 3)
    alone = fl.GroupLasso(model.alpha_, [5, 5], "sqrt", tol=1e-6).fit(SCALED_X, DIABETES_Y)
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-6)
    assert fl.certify(model, SCALED_X, DIABETES_Y).ok
    first = model.alphas_[0]
    assert not fl.GroupLasso(1.0001 * first, [5, 5], "sqrt").fit(SCALED_X, DIABETES_Y).coef_.any()
    assert fl.GroupLasso(0.99 * first, [5, 5], "sqrt", tol=1e-8).fit(SCALED_X, DIABETES_Y).coef_.any()


def watch_runs(monkeypatch, watch):
    """Call watch(fit, carried) before every run of a solver; least squares on few columns has one for every alpha."""
    module = importlib.import_module("fenchel.solver.solve")
    run = module.run
    monkeypatch.setattr(module, "run", lambda fit, carried: watch(fit, carried) or run(fit, carried))
    monkeypatch.setattr(newton_system, "TUNING", replace(newton_system.TUNING, gram_cost=0.0))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_paths_start_from_their_neighbours_and_the_last_fit_from_the_folds(monkeypatch, n_jobs):
    starts = []

    def watch(fit, carried):
        starts.append((fit.problem.shape[0], carried.state is not None, bool(np.any(fit.start.w))))
        assert fit.problem.X.threads == 1

    watch_runs(monkeypatch, watch)
    fl.LassoCV(alphas=3, cv=2, n_jobs=n_jobs).fit(SCALED_X, DIABETES_Y)
    n = len(DIABETES_Y)
    on_folds = [carried for samples, carried, _ in starts if samples < n]
    assert sorted(on_folds) == [False] * 2 + [True] * 4  # the solver goes on where it is
    assert [(carried, moved) for samples, carried, moved in starts if samples == n] == [(False, True)]


def test_a_fold_without_weight_is_refused():
    weights = np.ones(len(DIABETES_Y))
    weights[:150] = 0.0
    with pytest.raises(ValueError, match="zero for all test samples of a fold"):
        fl.LassoCV(alphas=3, cv=3).fit(SCALED_X, DIABETES_Y, weights)


def test_constant_targets_have_a_path_of_zeros():
    model = fl.LassoCV(alphas=3, cv=2).fit(SCALED_X, np.full(len(SCALED_X), 7.0))
    assert not model.coef_.any()
    assert model.intercept_ == pytest.approx(7.0)


def test_fits_to_folds_that_fall_short_are_told_once():
    with pytest.warns(fl.NotCertifiedWarning) as caught:
        fl.LassoCV(alphas=[0.1, 1.0], cv=2, max_iter=1, tol=1e-12).fit(SCALED_X, DIABETES_Y)
    assert "of 4 fits to the folds" in str(caught[0].message)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_on_the_folds_ends_the_search(monkeypatch, n_jobs):
    calls, told = [], threading.Event()
    monkeypatch.setattr("fenchel.estimator.search.cross_validation.Event", lambda: told)

    def watch(fit, carried):
        calls.append(0)
        if len(calls) == 3:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if len(calls) >= 3 and threading.current_thread() is not threading.main_thread():
            assert told.wait(60.0)  # no fold goes on before the main thread has seen the signal

    watch_runs(monkeypatch, watch)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        fl.LassoCV(cv=4, n_jobs=n_jobs, alphas=400, tol=1e-8).fit(SCALED_X, DIABETES_Y)
    for thread in set(threading.enumerate()) - before:
        thread.join(20.0)
    assert len(calls) <= 3 + n_jobs


def test_an_error_on_one_fold_is_the_error_of_the_search():
    with pytest.raises(ValueError, match="unknown solver 'simplex'"):
        fl.LassoCV(n_jobs=2, solver="simplex").fit(SCALED_X, DIABETES_Y)


def test_progress_shows_a_bar_for_each_fit(capsys):
    fl.LassoCV(alphas=2, cv=2, verbose=1, n_jobs=2).fit(SCALED_X, DIABETES_Y)
    captured = capsys.readouterr()
    assert captured.out + captured.err
