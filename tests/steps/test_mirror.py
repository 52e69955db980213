"""Mirror descent, gradient descent and perceptrons for interpolation; Lemma 2 of Raj and Bach (2020)."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem import Interpolation
from fenchel.problem.sets import HalfLine, Point
from fenchel.problem.vectors import dual_exponent
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.mirror import EuclideanDescent, Mirror, Perceptron
from tests.helpers.interpolation import Printed, link, problem_of, recorded, zero
from tests.helpers.registry import name

PENALTIES = [fl.penalties.L2(0.7), fl.penalties.ElasticNet(0.5, 0.4)]
PENALTIES += [fl.penalties.LpSquared(0.8, p) for p in (1.8, 1.5, 1.2, 1.05)]


def largest(X, penalty):
    """max_i |x_i|_*^2 / mu."""
    return (np.linalg.norm(X[:, 0], ord=dual_exponent(penalty.norm), axis=1) ** 2).max() / penalty.strong_convexity


def run(solver, problem, passes=4, seed=3):
    state = solver.begin(problem, zero(problem), seed)
    orders = recorded(state)
    for _ in range(passes):
        state = solver.step(state)
    return state, orders


@pytest.mark.parametrize("sampling", ["uniform", "permutation"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_a_pass_is_equation_10_with_the_sign_that_descends(penalty, storage, sampling):
    problem, X = problem_of(penalty, storage=storage, sample_weight=1.0 + np.arange(12) % 3)
    solver = Mirror(sampling=sampling, output="average")
    state, orders = run(solver, problem)
    last, mean = solver.candidates(state)
    w, average = Printed.of(problem, X, None).mirror(orders, 1.0 / largest(X, penalty))
    np.testing.assert_allclose(last.w, w, atol=1e-10)
    np.testing.assert_allclose(mean.w, average, atol=1e-10)
    np.testing.assert_allclose(problem.link(last.alpha), w, atol=1e-10)  # the multipliers are those of v


@pytest.mark.parametrize("penalty", [*PENALTIES, fl.penalties.Entropy(1.0)], ids=name)
def test_lemma_2_mirror_descent_is_dual_ascent_for_points(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 9))
    problem = Interpolation(X, Point(rng.normal(size=12)), penalty, sample_weight=1.0 + np.arange(12) % 3)
    ascent, mirror = Dykstra(sampling="uniform", steps="largest"), Mirror(sampling="uniform")
    states = [solver.begin(problem, zero(problem), 1) for solver in (ascent, mirror)]
    compiled = problem.penalty.kernel() is not None
    for _ in range(20):
        states = [solver.step(state) for solver, state in zip((ascent, mirror), states, strict=True)]
        one, two = (state.candidates()[0] for state in states)
        if compiled:  # to the last bit
            assert np.array_equal(one.w, two.w)
            assert np.array_equal(one.alpha, two.alpha)
        np.testing.assert_allclose(one.w, two.w, rtol=1e-9)


def test_beyond_points_the_first_visits_are_those_of_dual_ascent():
    problem, _ = problem_of(fl.penalties.LpSquared(0.8, 1.5))
    ascent, mirror = Dykstra(sampling="cyclic", steps="largest"), Mirror(sampling="cyclic")
    states = [run(solver, problem, 1)[0] for solver in (ascent, mirror)]
    np.testing.assert_allclose(*(state.candidates()[0].w for state in states), rtol=1e-13)
    states = [run(solver, problem, 300)[0] for solver in (ascent, mirror)]
    assert np.abs(np.subtract(*(state.candidates()[0].w for state in states))).max() > 1e-3


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_mirror_descent_finds_a_feasible_point(penalty, intercept):
    problem, _ = problem_of(penalty, n=6, d=12, intercept=intercept)
    solver = Mirror()
    state, _ = run(solver, problem, 20000)
    model = solver.candidates(state)[0]
    assert problem.violation(model.w, model.b) <= 1e-3
    if not intercept:
        assert problem.dual(model.alpha) <= problem.primal(model.w) * (1.0 + 1e-2)


def test_a_larger_step_is_that_much_larger():
    problem, X = problem_of(fl.penalties.L2(0.7))
    solver = Mirror(step_size=0.01)
    state, orders = run(solver, problem)
    w, _ = Printed.of(problem, X, None).mirror(orders, 0.01)
    np.testing.assert_allclose(solver.candidates(state)[0].w, w, atol=1e-12)


# Stochastic gradient descent ------------------------------------------------------------------------------------------


def test_gradient_descent_is_mirror_descent_with_the_euclidean_link_whatever_the_penalty():
    weights = {}
    for penalty in PENALTIES[:4]:
        problem, X = problem_of(penalty)
        solver = EuclideanDescent()
        state, orders = run(solver, problem)
        w, _ = Printed(X, None, link(fl.penalties.L2(1.0)), Printed.of(problem, X, None).project, None).mirror(
            orders, 1.0 / largest(X, fl.penalties.L2(1.0))
        )
        model = solver.candidates(state)[0]
        weights[penalty] = model.w
        np.testing.assert_allclose(model.w, w, atol=1e-12)
        if penalty.quadratic:
            np.testing.assert_allclose(problem.link(model.alpha), model.w, atol=1e-12)
        else:
            assert model.alpha is None
    mirror, _ = run(Mirror(), problem_of(PENALTIES[0])[0])
    np.testing.assert_allclose(mirror.candidates()[0].w, weights[PENALTIES[0]], rtol=1e-12)


def test_gradient_descent_begins_at_the_centre():
    centre = np.arange(9.0)
    X = np.random.default_rng(0).normal(size=(4, 9))
    problem = Interpolation(X, Point(X @ centre), fl.penalties.L2(2.0), centre=centre)
    solver = EuclideanDescent()
    state, _ = run(solver, problem, 3)
    np.testing.assert_allclose(solver.candidates(state)[0].w, centre, atol=1e-12)
    assert solver.ignores_start


# Perceptrons ----------------------------------------------------------------------------------------------------------


def separable(penalty, intercept=False, n=30, d=5, storage=np.ascontiguousarray):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + 0.2
    keep = np.abs(score) > 0.3
    return Interpolation(storage(X[keep]), HalfLine(1.0, np.sign(score[keep])), penalty, intercept=intercept)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_a_perceptron_corrects_mistakes(penalty):
    problem = separable(penalty)
    X, sign = problem.design.matrix, np.where(problem.constraints.ends[0][:, 0] > -np.inf, 1.0, -1.0)
    solver = Perceptron(rate=0.7)
    state, orders = run(solver, problem, 3)
    v, to_weights = np.zeros(5), link(penalty)
    for i in np.concatenate(orders):
        if sign[i] * (X[i] @ to_weights(v)) <= 0.0:
            v += 0.7 * sign[i] * X[i]
    np.testing.assert_allclose(solver.candidates(state)[0].w, to_weights(v), atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [*PENALTIES, fl.penalties.Entropy(1.0)], ids=name)
def test_a_perceptron_ends_without_mistakes_if_it_can(penalty, intercept):
    problem = separable(penalty, intercept)
    if isinstance(penalty, fl.penalties.Entropy):  # positive weights of sum 1 only
        problem = Interpolation(np.abs(problem.design.matrix), HalfLine(0.01), penalty, intercept=intercept)
    elif not intercept:
        problem = Interpolation(problem.X, HalfLine(1.0, np.sign(problem.design.matrix @ np.ones(5))), penalty)
    solver = Perceptron(sampling="permutation")
    state, _ = run(solver, problem, 500)
    model = solver.candidates(state)[0]
    sign = np.where(problem.constraints.ends[0][:, 0] > -np.inf, 1.0, -1.0)
    assert np.all(sign * problem.scores(model.w, model.b) > 0.0)
    assert solver.finished(state)


def test_a_perceptron_needs_half_lines():
    X = np.eye(3)
    assert Perceptron().hindrance(Interpolation(X, HalfLine(1.0, [1.0, -1.0, 1.0]))) is None
    assert "half-lines" in Perceptron().hindrance(Interpolation(X, Point(np.ones(3))))
    assert "one score" in Perceptron().hindrance(Interpolation(X, HalfLine(1.0), outputs=2))
    assert "intervals" in Perceptron().hindrance(Interpolation(X, fl.sets.Ball(0.0), outputs=2))


def test_options_without_sense_are_errors():
    for make, words in [
        (lambda: Mirror(sampling="importance"), "sampling must be one of"),
        (lambda: Mirror(output="best"), "output must be one of"),
        (lambda: Mirror(step_size=0.0), "step_size must be a positive"),
        (lambda: Perceptron(rate=-1.0), "rate must be a positive"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
