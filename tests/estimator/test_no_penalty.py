"""alpha=0 and C=inf: the models of scikit-learn, certified."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as lm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import estimator_checks_generator

import fenchel as fl
from fenchel.problem.penalties import NoPenalty

X, y = load_diabetes(return_X_y=True)
X = 20.0 * X
CANCER, MALIGNANT = load_breast_cancer(return_X_y=True)
CANCER = scale(CANCER)[:, :8]
WEIGHTS = np.random.default_rng(0).random(len(y))

SQUARED = [fl.Ridge(0.0), fl.Lasso(0.0), fl.ElasticNet(0.0), fl.GroupLasso(0.0), fl.FusedLasso(0.0)]
REGRESSIONS = [
    *SQUARED,
    fl.LinearRegressor(penalty=NoPenalty()),
    fl.QuantileRegressor(alpha=0.0, quantile=0.3),
    fl.HuberRegressor(alpha=0.0),
    fl.LinearSVR(C=np.inf, epsilon=0.1),
    fl.LinearSVR(C=np.inf, epsilon=0.1, loss="squared_epsilon_insensitive"),
]
CLASSIFIERS = [
    fl.LogisticRegression(C=np.inf),
    fl.LogisticRegression(penalty=None),
    fl.LogisticRegression(C=np.inf, penalize_intercept=True),
    fl.LinearSVC(C=np.inf),
    fl.LinearSVC(C=np.inf, loss="hinge"),
    fl.LinearSVC(C=np.inf, penalty="l1"),
    fl.RidgeClassifier(alpha=0.0),
    fl.SparseLogisticRegression(alpha=0.0),
    fl.LinearClassifier(loss="logistic", penalty=NoPenalty()),
]


def name(model):
    return str(model).replace(" ", "").replace("\n", "")


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("model", [*REGRESSIONS, *CLASSIFIERS], ids=name)
def test_every_estimator_is_certified_without_a_penalty(model, storage):
    features, targets = (X, y) if model in REGRESSIONS else (CANCER, MALIGNANT)
    model.fit(storage(features), targets, sample_weight=WEIGHTS if model in REGRESSIONS else None)
    assert model.certificate_.ok
    again = fl.certify(model, features, targets, sample_weight=WEIGHTS if model in REGRESSIONS else None)
    assert again.relative_gap <= 1e-3


@pytest.mark.parametrize("columns", [10, 3, 1])
@pytest.mark.parametrize("rows", [442, 8])
@pytest.mark.parametrize("intercept", [False, True])
def test_least_squares_are_those_of_scikit_learn(rows, columns, intercept):
    features, targets = np.column_stack([X[:rows, :columns], X[:rows, :1]]), y[:rows]
    theirs = lm.LinearRegression(fit_intercept=intercept).fit(features, targets)
    for ours in SQUARED:
        ours.set_params(fit_intercept=intercept).fit(features, targets)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-8 * np.abs(theirs.coef_).max())
        assert ours.certificate_.ok
    assert SQUARED[0].fit(features, targets).rank_ == theirs.rank_
    assert fl.certify(theirs, features, targets).ok


def test_several_targets_with_and_without_a_penalty():
    both = np.column_stack([y, y**2])
    model = fl.Ridge([0.0, 1.0]).fit(X, both)
    np.testing.assert_allclose(model.coef_[0], lm.LinearRegression().fit(X, y).coef_, rtol=1e-7)
    np.testing.assert_allclose(model.coef_[1], lm.Ridge(1.0).fit(X, both[:, 1]).coef_, rtol=1e-2)


def test_models_of_scikit_learn_are_certified():
    for model in (lm.QuantileRegressor(alpha=0.0), lm.Ridge(alpha=0.0), lm.LinearRegression()):
        assert fl.certify(model.fit(X, y), X, y).relative_gap <= 1e-6
    huber = lm.HuberRegressor(alpha=0.0, tol=1e-8, max_iter=10_000).fit(X, y)
    assert fl.certify(huber, X, y).relative_gap <= 1e-3
    logistic = lm.LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(CANCER, MALIGNANT)
    assert fl.certify(logistic, CANCER, MALIGNANT).relative_gap <= 1e-6
    ours = fl.LogisticRegression(C=np.inf, tol=1e-9).fit(CANCER, MALIGNANT)
    np.testing.assert_allclose(ours.coef_, logistic.coef_, rtol=1e-3)


def test_separable_classes_warn_with_the_interval_of_the_margin():
    iris, species = load_iris(return_X_y=True)
    with pytest.warns(fl.NotCertifiedWarning, match=r"largest margin is between 0\.818 and 0\.818"):
        model = fl.LogisticRegression(C=np.inf).fit(iris, species == 0)
    assert model.score(iris, species == 0) == 1.0
    assert model.certificate_.ok
    assert model.certificate_.primal <= 1e-4 * np.log(2.0)


@pytest.mark.parametrize(
    "search",
    [
        fl.RidgeCV(alphas=[0.0, 1e6]),
        fl.RidgeCV(alphas=[0.0, 1e6], cv=3),
        fl.LassoCV(alphas=[0.0, 1e4]),
        fl.ElasticNetCV(alphas=[0.0, 1e4]),
        fl.GroupLassoCV(alphas=[0.0, 1e4]),
    ],
    ids=name,
)
def test_searches_may_choose_no_penalty(search):
    search.fit(X, y)
    assert search.alpha_ == 0.0
    np.testing.assert_allclose(search.coef_, lm.LinearRegression().fit(X, y).coef_, rtol=1e-6)


def test_searches_of_classifiers_may_choose_no_penalty():
    assert fl.LogisticRegressionCV(Cs=[1e-6, np.inf], cv=3).fit(CANCER, MALIGNANT).C_[0] == np.inf
    assert fl.SparseLogisticRegressionCV(alphas=[0.0, 100.0], cv=3).fit(CANCER, MALIGNANT).alpha_ == 0.0


@pytest.mark.parametrize("model", [fl.Ridge(0.0), fl.Lasso(0.0)], ids=name)
def test_scikit_learns_checks_pass_without_a_penalty(model):
    for estimator, check in estimator_checks_generator(model):
        check(estimator)
