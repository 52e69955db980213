"""Dual ascent with steps from the curvature at hand: D rises, the model is the same, and long steps are taken back."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.solver import Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.local import TUNING, LocalIterates

N, D = 40, 60


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, D)) / np.sqrt(np.arange(1, D + 1)), np.where(rng.random(N) < 0.5, -1.0, 1.0)


def problem_of(penalty, **options):
    X, y = rows()
    if isinstance(penalty, fl.penalties.Entropy):
        z = X @ np.random.default_rng(1).dirichlet(np.ones(D))
        return fl.Interpolation(X, fl.sets.Interval(z - 0.02, z + 0.02), penalty, **options)
    return fl.Interpolation(X, fl.sets.HalfLine(1.0, y), penalty, **options)


def begun(problem, **options):
    w, b, alpha = (np.zeros(shape) for shape in problem.shapes)
    algorithm = Dykstra(sampling="uniform", steps="local", **options)
    return algorithm, algorithm.begin(problem, Start(w, b if b.ndim else float(b), alpha), 0)


PENALTIES = [fl.penalties.LpSquared(0.5, 1.5), fl.penalties.LpSquared(2.0, 1.1), fl.penalties.Entropy(0.5)]


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_dual_never_falls_over_a_pass_while_steps_are_long(penalty, accelerate):
    problem = problem_of(penalty)
    algorithm, state = begun(problem, accelerate=accelerate)
    assert isinstance(state, LocalIterates)
    before = state.inner.objective()
    for _ in range(40):
        long = state.ratio.min() < 1.0
        state = algorithm.step(state)
        after = state.inner.objective()
        assert after >= before or not long
        before = after
    assert np.all((TUNING.least <= state.ratio) & (state.ratio <= 1.0))
    if penalty is PENALTIES[1]:  # for p near 1 they stay long
        assert state.ratio.min() < 1.0


@pytest.mark.parametrize("accelerate", [False, True])
def test_the_model_is_that_of_other_solvers(accelerate):
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.2))
    one = fl.solve(problem, solver="dykstra", steps="local", accelerate=accelerate, tol=1e-5)
    other = fl.solve(problem, tol=1e-8)
    assert one.status == "certified"
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1.1e-5)


def test_at_zero_the_curvature_along_a_row_is_p_minus_1_times_its_bound():
    _, state = begun(problem_of(fl.penalties.LpSquared(0.5, 1.2)))
    np.testing.assert_allclose(state.ratio, 0.2, rtol=1e-9)


def test_passes_that_lower_the_dual_are_taken_back_until_steps_are_short_enough():
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.2))
    algorithm, state = begun(problem, accelerate=True)
    state._set(np.full(N, 1e-3))
    alpha = state.inner.alpha.copy()
    state = algorithm.step(state)
    np.testing.assert_array_equal(state.inner.alpha, alpha)
    np.testing.assert_allclose(state.ratio, TUNING.growth * 1e-3)
    for _ in range(40):
        state = algorithm.step(state)
    best = fl.solve(problem, tol=1e-8).certificate.primal
    assert 0.0 <= best - state.inner.objective() < 0.1 * best


def test_euclidean_penalties_keep_their_steps_which_are_exact():
    X, y = rows()
    problem = fl.Interpolation(X, fl.sets.HalfLine(1.0, y), fl.penalties.L2(1.0))
    _, state = begun(problem)
    assert not isinstance(state, LocalIterates)


def test_several_scores_per_sample():
    X = rows()[0]
    targets = np.random.default_rng(2).normal(size=(N, 2))
    problem = fl.Interpolation(X[:8], fl.sets.Ball(targets[:8], 0.1), fl.penalties.LpSquared(1.0, 1.3))
    algorithm, state = begun(problem, accelerate=True)
    values = [state.inner.objective()]
    for _ in range(30):
        state = algorithm.step(state)
        values.append(state.inner.objective())
    assert values[-1] > values[0]
    assert values[-1] <= fl.solve(problem, tol=1e-6).certificate.primal


def test_an_intercept_is_refused():
    with pytest.raises(TypeError, match='no steps="local" with an intercept'):
        fl.solve(problem_of(fl.penalties.LpSquared(0.5, 1.5), intercept=True), solver="dykstra", steps="local")
