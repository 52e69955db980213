"""Dual ascent with steps from the curvature at hand: D rises, the model is the same, and long steps are taken back."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.solver import Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.local import TUNING, LocalIterates, gentler
from fenchel.steps.interpolation.passes import BlockPasses

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
    algorithm = Dykstra(**({"sampling": "uniform", "steps": "local"} | options))
    return algorithm, algorithm.begin(problem, Start(w, b if b.ndim else float(b), alpha), 0)


def at_the_penalty(algorithm, state):
    """After the passes in other norms."""
    while state.geometries or not state.begun:
        state = algorithm.step(state)
    return state


PENALTIES = [fl.penalties.LpSquared(0.5, 1.5), fl.penalties.LpSquared(2.0, 1.1), fl.penalties.Entropy(0.5)]


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_dual_never_falls_over_a_pass_while_steps_are_long(penalty, accelerate):
    problem = problem_of(penalty)
    algorithm, state = begun(problem, accelerate=accelerate)
    assert isinstance(state, LocalIterates)
    state = at_the_penalty(algorithm, state)
    before = state.inner.objective()
    for _ in range(40):
        state = algorithm.step(state)
        after = state.inner.objective()
        # a pass that is taken back leaves the same multipliers, whose images are computed anew
        assert after >= before - 1e-13 * abs(before)
        assert state.safety * TUNING.least < 1.0
        before = after


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_model_is_that_of_other_solvers(accelerate, intercept):
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.2), intercept=intercept)
    one = fl.solve(problem, solver="dykstra", steps="local", accelerate=accelerate, restart=accelerate, tol=1e-5)
    other = fl.solve(problem, tol=1e-8)
    assert one.status == "certified"
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1.1e-5)


def test_compiled_visits_are_those_in_numpy():
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.3))
    points = []
    for in_numpy in (False, True):
        algorithm, state = begun(problem, accelerate=True)
        for _ in range(5):
            if in_numpy:
                old = state.inner.passes
                state.inner.passes = BlockPasses(problem, old.rule, old.geometry, old.q, old.inverse_rho)
            state = algorithm.step(state)
        points.append(state.inner.point()[0])
    np.testing.assert_allclose(points[0], points[1], rtol=1e-8, atol=1e-12)


def test_steps_are_longer_than_those_of_the_guarantee_for_p_near_1():
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.1))
    reached = {}
    for steps in ("each", "local"):
        algorithm, state = begun(problem, accelerate=True, steps=steps)
        for _ in range(30):
            state = algorithm.step(state)
        reached[steps] = problem.dual(problem.in_domain(algorithm.candidates(state)[0].alpha))
    best = fl.solve(problem, tol=1e-8).certificate.primal
    assert best - reached["local"] < 0.3 * (best - reached["each"])


def test_a_pass_that_lowers_the_dual_is_taken_back_until_steps_are_short_enough():
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.2))
    algorithm, state = begun(problem, accelerate=True)
    state = at_the_penalty(algorithm, state)
    state.safety = 1e-3
    alpha = state.inner.point()[0].copy()
    state = algorithm.step(state)
    np.testing.assert_array_equal(state.inner.alpha, alpha)
    assert state.safety == 2e-3
    for _ in range(60):
        state = algorithm.step(state)
    best = fl.solve(problem, tol=1e-8).certificate.primal
    assert 0.0 <= best - state.inner.objective() < 0.1 * best


def test_p_falls_from_2_after_every_pass():
    penalty = fl.penalties.LpSquared(0.5, 1.2)
    names = gentler(penalty)
    assert names[0] == fl.penalties.L2(0.5)
    assert names[-1] == penalty
    exponents = [2.0, *(each.p for each in names[1:])]
    assert exponents == sorted(exponents, reverse=True)
    algorithm, state = begun(problem_of(penalty), accelerate=True)
    seen = []
    for _ in range(len(names) + 1):
        state = algorithm.step(state)
        seen.append(state.inner.passes.geometry)
    assert seen == [*names, penalty]


@pytest.mark.parametrize(
    "penalty", [fl.penalties.LpSquared(1.0, 1.2, radius=3.0), fl.penalties.Entropy(1.0), fl.penalties.L2(2.0)]
)
def test_other_penalties_have_no_way_by_p_2(penalty):
    assert gentler(penalty) == [penalty]


@pytest.mark.parametrize("intercept", [False, True])
def test_a_change_of_norm_keeps_images_and_intercept_and_takes_the_best_scale(intercept):
    problem = problem_of(fl.penalties.LpSquared(0.5, 1.2), intercept=intercept)
    algorithm, state = begun(problem, accelerate=True)
    state = algorithm.step(state)
    b = state.inner.point()[1][-1]
    state._change_geometry(problem.penalty)
    alpha, u = state.inner.point()
    np.testing.assert_allclose(u, state.inner.image(alpha), rtol=1e-9, atol=1e-12)
    assert u[-1] == pytest.approx(b, abs=1e-12)
    if not intercept:
        D = [problem.dual(problem.in_domain(factor * alpha)) for factor in (0.99, 1.0, 1.01)]
        assert max(D) == D[1]


def test_euclidean_steps_are_exact():
    X, y = rows()
    problem = fl.Interpolation(X, fl.sets.HalfLine(1.0, y), fl.penalties.L2(1.0))
    algorithm, state = begun(problem, sampling="permutation")
    _, plain = begun(problem, sampling="permutation", steps="each")
    state, plain = algorithm.step(state), algorithm.step(plain)
    np.testing.assert_allclose(state.inner.alpha, plain.alpha, rtol=1e-12)


def test_several_scores_per_sample():
    X = rows()[0]
    targets = np.random.default_rng(2).normal(size=(N, 2))
    problem = fl.Interpolation(X[:8], fl.sets.Ball(targets[:8], 0.1), fl.penalties.LpSquared(1.0, 1.3))
    algorithm, state = begun(problem, accelerate=True)
    state = at_the_penalty(algorithm, state)
    values = [state.inner.objective()]
    for _ in range(30):
        state = algorithm.step(state)
        values.append(state.inner.objective())
    assert values[-1] > values[0]
    assert values[-1] <= fl.solve(problem, tol=1e-6).certificate.primal


def test_plain_ascent_ends_when_nothing_changes():
    X = np.eye(4)
    problem = fl.Interpolation(X, fl.sets.HalfLine(1.0), fl.penalties.L2(1.0))
    algorithm, state = begun(problem, sampling="permutation")
    state = algorithm.step(state)
    assert not algorithm.finished(state)
    for _ in range(3):
        state = algorithm.step(state)
    assert algorithm.finished(state)
    np.testing.assert_allclose(algorithm.candidates(state)[0].w, 1.0)
