"""SGD and Pegasos: they do the steps that the papers state, and their models are certified like any other."""

import numpy as np
import pytest
from scipy import sparse

import fenchel as fl
from fenchel.solver import Start
from fenchel.steps import SGD, Pegasos
from fenchel.steps.dual_ascent.sampling import Sampler
from tests.helpers.registry import LOSSES

rng = np.random.default_rng(3)
N, D = 60, 7
X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
Y = np.where(X @ rng.normal(size=D) + 0.3 * rng.normal(size=N) > 0, 1.0, -1.0)
LAM = 0.05


def plain(problem, sampling, epochs, batch=1, radius=np.inf, seed=5):
    """The update rule as it is written, in dense arithmetic; every iterate."""
    design = problem.design
    A = np.asarray(design.matrix.todense() if sparse.issparse(design.matrix) else design.matrix, dtype=float)
    if design.constant:
        A = np.column_stack([A, np.full(len(A), design.constant)])
    sampler = Sampler.of(problem, sampling, seed, np.ones(len(A)))
    w, t, iterates, lam = np.zeros(A.shape[1]), 0, [], problem.penalty.lam
    for _ in range(epochs):
        order = sampler.next()
        s = problem.weights / problem.total_weight * len(order)
        for first in range(0, len(order), batch):
            rows, t = order[first : first + batch], t + 1
            g = s[rows] * problem.loss.derivative(A[rows] @ w, problem.y[rows])
            w = (1 - 1 / t) * w - (A[rows].T @ g) / (lam * t * len(rows))
            if np.linalg.norm(w) > radius:
                w = w * (radius / np.linalg.norm(w))
            iterates.append(w)
    return np.array(iterates)


def begun(problem, algorithm, epochs, seed=5, w=None):
    n, d = problem.shape
    state = algorithm.begin(problem, Start(np.zeros(d) if w is None else w, 0.0, np.zeros(n)), seed)
    for _ in range(epochs):
        state = algorithm.step(state)
    return algorithm.candidates(state)


def problem(loss=None, matrix=X, lam=LAM, **options):
    return fl.Problem(matrix, Y, loss or fl.losses.Hinge(), fl.penalties.L2(lam), **options)


@pytest.mark.parametrize("sampling", ["uniform", "permutation", "cyclic"])
@pytest.mark.parametrize("matrix", [X, X.astype(np.float32), sparse.csr_array(X)], ids=["dense", "float32", "sparse"])
def test_sgd_does_the_steps_of_the_paper_with_the_missing_t(sampling, matrix):
    p = problem(matrix=matrix)
    w = begun(p, SGD(sampling=sampling), 3)[-1].w
    np.testing.assert_allclose(w, plain(p, sampling, 3)[-1], rtol=1e-9)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if np.isfinite(loss.lipschitz)], ids=str)
def test_sgd_takes_every_lipschitz_loss_and_weights(loss):
    weights = rng.uniform(0.5, 2.0, N)
    weights[:5] = 0.0
    p = problem(loss, sample_weight=weights)
    np.testing.assert_allclose(begun(p, SGD(), 2)[-1].w, plain(p, "uniform", 2)[-1], rtol=1e-9)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_pegasos_averages_over_a_batch_and_stays_in_the_ball(batch):
    p = problem(lam=1e-3)
    radius = 1 / np.sqrt(1e-3)  # the hinge's, as in the Pegasos paper
    expected = plain(p, "uniform", 3, batch, radius)
    assert np.max(np.linalg.norm(expected, axis=1)) >= radius * (1 - 1e-12)  # the projection is felt
    np.testing.assert_allclose(begun(p, Pegasos(batch_size=batch), 3)[-1].w, expected[-1], rtol=1e-8)
    free = plain(p, "uniform", 3, batch)
    np.testing.assert_allclose(begun(p, Pegasos(batch_size=batch, project=False), 3)[-1].w, free[-1], rtol=1e-9)


def test_many_projections_in_a_row_lose_no_precision():
    p = problem(lam=1e-7)
    expected = plain(p, "uniform", 8, radius=1 / np.sqrt(1e-7))
    np.testing.assert_allclose(begun(p, Pegasos(), 8)[-1].w, expected[-1], rtol=1e-6)


@pytest.mark.parametrize(("algorithm", "radius"), [(SGD(output="average"), np.inf), (Pegasos(output="average"), None)])
def test_the_average_has_weights_that_grow_like_t(algorithm, radius):
    p = problem(lam=1e-6 if radius is None else LAM)
    iterates = plain(p, "uniform", 5, radius=1e3 if radius is None else radius)
    average = begun(p, algorithm, 5)[-1].w
    t = np.arange(1.0, len(iterates) + 1.0)
    np.testing.assert_allclose(average, t @ iterates / t.sum(), rtol=1e-7)


