"""Objectives with a dual of their own, softmax and Huber's with its scale: against a conic solver, and exactly."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import HuberRegressor

import fenchel as fl
from fenchel.certificate.adapters.huber import HuberClaim
from fenchel.certificate.multiclass.bounds import balanced, excess
from fenchel.data import Design
from fenchel.problem import penalties
from tests.helpers.models import check, classification, half_square, l1, regression, weights

ACCURATE = {"solver": "CLARABEL", "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


# Huber ----------------------------------------------------------------------------------------------------------


def huber_objective(X, y, s, epsilon, alpha):
    """The formula of scikit-learn's documentation."""

    def stated(m):
        z = (X @ m.coef_ + m.intercept_ - y) / m.scale_
        H = np.where(np.abs(z) < epsilon, z**2, 2 * epsilon * np.abs(z) - epsilon**2)
        return s @ (m.scale_ + H * m.scale_) + alpha * m.coef_ @ m.coef_

    return stated


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("epsilon", "alpha"), [(1.0, 0.5), (1.35, 0.5), (1.35, 1e-4), (3.0, 1e-4)])
def test_huber_regressor(intercept, epsilon, alpha):
    X, y = regression()
    s = weights(len(y))
    model = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    model.fit(X, y, s)
    check(model, X, y, huber_objective(X, y, s, epsilon, alpha), s.sum(), s)


@pytest.mark.parametrize("intercept", [True, False])
def test_huber_bound_and_dual_agree_with_a_conic_solver(intercept):
    X, y = regression()
    s, epsilon, alpha = weights(len(y)), 1.35, 0.5
    w, b, sigma, t = cp.Variable(6), cp.Variable() if intercept else 0.0, cp.Variable(), cp.Variable(80)
    # sigma H(r / sigma) = min over u of u^2 / sigma + 2 epsilon |r - u|
    u = cp.Variable(80)
    square = [cp.quad_over_lin(u[i], sigma) <= t[i] for i in range(80)]
    loss = s @ (sigma + t + 2 * epsilon * cp.abs(X @ w + b - y - u))
    best = cp.Problem(cp.Minimize(loss + alpha * cp.sum_squares(w)), square).solve(**ACCURATE) / s.sum()
    model = HuberRegressor(epsilon=epsilon, alpha=alpha, fit_intercept=intercept, max_iter=10_000, tol=1e-10)
    found = fl.certify(model.fit(X, y, s), X, y, s)
    assert found.dual - found.rounding <= best + 1e-8
    assert found.primal - found.gap == pytest.approx(best, rel=1e-5)
    for size in (0.0, 0.5, 2.0):
        claim = _huber(X, y, s, size * model.coef_, size * model.intercept_, 3.0 * model.scale_, intercept)
        other = claim.certify("auto", None)
        assert other.primal - other.gap <= best + 1e-8
        assert other.gap >= other.primal - best - 1e-8


def _huber(X, y, s, w, b, sigma, intercept):
    penalty = penalties.L2(2 * 0.5 / s.sum())
    return HuberClaim(Design(X), y, s, penalty, 1.35, intercept, w, float(b), float(sigma))


def test_huber_regressor_on_data_that_fit_exactly_and_on_one_sample():
    X, _ = regression()
    y = X @ np.arange(6.0)
    model = HuberRegressor(alpha=1e-3, max_iter=10_000).fit(X, y)
    assert np.isfinite(fl.certify(model, X, y).gap)
    claim = _huber(X[:1], y[:1], np.ones(1), np.zeros(6), 0.0, 1.0, True)
    assert claim.certify("auto", None).dual <= 1.0


def test_huber_regressor_without_a_penalty_is_certified():
    X, y = regression()
    assert fl.certify(HuberRegressor(alpha=0.0, tol=1e-8).fit(X, y), X, y).relative_gap < 1e-4


