"""The named estimators minimise what scikit-learn's of the same name minimise."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import fenchel as fl
from fenchel.certificate.adapters.huber import HuberClaim

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = scale(CANCER_X)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
SCALED_X = scale(DIABETES_X)
WINE_X, WINE_Y = load_wine(return_X_y=True)
WINE_X = scale(WINE_X)
WEIGHTS = np.random.default_rng(0).uniform(0.2, 3.0, 569)
WINE_WEIGHTS = WEIGHTS[: len(WINE_Y)]
SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])

LIBLINEAR = {"penalize_intercept": True}
#: Name, parameters of both, parameters of ours, parameters of theirs.
CLASSIFIERS = [
    ("LinearSVC", {"C": 0.3}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("LinearSVC", {"class_weight": {0: 3.0}}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("LinearSVC", {"class_weight": "balanced"}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("LinearSVC", {"loss": "hinge", "C": 0.1}, LIBLINEAR, {"tol": 1e-11, "max_iter": 10**6}),
    ("LinearSVC", {"C": 0.1, "intercept_scaling": 5.0}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("LinearSVC", {"penalty": "l1", "C": 0.1}, LIBLINEAR, {"dual": False, "tol": 1e-9, "max_iter": 10**5}),
    ("LinearSVC", {"fit_intercept": False, "C": 0.1}, {}, {"tol": 1e-12, "max_iter": 10**6}),
    ("LogisticRegression", {"C": 0.5}, {}, {"tol": 1e-10, "max_iter": 10**5}),
    ("LogisticRegression", {"C": 0.5, "class_weight": "balanced"}, {}, {"tol": 1e-10, "max_iter": 10**5}),
    ("LogisticRegression", {"C": 0.5, "fit_intercept": False}, {}, {"tol": 1e-10, "max_iter": 10**5}),
    ("RidgeClassifier", {"alpha": 2.0, "class_weight": "balanced"}, {}, {}),
]
REGRESSIONS = [
    ("LinearSVR", {"epsilon": 1.0}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("LinearSVR", {"loss": "squared_epsilon_insensitive", "C": 0.1}, LIBLINEAR, {"tol": 1e-12, "max_iter": 10**6}),
    ("Ridge", {"alpha": 3.0}, {}, {}),
    ("Ridge", {"alpha": 3.0, "fit_intercept": False}, {}, {}),
    ("QuantileRegressor", {"quantile": 0.8, "alpha": 0.1}, {}, {}),
    ("HuberRegressor", {"alpha": 1.0}, {}, {"tol": 1e-10, "max_iter": 10**5}),
    ("HuberRegressor", {"epsilon": 2.5, "alpha": 10.0}, {}, {"tol": 1e-10, "max_iter": 10**5}),
]


def theirs_of(name):
    return getattr(sklearn.svm if "SV" in name else sklearn.linear_model, name)


def fitted(case, X, y, **fit):
    name, both, ours, theirs = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both may stop where rounding begins
        one = getattr(fl, name)(tol=1e-12 if name == "Ridge" else 1e-9, **both, **ours).fit(X, y, **fit)
        other = theirs_of(name)(**both, **theirs).fit(X, y, **fit)
    return one, other


def assert_same_model(ours, theirs, X):
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_.ravel(), np.ravel(theirs.coef_), atol=1e-3 * size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3 * size)
    assert ours.certificate_.relative_gap < 1e-8


@pytest.mark.parametrize("case", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("data", ["two", "three", "weighted"])
def test_classifiers_agree(case, data):
    X, y = (IRIS_X, IRIS_Y) if data == "three" else (CANCER_X, CANCER_Y)
    fit = {"sample_weight": WEIGHTS} if data == "weighted" else {}
    if data == "weighted" and case[1].get("class_weight") == "balanced":
        pytest.skip("whether balanced counts samples or weights differs between versions of scikit-learn")
    ours, theirs = fitted(case, X, y, **fit)
    assert_same_model(ours, theirs, X)
    assert ours.coef_.shape == theirs.coef_.shape
    assert not ours.fit_intercept or ours.intercept_.shape == theirs.intercept_.shape
    scores = theirs.decision_function(X)
    apart = np.abs(scores) if scores.ndim == 1 else np.diff(np.sort(scores, axis=1)[:, -2:], axis=1)[:, 0]
    clear = apart > 1e-2 * np.ptp(scores)  # labels of the others depend on the last digits
    assert np.mean(~clear) < 0.15
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
        np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-3)


@pytest.mark.parametrize("case", REGRESSIONS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_regressions_agree(case, weighted):
    fit = {"sample_weight": WEIGHTS[: len(DIABETES_Y)]} if weighted else {}
    ours, theirs = fitted(case, SCALED_X, DIABETES_Y, **fit)
    assert_same_model(ours, theirs, SCALED_X)
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    if ours.fit_intercept:
        assert type(ours.intercept_) is type(theirs.intercept_)  # NumPy's numbers have .round and the like
    np.testing.assert_allclose(ours.predict(SCALED_X), theirs.predict(SCALED_X), rtol=1e-3, atol=0.1)


ALL = [getattr(fl, name)(**both, **ours) for name, both, ours, _ in CLASSIFIERS + REGRESSIONS]


@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_fitted_model_can_be_certified_again(model):
    X, y = (CANCER_X, CANCER_Y) if hasattr(model, "decision_function") else (SCALED_X, DIABETES_Y)
    model = clone(model).fit(X, y)
    again = fl.certify(model, X, y)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.gap <= 1.01 * model.certificate_.gap + 1e-15


def test_several_classes_can_be_certified_again():
    for model in (fl.LinearSVC(penalize_intercept=True), fl.LogisticRegression(), fl.RidgeClassifier()):
        model.fit(IRIS_X, IRIS_Y)
        again = fl.certify(model, IRIS_X, IRIS_Y)
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
        assert again.relative_gap <= 1.1e-4


def test_the_intercept_of_an_svm_is_free_unless_asked():
    free = fl.LinearSVC(C=0.01, tol=1e-8).fit(CANCER_X + 3.0, CANCER_Y)
    centred = fl.LinearSVC(C=0.01, tol=1e-8).fit(CANCER_X, CANCER_Y)
    np.testing.assert_allclose(free.coef_, centred.coef_, atol=1e-5)  # moving the data changes b only
    penalised = fl.LinearSVC(C=0.01, tol=1e-8, penalize_intercept=True).fit(CANCER_X + 3.0, CANCER_Y)
    assert np.abs(penalised.coef_ - centred.coef_).max() > 1e-3


@pytest.mark.parametrize("several", [False, True])
def test_crammer_singer_agrees(several):
    shared = {"multi_class": "crammer_singer", "C": 0.1}
    theirs = sklearn.svm.LinearSVC(**shared, tol=1e-10, max_iter=10**6, fit_intercept=False)
    ours = fl.LinearSVC(**shared, tol=1e-8, fit_intercept=False)
    X, y = (IRIS_X, IRIS_Y) if several else (CANCER_X, CANCER_Y)  # two classes are a hinge loss
    np.testing.assert_allclose(ours.fit(X, y).coef_, theirs.fit(X, y).coef_, atol=1e-3)


def test_ridge_takes_several_targets_each_with_its_alpha():
    Y = np.column_stack([DIABETES_Y, np.sin(DIABETES_Y)])
    ours = fl.Ridge([0.1, 5.0], tol=1e-10).fit(SCALED_X, Y)
    theirs = sklearn.linear_model.Ridge(np.array([0.1, 5.0])).fit(SCALED_X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(SCALED_X), theirs.predict(SCALED_X), rtol=1e-4, atol=1e-5)
    assert len(ours.certificate_.parts) == 2
    assert fl.certify(ours, SCALED_X, Y).relative_gap < 1e-9
    with pytest.raises(ValueError, match="alpha has 3 entries, but y has 2 targets"):
        fl.Ridge([1.0, 2.0, 3.0]).fit(SCALED_X, Y)


def test_huber_finds_the_scale_and_the_outliers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    y = X @ [1.0, -2.0, 0.0, 3.0] + 0.5 + 0.1 * rng.normal(size=200)
    y[:20] += 30.0
    ours = fl.HuberRegressor(tol=1e-10).fit(X, y)
    theirs = sklearn.linear_model.HuberRegressor(tol=1e-10, max_iter=10**5).fit(X, y)
    assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-4)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert np.array_equal(ours.outliers_, theirs.outliers_)
    assert ours.outliers_[:20].all()
    again = fl.certify(theirs, X, y, tol=1e-10)  # what is proven of theirs bounds ours too
    assert ours.certificate_.primal <= again.primal + ours.certificate_.gap


@pytest.mark.parametrize("epsilon", [1.0, 1.35])
def test_huber_certifies_a_vanishing_scale(epsilon):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = 2.0 * X[:, 0] + (0.0 if epsilon > 1.0 else rng.normal(size=60))
    model = fl.HuberRegressor(epsilon=epsilon, alpha=0.1).fit(X, y)
    assert model.certificate_.ok
    assert model.scale_ < 1e-8  # the optimum is at 0; any of these is certified
    assert fl.certify(model, X, y, tol=1e-4).ok


@pytest.mark.parametrize("model", ALL, ids=str)
def test_weight_two_is_the_row_twice(model):
    is_classifier = hasattr(model, "decision_function")
    X, y = (CANCER_X[:120, :8], CANCER_Y[:120]) if is_classifier else (SCALED_X[:120], DIABETES_Y[:120])
    weights = np.random.default_rng(0).integers(0, 3, 120)
    repeated = np.repeat(np.arange(120), weights)
    one, other = clone(model).set_params(tol=1e-7), clone(model).set_params(tol=1e-7)
    one.fit(X, y, sample_weight=weights)
    other.fit(X[repeated], y[repeated])
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-7)


@pytest.mark.parametrize("model", [fl.LinearSVC(), fl.LogisticRegression(), fl.RidgeClassifier()], ids=str)
def test_they_live_in_pipelines_searches_frames_and_files(model):
    frame = pd.DataFrame(CANCER_X, columns=[f"f{k}" for k in range(30)])
    parameter = "alpha" if "alpha" in model.get_params() else "C"
    name = type(model).__name__.lower()
    grid = {f"{name}__{parameter}": [0.01, 1.0]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3).fit(frame, CANCER_Y)
    assert 1.0 - search.best_score_ < 0.12
    assert fl.certify(search, frame, CANCER_Y).ok
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(frame), search.predict(frame))
    sparse = clone(model).fit(sp.csr_array(CANCER_X), CANCER_Y)
    assert np.mean(sparse.predict(sp.csc_array(CANCER_X)) != clone(model).fit(frame, CANCER_Y).predict(frame)) < 0.01
    assert list(clone(model).fit(frame, CANCER_Y).feature_names_in_) == list(frame.columns)


def test_labels_can_be_proven():
    for model in (fl.LinearSVC(tol=1e-8, penalize_intercept=True), fl.LogisticRegression(tol=1e-8)):
        labels, proven = model.fit(CANCER_X, CANCER_Y).predict_certified(CANCER_X)
        assert np.array_equal(labels, model.predict(CANCER_X))
        assert 1.0 - proven.mean() < 0.1


WARM = [
    (fl.LinearSVC(penalize_intercept=True, tol=1e-8), "C", "two"),
    (fl.LinearSVC(loss="hinge", C=0.1, tol=1e-6), "C", "two"),
    (fl.LinearSVC(C=0.1, tol=1e-8), "C", "three"),
    (fl.LogisticRegression(tol=1e-8), "C", "two"),
    (fl.LogisticRegression(tol=1e-8), "C", "three"),
    (fl.LogisticRegression(l1_ratio=0.5, C=0.1, tol=1e-8), "C", "three"),
    (fl.LogisticRegression(penalty="l1", C=0.1, tol=1e-6), "C", "two"),
    (fl.LinearSVR(epsilon=1.0, tol=1e-6), "C", "numbers"),
    (fl.QuantileRegressor(alpha=0.1, tol=1e-6), None, "numbers"),
    (fl.HuberRegressor(tol=1e-8), "alpha", "numbers"),
]


CONTINUED = [
    (fl.LinearSVC(loss="hinge", C=0.1), "two"),
    (fl.LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-2), "three"),
    (fl.LogisticRegression(C=0.1), "three"),
    (fl.SparseLogisticRegression(alpha=0.1), "three"),
    (fl.RidgeClassifier(), "three"),
    (fl.LinearClassifier(), "two"),
    (fl.LinearSVR(), "numbers"),
    (fl.QuantileRegressor(alpha=0.1), "numbers"),
    (fl.HuberRegressor(), "numbers"),
    (fl.Lasso(0.1), "numbers"),
    (fl.ElasticNet(0.1), "numbers"),
    (fl.Ridge(), "numbers"),
    (fl.GroupLasso(0.1, groups=2), "numbers"),
    (fl.FusedLasso(0.1), "numbers"),
    (fl.LpRegressor(p=1.5, lam=0.1), "numbers"),
]


@pytest.mark.filterwarnings("ignore::fenchel.NotCertifiedWarning")
@pytest.mark.parametrize(("model", "data"), CONTINUED, ids=str)
def test_a_model_that_is_good_enough_is_certified_and_kept(model, data):
    """Without a step; max_iter=0 certifies it on any samples."""
    X, y = {"two": (CANCER_X, CANCER_Y), "three": (IRIS_X, IRIS_Y), "numbers": (SCALED_X, DIABETES_Y)}[data]
    model = clone(model).set_params(warm_start=True).fit(X, y)
    coef, intercept = model.coef_.copy(), np.copy(model.intercept_)
    model.fit(X, y)
    assert not np.any(model.n_iter_)
    assert model.certificate_.ok
    model.set_params(max_iter=0).fit(X[5:-5], y[5:-5])
    assert not np.any(model.n_iter_)
    assert np.array_equal(model.coef_, coef)
    assert np.array_equal(model.intercept_, intercept)
    again = fl.certify(model, X[5:-5], y[5:-5])
    assert model.certificate_.primal == pytest.approx(again.primal, rel=1e-9)
    assert model.certificate_.gap >= again.primal - again.dual - again.gap


@pytest.mark.parametrize(("model", "parameter", "data"), WARM, ids=str)
def test_warm_starts_need_fewer_steps(model, parameter, data):
    """At most half of them from a more accurate solution, and fewer from that of a neighbour, for the same minimiser.

    Ridge regressions are not here: they take one step from anywhere.
    """
    X, y = {"two": (CANCER_X, CANCER_Y), "three": (IRIS_X, IRIS_Y), "numbers": (SCALED_X, DIABETES_Y)}[data]
    cold, warm = clone(model).fit(X, y), clone(model).set_params(warm_start=True).fit(X, y)
    assert np.array_equal(warm.n_iter_, cold.n_iter_)
    warm.set_params(tol=model.tol / 100).fit(X, y)
    assert 2 * np.max(warm.set_params(tol=model.tol).fit(X, y).n_iter_) <= np.max(cold.n_iter_)
    if parameter is None:
        return
    changed = {parameter: 1.001 * getattr(model, parameter)}
    cold.set_params(**changed).fit(X, y)
    assert np.max(warm.set_params(**changed).fit(X, y).n_iter_) < np.max(cold.n_iter_)
    assert warm.certificate_.ok
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2 * model.tol)
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=0.01 * np.abs(cold.coef_).max())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (fl.LogisticRegression(C=-np.inf), r"C must be positive \(infinite for no penalty\), got -inf"),
        (fl.LogisticRegression(C=np.nan), "C must be positive"),
        (fl.LogisticRegressionCV(penalty=None), "penalty=None leaves nothing to choose"),
        (fl.LogisticRegression(penalty="elasticnet", l1_ratio=None), "needs an l1_ratio"),
        (fl.LogisticRegression(penalty="l2", l1_ratio=0.5), "contradicts penalty='l2'"),
        (fl.LogisticRegression(multi_class="multinomial"), "with 2 C"),
        (fl.LogisticRegression(solver="simplex"), "unknown solver 'simplex'"),
        (fl.LogisticRegression(n_jobs=0), "n_jobs must be"),
        (fl.LogisticRegression(intercept_scaling=0.5), "penalize_intercept=True"),
        (fl.LinearSVC(intercept_scaling=0.5), "penalize_intercept=True"),
        (fl.LinearSVC(loss="logistic"), "loss must be one of 'hinge'"),
        (fl.LinearSVC(dual="maybe"), "dual must be one of"),
        (fl.LinearSVC(C=0.0), "C must be positive"),
        (fl.LinearSVC(penalty="l1", multi_class="crammer_singer"), "use multi_class='ovr'"),
        (fl.RidgeCV(alphas=[]), "alphas is empty"),
        (fl.Ridge(copy_X=1), "copy_X must be True or False"),
        (fl.Ridge(alpha=-1.0), r"alpha must be positive and finite \(or 0, for no penalty\), got -1.0"),
        (fl.Ridge(alpha="1"), "alpha must be a number"),
        (fl.QuantileRegressor(alpha=np.nan), "alpha must be positive and finite"),
        (fl.QuantileRegressor(solver="highs", solver_options={"presolve": False}), "has the options 'presolve'"),
        (fl.HuberRegressor(epsilon=0.5), "epsilon must be at least 1"),
        (fl.RidgeCV(cv=3, store_cv_results=True), "cv!=None and store_cv_results=True are incompatible"),
        (fl.RidgeCV(alphas=(1, -1, -100)), r"alphas\[1\] == -1, must be > 0.0"),
        (fl.LassoCV(alphas=(-0.1, -1.0)), r"alphas\[0\] == -0.1, must be >= 0.0"),
        (fl.LogisticRegressionCV(l1_ratios=0.5), "l1_ratios must be numbers"),
        (fl.LogisticRegressionCV(l1_ratios=[1.5]), "l1_ratio must lie between 0 and 1"),
        (fl.LogisticRegressionCV(penalty="elasticnet"), "needs an l1_ratio"),
        (fl.LogisticRegressionCV(Cs=0), "Cs must be|C must be"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(CANCER_X, CANCER_Y)


def test_the_softmax_needs_a_strongly_convex_penalty():
    with pytest.raises(ValueError, match=r"l1_ratio=0\.9, multi_class='ovr'"):
        fl.LogisticRegression(penalty="l1").fit(IRIS_X, IRIS_Y)
    with pytest.raises(ValueError, match="needs penalty='l2'"):
        fl.LogisticRegression(l1_ratio=0.5, penalize_intercept=True).fit(IRIS_X, IRIS_Y)
    assert fl.LogisticRegression(penalty="l1", multi_class="ovr", tol=1e-3).fit(IRIS_X, IRIS_Y).certificate_.ok


@pytest.mark.parametrize("l1_ratio", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_softmax_with_an_elastic_net_agrees(l1_ratio, fit_intercept):
    both = {"C": 0.5, "l1_ratio": l1_ratio, "fit_intercept": fit_intercept}
    penalty = {"penalty": "elasticnet"} if SKLEARN < (1, 8) else {}  # from then on l1_ratio alone says it
    ours = fl.LogisticRegression(**both, penalty="elasticnet", tol=1e-11).fit(WINE_X, WINE_Y, WINE_WEIGHTS)
    theirs = sklearn.linear_model.LogisticRegression(**both, **penalty, solver="saga", tol=1e-9, max_iter=10**5)
    theirs.fit(WINE_X, WINE_Y, WINE_WEIGHTS)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_array_equal(np.abs(ours.coef_) > 1e-3, np.abs(theirs.coef_) > 1e-3)
    np.testing.assert_allclose(ours.predict_proba(WINE_X), theirs.predict_proba(WINE_X), atol=1e-4)
    # what is proven of theirs is a bound from below that ours has to keep to, and the other way round
    certificate = fl.certify(theirs, WINE_X, WINE_Y, WINE_WEIGHTS, tol=1e-7)
    assert certificate.dual <= ours.certificate_.primal <= certificate.primal * (1 + 1e-8)
    assert fl.certify(ours, WINE_X, WINE_Y, WINE_WEIGHTS).relative_gap < 3e-11


def test_n_jobs_counts_as_joblib_does():
    from fenchel.estimator.objective import threads

    assert [threads(n_jobs) for n_jobs in (None, 1, 3, np.int64(2))] == [1, 1, 3, 2]
    for n_jobs in (-1, -2, -3, -1000):
        assert threads(n_jobs) == max(joblib.cpu_count() + 1 + n_jobs, 1)
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="n_jobs must be an integer other than 0"):
            threads(wrong)
    assert fl.LogisticRegression(n_jobs=-2).fit(CANCER_X, CANCER_Y).certificate_.ok


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_weights_can_be_stored_as_a_sparse_matrix(penalty):
    for model in (fl.LinearSVC(penalty=penalty, C=0.1), fl.LogisticRegression(penalty=penalty, warm_start=True)):
        before = model.fit(CANCER_X, CANCER_Y).decision_function(CANCER_X)
        weights = model.coef_
        assert sp.issparse(model.sparsify().coef_)
        for X in (CANCER_X, sp.csr_array(CANCER_X)):
            np.testing.assert_allclose(model.decision_function(X), before, atol=1e-12)
        assert fl.certify(model, CANCER_X, CANCER_Y).relative_gap <= 1.01e-4
        np.testing.assert_array_equal(model.densify().coef_, weights)
        assert not sp.issparse(model.sparsify().fit(CANCER_X, CANCER_Y).coef_)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({1: -1.0}, "class_weight has -1 for the class 1"),
        ({1: np.nan}, "class_weight has nan for the class 1"),
        ({1: np.inf}, "class_weight has inf for the class 1"),
        ({0: 0.0, 1: 0.0}, "class_weight leaves no class"),
    ],
)
@pytest.mark.parametrize("kind", [fl.LogisticRegression, fl.LinearSVC, fl.RidgeClassifier, fl.LogisticRegressionCV])
def test_class_weights_must_be_numbers_and_leave_a_class(kind, class_weight, message):
    with pytest.raises(ValueError, match=message):
        kind(class_weight=class_weight).fit(CANCER_X, CANCER_Y)


def test_huber_refuses_targets_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"y has entries as large as 3\.46e\+202, whose squares overflow"):
        fl.HuberRegressor().fit(DIABETES_X, 1e200 * DIABETES_Y)


def test_a_warning_counts_targets_where_there_are_targets():
    Y = np.column_stack([DIABETES_Y, DIABETES_Y**2])
    with pytest.warns(fl.NotCertifiedWarning, match="2 of 2 targets: "):
        fl.Ridge(max_iter=1, tol=1e-30).fit(DIABETES_X, Y)
    with pytest.warns(fl.NotCertifiedWarning, match="of 3 classes: "):
        fl.LinearSVC(max_iter=1, tol=1e-30).fit(IRIS_X, IRIS_Y)


@pytest.mark.parametrize("moment", range(4))
def test_ctrl_c_in_the_search_for_hubers_scale_keeps_the_best_model(monkeypatch, moment):
    """Between two solves, and while a candidate is certified."""
    certify, calls = HuberClaim.certify, []

    def interrupted(self, *arguments):
        calls.append(0)
        if len(calls) == moment + 1:
            raise KeyboardInterrupt
        return certify(self, *arguments)

    monkeypatch.setattr(HuberClaim, "certify", interrupted)
    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        model = fl.HuberRegressor(tol=1e-12).fit(SCALED_X, DIABETES_Y)
    assert len(calls) == moment + 1 + (moment == 0)
    assert np.isfinite(model.certificate_.gap)
    assert model.scale_ > 0
    assert model.predict(SCALED_X).shape == DIABETES_Y.shape


def test_hubers_scale_is_found_where_its_slope_all_but_vanishes():
    """Two solves at one scale found two signs, and the search for a zero between them failed; others took minutes."""
    X = sp.random_array((60, 500), density=0.17, format="csr", rng=np.random.default_rng(16))
    z = X @ np.random.default_rng(0).normal(size=500)
    for tol in (1e-2, 1e-4):
        assert fl.HuberRegressor(alpha=2.0, tol=tol).fit(X, z).certificate_.ok


@pytest.mark.parametrize(("C", "hint"), [(np.nan, "got nan$"), (0.0, "got 0.0$"), (-1.0, "got -1.0$")])
def test_a_wrong_C_gets_the_hint_that_fits(C, hint):
    with pytest.raises(ValueError, match=hint):
        fl.LinearSVC(C=C).fit(np.eye(4), [0, 1, 0, 1])
