"""Newton steps on the multipliers of an interpolation: their linear systems, and how exact their solutions are."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

import fenchel as fl
from fenchel.data import Design, limits
from fenchel.steps.interpolation.hessian import MultiplierHessian
from fenchel.steps.interpolation.newton import IntervalNewton
from fenchel.steps.interpolation.pivoting import Quadratic


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_more_rows_than_a_factorisation_takes_are_met_up_to_rounding_within_few_steps(monkeypatch, sparse, intercept):
    """By conjugate gradients, whose system has the damping that the model of the step has."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 100)) * (rng.random((40, 100)) < 0.3), rng.normal(size=40)
    exact = np.linalg.lstsq(X - intercept * X.mean(axis=0), y - intercept * y.mean(), rcond=None)[0]
    monkeypatch.setattr(limits, "TUNING", replace(limits.TUNING, dense=40 * 39))
    problem = fl.Interpolation(sp.csr_array(X) if sparse else X, fl.sets.Point(y), intercept=intercept)
    result = fl.solve(problem, solver="newton", tol=1e-8, warn=False)
    assert result.n_iter <= 3
    assert result.certificate.violation < 1e-11
    np.testing.assert_allclose(result.w, exact, atol=1e-10)


def with_condition(n, d, condition, seed=0):
    rng = np.random.default_rng(seed)
    left, right = np.linalg.qr(rng.normal(size=(n, n)))[0], np.linalg.qr(rng.normal(size=(d, n)))[0]
    return left * np.geomspace(1.0, 1.0 / condition, n) @ right.T, rng.normal(size=n)


def pseudo_inverse(X, y, intercept):
    w = np.linalg.lstsq(X - intercept * X.mean(axis=0), y - intercept * y.mean(), rcond=None)[0]
    return w, intercept * (y - X @ w).mean()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("condition", [1e3, 1e5, 1e6, 1e9])
def test_nearly_dependent_equations_have_the_weights_of_the_pseudo_inverse(condition, intercept):
    X, y = with_condition(20, 60, condition)
    result = fl.solve(fl.Interpolation(X, fl.sets.Point(y), intercept=intercept), tol=1e-6, warn=False)
    w, b = pseudo_inverse(X, y, intercept)
    length = float(np.linalg.norm(w))
    np.testing.assert_allclose(result.w, w, atol=1e-15 * condition * length)
    missed, theirs = (np.abs(X @ u + c - y).max() for u, c in ((result.w, result.b), (w, b)))
    assert missed < 10.0 * max(theirs, 1e-15 * length)
    if condition < 1e6:
        assert result.status == "certified"
        assert result.certificate.relative_gap < 3e-7


def test_features_of_any_size_are_interpolated_and_certified():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:25], y[:25] + np.random.default_rng(0).normal(size=25)
    for intercept in (False, True):
        model = fl.MinNormRegressor(fit_intercept=intercept).fit(X, y)
        np.testing.assert_allclose(model.coef_, pseudo_inverse(X, y, intercept)[0], rtol=1e-6)
        assert model.certificate_.ok


def test_dependent_equations_that_agree_are_met_with_the_shortest_weights():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 4)) @ rng.normal(size=(4, 30))
    y = X @ rng.normal(size=30)
    for intercept in (False, True):
        result = fl.solve(fl.Interpolation(X, fl.sets.Point(y + 3.0 * intercept), intercept=intercept), warn=False)
        w, _ = pseudo_inverse(X, y, intercept)
        np.testing.assert_allclose(result.w, w, atol=1e-10)


@pytest.mark.parametrize("p", [1.5, 1.2, 1.05])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "d"), [(60, 5), (30, 10)])
def test_the_least_violation_is_found_for_every_norm(n, d, intercept, p):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    model = fl.MinNormRegressor(p=p, fit_intercept=intercept, on_infeasible="least_violation").fit(X, y)
    assert model.certificate_.ok
    w, _ = pseudo_inverse(X, y, intercept)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6)


def test_the_least_violation_of_two_targets_is_between_them():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 30)), rng.normal(size=9)
    X = np.vstack([X, X[2]])
    for p in (2.0, 1.3):
        model = fl.MinNormRegressor(p=p, fit_intercept=False, on_infeasible="least_violation").fit(X, y)
        expected = np.append(y[:8], 0.0)
        expected[2] = expected[8] = 0.5 * (y[2] + y[8])
        np.testing.assert_allclose(X @ model.coef_, expected, atol=1e-3)  # the gap is 1e-6 of squares


@pytest.mark.parametrize("p", [2.0, 1.5, 1.2])
@pytest.mark.parametrize("intercept", [False, True])
def test_systems_of_more_rows_than_columns_have_the_order_of_the_columns(p, intercept):
    rng = np.random.default_rng(0)
    penalty = fl.penalties.L2(1.0) if p == 2.0 else fl.penalties.LpSquared(1.0, p)
    X, right = rng.normal(size=(40, 6)), rng.normal(size=30)
    problem = fl.Interpolation(X, fl.sets.Interval(-np.ones(40), np.ones(40)), penalty, intercept=intercept)
    derivative = penalty.link_derivative(rng.normal(size=6))
    root = derivative.root(X)
    np.testing.assert_allclose(root @ root.T, derivative.gram(X), atol=1e-12 * np.abs(root @ root.T).max())
    hessian, rows = MultiplierHessian.of(problem, derivative, 1e-4), np.arange(30)
    x = np.zeros(40)
    x[:30] = hessian.solve(rows, right)
    np.testing.assert_allclose(hessian.times(x)[:30], right, atol=1e-8)


def test_tall_intervals_of_a_p_norm_are_certified_in_few_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    z = X @ rng.normal(size=20)
    problem = fl.Interpolation(X, fl.sets.Interval(z - 0.5, z + 0.5), fl.penalties.LpSquared(1.0, 1.5))
    result = fl.solve(problem)
    assert (result.solver, result.status) == ("newton", "certified")
    assert result.n_iter < 100
    wide = rng.normal(size=(3000, 500))
    tall = problem.replace(X=Design(wide))
    assert not IntervalNewton.suits(tall, 1e-4)
    assert IntervalNewton.suits(problem, 1e-4)


def test_a_step_ends_when_time_is_over():
    """After one system of its pivoting, with what it has."""
    solved = []

    def solve(rows, right):
        solved.append(len(rows))
        return right / 2.0

    low = np.linspace(1.0, 2.0, 5)
    model = Quadratic(lambda x: 2.0 * x, solve, np.zeros(5), low, low + 1.0, late=lambda: True)
    _, _, found = model.minimise(np.zeros(5, dtype=np.int8))
    assert not found
    assert len(solved) == 0
    model = Quadratic(lambda x: 2.0 * x, solve, np.zeros(5), low, low + 1.0)
    b, _, found = model.minimise(np.zeros(5, dtype=np.int8))
    assert found
    np.testing.assert_allclose(b, low / 2.0)


def test_a_run_is_late_inside_a_step(clock):
    X, y = with_condition(8, 30, 10.0)
    problem = fl.Interpolation(X, fl.sets.Interval(y - 3.0, y + 3.0), fl.penalties.LpSquared(1.0, 1.2))
    asked, minimise = [], Quadratic.minimise

    def watched(self, states):
        asked.append(self.late())
        return minimise(self, states)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Quadratic, "minimise", watched)
        fl.solve(problem, solver="newton", max_seconds=1e-6, warn=False)
    assert asked
    assert asked[-1]
