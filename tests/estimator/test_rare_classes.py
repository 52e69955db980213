"""Classes that a bootstrap, a fold or the weights leave out; and what searches hand to splitters and scorers."""

from copy import deepcopy

import numpy as np
import pytest
import sklearn
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold
from sklearn.svm import LinearSVC
from sklearn.utils.metadata_routing import MetadataRouter

import fenchel as fl
from fenchel.estimator.search.cross_validation import choice, comparable
from fenchel.estimator.sparse.gram import require_gram
from fenchel.solver.many import solve_classes

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(60, 4)), (np.arange(60) < 3).astype(int)
IRIS_X, IRIS_Y = load_iris(return_X_y=True)
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)
WITHOUT = np.where(Y == 1, 0.0, 1.0)
CLASSIFIERS = [
    fl.LogisticRegression(),
    fl.LogisticRegression(penalty="l1", multi_class="ovr"),
    fl.LinearSVC(),
    fl.LinearSVC(loss="hinge"),
    fl.LinearSVC(multi_class="crammer_singer", tol=1e-3),
    fl.RidgeClassifier(),
    fl.SparseLogisticRegression(),
    fl.LinearClassifier("exponential"),
    fl.KernelClassifier(),
]
missing = pytest.mark.filterwarnings("ignore:.*knows? nothing")


