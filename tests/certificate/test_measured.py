"""Bounds on P and D from a solver's products hold in exact arithmetic, whatever the weights and whatever is listed."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction as Q

import numpy as np
import pytest

import fenchel as fl
from fenchel.certificate.bounds.measured import measured_bounds
from fenchel.certificate.bounds.rounding import UNDERFLOW
from fenchel.data.products import gamma
from fenchel.solver.paths.grid import shared_design
from fenchel.steps import SparsePath, Start
from fenchel.steps.base import Goal, Model
from fenchel.steps.measurements import AtMoments, AtSamples, DualVector, Measurements, Sizes
from fenchel.steps.working_set.moments import Centre, Moments
from tests.helpers.registry import SMOOTH, name, targets
from tests.laws.test_exact_arithmetic import exact

LOSSES = [*SMOOTH, fl.losses.SquaredEpsilonInsensitive(0.1)]
PENALTIES = {
    "L1": lambda d: fl.penalties.L1(1.0),
    "elastic net": lambda d: fl.penalties.ElasticNet(1.0, 0.6),
    "groups": lambda d: fl.penalties.GroupL2(1.0, np.arange(d) // 2, 1.0 + np.arange((d + 1) // 2) / 3),
    "own thresholds": lambda d: fl.penalties.GroupL2(1.0, np.arange(d), 1.0 + np.arange(d) / 3),
}
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)
either_intercept = pytest.mark.parametrize("intercept", [False, True])


def task(loss, n, d, penalty="L1", intercept=False, seed=0, offset=0.0, weighted=True):
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + offset
    x = X[:, 0] - offset
    y = targets(loss, rng, n)
    y = np.where(x + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else y + x
    weights = np.append(0.0, rng.integers(1, 3, n - 1) * rng.random(n - 1) + 1e-3) if weighted else None
    return fl.Problem(X, y, loss, PENALTIES[penalty](d), weights, intercept)


def measure(problem, w, b, loss, v, sizes=None, dual=None):
    """One model with products that were computed for it."""
    sizes, blocks = Sizes.of(problem) if sizes is None else sizes, problem.penalty.blocks(len(w))
    found = Measurements.of(sizes, [blocks], [Model(w, b)], loss, 1, v)
    return found if dual is None else replace(found, dual=dual)


def from_samples(problem, w, b):
    """Scores, multipliers and v by plain products."""
    z, p = problem.scores(w, b), problem.weights / problem.total_weight
    a = -problem.loss.derivative(z, problem.y)
    loss = AtSamples(np.array([problem.mean(problem.loss.value(z, problem.y))]), a[None, :])
    return measure(problem, w, b, loss, problem.design.rmatvec(p * a))


def from_centred(problem, w, b):
    """The squared loss: columns and targets without their means, and the intercept that is best."""
    centre, p = Centre.of(problem), problem.weights / problem.total_weight
    mean = 0.0 if centre.columns is None else centre.columns
    X = problem.design.matrix - mean
    a = problem.y - centre.target - X @ w
    loss = AtSamples(np.array([0.5 * problem.mean(a * a)]), a[None, :], centred=True)
    return measure(problem, w, centre.target - float(np.sum(mean * w)), loss, X.T @ (p * a))


def from_moments(problem, w, b):
    """The squared loss: the Gram matrix, whether or not it is a difference."""
    moments = Moments.of(problem)
    at = moments.at(w)
    loss = AtMoments(np.array([at.square]), np.array([at.inner]), problem.intercept, moments.by_difference)
    return measure(problem, w, moments.intercept(w), loss, at.v, moments.sizes)


def listing(found, cut):
    """The same measurements with only the columns listed whose |v_j| exceeds a cut, and only weights that are set."""
    v = found.dual.sizes
    listed, alive = v[v > cut], np.flatnonzero(found.weights)
    dual = DualVector(np.array([cut]), listed, np.array([0, len(listed)]))
    starts = np.array([0, len(alive)])
    return replace(found, dual=dual, columns=alive, weights=found.weights[alive], starts=starts)


@dataclass
class Truth:
    """The least objective that is known, in exact arithmetic."""

    problem: fl.Problem

    def __post_init__(self):
        best = fl.solve(self.problem, tol=1e-10, max_iter=50, warn=False)
        self.lowest = exact(self.problem, best.w, best.b)

    def holds(self, found):
        """P is at most `upper`, P* at least `lower`; both bounds as they are."""
        model = found.model(0, self.problem.shape[1])
        bounds = measured_bounds(self.problem, found)
        value, upper, lower = exact(self.problem, model.dense(), model.b), bounds.upper[0], bounds.lower[0]
        assert not np.isnan(upper)
        assert not np.isnan(lower)
        assert upper == np.inf or value <= Q(float(upper))
        assert lower == -np.inf or Q(float(lower)) <= self.lowest
        assert bounds.gap[0] == np.inf or value - self.lowest <= Q(float(bounds.gap[0]))
        return bounds


def kinds_of(loss):
    return [from_samples, from_centred, from_moments] if loss.quadratic else [from_samples]


# They hold --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(9, 4), (8, 12)])
@either_intercept
@every_penalty
@every_loss
def test_bounds_hold_at_any_weights(loss, penalty, intercept, n, d):
    """Far from any optimum and near it, with weights tiny and huge, with intercepts that do not fit."""
    rng = np.random.default_rng(1)
    problem = task(loss, n, d, penalty, intercept, offset=1.0)
    for lam in (1e-2, 1.0, 100.0):
        at = problem.with_lam(lam)
        truth, best = Truth(at), fl.solve(at, tol=1e-8, warn=False)
        models = [(scale * rng.normal(size=d), scale * float(rng.normal()) * intercept) for scale in (1e-3, 1.0, 1e3)]
        for w, b in [*models, (best.w, best.b), (np.zeros(d), best.b), (np.zeros(d), 0.0)]:
            for kind in kinds_of(loss):
                truth.holds(kind(at, w, b))


@either_intercept
@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
@every_loss
def test_bounds_hold_whatever_is_listed(loss, penalty, intercept):
    """Columns that are not listed count as if they were at the cut."""
    rng = np.random.default_rng(2)
    problem, d = task(loss, 8, 6, penalty, intercept, offset=1.0), 6
    for lam in (1e-2, 1.0):
        at = problem.with_lam(lam)
        truth, best = Truth(at), fl.solve(at, tol=1e-8, warn=False)
        threshold = float(at.penalty.blocks(d).threshold[0])
        for w, b in [(best.w, best.b), (rng.normal(size=d), best.b), (np.zeros(d), best.b)]:
            for kind in kinds_of(loss):
                whole = kind(at, w, b)
                for cut in (0.0, 0.5 * threshold, 0.95 * threshold, threshold * (1.0 - 1e-9)):
                    truth.holds(listing(whole, cut))
                assert measured_bounds(at, listing(whole, 3.0 * threshold)).lower[0] == -np.inf


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e-20, 1e20, 1e60, 1e100, 1e160])
@every_loss
def test_bounds_hold_at_weights_of_any_size(loss, scale):
    rng = np.random.default_rng(3)
    for penalty in PENALTIES:
        problem = task(loss, 7, 4, penalty, True)
        truth, w = Truth(problem), scale * rng.normal(size=4)
        for kind in kinds_of(loss):
            with np.errstate(all="ignore"):
                truth.holds(kind(problem, w, scale))


@either_intercept
@pytest.mark.parametrize("penalty", ["L1", "elastic net", "groups"])
def test_bounds_of_differences_of_gram_matrices_hold(penalty, intercept):
    """The moments of a fold: those of all samples without those that are left out."""
    rng = np.random.default_rng(4)
    for offset in (0.0, 1e3, 1e6):
        whole = task(fl.losses.Squared(), 16, 4, penalty, intercept, offset=offset, weighted=False)
        design = shared_design(whole)
        fold = whole.replace(X=design, weights=(np.arange(16) >= 5).astype(float)).with_lam(0.1)
        truth = Truth(fold)
        for scale in (0.0, 1e-3, 1.0):
            found = from_moments(fold, scale * rng.normal(size=4), 0.0)
            assert found.loss.by_difference
            truth.holds(found)


@either_intercept
@pytest.mark.parametrize("offset", [1e4, 1e7])
def test_bounds_hold_where_columns_are_far_from_zero(offset, intercept):
    for loss in LOSSES:
        for seed in range(2):
            problem = task(loss, 9, 3, "L1", intercept, seed, offset)
            truth, rng = Truth(problem), np.random.default_rng(seed)
            for scale in (1e-8, 1.0):
                for kind in kinds_of(loss):
                    truth.holds(kind(problem, scale * rng.normal(size=3), float(rng.normal()) * intercept))


# What they allow for is needed -----------------------------------------------------------------------------------


@every_loss
def test_rounding_of_scores_is_allowed_for(loss):
    """Weights whose scores all but cancel beside a large offset: P as computed is off by more than its last digits."""
    beyond = 0
    for seed in range(40):
        problem = task(loss, 12, 6, seed=seed, offset=1e8)
        w = np.random.default_rng(seed).normal(size=6)
        w[-1] = -w[:-1].sum()
        for kind in kinds_of(loss):
            bounds = measured_bounds(problem, kind(problem, w, 0.0))
            value = exact(problem, w, 0.0)
            assert value <= bounds.upper[0]
            beyond += value > Q(float(bounds.primal[0])) * Q(1.0 + 1e-12)
    assert beyond


def test_rounding_of_the_product_with_the_columns_is_allowed_for():
    """A column far from zero beside multipliers that sum to zero: v as computed is off, and may be too small."""
    beyond = 0
    for seed in range(40):
        problem = task(fl.losses.Huber(0.7), 25, 3, seed=seed, intercept=True, offset=1e9)
        sizes, p = Sizes.of(problem), problem.weights / problem.total_weight
        a = -problem.loss.derivative(problem.scores(np.zeros(3), problem.first_intercept()), problem.y)
        v = problem.design.rmatvec(p * a)
        terms = [Q(s) * Q(x) for s, x in zip(problem.weights, a, strict=True)]
        total = sum(map(Q, problem.weights))
        truth = [sum(t * Q(x) for t, x in zip(terms, column, strict=True)) / total for column in problem.X.matrix.T]
        error = 8.0 * gamma(25 + 200) * float(np.sqrt(p @ a**2)) * sizes.columns
        assert all(abs(t - Q(x)) <= Q(e) for t, x, e in zip(truth, v, error, strict=True))
        beyond += any(abs(t) > Q(abs(x)) for t, x in zip(truth, v, strict=True))
    assert beyond


def test_sizes_of_columns_and_targets_are_bounds_from_above():
    for seed in range(20):
        problem = task(fl.losses.Squared(), 9, 5, seed=seed, offset=10.0**seed)
        sizes, total = Sizes.of(problem), sum(map(Q, problem.weights))
        vectors = [*problem.design.matrix.T, problem.y]
        for vector, size in zip(vectors, [*sizes.columns, sizes.target], strict=True):
            square = sum(Q(s) * Q(x) ** 2 for s, x in zip(problem.weights, vector, strict=True)) / total
            assert square <= Q(float(size)) ** 2
        assert sizes.widest == sizes.columns.max()


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60, 1e150])
def test_sizes_whose_squares_vanish_or_overflow_are_not_moderate(scale):
    problem = task(fl.losses.Squared(), 9, 5)
    assert Sizes.of(problem).are_moderate
    assert not Sizes.of(problem.replace(X=fl.Design(problem.design.matrix * scale))).are_moderate
    assert not Sizes.of(problem.replace(y=problem.y * scale)).are_moderate
    matrix = problem.design.matrix.copy()
    matrix[:, 2] = 0.0  # as small as that is no error
    assert Sizes.of(problem.replace(X=fl.Design(matrix))).are_moderate


# What proves nothing ----------------------------------------------------------------------------------------------


def spoilt(found, bad):
    """The same measurements with one number after the other made bad."""
    for part in ("loss", None) if bad < 0.0 else ("dual", "loss", None):  # the parts of "dual" are sizes
        record = found if part is None else getattr(found, part)
        for field in fields(record):
            value = getattr(record, field.name)
            if not (isinstance(value, np.ndarray) and value.dtype == np.float64 and value.size):
                continue
            if field.name in ("threshold", "ridge"):  # what was asked for, not what was computed
                continue
            if field.name == "b" and isinstance(found.loss, AtMoments):  # it follows from the weights
                continue
            if field.name == "cut" and found.dual.complete:  # no column is left out
                continue
            value = value.copy()
            value.flat[value.size // 2] = bad
            changed = replace(record, **{field.name: value})
            yield f"{part}.{field.name}", changed if part is None else replace(found, **{part: changed})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_penalty
@every_loss
def test_numbers_that_overflow_prove_nothing(loss, penalty, bad):
    problem = task(loss, 9, 5, penalty, True).with_lam(0.1)
    best = fl.solve(problem, tol=1e-6)
    for kind in kinds_of(loss):
        found = kind(problem, best.w, best.b)
        assert measured_bounds(problem, found).meet(1e6, 0.0)
        cases = list(spoilt(found, bad))
        if penalty in ("L1", "elastic net"):
            threshold = float(found.threshold[0])
            cases += spoilt(listing(found, 0.9 * threshold), bad)
        assert len(cases) >= (3 if bad < 0.0 else 4)
        for field, case in cases:
            assert not measured_bounds(problem, case).meet(1e6, 0.0), field


@pytest.mark.parametrize("field", ["square", "inner"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_moments_that_overflow_prove_nothing(field, bad):
    problem = task(fl.losses.Squared(), 9, 5).with_lam(0.1)
    found = from_moments(problem, fl.solve(problem, tol=1e-6).w, 0.0)
    good = measured_bounds(problem, found)
    bounds = measured_bounds(problem, replace(found, loss=replace(found.loss, **{field: np.array([bad])})))
    assert bounds.lower[0] == -np.inf
    if field == "square":  # not even beside a lower bound of before
        assert not bounds.with_lower(good).meet(1e6, 0.0)


@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
def test_columns_that_may_be_above_the_threshold_prove_nothing(penalty):
    """Rounding alone is more than what lies between the cut and the threshold."""
    problem = task(fl.losses.Logistic(), 8, 12, penalty).with_lam(1e-13)
    found = listing(from_samples(problem, np.zeros(12), 0.0), np.inf)
    threshold = float(found.threshold[0])
    for cut in (0.9999 * threshold, threshold, 2.0 * threshold, 0.0):
        dual = replace(found.dual, cut=np.array([cut]))
        assert not measured_bounds(problem, replace(found, dual=dual)).meet(1e6, 0.0)


@every_loss
def test_no_column_listed_is_not_all_columns_far_below(loss):
    """The multiple of the multipliers that is feasible is no more than the cut allows."""
    problem = task(loss, 8, 12)
    problem = problem.with_lam(3.0 * problem.lam_max())
    found = listing(from_samples(problem, np.zeros(12), 0.0), np.inf)
    cut = 0.5 * float(found.threshold[0])
    bounds = measured_bounds(problem, replace(found, dual=replace(found.dual, cut=np.array([cut]))))
    assert bounds.theta[0] <= 2.0
    if loss.quadratic:
        moments = from_moments(problem, np.zeros(12), 0.0)
        moments = replace(moments, dual=replace(found.dual, cut=np.array([cut])))
        assert measured_bounds(problem, moments).theta[0] <= 2.0


def test_multipliers_of_one_sign_prove_nothing_beside_an_intercept():
    problem = task(fl.losses.Logistic(), 20, 4, intercept=True)
    z = np.where(problem.y > 0, -1.0, -800.0)
    a = -problem.loss.derivative(z, problem.y)
    assert a.min() > -1e-300
    loss = AtSamples(np.array([problem.mean(problem.loss.value(z, problem.y))]), a[None, :])
    found = measure(problem, np.zeros(4), 0.0, loss, np.zeros(4))
    assert measured_bounds(problem, found).lower[0] == -np.inf
    without = problem.replace(intercept=False)
    assert np.isfinite(measured_bounds(without, found).lower[0])


def test_multipliers_that_do_not_sum_to_zero_cost_what_is_missing():
    """The more is missing, the lower is D; never is it higher than with the best intercept."""
    problem = task(fl.losses.Huber(0.7), 30, 4, intercept=True).with_lam(10.0)
    best = fl.solve(problem, tol=1e-12).b
    gaps = [measured_bounds(problem, from_samples(problem, np.zeros(4), best + s)).gap[0] for s in (0.0, 1e-6, 1e-2)]
    assert gaps[0] < gaps[1] < gaps[2]


# Several models ---------------------------------------------------------------------------------------------------


def test_models_of_one_batch_are_bounded_as_if_alone():
    for loss in SMOOTH:
        for penalty in ("L1", "elastic net"):
            for intercept in (False, True):
                problem = task(loss, 12, 40, penalty, intercept)
                lams = problem.lam_max() * np.geomspace(1.0, 0.1, 8)
                penalties = tuple(problem.penalty.with_lam(float(lam)) for lam in lams)
                solver = SparsePath()
                state = solver.begin(problem, Start(np.zeros(40), 0.0, np.zeros(12)), 0)
                solver.aim(state, Goal(penalties, 1e-6, 0.0, np.inf))
                found = solver.measured(solver.step(state))
                assert len(found) == 8
                several = measured_bounds(problem, found)
                for k in range(8):
                    one = measured_bounds(problem, alone(found, k))
                    for field in ("primal", "upper", "dual", "lower", "theta"):
                        together = getattr(several, field)[k]
                        assert together == pytest.approx(
                            getattr(one, field)[0], rel=3e-14, abs=UNDERFLOW
                        )  # sums in another order


def alone(found, k):
    """Model k of several, on its own."""
    weights = slice(int(found.starts[k]), int(found.starts[k + 1]))
    listed = slice(int(found.dual.starts[k]), int(found.dual.starts[k + 1]))
    one = slice(k, k + 1)
    dual, loss = found.dual, found.loss
    return Measurements(
        found.sizes,
        found.threshold[one],
        found.ridge[one],
        found.starts[k : k + 2] - found.starts[k],
        found.columns[weights],
        found.weights[weights],
        found.b[one],
        AtSamples(loss.loss[one], loss.multipliers[one], loss.centred),
        DualVector(dual.cut[one], dual.sizes[listed], dual.starts[k : k + 2] - dual.starts[k]),
        found.steps[one],
    )


def test_a_lower_bound_is_kept_and_an_upper_one_is_not():
    problem = task(fl.losses.Squared(), 20, 4).with_lam(0.1)
    best = fl.solve(problem, tol=1e-10)
    good = measured_bounds(problem, from_samples(problem, best.w, best.b))
    poor = measured_bounds(problem, from_samples(problem, best.w + 1.0, best.b))
    assert poor.lower[0] < good.lower[0]
    mixed = poor.with_lower(good)
    assert (mixed.upper[0], mixed.lower[0], mixed.theta[0]) == (poor.upper[0], good.lower[0], good.theta[0])
    assert good.with_lower(poor) is good
    assert good.meet(1e-6, 0.0)
    assert not poor.meet(1e-6, 0.0)
    assert poor.meet(0.0, 1.01 * float(poor.gap[0]))
