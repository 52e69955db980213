"""Paths on second moments, and what all quick paths have in common: the same optima, proven by bounds of their own."""

import copy
import dataclasses
import importlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.solver.paths.found import Found
from tests.laws.test_exact_arithmetic import exact, gaps_of_paths_hold

path_module = importlib.import_module("fenchel.solver.paths.grid")  # the package has a function of that name
PENALTIES = {
    "L1": lambda lam, d: fl.penalties.L1(lam),
    "elastic net": lambda lam, d: fl.penalties.ElasticNet(lam, 0.6),
    "groups": lambda lam, d: fl.penalties.GroupL2(lam, np.arange(d) // 2, 1.0 + np.arange((d + 1) // 2) / 3),
}
STORAGES = [lambda X: X, np.asfortranarray, sp.csr_array, sp.csc_array]


def task(seed, n, d, penalty="L1", intercept=False, storage=None, offset=0.0, weighted=True):
    rng = np.random.default_rng([7, seed])
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + offset
    y = X[:, :3].sum(axis=1) + rng.normal(size=n) + offset
    weights = rng.integers(0, 3, n) * rng.random(n) + 1e-3 if weighted else None
    X = X if storage is None else storage(X)
    return fl.Problem(X, y, fl.losses.Squared(), PENALTIES[penalty](1.0, d), weights, intercept)


def slow_path(problem, lams, tol, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(path_module, "quick_path", lambda *args: None)
        return fl.path(problem, lams=lams, tol=tol)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("storage", STORAGES)
def test_few_columns_the_same_optima(storage, penalty, intercept, monkeypatch):
    problem = task(0, 60, 9, penalty, intercept, storage)
    quick = fl.path(problem, n_lams=12, tol=1e-7)
    slow = slow_path(problem, quick.lams, 1e-9, monkeypatch)
    assert all(isinstance(result, Found) for result in quick)
    for ours, theirs in zip(quick, slow, strict=True):
        assert ours.certificate.ok
        assert abs(ours.certificate.primal - theirs.certificate.primal) <= 2e-7 * theirs.certificate.primal
        np.testing.assert_allclose(ours.b, theirs.b, atol=1e-2)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
def test_few_samples_the_same_optima(penalty, intercept, monkeypatch):
    problem = task(1, 25, 400, penalty, intercept)
    quick = fl.path(problem, eps=0.05, n_lams=30, tol=1e-6)
    slow = slow_path(problem, quick.lams, 1e-8, monkeypatch)
    assert np.mean([isinstance(result, Found) for result in quick]) > 0.9
    for ours, theirs in zip(quick, slow, strict=True):
        assert ours.certificate.ok
        assert abs(ours.certificate.primal - theirs.certificate.primal) <= 2e-6 * theirs.certificate.primal


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
@pytest.mark.parametrize(("n", "d"), [(30, 4), (8, 20)])
def test_gaps_hold_in_exact_arithmetic(n, d, penalty, intercept, offset):
    gaps_of_paths_hold(task(0, n, d, penalty, intercept, offset=offset), [1.0, 0.5, 0.1, 0.01])


def test_gaps_of_rough_weights_hold_in_exact_arithmetic():
    """Not only at optima: at any weights."""
    rng = np.random.default_rng(0)
    for intercept in (False, True):
        problem = task(5, 30, 4, intercept=intercept, offset=10.0)
        quick = path_module.quick_path(problem, {})
        for lam in (1.0, 1e-2):
            at = problem.with_lam(lam)
            for scale in (1.0, 1e-3):
                w = scale * rng.normal(size=4)
                moments = quick.way.moments
                found = moments.bounds(at.penalty.blocks(4), w)
                best = fl.solve(at, tol=1e-13, warn=False)
                value = exact(at, w, quick.way.samples.intercept(w))
                assert value <= found.upper
                assert found.lower <= exact(at, best.w, best.b)


@pytest.mark.parametrize(("n", "d"), [(50, 6), (20, 200)])
def test_what_a_result_knows_is_found_when_asked(n, d):
    problem = task(2, n, d, intercept=True)
    result = fl.path(problem, n_lams=5, eps=0.1, tol=1e-8)[3]
    assert isinstance(result, Found)
    at = problem.with_lam(result.certificate.evidence.problem.penalty.lam)
    assert at.dual(result.alpha) == -np.inf or at.dual(result.alpha) <= result.certificate.primal
    np.testing.assert_allclose(result.alpha, at.y - at.scores(result.w, result.b))
    low, high = result.certificate.multipliers()
    assert np.all(low <= high)
    assert not np.any(result.certificate.zeros() & (result.w != 0.0))
    assert len(result.trace) == 1
    again = fl.solve(at, start=result, tol=1e-8)
    assert again.certificate.ok


@pytest.mark.parametrize(("n", "d"), [(50, 6), (20, 200)])
def test_data_changed_in_place_are_noticed(n, d):
    problem = task(2, n, d)
    result = fl.path(problem, n_lams=3, eps=0.1)[2]
    assert isinstance(result, Found)
    problem.design.matrix[:] *= 2.0
    with pytest.raises(ValueError, match="changed"):
        result.certificate.zeros()
    again = fl.path(problem, n_lams=3, eps=0.1)[2]  # nothing that was known of the old X is used
    assert again.certificate.primal == pytest.approx(
        fl.solve(problem.with_lam(0.1 * problem.lam_max())).certificate.primal, rel=1e-3
    )


def test_rounding_hands_over_to_the_solver():
    """Columns far from zero: moments cannot tell, products can."""
    problem = task(3, 40, 3, intercept=True, offset=1e7, weighted=False)
    path = fl.path(problem, n_lams=4, eps=0.1, tol=1e-6, warn=False)
    assert not any(isinstance(result, Found) for result in path)


@pytest.mark.parametrize("options", [{"solver": "fista"}, {"max_iter": 5}, {"check_every": 1}], ids=str)
def test_options_of_a_solver_are_heeded(options):
    path = fl.path(task(4, 40, 5), n_lams=3, warn=False, **options)
    assert not any(isinstance(result, Found) for result in path)


@pytest.mark.parametrize(
    "options",
    [{"foo": False}, {"check_every": False}, {"max_iter": False}, {"callback": 3}, {"callback": 0}],
    ids=str,
)
def test_options_that_make_no_sense_are_errors_here_too(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        fl.path(task(4, 40, 5), n_lams=3, **options)


def test_callbacks_cannot_change_a_result():
    def spoil(check):
        check.w[:] = 7.0

    with pytest.raises(ValueError, match="read-only"):
        fl.path(task(4, 40, 5), n_lams=3, callback=spoil)


@pytest.mark.parametrize("penalty", [fl.penalties.ElasticNet(0.1, 0.0), fl.penalties.L1(1e-320)], ids=str)
def test_penalties_without_a_largest_lam_or_far_below_it_are_solved(penalty):
    problem = task(1, 10, 30, weighted=False).replace(penalty=penalty)
    assert np.isfinite(fl.solve(problem, max_iter=50, warn=False).certificate.primal)


def test_callbacks_hear_of_every_lam():
    rows = []
    path = fl.path(task(4, 40, 5), n_lams=6, callback=rows.append)
    assert all(isinstance(result, Found) for result in path)
    assert [row.gap for row in rows] == [result.certificate.gap for result in path]
    np.testing.assert_array_equal(rows[5].w, path[5].w)


def test_the_first_weights_are_zero():
    for n, d in ((40, 5), (10, 40)):
        assert not fl.path(task(6, n, d), n_lams=3)[0].w.any()


def test_a_bad_tolerance_is_an_error():
    with pytest.raises(ValueError, match="tol"):
        fl.path(task(4, 40, 5), n_lams=3, tol=-1.0)


# Holes that were there -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "target"), [(1e-150, 1e-12), (1e150, 1e-12), (1e-150, 1e-6), (1.0, 1e160)])
@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 9)])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_sizes_whose_squares_vanish_are_left_to_the_solver(penalty, n, d, scale, target):
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(n, d)), target * rng.normal(size=n)
    problem = fl.Problem(X, y, fl.losses.Squared(), PENALTIES[penalty](1.0, d))
    for result in fl.path(problem, lams=[scale * target, 1e-300], tol=0.5, max_iter=None, max_seconds=2.0, warn=False):
        assert not isinstance(result, Found)


