"""Primal coordinate descent: working sets, Gram matrices, walks along columns, screening."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Start
from fenchel.steps.working_set import primal_cd
from fenchel.steps.working_set import support_newton as face_descent
from fenchel.steps.working_set.state import DescentState, Part

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


def no_hessians(monkeypatch):
    for limit in ("ALWAYS", "PER_ENTRY", "PASSING"):
        monkeypatch.setattr(primal_cd, limit, 0)


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
    assert fl.solve(lasso(500, 20, 10.0, rng), solver="primal_cd", tol=1e-12).n_iter <= 2


def test_working_sets_leave_most_columns_alone(rng, monkeypatch):
    sizes = []
    grown = primal_cd._next_part
    monkeypatch.setattr(primal_cd, "_next_part", lambda state: (grown(state), sizes.append(len(state.w)))[0])
    result = fl.solve(lasso(80, 3000, 5.0, rng), solver="primal_cd", tol=1e-9)
    assert result.certificate.ok
    assert max(sizes) <= 500


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: type(loss).__name__)
def test_walks_along_columns_arrive_too(loss, intercept, rng, monkeypatch):
    """Where no Hessian has room, coordinate descent, extrapolation and conjugate gradients do the work."""
    no_hessians(monkeypatch)
    X = rng.normal(size=(150, 40))
    y = X[:, :5].sum(axis=1) + rng.normal(size=150)
    y = np.where(y > 0, 1.0, -1.0) if loss.is_classification else y
    net, groups = fl.penalties.ElasticNet(0.02, 0.7), fl.penalties.GroupL2(0.03, np.arange(40) // 4)
    for penalty in (fl.penalties.L1(0.02), net, groups):
        problem = fl.Problem(sp.csr_array(X), y, loss, penalty, rng.random(150), intercept)
        assert fl.solve(problem, solver="primal_cd", tol=1e-7).certificate.ok


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("groups", [False, True])
def test_a_newton_step_on_the_face_is_exact_for_the_squared_loss(groups, storage, intercept, rng, monkeypatch):
    """From weights near the optimum, one step with exact conjugate gradients leaves no gradient on the face."""
    monkeypatch.setattr(face_descent, "LIMITS", (20, 1e-12))
    X, weights = rng.normal(size=(60, 12)) + 1.0, rng.random(60)
    y = X[:, :5].sum(axis=1) + rng.normal(size=60)
    penalty = fl.penalties.GroupL2(0.05, np.arange(12) // 3) if groups else fl.penalties.L1(0.05)
    problem = fl.Problem(storage(X), y, fl.losses.Squared(), penalty, weights, intercept)
    best = fl.solve(problem, tol=1e-13, warn=False)
    w = best.w * (1.0 + 1e-4 * rng.normal(size=12))
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(w, best.b, best.alpha), 0)
    before = np.abs(state.weights - best.w).max()
    face_descent.face_step(state)
    assert np.abs(state.weights - best.w).max() <= (1e-3 if groups else 1e-7) * before
    assert state.primal <= best.certificate.primal * (1.0 + 1e-12)


def test_passes_that_take_long_end_in_a_hessian(rng, monkeypatch):
    """Conjugate gradients are slow where columns are all but the same; the price of a Hessian is paid once."""
    monkeypatch.setattr(primal_cd, "ALWAYS", 0)
    X = np.cumsum(rng.normal(size=(200, 150)), axis=1)
    y = X @ rng.normal(size=150) + rng.normal(size=200)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1e-3))
    states, step = [], primal_cd.PrimalCD.step
    monkeypatch.setattr(primal_cd.PrimalCD, "step", lambda self, state: states.append(state) or step(self, state))
    assert fl.solve(problem, solver="primal_cd", tol=1e-9).certificate.ok
    assert states[-1].patient


def test_screening_drops_only_zeros(rng):
    problem = lasso(60, 2000, 2.0, rng)
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(np.zeros(2000), 0.0, np.zeros(60)), 0)
    for _ in range(20):
        state = solver.step(state)
    state.parts = primal_cd.LATE
    primal_cd._screen(state)
    assert len(state.whole.members) < 600
    exact = fl.solve(problem, solver="fista", tol=1e-10).w
    dropped = np.setdiff1d(np.arange(2000), state.whole.members)
    assert not np.any(np.abs(exact[dropped]) > 1e-8)


def test_groups_left_out_wrongly_come_back(rng):
    """A certificate that contradicts the solver's own gap undoes the screening."""
    problem = lasso(60, 400, 5.0, rng)
    solver = primal_cd.PrimalCD()
    state = solver.begin(problem, Start(np.zeros(400), 0.0, np.zeros(60)), 0)
    state.whole = Part.whole(problem).only(np.arange(200, 400))
    state.enter(state.whole)
    state.look_at_all()
    for _ in range(10):
        state = solver.step(state)
    solver.observe(state, state.z, state.primal, 1e3 * state.gap)
    assert len(state.whole.members) == 400
    for _ in range(20):
        state = solver.step(state)
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


def test_columns_far_from_zero_are_no_harder_to_walk_along(rng, monkeypatch):
    no_hessians(monkeypatch)
    Z = rng.normal(size=(100, 20))
    steps = []
    for offset in (0.0, 1e4):
        problem = fl.Problem(
            Z + offset, Z[:, :5].sum(axis=1), fl.losses.Squared(), fl.penalties.L1(0.1), intercept=True
        )
        steps.append(fl.solve(problem, solver="primal_cd", tol=1e-5).n_iter)
    assert steps[1] <= 2 * steps[0] + 5


@pytest.mark.parametrize("room", [10**6, 0])
def test_a_weight_on_a_column_of_zeros_returns_to_zero(room, rng, monkeypatch):
    monkeypatch.setattr(primal_cd, "ALWAYS", room)
    monkeypatch.setattr(primal_cd, "PER_ENTRY", 0)
    X, y = rng.normal(size=(50, 8)), rng.normal(size=50)
    X[:, 2] = 0.0
    for penalty in (fl.penalties.L1(0.1), fl.penalties.GroupL2(0.1, [0, 0, 1, 2, 2, 3, 3, 3])):
        problem = fl.Problem(X, y, fl.losses.Squared(), penalty)
        result = fl.solve(problem, solver="primal_cd", tol=1e-8, start=(np.ones(8), 0.0, np.zeros(50)))
        assert result.certificate.ok
        assert result.w[2] == 0.0


def test_a_tolerance_out_of_reach_ends_the_run(rng):
    with pytest.warns(fl.NotCertifiedWarning, match="what is left of the gap is rounding"):
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


def test_believed_gap_is_the_true_one(rng):
    problem = fl.Problem(rng.normal(size=(40, 10)), rng.normal(size=40), fl.losses.Squared(), fl.penalties.L1(0.05))
    solver = primal_cd.PrimalCD()
    state: DescentState = solver.begin(problem, Start(0.1 * rng.normal(size=10), 0.0, np.zeros(40)), 0)
    a = problem.y - problem.scores(state.weights)
    v = problem.dual_vector(a)
    scale = min(1.0, 0.05 / np.abs(v).max())
    dual = -problem.mean(problem.loss.conjugate(-scale * a, problem.y))
    assert state.gap == pytest.approx(problem.primal(state.weights) - dual)
