"""Models with many zeros: what scikit-learn's minimise, what is proven zero, and what is refused."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import fenchel as fl
from fenchel.estimator.sparse.group_lasso import groups_of
from tests.helpers.conic import reliable_optimum

DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
SCALED_X = scale(DIABETES_X)
TARGETS = np.column_stack([DIABETES_Y, 100.0 * np.sin(DIABETES_Y)])
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = scale(CANCER_X)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
rng = np.random.default_rng(0)

LEAST_SQUARES = [
    ("Lasso", {"alpha": 1.0}),
    ("Lasso", {"alpha": 20.0}),
    ("Lasso", {"alpha": 1.0, "fit_intercept": False}),
    ("ElasticNet", {"alpha": 0.5}),
    ("ElasticNet", {"alpha": 0.5, "l1_ratio": 0.9}),
    ("ElasticNet", {"alpha": 0.5, "l1_ratio": 1.0}),
    ("ElasticNet", {"alpha": 0.5, "l1_ratio": 0.0}),
]
FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "frame": pd.DataFrame,
}


def uncentred(n=80, d=12, seed=0):
    """Sparse data whose columns have means, and targets of a few of them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(2.0, 1.0, size=(n, d)) * (generator.random((n, d)) < 0.4)
    return X, X[:, :3] @ [3.0, -2.0, 1.0] + 5.0 + 0.5 * generator.normal(size=n)


