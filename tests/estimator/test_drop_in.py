"""A script that changes only its import keeps working."""

import inspect
import warnings

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import fenchel

SCRIPTS = {
    "svm": """
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.datasets import load_iris, load_diabetes
X, y = load_iris(return_X_y=True)
model = LinearSVC("l2", "hinge", C=0.5, dual=True, random_state=0, max_iter=100000).fit(X, y)
result = [model.score(X, y), model.coef_.shape, model.intercept_.shape, model.classes_.tolist(), model.n_features_in_]
X, y = load_diabetes(return_X_y=True)
model = LinearSVR(epsilon=0.5, C=10.0, loss="squared_epsilon_insensitive", dual=False).fit(X, y)
result += [model.score(X, y), model.predict(X).shape]
""",
    "logistic": """
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X, y = load_breast_cancer(return_X_y=True)
model = LogisticRegression(solver="lbfgs", max_iter=1000, n_jobs=1, class_weight="balanced")
model = make_pipeline(StandardScaler(), model)
result = [cross_val_score(model, X, y, cv=3).mean(), model.fit(X, y).predict_proba(X)[:, 1].mean()]
X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = LogisticRegression(C=0.1, solver="newton-cg").fit(X, y)
result += [model.predict_proba(X)[:5].tolist(), model.coef_.shape, model.n_iter_.shape]
model = LogisticRegressionCV(Cs=3, cv=3, solver="lbfgs", max_iter=500).fit(X, y)
result += [model.C_.tolist(), model.scores_[0].shape, model.score(X, y)]
""",
    "ridge": """
from sklearn.linear_model import Ridge, RidgeCV, RidgeClassifier
from sklearn.datasets import load_diabetes, load_iris
X, y = load_diabetes(return_X_y=True)
model = Ridge(0.1, solver="cholesky", tol=1e-9, copy_X=False).fit(X, y)
result = [model.coef_.tolist(), model.intercept_, model.score(X, y)]
model = RidgeCV(alphas=[0.01, 0.1, 1.0], store_cv_results=True, gcv_mode="svd").fit(X, y)
result += [model.alpha_, model.best_score_, model.cv_results_.shape, model.coef_.tolist()]
X, y = load_iris(return_X_y=True)
model = RidgeClassifier(alpha=0.5, solver="svd", tol=1e-8).fit(X, y)
result += [model.score(X, y), model.decision_function(X)[0].tolist()]
""",
    "sparse": """
from sklearn.linear_model import ElasticNet, ElasticNetCV, Lasso, LassoCV
from sklearn.datasets import load_diabetes
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import scipy.sparse as sp
X, y = load_diabetes(return_X_y=True)
model = Lasso(0.1, precompute=True, selection="random", random_state=0, copy_X=False, max_iter=10000).fit(X, y)
result = [model.coef_.tolist(), model.intercept_, model.score(X, y), model.sparse_coef_.shape, model.dual_gap_ < 1.0]
X = StandardScaler().fit_transform(X)
model = ElasticNet(alpha=0.5, l1_ratio=0.7, tol=1e-6, warm_start=True, max_iter=10000).fit(X, np.column_stack([y, -y]))
result += [model.coef_.tolist(), model.intercept_.tolist(), model.predict(X)[:3].tolist(), model.sparse_coef_.nnz]
model = ElasticNet(alpha=0.5, fit_intercept=False).fit(sp.csc_matrix(X), y, sample_weight=np.arange(len(y)))
result += [model.predict(sp.csr_matrix(X))[:5].tolist()]
model = LassoCV(cv=4, eps=0.01, alphas=[0.1, 1.0, 2.0, 4.0], tol=1e-6, n_jobs=2, max_iter=10000).fit(X, y)
result += [model.alpha_, model.alphas_.tolist(), (model.mse_path_ / 1000).tolist(), (model.coef_ != 0).tolist()]
model = ElasticNetCV(l1_ratio=[0.5, 0.95], alphas=[0.01, 0.1, 1.0], cv=3, tol=1e-6, precompute="auto", verbose=0)
result += [model.fit(X, y).alpha_, model.l1_ratio_, model.mse_path_.shape, model.alphas_.tolist(), model.intercept_]
result += [SelectFromModel(Lasso(alpha=2.0)).fit(X, y).get_support().tolist()]
search = GridSearchCV(make_pipeline(StandardScaler(), Lasso()), {"lasso__alpha": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
result += [search.best_params_["lasso__alpha"], cross_val_score(ElasticNet(0.1), X, y, cv=3).tolist()]
alphas, coefs, gaps = Lasso.path(X, y - y.mean(), l1_ratio=1.0, alphas=[5.0, 1.0], tol=1e-6)
result += [alphas.tolist(), coefs.tolist(), len(gaps)]
""",
    "robust": """
from sklearn.linear_model import HuberRegressor, QuantileRegressor
from sklearn.datasets import load_diabetes
X, y = load_diabetes(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
model = HuberRegressor(epsilon=1.5, alpha=0.01, max_iter=20000).fit(X, y)
result = [model.scale_, model.outliers_.sum(), model.predict(X)[:10].tolist()]
model = QuantileRegressor(quantile=0.9, alpha=0.1, solver="highs").fit(X, y)
result += [model.coef_.shape, (y <= model.predict(X)).mean()]
""",
    "searches": """
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate, learning_curve, validation_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X, y = load_breast_cancer(return_X_y=True)
pipe = make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear", max_iter=1000))
grid = {"logisticregression__C": [0.1, 1.0], "logisticregression__penalty": ["l1", "l2"]}
result = [GridSearchCV(pipe, grid, cv=3, scoring="roc_auc", n_jobs=2).fit(X, y).best_score_]
result += [cross_validate(RidgeClassifier(), X, y, return_train_score=True)["train_score"].mean()]
pipe = make_pipeline(StandardScaler(), LogisticRegression())
result += [cross_val_predict(pipe, X, y, method="predict_proba").mean(axis=0).tolist()]
X, y = load_diabetes(return_X_y=True)
result += [learning_curve(Ridge(), X, y, cv=3, train_sizes=[0.5, 1.0])[2].mean(axis=1).tolist()]
result += [validation_curve(Ridge(), X, y, param_name="alpha", param_range=[0.01, 1], cv=3)[1].mean(axis=1).tolist()]
""",
    "selection": """
from sklearn.svm import LinearSVC
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.preprocessing import scale
X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
result = [RFE(RidgeClassifier(), n_features_to_select=5).fit(X, y).support_.tolist()]
result += [RFECV(LogisticRegression(), cv=3, step=10).fit(X, y).n_features_]
for model in (LogisticRegression(penalty="l1", solver="saga", C=0.05, tol=1e-6, max_iter=10000), LogisticRegression()):
    chosen = SelectFromModel(model).fit(X, y)
    result += [chosen.get_support().tolist(), chosen.threshold_]
result += [SelectFromModel(LinearSVC(penalty="l1", dual=False, C=0.02)).fit(X, y).threshold_]
result += [partial_dependence(LogisticRegression().fit(X, y), X, [0], grid_resolution=5)["average"].tolist()]
X, y = load_diabetes(return_X_y=True)
importance = permutation_importance(Ridge().fit(X, y), X, y, n_repeats=3, random_state=0).importances_mean
result += [importance.argsort()[-3:].tolist()]
""",
    "wrappers": """
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge, RidgeClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import scale
X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
logistic = LogisticRegression(max_iter=1000)
models = [
    CalibratedClassifierCV(LinearSVC(C=0.1), cv=3),
    CalibratedClassifierCV(RidgeClassifier(), method="isotonic", cv=3),
    BaggingClassifier(LinearSVC(C=0.1), n_estimators=5, random_state=0),
    AdaBoostClassifier(logistic, n_estimators=3, random_state=0),
    VotingClassifier([("a", logistic), ("b", LogisticRegression(C=0.01))], voting="soft"),
    StackingClassifier([("a", LinearSVC(C=0.1)), ("b", RidgeClassifier())], logistic, cv=3),
]
result = [model.fit(X, y).score(X, y) for model in models] + [models[0].predict_proba(X)[:, 1].mean()]
X, y = load_iris(return_X_y=True)
for model in (OneVsRestClassifier(logistic), OneVsOneClassifier(LinearSVC(C=0.1, max_iter=10000))):
    result += [model.fit(X, y).score(X, y)]
result += [OneVsRestClassifier(logistic).fit(X, (y[:, None] == [0, 1]).astype(int)).predict(X).mean(axis=0).tolist()]
X, y = load_diabetes(return_X_y=True)
stack = StackingRegressor([("a", LinearSVR(C=10)), ("b", HuberRegressor(max_iter=1000))], Ridge(), cv=3)
for model in (stack, TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp)):
    result += [model.fit(X, y).score(X, y)]
result += [MultiOutputRegressor(LinearSVR(C=10)).fit(X, np.column_stack([y, y])).predict(X).shape]
""",
    "frames": """
from sklearn.svm import LinearSVC
from sklearn.linear_model import LogisticRegression
import io, pickle
import joblib
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target.map({0: "malignant", 1: "benign"})
pipe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).set_output(transform="pandas").fit(X, y)
model = pipe[-1]
largest = pd.Series(model.coef_[0], index=model.feature_names_in_).abs().sort_values().index[-2:].tolist()
result = [largest, model.classes_.tolist(), pipe.predict(X)[:5].tolist(), model.n_features_in_]
frame = pipe[:-1].transform(X)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.predict(frame.to_numpy())
result += [[str(warning.message) for warning in caught]]
try:
    model.predict(frame[frame.columns[::-1]])
except ValueError as error:
    result += [str(error)]
small = pd.DataFrame({"size": X["mean radius"], "kind": (X["mean texture"] > 20).map({True: "rough", False: "smooth"})})
columns = make_column_transformer((StandardScaler(), ["size"]), (OneHotEncoder(sparse_output=False), ["kind"]))
pipe = make_pipeline(columns, LinearSVC()).set_output(transform="pandas").fit(small, y)
result += [pipe[-1].feature_names_in_.tolist(), pipe.score(small, y)]
stored = io.BytesIO()
joblib.dump(model, stored)
stored.seek(0)
copies = [joblib.load(stored), pickle.loads(pickle.dumps(model))]
result += [bool((copy.predict_proba(frame) == model.predict_proba(frame)).all()) for copy in copies]
fits = joblib.Parallel(2)(joblib.delayed(LogisticRegression(C=C).fit)(frame, y) for C in (0.1, 1.0))
result += [hasattr(clone(model), "coef_"), [fitted.score(frame, y) for fitted in fits]]
""",
    "attributes": """
from sklearn.svm import LinearSVR
from sklearn.linear_model import HuberRegressor, LogisticRegression, QuantileRegressor, Ridge, RidgeClassifier, RidgeCV
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale
X, y = load_diabetes(return_X_y=True)
models = [Ridge(), RidgeCV(), HuberRegressor(max_iter=1000), QuantileRegressor(alpha=0.01), RidgeCV(cv=3)]
result = [model.fit(X, y).intercept_.round(2).shape for model in models] + [LinearSVR().fit(X, y).intercept_.shape]
result += [models[1].best_score_.round(-2), models[2].scale_.round(0), models[4].best_score_.round(1)]
result += [Ridge().fit(X, y[:, None]).predict(X).shape, Ridge().fit(X, np.column_stack([y, y])).coef_.shape]
X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
result += [RidgeClassifier().fit(X, y).coef_.shape, RidgeClassifier().fit(X, y).decision_function(X).shape]
sparse = LogisticRegression(C=0.1).fit(X, y == 1).sparsify()
result += [sparse.coef_.shape, sparse.predict(X)[:5].tolist(), sparse.densify().coef_.shape]
""",
}


