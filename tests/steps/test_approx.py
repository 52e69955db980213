"""Accelerated coordinate descent: the algorithm of the paper, in any storage, over weights and over samples."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.solver import Start
from fenchel.steps import APPROX
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import name, targets

SMOOTH = [
    fl.losses.Squared(),
    fl.losses.Logistic(),
    fl.losses.SquaredHinge(),
    fl.losses.SmoothedHinge(0.5),
    fl.losses.Huber(0.7),
]
ALL = [*SMOOTH, fl.losses.Hinge(), fl.losses.Absolute(), fl.losses.Pinball(0.3)]
STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: sp.csc_array(X.astype(np.float32)),
}


def data(seed=0, n=40, d=9, sparse=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
    X[rng.random(X.shape) < sparse] = 0.0
    return X.astype(np.float32).astype(np.float64), rng


def block_penalties(d):
    groups = np.arange(d) // 3
    return [
        fl.penalties.L1(0.05),
        fl.penalties.ElasticNet(0.05, 0.7),
        fl.penalties.GroupL2(0.05, groups, weights=1.0 + np.arange(groups.max() + 1)),
        fl.penalties.L2(0.05),
    ]


# Against its definition and the conic solver --------------------------------------------------------------------------


def by_definition(problem, order, blocks, curvature, accelerate=True):
    """APPROX as it is printed, all of x, y and z in every step, with the proximal map of the penalty."""
    d = problem.shape[1]
    X, count = np.asarray(problem.design.matrix), len(blocks)
    x, z, theta = np.zeros(d), np.zeros(d), 1.0 / count
    for g in order:
        y = (1 - theta) * x + theta * z if accelerate else z
        slope = problem.loss.derivative(X @ y, problem.y) * problem.weights / problem.total_weight
        columns, step = blocks[g], 1.0 / (count * theta * curvature[g])
        trial = z.copy()
        trial[columns] -= step * (X[:, columns].T @ slope)
        after = z.copy()
        after[columns] = problem.penalty.prox(trial, step)[columns]
        x = y + count * theta * (after - z)
        z = after
        if accelerate:
            theta = (np.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
    return x


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@pytest.mark.parametrize("which", range(4))
def test_a_pass_over_weights_makes_the_printed_steps(loss, which, accelerate):
    X, rng = data()
    penalty = block_penalties(9)[which]
    problem = fl.Problem(X, targets(loss, rng, 40), loss, penalty, sample_weight=rng.random(40))
    restart = False if accelerate else None
    algorithm = APPROX(over="weights", accelerate=accelerate, restart=restart)
    state = algorithm.begin(problem, Start(np.zeros(9), 0.0, np.zeros(40)), seed=3)
    count = len(state.pool)
    draws = np.random.default_rng(3)
    order = np.concatenate([draws.integers(count, size=count) for _ in range(5)])
    for _ in range(5):
        state = algorithm.step(state)
    size = 9 // count
    blocks = [np.arange(g * size, (g + 1) * size) for g in range(count)]
    expected = by_definition(problem, order, blocks, state.curvature, accelerate)
    np.testing.assert_allclose(state.candidate().w, expected, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@pytest.mark.parametrize("which", range(4))
def test_over_weights_it_agrees_with_the_conic_solver(loss, which, intercept):
    X, rng = data(which)
    storage = list(STORAGES.values())[(which + intercept) % 5]
    y, s = targets(loss, rng, 40), rng.random(40)
    problem = fl.Problem(storage(X), y, loss, block_penalties(9)[which], s, intercept)
    c = fl.solve(problem, solver="approx", over="weights", tol=1e-6).certificate
    best = problem.primal(*reliable_optimum(problem))
    assert c.ok
    assert c.gap >= c.primal - best >= -2e-6 * best


@pytest.mark.parametrize("loss", ALL, ids=name)
@pytest.mark.parametrize("penalty", [fl.penalties.L2(0.05), fl.penalties.ElasticNet(0.05, 0.4)], ids=name)
def test_over_samples_it_agrees_with_the_conic_solver(loss, penalty):
    X, rng = data(5)
    problem = fl.Problem(X, targets(loss, rng, 40), loss, penalty, sample_weight=rng.random(40))
    c = fl.solve(problem, solver="approx", over="samples", tol=1e-6).certificate
    best = problem.primal(*reliable_optimum(problem))
    assert c.ok
    assert c.gap >= c.primal - best >= -2e-6 * best


@pytest.mark.parametrize("over", ["weights", "samples"])
def test_the_storage_makes_no_difference(over):
    X, rng = data()
    y = targets(fl.losses.Logistic(), rng, 40)
    penalty = fl.penalties.ElasticNet(0.02, 0.5)
    found = [
        fl.solve(fl.Problem(store(X), y, fl.losses.Logistic(), penalty), solver="approx", over=over, tol=1e-8).w
        for store in STORAGES.values()
    ]
    for w in found[1:]:
        np.testing.assert_allclose(w, found[0], atol=1e-10)


# Options, starts, limits ----------------------------------------------------------------------------------------------


def svm(n=200):
    X, rng = data(7, n, 5)
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=n) > 0, 1.0, -1.0)
    return fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-3))


def test_momentum_makes_fewer_epochs_of_an_ill_conditioned_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60)) @ np.diag(np.geomspace(1, 1e-2, 60)) + rng.normal(size=(200, 1))
    problem = fl.Problem(X, X @ rng.normal(size=60) + 0.1 * rng.normal(size=200), penalty=fl.penalties.L1(1e-4))
    options = {"solver": "approx", "tol": 1e-6, "check_every": 10, "warn": False}
    epochs = fl.solve(problem, **options).n_iter
    plain = fl.solve(problem, **options, accelerate=False, max_iter=3 * epochs)
    assert plain.status == "max_iter"  # certified after more than thirty times as many


def test_multipliers_of_the_hinge_stay_in_their_box():
    problem = svm()
    algorithm = APPROX(restart=False)
    state = algorithm.begin(problem, Start(np.zeros(5), 0.0, np.zeros(200)), seed=0)
    for _ in range(50):
        state = algorithm.step(state)
        t = state.x * problem.y
        assert t.min() >= -1e-12
        assert t.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("over", ["weights", "samples"])
def test_a_start_at_the_optimum_stays_there(over):
    X, rng = data()
    problem = fl.Problem(X, rng.normal(size=40), penalty=fl.penalties.ElasticNet(0.1, 0.5))
    first = fl.solve(problem, solver="approx", over=over, tol=1e-10)
    second = fl.solve(problem, solver="approx", over=over, tol=1e-9, start=first, check_every=1)
    assert second.n_iter <= 3


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    problem = svm()
    a, b, c = (fl.solve(problem, solver="approx", tol=1e-3, random_state=seed).w for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert np.any(a != c)


def test_a_weight_of_two_is_the_row_twice_in_the_limit():
    X, rng = data()
    y, s = rng.normal(size=40), rng.integers(0, 3, size=40)
    penalty = fl.penalties.L1(0.05)
    weighted = fl.Problem(X, y, penalty=penalty, sample_weight=s)
    repeated = fl.Problem(np.repeat(X, s, axis=0), np.repeat(y, s), penalty=penalty)
    one, other = (fl.solve(p, solver="approx", tol=1e-10).w for p in (weighted, repeated))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_columns_of_zeros_and_one_column_are_no_obstacle():
    X, rng = data(d=4)
    X[:, 2] = 0.0
    for part in (X, X[:, :1]):
        r = fl.solve(fl.Problem(part, rng.normal(size=40), penalty=fl.penalties.L1(1e-3)), solver="approx", tol=1e-8)
        assert r.certificate.ok
        assert np.all(r.w[2:3] == 0.0)


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (
            lambda X, y: fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L1(0.1)),
            {},
            "needs L2 or ElasticNet over samples",
        ),
        (
            lambda X, y: fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(0.1)),
            {"over": "weights"},
            "needs, over weights, a loss with a Lipschitz derivative, which Hinge",
        ),
        (
            lambda X, y: fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(0.1), intercept=True),
            {},
            "does not support an intercept over samples",
        ),
        (
            lambda X, y: fl.Problem(X, y, penalty=fl.penalties.Entropy(0.1)),
            {},
            "needs L1, ElasticNet, GroupL2 or L2 over weights",
        ),
        (
            lambda X, y: fl.Problem(fl.Design(X, constant=1.0), y, fl.losses.Hinge()),
            {},
            "has no penalised intercept",
        ),
    ],
)
def test_what_it_cannot_solve_is_said(problem, options, message):
    X, rng = data()
    with pytest.raises(TypeError, match=message):
        fl.solve(problem(X, np.sign(rng.normal(size=40))), solver="approx", **options)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"over": "columns"}, ValueError, "approx: over must be one of 'weights', 'samples'; got 'columns'"),
        ({"accelerate": 1}, TypeError, "approx: accelerate must be True or False"),
        ({"restart": "yes"}, TypeError, "approx: restart must be True or False"),
        ({"accelerate": False, "restart": True}, ValueError, "restart needs accelerate"),
    ],
)
def test_options_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        fl.solve(svm(), solver="approx", **options)


def test_features_beyond_their_squares_end_the_run_with_what_is_known():
    X, rng = data()
    problem = fl.Problem(1e200 * X, rng.normal(size=40), penalty=fl.penalties.L1(1e150))
    with pytest.warns(fl.NotCertifiedWarning, match="rescale"):
        assert fl.solve(problem, solver="approx").status == "overflow"
