"""Estimators with hard constraints: against the pseudo-inverse, hard margins, several classes, contradictions."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import fenchel as fl

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 60))
y = rng.normal(size=30)


@pytest.mark.parametrize("intercept", [False, True])
def test_several_targets_are_fitted_exactly(intercept):
    Y = rng.normal(size=(30, 3))
    model = fl.MinNormRegressor(fit_intercept=intercept).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-8)
    centred = (X - X.mean(axis=0), Y - Y.mean(axis=0)) if intercept else (X, Y)
    np.testing.assert_allclose(model.coef_, (np.linalg.pinv(centred[0]) @ centred[1]).T, atol=1e-7)
    assert (model.coef_.shape, model.intercept_.shape, model.dual_coef_.shape) == ((3, 60), (3,), (3, 30))
    assert model.certificate_.ok
    assert len(model.certificate_.parts) == 3


def test_the_model_of_each_p_has_the_smallest_p_norm():
    norms, found = (2.0, 1.5, 1.1), {}
    for p in norms:
        w = fl.MinNormRegressor(p=p, fit_intercept=False).fit(X, y).coef_
        found[p] = {q: float(np.sum(np.abs(w) ** q) ** (1.0 / q)) for q in norms}
    assert [min(norms, key=lambda p: found[p][q]) for q in norms] == list(norms)


def test_margins_are_those_of_a_hard_margin_machine():
    labels = y > 0
    model = fl.LpPerceptron(fit_intercept=True, tol=1e-7).fit(X, labels)
    other = SVC(kernel="linear", C=1e10, tol=1e-6).fit(X, labels)
    np.testing.assert_allclose(model.margin_, 1.0 / np.linalg.norm(other.coef_), rtol=1e-3)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-2 * np.abs(other.coef_).max())
    assert model.n_mistakes_[-1] == 0
    assert len(model.n_mistakes_) == model.n_iter_


def test_all_solvers_find_the_same_margin():
    margins = [
        fl.LpPerceptron(p=1.5, fit_intercept=False, tol=1e-6, **options).fit(X, y > 0).margin_
        for options in ({}, {"solver": "auto"}, {"accelerate": False, "max_iter": 20000}, {"solver": "fista"})
    ]
    np.testing.assert_allclose(margins, margins[0], rtol=1e-3)


def test_several_classes_against_the_rest_and_jointly():
    labels = np.digitize(y, [-0.5, 0.5])
    each = fl.LpPerceptron(tol=1e-5).fit(X, labels)
    joint = fl.LpPerceptron(tol=1e-5, multi_class="joint", fit_intercept=False, solver="auto").fit(X, labels)
    assert each.score(X, labels) == joint.score(X, labels) == 1.0
    assert each.coef_.shape == joint.coef_.shape == (3, 60)
    assert each.margin_.shape == (3,)
    scores = X @ joint.coef_.T
    own = scores[np.arange(30), labels]
    others = np.where(np.eye(3, dtype=bool)[labels], -np.inf, scores).max(axis=1)
    assert np.min(own - others) >= 1.0 - 1e-9
    with pytest.raises(ValueError, match=r"joint.* has no intercept"):
        clone(joint).set_params(fit_intercept=True).fit(X, labels)


def test_data_that_cannot_be_fitted_are_an_error_that_says_so():
    narrow = X[:, :5]
    with pytest.raises(fl.Infeasible, match=r"no model satisfies all constraints.*least_violation"):
        fl.MinNormRegressor().fit(narrow, y)
    model = fl.MinNormRegressor(on_infeasible="least_violation").fit(narrow, y)
    A = np.column_stack([narrow, np.ones(30)])
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.linalg.lstsq(A, y)[0], atol=1e-6)
    with pytest.raises(fl.Infeasible):
        fl.LpPerceptron().fit(narrow, y > 0)
    assert fl.LpPerceptron(on_infeasible="least_violation").fit(narrow, y > 0).margin_ < 0.0


def test_bad_parameters_are_clear_errors():
    for parameters, message in [
        ({"p": 1.0}, "p must be above 1"),
        ({"p": "2"}, "p must be a number"),
        ({"on_infeasible": "go"}, "on_infeasible must be one of"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            fl.MinNormRegressor(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="accelerate=False would have no effect"):
        fl.LpPerceptron(accelerate=False, solver="auto").fit(X, y > 0)


def test_fitted_models_are_certified_again():
    Y = rng.normal(size=(30, 2))
    assert fl.certify(fl.MinNormRegressor().fit(X, Y), X, Y).ok
    labels = np.digitize(y, [-0.5, 0.5])
    for options in ({}, {"multi_class": "joint", "fit_intercept": False}):
        c = fl.certify(fl.LpPerceptron(solver="auto", **options).fit(X, labels), X, labels, tol=1e-4)
        assert (c.ok, c.feasible) == (True, "exact")


def test_classes_that_cannot_be_separated_get_weights_all_the_same():
    iris = load_iris()
    for options in ({}, {"multi_class": "joint", "fit_intercept": False}):
        model = fl.LpPerceptron(on_infeasible="least_violation", max_iter=50, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fl.NotCertifiedWarning)
            model.fit(iris.data, iris.target)
        assert np.mean(model.predict(iris.data) != iris.target) < 0.15


def test_parts_that_contradict_are_not_added_to_penalties():
    Y = np.column_stack([X[:, :5] @ np.ones(5), y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        model = fl.MinNormRegressor(on_infeasible="least_violation", fit_intercept=False).fit(X[:, :5], Y)
    assert "1 of 2 problems contradict" in str(model.certificate_)


def test_they_work_in_a_grid_search():
    search = GridSearchCV(fl.MinNormRegressor(fit_intercept=False), {"p": [1.2, 2.0]}, cv=3).fit(X, X[:, 0])
    assert search.best_params_["p"] == 1.2