def run(script):
    names = {"np": np, "warnings": warnings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of convergence and of defaults that will change
        exec(script, names)
    return names["result"]


def ours(script):
    return script.replace("sklearn.svm", "fenchel").replace("sklearn.linear_model", "fenchel")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_changes_only_its_import_keeps_working(name):
    one, other = run(ours(SCRIPTS[name])), run(SCRIPTS[name])
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        if np.asarray(a).dtype.kind in "US":
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=0.02, atol=0.02)


NAMES = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
]


def pair(name):
    return getattr(fenchel, name), getattr(sklearn.svm if "SV" in name else sklearn.linear_model, name)


@pytest.mark.parametrize("name", NAMES)
def test_constructors_take_what_those_of_scikit_learn_take(name):
    ours, theirs = (inspect.signature(kind).parameters for kind in pair(name))
    gone = {"multi_class", "store_cv_values"}  # of old versions
    assert not set(theirs) - set(ours) - gone
    positional = [key for key, value in theirs.items() if value.kind is value.POSITIONAL_OR_KEYWORD]
    assert [key for key in ours if key in positional][: len(positional)] == positional
    # limits on steps count other steps, names of algorithms mean "auto", some of their defaults are warnings, and those
    # of the penalty (in version 1.8), of stored results (in 1.7) and of paths (in 1.9) have changed
    other = {"max_iter", "solver", "penalty", "l1_ratio", "store_cv_results", "alphas", "n_alphas"} | {
        key for key, value in theirs.items() if value.default in ("warn", "deprecated")
    }
    same = [key for key in theirs if key in ours and key not in other]
    assert {key: ours[key].default for key in same} == {key: theirs[key].default for key in same}