def both(name, parameters, X, y, weights=None, tol=1e-9):
    ours = getattr(fl, name)(**parameters, tol=tol).fit(X, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs may stop where rounding begins
        theirs = getattr(sklearn.linear_model, name)(**parameters, tol=1e-13, max_iter=10**6)
        theirs.fit(X, y, sample_weight=weights)
    return ours, theirs


@pytest.mark.parametrize(("name", "parameters"), LEAST_SQUARES, ids=str)
@pytest.mark.parametrize("targets", ["one", "column", "two"])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_agree(name, parameters, targets, weighted):
    y = {"one": DIABETES_Y, "column": DIABETES_Y[:, None], "two": TARGETS}[targets]
    weights = rng.uniform(0.2, 3.0, len(y)) if weighted else None
    ours, theirs = both(name, parameters, SCALED_X, y, weights)
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4 * size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4 * size)
    np.testing.assert_allclose(ours.predict(SCALED_X), theirs.predict(SCALED_X), atol=1e-3 * size)
    for attribute in ("coef_", "intercept_", "dual_gap_", "n_iter_"):
        assert np.shape(getattr(ours, attribute)) == np.shape(getattr(theirs, attribute)) or (
            attribute == "intercept_" and not ours.fit_intercept
        )
    assert ours.sparse_coef_.shape == theirs.sparse_coef_.shape
    assert ours.certified_zeros_.shape == ours.coef_.shape
    assert ours.certificate_.ok
    # what is proven of ours is a bound on theirs, and the other way round
    again = fl.certify(theirs, SCALED_X, y, sample_weight=weights, tol=1e-6)
    assert again.primal >= ours.certificate_.primal - ours.certificate_.gap
    assert ours.certificate_.primal >= again.primal - again.gap
    assert fl.certify(ours, SCALED_X, y, sample_weight=weights).relative_gap < 1.1e-9


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_any_storage_gives_what_centred_data_give(name, form, fit_intercept):
    """scikit-learn centres sparse columns without storing it; our intercept belongs to the problem."""
    X, y = uncentred()
    ours, _ = both(name, {"alpha": 0.3, "fit_intercept": fit_intercept}, FORMS[form](X), y)
    _, theirs = both(name, {"alpha": 0.3, "fit_intercept": fit_intercept}, X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
def test_paths_agree(name):
    y = DIABETES_Y - DIABETES_Y.mean()
    ours, theirs = getattr(fl, name), getattr(sklearn.linear_model, name)
    alphas, coefs, gaps, steps = ours.path(SCALED_X, y, l1_ratio=0.8, alphas=5, tol=1e-9, return_n_iter=True)
    others, expected, _ = theirs.path(SCALED_X, y, l1_ratio=0.8, alphas=alphas, tol=1e-12, max_iter=10**6)
    np.testing.assert_allclose(alphas, others)
    radius = np.sqrt(2.0 * gaps / (0.2 * alphas))  # what the gap and the strong convexity 0.2 alpha allow
    assert np.all(np.linalg.norm(coefs - expected, axis=0) <= radius + 1e-6)
    assert radius.max() < 0.05
    assert not coefs[:, 0].any()
    assert len(gaps) == len(steps) == 5
    np.testing.assert_array_equal(ours.path(SCALED_X, y, alphas=[0.1, 3.0], coef_init=np.ones(10))[0], [3.0, 0.1])
    with pytest.raises(ValueError, match="one path for each target"):
        ours.path(SCALED_X, TARGETS)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_logistic_regression_is_that_of_scikit_learn(l1_ratio, weighted):
    X, y = CANCER_X[:200, :8], CANCER_Y[:200]
    weights = rng.uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    ours = fl.SparseLogisticRegression(0.02, l1_ratio=l1_ratio, tol=1e-9).fit(X, y, weights)
    options = {"penalty": "elasticnet"} if SKLEARN < (1, 8) else {}  # from then on l1_ratio alone says it
    theirs = sklearn.linear_model.LogisticRegression(
        C=1 / (0.02 * weights.sum()), l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=10**5, **options
    ).fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert not theirs.coef_[ours.certified_zeros_].any()
    twin = fl.LogisticRegression(penalty="elasticnet", l1_ratio=l1_ratio, C=1 / (0.02 * weights.sum()), tol=1e-9)
    np.testing.assert_allclose(twin.fit(X, y, weights).coef_, ours.coef_, atol=1e-6)
    assert fl.certify(ours, X, y, sample_weight=weights).relative_gap < 1.1e-9


def test_several_classes_have_one_sparse_model_each():
    model = fl.SparseLogisticRegression(0.02, class_weight="balanced", tol=1e-7).fit(IRIS_X, IRIS_Y)
    assert model.coef_.shape == model.certified_zeros_.shape == (3, 4)
    assert model.certified_zeros_.any()
    np.testing.assert_allclose(model.predict_proba(IRIS_X).sum(axis=1), 1.0)
    part = fl.SparseLogisticRegression(0.02, class_weight={True: 1 / 50, False: 1 / 50}, tol=1e-7)
    np.testing.assert_allclose(part.fit(IRIS_X, IRIS_Y == 1).coef_[0], model.coef_[1], atol=1e-3)
    assert fl.certify(model, IRIS_X, IRIS_Y).ok
    assert sp.issparse(model.sparsify().coef_)


def test_groups_are_zero_together():
    y = SCALED_X[:, [0, 1, 2]] @ [1.0, 2.0, -1.0] + rng.normal(size=len(SCALED_X))
    groups = ["a", "a", "a", "b", "b", "c", "c", "c", "c", "c"]
    model = fl.GroupLasso(0.5, groups, "sqrt", tol=1e-8).fit(SCALED_X, y)
    zero = model.coef_ == 0.0
    assert zero.any()
    assert not zero.all()
    assert all(len(set(zero[np.array(groups) == g])) == 1 for g in "abc")
    np.testing.assert_array_equal(model.certified_zeros_, zero)
    sizes = fl.GroupLasso(0.5, [3, 2, 5], np.sqrt([3, 2, 5]), tol=1e-8).fit(SCALED_X, y)
    members = fl.GroupLasso(0.5, [[0, 1, 2], [3, 4], range(5, 10)], np.sqrt([3, 2, 5]), tol=1e-8).fit(SCALED_X, y)
    np.testing.assert_array_equal(sizes.coef_, model.coef_)
    np.testing.assert_array_equal(members.coef_, model.coef_)
    assert fl.certify(model, SCALED_X, y).relative_gap < 1.1e-8


def test_groups_of_one_are_the_lasso():
    ours = fl.GroupLasso(2.0, tol=1e-10).fit(SCALED_X, TARGETS)
    np.testing.assert_allclose(ours.coef_, fl.Lasso(2.0, tol=1e-10).fit(SCALED_X, TARGETS).coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("groups", "labels"),
    [
        (2, [0, 0, 1, 1]),
        ([7, 3, 7, 7], [1, 0, 1, 1]),
        ([3, 1], [0, 0, 0, 1]),
        (np.array([1, 3]), [0, 1, 1, 1]),
        ([[3, 0], [2, 1]], [0, 1, 1, 0]),
        (pd.Series(["x", "y", "x", "y"]), [0, 1, 0, 1]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),  # as many as columns: labels
    ],
    ids=str,
)
def test_groups_can_be_said_in_four_ways(groups, labels):
    np.testing.assert_array_equal(groups_of(groups, 4), labels)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (3, "4 columns cannot be divided"),
        (0, "cannot be divided"),
        (True, "groups must be the size"),
        ([1, 2], "neither a label for each of 4 columns nor sizes that add up to 4"),
        ([5, -1], "neither a label"),
        ([[0, 1], [1, 2, 3]], "every column from 0 to 3 exactly once"),
        ([[0, 1], [2]], "every column from 0 to 3 exactly once"),
        ([[0, 1, 2, 3], []], "exactly once|empty group"),
        ([0.5, 1.0, 2.0, 3.0], "groups must be the size"),
        (None, "groups must be the size"),
    ],
    ids=str,
)
def test_wrong_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        fl.GroupLasso(groups=groups).fit(np.eye(4), np.arange(4.0))


