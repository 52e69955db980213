"""A script that changes only its import keeps working."""

import warnings

import numpy as np
import pytest

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
}


def run(script):
    names = {}
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
        np.testing.assert_allclose(a, b, rtol=0.02, atol=0.02)
