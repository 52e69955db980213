"""X in single precision: weights in single precision, and certificates of the weights as they are stored."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import fenchel as fl
from fenchel.solver import solve_many

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
CANCER = (scale(load_breast_cancer().data), load_breast_cancer().target)
MODELS = [
    (fl.Lasso(0.1), DIABETES),
    (fl.ElasticNet(0.1), DIABETES),
    (fl.Ridge(), DIABETES),
    (fl.LinearSVR(), DIABETES),
    (fl.QuantileRegressor(alpha=0.01), DIABETES),
    (fl.HuberRegressor(), DIABETES),
    (fl.FusedLasso(0.1), DIABETES),
    (fl.GroupLasso(0.1, groups=2), DIABETES),
    (fl.LpRegressor(lam=0.1, p=1.5), DIABETES),
    (fl.LassoCV(alphas=5), DIABETES),
    (fl.RidgeCV(), DIABETES),
    (fl.RidgeCV(cv=3), DIABETES),
    (fl.LinearSVC(loss="hinge"), CANCER),
    (fl.LinearSVC(), IRIS),
    (fl.LinearSVC(multi_class="crammer_singer", tol=1e-3), IRIS),
    (fl.LogisticRegression(), IRIS),
    (fl.LogisticRegression(multi_class="ovr"), IRIS),
    (fl.SparseLogisticRegression(), CANCER),
    (fl.RidgeClassifier(), CANCER),
    (fl.LogisticRegressionCV(Cs=2, cv=3), CANCER),
    (fl.LinearClassifier(penalty=fl.penalties.LpSquared(0.001, 1.5, radius=100.0)), CANCER),
]
#: The weights are on the boundary of the penalty's domain: rounding may leave it.
ON_THE_BOUNDARY = [
    (fl.LinearClassifier(penalty=fl.penalties.Entropy(0.1)), CANCER),
    (fl.LinearClassifier(penalty=fl.penalties.LpSquared(0.001, 1.5, radius=0.5)), CANCER),
    (fl.LinearRegressor(penalty=fl.penalties.Entropy(0.1)), DIABETES),
    (fl.LinearRegressor(penalty=fl.penalties.LpSquared(0.001, 2.0, radius=0.5)), DIABETES),
]


@pytest.mark.parametrize(("model", "data"), MODELS, ids=str)
def test_single_precision_in_gives_single_precision_out(model, data):
    model = clone(model).fit(data[0].astype(np.float32), data[1])
    assert model.coef_.dtype == np.asarray(model.intercept_).dtype == np.float32


@pytest.mark.parametrize(("model", "data"), ON_THE_BOUNDARY, ids=str)
def test_weights_that_rounding_takes_out_of_the_domain_stay_in_double_precision(model, data):
    model = clone(model).fit(data[0].astype(np.float32), data[1])
    rounded = np.ravel(model.coef_).astype(np.float32).astype(np.float64)
    assert (model.coef_.dtype == np.float32) == np.isfinite(model.penalty.value(rounded))


@pytest.mark.parametrize(("model", "data"), MODELS + ON_THE_BOUNDARY, ids=str)
def test_a_model_of_single_precision_data_has_its_own_certificate(model, data):
    X, y = data[0].astype(np.float32), data[1]
    model = clone(model).fit(X, y)
    assert model.certificate_.ok
    again = fl.certify(model, X, y)  # of coef_ and intercept_, nothing else
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    exact = clone(model).set_params(tol=1e-9).fit(X.astype(np.float64), y)
    if not hasattr(model, "cv"):  # else the search may choose another alpha
        lost = model.certificate_.primal - exact.certificate_.primal
        assert lost <= model.certificate_.gap
    assert exact.coef_.dtype == np.float64


def test_proofs_are_of_the_rounded_model():
    X, y = CANCER[0].astype(np.float32), CANCER[1]
    model = fl.LogisticRegression(C=0.1, tol=1e-6).fit(X, y)
    labels, proven = model.predict_certified(X)
    assert proven.mean() > 0.9
    assert np.array_equal(labels[proven], model.predict(X)[proven])
    exact = fl.LogisticRegression(C=0.1, tol=1e-12).fit(X.astype(np.float64), y)
    assert np.array_equal(labels[proven], exact.predict(X.astype(np.float64))[proven])
    apart = np.linalg.norm(model.coef_.astype(np.float64) - exact.coef_)
    assert apart <= model.certificate_.weights_radius + exact.certificate_.weights_radius
    X[0, 0] += 1.0
    with pytest.raises(ValueError, match="X has changed"):
        model.certificate_.zeros()


def test_zeros_are_proven_as_in_double_precision():
    X, y = DIABETES[0].astype(np.float32), DIABETES[1]
    single, double = fl.Lasso(0.5, tol=1e-8).fit(X, y), fl.Lasso(0.5, tol=1e-8).fit(X.astype(np.float64), y)
    assert np.array_equal(single.certified_zeros_, double.certified_zeros_)
    assert single.certified_zeros_.any()


def noisy_plane():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20)).astype(np.float32)
    return X, X.sum(axis=1) * 1.1 + 0.3 + 1e-6 * rng.standard_normal(300)


@pytest.mark.filterwarnings("ignore::fenchel.NotCertifiedWarning")
@pytest.mark.parametrize("most", [5, 30, 40, 50])
def test_the_steps_that_make_up_for_rounding_count(most):
    X, y = noisy_plane()
    assert fl.Ridge(alpha=1e-9, max_iter=most, solver="fista").fit(X, y).n_iter_ <= most


@pytest.mark.filterwarnings("ignore::fenchel.NotCertifiedWarning")
def test_the_time_that_makes_up_for_rounding_is_what_is_left(monkeypatch):
    given = []

    def noted(problems, **options):
        given.append(options["max_seconds"])
        return solve_many(problems, **options)

    monkeypatch.setattr("fenchel.estimator.base.solve_many", noted)
    fl.Ridge(alpha=1e-9, max_seconds=1e6, solver="fista").fit(*noisy_plane())
    assert len(given) == 1
    assert given[0] < 1e6


def test_a_tolerance_that_single_precision_cannot_hold_is_said():
    X, y = CANCER[0].astype(np.float32), CANCER[1]
    with pytest.warns(fl.NotCertifiedWarning, match="single precision of X; pass X in double precision"):
        model = fl.LinearSVC(loss="hinge", tol=1e-10).fit(X, y)
    assert not model.certificate_.ok
    assert fl.LinearSVC(loss="hinge", tol=1e-10).fit(X.astype(np.float64), y).certificate_.ok


def test_weights_beyond_single_precision_stay_in_double_precision():
    X, y = np.float32(1e-30) * DIABETES[0].astype(np.float32), 1e15 * DIABETES[1]
    model = fl.Lasso(1e-15).fit(X, y)
    assert model.coef_.dtype == np.float64
    assert np.abs(model.coef_).max() > np.finfo(np.float32).max
    assert model.certificate_.ok


def test_the_elastic_net_path_keeps_the_precision():
    X, y = DIABETES[0].astype(np.float32), DIABETES[1]
    alphas, coefs, gaps = fl.Lasso.path(X, y - y.mean(), l1_ratio=1.0, alphas=[2.0, 0.1])
    assert coefs.dtype == np.float32
    for alpha, w, gap in zip(alphas, coefs.T, gaps, strict=True):
        problem = fl.Problem(X, y - y.mean(), penalty=fl.penalties.L1(alpha))
        assert problem.primal(w) - fl.solve(problem, tol=1e-10).certificate.dual <= gap * (1.0 + 1e-6)


@pytest.mark.parametrize("constant", [1.0, 10.0])
def test_a_penalised_intercept_is_certified_as_it_is_stored(constant):
    X, y = CANCER[0].astype(np.float32), CANCER[1]
    model = fl.LinearSVC(penalize_intercept=True, intercept_scaling=constant).fit(X, y)
    assert model.coef_.dtype == np.float32
    assert fl.certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-12)
