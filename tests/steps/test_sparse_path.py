"""The compiled path as a solver: what it lists and leaves out, lams in any order, when it gives up."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.bounds.measured import measured_bounds
from fenchel.data.products import gamma
from fenchel.solver.paths.grid import shared_design
from fenchel.steps import Overflow, SparsePath, Start
from fenchel.steps.base import Goal
from fenchel.steps.working_set import sparse_path
from fenchel.steps.working_set.moments import Centre
from tests.helpers.registry import SMOOTH, name, targets

LOSSES = [*SMOOTH, fl.losses.SquaredEpsilonInsensitive(0.1)]
PENALTIES = {"L1": fl.penalties.L1(1.0), "elastic net": fl.penalties.ElasticNet(1.0, 0.6)}
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
either_intercept = pytest.mark.parametrize("intercept", [False, True])


def task(loss, n, d, penalty="L1", intercept=False, seed=0, spread=1.0, offset=0.0):
    rng = np.random.default_rng([seed, n, d])
    X = (rng.normal(size=(n, d)) + offset) * np.exp(spread * rng.normal(size=d))
    y = targets(loss, rng, n)
    x = X[:, 0] / np.std(X[:, 0])
    y = np.where(x - x.mean() + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else y + x
    weights = rng.integers(0, 3, n) * rng.random(n) + (rng.random(n) > 0.2)
    weights[0] = 0.0
    return fl.Problem(X, y, loss, PENALTIES[penalty], weights, intercept)


def penalties_of(problem, parts):
    """At some parts of lam_max."""
    return tuple(problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.asarray(parts))


def begin(problem):
    n, d = problem.shape
    return SparsePath().begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), 0)


def advance(problem, state, penalties, tol=1e-6, seconds=np.inf):
    """One step from a state: what was measured, and its bounds."""
    solver, at = SparsePath(), problem.replace(penalty=penalties[0])
    state = solver.retarget(state, at)
    assert solver.measured(state) is None
    solver.aim(state, Goal(tuple(penalties), tol, 0.0, seconds))
    found = solver.measured(solver.step(state))
    return found, measured_bounds(at, found)


def true_products(problem, found):
    """|X'(p a)| of all columns, and what rounding may make of it."""
    p = problem.weights / problem.total_weight
    mean = Centre.of(problem).columns if found.loss.centred else None
    X = problem.design.matrix - (0.0 if mean is None else mean)
    A = found.loss.multipliers
    error = 16.0 * gamma(len(p) + 200) * np.sqrt((A * A) @ p)[:, None] * found.sizes.columns
    return np.abs((p * A) @ X), error


def require_nothing_overlooked(problem, found):
    """Every column that is not listed is at most at the cut; those that are have their size."""
    V, error = true_products(problem, found)
    dual = found.dual
    assert not dual.complete
    for k, (v, e) in enumerate(zip(V, error, strict=True)):
        listed = dual.sizes[int(dual.starts[k]) : int(dual.starts[k + 1])]
        assert np.all(v <= max(listed.max(initial=0.0), dual.cut[k]) + e)
        above = np.sort(v[v > dual.cut[k] + e])
        assert len(listed) >= len(above)
        assert np.all(listed > dual.cut[k])
        np.testing.assert_allclose(np.sort(listed)[len(listed) - len(above) :], above, atol=float(e.max()), rtol=0.0)


# Columns ----------------------------------------------------------------------------------------------------------


@every_penalty
@either_intercept
@every_loss
def test_columns_that_are_not_listed_are_below_the_cut(loss, intercept, penalty):
    for seed, (n, d, spread, offset) in enumerate([(12, 300, 1.0, 0.0), (7, 61, 5.0, 0.0), (25, 200, 0.1, 30.0)]):
        problem = task(loss, n, d, penalty, intercept, seed, spread, offset)
        state, parts = begin(problem), np.geomspace(1.0, 0.02, 20)
        found, _ = advance(problem, state, penalties_of(problem, parts))
        assert len(found) >= 6
        require_nothing_overlooked(problem, found)
        assert np.all(found.dual.cut < found.threshold)


@either_intercept
@every_loss
def test_columns_of_a_screen_that_folds_share_are_below_the_cut(loss, intercept):
    """The screen has equal weights and means of its own; the bounds know."""
    whole = task(loss, 20, 150, "L1", intercept, offset=3.0).replace(weights=np.ones(20))
    design = shared_design(whole)
    assert design is not None
    assert list(design.fold_cache.screens) == [bool(loss.quadratic and intercept)]
    for out in (range(5), range(12, 20)):
        weights = np.ones(20)
        weights[list(out)] = 0.0
        fold = whole.replace(X=design, weights=weights)
        found, bounds = advance(fold, begin(fold), penalties_of(fold, np.geomspace(0.9, 0.1, 12)))
        require_nothing_overlooked(fold, found)
        assert bounds.meet(1e-6, 0.0).all()