def test_a_robust_group_lasso():
    y = SCALED_X[:, 0] + 0.1 * rng.normal(size=len(SCALED_X))
    y[:20] += 100.0
    robust = fl.GroupLasso(0.01, 2, loss=fl.losses.Huber(0.5), tol=1e-6).fit(SCALED_X, y)
    assert abs(robust.coef_[0] - 1.0) < 0.1
    assert robust.certificate_.ok
    with pytest.raises(ValueError, match="use LinearClassifier"):
        fl.GroupLasso(loss="hinge").fit(SCALED_X, y)


SPARSE = [
    fl.Lasso(0.1),
    fl.ElasticNet(0.1, l1_ratio=0.7),
    fl.SparseLogisticRegression(0.03),
    fl.SparseLogisticRegression(0.03, l1_ratio=0.7),
    fl.GroupLasso(0.1, 2),
    fl.GroupLasso(0.15, 3, "sqrt", loss="huber"),
]


def proven_zeros(model, tol, seed):
    """Those of a random problem, checked against a conic solver that shares no code."""
    X, y = uncentred(30, 12, seed)
    y = y - y.mean()
    labels = hasattr(model, "predict_proba")
    if labels:
        y = np.where(y + 2.0 * np.random.default_rng(seed).normal(size=30) > 0, 1, -1)
    fitted = clone(model).set_params(tol=tol, fit_intercept=bool(seed % 2)).fit(X, y)
    objective = fitted._objective()
    (problem,) = objective.problems(fl.Design(X), [y.astype(float)], [np.ones(30)])
    penalty = problem.penalty
    if isinstance(penalty, fl.penalties.GroupL2) and penalty.weights is None:
        problem = problem.replace(penalty=fl.penalties.GroupL2(penalty.lam, penalty.groups, np.ones(6)))
    w, _ = reliable_optimum(problem)
    zeros = fitted.certified_zeros_.ravel()
    assert np.abs(w[zeros]).max(initial=0.0) < 1e-4 * np.abs(w).max()
    return int(zeros.sum())


@pytest.mark.parametrize("model", SPARSE, ids=str)
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-7])
def test_what_is_proven_zero_is_zero(model, tol):
    proven = sum(proven_zeros(model, tol, seed) for seed in range(6))
    assert proven or tol > 1e-2  # a rule that proves nothing would pass


@pytest.mark.slow
@pytest.mark.parametrize("model", SPARSE, ids=str)
def test_what_is_proven_zero_is_zero_in_a_thousand_problems(model):
    assert sum(proven_zeros(model, 10.0 ** -(seed % 8 + 1), seed) for seed in range(170)) > 170


@pytest.mark.parametrize("model", SPARSE, ids=str)
def test_weight_two_is_the_row_twice(model):
    X, y = uncentred(60)
    y = y > np.median(y) if hasattr(model, "predict_proba") else y
    weights = rng.integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weights)
    one = clone(model).set_params(tol=1e-9).fit(X, y, sample_weight=weights)
    other = clone(model).set_params(tol=1e-9).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    np.testing.assert_array_equal(one.certified_zeros_, other.certified_zeros_)


