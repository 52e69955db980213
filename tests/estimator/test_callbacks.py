"""scikit-learn's callbacks on our fits."""

import logging
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import fenchel as fl

callback = pytest.importorskip("sklearn.callback")

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = scale(CANCER_X)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)

MODELS = [
    (fl.LogisticRegression(solver="lbfgs"), CANCER_X, CANCER_Y),
    (fl.LogisticRegression(), IRIS_X, IRIS_Y),
    (fl.LogisticRegression(penalize_intercept=True), CANCER_X, CANCER_Y),
    (fl.LinearSVC(), CANCER_X, CANCER_Y),
    (fl.LinearClassifier(solver="fista", tol=1e-2), CANCER_X, CANCER_Y),
    (fl.RidgeClassifier(), CANCER_X, CANCER_Y),
    (fl.Lasso(alpha=0.1), DIABETES_X, DIABETES_Y),
    (fl.Ridge(), DIABETES_X, DIABETES_Y),
    (fl.LinearSVR(C=10.0), DIABETES_X, DIABETES_Y),
    (fl.FusedLasso(alpha=0.1), DIABETES_X, DIABETES_Y),
    (fl.QuantileRegressor(alpha=0.1, tol=1e-2), DIABETES_X, DIABETES_Y),
]
NAMES = [str(model) for model, *_ in MODELS]


@pytest.mark.parametrize(("model", "X", "y"), MODELS, ids=NAMES)
def test_the_monitor_keeps_the_gaps_of_the_trace(model, X, y):
    monitor = fl.GapMonitor()
    model = clone(model).set_callbacks(monitor).fit(X, y)
    gaps = [row["gap"] for row in monitor.rows]
    assert gaps[-1] == pytest.approx(model.certificate_.gap, rel=1e-6) or gaps[-1] >= model.certificate_.gap
    assert {row["estimator"] for row in monitor.rows} == {type(model).__name__}
    plain = clone(model).set_callbacks().fit(X, y)
    np.testing.assert_allclose(plain.predict(X[:5]), model.predict(X[:5]))
    assert "_watching" not in vars(model)


def test_rows_of_several_fits_and_classes_are_told_apart():
    monitor = fl.GapMonitor()
    model = fl.LinearSVC(n_threads=2).set_callbacks(monitor)
    model.fit(IRIS_X, IRIS_Y).fit(CANCER_X, CANCER_Y)
    assert {row["run"] for row in monitor.rows} == {0, 1}
    assert sum(row["run"] == 0 for row in monitor.rows) >= 3


def test_the_gap_can_be_certified_at_every_step(caplog):
    monitor = fl.GapMonitor(every=1)
    model = fl.LinearClassifier(solver="fista", tol=1e-3)
    with caplog.at_level(logging.INFO, logger="fenchel"):
        model.set_callbacks(monitor).fit(CANCER_X, CANCER_Y)
    steps = [row["iteration"] for row in monitor.rows]
    assert steps == list(range(1, model.n_iter_ + 1))
    assert len(caplog.records) == len(steps)
    assert "LinearClassifier: step 1, objective" in caplog.text


def test_the_monitor_can_end_a_fit():
    stopped = fl.LinearClassifier(solver="fista", tol=1e-8).set_callbacks(fl.GapMonitor(every=1, stop_at=0.1))
    stopped.fit(CANCER_X, CANCER_Y)  # no warning: it was asked for
    assert 1e-8 < stopped.certificate_.relative_gap <= 0.1


@pytest.mark.parametrize(("model", "X", "y"), MODELS[:7], ids=NAMES[:7])
def test_their_scoring_monitor_scores_the_model_of_each_check(model, X, y):
    scoring = "accuracy" if hasattr(model, "decision_function") else "r2"
    monitor = callback.ScoringMonitor(scoring=scoring)
    model = clone(model).set_callbacks(monitor).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "certificate"]
    assert rows[-1][scoring] == pytest.approx(model.score(X, y), abs=1e-3)


def test_clones_and_pickles_keep_their_monitor():
    model = fl.Ridge().set_callbacks(fl.GapMonitor())
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.fit(DIABETES_X, DIABETES_Y).n_features_in_ == 10


def test_invalid_parameters_are_refused():
    with pytest.raises(ValueError, match="every must be a whole number of steps"):
        fl.GapMonitor(every=0)
    with pytest.raises(ValueError, match="stop_at must be"):
        fl.GapMonitor(stop_at=-1.0)
    with pytest.raises(TypeError, match="FitCallback"):
        fl.Ridge().set_callbacks(fl.GapMonitor)
    assert not hasattr(fl.HuberRegressor(), "set_callbacks")  # rather than one that is never called