@every_penalty
@either_intercept
@every_loss
def test_its_models_are_optima(loss, intercept, penalty):
    problem = task(loss, 15, 150, penalty, intercept)
    penalties = penalties_of(problem, np.geomspace(1.0, 0.02, 10))
    found, bounds = advance(problem, begin(problem), penalties)
    assert len(found) == 10
    assert bounds.meet(1e-6, 0.0).all()
    for k in (3, 9):
        at, model = problem.replace(penalty=penalties[k]), found.model(k, 150)
        best = fl.solve(at, "fista", tol=1e-8, max_iter=200_000)
        assert at.primal(model.dense(), model.b) == pytest.approx(float(bounds.primal[k]), rel=1e-11)
        assert bounds.primal[k] == pytest.approx(best.certificate.primal, rel=3e-6)
        assert bounds.lower[k] <= best.certificate.primal


# Lams in any order ------------------------------------------------------------------------------------------------


@every_penalty
@every_loss
def test_lams_that_rise_or_jump_are_bounded_too(loss, penalty):
    """Weights too large for a lam leave small multipliers, and no column listed: a feasible multiple is known still."""
    for seed in range(20):
        problem = task(loss, 6, 20, penalty, intercept=bool(seed % 2), seed=seed)
        if not problem.lam_max():  # one class, and an intercept
            continue
        state = begin(problem)
        for part in (0.05, 0.0535, 0.3, 1.4, 0.02, 1.0):
            (one,) = penalties_of(problem, [part])
            at = problem.replace(penalty=one)
            best = fl.solve(at, "primal_cd", tol=1e-9, warn=False).certificate
            for tol in (0.99, 0.3, 1e-4):
                try:
                    found, bounds = advance(problem, state, [one], tol)
                except Overflow:  # it gives up; another solver goes on
                    state = begin(problem)
                    continue
                require_nothing_overlooked(problem, found)
                model = found.model(0, 20)
                assert bounds.lower[0] <= best.primal * (1.0 + 1e-12)
                assert at.primal(model.dense(), model.b) <= bounds.upper[0]
                # without curvature the intercept may be far from its best, and nothing is proven then
                assert bounds.meet(tol, 0.0).all() or loss.has_straight_parts or tol > 1e-4


@pytest.mark.parametrize("tol", [0.9, 0.1, 1e-3, 1e-10])
@every_penalty
@every_loss
def test_a_single_lam_is_approached_by_strides(loss, penalty, tol):
    problem = task(loss, 15, 200, penalty)
    (one,) = penalties_of(problem, [0.03])
    found, bounds = advance(problem, begin(problem), [one], tol)
    assert len(found) == 1
    assert found.threshold[0] == one.blocks(1).threshold[0]
    assert bounds.meet(tol, 0.0).all()


def test_strides_end_short_of_the_lam_that_is_asked_for():
    penalty, stride = fl.penalties.ElasticNet(0.01, 0.5), sparse_path.TUNING.stride
    lams = [one.lam for one in sparse_path._strides(1.0, penalty)]
    assert lams == sorted(lams, reverse=True)
    assert min(lams) == pytest.approx(stride * penalty.lam)
    assert 1.0 / penalty.l1_ratio / stride <= max(lams) <= 1.0 / penalty.l1_ratio
    assert not sparse_path._strides(1e-3, penalty)  # above lam_max already


def test_a_step_has_so_many_lams_and_no_more():
    problem = task(fl.losses.Logistic(), 12, 80)
    found, _ = advance(problem, begin(problem), penalties_of(problem, np.geomspace(1.0, 0.3, 70)))
    assert len(found) == sparse_path.TUNING.lams_per_step


