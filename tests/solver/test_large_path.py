"""Paths where neither weights nor samples are few: a working set that stays, Hessians used again."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from fenchel.solver.paths.found import Found
from fenchel.solver.paths.large_path import LargePath, Needed
from sklearn.base import clone

import fenchel as fl
from fenchel.data import samples
from fenchel.solver.paths import large_path
from tests.laws.test_exact_arithmetic import gaps_of_paths_hold

path_module = importlib.import_module("fenchel.solver.paths.grid")  # the package has a function of that name
quick_module = importlib.import_module("fenchel.solver.paths.quick_path")
every_loss = pytest.mark.parametrize("loss", SMOOTH, ids=name)
either_intercept = pytest.mark.parametrize("intercept", [False, True])
PENALTIES = {
    "L1": lambda d: fl.penalties.L1(1.0),
    "elastic net": lambda d: fl.penalties.ElasticNet(1.0, 0.6),
    "groups": lambda d: fl.penalties.GroupL2(1.0, np.arange(d) // 2, 1.0 + np.arange((d + 1) // 2) / d),
}
STORAGES = [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array]


def task(loss, n, d, penalty="L1", intercept=False, storage=sp.csr_array, offset=0.0, seed=0):
    rng = np.random.default_rng([seed, n, d])
    X = (rng.normal(size=(n, d)) + offset) * (rng.random((n, d)) < 0.5)
    y = targets(loss, rng, n)
    x = X[:, :3].sum(axis=1)
    y = np.where(x - x.mean() + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else y + x
    weights = rng.integers(0, 3, n) * rng.random(n) + 1e-3
    return fl.Problem(storage(X), y, loss, PENALTIES[penalty](d), weights, intercept)


@pytest.fixture
def always_large(monkeypatch):
    """Every path goes this way, however small the data are."""
    monkeypatch.setattr(quick_module, "_way", LargePath.of)
    monkeypatch.setattr(large_path, "FIRST_SIZE", 4)


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("penalty", PENALTIES)
@either_intercept
@every_loss
def test_the_same_optima(loss, intercept, penalty, storage, narrow, always_large, monkeypatch):
    """With Hessians, and by coordinates and conjugate gradients where sets are too wide for them."""
    if not narrow:
        monkeypatch.setattr(large_path, "NARROW", 0)
        monkeypatch.setattr(large_path, "ALWAYS", 0)
    problem = task(loss, 40, 30, penalty, intercept, storage)
    quick = fl.path(problem, eps=0.05, n_lams=12, tol=1e-6)
    assert np.mean([isinstance(result, Found) for result in quick]) >= 0.9
    with monkeypatch.context() as patch:
        patch.setattr(path_module, "quick_path", lambda *args: None)
        slow = fl.path(problem, lams=quick.lams, tol=1e-8)
    for ours, theirs in zip(quick, slow, strict=True):
        assert ours.certificate.ok
        assert abs(ours.certificate.primal - theirs.certificate.primal) <= 1.02e-6 * theirs.certificate.primal


@pytest.mark.parametrize("offset", [0.0, 10.0])
@either_intercept
@every_loss
def test_gaps_hold_in_exact_arithmetic(loss, intercept, offset, always_large):
    for penalty in ("L1", "elastic net"):
        gaps_of_paths_hold(task(loss, 12, 9, penalty, intercept, offset=offset), [1.0, 0.5, 0.1])


def test_large_data_go_this_way(monkeypatch):
    solved, solve = [], LargePath.solve
    monkeypatch.setattr(LargePath, "solve", lambda self, *a: solved.append(1) or solve(self, *a))
    for loss in (fl.losses.Squared(), fl.losses.Logistic()):
        path = fl.path(task(loss, 600, 1200), eps=0.3, n_lams=10)
        assert all(isinstance(result, Found) for result in path)
    assert len(solved) == 20


def test_columns_are_copied_now_and_then_only(monkeypatch):
    copied, only = [], fl.Design.only
    monkeypatch.setattr(fl.Design, "only", lambda self, *a: copied.append(len(a[0])) or only(self, *a))
    path = fl.path(task(fl.losses.Squared(), 600, 1200), eps=0.05, n_lams=100, tol=1e-5)
    assert all(isinstance(result, Found) for result in path)
    assert len(copied) <= 15


def test_hessians_are_used_again(monkeypatch):
    formed, form = [], large_path.gram_matrix
    monkeypatch.setattr(large_path, "gram_matrix", lambda *a: formed.append(1) or form(*a))
    path = fl.path(task(fl.losses.Logistic(), 600, 1200), eps=0.3, n_lams=60, tol=1e-4)
    assert all(isinstance(result, Found) for result in path)
    assert len(formed) <= 30


def test_gaps_do_not_add_up_along_a_path():
    """A model serves several lams while its gap there is a small part of what is asked for: each is certified."""
    problem = task(fl.losses.Squared(), 600, 1200)
    path = fl.path(problem, eps=0.3, n_lams=300, tol=0.05)
    assert sum(result.n_iter == 0 for result in path) > 100
    for lam, result in list(zip(path.lams, path, strict=True))[::50]:
        best = fl.solve(problem.with_lam(lam), tol=1e-7)
        assert result.certificate.primal - result.certificate.gap <= best.certificate.primal * (1.0 + 1e-12)
        assert problem.with_lam(lam).primal(result.w, result.b) == pytest.approx(result.certificate.primal)


def test_a_limit_on_seconds_ends_the_path(clock):
    assert len(fl.path(task(fl.losses.Logistic(), 600, 1200), tol=1e-9, max_seconds=0.3, warn=False)) < 100


def test_a_tolerance_below_rounding_is_left_to_the_solver(always_large):
    problem = task(fl.losses.Logistic(), 40, 30)
    path = fl.path(problem, n_lams=5, tol=1e-17, warn=False)
    assert not any(isinstance(result, Found) for result in path[1:])


def test_lams_far_apart_and_upwards(always_large):
    problem = task(fl.losses.Logistic(), 40, 30, intercept=True)
    top = problem.lam_max()
    way = LargePath.of(problem)
    for share in (1e-3, 2.0, 0.5, 0.01, 1.0):
        stop = fl.solver.result.Stop(1e-6)
        (result,) = way.solve([problem.penalty.with_lam(share * top)], stop)
        assert result.certificate.ok
        best = fl.solve(problem.with_lam(share * top), tol=1e-8)
        assert result.certificate.primal == pytest.approx(best.certificate.primal, rel=1.1e-6)


def test_what_a_result_knows_is_found_when_asked(always_large):
    problem = task(fl.losses.Logistic(), 40, 30, intercept=True)
    result = fl.path(problem, n_lams=8, eps=0.2, tol=1e-6)[5]
    at = problem.with_lam(result.certificate.evidence.problem.penalty.lam)
    np.testing.assert_allclose(result.alpha, -at.loss.derivative(at.scores(result.w, result.b), at.y))
    assert not np.any(result.certificate.zeros() & (result.w != 0.0))
    assert fl.solve(at, start=result, tol=1e-6).certificate.ok


def test_an_empty_working_set_makes_no_steps(always_large):
    """At lam_max, with weights so different that rounding keeps the gap from the tolerance."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y, weights = rng.normal(size=(3, 9)) + 1e6, rng.normal(size=3), 10.0 ** rng.uniform(-12, 12, 3)
        problem = fl.Problem(X, y, fl.losses.Huber(0.1), fl.penalties.L1(1.0), weights, intercept=True)
        fl.path(problem, lams=[1.01 * problem.lam_max(), problem.lam_max()], tol=1e-14, warn=False, max_seconds=1.0)


