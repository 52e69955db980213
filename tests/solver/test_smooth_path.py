"""Paths of losses that are smooth but not quadratic: Newton steps on Hessians used again, bounds of their own."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.responses import Responses
from fenchel.data.design import Rounded
from fenchel.solver import smooth_path, wide_path
from fenchel.solver.found import Found
from tests.laws.test_exact_arithmetic import exact
from tests.registry import name, targets

path_module = importlib.import_module("fenchel.solver.path")  # the package has a function of that name
LOSSES = [
    fl.losses.Logistic(),
    fl.losses.SquaredHinge(),
    fl.losses.SmoothedHinge(0.5),
    fl.losses.Huber(0.7),
    fl.losses.SquaredEpsilonInsensitive(0.1),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name)
PENALTIES = {
    "L1": lambda d: fl.penalties.L1(1.0),
    "elastic net": lambda d: fl.penalties.ElasticNet(1.0, 0.6),
    "groups": lambda d: fl.penalties.GroupL2(1.0, np.arange(d) // 2, 1.0 + np.arange((d + 1) // 2) / 3),
}


def task(loss, n, d, penalty="L1", intercept=False, storage=None, seed=0, offset=0.0):
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + offset
    y = targets(loss, rng, n)
    y = np.where(X[:, 0] + rng.normal(size=n) > offset, 1.0, -1.0) if loss.is_classification else y + X[:, 0] - offset
    weights = rng.integers(0, 3, n) * rng.random(n) + 1e-3
    X = X if storage is None else storage(X)
    return fl.Problem(X, y, loss, PENALTIES[penalty](d), weights, intercept)


def compare(problem, eps, tol, monkeypatch, share):
    quick = fl.path(problem, eps=eps, n_lams=15, tol=tol)
    with monkeypatch.context() as patch:
        patch.setattr(path_module, "quick_path", lambda problem, options: None)
        slow = fl.path(problem, lams=quick.lams, tol=tol / 100)
    assert np.mean([isinstance(result, Found) for result in quick]) >= share
    for ours, theirs in zip(quick, slow, strict=True):
        assert ours.certificate.ok
        assert abs(ours.certificate.primal - theirs.certificate.primal) <= 1.02 * tol * theirs.certificate.primal


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@every_loss
def test_few_columns_the_same_optima(loss, storage, penalty, intercept, monkeypatch):
    compare(task(loss, 80, 9, penalty, intercept, storage), 0.02, 1e-6, monkeypatch, 1.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
@every_loss
def test_few_samples_the_same_optima(loss, penalty, intercept, monkeypatch):
    compare(task(loss, 25, 300, penalty, intercept), 0.1, 1e-5, monkeypatch, 0.8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("n", "d"), [(30, 4), (8, 20)])
@every_loss
def test_gaps_hold_in_exact_arithmetic(loss, n, d, intercept):
    """No gap is below the distance to the best model known, both objectives taken in exact arithmetic."""
    for penalty in ("L1", "elastic net"):
        problem = task(loss, n, d, penalty, intercept, offset=10.0)
        for lam in problem.lam_max() * np.array([1.0, 0.5, 0.1]):
            at = problem.with_lam(lam)
            best = fl.solve(at, tol=1e-13, max_iter=100, warn=False)
            lowest = exact(at, best.w, best.b)
            for tol in (1e-1, 1e-4, 1e-8):
                found = fl.path(problem, lams=[lam], tol=tol, max_seconds=1.0, warn=False)[0]
                c = found.certificate
                assert exact(at, found.w, found.b) - lowest <= c.gap
                assert c.primal - c.gap <= lowest


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", [False, True])
@every_loss
def test_bounds_hold_at_any_weights(loss, intercept, scale):
    """Far from any optimum, with multipliers whose sum is not zero, and tiny or huge."""
    rng = np.random.default_rng(1)
    for penalty in ("L1", "elastic net"):
        problem = task(loss, 20, 4, penalty, intercept, offset=1.0)
        samples = Responses(problem)
        for lam in (1e-2, 1.0, 100.0):
            at = problem.with_lam(lam)
            best = fl.solve(at, tol=1e-13, max_iter=100, warn=False)
            lowest = exact(at, best.w, best.b)
            for _ in range(3):
                w, b = scale * rng.normal(size=4), scale * float(rng.normal()) if intercept else 0.0
                product = problem.design.matvec_bounded(w)
                response = samples.at(Rounded(product.value + b, product.absolute, product.depth))
                blocks = at.penalty.blocks(4)
                v = problem.design.rmatvec(samples.p * response.a)
                bounds = samples.bounds(blocks, blocks.value(w), response, v)
                assert exact(at, w, b) <= bounds.upper
                assert bounds.lower <= lowest


def test_numbers_that_overflow_prove_nothing():
    problem = task(fl.losses.SquaredHinge(), 20, 4, intercept=True)
    samples, blocks = Responses(problem), problem.penalty.blocks(4)
    product = problem.design.matvec_bounded(np.ones(4))
    for bad in (np.nan, np.inf, -np.inf):
        response = samples.at(product)
        v = problem.design.rmatvec(samples.p * response.a)
        v[2] = bad
        assert not samples.bounds(blocks, 1.0, response, v).reach(1e6, 0.0)
        response.a[3] = bad
        assert not samples.bounds(blocks, 1.0, response, np.zeros(4)).reach(1e6, 0.0)


def test_one_sided_labels_are_left_to_the_solver():
    """The best intercept of one class is infinite: no multipliers but zero balance."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(30, 3)), np.ones(30), np.ones(30)
    y[0], weights[0] = -1.0, 1e-12
    problem = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(1.0), weights, intercept=True)
    for result in fl.path(problem, lams=[1e-3, 1e-14], max_seconds=5.0, warn=False):
        best = fl.solve(problem.with_lam(1e-3), tol=1e-10, max_seconds=5.0, warn=False)
        assert result.certificate.primal - result.certificate.gap <= best.certificate.primal


