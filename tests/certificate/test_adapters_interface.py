"""certify as one function: what it dispatches on, what it refuses, and what its errors say."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import fenchel as fl
from tests.helpers.models import classification, regression, weights


def test_the_largest_margin_is_certified_by_its_interval():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 0.5]]), [0, 1, 1, 0]
    with pytest.raises(TypeError, match="margin_interval"):
        fl.certify(fl.MaxMarginClassifier().fit(X, y), X, y)


def test_a_problem_is_certified_as_before():
    X, y = regression()
    problem = fl.Problem(X, y, penalty=fl.penalties.L2(0.1), intercept=True)
    result = fl.solve(problem, tol=1e-9)
    assert fl.certify(problem, result.w, result.b).ok
    assert fl.certify(problem, result.w, result.b, result.alpha, "low", 1e-6).tol == 1e-6
    assert fl.certify is not fl.certificate.certify_weights


def test_effort_and_tol_reach_every_model():
    X, y = classification(classes=3)
    model = LogisticRegression(tol=1e-10).fit(X, y)
    assert fl.certify(model, X, y, tol=1e-3).tol == 1e-3
    assert fl.certify(model, X, y, effort="high").tol == 1e-6
    with pytest.raises(ValueError, match="effort"):
        fl.certify(model, X, y, effort="most")
    with pytest.raises(ValueError, match="tol"):
        fl.certify(model, X, y, tol=-1.0)


@pytest.mark.parametrize("subject", [np.zeros(6), [0.0] * 6, None, object(), StandardScaler()])
def test_what_is_no_known_model_gets_an_example(subject):
    X, y = regression()
    name = type(subject).__name__
    with pytest.raises(TypeError, match=rf"the objective of {name}\..*fl\.certify\(fl\.Problem\(X, y, loss="):
        fl.certify(subject, X, y)


def test_a_class_in_place_of_a_model():
    with pytest.raises(TypeError, match="the class LinearSVC itself"):
        fl.certify(LinearSVC, [[1.0]], [1])


def test_keywords_that_a_model_does_not_use_are_errors():
    X, y = regression()
    with pytest.raises(TypeError, match=r"does not use C, loss for Ridge, which takes no further keywords"):
        fl.certify(Ridge().fit(X, y), X, y, C=1.0, loss=None)


def test_missing_data_and_missing_fit():
    X, y = regression()
    with pytest.raises(TypeError, match=r"certify\(model, X, y\)"):
        fl.certify(Ridge().fit(X, y))
    with pytest.raises(ValueError, match="this Lasso is not fitted"):
        fl.certify(Lasso(), X, y)
    with pytest.raises(ValueError, match="this LinearSVC is not fitted"):
        fl.certify(LinearSVC(), X, y)
    with pytest.raises(ValueError, match="this LogisticRegression is not fitted"):
        fl.certify(LogisticRegression(), X, y)


def test_data_that_do_not_fit_the_model():
    X, y = regression()
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match="X has 5 columns, but the model has 6 weights"):
        fl.certify(model, X[:, :5], y)
    with pytest.raises(ValueError, match="y has 79 entries, but X has 80 rows"):
        fl.certify(model, X, y[1:])
    with pytest.raises(ValueError, match="y has 2 columns, but the model has weights for 1"):
        fl.certify(model, X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="sample_weight has -1 at position 3"):
        fl.certify(model, X, y, np.where(np.arange(80) == 3, -1.0, 1.0))


def test_unknown_labels_are_named():
    X, y = classification()
    model = LinearSVC(dual=False).fit(X, y)
    other = y.copy()
    other[17] = "yak"
    with pytest.raises(ValueError, match=r"'yak' at position 17.*'ape', 'bee'"):
        fl.certify(model, X, other)
    with pytest.raises(ValueError, match="89 entries"):
        fl.certify(model, X, y[1:])
    with pytest.raises(ValueError, match="vector of labels"):
        fl.certify(model, X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "container",
    [
        list,
        pd.Series,
        pl.Series,
        lambda y: pd.Series(y, dtype="category"),
        lambda y: y[:, None],
        lambda y: y.astype(object),
    ],
)
def test_labels_in_any_container(container):
    X, y = classification()
    model = LinearSVC(dual=False, tol=1e-8).fit(X, y)
    assert fl.certify(model, X, container(y)) == fl.certify(model, X, y)


@pytest.mark.parametrize("labels", [(0, 1), (False, True), (-1.0, 2.0), ("no", "yes")])
def test_labels_of_any_type(labels):
    X, y = classification()
    y = np.array(labels)[(y == "bee").astype(int)]
    assert fl.certify(LinearSVC(dual=False, tol=1e-8).fit(X, y), X, y).ok


def test_pipelines_and_searches():
    X, y = classification()
    inner = LogisticRegression(tol=1e-10)
    scaled = StandardScaler().fit_transform(X)
    plain = fl.certify(LogisticRegression(tol=1e-10, C=0.1).fit(scaled, y), scaled, y)
    pipe = make_pipeline(StandardScaler(), "passthrough", inner)
    search = GridSearchCV(pipe, {"logisticregression__C": [0.1]}, cv=3).fit(X, y)
    assert fl.certify(search, X, y) == plain
    assert fl.certify(search.best_estimator_, X, y) == plain
    with pytest.raises(ValueError, match="best_estimator_"):
        fl.certify(GridSearchCV(pipe, {}, refit=False), X, y)
    with pytest.raises(TypeError, match="the objective of CalibratedClassifierCV"):
        fl.certify(CalibratedClassifierCV(inner, cv=3).fit(X, y), X, y)


def test_subclasses_count_as_their_base_unless_they_fit_in_their_own_way():
    class Named(Lasso):
        pass

    class Different(Lasso):
        def fit(self, X, y):
            return super().fit(X, y**3)

    X, y = regression()
    assert fl.certify(Named(alpha=0.1, tol=1e-10).fit(X, y), X, y).ok
    with pytest.raises(TypeError, match="the objective of Different"):
        fl.certify(Different(alpha=0.1).fit(X, y), X, y)


def test_a_model_with_weights_that_are_not_finite_is_refused():
    X, y = regression()
    model = Ridge().fit(X, y)
    model.coef_[2] = np.nan
    with pytest.raises(ValueError, match="nan at position 2"):
        fl.certify(model, X, y)


def test_x_is_used_where_it_lies():
    X, y = regression()
    model = Lasso(alpha=0.1).fit(X, y)
    found = fl.certify(model, X, y, weights(80))
    assert np.shares_memory(found.evidence.problem.design.matrix, X)


def test_importing_certify_imports_no_model_package():
    code = (
        "import sys, fenchel.certificate; "
        "bad = {'sklearn', 'torch', 'celer', 'skglm', 'pandas'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    # the package itself imports its estimators, which need scikit-learn: load its lower layers only
    stub = (
        "import sys, types, importlib.util; m = types.ModuleType('fenchel'); "
        "m.__path__ = importlib.util.find_spec('fenchel').submodule_search_locations; sys.modules['fenchel'] = m; "
    )
    subprocess.run([sys.executable, "-c", stub + code], check=True, capture_output=True, text=True)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(fit_intercept=False, dual=False),
        LogisticRegression(fit_intercept=False),
        LogisticRegression(fit_intercept=False, solver="liblinear"),
        Ridge(fit_intercept=False),
    ],
)
def test_an_intercept_that_the_objective_does_not_have_is_refused(model):
    X, y = classification()
    model.fit(X, (y == "bee").astype(int)).intercept_ = np.array([0.5])
    with pytest.raises(ValueError, match="intercept"):
        fl.certify(model, X, (y == "bee").astype(int))
