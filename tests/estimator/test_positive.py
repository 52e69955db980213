"""Weights that must not be negative, and weights of features: the models of scikit-learn, certified."""

import numpy as np
import pytest
import scipy.optimize
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

import fenchel as fl

X, Y = load_diabetes(return_X_y=True)
X = scale(X)
MODELS = [
    fl.Lasso(alpha=2.0),
    fl.ElasticNet(alpha=0.5, l1_ratio=0.7),
    fl.Ridge(alpha=3.0),
    fl.LassoCV(alphas=5, cv=3, eps=0.1),
    fl.ElasticNetCV(alphas=[2.0, 0.5], cv=3),
]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_positive_models_are_those_of_scikit_learn(model, intercept):
    ours = clone(model).set_params(positive=True, fit_intercept=intercept, tol=1e-8).fit(X, Y)
    given = {name: value for name, value in model.get_params().items() if name in ("alpha", "l1_ratio", "alphas", "cv")}
    given |= {"eps": model.eps} if hasattr(model, "eps") else {}
    kind = getattr(sklearn.linear_model, type(model).__name__)
    theirs = kind(positive=True, fit_intercept=intercept, max_iter=100_000, **given).set_params(tol=1e-9).fit(X, Y)
    assert np.all(ours.coef_ >= 0.0)
    assert np.count_nonzero(ours.coef_ == 0.0) >= 2
    assert ours.certificate_.ok
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-2)
    if hasattr(theirs, "alphas_"):
        np.testing.assert_allclose(np.ravel(ours.alphas_), np.ravel(theirs.alphas_), rtol=1e-9)
        assert ours.alpha_ == pytest.approx(theirs.alpha_)


def test_zeros_are_proven_on_one_side():
    model = fl.Lasso(alpha=2.0, positive=True, tol=1e-8).fit(X, Y)
    assert np.array_equal(model.certified_zeros_, model.coef_ == 0.0)
    assert np.abs(X.T @ (Y - Y.mean()) / len(Y))[model.certified_zeros_].max() > 2.0 * 3  # large, but negative


def test_a_negative_weight_has_no_finite_objective():
    problem = fl.Problem(X, Y, penalty=fl.penalties.NonNegativeL1(1.0))
    assert fl.certify(problem, np.full(10, -1e-9)).gap == np.inf
    found = fl.solve(problem, tol=1e-8)
    assert problem.lam_max() == pytest.approx(max(0.0, float(np.max(X.T @ Y / len(Y)))))
    assert fl.certify(problem, found.w).gap <= 2e-8 * found.certificate.primal


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic()], ids=str)
def test_classifiers_with_weights_that_are_not_negative(loss):
    labels = np.where(np.median(Y) < Y, 1, -1)
    model = fl.LinearClassifier(loss, fl.penalties.NonNegativeElasticNet(0.1, 0.5), tol=1e-4).fit(X, labels)
    assert model.certificate_.ok
    assert model.coef_.min() == 0.0


def test_several_targets():
    model = fl.Ridge(positive=True, tol=1e-6).fit(X, np.column_stack([Y, -Y]))
    assert np.all(model.coef_ >= 0.0)
    assert model.certificate_.ok


def test_weights_of_features_are_the_lasso_on_scaled_columns():
    factors = np.linspace(0.5, 3.0, 10)
    adaptive = fl.Lasso(alpha=1.0, weights=factors, tol=1e-9).fit(X, Y)
    scaled = fl.Lasso(alpha=1.0, tol=1e-9).fit(X / factors, Y)
    np.testing.assert_allclose(adaptive.coef_, scaled.coef_ / factors, atol=1e-4)
    assert adaptive.certificate_.primal == pytest.approx(scaled.certificate_.primal, rel=2e-9)
    assert fl.certify(adaptive, X, Y).ok
    with pytest.raises(ValueError, match="weights"):
        fl.Lasso(weights=np.ones(9)).fit(X, Y)


@pytest.mark.parametrize("model", [fl.Lasso(1e-8), fl.Ridge(1e-8), fl.ElasticNet(1e-8)], ids=str)
@pytest.mark.parametrize("shape", [(20, 40), (40, 20), (20, 20)])
def test_small_penalties_are_certified_in_a_few_steps(model, shape):
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=shape), rng.normal(size=shape[0])
    model = clone(model).set_params(positive=True).fit(features, targets)
    assert model.certificate_.ok
    assert np.max(model.n_iter_) <= 10
    theirs = scipy.optimize.nnls(features - features.mean(axis=0), targets - targets.mean())[0]
    np.testing.assert_allclose(
        model.predict(features), features @ theirs + (targets - features @ theirs).mean(), atol=1e-3
    )


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic(), fl.losses.Huber(0.5)], ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(60, 8), (50, 400)])
def test_paths_of_weights_that_are_not_negative(loss, intercept, shape):
    """Several lams at once, or one after the other: no certificate is below what first-order steps find."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=shape) + 0.5
    z = features[:, :3] @ np.array([1.0, 0.5, -1.0]) + rng.normal(size=shape[0])
    targets = np.sign(z) if loss.is_classification else z + 2.0
    problem = fl.Problem(features, targets, loss, fl.penalties.NonNegativeL1(1.0), rng.random(shape[0]), intercept)
    path = fl.path(problem, n_lams=25, eps=1e-2, tol=1e-6)
    assert {result.solver for result in path} == {"nonnegative_newton"}
    for k in (5, 15, 24):
        lam, result = path.lams[k], path[k]
        other = fl.solve(problem.with_lam(lam), solver="fista", tol=1e-5)
        assert result.status == "certified"
        assert np.all(result.w >= 0.0)
        assert result.certificate.gap >= problem.with_lam(lam).primal(result.w, result.b) - other.certificate.primal
        assert result.certificate.primal <= other.certificate.primal * (1.0 + 2e-6)


@pytest.mark.parametrize("alpha", [0.02, 0.0])
def test_weights_of_a_sparse_logistic_regression_are_scales_of_its_columns(alpha):
    labels, weights = np.median(Y) < Y, np.linspace(0.2, 3.0, 10)
    weighted = fl.SparseLogisticRegression(alpha, weights=weights, tol=1e-9).fit(X, labels)
    scaled = fl.SparseLogisticRegression(alpha, tol=1e-9).fit(X / weights, labels)
    assert weighted.certificate_.ok
    np.testing.assert_allclose(weighted.coef_ * weights, scaled.coef_, atol=1e-3)
    assert fl.certify(weighted, X, labels).ok
    with pytest.raises(ValueError, match="weights has 9 entries, but X has 10 features"):
        weighted.set_params(weights=weights[:9]).fit(X, labels)
    with pytest.raises(ValueError, match="they need l1_ratio=1"):
        weighted.set_params(weights=weights, l1_ratio=0.5).fit(X, labels)
