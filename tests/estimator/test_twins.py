import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel as fl
from fenchel.estimator.exchange.onnx import register
from tests.helpers.models import classification, regression

linear_model, svm = sklearn.linear_model, sklearn.svm
X, Y = classification(classes=2)
X3, Y3 = classification(classes=3)
R, T = regression()
R2, T2 = regression(targets=2)
SEPARABLE = X3, np.array(["no", "yes"])[(X3[:, 0] + X3[:, 1] > 0).astype(int)]

REGRESSORS = [
    (fl.Ridge(alpha=0.3), linear_model.Ridge),
    (fl.Ridge(positive=True), linear_model.Ridge),
    (fl.RidgeCV(), linear_model.RidgeCV),
    (fl.Lasso(alpha=0.1), linear_model.Lasso),
    (fl.ElasticNet(alpha=0.1, l1_ratio=0.7), linear_model.ElasticNet),
    (fl.LassoCV(alphas=5), linear_model.LassoCV),
    (fl.ElasticNetCV(alphas=5), linear_model.ElasticNetCV),
    (fl.LinearSVR(C=2.0, epsilon=0.1), svm.LinearSVR),
    (fl.HuberRegressor(), linear_model.HuberRegressor),
    (fl.QuantileRegressor(alpha=0.1), linear_model.QuantileRegressor),
    (fl.FusedLasso(alpha=0.1), linear_model.LinearRegression),
    (fl.GroupLasso(groups=np.array([0, 0, 1, 1, 2, 2]), alpha=0.1), linear_model.LinearRegression),
    (fl.LinearRegressor(loss="absolute", fit_intercept=False), linear_model.LinearRegression),
    (fl.LpRegressor(), linear_model.LinearRegression),
]
CLASSIFIERS = [
    (fl.LogisticRegression(C=0.5), linear_model.LogisticRegression),
    (fl.LogisticRegression(C=0.5, l1_ratio=0.5), linear_model.LogisticRegression),
    (fl.LogisticRegression(multi_class="ovr"), OneVsRestClassifier),
    (fl.LogisticRegressionCV(Cs=3), linear_model.LogisticRegressionCV),
    (fl.SparseLogisticRegression(alpha=0.01), OneVsRestClassifier),
    (fl.LinearClassifier(), OneVsRestClassifier),
    (fl.LinearClassifier(loss="hinge"), svm.LinearSVC),
    (fl.LinearSVC(C=0.5), svm.LinearSVC),
    (fl.LinearSVC(penalty="l1"), svm.LinearSVC),
    (fl.LinearSVC(multi_class="crammer_singer"), svm.LinearSVC),
    (fl.RidgeClassifier(), linear_model.RidgeClassifier),
    (fl.LpClassifier(loss="logistic"), OneVsRestClassifier),
]
CASES = [(model, kind, R, T) for model, kind in REGRESSORS]
CASES += [(model, kind, R2, T2) for model, kind in REGRESSORS if model.__sklearn_tags__().target_tags.multi_output]
CASES += [(model, kind, X3, Y3) for model, kind in CLASSIFIERS]
CASES += [
    (model, linear_model.LogisticRegression if kind is OneVsRestClassifier else kind, X, Y)
    for model, kind in CLASSIFIERS
]
CASES += [
    (fl.LpPerceptron(), svm.LinearSVC, *SEPARABLE),
    (fl.SparsePerceptron(), svm.LinearSVC, *SEPARABLE),
    (fl.MaxMarginClassifier(), svm.LinearSVC, *SEPARABLE),
    (fl.MinNormRegressor(), linear_model.LinearRegression, R[:4], T[:4]),
]
NAMES = [f"{type(model).__name__}-{k}" for k, (model, *_) in enumerate(CASES)]
OUTPUTS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def same_outputs(model, twin, X):
    for name in OUTPUTS:
        assert hasattr(model, name) == hasattr(twin, name) or name == "predict_log_proba", name
        if hasattr(twin, name) and hasattr(model, name):
            one, other = getattr(model, name)(X), getattr(twin, name)(X)
            assert np.shape(one) == np.shape(other), name
            if np.asarray(one).dtype.kind in "US":
                assert np.array_equal(one, other)
            else:
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10, err_msg=name)


@pytest.mark.filterwarnings("ignore::fenchel.NotCertifiedWarning")
@pytest.mark.parametrize(("model", "kind", "X", "y"), CASES, ids=NAMES)
def test_a_twin_has_the_scores_labels_and_probabilities_of_the_model(model, kind, X, y):
    fitted = clone(model).fit(X, y)
    twin = fitted.to_sklearn()
    assert type(twin) is kind
    same_outputs(fitted, twin, X)
    same_outputs(fitted, twin, sp.csr_array(X))
    assert twin.score(X, y) == pytest.approx(fitted.score(X, y), abs=1e-12)
    twin._validate_params()
    assert b"fenchel" not in pickle.dumps(twin)