@pytest.mark.parametrize("k", [[0, 1], [0], [2]], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        *(each for each in CLASSIFIERS if not isinstance(each, fl.KernelClassifier)),
        fl.LpClassifier(lam=0.1),
        fl.LpClassifier("hinge", p=1.5, lam=0.1, fit_intercept=False),
        sklearn.linear_model.LogisticRegression(max_iter=1000),
        LinearSVC(),
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_samples_that_lack_classes_are_certified(model, k, classes):
    """The objective is that of the classes of the fit; other models of it are above the bound."""
    A, y = (IRIS_X, IRIS_Y) if classes == 3 else (IRIS_X[IRIS_Y > 0], IRIS_Y[IRIS_Y > 0])
    fitted, fewer = clone(model).fit(A, y), np.isin(y, k if classes == 3 else [2])
    certificate = fl.certify(fitted, A[fewer], y[fewer])
    assert np.isfinite(certificate.gap)
    assert certificate.primal - certificate.gap <= certificate.dual
    for factor in (0.0, 0.3, 1.0, 3.0):
        other = deepcopy(fitted)
        other.coef_, other.intercept_ = factor * fitted.coef_, factor * fitted.intercept_
        primal = fl.certify(other, A[fewer], y[fewer], effort="low").primal
        assert primal >= certificate.dual - certificate.rounding


def test_the_bound_of_one_class_is_near_the_optimum():
    """Without a free intercept: a solve in which the others have weight zero."""
    A, y = IRIS_X, np.where(IRIS_Y == 0, 1.0, -1.0)
    best = fl.solve(fl.Problem(A, y, fl.losses.Logistic(), fl.penalties.L2(0.1), sample_weight=y > 0.0), tol=1e-9)
    one = fl.Problem(A[y > 0.0], np.ones(50), fl.losses.Logistic(), fl.penalties.L2(0.1))
    certificate = fl.certify(one, best.w)
    assert certificate.ok
    assert certificate.primal == pytest.approx(best.certificate.primal, rel=1e-9)


def test_one_class_is_not_solved():
    one = fl.Problem(IRIS_X, np.ones(150), fl.losses.Logistic(), fl.penalties.L2(0.1))
    for solve in (fl.solve, lambda p: fl.path(p, lams=[0.1]), lambda p: fl.certified_path(p, 0.1, 1.0)):
        with pytest.raises(ValueError, match=r"y has one class only \(\+1 everywhere\); a classifier needs two"):
            solve(one)


@missing
@pytest.mark.parametrize("model", CLASSIFIERS[:3] + CLASSIFIERS[5:6], ids=str)
def test_bagging_works_where_a_bootstrap_lacks_a_class(model):
    bagged = BaggingClassifier(model, n_estimators=30, random_state=0).fit(X, Y)
    assert bagged.score(X, Y) == 57 / 60


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_a_class_without_weight_gives_a_certified_constant_model(model):
    with pytest.warns(UserWarning, match="no sample of the class 1 has a weight"):
        model.fit(X, Y, WITHOUT)
    assert np.all(model.predict(X) == 0)
    assert model.certificate_.ok
    assert 0.0 <= model.certificate_.primal <= model.certificate_.gap
    assert model.certificate_.gap <= max(model.certificate_.atol, 1e-12)
    if hasattr(model, "coef_"):
        assert not np.any(model.coef_)


@missing
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_other_classes_do_not_notice_one_without_weight(model):
    """Against the rest they are the models of the samples that count."""
    weights = np.where(IRIS_Y == 2, 0.0, 1.0)
    model.set_params(tol=1e-3).fit(IRIS_X, IRIS_Y, weights)
    assert model.certificate_.ok
    assert model.intercept_.shape == (3,)
    assert np.array_equal(model.predict(IRIS_X[:100]), IRIS_Y[:100])


def test_without_an_intercept_a_single_class_is_a_problem_like_others():
    with pytest.warns(UserWarning, match="knows nothing"):
        model = fl.LogisticRegression(fit_intercept=False, tol=1e-8).fit(X, Y, WITHOUT)
    assert model.certificate_.ok
    assert np.any(model.coef_)


@missing
@pytest.mark.parametrize("model", [fl.LogisticRegression(), fl.LinearSVC(), fl.KernelClassifier()], ids=str)
def test_a_constant_model_does_not_hide_a_wrong_solver(model):
    with pytest.raises(ValueError, match="unknown solver 'bogus'"):
        clone(model).set_params(solver="bogus").fit(X, Y, WITHOUT)


def test_options_of_a_solver_are_checked_for_constant_models_too():
    signs = 2.0 * Y - 1.0
    given = {"penalty": fl.penalties.L2(1.0), "intercept": True, "sample_weight": WITHOUT}
    problem = fl.Problem(X, signs, fl.losses.Logistic(), **given)
    given = {"tol": 1e-4, "solver": "sdca"}
    with pytest.raises(TypeError, match="foo"):
        solve_classes([problem], None, True, {**given, "foo": 1})
    (result,) = solve_classes([problem], None, True, {**given, "sampling": "uniform"})
    assert result.status == "certified"
    assert result.n_iter == 0


@missing
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_penalty_that_needs_weights_has_no_constant_model(loss):
    model = fl.LinearClassifier(loss, fl.penalties.Entropy(0.1))
    with pytest.raises(ValueError, match=r"an intercept alone, but Entropy\(lam=0.1\) is not zero for zero weights"):
        model.fit(X, Y, WITHOUT)
    assert model.set_params(fit_intercept=False).fit(X, Y, WITHOUT).certificate_.ok


FOLDS = [
    (np.arange(56), np.arange(28, 60)),
    (np.arange(10, 60), np.arange(56)),
    (np.arange(0, 60, 2), np.arange(1, 60, 2)),
]
RARE_Y = np.repeat([0, 1, 2], [28, 28, 4])
RARE_X = X + RARE_Y[:, None]


@missing
@pytest.mark.filterwarnings("ignore", category=FutureWarning)
@pytest.mark.filterwarnings("ignore:Only one class is present", "ignore:y_pred contains")
@pytest.mark.parametrize("scoring", ["neg_brier_score", "roc_auc_ovr", "balanced_accuracy", "accuracy"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_folds_that_miss_a_class_are_those_of_scikit_learn(scoring, classes):
    y = np.minimum(RARE_Y, 1) if classes == 2 else RARE_Y
    folds = FOLDS if classes == 3 else [(np.arange(20, 60), np.arange(30, 60)), *FOLDS[1:]]
    given = {"Cs": [0.1, 1.0], "cv": folds, "scoring": scoring, "tol": 1e-8}
    ours = fl.LogisticRegressionCV(**given).fit(RARE_X, y)
    theirs = sklearn.linear_model.LogisticRegressionCV(**given, max_iter=10_000).fit(RARE_X, y)
    np.testing.assert_allclose(ours.scores_[1], theirs.scores_[1], atol=1e-2)
    assert ours.certificate_.ok


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "accuracy"])
def test_a_fold_with_one_class_has_constant_models(scoring):
    folds = [(np.arange(3, 40), np.arange(60)), (np.arange(60), np.arange(60))]
    with pytest.warns(UserWarning, match="fold 0 has no training sample of the class 1"):
        model = fl.SparseLogisticRegressionCV(alphas=[0.1, 0.01], cv=folds, scoring=scoring).fit(X, Y)
    assert np.ptp(model.score_path_[:, 0]) == 0.0
    assert model.certificate_.ok
    with pytest.warns(UserWarning, match="fold 0 has no training sample of the class 1"):
        model = fl.LogisticRegressionCV(Cs=[0.1, 1.0], cv=folds, scoring=scoring).fit(X, Y)
    assert not np.any(model.coefs_paths_[1][0, :, :-1])


def never_positive_and_undefined_for_large_weights(model, X, y, sample_weight=None):
    return np.nan if np.abs(model.coef_).max() > 0.2 else -np.mean((model.predict(X) - y) ** 2) - 1.0


@pytest.mark.parametrize(
    ("model", "weakest"),
    [
        (fl.LogisticRegressionCV(Cs=[1e-3, 10.0, 1e3]), {"C_": 1e-3}),
        (fl.SparseLogisticRegressionCV(alphas=[0.9, 1e-4]), {"alpha_": 0.9}),
        (fl.RidgeCV(alphas=[1e-3, 1e4]), {"alpha_": 1e4}),
    ],
    ids=str,
)
def test_an_undefined_score_is_the_worst(model, weakest):
    model.set_params(cv=3, scoring=never_positive_and_undefined_for_large_weights).fit(RARE_X, (RARE_X[:, 0] > 0) + 0)
    for name, value in weakest.items():
        assert np.all(getattr(model, name) == value)


def test_scores_are_compared_on_the_folds_where_some_are_defined():
    nan = np.nan
    scores = np.array([[nan, nan, nan], [-2.0, -3.0, nan], [-2.0, -1.5, -0.1]])
    assert np.array_equal(comparable(scores), [[-2.0, -3.0, -np.inf], [-2.0, -1.5, -0.1]])
    assert choice(-scores.T[None], "best") == (0, 0)
    with pytest.warns(UserWarning, match="nan on every fold; the first candidate is taken"):
        assert choice(np.full((1, 2, 3), nan), "one_standard_error") == (0, 0)


@pytest.mark.parametrize("scoring", ["f1", "f1_macro", make_scorer(f1_score, average="macro"), "neg_brier_score"])
def test_scores_of_labels_that_are_text_give_no_warning(scoring):
    y = np.where(RARE_X[:, 0] > 0.0, "yes", "no")
    assert fl.LogisticRegressionCV(Cs=2, cv=3, scoring=scoring).fit(RARE_X, y).certificate_.ok


def test_the_fold_and_the_class_that_it_lacks_are_named():
    said = (
        "fold 0 has no training sample of the class 0; fold 1 has no training sample of the class 1; "
        "fold 2 has no training sample of the class 2. The models of such a fold know nothing about the class"
    )
    with pytest.warns(UserWarning, match=said):
        fl.LogisticRegressionCV(cv=KFold(3), Cs=2).fit(IRIS_X, IRIS_Y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


SEARCHES = [
    (fl.LassoCV(alphas=5, cv=GroupKFold(3)), sklearn.linear_model.LassoCV, "alpha_"),
    (fl.RidgeCV(cv=GroupKFold(3)), sklearn.linear_model.RidgeCV, "best_score_"),
]


@pytest.mark.parametrize(("ours", "kind", "found"), SEARCHES, ids=str)
def test_groups_reach_the_splitter(routing, ours, kind, found):
    groups = np.arange(len(DIABETES_Y)) % 7
    given = {"alphas": 5} if kind is sklearn.linear_model.LassoCV else {}
    theirs = kind(cv=GroupKFold(3), **given).fit(DIABETES_X, DIABETES_Y, groups=groups)
    ours.fit(DIABETES_X, DIABETES_Y, groups=groups)
    assert getattr(ours, found) == pytest.approx(getattr(theirs, found), rel=1e-4)
    plain = fl.LassoCV(alphas=5).fit(DIABETES_X, DIABETES_Y)
    assert plain.certificate_.ok


@pytest.mark.parametrize("requested", [True, False])
def test_weights_reach_the_scorer_if_it_asks_for_them(routing, requested):
    weights = np.linspace(0.1, 3.0, 60)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=requested)
    model = fl.LogisticRegressionCV(Cs=[1.0], cv=3, scoring=scorer).fit(RARE_X, RARE_Y, sample_weight=weights)
    is_a_count = np.abs(model.scores_[1] * 20 - np.round(model.scores_[1] * 20)).max() < 1e-9
    assert is_a_count is not requested


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("kind", [fl.LassoCV, fl.RidgeCV, fl.LogisticRegressionCV, fl.SparseLogisticRegressionCV])
def test_a_search_is_a_router_whether_or_not_routing_is_on(kind, on):
    with sklearn.config_context(enable_metadata_routing=on):
        assert isinstance(kind().get_metadata_routing(), MetadataRouter)


def test_groups_without_routing_are_an_error():
    for model in (fl.LassoCV(), fl.RidgeCV(cv=3), fl.LogisticRegressionCV(), fl.SparseLogisticRegressionCV()):
        with pytest.raises(ValueError, match="only supported if enable_metadata_routing=True"):
            model.fit(IRIS_X, IRIS_Y, groups=IRIS_Y)


# Gram matrices and grids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_right_gram_matrix_is_accepted(weighted):
    s = np.linspace(0.5, 2.0, 60) if weighted else np.ones(60)
    shifted = X + 3.0
    centred = shifted - np.average(shifted, axis=0, weights=s)
    for gram in (shifted.T @ (s[:, None] * shifted), centred.T @ (s[:, None] * centred)):
        for part in (gram, gram * 60 / s.sum(), gram.astype(np.float32)):
            assert fl.Lasso(0.1, precompute=part).fit(shifted, Y, sample_weight=s).certificate_.ok


def test_a_wrong_gram_matrix_is_refused():
    wrong = X.T @ X
    wrong[1, 2] += 1.0
    for fit in (
        lambda: fl.Lasso(0.1, precompute=wrong).fit(X, Y),
        lambda: fl.ElasticNetCV(precompute=wrong).fit(X, Y),
        lambda: fl.Lasso.path(X, Y, precompute=wrong),
    ):
        with pytest.raises(ValueError, match=r"Gram matrix.*did not pass validation"):
            fit()
    with pytest.raises(ValueError, match=r"precompute has shape \(3, 3\), but X'X has shape \(4, 4\)"):
        fl.Lasso(0.1, precompute=np.eye(3)).fit(X, Y)


@pytest.mark.parametrize("centred", [False, True])
def test_many_features_hide_no_wrong_gram_matrix(centred):
    wide = rng.normal(size=(300, 600)) + 2.0
    used = wide - wide.mean(axis=0) if centred else wide
    gram, signs = used.T @ used, rng.choice([-1.0, 1.0], 600)
    require_gram(gram, wide)
    require_gram(gram.astype(np.float32), wide)
    length = np.linalg.norm(wide, axis=0)
    unseen = np.zeros((600, 600))  # not in products, only on the diagonal
    r = np.random.default_rng(0).choice([-1.0, 1.0], 600) * np.linspace(0.5, 1.0, 600)
    unseen[:2, :2] = 0.01 * length[0] ** 2 * np.outer([r[1], -r[0]], [r[1], -r[0]])
    for error in (np.eye(600) * length**2 * 0.01, 0.01 * np.outer(signs * length, signs * length), unseen):
        with pytest.raises(ValueError, match=r"Gram matrix.*did not pass validation"):
            require_gram(gram + error, wide)


def test_the_words_of_scikit_learn_for_parameters_not_given():
    plain = fl.LassoCV().fit(X, Y)
    assert fl.LassoCV(alphas="warn", n_alphas="deprecated").fit(X, Y).alpha_ == plain.alpha_
    assert len(fl.LassoCV(alphas="warn", n_alphas=7).fit(X, Y).alphas_) == 7
    assert len(fl.LassoCV(alphas=None).fit(X, Y).alphas_) == 100


@pytest.mark.parametrize("model", [fl.LogisticRegressionCV(cv=3), fl.RidgeCV(alphas=[0.1, 1.0], cv=3)], ids=str)
def test_a_fold_without_any_weight_is_an_error_that_says_so(model):
    X, y, weights = np.random.default_rng(0).normal(size=(13, 2)), np.arange(13) % 4, np.zeros(13)
    weights[[0, 1, 2]] = 1.0
    with pytest.raises(ValueError, match="all training samples of a fold have weight zero"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_folds_without_a_score_count_for_no_mean_of_the_best_models():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = np.sort((X[:, 0] > 0).astype(int))  # test samples of most folds are of one class
    model = fl.LogisticRegressionCV(Cs=3, cv=KFold(5), scoring="roc_auc", refit=False).fit(X, y)
    scored = ~np.isnan(model.scores_[1]).all(axis=1)
    assert 0 < scored.sum() < 5
    best = np.argmax(model.scores_[1][scored], axis=1)
    np.testing.assert_allclose(model.C_, np.mean(model.Cs_[best]))
    means = model.coefs_paths_[1][scored, best].mean(axis=0)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), means, rtol=1e-6)


