"""Dual coordinate ascent for interpolation: the printed algorithms, every set and storage, the optimum, appendix C."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem import Interpolation
from fenchel.problem.sets import Ball, Box, HalfLine, Interval, Point, Simplex
from fenchel.problem.vectors import dual_exponent
from fenchel.steps import SDCA
from fenchel.steps.base import Overflow, Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.passes import BlockPasses, CompiledPasses
from tests.helpers.conic import PENALTY
from tests.helpers.interpolation import Printed, problem_of, recorded, zero
from tests.helpers.registry import name

COMPILED = [fl.penalties.L2(0.7), fl.penalties.ElasticNet(0.5, 0.4)]
COMPILED += [fl.penalties.LpSquared(0.8, p) for p in (1.8, 1.5, 1.2, 1.05)]
STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def constants(X, penalty):
    """L_i = |x_i|_*^2 / mu of vectors."""
    return np.linalg.norm(X[:, 0], ord=dual_exponent(penalty.norm), axis=1) ** 2 / penalty.strong_convexity


def run(problem, passes=4, seed=3, **options):
    """A state after some passes, and their orders."""
    solver = Dykstra(**options)
    state = solver.begin(problem, zero(problem), seed)
    orders = recorded(state)
    for _ in range(passes):
        state = solver.step(state)
    return solver, state, orders


def check(candidate, alpha, w, b, tol=1e-10):
    scale = 1.0 + np.abs(alpha).max()
    np.testing.assert_allclose(np.ravel(candidate.alpha), np.ravel(alpha), atol=tol * scale)
    np.testing.assert_allclose(np.ravel(candidate.w), np.ravel(w), atol=tol * (1.0 + np.abs(w).max()))
    np.testing.assert_allclose(
        np.ravel(candidate.b), np.ravel(np.broadcast_to(b, np.size(candidate.b))), atol=tol * scale
    )


# The printed algorithms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("penalty", COMPILED, ids=name)
def test_a_compiled_pass_makes_the_printed_steps(penalty, storage, intercept):
    weights = np.random.default_rng(1).integers(0, 4, size=12).astype(float)
    problem, X = problem_of(penalty, storage=STORAGES[storage], intercept=intercept, sample_weight=weights)
    L = constants(X, penalty)
    printed = Printed.of(problem, X, L, np.average(L, weights=weights) if intercept else 0.0)
    for sampling in ("permutation", "uniform", "importance"):
        solver, state, orders = run(problem, sampling=sampling)
        assert isinstance(state.passes, CompiledPasses)
        printed.b = 0.0
        check(solver.candidates(state)[0], *printed.algorithm_1(orders))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("penalty", COMPILED, ids=name)
def test_an_accelerated_compiled_pass_makes_the_printed_steps(penalty, storage, intercept):
    weights = np.random.default_rng(1).integers(0, 4, size=12).astype(float)
    problem, X = problem_of(penalty, storage=STORAGES[storage], intercept=intercept, sample_weight=weights)
    L = constants(X, penalty)
    for sampling in ("permutation", "uniform"):
        printed = Printed.of(problem, X, L, np.average(L, weights=weights) if intercept else 0.0)
        solver, state, orders = run(problem, sampling=sampling, accelerate=True)
        for candidate, expected in zip(solver.candidates(state), printed.algorithm_2(orders), strict=True):
            check(candidate, *expected)


class Foreign:
    """A set that is no class of fenchel.sets."""

    def __init__(self, sets):
        self.sets = sets

    def project(self, z):
        return self.sets.project(z)

    def support(self, u):
        return self.sets.support(u)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("penalty", COMPILED, ids=name)
def test_numpy_and_compiled_passes_agree(penalty, accelerate):
    problem, X = problem_of(penalty, intercept=True)
    other = Interpolation(X[:, 0], Foreign(mixed_intervals_of(problem)), penalty, intercept=True)
    solver, compiled, _ = run(problem, accelerate=accelerate)
    _, blocks, _ = run(other, accelerate=accelerate)
    assert isinstance(compiled.passes, CompiledPasses)
    assert isinstance(blocks.passes, BlockPasses)
    for one, two in zip(solver.candidates(compiled), solver.candidates(blocks), strict=True):
        check(one, two.alpha, two.w, two.b)


def mixed_intervals_of(problem):
    low, high = problem.constraints.ends
    return Interval(low[:, 0], high[:, 0])


def block_problems():
    """Sets in R^3 for d x 3 blocks (dense, sparse), and for one row of weights per output; and an entropy."""
    rng = np.random.default_rng(5)
    n, k, d = 6, 3, 7
    blocks = rng.normal(size=(n, d, k))
    B = 0.2 * rng.normal(size=(k, d))
    x = rng.normal(size=(n, d))
    at = x @ B.T
    mixed = [
        Ball(at[0], 0.1),
        Simplex(1.0),
        Box(at[2] - 0.1, at[2] + 0.2),
        Ball(at[3], 0.3),
        Simplex(2.0),
        Point(at[5]),
    ]
    p = rng.dirichlet(np.ones(d))
    return {
        "balls": Interpolation(blocks, Ball(np.einsum("idk,d->ik", blocks, B[0]), 0.2), fl.penalties.L2(0.5)),
        "sparse blocks": Interpolation(
            [sp.csr_array(np.where(np.abs(block) < 0.5, 0.0, block)) for block in blocks[:2]],
            Simplex(1.0),
            fl.penalties.LpSquared(1.0, 1.5),
        ),
        "mixed outputs": Interpolation(x[:, :], mixed, fl.penalties.ElasticNet(0.4, 0.3), outputs=k),
        "intercepts": Interpolation(
            x, Box(at - 0.1 + [0.5, 0.0, -0.5], at + 0.1 + [0.5, 0.0, -0.5]), fl.penalties.L2(1.0), intercept=True
        ),
        "entropy": Interpolation(x, Interval(x @ p - 0.1, x @ p + 0.1), fl.penalties.Entropy(0.3)),
    }


def dense_blocks(problem):
    n, k = problem.n_samples, problem.outputs
    return problem.X.rows(np.arange(n * k)).reshape(n, k, -1)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("kind", block_problems())
def test_blocks_make_the_printed_steps(kind, accelerate):
    problem = block_problems()[kind]
    solver, state, orders = run(problem, accelerate=accelerate)
    passes = state.passes
    assert isinstance(passes, BlockPasses)
    L = passes.q / (problem.weights / problem.total_weight) - passes.inverse_rho
    printed = Printed.of(problem, dense_blocks(problem), L, passes.inverse_rho)
    expected = printed.algorithm_2(orders) if accelerate else [printed.algorithm_1(orders)]
    for candidate, one in zip(solver.candidates(state), expected, strict=True):
        check(candidate, *one)


@pytest.mark.parametrize("kind", block_problems())
def test_the_constants_bound_the_norms_of_the_blocks(kind):
    problem = block_problems()[kind]
    _, state, _ = run(problem, passes=0)
    L = state.passes.q / (problem.weights / problem.total_weight) - state.passes.inverse_rho
    r, mu = dual_exponent(problem.penalty.norm), problem.penalty.strong_convexity
    beta = np.random.default_rng(0).normal(size=(500, problem.outputs))
    beta /= np.linalg.norm(beta, axis=1, keepdims=True)
    for block, bound in zip(dense_blocks(problem), L, strict=True):
        largest = np.linalg.norm(beta @ block, ord=r, axis=1).max() ** 2 / mu
        assert largest <= bound * (1.0 + 1e-9)
        if problem.outputs > 1 and r == 2.0:
            assert bound - largest < 0.3 * largest  # 500 directions come close


def test_the_set_of_one_sample_is_projected_onto_alone():
    for problem in block_problems().values():
        Z = 2.0 * np.random.default_rng(0).normal(size=(problem.n_samples, problem.outputs))
        rows = [problem.constraints.project_sample(i, z) for i, z in enumerate(Z)]
        np.testing.assert_allclose(rows, problem.constraints.project(Z), rtol=1e-15)


# The dual, the optimum ------------------------------------------------------------------------------------------------


def assert_dual_rises(problem, options):
    solver = Dykstra(**options)
    state, last = solver.begin(problem, zero(problem), 0), problem.dual(np.zeros(problem.shapes[2]))
    for _ in range(12):
        state = solver.step(state)
        value = problem.dual(solver.candidates(state)[0].alpha)
        assert value >= last - 1e-13 * (1.0 + abs(value))
        last = value


@pytest.mark.parametrize("sampling", ["permutation", "uniform", "importance", "cyclic"])
@pytest.mark.parametrize("penalty", COMPILED, ids=name)
def test_the_dual_never_falls(penalty, sampling):
    problem, _ = problem_of(penalty, n=30, d=8, sample_weight=1.0 + np.arange(30) % 3)  # contradictory, too
    assert_dual_rises(problem, {"sampling": sampling})
    assert_dual_rises(problem, {"sampling": sampling, "steps": "largest"})


@pytest.mark.parametrize("kind", ["balls", "sparse blocks", "mixed outputs", "entropy"])
def test_the_dual_never_falls_for_blocks(kind):
    assert_dual_rises(block_problems()[kind], {})


def conic(problem):
    """The optimum by Clarabel, for intervals and balls."""
    w = cp.Variable(problem.X.shape[1])
    k = problem.outputs
    b = cp.Variable(k) if problem.intercept else np.zeros(k)
    value, constraints = PENALTY[type(problem.penalty)](problem.penalty, w)
    X = dense_blocks(problem)
    for rows, part in problem.constraints.parts:
        for j, i in enumerate(rows):
            z = X[i] @ w + b
            if isinstance(part, Ball):
                constraints.append(cp.norm2(z - part.centre[j]) <= part.radius[j])
            elif isinstance(part, Simplex):
                constraints += [cp.sum(z) == part.total[j], z >= part.least[j]]
            else:
                low, high = part.ends[0][j], part.ends[1][j]
                constraints += [z[c] >= low[c] for c in range(k) if np.isfinite(low[c])]
                constraints += [z[c] <= high[c] for c in range(k) if np.isfinite(high[c])]
    cp.Problem(cp.Minimize(value), constraints).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    return w.value


def assert_optimal(problem, passes, tol, **options):
    w = conic(problem)
    solver, state, _ = run(problem, passes, **options)
    for candidate in solver.candidates(state):
        assert np.abs(np.ravel(candidate.w) - w).max() <= tol * np.abs(w).max()
        assert problem.violation(candidate.w, candidate.b) <= 2.0 * tol


@pytest.mark.parametrize("options", [{}, {"accelerate": True}, {"accelerate": True, "restart": True}], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", COMPILED[:5], ids=name)
def test_every_sequence_converges_to_the_conic_solution(penalty, intercept, options):
    problem, _ = problem_of(penalty, n=8, d=12, intercept=intercept)
    assert_optimal(problem, 1000 if options.get("restart") else 5000, 3e-4, **options)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("kind", block_problems())
def test_every_sequence_converges_to_the_conic_solution_for_blocks(kind, accelerate):
    assert_optimal(block_problems()[kind], 300 if accelerate else 600, 3e-3, accelerate=accelerate, restart=accelerate)


def test_restarts_converge_faster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 100))
    problem = Interpolation(X, HalfLine(1.0, np.sign(X @ rng.normal(size=100) + 0.5)), fl.penalties.LpSquared(1.0, 1.2))
    violation = {}
    for restart in (False, True):
        solver, state, _ = run(problem, 300, accelerate=True, restart=restart)
        model = solver.candidates(state)[0]
        violation[restart] = problem.violation(model.w, model.b)
    assert violation[True] <= 1e-2 * violation[False]


def test_the_accelerated_method_beats_the_plain_one_where_rows_are_nearly_dependent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 120)) * np.arange(1, 121) ** -0.75
    problem = Interpolation(X, Point(X @ rng.normal(size=120)), fl.penalties.L2(1.0))
    violation = {}
    for accelerate in (False, True):
        solver, state, _ = run(problem, 150, accelerate=accelerate)
        model = solver.candidates(state)[0]
        violation[accelerate] = problem.violation(model.w, model.b)
    assert 3.0 * violation[True] <= violation[False]


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("penalty", COMPILED[:5], ids=name)
def test_with_a_centre_steps_begin_at_it(penalty, accelerate):
    rng = np.random.default_rng(2)
    X, centre = rng.normal(size=(6, 10)), rng.normal(size=10)
    if isinstance(penalty, fl.penalties.ElasticNet):
        centre[::2] = 0.0
    inside = Interpolation(X, Interval(X @ centre - 1.0, X @ centre + 1.0), penalty, centre=centre)
    solver, state, _ = run(inside, 3, accelerate=accelerate)
    np.testing.assert_allclose(solver.candidates(state)[0].w, centre, atol=1e-12)
    outside = Interpolation(X, HalfLine(X @ centre + 1.0), penalty, centre=centre)
    solver, state, _ = run(outside, 2000, accelerate=accelerate, restart=accelerate)
    model = solver.candidates(state)[0]
    gap = outside.primal(model.w) - outside.dual(model.alpha)
    assert outside.violation(model.w) <= 1e-4
    assert abs(gap) <= 1e-3 * outside.primal(model.w)


# Appendix C -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", COMPILED[:4], ids=name)
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Huber(0.3)], ids=name)
def test_with_the_proximal_map_of_a_smooth_loss_the_printed_steps_are_those_of_sdca(loss, penalty):
    """A projection is the proximal map of an indicator: a' = (prox_{q phi}(t) - t) / q, t = z - q a, for any loss."""
    interpolation, X = problem_of(penalty)
    y, L = np.random.default_rng(0).normal(size=12), constants(X, penalty)
    printed = Printed.of(interpolation, X, L)
    delta = getattr(loss, "delta", np.inf)
    q = L / 12
    printed.project = lambda i, t: t - q[i] * np.clip((t - y[i]) / (1.0 + q[i]), -delta, delta)
    problem = fl.Problem(X[:, 0], y, loss, penalty)
    solver = SDCA(sampling="uniform", shrink=False, accelerate=False)
    state = solver.begin(problem, zero(problem), 0)
    orders = recorded(state)
    for _ in range(4):
        state = solver.step(state)
    check(solver.candidates(state)[0], *printed.algorithm_1(orders), tol=1e-12)