@pytest.mark.parametrize("algorithm", [SGD(output="random"), Pegasos(output="random")], ids=lambda a: a.name)
def test_the_random_iterate_is_one_of_all(algorithm):
    p = problem()
    iterates = plain(p, "uniform", 4, radius=np.inf if algorithm.name == "sgd" else 1 / np.sqrt(LAM))
    drawn = begun(p, algorithm, 4)[-1].w
    assert np.min(np.abs(iterates - drawn).max(axis=1)) <= 1e-9 * np.abs(drawn).max()


def test_a_penalised_intercept_is_one_more_weight():
    design = fl.Design(X, constant=2.0)
    p = fl.Problem(design, Y, fl.losses.Hinge(), fl.penalties.L2(LAM))
    for algorithm, radius in ((SGD(), np.inf), (Pegasos(), 1 / np.sqrt(LAM))):
        expected = plain(p, "uniform", 2, radius=radius)[-1]
        np.testing.assert_allclose(begun(p, algorithm, 2)[-1].w, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("solver", ["sgd", "pegasos"])
@pytest.mark.parametrize("output", ["last", "average"])
def test_baselines_approach_the_optimum_and_are_certified(solver, output):
    p = problem(fl.losses.SmoothedHinge(1.0))
    best = fl.solve(p, solver="newton", tol=1e-10).certificate.primal
    result = fl.solve(p, solver=solver, output=output, tol=3e-3, max_iter=3000)
    assert result.certificate.ok
    assert 0 <= result.certificate.primal - best <= result.certificate.gap


@pytest.mark.parametrize("algorithm", [SGD(), Pegasos()], ids=lambda algorithm: algorithm.name)
def test_a_start_is_not_forgotten(algorithm):
    """By the steps themselves: a result is never worse than its start, since that is certified, too."""
    p = problem(fl.losses.SmoothedHinge(1.0))
    best = fl.solve(p, solver="newton", tol=1e-10)
    lost, cold = (p.primal(begun(p, algorithm, 1, w=w)[-1].w) - best.certificate.primal for w in (best.w, None))
    assert lost < cold
    warm = fl.solve(p, solver=algorithm, max_iter=1, tol=0.0, start=best, warn=False)
    assert warm.certificate.primal <= best.certificate.primal * (1.0 + 1e-14)  # sums in another order


def test_weights_that_grow_without_bound_end_the_run_with_its_best_model():
    wild = fl.Problem(100.0 * X, Y, fl.losses.Squared(), fl.penalties.L2(1e-9))
    with pytest.warns(fl.NotCertifiedWarning, match="double precision does not allow more"):
        result = fl.solve(wild, solver="sgd")
    assert result.status == "overflow"
    assert np.isfinite(result.certificate.primal)


def test_auto_never_takes_a_baseline_and_errors_never_recommend_one():
    assert fl.solve(problem(), tol=1e-2).solver not in ("sgd", "pegasos")
    with pytest.raises(TypeError, match=r"'sgd' needs a quadratic penalty.*would work") as caught:
        fl.solve(problem().replace(penalty=fl.penalties.L1(0.1)), solver="sgd")
    assert "'pegasos'" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"solver": "sgd", "sampling": "importance"}, ValueError, "sgd: sampling must be one of 'uniform'"),
        ({"solver": "sgd", "output": "best"}, ValueError, "sgd: output must be one of 'last', 'average', 'random'"),
        ({"solver": "sgd", "batch_size": 2}, TypeError, "'sgd' has no option 'batch_size'"),
        ({"solver": "pegasos", "batch_size": 0}, ValueError, "batch_size must be a whole number of samples"),
        ({"solver": "pegasos", "project": 1}, TypeError, "project must be True or False"),
    ],
)
def test_bad_options_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        fl.solve(problem(), **arguments)


def test_an_unpenalised_intercept_is_refused():
    with pytest.raises(TypeError, match="without an unpenalised intercept"):
        fl.solve(problem(intercept=True), solver="sgd")


def test_columns_are_copied_into_rows():
    by_rows, by_columns = (
        fl.solve(problem(matrix=matrix), solver="pegasos", max_iter=3, random_state=0, warn=False)
        for matrix in (sparse.csr_array(X), sparse.csc_array(X))
    )
    assert np.array_equal(by_rows.w, by_columns.w)