@pytest.mark.parametrize("name", NAMES)
def test_methods_and_fitted_attributes_of_scikit_learn_are_there(name):
    ours, theirs = pair(name)
    # callbacks are scikit-learn's own machinery; `param` is a leftover in the class's body
    missing = {name for name in dir(theirs) if not name.startswith("_") and not name.endswith("_")} - set(dir(ours))
    assert missing <= {"set_callbacks", "param"}
    if hasattr(theirs, "decision_function"):
        X, y = load_breast_cancer(return_X_y=True)
        data = [(scale(X), y), load_iris(return_X_y=True)]
    else:
        data = [load_diabetes(return_X_y=True)]
    for X, y in data:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, other = ours().fit(X, y), theirs().fit(X, y)
        for attribute, value in vars(other).items():
            if attribute.endswith("_") and not attribute.startswith("_") and attribute not in ("n_iter_", "solver_"):
                assert np.shape(getattr(one, attribute)) == np.shape(value), attribute


def test_several_labels_a_sample_are_refused_with_a_way_out():
    X, y = load_iris(return_X_y=True)
    for model in (fenchel.RidgeClassifier(), fenchel.LogisticRegressionCV()):
        with pytest.raises(ValueError, match="OneVsRestClassifier"):
            model.fit(X, np.column_stack([y == 0, y == 1]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("legacy", [True, False])
def test_without_a_refit_the_model_is_the_mean_of_the_best_models_of_the_folds(classes, legacy):
    X, y = load_iris(return_X_y=True)
    X, y = scale(X)[y < classes], y[y < classes]
    X = X + np.random.default_rng(0).normal(size=X.shape)
    params = {"Cs": [0.01, 0.1, 1.0], "cv": 3, "refit": False, "tol": 1e-10, "use_legacy_attributes": legacy}
    ours, theirs = pair("LogisticRegressionCV")
    one = ours(**params).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = theirs(**params, max_iter=10000, scoring="accuracy").fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-3)
    np.testing.assert_allclose(one.C_, other.C_)
    assert np.shape(one.C_) == np.shape(other.C_)
    assert 1e-10 < one.certificate_.relative_gap < 1.0
    assert fenchel.certify(one, X, y).primal == pytest.approx(one.certificate_.primal)


@pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
def test_check_input_false_takes_the_data_as_they_are(name):
    X, y = load_diabetes(return_X_y=True)
    ours, _ = pair(name)
    one, other = ours(alpha=0.1).fit(X, y), ours(alpha=0.1).fit(np.asfortranarray(X), y, None, check_input=False)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=0.1)
    assert other.n_features_in_ == 10
    for wrong in (X[:, 0], np.where(X > 0.1, np.nan, X)):
        with pytest.raises((TypeError, ValueError)):
            ours().fit(wrong, y, check_input=False)
    with pytest.raises(TypeError, match="check_input must be True or False"):
        ours().fit(X, y, check_input="no")


def test_a_cheap_intercept_is_what_a_model_without_its_penalty_has():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    plain = fenchel.LogisticRegression().fit(X, y)
    cheap = fenchel.LogisticRegression(solver="liblinear", intercept_scaling=1e4).fit(X, y)
    assert np.array_equal(plain.coef_, cheap.coef_)
    with pytest.raises(ValueError, match="would have no effect"):
        fenchel.LogisticRegression(intercept_scaling=0.1).fit(X, y)