@pytest.mark.parametrize("model", SPARSE, ids=str)
def test_they_live_in_pipelines_searches_frames_and_files(model):
    frame = pd.DataFrame(DIABETES_X[:150], columns=[f"f{k}" for k in range(10)])
    if "groups" in model.get_params():
        model = clone(model).set_params(groups=2)
    y = DIABETES_Y[:150] > 140 if hasattr(model, "predict_proba") else DIABETES_Y[:150]
    name = type(model).__name__.lower()
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {f"{name}__alpha": [0.01, 0.1]}, cv=3)
    search.fit(frame, y)
    assert search.score(frame, y) > 0.15
    assert fl.certify(search, frame, y).ok
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(frame), search.predict(frame))
    np.testing.assert_array_equal(again[-1].certified_zeros_, search.best_estimator_[-1].certified_zeros_)
    assert list(clone(model).fit(frame, y).feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize("model", SPARSE, ids=str)
def test_warm_starts_give_the_same_model(model):
    X, y = uncentred()
    y = y > np.median(y) if hasattr(model, "predict_proba") else y
    warm = clone(model).set_params(warm_start=True, tol=1e-8).fit(X, y)
    first = np.max(warm.n_iter_)
    assert np.max(warm.fit(X, y).n_iter_) <= first
    warm.set_params(alpha=1.2 * model.alpha).fit(X, y)
    cold = clone(model).set_params(alpha=1.2 * model.alpha, tol=1e-8).fit(X, y)
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-8)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (fl.Lasso(-0.1), "alpha must be positive and finite"),
        (fl.Lasso("1"), "alpha must be a number"),
        (fl.Lasso(weights=-np.ones(30)), "weights must be positive and finite, got -1 for feature 0"),
        (fl.Lasso(weights=np.r_[np.ones(29), 0.0]), "weights must be positive and finite, got 0 for feature 29"),
        (fl.Lasso(weights=[np.nan] * 30), "weights must be positive and finite, got nan for feature 0"),
        (fl.Lasso(weights=1.0), r"weights must be a vector, one number for each feature, got shape \(\)"),
        (fl.Lasso(weights=np.ones((30, 1))), r"one number for each feature, got shape \(30, 1\)"),
        (fl.Lasso(weights=[1.0, 2.0]), "weights has 2 entries, but X has 30 features"),
        (fl.Lasso(weights=["a"] * 30), "weights"),
        (fl.Lasso(weights=np.ones(30), positive=True), "weights cannot be combined with positive=True"),
        (fl.Lasso(selection="greedy"), "selection must be one of 'cyclic', 'random'"),
        (fl.Lasso(precompute="junk"), "precompute must be one of True, False, 'auto'"),
        (fl.LassoCV(precompute=None), "precompute must be one of"),
        (fl.ElasticNet(copy_X="no"), "copy_X must be True or False"),
        (fl.Lasso(solver="simplex"), "unknown solver 'simplex'"),
        (fl.ElasticNet(l1_ratio=1.5), "l1_ratio must lie between 0 and 1"),
        (fl.ElasticNet(l1_ratio=None), "l1_ratio must be a number"),
        (fl.ElasticNet(alpha=-1.0), "alpha must be positive"),
        (fl.SparseLogisticRegression(np.inf), "alpha must be positive and finite"),
        (fl.SparseLogisticRegression(l1_ratio=-0.1), "l1_ratio must lie between 0 and 1"),
        (fl.SparseLogisticRegression(n_jobs=0), "n_jobs must be"),
        (fl.GroupLasso(weights="sizes"), "weights must be None, 'sqrt'"),
        (fl.GroupLasso(weights=[1.0]), r"weights has shape \(1,\), but there are 30 groups"),
        (fl.GroupLasso(weights=-np.ones(30)), "weights must be positive and finite"),
        (fl.LassoCV(alphas=0), "alphas must be a positive integer"),
        (fl.LassoCV(alphas=[]), "alphas is empty"),
        (fl.LassoCV(alphas=[0.1, -0.1]), r"alphas\[1\] == -0.1, must be >= 0"),
        (fl.LassoCV(alphas=[0.1], n_alphas=5), "n_alphas=5 would have no effect"),
        (fl.LassoCV(eps=2.0), "at most 1"),
        (fl.LassoCV(eps=0.0), "eps must be positive"),
        (fl.LassoCV(rule="two_standard_errors"), "rule must be one of 'best', 'one_standard_error'"),
        (fl.ElasticNetCV(l1_ratio=[0.5, 0.0]), "Automatic alpha grid generation is not supported for l1_ratio=0"),
        (fl.ElasticNetCV(l1_ratio=[]), "l1_ratio is empty"),
        (fl.ElasticNetCV(l1_ratio=2.0), "l1_ratio must lie between 0 and 1"),
        (fl.SparseLogisticRegressionCV(scoring="beauty"), "beauty"),
        (fl.GroupLassoCV(loss="logistic"), "use LinearClassifier"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(CANCER_X, CANCER_Y)