def test_hessians_are_used_again(monkeypatch):
    formed, form = [], smooth_path.SmoothPath._form_model
    monkeypatch.setattr(smooth_path.SmoothPath, "_form_model", lambda self: formed.append(1) or form(self))
    path = fl.path(task(fl.losses.Logistic(), 500, 12, intercept=True), eps=0.01, n_lams=100, tol=1e-3)
    assert all(isinstance(result, Found) for result in path)
    assert len(formed) <= 40


def test_what_a_result_knows_is_found_when_asked():
    for n, d in ((60, 6), (20, 100)):
        problem = task(fl.losses.Logistic(), n, d, intercept=True)
        result = fl.path(problem, n_lams=8, eps=0.2, tol=1e-6)[5]
        assert isinstance(result, Found)
        at = problem.with_lam(result.certificate.evidence.problem.penalty.lam)
        np.testing.assert_allclose(result.alpha, -at.loss.derivative(at.scores(result.w, result.b), at.y))
        assert not np.any(result.certificate.zeros() & (result.w != 0.0))
        assert fl.solve(at, start=result, tol=1e-6).certificate.ok
        result.w[:] = 0.0  # the caller's to change
        assert result.certificate.evidence.w.any()


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=name)
def test_groups_of_one_weight_may_have_thresholds_of_their_own(loss):
    """They are single weights, but not all alike."""
    rng = np.random.default_rng(0)
    problem = task(loss, 30, 200)
    problem = problem.replace(penalty=fl.penalties.GroupL2(1.0, np.arange(200), 1.0 + rng.random(200)))
    assert not wide_path.WidePath.suits(problem)
    for result in fl.path(problem, n_lams=4, eps=0.3, tol=1e-6):
        assert result.certificate.ok
    assert fl.solve(problem.with_lam(0.3 * problem.lam_max()), tol=1e-6).certificate.ok