# Extremes and options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"accelerate": True}, {"accelerate": True, "restart": True}], ids=str)
def test_contradictions_make_the_dual_grow_and_no_number_infinite(options):
    X = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    for y in ([1.0, 2.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]):  # two equal rows; a row of zeros
        for penalty in (fl.penalties.L2(1.0), fl.penalties.LpSquared(1.0, 1.3)):
            problem = Interpolation(X, Point(np.array(y)), penalty)
            values = []
            solver, state, _ = run(problem, 0, **options)
            for _ in range(3):
                for _ in range(100):
                    state = solver.step(state)
                values.append(problem.dual(solver.candidates(state)[0].alpha))
            assert np.all(np.isfinite(state.alpha))
            assert values[0] < values[1] < values[2]


def test_a_row_of_zeros_in_its_set_makes_no_difference():
    X = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    with_zero = Interpolation(X, Interval([1.0, -1.0, 1.0], [2.0, 1.0, 4.0]))
    without = Interpolation(X[[0, 2]], Interval([1.0, 1.0], [2.0, 4.0]))
    models = []
    for problem in (with_zero, without):
        solver, state, _ = run(problem, 200)
        models.append(solver.candidates(state)[0])
    assert models[0].alpha[1] == 0.0
    np.testing.assert_allclose(models[0].w, models[1].w, rtol=1e-10)


