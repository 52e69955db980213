"""Primal coordinate descent: working sets, Hessians, second moments, passes along columns."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.bounds.measured import measured_bounds
from fenchel.data import limits
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Start
from fenchel.steps.linear_algebra import newton_system
from fenchel.steps.linear_algebra.conjugate_gradients import conjugate_gradients
from fenchel.steps.working_set import matrix_free, primal_cd, selection

SMOOTH = [
    fl.losses.Squared(),
    fl.losses.Logistic(),
    fl.losses.Huber(0.7),
    fl.losses.SquaredHinge(),
    fl.losses.SmoothedHinge(0.5),
    fl.losses.SquaredEpsilonInsensitive(0.1),
]


@pytest.fixture
def rng():
    return np.random.default_rng(4)


STORAGES = [lambda X: X, np.asfortranarray, sp.csr_array, sp.csc_array]


def random_problem(seed, n=None, d=None, share=20.0):
    """Loss, penalty, storage, number type, weights and intercept drawn by the seed."""
    rng = np.random.default_rng([4, seed])
    n, d = n or int(rng.integers(2, 90)), d or int(rng.integers(2, 150))
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    loss = SMOOTH[rng.integers(len(SMOOTH))]
    y = X[:, :3].sum(axis=1) + rng.normal(size=n)
    if loss.is_classification:
        y = np.where(y > 0, 1.0, -1.0)
        y[0], y[-1] = 1.0, -1.0
    lam = np.abs(X.T @ loss.derivative(np.zeros(n), y)).max() / n / share
    label = np.unique(rng.integers(0, max(1, d // 4), d), return_inverse=True)[1]
    penalty = [
        fl.penalties.L1(lam),
        fl.penalties.ElasticNet(lam, 0.7),
        fl.penalties.GroupL2(lam, label, rng.random(label.max() + 1) + 0.5),
    ][rng.integers(3)]
    weights = rng.random(n) if rng.random() < 0.5 else None
    X = X.astype(rng.choice([np.float32, np.float64]))
    return fl.Problem(STORAGES[rng.integers(4)](X), y, loss, penalty, weights, bool(rng.integers(2)))


def lasso(n, d, share, rng, noise=0.1):
    X = rng.normal(size=(n, d))
    y = X[:, :5] @ np.ones(5) + noise * rng.normal(size=n)
    lam = np.abs(X.T @ y).max() / n / share
    return fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(lam))


def tune(monkeypatch, module, **values):
    monkeypatch.setattr(module, "TUNING", replace(module.TUNING, **values))


def no_hessians(monkeypatch):
    """Neither of all weights, nor of a working set."""
    tune(monkeypatch, newton_system, gram_cost=0.0)
    for module in (primal_cd, selection):
        monkeypatch.setattr(module, "is_narrow", lambda state, width: False)


def watched_states(monkeypatch):
    """The width of the working set and whether a Hessian is formed for it, after every step."""
    seen, step = [], primal_cd.PrimalCD.step

    def watched(self, state):
        state = step(self, state)
        seen.append((state.set.width, state.hessian is not None))
        return state

    monkeypatch.setattr(primal_cd.PrimalCD, "step", watched)
    return seen


@pytest.mark.parametrize("seed", range(60))
def test_reaches_the_last_digits(seed):
    problem = random_problem(seed)
    result = fl.solve(problem, solver="primal_cd", tol=1e-9)
    assert result.certificate.ok
    other = fl.solve(problem, solver="pdhg", tol=1e-4, max_iter=20_000, warn=False)
    assert result.certificate.dual <= other.certificate.primal
    assert other.certificate.dual <= result.certificate.primal


def test_auto_takes_it_for_sparse_penalties(rng):
    X, y = rng.normal(size=(60, 8)), rng.normal(size=60)
    net, groups = fl.penalties.ElasticNet(0.1, 0.5), fl.penalties.GroupL2(0.1, [0, 0, 1, 1, 2, 2, 3, 3])
    for penalty in (fl.penalties.L1(0.1), net, groups):
        assert fl.solve(fl.Problem(X, y, fl.losses.Squared(), penalty)).solver == "primal_cd"
    assert fl.solve(fl.Problem(X, np.sign(y), fl.losses.Hinge(), net)).solver == "sdca"


def test_squared_loss_on_few_columns_is_one_model(rng):
    assert fl.solve(lasso(500, 20, 10.0, rng), solver="primal_cd", tol=1e-12).n_iter <= 3


def test_working_sets_leave_most_columns_alone(rng, monkeypatch):
    seen = watched_states(monkeypatch)
    result = fl.solve(lasso(80, 3000, 5.0, rng), solver="primal_cd", tol=1e-9)
    assert result.certificate.ok
    assert max(width for width, _ in seen) <= 500


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_passes_along_columns_converge_too(loss, intercept, rng, monkeypatch):
    """Where no Hessian is formed, coordinate descent and conjugate gradients do the work."""
    no_hessians(monkeypatch)
    seen = watched_states(monkeypatch)
    X = rng.normal(size=(150, 40))
    y = X[:, :5].sum(axis=1) + rng.normal(size=150)
    y = np.where(y > 0, 1.0, -1.0) if loss.is_classification else y
    net, groups = fl.penalties.ElasticNet(0.02, 0.7), fl.penalties.GroupL2(0.03, np.arange(40) // 4)
    for penalty in (fl.penalties.L1(0.02), net, groups):
        problem = fl.Problem(sp.csr_array(X), y, loss, penalty, rng.random(150), intercept)
        assert fl.solve(problem, solver="primal_cd", tol=1e-7).certificate.ok
    assert not any(hessian for _, hessian in seen)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("groups", [False, True])
def test_a_newton_step_on_the_support_is_exact_for_the_squared_loss(groups, storage, intercept, rng, monkeypatch):
    """From weights near the optimum, one step with exact conjugate gradients leaves no gradient there."""
    tune(monkeypatch, matrix_free, steps=(20, 20))
    exact = partial(conjugate_gradients, energy_goal=lambda first: 1e-24 * first)
    monkeypatch.setattr(matrix_free, "conjugate_gradients", lambda *given, energy_goal: exact(*given))
    X, weights = rng.normal(size=(60, 12)) + 1.0, rng.random(60)
    y = X[:, :5].sum(axis=1) + rng.normal(size=60)
    penalty = fl.penalties.GroupL2(0.05, np.arange(12) // 3) if groups else fl.penalties.L1(0.05)
    problem = fl.Problem(storage(X), y, fl.losses.Squared(), penalty, weights, intercept)
    best = fl.solve(problem, tol=1e-13, warn=False)
    w = best.w * (1.0 + 1e-4 * rng.normal(size=12))
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(w, best.b, best.alpha), 0)
    before = np.abs(state.weights - best.w).max()
    matrix_free.support_step(state)
    assert np.abs(state.weights - best.w).max() <= (1e-3 if groups else 1e-7) * before
    assert state.primal <= best.certificate.primal * (1.0 + 1e-12)


def test_passes_that_take_long_end_in_a_hessian(rng, monkeypatch):
    """Conjugate gradients are slow where columns are all but the same; the price of a Hessian is paid once."""
    tune(monkeypatch, newton_system, gram_cost=0.0)
    tune(monkeypatch, selection, always=0, narrow=0)
    monkeypatch.setattr(limits, "TUNING", replace(limits.TUNING, step=0.0))
    seen = watched_states(monkeypatch)
    X = np.cumsum(rng.normal(size=(200, 150)), axis=1)
    y = X @ rng.normal(size=150) + rng.normal(size=200)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1e-3))
    assert fl.solve(problem, solver="primal_cd", tol=1e-9).certificate.ok
    hessians = [hessian for _, hessian in seen]
    assert not hessians[0]
    assert hessians[-1]


def test_columns_outside_of_the_working_set_are_zero_in_the_optimum(rng):
    problem = lasso(60, 2000, 2.0, rng)
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(np.zeros(2000), 0.0, np.zeros(60)), 0)
    for _ in range(20):
        state = solver.step(state)
    assert state.set.width < 600
    exact = fl.solve(problem, solver="fista", tol=1e-10).w
    left_out = np.setdiff1d(np.arange(2000), state.set.members)
    assert not np.any(np.abs(exact[left_out]) > 1e-8)


@pytest.mark.parametrize("groups", [False, True])
def test_groups_left_out_wrongly_come_back(groups, rng):
    """After every step all columns are checked: a working set without the support is not the last."""
    problem = lasso(60, 400, 5.0, rng)
    if groups:
        problem = problem.replace(penalty=fl.penalties.GroupL2(problem.penalty.lam, np.arange(400) // 2))
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(np.zeros(400), 0.0, np.zeros(60)), 0)
    count = state.everything.blocks.count
    state.enter(state.everything.only(np.arange(count // 2, count)))
    assert state.set.members.min() == 200
    for _ in range(30):
        state = solver.step(state)
    assert state.set.members.min() == 0
    assert fl.certify(problem, state.weights, effort="low").relative_gap < 1e-8


def test_warm_start_saves_steps(rng):
    X = rng.normal(size=(100, 2000))
    problem = fl.Problem(X, np.sign(X[:, 0] + X[:, 1]), fl.losses.Logistic(), fl.penalties.L1(0.005))
    first = fl.solve(problem, solver="primal_cd", tol=1e-6)
    assert fl.solve(problem, solver="primal_cd", tol=1e-6, start=first).n_iter < first.n_iter


def test_all_zero_above_lam_max(rng):
    problem = lasso(50, 300, 0.9, rng)
    result = fl.solve(problem, solver="primal_cd", tol=1e-12)
    assert not result.w.any()
    assert result.certificate.zeros().all()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_columns_far_from_zero_are_no_harder(storage, offset, rng):
    """The intercept is eliminated: a step in it for every step in a weight would take thousands of them."""
    Z = rng.normal(size=(100, 20))
    y = Z[:, :5].sum(axis=1) + 0.1 * rng.normal(size=100)
    for penalty in (
        fl.penalties.L1(0.1),
        fl.penalties.ElasticNet(0.1, 0.5),
        fl.penalties.GroupL2(0.1, np.arange(20) // 5),
    ):
        problem = fl.Problem(storage(Z + offset), y, fl.losses.Squared(), penalty, intercept=True)
        assert fl.solve(problem, solver="primal_cd", tol=1e-5).n_iter <= 10


def test_columns_far_from_zero_are_no_harder_to_pass_along(rng, monkeypatch):
    no_hessians(monkeypatch)
    Z = rng.normal(size=(100, 20))
    steps = []
    for offset in (0.0, 1e4):
        problem = fl.Problem(
            Z + offset, Z[:, :5].sum(axis=1), fl.losses.Squared(), fl.penalties.L1(0.1), intercept=True
        )
        steps.append(fl.solve(problem, solver="primal_cd", tol=1e-5).n_iter)
    assert steps[1] <= 2 * steps[0] + 5


@pytest.mark.parametrize("hessians", [True, False])
def test_a_weight_on_a_column_of_zeros_returns_to_zero(hessians, rng, monkeypatch):
    if not hessians:
        no_hessians(monkeypatch)
    X, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    X[:, 2] = 0.0
    for penalty in (fl.penalties.L1(0.1), fl.penalties.GroupL2(0.1, [0, 0, 1, 2, 2, 3, 3, 3])):
        problem = fl.Problem(X, y, fl.losses.Squared(), penalty)
        result = fl.solve(problem, solver="primal_cd", tol=1e-8, start=(np.ones(8), 0.0, np.zeros(50)))
        assert result.certificate.ok
        assert result.w[2] == 0.0


def test_a_tolerance_out_of_reach_ends_the_run(rng):
    with pytest.warns(fl.NotCertifiedWarning, match="the gap is rounding"):
        result = fl.solve(lasso(100, 20, 10.0, rng), solver="primal_cd", tol=0.0)
    assert result.status == "stalled"
    assert result.n_iter < 100


def test_overflow_is_said(rng):
    X = 1e200 * rng.normal(size=(20, 30))
    y = 1e200 * rng.normal(size=20)
    with np.errstate(all="ignore"), pytest.warns(fl.NotCertifiedWarning):
        fl.solve(fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0)), solver="primal_cd", max_iter=50)


def test_penalised_intercept_is_refused(rng):
    design = fl.Design(rng.normal(size=(20, 3)), constant=1.0)
    problem = fl.Problem(design, rng.normal(size=20), fl.losses.Squared(), fl.penalties.L1(0.1))
    with pytest.raises(TypeError, match="'primal_cd' has no penalised intercept"):
        fl.solve(problem, solver="primal_cd")


def test_blocks_know_their_penalty(rng):
    label, weight = np.array([2, 0, 1, 0, 2, 2]), np.array([1.0, 2.0, 0.5])
    penalty, blocks = fl.penalties.GroupL2(0.3, label, weight), Blocks.of(label, 0.3 * weight)
    w = rng.normal(size=6)
    assert blocks.value(w) == pytest.approx(penalty.value(w))
    columns, part = blocks.only(np.array([2, 0]))
    assert columns.tolist() == [0, 4, 5, 1, 3]
    assert part.threshold.tolist() == [0.15, 0.3]
    assert part.norms(w[columns]) == pytest.approx(blocks.norms(w)[[2, 0]])
    net = fl.penalties.ElasticNet(0.3, 0.6)
    assert net.blocks(6).value(w) == pytest.approx(net.value(w))
    excess = net.blocks(6).excess(w)
    assert np.sum(excess**2) / (2 * net.blocks(6).ridge) == pytest.approx(net.conjugate(w))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_part_is_some_columns(storage, index, by_columns, rng):
    X = rng.normal(size=(12, 9)) * (rng.random((12, 9)) < 0.5)
    matrix = storage(X.astype(np.float32))
    if sp.issparse(matrix):
        matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    for which in (np.array([7, 0, 3]), np.array([], dtype=np.int64), np.arange(9)):
        part = fl.Design(matrix).only(which, by_columns)
        dense = part.matrix.toarray() if part.is_sparse else part.matrix
        assert part.dtype == np.float32
        assert np.array_equal(dense, X.astype(np.float32)[:, which])
        a = rng.normal(size=12)
        np.testing.assert_allclose(part.rmatvec(a), dense.T @ a, atol=1e-6)
        if sp.issparse(matrix) and matrix.format == "csr":
            assert part.by_rows != by_columns


@pytest.mark.parametrize("by_columns", [False, True])
def test_a_matrix_whose_entries_have_moved_is_an_error(by_columns, rng):
    """Counts of entries that are no longer right must not be written past."""
    matrix = sp.csr_array(np.eye(6))
    design = fl.Design(matrix)
    assert design.only(np.array([1, 2]), by_columns).nnz == 2
    matrix.indices[:] = 1
    with pytest.raises(ValueError, match="has changed"):
        design.only(np.array([1, 2]), by_columns)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("d", [10, 600])
def test_the_gap_of_what_was_measured_is_the_true_one(d, storage, rng):
    """P and D of `measured_bounds` are those of the definitions, beside rounding."""
    X, y = rng.normal(size=(40, d)), rng.normal(size=40)
    problem = fl.Problem(storage(X), y, fl.losses.Squared(), fl.penalties.L1(0.05))
    w = 0.1 * rng.normal(size=d) * (rng.random(d) < 0.3)
    state = primal_cd.PrimalCD().begin(problem, Start(w, 0.0, np.zeros(40)), 0)
    bounds = measured_bounds(problem, state.measured())
    a = problem.y - problem.scores(state.weights)
    scale = min(1.0, 0.05 / np.abs(problem.dual_vector(a)).max())
    dual = -problem.mean(problem.loss.conjugate(-scale * a, problem.y))
    assert np.array_equal(state.weights, w)
    assert bounds.primal[0] == pytest.approx(problem.primal(w), rel=1e-12)
    assert bounds.dual[0] == pytest.approx(dual, rel=1e-7)
    assert bounds.lower[0] <= dual
    assert bounds.gap[0] >= problem.primal(w) - dual


def test_separable_labels_with_almost_no_penalty_take_few_steps():
    """The curvature of every sample fades; a damping that does not fade with it makes steps tiny."""
    g = np.random.default_rng(0)
    X = g.normal(size=(50, 10))
    y = np.where(X @ g.normal(size=10) > 0, 1.0, -1.0)
    p = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(2e-18), intercept=True)
    result = fl.solve(p, "primal_cd", max_iter=1000)
    assert result.certificate.ok