def test_a_twin_has_parameters_names_of_features_and_weights_of_its_own():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fl.LogisticRegression(C=0.25, class_weight="balanced", max_iter=7000, solver="newton").fit(frame, Y)
    twin = model.to_sklearn()
    assert (twin.C, twin.class_weight, twin.solver) == (0.25, "balanced", "lbfgs")
    assert twin.feature_names_in_.tolist() == list("abcdef")
    twin.coef_ += 1.0
    assert not np.array_equal(twin.coef_, model.coef_)
    twin.fit(frame, Y)  # scikit-learn's own fit
    np.testing.assert_allclose(twin.coef_, model.coef_, atol=0.02)


def test_sparse_weights_stay_sparse():
    model = fl.LogisticRegression(l1_ratio=1.0, C=0.1).fit(X, Y).sparsify()
    twin = model.to_sklearn()
    assert sp.issparse(twin.coef_)
    same_outputs(model, twin, X)


def test_models_that_are_not_linear_or_not_fitted_are_refused():
    with pytest.raises(TypeError, match=r"function of a kernel.*support_vectors_"):
        fl.KernelClassifier().fit(X, Y).to_sklearn()
    with pytest.raises(TypeError, match="function of a kernel"):
        fl.MaxMarginClassifier(kernel="rbf").fit(*SEPARABLE).to_sklearn()
    with pytest.raises(NotFittedError):
        fl.Ridge().to_sklearn()


EXPORTED = [
    (fl.LogisticRegression(), X, Y),
    (fl.LogisticRegression(), X3, Y3),
    (fl.LogisticRegression(multi_class="ovr"), X3, Y3),
    (fl.LinearClassifier(), X3, Y3),
    (fl.RidgeClassifier(), X, Y),
    (fl.Lasso(alpha=0.1), R, T),
    (fl.HuberRegressor(), R, T),
    (fl.FusedLasso(alpha=0.1), R, T),
]


@pytest.mark.parametrize("registered", [False, True], ids=["twin", "registered"])
@pytest.mark.parametrize("k", range(len(EXPORTED)))
def test_onnx_has_the_outputs_of_the_model(k, registered):
    onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, X, y = EXPORTED[k]
    pipe = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    if registered:
        register()
    exported = pipe if registered else make_pipeline(pipe[0], pipe[1].to_sklearn())
    features = X.astype(np.float32)
    options = {id(exported[-1]): {"zipmap": False}} if hasattr(pipe, "predict_proba") else None
    file = onnx.to_onnx(exported, features[:1], options=options).SerializeToString()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    first, *rest = session.run(None, {session.get_inputs()[0].name: features})
    if not hasattr(model, "decision_function"):
        np.testing.assert_allclose(first[:, 0], pipe.predict(features), rtol=1e-5, atol=1e-5)
        return
    assert np.array_equal(first, pipe.predict(features))
    if hasattr(pipe, "predict_proba"):
        np.testing.assert_allclose(rest[0], pipe.predict_proba(features), rtol=0, atol=1e-6)


def test_onnx_of_a_linear_svc_has_its_labels():
    onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    features = X3.astype(np.float32)
    model = fl.LinearSVC().fit(features, Y3)
    file = onnx.to_onnx(model.to_sklearn(), features[:1]).SerializeToString()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(None, {"X": features})[0], model.predict(features))


def test_skops_stores_a_twin_without_types_to_be_trusted():
    io = pytest.importorskip("skops.io")
    model = fl.LogisticRegression().fit(X3, Y3)
    stored = io.dumps(model.to_sklearn())
    assert io.get_untrusted_types(data=stored) == []
    same_outputs(model, io.loads(stored), X3)


def test_a_twin_of_a_stream_has_nothing_of_ours():
    model = fl.LpClassifier(lam="auto").partial_fit(X, Y, classes=np.unique(Y))
    assert b"fenchel" not in pickle.dumps(model.to_sklearn())


@pytest.mark.parametrize("model", [fl.LogisticRegression(penalty=None, tol=1e-8), fl.LogisticRegression(C=np.inf)])
def test_a_twin_has_the_objective_of_a_model_without_a_penalty(model):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(80, 3)), rng.integers(2, size=80)
    twin = model.fit(Z, labels).to_sklearn()
    assert fl.certify(twin, Z, labels).relative_gap < 1e-4