def test_samples_of_weight_zero_have_no_constraint():
    problem, _ = problem_of(fl.penalties.L2(1.0), sample_weight=np.arange(12) % 2.0)
    solver, state, _ = run(problem, 50)
    alpha = solver.candidates(state)[0].alpha
    assert np.all(alpha[::2] == 0.0)
    assert np.any(alpha[1::2] != 0.0)


def test_features_out_of_range_are_an_overflow():
    problem = Interpolation(np.array([[1e200, 1.0]]), Point([1.0]))
    with pytest.raises(Overflow, match="rescale"):
        run(problem)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_features_of_any_size_in_range_will_do(size):
    X = np.random.default_rng(0).normal(size=(4, 9)) * size
    problem = Interpolation(X, Point(np.ones(4)))
    solver, state, _ = run(problem, 300)
    model = solver.candidates(state)[0]
    assert problem.violation(model.w) <= 1e-9


def test_where_nothing_changes_it_is_finished():
    solver, state, _ = run(Interpolation(np.eye(3), Interval(-1.0, 1.0)), 1)
    assert solver.finished(state)
    solver, state, _ = run(Interpolation(np.eye(3), Interval(0.5, 1.0)), 1)
    assert not solver.finished(state)


def test_a_warm_start_goes_on_from_its_multipliers():
    problem, _ = problem_of(fl.penalties.LpSquared(1.0, 1.5), n=8, d=12, intercept=True)
    solver, state, _ = run(problem, 500)
    model = solver.candidates(state)[0]
    for accelerate in (False, True):
        other = Dykstra(accelerate=accelerate)
        again = other.begin(problem, Start(model.w, model.b, model.alpha), 0)
        check(other.candidates(again)[0], model.alpha, model.w, model.b, tol=1e-12)


def test_refreshing_changes_no_more_than_rounding():
    problem, _ = problem_of(fl.penalties.LpSquared(1.0, 1.5), intercept=True)
    for accelerate in (False, True):
        solver, state, _ = run(problem, 10, accelerate=accelerate)
        before = solver.candidates(state)
        solver.observe(state, np.zeros(12), 0.0, 0.0)
        for one, two in zip(before, solver.candidates(state), strict=True):
            check(one, two.alpha, two.w, two.b, tol=1e-12)


def test_options_without_sense_are_errors():
    for options, words in [
        ({"sampling": "random"}, "sampling must be one of"),
        ({"steps": "short"}, "steps must be one of"),
        ({"restart": True}, "needs accelerate"),
        ({"accelerate": True, "sampling": "importance"}, "accelerate=True needs"),
    ]:
        with pytest.raises(ValueError, match=words):
            Dykstra(**options)
    with pytest.raises(TypeError, match="True or False"):
        Dykstra(accelerate=1)
