"""What paths on some of the same samples share: the same optima as on copies, and bounds that hold."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.certificate.bounds.measured import measured_bounds
from fenchel.data.products import gamma
from fenchel.solver.paths.grid import shared_design
from fenchel.steps import PrimalCD, SparsePath, Start
from fenchel.steps.base import Goal
from fenchel.steps.measurements import reduced
from fenchel.steps.working_set import sparse_path
from fenchel.steps.working_set.moments import Centre, Moments
from tests.helpers.registry import SMOOTH, name, targets
from tests.laws.test_exact_arithmetic import gaps_of_paths_hold

either_intercept = pytest.mark.parametrize("intercept", [False, True])
PENALTIES = {
    "L1": lambda d: fl.penalties.L1(1.0),
    "elastic net": lambda d: fl.penalties.ElasticNet(1.0, 0.6),
    "groups": lambda d: fl.penalties.GroupL2(1.0, np.arange(d) // 2),
}
STORAGES = [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32)]


def task(n, d, loss=None, penalty="L1", intercept=False, storage=np.asarray, offset=0.0, seed=0):
    rng = np.random.default_rng([n, d, seed])
    loss = fl.losses.Squared() if loss is None else loss
    X = (rng.normal(size=(n, d)) + offset) * np.exp(rng.normal(size=d))
    x = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    y = np.where(x + rng.normal(size=n) > 0, 1.0, -1.0) if loss.is_classification else x + targets(loss, rng, n)
    return fl.Problem(storage(X), y, loss, PENALTIES[penalty](d), intercept=intercept)


def folds_of(problem, count=3, scale=1.0):
    """A problem on X as it is, and one on a copy of the samples that count, for every fold.

    What is left out may be much larger than what is not.
    """
    which = np.arange(problem.shape[0]) % count
    if scale != 1.0:
        X = problem.design.matrix.copy()
        X[which == 0] *= scale
        problem = fl.Problem(X, problem.y, problem.loss, problem.penalty, intercept=problem.intercept)
    held = shared_design(problem)
    assert held is not None
    for k in range(1 if scale != 1.0 else count):
        weights = (which != k).astype(float)
        rows = np.flatnonzero(weights)
        copy = fl.Problem(
            problem.design.matrix[rows],
            problem.y[rows],
            problem.loss,
            problem.penalty,
            intercept=problem.intercept,
        )
        yield problem.replace(X=held, weights=weights), copy


def same_optima(part, copy):
    ours, theirs = (fl.path(one, eps=0.05, n_lams=8, lams=None, tol=1e-7) for one in (part, copy))
    np.testing.assert_allclose(ours.lams, theirs.lams, rtol=1e-6)
    assert all(result.certificate.evidence.known is None for result in ours)  # no judge was needed
    for one, other in zip(ours, theirs, strict=True):
        assert one.certificate.ok
        assert other.certificate.ok
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-7)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("penalty", PENALTIES)
@either_intercept
def test_few_weights(storage, penalty, intercept):
    for part, copy in folds_of(task(60, 6, penalty=penalty, intercept=intercept, storage=storage, offset=3.0)):
        same_optima(part, copy)


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@either_intercept
def test_few_samples(loss, storage, intercept):
    for part, copy in folds_of(task(24, 300, loss, "L1", intercept, storage, offset=0.5)):
        same_optima(part, copy)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e7])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("penalty", ["L1", "elastic net"])
@either_intercept
def test_gaps_hold_in_exact_arithmetic(penalty, intercept, offset, scale):
    """Also where what is left out is so large that its rounding is all that is left of the difference."""
    for n, d in ((18, 4), (9, 20), (6, 401)) if scale == 1.0 else ((18, 4),):
        for part, _ in folds_of(task(n, d, None, penalty, intercept, offset=offset), scale=scale):
            gaps_of_paths_hold(part, [1.0, 0.3, 0.03])


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@either_intercept
def test_differences_are_as_near_as_they_say(intercept, storage, scale):
    """Every entry of the Gram matrix against that of the samples that count, in rational numbers."""
    problem = task(20, 4, intercept=intercept, storage=storage, offset=5.0)
    X = problem.design.matrix.toarray() if sp.issparse(problem.design.matrix) else problem.design.matrix.copy()
    out = np.arange(20) % 4 == 1
    X[out] *= scale
    problem = fl.Problem(storage(X), problem.y, intercept=intercept, penalty=fl.penalties.L1(1.0))
    held = shared_design(problem)
    part = problem.replace(X=held, weights=np.where(out, 0.0, 1.0))
    moments = Moments.of(part)
    assert moments.by_difference
    relative = 32.0 * gamma(part.shape[0] + 200)  # what the bounds from second moments allow for
    rows = [[Fraction(float(x)) for x in row] for row in X[~out]]
    mean = [sum(column) / len(rows) if intercept else Fraction(0) for column in zip(*rows, strict=True)]
    for j in range(4):
        for k in range(4):
            true = sum((row[j] - mean[j]) * (row[k] - mean[k]) for row in rows) / len(rows)
            error = abs(Fraction(float(moments.G[j, k])) - true)
            assert error <= relative * moments.sizes.columns[j] * moments.sizes.columns[k]


@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@either_intercept
def test_no_column_is_overlooked(loss, intercept):
    """Columns that are not near the threshold are below it, whatever samples the shared ones were made for."""
    for seed, (n, d, offset) in enumerate([(12, 300, 0.0), (7, 361, 0.0), (25, 400, 30.0)]):
        for part, _ in folds_of(task(n, d, loss, "L1", intercept, offset=offset, seed=seed)):
            found = first_models(part, part.lam_max() * np.geomspace(1.0, 0.02, 20))
            assert len(found) >= 5
            p, matrix = found.sizes.p, part.design.matrix
            assert np.all(p @ matrix**2 <= found.sizes.columns**2)
            centre = Centre.of(part).columns if found.loss.centred else 0.0
            V = np.abs((p * found.loss.multipliers) @ (matrix - centre))
            listed = reduced(np.maximum, found.dual.starts, found.dual.sizes)
            assert np.all(V.max(axis=1) <= np.maximum(listed, found.dual.cut) * (1.0 + 1e-9))
            assert np.all(found.dual.cut <= found.threshold)


def first_models(problem, lams):
    """What the compiled path measures in one step."""
    solver, (n, d) = SparsePath(), problem.shape
    state = solver.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), 0)
    solver.aim(state, Goal(tuple(problem.penalty.with_lam(float(lam)) for lam in lams), 1e-6, 0.0, np.inf))
    return solver.measured(solver.step(state))


def test_weights_of_any_kind():
    """A sample that counts many times has columns of its own; one that counts a few times does not."""
    problem = task(20, 400, intercept=True)
    held = shared_design(problem)
    for most, shared in ((3.0, True), (50.0, False)):
        weights = np.ones(20)
        weights[3], weights[7:10] = most, 0.0
        part = problem.replace(X=held, weights=weights)
        known = held.fold_cache.screens[True]
        screen, _, _ = sparse_path._screen(part, weights / weights.sum(), Centre.of(part).columns)
        assert (screen is known) == shared
        rows = np.repeat(np.arange(20), weights.astype(int))
        same_optima(
            part, fl.Problem(problem.design.matrix[rows], problem.y[rows], penalty=part.penalty, intercept=True)
        )


def test_what_is_known_of_a_matrix_is_over_with_its_fold_cache():
    """A user may change X between two calls; nothing is proven from what it was."""
    for n, d in ((20, 400), (60, 5)):
        problem = task(n, d)
        fl.path(problem, n_lams=3)
        assert problem.design.fold_cache is None
        held = shared_design(problem)
        assert problem.design.fold_cache is None
        weights = np.ones(n)
        weights[:5] = 0.0
        part = problem.replace(X=held.sharing(held.fold_cache), weights=weights)
        fl.path(part, n_lams=3)
        held.fold_cache.end()
        problem.design.matrix[:] *= 2.0
        rows = slice(5, None)
        same_optima(part, fl.Problem(problem.design.matrix[rows], problem.y[rows], penalty=part.penalty))


def test_where_a_difference_proves_too_little_a_fold_forms_its_own_matrix():
    """Far from zero the rounding of all samples is more than what is asked for."""
    problem = task(400, 4, intercept=True, offset=300.0)
    held = shared_design(problem)
    part = problem.replace(X=held, weights=np.where(np.arange(400) % 5 == 0, 0.0, 1.0))
    part = part.with_lam(0.3 * part.lam_max())
    w = fl.solve(part, tol=1e-12, warn=False).w
    rough, fine = (bounds_at(part, Moments.of(part, may_share), w) for may_share in (True, False))
    assert fine.rounding[0] < 0.3 * rough.rounding[0]  # a quarter, by the formula
    between = float(np.sqrt(rough.gap[0] * fine.gap[0]) / fine.primal[0])
    assert fl.solve(part, solver="primal_cd", tol=between).certificate.ok
    solver = PrimalCD()
    state = solver.begin(part, Start(np.zeros(4), 0.0, np.zeros(400)), 0)
    solver.aim(state, Goal((part.penalty,), between, 0.0, np.inf))
    state = solver.step(state)
    assert state.moments.by_difference
    found = measured_bounds(part, solver.measured(state))
    assert not found.meet(between, 0.0)[0]
    solver.learn(state, float(found.gap[0]))
    state = solver.step(state)
    assert not state.moments.by_difference
    assert measured_bounds(part, solver.measured(state)).meet(between, 0.0)[0]


def bounds_at(problem, moments, w):
    """What second moments prove of some weights."""
    blocks = problem.penalty.blocks(len(w))
    return measured_bounds(problem, moments.measured([blocks], [moments.at(w)], steps=1))


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (task(40, 6, fl.losses.Logistic()), {}),
        (task(40, 100, storage=sp.csr_array), {}),
        (task(20, 400, penalty="groups"), {}),
        (task(40, 6), {"solver": "fista"}),
        (task(40, 6).replace(weights=np.arange(1.0, 41.0)), {}),
        (task(20, 400), {"solver": "fista"}),
    ],
)
def test_others_are_quicker_on_copies(problem, options):
    assert shared_design(problem, **options) is None
