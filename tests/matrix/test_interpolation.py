"""Estimators and solvers with hard constraints on every shape and storage, judged by plain NumPy."""

import warnings
from functools import cache

import numpy as np
import pytest

import fenchel as fl
from tests.helpers.margins import best_margin
from tests.matrix.statements import SHAPES, STORAGES, VARIANTS, for_every_storage

MODELS = {
    "MinNormRegressor": fl.MinNormRegressor(on_infeasible="least_violation"),
    "LpPerceptron": fl.LpPerceptron(on_infeasible="least_violation"),
    "SparsePerceptron": fl.SparsePerceptron(on_infeasible="least_violation"),
    "MaxMarginClassifier": fl.MaxMarginClassifier(),
}


def points(variant):
    """Features with exact float32 entries, targets, and weights, some of them zero."""
    rng = np.random.default_rng(list(map(ord, str(variant))))
    n, d = SHAPES[variant.shape]
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    s = rng.uniform(0.5, 2.0, size=n) if variant.weighted else np.ones(n)
    if variant.weighted and n > 3:
        s[1] = 0.0
    return X, X @ rng.normal(size=d) + rng.normal(size=n), s


def least_squares(X, y, s, intercept):
    """Weights and intercept of least norm among those of least squares."""
    root, mean = np.sqrt(s), (s @ X / s.sum(), s @ y / s.sum()) if intercept else (np.zeros(X.shape[1]), 0.0)
    w = np.linalg.pinv(root[:, None] * (X - mean[0])) @ (root * (y - mean[1]))
    return w, mean[1] - mean[0] @ w


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@for_every_storage
def test_the_least_norm_is_that_of_the_pseudo_inverse(variant, storage):
    X, y, s = points(variant)
    model = fl.MinNormRegressor(fit_intercept=variant.intercept, on_infeasible="least_violation", tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        model.fit(STORAGES[storage](X), y, s)
    w, b = least_squares(X, y, s, variant.intercept)
    np.testing.assert_allclose(model.coef_, w, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-5)
    residual = np.where(s > 0, X @ model.coef_ + model.intercept_ - y, 0.0)
    if model.certificate_.feasible == "contradiction":
        rms = np.sqrt(s @ residual**2 / s.sum())
        assert model.certificate_.primal - model.certificate_.gap <= rms <= model.certificate_.primal * (1 + 1e-9)
    else:
        assert np.abs(residual).max() <= model.certificate_.violation + 1e-12
        np.testing.assert_allclose(model.certificate_.primal, 0.5 * w @ w, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("name", ["LpPerceptron", "SparsePerceptron"])
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.shape != "n=1"], ids=str)
def test_perceptrons_have_the_margins_that_they_claim(variant, name):
    X, y, s = points(variant)
    labels = np.where(y > np.median(y), "high", "low")
    labels[[0, 2]] = "high", "low"
    s[[0, 2]] = 1.0
    storage = list(STORAGES)[VARIANTS.index(variant) % len(STORAGES)]
    model = getattr(fl, name)(fit_intercept=variant.intercept, tol=1e-4, on_infeasible="least_violation")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        model.fit(STORAGES[storage](X), labels, s)
    sign = np.where(labels == model.classes_[1], 1.0, -1.0)
    z = (sign * (X @ model.coef_[0] + model.intercept_[0]))[s > 0]
    certificate = model.certificate_
    if certificate.feasible == "exact":
        assert z.min() >= 1.0 - 1e-9
        length = np.sum(np.abs(model.coef_[0]) ** model.p_) ** (1.0 / model.p_)
        np.testing.assert_allclose(model.margin_, z.min() / length)
        assert model.n_mistakes_[-1] == 0
    else:
        distance = np.where(s > 0, np.maximum(1.0 - sign * (X @ model.coef_[0] + model.intercept_[0]), 0.0), 0.0)
        assert distance.max() <= certificate.violation + 1e-9


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.shape != "n=1" and not v.weighted], ids=str)
@for_every_storage
def test_the_largest_margin_is_that_of_the_conic_solver(variant, p, storage):
    X, y, _ = points(variant)
    labels = np.where(y > np.median(y), "high", "low")
    labels[[0, 2]] = "high", "low"
    model = fl.MaxMarginClassifier(p=p, fit_intercept=variant.intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.InseparableWarning)
        model.fit(STORAGES[storage](X), labels)
    best, found = margin_of(variant, p), model.margin_interval_
    assert found.lower <= best + 1e-7
    assert found.upper >= best - 1e-7
    assert (model.separable_ == "proven") == (best > 1e-6)
    if model.separable_ == "proven":
        assert found.lower >= (1.0 - 2e-3) * best


@cache
def margin_of(variant, p):
    X, y, _ = points(variant)
    labels = np.where(y > np.median(y), "high", "low")
    labels[[0, 2]] = "high", "low"
    return best_margin(X, (labels == "low").astype(int), p, variant.intercept)