def test_the_rank_of_an_earlier_fit_is_gone():
    model = fl.Ridge(alpha=0.0).fit(X, Y)
    assert model.rank_ == X.shape[1]
    assert not hasattr(model.set_params(alpha=1.0).fit(X, Y), "rank_")


def test_a_truth_value_of_numpy_is_no_gram_matrix():
    assert fl.Lasso(0.1, precompute=np.True_).fit(X, Y).certificate_.ok
    assert fl.LassoCV(alphas=3, precompute=np.False_).fit(X, Y).certificate_.ok


def test_the_log_loss_of_a_class_that_a_fold_never_saw_says_only_how_small_tol_is():
    """The intercept of the missing class tends to -inf, and its score with it: no value is the right one."""
    X, y = load_iris(return_X_y=True)  # in order: KFold(3) trains without the class of the test samples
    scores = []
    for tol in (1e-2, 1e-4, 1e-8):
        model = fl.LogisticRegressionCV(Cs=[1e-4], cv=KFold(3), scoring="neg_log_loss", tol=tol)
        with pytest.warns(UserWarning, match="fold 0 has no training sample of the class 0"):
            model.fit(X, y)
        scores.append(model.scores_[0][0, 0])
    assert scores[0] > scores[1] + 2.0
    assert scores[1] > scores[2] + 2.0
