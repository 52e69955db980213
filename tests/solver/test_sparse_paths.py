"""Paths and single solves with penalties that make zeros: one set of promises, whichever algorithm keeps them."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import fenchel as fl
from fenchel.data import samples
from fenchel.solver import run
from fenchel.solver.paths.grid import along
from fenchel.solver.solve import Clock as TimeLimit
from fenchel.solver.solve import Request, follow
from fenchel.steps import PrimalCD, Start
from fenchel.steps.base import Goal, Supports
from fenchel.steps.working_set import hessian, primal_cd, selection, sparse_path
from tests.helpers.registry import SMOOTH, name, targets
from tests.laws.test_exact_arithmetic import gaps_of_paths_hold

LOSSES = [*SMOOTH, fl.losses.SquaredEpsilonInsensitive(0.1)]
PENALTIES = {
    "L1": lambda d: fl.penalties.L1(1.0),
    "elastic net": lambda d: fl.penalties.ElasticNet(1.0, 0.6),
    "groups": lambda d: fl.penalties.GroupL2(1.0, np.arange(d) // 2, 1.0 + np.arange((d + 1) // 2) / d),
    "own thresholds": lambda d: fl.penalties.GroupL2(1.0, np.arange(d), 1.0 + np.arange(d) / d),
}
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array}
#: What is solved how: few dense samples by the compiled path; few columns by Hessians, or second moments of the
#: squared loss; many columns by working sets, whose Hessian is formed or not.
ENGINES = {"few samples": (25, 60), "few columns": (60, 9), "working sets": (40, 30), "column passes": (40, 30)}
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name)
two_losses = pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=name)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
either_intercept = pytest.mark.parametrize("intercept", [False, True])
every_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(autouse=True)
def tuned(request, monkeypatch):
    """Small data are solved as large ones are, for the engines of these."""
    engine = request.node.callspec.params.get("engine") if hasattr(request.node, "callspec") else None
    if engine in ("working sets", "column passes"):
        force_working_sets(monkeypatch, engine == "working sets")


def force_working_sets(monkeypatch, hessians=True):
    monkeypatch.setattr(sparse_path.SparsePath, "obstacle", lambda self, problem: "is not for this test")
    monkeypatch.setattr(primal_cd, "is_cheap", lambda problem: False)
    monkeypatch.setattr(selection, "TUNING", dataclasses.replace(selection.TUNING, first_size=4))
    if not hessians:
        for module in (primal_cd, selection):
            monkeypatch.setattr(module, "is_narrow", lambda state, width: False)


def task(loss, n, d, penalty="L1", intercept=False, storage="C", seed=0, offset=0.0, weighted=True):
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d)) * np.exp(0.5 * rng.normal(size=d)) + offset
    if storage.startswith("CS"):
        X *= rng.random((n, d)) < 0.5
    x = X[:, :3].sum(axis=1)
    y = targets(loss, rng, n)
    y = np.where(x - x.mean() + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else y + x - x.mean()
    weights = rng.integers(0, 3, n) * rng.random(n) + 1e-3 if weighted else None
    return fl.Problem(STORAGES[storage](X), y, loss, PENALTIES[penalty](d), weights, intercept)


def task_for(engine, loss=LOSSES[0], *args, **kwargs):
    return task(loss, *ENGINES[engine], *args, **kwargs)


def is_measured(result):
    """Whether a result was certified from products that the solver had computed anyway."""
    return result.certificate.evidence.known is None


# The same optima --------------------------------------------------------------------------------------------------


@either_intercept
@every_penalty
@pytest.mark.parametrize("storage", STORAGES)
@every_engine
@every_loss
def test_models_are_optima_and_certified_without_a_product(loss, engine, storage, penalty, intercept, monkeypatch):
    problem = task_for(engine, loss, penalty, intercept, storage)
    path = fl.path(problem, eps=0.05, n_lams=12, tol=1e-6)
    assert all(is_measured(result) for result in path)
    compiled = engine == "few samples" and not storage.startswith("CS") and penalty in ("L1", "elastic net")
    assert {result.solver for result in path} == {"sparse_path" if compiled else "primal_cd"}
    for lam, result in zip(path.lams, path, strict=True):
        at, c = problem.with_lam(float(lam)), result.certificate
        assert c.ok
        # whoever computes the objective and the bounds from the weights alone comes to the same
        other = fl.certify(at, result.w, result.b, effort="low")
        assert other.primal == pytest.approx(c.primal, rel=1e-10)
        assert c.primal - c.gap <= other.primal
        assert other.primal - other.gap <= c.primal
        assert c.dual <= other.primal * (1.0 + 3e-11)  # as computed
        assert other.dual <= c.primal * (1.0 + 3e-11)
        assert other.relative_gap <= 3e-6
    # lam_max is rounded, and column passes see it
    assert np.abs(path[0].w).max() <= (1e-12 if engine == "column passes" else 0.0)


@pytest.mark.parametrize("seed", [23, 93, 129])
@pytest.mark.parametrize("engine", ["column passes"])
def test_slow_column_passes_go_on_while_the_objective_falls(engine, seed):
    """P may fall by 1e-13 of itself in a step while the gap is 1e-6 of it."""
    problem = task(fl.losses.SmoothedHinge(0.5), 40, 30, "groups", True, seed=seed)
    path = fl.path(problem, eps=0.05, n_lams=12, tol=1e-6)
    assert all(result.certificate.ok and is_measured(result) for result in path)


@either_intercept
@every_penalty
@every_engine
@every_loss
def test_models_are_those_of_another_algorithm(loss, engine, penalty, intercept):
    problem = task_for(engine, loss, penalty, intercept)
    problem = problem.with_lam(0.1 * problem.lam_max())
    ours, theirs = fl.solve(problem, tol=1e-9), fl.solve(problem, "fista", tol=1e-9, max_iter=200_000)
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-3)
    np.testing.assert_allclose(ours.b, theirs.b, atol=1e-3)


@every_engine
@two_losses
def test_storages_give_one_path(loss, engine):
    whole = task_for(engine, loss, "L1", True, "CSR", weighted=False)
    X, paths = whole.design.matrix.toarray(), []
    for storage in STORAGES.values():
        problem = fl.Problem(storage(X), whole.y, loss, whole.penalty, intercept=True)
        paths.append(fl.path(problem, eps=0.05, n_lams=10, tol=1e-9))
    for other in paths[1:]:
        np.testing.assert_allclose(other.coefs, paths[0].coefs, atol=1e-3)
        for a, b in zip(other, paths[0], strict=True):
            assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("tol", [0.9, 0.1, 1e-3, 1e-10])
@every_engine
@every_loss
def test_single_lams_are_certified_at_any_tolerance(loss, engine, tol):
    problem = task_for(engine, loss, intercept=True)
    problem = problem.with_lam(0.03 * problem.lam_max())
    result, best = fl.solve(problem, tol=tol), fl.solve(problem, tol=1e-11, warn=False)
    assert result.certificate.ok
    assert result.certificate.evidence.problem.penalty == problem.penalty
    assert result.certificate.primal - result.certificate.gap <= best.certificate.primal * (1.0 + 1e-12)
    assert result.certificate.dual <= best.certificate.primal * (1.0 + 1e-12)
    assert problem.primal(result.w, result.b) == pytest.approx(result.certificate.primal, rel=1e-9)


@every_engine
@every_loss
def test_above_lam_max_all_weights_are_zero(loss, engine):
    problem = task_for(engine, loss, intercept=True)
    result = fl.solve(problem.with_lam(3.0 * problem.lam_max()), tol=1e-6)
    assert is_measured(result)
    assert not result.w.any()


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e3, 1e6])
@either_intercept
@pytest.mark.parametrize("penalty", ["L1", "elastic net", "groups"])
@pytest.mark.parametrize(
    ("n", "d", "engine"), [(30, 4, ""), (8, 20, ""), (12, 9, "working sets"), (12, 9, "column passes")]
)
def test_gaps_hold_in_exact_arithmetic(n, d, engine, penalty, intercept, offset):
    for loss in LOSSES if offset == 10.0 and penalty != "groups" else LOSSES[:2]:
        gaps_of_paths_hold(task(loss, n, d, penalty, intercept, offset=offset), [1.0, 0.5, 0.1, 0.01])


# Along the path ---------------------------------------------------------------------------------------------------


@two_losses
def test_models_that_serve_several_lams_are_certified_at_each(loss):
    """A model is carried over while its gap is a small part of what is asked for: gaps do not add up."""
    problem = task(loss, 600, 1200, storage="CSR")
    path = fl.path(problem, eps=0.3, n_lams=300, tol=0.05)
    assert sum(result.n_iter == 0 for result in path) > 90
    for lam, result in list(zip(path.lams, path, strict=True))[::50]:
        best = fl.solve(problem.with_lam(lam), tol=1e-7)
        assert result.certificate.primal - result.certificate.gap <= best.certificate.primal * (1.0 + 1e-12)
        assert problem.with_lam(lam).primal(result.w, result.b) == pytest.approx(result.certificate.primal)


@every_penalty
@pytest.mark.parametrize("engine", ["few columns", "working sets", "column passes"])
@every_loss
def test_lams_may_jump_and_rise(loss, engine, penalty):
    problem = task_for(engine, loss, penalty, intercept=True)
    top, tol, low = problem.lam_max(), 1e-6, 1e-2 if engine == "column passes" else 1e-3
    penalties = [problem.penalty.with_lam(part * top) for part in (low, 2.0, 0.5, 0.5, 0.01, 1.0)]
    request = Request.of(tol=tol, solver="primal_cd")
    results = list(follow(problem, penalties, request, None, TimeLimit(None)))
    for one, result in zip(penalties, results, strict=True):
        best = fl.solve(problem.replace(penalty=one), tol=1e-9, warn=False)
        assert result.certificate.ok
        assert result.certificate.primal == pytest.approx(best.certificate.primal, rel=1.1 * tol)
        assert result.certificate.primal - result.certificate.gap <= best.certificate.primal * (1.0 + 1e-12)


def test_long_paths_are_found_in_several_steps():
    count = 3 * sparse_path.TUNING.lams_per_step + 1
    for loss, n, d in ((fl.losses.Logistic(), 12, 80), (fl.losses.Squared(), 12, 80), (fl.losses.Squared(), 60, 6)):
        path = fl.path(task(loss, n, d), n_lams=count, eps=0.1)
        assert len(path) == count
        assert all(is_measured(result) for result in path)


def test_columns_that_are_missing_are_taken_in_a_few_at_a_time():
    """All that are missing at a small lam may be thousands."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 4000))
    y = X[:, :10].sum(axis=1) + rng.normal(size=100)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=True)
    result = fl.path(problem, lams=[0.01])[0]
    assert result.certificate.ok
    assert result.solver == "sparse_path"


