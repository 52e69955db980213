"""HuberRegressor on every shape and storage: the scale is among its unknowns, so its objective is one of its own."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import STORAGES, VARIANTS, check_certificate, data, for_every_storage, mean, proven_to

ALPHA, EPSILON, TOL = 0.1, 1.35, 1e-6
MODELS = {"HuberRegressor": fl.HuberRegressor(alpha=ALPHA, epsilon=EPSILON, tol=TOL)}


def objective(variant, w, b, sigma):
    """(1/W) (sum_i s_i (sigma + sigma H(r_i / sigma)) + alpha |w|^2) with H(z) = z^2, 2 epsilon |z| - epsilon^2."""
    X, y, _, s = data(variant)
    size = np.abs(X @ w + b - y)
    value = np.where(size <= EPSILON * sigma, size**2 / sigma, 2 * EPSILON * size - EPSILON**2 * sigma)
    return mean(sigma + value, s) + ALPHA * float(np.sum(w**2)) / s.sum()


@cache
def optimum(variant):
    """The objective of what a conic solver finds: sigma H(r / sigma) is the least p^2 / sigma + 2 epsilon |r - p|."""
    X, y, _, s = data(variant)
    share, alpha = s / s.sum(), ALPHA / s.sum()
    w, b, sigma, outlying = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(), cp.Variable(len(y))
    r = X @ w + b - y
    loss = cp.quad_over_lin(cp.multiply(np.sqrt(share), r - outlying), sigma) + 2 * EPSILON * share @ cp.abs(outlying)
    statement = cp.Problem(
        cp.Minimize(sigma + loss + alpha * cp.sum_squares(w)), [] if variant.intercept else [b == 0.0]
    )
    statement.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    intercept = float(b.value) if variant.intercept else 0.0
    return min(objective(variant, w.value, intercept, max(float(sigma.value), least)) for least in (1e-15, 1e-9))


@pytest.mark.filterwarnings("ignore:.*single precision of X")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@for_every_storage
def test_huber(variant, storage):
    X, y, _, s = data(variant)
    weights = {"sample_weight": s} if variant.weighted else {}
    model = fl.HuberRegressor(alpha=ALPHA, epsilon=EPSILON, tol=TOL, fit_intercept=variant.intercept)
    model.fit(STORAGES[storage](X), y, **weights)
    assert model.coef_.dtype == np.dtype(np.float32 if storage == "float32" else np.float64)
    w, b = model.coef_.astype(np.float64), float(model.intercept_)
    found = objective(variant, w, b, model.scale_)
    size = float(np.abs(y).max())
    r = X @ w + b - y
    tol = proven_to(TOL, storage, float(np.abs(r)[s > 0].max()))
    check_certificate(model.certificate_, found, optimum(variant), tol, size)
    assert variant.intercept or model.intercept_ == 0.0
    np.testing.assert_allclose(model.predict(X) - y, r, rtol=1e-6, atol=1e-6)
    clear = np.abs(np.abs(r) - EPSILON * model.scale_) > 1e-9 * size
    assert np.array_equal(model.outliers_[clear], (np.abs(r) > EPSILON * model.scale_)[clear])
    model.coef_ = 0.9 * w  # the oracle can tell this model from the optimum
    found = objective(variant, model.coef_, model.intercept_, model.scale_)
    worse = fl.certify(model, STORAGES[storage](X), y, effort="low", **weights)
    check_certificate(worse, found, optimum(variant), None, size)