# Data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@either_intercept
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=name)
def test_storages_give_one_path(loss, order, dtype, intercept):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(11, 90)).astype(np.float32), targets(loss, rng, 11)
    paths = []
    for data in (X.astype(np.float64), np.asarray(X, dtype=dtype, order=order)):
        problem = fl.Problem(data, y, loss, fl.penalties.L1(1.0), intercept=intercept)
        paths.append(fl.path(problem, eps=0.05, n_lams=20, tol=1e-8, solver="sparse_path"))
    np.testing.assert_allclose(paths[0].coefs, paths[1].coefs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("X", "penalty", "reason"),
    [
        (sp.csr_array(np.eye(4, 9)), fl.penalties.L1(0.1), "needs a dense X"),
        (np.ones((9, 4)), fl.penalties.L1(0.1), "as many columns as samples"),
        (np.ones((4, 9)), fl.penalties.GroupL2(0.1, np.arange(9) // 3), "a sum over coordinates"),
        (np.ones((4, 9)), fl.penalties.GroupL2(0.1, np.arange(9), 1.0 + np.arange(9)), "a sum over coordinates"),
        (fl.Design(np.ones((4, 9)), constant=1.0), fl.penalties.L1(0.1), "no penalised intercept"),
    ],
    ids=["sparse", "tall", "groups", "own thresholds", "constant"],
)
def test_it_says_what_it_cannot_solve(X, penalty, reason):
    problem = fl.Problem(X, np.arange(float(X.shape[0])), fl.losses.Squared(), penalty)
    with pytest.raises(TypeError, match=reason):
        fl.solve(problem, solver="sparse_path")
    assert fl.solve(problem, tol=1e-3, max_iter=1000, warn=False).solver != "sparse_path"


# Giving up --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "target"), [(1e-150, 1.0), (1e150, 1.0), (1.0, 1e160), (1.0, 1e-160)])
def test_sizes_whose_squares_vanish_are_refused(scale, target):
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(4, 9)), target * rng.normal(size=4)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0))
    with pytest.raises(Overflow, match="too large or too small"), np.errstate(all="ignore"):
        begin(problem)


@pytest.mark.parametrize("lam", [1e-320, 1e-60, 1e60])
def test_thresholds_whose_products_vanish_are_refused(lam):
    problem = task(fl.losses.Squared(), 8, 30)
    solver, state = SparsePath(), begin(problem)
    state = solver.retarget(state, problem.with_lam(lam))
    solver.aim(state, Goal((problem.with_lam(lam).penalty,), 0.5, 0.0, np.inf))
    with pytest.raises(Overflow):
        solver.step(state)


def test_time_that_is_over_ends_a_step():
    problem = task(fl.losses.Logistic(), 40, 400)
    solver, state = SparsePath(), begin(problem)
    penalties = penalties_of(problem, np.geomspace(0.5, 1e-3, 20))
    solver.aim(state, Goal(penalties, 1e-12, 0.0, 1e-9))
    with pytest.raises(Overflow, match="does not get to this lam"):
        solver.step(state)


@either_intercept
@every_loss
def test_where_it_gives_up_another_solver_goes_on(loss, intercept, monkeypatch):
    """On the way, after so many models; the rest of the path is certified all the same."""
    steps = SparsePath.step

    def limited(self, state):
        if state.problem.penalty.lam < 0.3 * top:
            raise Overflow("enough")
        return steps(self, state)

    problem = task(loss, 15, 100, "L1", intercept)
    top = problem.lam_max()
    monkeypatch.setattr(SparsePath, "step", limited)
    monkeypatch.setattr(sparse_path, "TUNING", replace(sparse_path.TUNING, lams_per_step=3))
    path = fl.path(problem, eps=0.05, n_lams=12, tol=1e-6)
    solvers = [result.solver for result in path]
    change = solvers.index("primal_cd")
    assert solvers == ["sparse_path"] * change + ["primal_cd"] * (12 - change)
    assert 3 <= change < 10
    assert all(result.certificate.ok for result in path)
    assert fl.solve(problem.with_lam(0.1 * top), tol=1e-6).solver == "primal_cd"


def test_a_gap_of_zero_is_not_called_an_overflow():
    problem = task(fl.losses.Logistic(), 20, 100)
    problem = problem.with_lam(0.1 * problem.lam_max())
    with pytest.warns(fl.NotCertifiedWarning, match="it finds no better model; another solver may"):
        result = fl.solve(problem, solver="sparse_path", tol=0.0)
    assert result.status == "gave_up"
    assert fl.solve(problem, tol=0.0, warn=False).status == "stalled"  # another solver went on


def test_by_name_it_does_not_hand_over():
    problem = task(fl.losses.Squared(), 5, 300, spread=0.0)
    result = fl.solve(problem.with_lam(1e-30), solver="sparse_path", tol=1e-6, warn=False)
    assert result.solver == "sparse_path"
    assert result.status == "gave_up"
    assert np.isfinite(result.certificate.primal)


def test_lams_that_are_not_reached_are_left_to_another_solver():
    """No model at all is no array of a strange shape."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(5, 300)), rng.normal(size=5)
        problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0))
        lam = 1e-5 * problem.lam_max()
        for tol in (1e-2, 1e-15):
            found = fl.path(problem, lams=[lam], tol=tol, warn=False, max_iter=30)[0]
            assert np.isfinite(found.certificate.gap)
            assert np.isfinite(fl.solve(problem.with_lam(lam), tol=tol, warn=False, max_iter=30).certificate.gap)