def test_columns_are_copied_now_and_then_only(monkeypatch):
    copied, only = [], fl.Design.only
    monkeypatch.setattr(fl.Design, "only", lambda self, *a: copied.append(len(a[0])) or only(self, *a))
    path = fl.path(task(fl.losses.Squared(), 600, 1200, storage="CSR"), eps=0.05, n_lams=100, tol=1e-5)
    assert all(is_measured(result) for result in path)
    assert len(copied) <= 21


@pytest.mark.parametrize(
    ("n", "d", "storage", "eps", "n_lams", "tol", "most"),
    [(500, 12, "C", 0.01, 100, 1e-3, 40), (600, 1200, "CSR", 0.3, 60, 1e-4, 30)],
)
def test_hessians_are_used_again(n, d, storage, eps, n_lams, tol, most, monkeypatch):
    formed, form = [], hessian.Hessian.of
    monkeypatch.setattr(hessian.Hessian, "of", lambda state: formed.append(1) or form(state))
    path = fl.path(
        task(fl.losses.Logistic(), n, d, storage=storage, intercept=d == 12), eps=eps, n_lams=n_lams, tol=tol
    )
    assert all(is_measured(result) for result in path)
    assert len(formed) <= most


@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.SquaredHinge()], ids=name)
def test_separable_data_do_not_stop_newton(loss):
    """Curvatures fade away there: with a floor below them that stays, steps are far too short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    problem = fl.Problem(X, np.sign(X @ rng.normal(size=20)), loss, fl.penalties.L1(1.0))
    path = fl.path(problem, eps=1e-5, n_lams=30)
    assert all(is_measured(result) for result in path)
    assert np.median([result.n_iter for result in path]) <= 12


# What a result knows ----------------------------------------------------------------------------------------------


@every_engine
@two_losses
def test_what_a_result_knows_is_computed_when_asked(loss, engine):
    problem = task_for(engine, loss, intercept=True)
    path, again = (fl.path(problem, n_lams=8, eps=0.2, tol=1e-7) for _ in range(2))
    result = path[5]
    assert is_measured(result)
    at = problem.with_lam(float(path.lams[5]))
    assert result.certificate.evidence.problem.penalty == at.penalty
    np.testing.assert_allclose(result.alpha, -loss.derivative(at.scores(result.w, result.b), at.y), atol=1e-12)
    # the multipliers, scaled into the ball of the dual norm, show that the model is nearly optimal
    theta = min(1.0, at.penalty.lam / at.penalty.dual_norm(at.dual_vector(result.alpha)))
    dual = -at.mean(loss.conjugate(-theta * result.alpha, at.y))
    assert dual == pytest.approx(result.certificate.primal, rel=1e-5)
    assert at.mean(result.alpha) == pytest.approx(0.0, abs=1e-5 * at.mean(np.abs(result.alpha)))
    low, high = result.certificate.multipliers()
    assert np.all(low <= high)
    assert not np.any(result.certificate.zeros() & (result.w != 0.0))
    assert len(result.trace) >= 1
    assert result.trace[-1].gap == result.certificate.gap
    assert fl.solve(at, start=result, tol=1e-7).certificate.ok
    again[5].w[:] = 0.0  # the caller's to change
    assert again[5].certificate.evidence.w.any()
    np.testing.assert_array_equal(again[5].alpha, result.alpha)


@every_engine
def test_data_changed_in_place_are_noticed(engine):
    problem = task_for(engine)
    result = fl.path(problem, n_lams=3, eps=0.1)[2]
    assert is_measured(result)
    problem.design.matrix[:] *= 2.0
    with pytest.raises(ValueError, match="changed"):
        result.certificate.zeros()
    again = fl.path(problem, n_lams=3, eps=0.1)[2]  # nothing that was known of the old X is used
    assert again.certificate.primal == pytest.approx(
        fl.solve(problem.with_lam(0.1 * problem.lam_max())).certificate.primal, rel=1e-3
    )


@every_engine
def test_a_column_without_a_weight_that_changes_is_noticed(engine):
    problem = task_for(engine)
    result = fl.path(problem, n_lams=3, eps=0.3)[1]
    assert is_measured(result)
    j = int(np.flatnonzero(result.w == 0.0)[0])
    problem.design.matrix[:, j] = 5.0 * problem.y
    with pytest.raises(ValueError, match="changed"):
        result.certificate.zeros()


@pytest.mark.parametrize(("n", "d"), [(5000, 6), (300, 400)])
def test_copies_know_their_multipliers_and_carry_no_data(n, d):
    result = fl.path(task(fl.losses.Squared(), n, d), n_lams=3, eps=0.1)[2]
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), dataclasses.replace(result, n_iter=7)):
        np.testing.assert_array_equal(other.alpha, result.alpha)
        np.testing.assert_array_equal(other.w, result.w)
    assert len(pickle.dumps(result)) < 4 * (result.alpha.nbytes + result.w.nbytes)


@every_engine
def test_a_path_of_weights_is_written_once(engine):
    """Rows of coefs are what results say, whether or not these have been read before."""
    path = fl.path(task_for(engine), n_lams=8, eps=0.1)
    path[3].w[0] = 5.0  # the caller's to change
    assert path.coefs[0, 3] == 5.0
    np.testing.assert_array_equal(path.coefs[1:], np.column_stack([result.w for result in path])[1:])
    with pytest.raises(ValueError, match="read-only"):
        path.coefs[0, 0] = 1.0


def test_results_say_how_they_came_about():
    for loss, n, d, how in (
        (fl.losses.Squared(), 50, 5, "second moments"),
        (fl.losses.Squared(), 20, 300, "gradient"),
        (fl.losses.Logistic(), 50, 5, "gradient"),
        (fl.losses.Logistic(), 20, 300, "gradient"),
    ):
        path = fl.path(task(loss, n, d), n_lams=6, eps=0.1, tol=1e-6)
        assert all(is_measured(result) and how in result.certificate.how for result in path)
        assert ("moments" in path[3].certificate.how) == (how == "second moments")
        assert repr(path[1]).startswith("Result(solver=")
    assert max(result.n_iter for result in path) > 1


# Options ----------------------------------------------------------------------------------------------------------


@every_engine
def test_callbacks_hear_of_every_lam(engine):
    rows = []
    path = fl.path(task_for(engine), n_lams=6, callback=rows.append)
    assert all(is_measured(result) for result in path)
    last = [next(k for k, row in enumerate(rows) if row.gap == result.certificate.gap) for result in path]
    assert last == sorted(set(last))  # one after the other
    for row, result in zip((rows[k] for k in last), path, strict=True):
        np.testing.assert_array_equal(row.w, result.w)
        assert row.b == result.b
        assert row.primal == result.certificate.primal


@every_engine
def test_callbacks_cannot_change_a_result(engine):
    def spoil(check):
        check.w[:] = 7.0

    with pytest.raises(ValueError, match="read-only"):
        fl.path(task_for(engine), n_lams=3, callback=spoil)


@every_engine
def test_callbacks_end_a_solve(engine):
    problem = task_for(engine, fl.losses.Logistic())
    for tol in (1e-15, 1e-6):
        result = fl.solve(problem.with_lam(0.01), tol=tol, callback=lambda check: True)
        assert result.status in ("callback", "certified")
        assert np.isfinite(result.certificate.primal)
        assert len(result.trace) == 1


def test_options_of_a_solver_are_obeyed():
    problem = task_for("few columns")
    assert {result.solver for result in fl.path(problem, n_lams=3, solver="fista")} == {"fista"}
    path = fl.path(task_for("few columns", fl.losses.Logistic()), n_lams=3, eps=1e-3, tol=1e-14, max_iter=2, warn=False)
    assert max(result.n_iter for result in path) <= 2
    for result in fl.path(task_for("few columns", fl.losses.Logistic()), n_lams=3, eps=0.1, tol=1e-9, check_every=3):
        assert result.n_iter >= 3
        np.testing.assert_array_equal(result.trace["iteration"], np.arange(3, result.n_iter + 1, 3))


@pytest.mark.parametrize(
    "options",
    [
        {"foo": False},
        {"check_every": False},
        {"max_iter": False},
        {"callback": 3},
        {"callback": 0},
        {"tol": -1.0},
        {"random_state": "bad"},
    ],
    ids=str,
)
@every_engine
def test_options_that_make_no_sense_are_errors(engine, options):
    problem = task_for(engine)
    what = r"seed|random_state" if "random_state" in options else next(iter(options))
    with pytest.raises((TypeError, ValueError), match=what):
        fl.path(problem, n_lams=3, **options)
    with pytest.raises((TypeError, ValueError), match=what):
        fl.solve(problem, **options)


@pytest.mark.parametrize("shape", [(2000, 40), (600, 1200), (40, 400)], ids=str)
def test_a_limit_on_seconds_ends_the_path(shape, clock):
    problem = task(fl.losses.Logistic(), *shape, storage="CSR" if shape[0] == 600 else "C", weighted=False)
    path = fl.path(problem, eps=1e-6, tol=1e-9, max_seconds=0.3, warn=False)
    assert 0 < len(path) < 100
    assert clock.elapsed < 1.5


# Where it ends ----------------------------------------------------------------------------------------------------


@every_engine
@two_losses
def test_a_tolerance_out_of_reach_is_soon_given_up(loss, engine):
    path = fl.path(task_for(engine, loss), n_lams=5, eps=0.1, tol=1e-17, warn=False)
    assert not any(is_measured(result) for result in path[1:])
    for result in path[1:]:
        assert result.status == "stalled"
        assert result.n_iter <= 150
        assert result.certificate.relative_gap <= 1e-10


def test_rounding_of_moments_leads_to_samples():
    """Columns far from zero: moments cannot tell, products can."""
    problem = task(fl.losses.Squared(), 40, 3, intercept=True, offset=1e7, weighted=False)
    path = fl.path(problem, n_lams=4, eps=0.1, tol=1e-6, warn=False)
    assert not any("moments" in result.certificate.how for result in path[1:])  # at lam_max w = 0 needs no columns


@every_engine
def test_an_empty_working_set_makes_no_steps(engine):
    """At lam_max, with weights so different that rounding keeps the gap from the tolerance."""
    for seed in range(10 if engine == "column passes" else 30):  # thousands of passes at two of the others
        rng = np.random.default_rng(seed)
        X, y, weights = rng.normal(size=(3, 9)) + 1e6, rng.normal(size=3), 10.0 ** rng.uniform(-12, 12, 3)
        problem = fl.Problem(X, y, fl.losses.Huber(0.1), fl.penalties.L1(1.0), weights, intercept=True)
        lams = [1.01 * problem.lam_max(), problem.lam_max()]
        for result in fl.path(problem, lams=lams, tol=1e-14, warn=False):
            assert result.n_iter <= 300


# Extremes ---------------------------------------------------------------------------------------------------------


@every_penalty
@every_engine
def test_degenerate_matrices(engine, penalty):
    """One sample, one column, columns of zeros, columns that are equal, targets that are zero."""
    rng = np.random.default_rng(0)
    for X, y in (
        (rng.normal(size=(1, 30)), np.ones(1)),
        (rng.normal(size=(30, 1)), rng.normal(size=30)),
        (np.zeros((5, 30)), rng.normal(size=5)),
        (np.zeros((30, 5)), rng.normal(size=30)),
        (np.repeat(rng.normal(size=(5, 10)), 3, axis=1), rng.normal(size=5)),
        (np.repeat(rng.normal(size=(30, 3)), 3, axis=1), rng.normal(size=30)),
        (rng.normal(size=(5, 30)), np.zeros(5)),
    ):
        for intercept in (False, True):
            problem = fl.Problem(X, y, fl.losses.Squared(), PENALTIES[penalty](X.shape[1]), intercept=intercept)
            for result in fl.path(problem, lams=[1.0, 0.1, 0.01], tol=1e-6):
                assert result.certificate.ok


@pytest.mark.parametrize(("scale", "target"), [(1e-150, 1e-12), (1e150, 1e-12), (1e-150, 1e-6), (1.0, 1e160)])
@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 9)])
@every_penalty
def test_sizes_whose_squares_vanish_are_left_to_the_judge(penalty, n, d, scale, target):
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(n, d)), target * rng.normal(size=n)
    problem = fl.Problem(X, y, fl.losses.Squared(), PENALTIES[penalty](d))
    for result in fl.path(problem, lams=[scale * target, 1e-300], tol=0.5, max_iter=200, warn=False):
        assert not is_measured(result)


def test_an_infinite_gap_is_not_certified():
    X, y = np.array([[1, 1e-140], [2, -3e-140], [3, 1e-140]]), 1e100 * np.array([1.0, 5.0, 2.0])
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0))
    for result in fl.path(problem, n_lams=3, eps=1e-12, max_iter=200, warn=False):
        assert result.status != "certified" or np.isfinite(result.certificate.gap)


@pytest.mark.parametrize("storage", STORAGES)
def test_columns_far_from_zero_raise_nothing(storage):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(9, 3)) + 1e8, rng.normal(size=9) + 1e6
        penalty = fl.penalties.ElasticNet(1.0, 0.5)
        problem = fl.Problem(STORAGES[storage](X), y, fl.losses.Squared(), penalty, intercept=True)
        for result in fl.path(problem, n_lams=3, eps=1e-3, max_iter=500, warn=False):
            assert np.isfinite(result.certificate.gap)


@pytest.mark.parametrize("penalty", [fl.penalties.ElasticNet(0.1, 0.0), fl.penalties.L1(1e-320)], ids=str)
@every_engine
def test_penalties_without_a_largest_lam_or_far_below_it_are_solved(engine, penalty):
    problem = task_for(engine, weighted=False).replace(penalty=penalty)
    assert np.isfinite(fl.solve(problem, max_iter=50, warn=False).certificate.primal)


def test_a_class_of_next_to_no_weight_is_certified_all_the_same():
    for d in (3, 60):
        rng = np.random.default_rng(0)
        X, y, weights = rng.normal(size=(30, d)), np.ones(30), np.ones(30)
        y[0], weights[0] = -1.0, 1e-12
        problem = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(1.0), weights, intercept=True)
        lams = [1e-3, 1e-14]
        for lam, result in zip(lams, fl.path(problem, lams=lams, max_iter=300, warn=False), strict=True):
            best = fl.solve(problem.with_lam(lam), tol=1e-10, max_iter=300, warn=False)
            assert result.certificate.primal - result.certificate.gap <= best.certificate.primal


# What paths on other folds needed ---------------------------------------------------------------------------------


def sets_of(problem, penalties, supports, monkeypatch):
    """The results, and how many working sets it took."""
    entered, enter = [], selection._enter
    with monkeypatch.context() as patch:
        patch.setattr(selection, "_enter", lambda *args: entered.append(1) or enter(*args))
        results = list(along(problem, penalties, supports=supports, tol=1e-6))
    return results, len(entered)


@pytest.mark.parametrize("engine", ["working sets", "column passes"])
@every_penalty
@every_loss
def test_whatever_others_needed_the_optima_are_the_same(loss, penalty, engine, monkeypatch):
    """Right or wrong, all or none: what others tell is where to begin, and proves nothing."""
    problem = task(loss, 60, 50, penalty, intercept=True)
    penalties = [problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.array([0.6, 0.3, 0.1])]
    alone, _ = sets_of(problem, penalties, None, monkeypatch)
    count = problem.penalty.blocks(50).count
    for told in (np.arange(0), np.arange(count), np.array([count - 1]), np.arange(0, count, 7)):
        supports = Supports({one.lam: told for one in penalties})
        others, _ = sets_of(problem, penalties, supports, monkeypatch)
        for one, other in zip(alone, others, strict=True):
            assert other.certificate.ok
            assert other.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-6)
        for one, result in zip(penalties, others, strict=True):  # and it knows now what this path needed
            needed = np.flatnonzero(one.blocks(50).norms(result.w))
            assert set(told) | set(needed) <= set(supports.groups[one.lam])


def test_who_was_there_before_saves_working_sets(monkeypatch):
    sample = samples.make_regression(600, 3000, density=0.02, informative=100, random_state=0)
    problem = fl.Problem(sample.X, sample.y, penalty=fl.penalties.L1(1.0), intercept=True)
    for parts, fewer in (([0.5, 0.05], True), ([0.5, 0.48, 0.46, 0.44], False)):
        penalties = [problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.array(parts)]
        supports = Supports({})
        first, many = sets_of(problem, penalties, supports, monkeypatch)
        assert all(is_measured(result) for result in first)
        second, few = sets_of(problem, penalties, supports, monkeypatch)
        assert few < many if fewer else few <= many
        assert few <= len(penalties) + 2
        assert all(result.certificate.ok for result in second)


@pytest.mark.parametrize(
    "model",
    [
        fl.LassoCV(alphas=6, cv=3, eps=0.1),
        fl.ElasticNetCV(alphas=6, cv=3, eps=0.1, l1_ratio=[0.7, 1.0]),
        fl.SparseLogisticRegressionCV(alphas=6, cv=3, eps=0.1),
        fl.GroupLassoCV(3, alphas=6, cv=3, eps=0.1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_folds_tell_each_other(model, monkeypatch):
    told, select_for = [], selection.select_for

    def listen(state, ratio):
        supports = state.goal.supports
        told.append(supports is not None and state.problem.penalty.lam in supports.groups)
        select_for(state, ratio)

    monkeypatch.setattr(primal_cd, "select_for", listen)
    sample = samples.make_regression(600, 3000, density=0.02, informative=100, random_state=0)
    y = np.where(sample.y > 0, 1, -1) if hasattr(model, "predict_proba") else sample.y
    fitted = clone(model).fit(sample.X, y)
    assert fitted.certificate_.ok
    paths = 2 if isinstance(getattr(fitted, "l1_ratio", None), list) else 1
    assert sum(told) == 2 * 5 * paths  # by two folds of three, at every alpha but the first


@pytest.mark.parametrize("shape", [(60, 5), (30, 100)], ids=str)
def test_cross_validation_certifies_without_products(shape, monkeypatch):
    checked = []
    check = run._check
    monkeypatch.setattr(run, "_check", lambda *args: checked.append(1) or check(*args))
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    fl.LassoCV(cv=3).fit(X, X[:, 0] + rng.normal(size=shape[0]))
    assert not checked


def test_a_solver_that_is_not_told_what_is_asked_reaches_the_last_digits():
    problem = task_for("few columns", fl.losses.Logistic()).with_lam(0.02)
    solver = PrimalCD()
    state = solver.begin(problem, Start(np.zeros(9), 0.0, np.zeros(60)), 0)
    for _ in range(20):
        state = solver.step(state)
    assert fl.certify(problem, state.weights, effort="low").relative_gap <= 1e-9
    solver.aim(state, Goal((problem.penalty,), 1e-4, 0.0, np.inf))
    assert solver.measured(solver.step(state)) is not None
