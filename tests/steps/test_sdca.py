"""Dual coordinate ascent: samplings, starts, outputs, shrinking, momentum."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.judge import judge_of
from fenchel.steps import SDCA, Start
from fenchel.steps.dual_ascent.averaging import SuffixAverage
from fenchel.steps.dual_ascent.sampling import Sampler
from tests.helpers.registry import LOSSES, name

rng = np.random.default_rng(0)
n, d = 400, 20
X = rng.normal(size=(n, d)) / np.sqrt(d)
y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def problem(loss=None, lam=1e-3, **arguments):
    return fl.Problem(X, y, loss or fl.losses.Hinge(), fl.penalties.L2(lam), **arguments)


def zero(p):
    return Start(np.zeros(p.shape[1]), 0.0, np.zeros(p.shape[0]))


@pytest.mark.parametrize("sampling", ["permutation", "uniform", "cyclic", "importance"])
@pytest.mark.parametrize("init", ["zeros", "sgd"])
@pytest.mark.parametrize("output", ["last", "average", "random"])
def test_every_sampling_start_and_output_is_certified(sampling, init, output):
    p = problem(fl.losses.SmoothedHinge(0.5))
    options = {"sampling": sampling, "init": init, "output": output}
    result = fl.solve(p, solver="sdca", tol=1e-6, check_every=5, **options)
    assert result.certificate.ok
    assert result.solver == "sdca"


def test_options_without_effect_or_sense_are_errors():
    for options, message in [
        ({"sampling": "random"}, "sampling must be one of 'permutation'"),
        ({"init": "ones"}, "init must be one of"),
        ({"output": "best"}, "output must be one of"),
        ({"sampling": "uniform", "shrink": True}, "needs every sample once"),
        ({"sampling": "uniform", "block": 4}, "block needs sampling"),
        ({"block": 0}, "block must be a whole number"),
        ({"accelerate": True, "init": "sgd"}, "exclude each other"),
        ({"init": "sgd", "start": (np.zeros(X.shape[1]), 0.0, np.zeros(len(X)))}, "ignores start"),
        ({"block": True}, "block must be a whole number"),
        ({"block": 2.0}, "block must be a whole number"),
    ]:
        with pytest.raises(ValueError, match=message):
            fl.solve(problem(), solver="sdca", **options)
    p = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.ElasticNet(0.1, 0.5))
    with pytest.raises(TypeError, match="accelerate=True needs an L2 penalty"):
        fl.solve(p, solver="sdca", accelerate=True)
    with pytest.raises(TypeError, match=r"stored by columns.*'fista', 'pdhg'.* would work"):
        fl.solve(fl.Problem(np.asfortranarray(X), y, fl.losses.Logistic(), fl.penalties.L2(0.1)), solver="sdca")


@pytest.mark.parametrize("name", ["shrink", "accelerate"])
def test_on_and_off_are_python_or_numpy_booleans_and_nothing_else(name):
    for value in (0, 1, "no", 0.0):
        with pytest.raises(TypeError, match=f"{name} must be True or False"):
            fl.solve(problem(), solver="sdca", **{name: value})
    for value in (True, False):
        assert SDCA(**{name: np.bool_(value)}) == SDCA(**{name: value})
        assert getattr(SDCA(**{name: np.bool_(value)}), name) is value


def test_blocks_of_any_size_and_integer_type_will_do():
    assert fl.solve(problem(), solver="sdca", block=np.int64(8)).certificate.ok
    assert fl.solve(problem(), solver="sdca", block=10**30).certificate.ok


def test_options_choose_the_solver_that_knows_them():
    assert fl.solve(problem(), sampling="cyclic", tol=1e-3).solver == "sdca"
    with pytest.raises(ValueError, match="check_every"):
        fl.solve(problem(), check_every=0)


@pytest.mark.parametrize("block", [1, 3, 8, 1000])
def test_permutations_visit_every_sample_once_in_blocks(block):
    sampler = Sampler("permutation", np.random.default_rng(0), np.arange(1000), block=block)
    before = sampler.next().copy()
    for _ in range(3):
        order = sampler.next()
        assert sorted(order) == list(range(1000))
        assert np.mean(order == before) < 0.1
        before = order.copy()
        if block in (3, 8):
            assert np.mean(np.diff(order) == 1) > 0.5
    sampler.keep(30)
    first, second = sampler.next().copy(), sampler.next().copy()
    assert len(first) == 30
    assert np.mean(first == second) < 0.5  # few samples are shuffled one by one
    sampler.restore()
    assert len(sampler.next()) == 1000


@pytest.mark.parametrize("options", [{"sampling": "importance"}, {"sampling": "uniform", "output": "random"}, {}])
def test_when_every_multiplier_is_proven_the_run_ends(options):
    g = np.random.default_rng(3)
    p = fl.Problem(g.normal(size=(10, 3)), np.tile([-1.0, 1.0], 5), fl.losses.Hinge(), fl.penalties.L2(8.85))
    result = fl.solve(p, solver="sdca", tol=1e-9, **options)
    assert result.certificate.ok
    assert result.n_iter < 200


def test_an_epoch_is_the_paper_in_python():
    """One cyclic epoch for the hinge, by the formulas of section 6.1."""
    p = problem(lam=0.01)
    solver = SDCA(sampling="cyclic", shrink=False, accelerate=False)
    state = solver.step(solver.begin(p, zero(p), 0))
    alpha, w = np.zeros(n), np.zeros(d)
    for i in range(n):
        q = X[i] @ X[i] / (0.01 * n)
        new = y[i] * np.clip((1 - y[i] * (X[i] @ w)) / q + alpha[i] * y[i], 0, 1)
        w += (new - alpha[i]) * X[i] / (0.01 * n)
        alpha[i] = new
    np.testing.assert_allclose(state.alpha, alpha, atol=1e-12)
    np.testing.assert_allclose(state.weights(), w, atol=1e-12)


def test_modified_sgd_is_the_paper_in_python():
    """Section 4: sample t takes the step of the problem of the first t samples."""
    p = problem(fl.losses.SquaredHinge(), lam=0.01)
    solver = SDCA(sampling="cyclic", init="sgd")
    state = solver.begin(p, zero(p), 0)
    alpha, total = np.zeros(n), np.zeros(d)
    for t in range(n):
        w, q = total / (0.01 * (t + 1)), X[t] @ X[t] / (0.01 * (t + 1))
        alpha[t] = y[t] * max(0.0, (1 - y[t] * (X[t] @ w)) / (0.5 + q))
        total += alpha[t] * X[t]
    np.testing.assert_allclose(state.alpha, alpha, atol=1e-12)
    np.testing.assert_allclose(state.weights(), total / (0.01 * n), atol=1e-12)


def test_averages_are_over_every_iterate():
    """The mean over the steps of an epoch, as the kernel keeps it in O(1) a step, against the definition."""
    p = problem(fl.losses.SquaredHinge(), lam=0.01)
    solver = SDCA(sampling="cyclic", output="average", shrink=False, accelerate=False)
    state = solver.begin(p, zero(p), 0)
    for _ in range(3):
        state = solver.step(state)
    single = SDCA(sampling="cyclic", shrink=False, accelerate=False)
    plain, history = single.begin(p, zero(p), 0), []
    for _ in range(3):
        for i in range(n):
            history.append(plain.alpha.copy())
            plain.ascent.epoch(np.array([i]), plain.alpha, plain.u, np.inf, None, 1, 1)
    # windows open at epochs 1, 2, 4, ...; after three epochs the older one began with the first
    np.testing.assert_allclose(state.averaging.average, np.mean(history, axis=0), atol=1e-12)


def test_the_window_is_the_last_part_of_the_run():
    averaging = SuffixAverage(1, np.random.default_rng(0))
    for epoch in range(1, 40):
        averaging.add(np.array([float(epoch)]), np.array([float(epoch)]))
        first = 2 * averaging.average[0] - epoch  # the mean of first .. epoch
        assert epoch == 1 or (epoch + 1) / 4 - 1e-9 <= first <= (epoch + 1) / 2 + 1e-9
        assert first <= averaging.random[0] <= epoch


def test_shrinking_changes_the_work_not_the_answer():
    plain = fl.solve(problem(), solver="sdca", shrink=False, tol=1e-9)
    shrunk = fl.solve(problem(), solver="sdca", tol=1e-9)
    assert shrunk.certificate.ok
    np.testing.assert_allclose(shrunk.w, plain.w, atol=1e-4)
    visited = []
    solver = SDCA()
    p = problem()
    state = solver.begin(p, zero(p), 0)
    for _ in range(60):
        visited.append(state.sampler.active)
        state = solver.step(state)
    assert visited[0] == n
    assert visited[-1] < n / 2


def test_samples_proven_by_a_certificate_have_the_optimal_multiplier():
    p = problem(lam=0.01)
    exact = fl.solve(p, solver="newton", tol=1e-12, warn=False)
    solver = SDCA()
    state = solver.begin(p, zero(p), 0)
    for _ in range(30):
        state = solver.step(state)
    c = fl.certify(p, state.weights(), alpha=state.alpha)
    solver.observe(state, p.scores(state.weights()), c.primal, c.gap)
    left_out = np.setdiff1d(np.arange(n), state.sampler.pool)
    assert len(left_out) > n / 10
    np.testing.assert_allclose(state.alpha[left_out], exact.alpha[left_out], atol=1e-6)


@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.Squared(), fl.losses.SquaredHinge()])
def test_momentum_pays_where_the_problem_is_ill_conditioned(loss):
    p = problem(loss, lam=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        plain = fl.solve(p, solver="sdca", accelerate=False, tol=1e-6, max_iter=20_000)
        fast = fl.solve(p, solver="sdca", tol=1e-6, max_iter=20_000)
    assert fast.certificate.ok
    assert fast.n_iter < plain.n_iter / 3


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if np.isfinite(loss.smoothness)], ids=name)
def test_few_rows_of_many_columns_are_solved_in_a_few_epochs(loss, lam, intercept):
    """With momentum and a free intercept these ran for ever."""
    g = np.random.default_rng(0)
    X = sp.random_array((500, 1500), density=0.03, format="csr", rng=g)
    y = np.where(X @ g.normal(size=1500) + 0.1 * g.normal(size=500) > 0, 1.0, -1.0)
    p = fl.Problem(X, y, loss, fl.penalties.L2(lam), intercept=intercept)
    assert fl.solve(p, solver="sdca", tol=1e-4, max_iter=500).certificate.ok
    if not intercept:
        assert fl.solve(p, solver="sdca", tol=1e-4, max_iter=500, accelerate=True).certificate.ok


def test_warm_start_from_another_lam_saves_epochs():
    first = fl.solve(problem(fl.losses.Logistic(), lam=1e-2), solver="sdca", tol=1e-8)
    cold = fl.solve(problem(fl.losses.Logistic(), lam=0.99e-2), solver="sdca", tol=1e-6, check_every=1)
    warm = fl.solve(problem(fl.losses.Logistic(), lam=0.99e-2), solver="sdca", tol=1e-6, check_every=1, start=first)
    assert warm.n_iter < cold.n_iter


def test_weight_two_is_the_row_twice():
    weights = np.where(np.arange(n) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(n), weights.astype(int))
    for loss in (fl.losses.Hinge(), fl.losses.Logistic()):
        for solver in ("sdca", "newton"):
            weighted = fl.solve(problem(loss, sample_weight=weights), solver=solver, tol=1e-9)
            doubled = fl.solve(fl.Problem(X[twice], y[twice], loss, fl.penalties.L2(1e-3)), solver=solver, tol=1e-9)
            np.testing.assert_allclose(weighted.w, doubled.w, atol=2e-3)


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Squared()], ids=name)
def test_steps_leave_what_a_judge_has_kept(loss):
    """Candidates are the solver's own vectors, changed in place by the next epoch."""
    p, method = problem(loss, lam=0.1), SDCA(shrink=False)
    state, judge = method.step(method.begin(p, zero(p), 0)), judge_of(p)
    (candidate,) = method.candidates(state)
    judge.try_residual(candidate, judge.consider(candidate.w, candidate.b, candidate.scores), "multipliers")
    assert judge.best.how == "multipliers"
    w, alpha, dual = judge.w.copy(), judge.best.alpha.copy(), judge.best.value
    for _ in range(3):
        method.step(state)
    assert not np.array_equal(state.alpha, alpha)
    assert np.array_equal(judge.w, w)
    assert np.array_equal(judge.best.alpha, alpha)
    assert p.dual(judge.best.alpha) == pytest.approx(dual, rel=1e-12)


def test_estimates_only_schedule_checks():
    """A certificate is made when the solver believes it is done, and the run goes on if it is not."""
    result = fl.solve(problem(), solver="sdca", tol=1e-7)
    assert result.certificate.ok
    assert len(result.trace) < result.n_iter / 5
    every = fl.solve(problem(), solver="sdca", tol=1e-7, check_every=1)
    assert len(every.trace) == every.n_iter
