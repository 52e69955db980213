"""The compiled path on few dense samples: its models, what it says of columns that it does not look at, its bounds."""

import numpy as np
import pytest
from fenchel.certificate.bounds.batch import NEAR, Models
from fenchel.certificate.bounds.centred import Centred
from fenchel.certificate.bounds.responses import Responses
from fenchel.solver.paths.found import Found
from fenchel.solver.paths.wide_path import MOST_LAMS, WidePath

import fenchel as fl
from fenchel.solver.result import Stop
from tests.helpers.registry import SMOOTH, name, targets
from tests.laws.test_exact_arithmetic import exact

every_loss = pytest.mark.parametrize("loss", SMOOTH, ids=name)
either_intercept = pytest.mark.parametrize("intercept", [False, True])
PENALTIES = {"L1": fl.penalties.L1(1.0), "elastic net": fl.penalties.ElasticNet(1.0, 0.6)}
every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)


def task(loss, n, d, penalty=PENALTIES["L1"], intercept=False, seed=0, spread=1.0, offset=0.0):
    rng = np.random.default_rng([seed, n, d])
    X = (rng.normal(size=(n, d)) + offset) * np.exp(spread * rng.normal(size=d))
    y = targets(loss, rng, n)
    x = X[:, 0] / np.std(X[:, 0])
    y = np.where(x - x.mean() + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else y + x
    weights = rng.integers(0, 3, n) * rng.random(n) + (rng.random(n) > 0.2)
    weights[0] = 0.0
    return fl.Problem(X, y, loss, penalty, weights, intercept)


def models_of(problem, count=30, low=0.02, tol=1e-6):
    """What the compiled path finds, its way and its penalties."""
    way = WidePath.of(problem)
    penalties = [problem.penalty.with_lam(float(lam)) for lam in problem.lam_max() * np.geomspace(1.0, low, count)]
    return way, penalties, way._advance(penalties, np.full(count, tol), Stop(tol))


def by_hand(samples, threshold, ridge, w, b):
    """A model with given weights, all columns near."""
    problem, p = samples.problem, samples.p
    z = problem.scores(w, b)
    a = (
        samples.y - (problem.design.matrix - (0.0 if samples.mean is None else samples.mean)) @ w
        if isinstance(samples, Centred)
        else -problem.loss.derivative(z, problem.y)
    )
    v = np.abs(problem.design.rmatvec(p * a))
    starts, d = np.array([0, len(w)]), np.arange(len(w))
    number = [np.array([x]) for x in (threshold, ridge, v.max(), b, problem.mean(problem.loss.value(z, problem.y)), 1)]
    threshold, ridge, largest, b, loss, steps = number
    return Models(threshold, ridge, starts, d, w, largest, starts, v, b, loss, a[None], steps)


@every_penalty
@either_intercept
@every_loss
def test_no_column_is_overlooked(loss, intercept, penalty):
    """Columns that are not near the threshold are below it: every one of them, against the product with X."""
    for seed, (n, d, spread, offset) in enumerate([(12, 300, 1.0, 0.0), (7, 61, 5.0, 0.0), (25, 200, 0.1, 30.0)]):
        problem = task(loss, n, d, penalty, intercept, seed, spread, offset)
        way, _, models = models_of(problem)
        assert len(models.b) >= 10
        centred = way.samples.mean if isinstance(way.samples, Centred) and intercept else 0.0
        V = np.abs((way.samples.p * models.multipliers) @ (problem.design.matrix - centred))
        highest = np.maximum(models.largest, NEAR * models.threshold)
        assert np.all(V.max(axis=1) <= highest * (1.0 + 1e-9))
        if models.ridge.any():  # those that are near are all there
            near = np.count_nonzero(models.threshold[:, None] * (1.0 + 1e-9) < V, axis=1)
            assert np.all(np.diff(models.near_starts) >= near)


@every_penalty
@either_intercept
@every_loss
def test_its_models_are_optima(loss, intercept, penalty):
    problem = task(loss, 15, 150, penalty, intercept)
    _, penalties, models = models_of(problem, 10)
    assert len(models.b) == 10
    for k in (3, 9):
        best = fl.solve(problem.replace(penalty=penalties[k]), "fista", tol=1e-8, max_iter=200_000)
        value = models.loss[k] + models.penalty[k]
        assert value == pytest.approx(best.certificate.primal, rel=3e-6)


@every_penalty
@either_intercept
@every_loss
def test_bounds_hold_at_any_weights(loss, intercept, penalty):
    """Far from any optimum, at intercepts that do not fit, with weights tiny and huge."""
    rng = np.random.default_rng(0)
    problem = task(loss, 8, 12, penalty, intercept, offset=1.0)
    samples = Centred.of(problem) if isinstance(loss, fl.losses.Squared) else Responses(problem)
    for lam in (1.0, 1e-2):
        at = problem.with_lam(lam)
        blocks, best = at.penalty.blocks(12), fl.solve(at, tol=1e-12, warn=False)
        lowest = exact(at, best.w, best.b)
        for scale in (1.0, 1e-3, 1e3):
            w = scale * rng.normal(size=12)
            b = samples.intercept(w) if isinstance(samples, Centred) else scale * float(rng.normal()) * intercept
            (bounds,) = samples.bounds_of(by_hand(samples, blocks.threshold[0], blocks.ridge, w, b))
            assert exact(at, w, b) <= bounds.upper
            assert bounds.lower <= lowest


@every_loss
@np.errstate(all="ignore")
def test_numbers_that_overflow_prove_nothing(loss):
    problem = task(loss, 8, 12)
    samples = Centred.of(problem) if isinstance(loss, fl.losses.Squared) else Responses(problem)
    for bad in (np.nan, np.inf):
        models = by_hand(samples, 1.0, 0.0, np.ones(12), 0.0)
        models.largest[0] = bad
        assert not samples.bounds_of(models)[0].reach(1e6, 0.0)
        models = by_hand(samples, 1.0, 0.0, np.ones(12), 0.0)
        models.multipliers[0, 3] = bad
        assert not samples.bounds_of(models)[0].reach(1e6, 0.0)


def test_columns_whose_place_below_the_threshold_is_in_doubt_prove_nothing():
    problem = task(fl.losses.Logistic(), 8, 12)
    samples = Responses(problem)
    models = by_hand(samples, 1e-13, 0.0, np.zeros(12), 0.0)
    models.largest[0] = 0.0  # as if nothing were near: rounding alone is more than what is between
    assert not samples.bounds_of(models)[0].reach(1e6, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@either_intercept
def test_storages_give_one_path(order, dtype, intercept):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(11, 90)).astype(np.float32), rng.normal(size=11)
    paths = []
    for data in (X.astype(np.float64), np.asarray(X, dtype=dtype, order=order)):
        problem = fl.Problem(data, y, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=intercept)
        paths.append(fl.path(problem, eps=0.05, n_lams=20, tol=1e-8))
        assert all(isinstance(result, Found) for result in paths[-1])
    np.testing.assert_allclose(paths[0].coefs, paths[1].coefs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tol", [0.9, 0.1, 1e-3, 1e-10])
@every_penalty
@every_loss
def test_a_single_lam_is_reached_by_a_short_path(loss, penalty, tol):
    problem = task(loss, 15, 200, penalty)
    problem = problem.with_lam(0.03 * problem.lam_max())
    result = fl.solve(problem, tol=tol)
    assert isinstance(result, Found)
    assert result.certificate.ok
    assert result.certificate.evidence.problem.penalty == problem.penalty
    best = fl.solve(problem, "fista", tol=1e-8, max_iter=300_000, warn=False)
    assert result.certificate.primal - result.certificate.gap <= best.certificate.primal * (1.0 + 1e-12)
    assert problem.primal(result.w, result.b) == pytest.approx(result.certificate.primal, rel=1e-9)


def test_above_lam_max_all_weights_are_zero():
    for loss in SMOOTH:
        problem = task(loss, 9, 40, intercept=True)
        result = fl.solve(problem.with_lam(3.0 * problem.lam_max()), tol=1e-6)
        assert isinstance(result, Found)
        assert not result.w.any()


def test_many_missing_columns_are_taken_in_a_few_at_a_time():
    """All that are missing at a small lam may be thousands."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 4000))
    y = X[:, :10].sum(axis=1) + rng.normal(size=100)
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=True)
    result = fl.path(problem, lams=[0.01]).results[0]
    assert isinstance(result, Found)
    assert result.certificate.ok


def test_degenerate_matrices():
    """One sample, columns of zeros, columns that are equal, targets that are zero."""
    rng = np.random.default_rng(0)
    for X, y in (
        (rng.normal(size=(1, 30)), np.ones(1)),
        (np.zeros((5, 30)), rng.normal(size=5)),
        (np.repeat(rng.normal(size=(5, 10)), 3, axis=1), rng.normal(size=5)),
        (rng.normal(size=(5, 30)), np.zeros(5)),
    ):
        for intercept in (False, True):
            problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=intercept)
            for result in fl.path(problem, lams=[1.0, 0.1, 0.01], tol=1e-6):
                assert result.certificate.ok


def test_long_paths_are_found_in_parts():
    problem = task(fl.losses.Logistic(), 12, 80)
    path = fl.path(problem, n_lams=3 * MOST_LAMS + 1, eps=0.1)
    assert len(path) == 3 * MOST_LAMS + 1
    assert all(isinstance(result, Found) for result in path)


def test_a_path_of_weights_is_written_once():
    """Rows of coefs are what results say, whether or not somebody has looked at those before."""
    path = fl.path(task(fl.losses.Squared(), 12, 80), n_lams=8, eps=0.1)
    path[3].w[0] = 5.0  # the caller's to change
    assert path.coefs[0, 3] == 5.0
    np.testing.assert_array_equal(path.coefs[1:], np.column_stack([result.w for result in path])[1:])
    with pytest.raises(ValueError, match="read-only"):
        path.coefs[0, 0] = 1.0


# Holes that were there -------------------------------------------------------------------------------------------


def test_where_not_even_the_first_lam_is_found_the_solver_is_asked():
    """No model at all is no array of a strange shape."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(5, 300)), rng.normal(size=5)
        problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(1.0))
        lam = 1e-5 * problem.lam_max()
        for tol in (1e-2, 1e-15):
            fl.path(problem, lams=[lam], tol=tol, warn=False, max_seconds=0.1)
            fl.solve(problem.with_lam(lam), tol=tol, warn=False, max_seconds=0.1)


@every_penalty
@every_loss
def test_lams_that_rise_are_certified_too(loss, penalty):
    """Weights that are too large for a lam leave small residuals, and no column near the threshold: the multiple of
    them that is feasible is known to be no more than what the columns below allow.
    """
    for seed in range(20):
        problem = task(loss, 6, 20, penalty, seed=seed)
        way, top = WidePath.of(problem), problem.lam_max()
        for lam in top * 0.05 * 1.07 ** np.arange(4):
            for tol in (0.99, 0.3):
                for result in way.solve([problem.penalty.with_lam(float(lam))], Stop(tol)):
                    at = problem.with_lam(float(lam))
                    best = fl.solve(at, tol=1e-10, warn=False)
                    assert result.certificate.dual <= best.certificate.primal * (1.0 + 1e-9)
                    assert result.certificate.primal - result.certificate.gap <= best.certificate.primal


def test_nothing_near_the_threshold_is_not_everything_far_below_it():
    samples = Centred.of(task(fl.losses.Squared(), 8, 12))
    models = by_hand(samples, 1.0, 0.0, np.zeros(12), 0.0)
    models.largest[0] = 0.0
    theta, _ = models.feasible(np.zeros(1))
    assert theta[0] <= 1.0 / NEAR