# Softmax --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [penalties.L2(0.02), penalties.L1(0.01), penalties.ElasticNet(0.02, 0.6)])
def test_softmax_bound_agrees_with_a_conic_solver(intercept, penalty):
    X, y = classification(classes=3)
    codes, s = np.searchsorted(["ape", "bee", "cat"], y), weights(len(y))
    B, b = cp.Variable((3, 6)), cp.Variable(3) if intercept else np.zeros(3)
    Z = X @ B.T + np.ones((90, 1)) @ cp.reshape(b, (1, 3), order="C") if intercept else X @ B.T
    own = cp.sum(cp.multiply(Z, np.eye(3)[codes]), axis=1)
    terms = {
        penalties.L2: lambda r: r.lam / 2 * cp.sum_squares(B),
        penalties.L1: lambda r: r.lam * cp.sum(cp.abs(B)),
        penalties.ElasticNet: lambda r: r.l1 * cp.sum(cp.abs(B)) + r.l2 / 2 * cp.sum_squares(B),
    }
    value = s @ (cp.log_sum_exp(Z, axis=1) - own) / s.sum() + terms[type(penalty)](penalty)
    best = cp.Problem(cp.Minimize(value)).solve(**ACCURATE)
    offsets = b.value if intercept else np.zeros(3)

    def certificate(B, b):
        return fl.certify(fl.MulticlassProblem(X, codes, fl.losses.Multinomial(), penalty, s, intercept), B, b)

    tight = certificate(B.value, offsets)
    assert tight.relative_gap <= 1e-5
    assert tight.primal == pytest.approx(best, rel=1e-7)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0, 10.0):
        found = certificate(B.value + size * rng.normal(size=(3, 6)), offsets + intercept * size * rng.normal(size=3))
        assert found.gap >= found.primal - best - 1e-9
        assert found.dual - found.rounding <= best + 1e-9
    assert certificate(np.zeros((3, 6)), np.zeros(3)).gap >= certificate(np.zeros((3, 6)), np.zeros(3)).primal - best


@pytest.mark.parametrize("loss", [fl.losses.Multinomial(), fl.losses.CrammerSinger()])
def test_multiclass_dual_point_is_feasible_in_rational_arithmetic(loss):
    """The point that the bound is about, (1 - eps) p + eps q, lies in the simplex and has exactly the sums n_j."""
    X, y = classification(classes=3, n=40)
    codes, s = np.searchsorted(["ape", "bee", "cat"], y), weights(40)
    rng = np.random.default_rng(0)
    problem = fl.MulticlassProblem(X, codes, loss, penalties.L2(0.1), s, intercept=True)
    off = loss.off_class(X @ rng.normal(size=(3, 6)).T, codes)
    assert np.abs(excess(problem, off)[0]).max() > 0.1  # far from balanced
    point = balanced(problem, off, "gradient")
    off, eps = point.off, Fraction(point.mix)
    assert 0 < eps < 1e-11
    p = [[Fraction(x) for x in row] for row in off]
    for row, k in zip(p, codes, strict=True):
        row[k] = 1 - sum(row)
        assert row[k] >= 0
    share = [Fraction(x) for x in s]
    W = sum(share)
    n = [sum(share[i] for i in range(40) if codes[i] == j) for j in range(3)]
    r = [sum(share[i] * p[i][j] for i in range(40)) - n[j] for j in range(3)]
    q = [(eps * n[j] - (1 - eps) * r[j]) / (eps * W) for j in range(3)]
    assert sum(q) == 1
    assert all(0 <= q[j] <= 1 for j in range(3))
    assert all(sum(share[i] * ((1 - eps) * p[i][j] + eps * q[j]) for i in range(40)) == n[j] for j in range(3))


def test_softmax_of_two_classes_is_logistic_regression():
    X, y = classification()
    codes = (y == "bee").astype(int)
    problem = fl.Problem(X, 2.0 * codes - 1, fl.losses.Logistic(), fl.penalties.L2(0.05), intercept=True)
    w, b = np.random.default_rng(0).normal(size=6), 0.3
    one = fl.certify(problem, w, b)
    B, offsets = np.vstack([-w / 2, w / 2]), np.array([-b / 2, b / 2])
    two = fl.MulticlassProblem(sp.csr_array(X), codes, fl.losses.Multinomial(), fl.penalties.L2(0.1), intercept=True)
    assert fl.certify(two, B, offsets).primal == pytest.approx(one.primal, rel=1e-12)
    assert fl.certify(two, B, offsets).dual == pytest.approx(one.dual, rel=1e-3)
    assert half_square(B) * 2 == pytest.approx(half_square(w))
    assert l1(B) == pytest.approx(l1(w))