def test_an_infinite_gap_is_not_certified():
    X, y = np.array([[1, 1e-140], [2, -3e-140], [3, 1e-140]]), 1e100 * np.array([1.0, 5.0, 2.0])
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0))
    for result in fl.path(problem, n_lams=3, eps=1e-12, max_seconds=2.0, warn=False):
        assert result.status != "certified" or np.isfinite(result.certificate.gap)


def test_sparse_columns_far_from_zero_raise_nothing():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(9, 3)) + 1e8, rng.normal(size=9) + 1e6
        for storage in (sp.csr_array, sp.csc_array):
            penalty = fl.penalties.ElasticNet(1.0, 0.5)
            problem = fl.Problem(storage(X), y, fl.losses.Squared(), penalty, intercept=True)
            fl.path(problem, n_lams=3, eps=1e-3, max_seconds=2.0, warn=False)


def test_copies_know_their_multipliers_and_carry_no_data():
    problem = task(2, 5000, 6)
    result = fl.path(problem, n_lams=3, eps=0.1)[2]
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), dataclasses.replace(result, n_iter=7)):
        np.testing.assert_array_equal(other.alpha, result.alpha)
        np.testing.assert_array_equal(other.w, result.w)
    assert len(pickle.dumps(result)) < 2 * result.alpha.nbytes


def test_a_column_without_a_weight_that_changes_is_noticed():
    problem = task(2, 50, 6)
    result = fl.path(problem, n_lams=3, eps=0.3)[1]
    j = int(np.flatnonzero(result.w == 0.0)[0])
    problem.design.matrix[:, j] = 5.0 * problem.y
    with pytest.raises(ValueError, match="changed"):
        result.certificate.zeros()


def test_cross_validation_goes_the_quick_way(monkeypatch):
    found = []
    solve = path_module.quick_path

    def counted(*args):
        way = solve(*args)
        found.append(way is not None)
        return way

    monkeypatch.setattr(path_module, "quick_path", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    fl.LassoCV(cv=3).fit(X, X[:, 0] + rng.normal(size=60))
    assert found
    assert all(found)


def test_a_bad_seed_is_an_error():
    with pytest.raises(ValueError, match=r"seed|random_state"):
        fl.path(task(4, 40, 5), n_lams=3, random_state="bad")
    with pytest.raises(ValueError, match=r"seed|random_state"):
        fl.solve(task(4, 10, 50), random_state="bad")


def test_a_result_says_what_it_is():
    assert repr(fl.path(task(4, 40, 5), n_lams=3)[1]).startswith("Result(b=")