def sets_of(problem, penalties, needed, monkeypatch):
    """The results, and how many working sets it took."""
    entered, enter = [], LargePath._enter
    with monkeypatch.context() as patch:
        patch.setattr(LargePath, "_enter", lambda self, *args: entered.append(1) or enter(self, *args))
        results = list(path_module.along(problem, penalties, needed=needed, tol=1e-6))
    return results, len(entered)


@pytest.mark.parametrize("penalty", PENALTIES)
@every_loss
def test_whatever_others_needed_the_optima_are_the_same(loss, penalty, always_large, monkeypatch):
    """Right or wrong, all or none: what others tell is where to begin, and proves nothing."""
    problem = task(loss, 60, 50, penalty, intercept=True)
    penalties = [problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.array([0.6, 0.3, 0.1])]
    alone, _ = sets_of(problem, penalties, None, monkeypatch)
    count = len(problem.penalty.blocks(50).threshold)
    for told in (np.arange(0), np.arange(count), np.array([count - 1]), np.arange(0, count, 7)):
        needed = Needed({one.lam: told for one in penalties})
        others, _ = sets_of(problem, penalties, needed, monkeypatch)
        for one, other in zip(alone, others, strict=True):
            assert other.certificate.ok
            assert other.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-6)
        for one in penalties:  # and it knows now what this path needed
            assert set(told) <= set(needed.groups[one.lam])


def test_who_was_there_before_saves_working_sets(monkeypatch):
    sample = samples.make_regression(600, 3000, density=0.02, informative=100, random_state=0)
    problem = fl.Problem(sample.X, sample.y, penalty=fl.penalties.L1(1.0), intercept=True)
    for shares, fewer in (([0.5, 0.25, 0.12, 0.06], True), ([0.5, 0.48, 0.46, 0.44], False)):
        penalties = [problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.array(shares)]
        needed = Needed()
        first, many = sets_of(problem, penalties, needed, monkeypatch)
        assert all(isinstance(result, Found) for result in first)
        second, few = sets_of(problem, penalties, needed, monkeypatch)
        assert few <= len(penalties)
        assert few < many if fewer else few <= many
        assert [r.certificate.ok for r in second] == [True] * 4


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
    taken, take = [], LargePath._take
    monkeypatch.setattr(LargePath, "_take", lambda self, known: taken.append(len(known)) or take(self, known))
    sample = samples.make_regression(600, 3000, density=0.02, informative=100, random_state=0)
    y = np.where(sample.y > 0, 1, -1) if hasattr(model, "predict_proba") else sample.y
    fitted = clone(model).fit(sample.X, y)
    assert fitted.certificate_.ok
    paths = 2 if hasattr(fitted, "l1_ratio_") and isinstance(fitted.l1_ratio, list) else 1
    assert len(taken) == 2 * 6 * paths  # by two folds of three, at every alpha
