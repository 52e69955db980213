"""The interior-point method for piecewise linear losses and penalties."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import fenchel as fl

LOSSES = [fl.losses.Hinge(), fl.losses.Absolute(), fl.losses.Pinball(0.2), fl.losses.EpsilonInsensitive(0.3)]


def penalties(d, lam):
    found = [fl.penalties.L1(lam), fl.penalties.NonNegativeL1(lam)]
    if d > 2:
        found += [fl.penalties.FusedL1(lam), fl.penalties.FusedL1(lam, D=np.diff(np.eye(d), 2, axis=0))]
        found += [fl.penalties.FusedL1(lam, D=np.random.default_rng(5).normal(size=(d + 2, d)))]
    return found


def problems(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    labels[: min(n, 2)] = (-1.0, 1.0)[: min(n, 2)]
    weights = rng.integers(0, 3, size=n) + 1.0 * (np.arange(n) < 2)
    stored = (X, sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X), X.astype(np.float32))
    for k, loss in enumerate(LOSSES):
        if loss.is_classification and n == 1:
            continue
        for m, penalty in enumerate(penalties(d, 0.03)):
            for intercept in (False, True):
                y_of = labels if loss.is_classification else y
                s = weights if (k + m + intercept) % 2 else None
                yield fl.Problem(stored[(k + m) % 5], y_of, loss, penalty, s, intercept)


@pytest.mark.parametrize("shape", [(8, 8), (1, 5), (6, 1), (1, 1), (2, 3), (40, 6), (12, 30)], ids=str)
def test_every_straight_problem_is_certified_in_few_steps(shape):
    for problem in problems(*shape):
        result = fl.solve(problem, tol=1e-9)
        assert (result.solver, result.status) == ("interior_point", "certified"), problem
        assert result.n_iter <= 75


def by_highs(problem):
    """P* of a problem with L1 and no kinks beside one per sample, as a linear program in (w+, w-, b, r+, r-)."""
    X = problem.design.rows(np.arange(problem.shape[0]))
    (n, d), p = X.shape, problem.weights / problem.total_weight
    low, high = problem.domain
    A = np.hstack([X, -X, np.full((n, 1), float(problem.intercept)), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.full(2 * d, problem.penalty.lam), [0.0], p * high, -p * low])
    bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * (2 * n)
    return linprog(cost, A_eq=A, b_eq=problem.y, bounds=bounds, method="highs").fun


@pytest.mark.parametrize("shape", [(30, 5), (10, 25)], ids=str)
def test_the_optimum_is_that_of_a_linear_program(shape):
    for problem in problems(*shape):
        if isinstance(problem.penalty, fl.penalties.L1) and len(problem.loss.pieces(problem.y)) == 1:
            certificate = fl.solve(problem, tol=1e-9).certificate
            assert certificate.primal == pytest.approx(by_highs(problem), rel=1e-8)
            assert certificate.dual <= by_highs(problem) * (1.0 + 1e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_weights_are_exactly_zero_and_differences_exactly_flat(tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20))
    sparse = np.r_[np.ones(4), np.zeros(16)]
    y = X @ sparse + 0.1 * rng.normal(size=200)
    result = fl.solve(fl.Problem(X, y, fl.losses.Absolute(), fl.penalties.L1(0.1)), tol=tol)
    assert np.count_nonzero(result.w) <= 6
    result = fl.solve(fl.Problem(X, y, fl.losses.Absolute(), fl.penalties.FusedL1(0.1)), tol=tol)
    assert np.count_nonzero(np.diff(result.w)) <= 8


def test_an_optimum_of_zero_is_certified():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 8))
    y = np.where(X.sum(axis=1) > 0.0, 1.0, -1.0)
    result = fl.solve(fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.FusedL1(0.3)), tol=1e-9)
    assert result.status == "certified"
    assert result.certificate.primal < 1e-14


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_pieces_add_up_to_the_loss(loss):
    rng = np.random.default_rng(2)
    y = np.where(rng.random(50) < 0.5, -1.0, 1.0) if loss.is_classification else rng.normal(size=50)
    z = 2.0 * rng.normal(size=50)
    ends = [np.maximum(one.low * (one.target - z), one.high * (one.target - z)) for one in loss.pieces(y)]
    assert np.allclose(np.sum(ends, axis=0), loss.value(z, y), rtol=1e-12, atol=1e-14)


def test_straight_penalties_are_sums_of_maxima():
    w = np.abs(np.random.default_rng(3).normal(size=6))
    for penalty in penalties(6, 0.4):
        terms = penalty.straight(6)
        Dw = w if terms.D is None else terms.D @ w
        low = np.where(np.isfinite(terms.low), terms.low, 0.0)
        assert np.maximum(low * Dw, terms.high * Dw).sum() == pytest.approx(penalty.value(w), rel=1e-12)


def test_quantile_regression_of_moderate_size_takes_it():
    said = fl.explain(fl.Problem(np.eye(50) + 1.0, np.arange(50.0), fl.losses.Pinball(0.5), fl.penalties.L1(0.01)))
    assert said.solver == "interior_point"
