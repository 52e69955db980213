"""Paths of losses that are smooth but not quadratic: Newton steps on Hessians used again, bounds of their own."""

import importlib
from fractions import Fraction as Q

import numpy as np
import pytest
import scipy.sparse as sp
from fenchel.certificate.bounds.responses import Responses
from fenchel.solver.paths.found import Found

import fenchel as fl
from fenchel.data.products import Rounded, gamma
from fenchel.solver.paths import smooth_path, wide_path
from tests.laws.test_exact_arithmetic import exact, gaps_of_paths_hold

path_module = importlib.import_module("fenchel.solver.paths.grid")  # the package has a function of that name
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
        patch.setattr(path_module, "quick_path", lambda *args: None)
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
    for penalty in ("L1", "elastic net"):
        gaps_of_paths_hold(task(loss, n, d, penalty, intercept, offset=10.0), [1.0, 0.5, 0.1])


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


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_rounding_of_scores_and_sums_is_allowed_for(loss):
    """Weights whose scores all but cancel beside a large offset: P as computed is off by more than its last digits."""
    beyond = 0
    for seed in range(40):
        problem = task(loss, 20, 6, seed=seed, offset=1e8)
        samples, rng = Responses(problem), np.random.default_rng(seed)
        w = rng.normal(size=6)
        w[-1] = -w[:-1].sum()
        product = problem.design.matvec_bounded(w)
        response, blocks = samples.at(product), problem.penalty.blocks(6)
        v = problem.design.rmatvec(samples.p * response.a)
        bounds = samples.bounds(blocks, blocks.value(w), response, v)
        value = exact(problem, w, 0.0)
        assert value <= bounds.upper
        beyond += value > bounds.primal
    assert beyond  # or the allowance would not have been needed


def test_the_product_with_the_columns_is_allowed_for():
    """A column far from zero beside multipliers that sum to zero: v as computed is off, and may be too small."""
    beyond = 0
    for seed in range(40):
        problem = task(fl.losses.Huber(0.7), 25, 3, seed=seed, intercept=True, offset=1e9)
        samples = Responses(problem)
        point = smooth_path.SmoothPath(samples).point
        terms = [Q(s) * Q(a) for s, a in zip(problem.weights, point.response.a, strict=True)]
        truth = [sum(t * Q(x) for t, x in zip(terms, column, strict=True)) for column in problem.design.matrix.T]
        total = sum(map(Q, problem.weights))
        doubt = 8.0 * gamma(25 + 200) * float(np.sqrt(samples.p @ point.response.a**2)) * samples.lengths
        off = [abs(exact / total - Q(v)) for exact, v in zip(truth, point.v, strict=True)]
        assert all(one <= Q(most) for one, most in zip(off, doubt, strict=True))
        beyond += any(abs(exact / total) > Q(abs(v)) for exact, v in zip(truth, point.v, strict=True))
    assert beyond


def test_multipliers_of_one_sign_prove_nothing_beside_an_intercept():
    problem = task(fl.losses.Logistic(), 20, 4, intercept=True)
    samples, blocks = Responses(problem), problem.penalty.blocks(4)
    response = samples.at(Rounded(np.where(problem.y > 0, -1.0, -800.0), np.zeros(20)))
    assert response.a.min() > -1e-300
    assert samples.bounds(blocks, 0.0, response, np.zeros(4)).lower == -np.inf


def test_a_class_of_next_to_no_weight_is_certified_all_the_same():
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(30, 3)), np.ones(30), np.ones(30)
    y[0], weights[0] = -1.0, 1e-12
    problem = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(1.0), weights, intercept=True)
    for lam, result in zip(
        [1e-3, 1e-14], fl.path(problem, lams=[1e-3, 1e-14], max_seconds=5.0, warn=False), strict=True
    ):
        best = fl.solve(problem.with_lam(lam), tol=1e-10, max_seconds=5.0, warn=False)
        assert result.certificate.primal - result.certificate.gap <= best.certificate.primal


@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.SquaredHinge()], ids=name)
def test_separable_data_do_not_stop_newton(loss):
    """Curvatures fade away there: with a floor below them that stays, steps are far too short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    problem = fl.Problem(X, np.sign(X @ rng.normal(size=20)), loss, fl.penalties.L1(1.0))
    path = fl.path(problem, eps=1e-5, n_lams=30)
    assert np.mean([isinstance(result, Found) for result in path]) > 0.5
    assert np.median([result.n_iter for result in path]) <= 10


def test_a_tolerance_out_of_reach_is_soon_left_to_the_solver(monkeypatch):
    steps, step = [], smooth_path.SmoothPath._step
    monkeypatch.setattr(smooth_path.SmoothPath, "_step", lambda self, *a: steps.append(1) or step(self, *a))
    problem = task(fl.losses.Logistic(), 300, 8)
    fl.path(problem, n_lams=20, tol=1e-15, max_iter=None, warn=False)
    assert len(steps) <= 100


def test_a_limit_on_seconds_ends_the_path(clock):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 60))
    problem = fl.Problem(X, np.sign(X @ rng.normal(size=60)), fl.losses.Logistic(), fl.penalties.L1(1.0))
    fl.path(problem, lams=[1e-7], tol=1e-9, max_seconds=0.1, warn=False)
    assert clock.elapsed < 0.5


def test_results_say_how_they_came_about():
    for loss, n, d, how in (
        (fl.losses.Squared(), 50, 5, "second moments"),
        (fl.losses.Squared(), 20, 300, "gradient"),
        (fl.losses.Logistic(), 50, 5, "gradient"),
        (fl.losses.Logistic(), 20, 300, "gradient"),
    ):
        path = fl.path(task(loss, n, d), n_lams=6, eps=0.1, tol=1e-6)
        assert all(isinstance(result, Found) and how in result.certificate.how for result in path)
        assert ("moments" in path[3].certificate.how) == (how == "second moments")
    assert max(result.n_iter for result in path) > 1


def test_hessians_are_used_again(monkeypatch):
    formed, form = [], smooth_path.SmoothPath._form_hessian
    monkeypatch.setattr(smooth_path.SmoothPath, "_form_hessian", lambda self: formed.append(1) or form(self))
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
        other = fl.path(problem, n_lams=8, eps=0.2, tol=1e-6)[5]
        other.w[:] = 0.0  # the caller's to change
        assert other.certificate.evidence.w.any()
        np.testing.assert_array_equal(other.alpha, result.alpha)


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=name)
def test_groups_of_one_weight_may_have_thresholds_of_their_own(loss):
    """They are single weights, but not all alike."""
    rng = np.random.default_rng(0)
    problem = task(loss, 30, 200)
    problem = problem.replace(penalty=fl.penalties.GroupL2(1.0, np.arange(200), 1.0 + rng.random(200)))
    assert wide_path.WidePath.of(problem) is None
    for result in fl.path(problem, n_lams=4, eps=0.3, tol=1e-6):
        assert result.certificate.ok
    assert fl.solve(problem.with_lam(0.3 * problem.lam_max()), tol=1e-6).certificate.ok
