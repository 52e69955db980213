"""Algorithm 2 of Ji, Srebro and Telgarsky (2021), the batch perceptron, and the sublinear perceptron."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

import fenchel as fl
from fenchel._core import kernels
from fenchel.data.class_differences import ClassDifferences
from fenchel.kernel import Features, Gram
from fenchel.kernel.functions import Linear
from fenchel.steps import BatchPerceptron, Margin, MarginSampling, Sublinear
from tests.helpers.interpolation import zero
from tests.helpers.margin import algorithm_2, hard, largest_margin, margin_of, separable, unit_rows


def run(solver, problem, steps, seed=0):
    state = solver.begin(problem, zero(problem), seed)
    for _ in range(steps):
        state = solver.step(state)
    return state


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("steps", ["aggressive", "proven"])
def test_the_iterates_are_those_of_algorithm_2(steps, storage):
    X, y = separable(0, n=500, d=7)
    Z, n, horizon = unit_rows(X, y), 500, 80
    solver = MarginSampling() if steps == "aggressive" else MarginSampling("proven", horizon)
    problem = hard(storage(X), y)
    state, drawn, weights = solver.begin(problem, zero(problem), 3), [], []
    for _ in range(horizon):
        np.testing.assert_allclose(state.q, softmax(Z @ (weights[-1] if weights else np.zeros(7))), atol=1e-9)
        state = solver.step(state)
        drawn.append(state.drawn)
        weights.append(state.weights * state.rows.longest)
    theta, beta = (
        (1.0, lambda t: t / (t + 1.0)) if steps == "aggressive" else (np.sqrt(np.log(n) / horizon), lambda t: 0)
    )
    for own, w in zip(weights, algorithm_2(Z, drawn, lambda t: theta, beta), strict=True):
        np.testing.assert_allclose(own, w, atol=1e-9 * np.linalg.norm(w))


def test_rows_are_drawn_in_proportion_to_the_dual_variables():
    rng = np.random.default_rng(0)
    n, draws = 700, 40000
    z = 3.0 * rng.normal(size=n)
    z[::5] = -np.inf
    sums, zeros = np.zeros(-(-n // kernels.SAMPLING_BLOCK)), np.zeros(n)
    scores = z.copy()
    shift = kernels.move_samples(zeros.copy(), 0.0, 0.0, zeros, scores, sums)
    assert shift == z.max()
    assert np.array_equal(scores, z)
    counts = np.bincount([kernels.draw_sample(z, shift, sums, u) for u in rng.random(draws)], minlength=n)
    p = softmax(z)
    assert np.all(counts[::5] == 0)
    assert np.sum((counts - draws * p) ** 2 / np.maximum(draws * p, 1e-300) * (p > 0)) < 3.0 * n  # chi-squared
    # the ends of the unit interval, and a single row far ahead of all others
    assert kernels.draw_sample(z, shift, sums, 0.0) == 1
    assert np.isfinite(z[kernels.draw_sample(z, shift, sums, np.nextafter(1.0, 0.0))])
    z[333] = 1e6
    shift = kernels.move_samples(zeros.copy(), 0.0, 0.0, zeros, z, sums)
    assert all(kernels.draw_sample(z, shift, sums, u) == 333 for u in (0.0, 0.5, np.nextafter(1.0, 0.0)))


def test_the_same_seed_draws_the_same_rows():
    problem = hard(*separable(1, n=50, d=5))
    one, two, other = (run(MarginSampling(), problem, 30, seed).weights for seed in (0, 0, 1))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_a_gram_row_is_all_that_a_step_asks_for(monkeypatch):
    problem, asked = hard(*separable(1, n=50, d=5)), []
    state = MarginSampling().begin(problem, zero(problem), 0)
    original = type(problem.X).gram_row
    monkeypatch.setattr(type(problem.X), "gram_row", lambda X, i: asked.append(i) or original(X, i))
    for name in ("matvec_bounded", "rmatvec", "rmatvec_bounded"):
        monkeypatch.setattr(type(problem.X), name, None)
    for _ in range(5):
        state.step()
    assert len(asked) == 5


def test_theorem_4_1_the_margin_after_its_steps():
    """Its constants are far from tight: a tenth of the steps are enough, in all of ten runs."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    X = np.outer(y, [1.0, 0.0, 0.0]) + 0.2 * rng.normal(size=(20, 3))
    best, radius = largest_margin(X, y), np.linalg.norm(X, axis=1).max()
    steps = fl.theory.margin_sampling_steps(20, best, best / 2.0, 0.1, radius) // 10
    assert 100 < steps < 20_000
    for seed in range(10):
        state = run(MarginSampling("proven", steps), hard(X, y), steps, seed)
        assert best - margin_of(-y[:, None] * X, state.weights) <= best / 2.0


def test_aggressive_sampling_is_ahead_of_the_proven_parameters():
    X, y = separable(1, n=500, d=60)
    best, Z = largest_margin(X, y), -y[:, None] * X
    bold, proven = (
        1.0 - margin_of(Z, run(solver, hard(X, y), 4000).weights) / best
        for solver in (MarginSampling(), MarginSampling("proven", 4000))
    )
    assert bold < 0.1
    assert proven > 1.0


def test_a_kernel_can_stand_in_place_of_features():
    """With the linear kernel, the functions k(x_i, .) are the rows; both forms need inner products only."""
    X, y = separable(1, n=50, d=5)
    own, kernel = hard(X, y), hard(Features(Gram(X, Linear(), cache_size=1e-3)), y)
    one, two = (run(MarginSampling(), problem, 100) for problem in (own, kernel))
    np.testing.assert_allclose(one.a, two.a, rtol=1e-6)
    np.testing.assert_allclose(one.z, two.z, rtol=1e-6)
    one, two = (run(Margin(form="dual", step_size=1.0), problem, 100) for problem in (own, kernel))
    np.testing.assert_allclose(one.point.z, two.point.z, rtol=1e-6)
    np.testing.assert_allclose(one.total, two.total, rtol=1e-6)


# Several classes ------------------------------------------------------------------------------------------------------


def test_a_row_of_several_classes_touches_two_columns():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 4)), rng.integers(3, size=20)
    problem = fl.Interpolation(ClassDifferences(fl.Design(X), codes, 3), fl.sets.HalfLine(1.0))
    state = run(MarginSampling(), problem, 1)
    U = state.weights.reshape(3, 4)
    own, other = codes[state.drawn // 2], problem.X.others.ravel()[state.drawn]
    assert set(np.flatnonzero(np.any(U != 0.0, axis=1))) == {own, other}
    np.testing.assert_allclose(U[own], -U[other])


# Baselines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["constant", "root"])
def test_the_batch_perceptron_corrects_the_worst_row(steps):
    X, y = separable(2, n=40, d=5)
    Z, w, total, problem = unit_rows(X, y), np.zeros(5), np.zeros(5), hard(X, y)
    solver = BatchPerceptron(steps)
    state = solver.begin(problem, zero(problem), 0)
    for t in range(1, 200):
        state = solver.step(state)
        w = w - Z[np.argmax(Z @ w)] / (np.sqrt(t) if steps == "root" else 1.0)
        if steps == "root":
            w = w / max(1.0, np.linalg.norm(w))
        total = total + w
        for own, printed in ((state.w, w), (state.sum_w, total)):
            unit = 1.0 if steps == "root" else 1.0 / state.rows.longest
            np.testing.assert_allclose(own * unit, printed, atol=1e-9 * np.linalg.norm(printed))
        np.testing.assert_allclose(state.sum_w, -state.rows.combination(state.sum_a), atol=1e-9 * np.linalg.norm(total))


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_the_sublinear_perceptron_draws_a_row_and_a_column(storage):
    X, y = separable(2, n=30, d=5)
    A, T = -unit_rows(X, y), 5000
    problem, solver = hard(storage(X), y), Sublinear(horizon=T)
    state = solver.begin(problem, zero(problem), 0)
    rng, rate = np.random.default_rng(0), np.sqrt(np.log(30) / T)
    v, log_p, total = np.zeros(5), np.zeros(30), np.zeros(5)
    while state.steps < 200:
        before = state.steps
        state = solver.step(state)
        for _ in range(state.steps - before):
            x, p = v / max(1.0, np.linalg.norm(v)), softmax(log_p)
            i = np.searchsorted(np.cumsum(p), rng.random() * p.sum(), side="right")
            v = v + A[i] / np.sqrt(2.0 * T)
            if x.any():
                j = np.searchsorted(np.cumsum(x**2), rng.random() * np.sum(x**2), side="right")
                e = rate * np.clip(A[:, j] * np.sum(x**2) / x[j], -1.0 / rate, 1.0 / rate)
                log_p = log_p + np.log(1.0 - e + e**2)
            total = total + x
        np.testing.assert_allclose(state.sum_x, total, atol=1e-9)


def test_the_sublinear_perceptron_separates():
    X, y = separable(2, n=30, d=5)
    state = run(Sublinear(horizon=20000), hard(X, y), 5000)
    assert margin_of(-y[:, None] * X, state.sum_x) > 0.25 * largest_margin(X, y)


def test_options_without_sense_are_errors():
    for make, words in [
        (lambda: MarginSampling(steps="bold"), "steps must be one of"),
        (lambda: MarginSampling(steps="proven"), "needs horizon"),
        (lambda: MarginSampling(horizon=10), "does not use horizon"),
        (lambda: MarginSampling("proven", 0), "at least 1"),
        (lambda: BatchPerceptron(steps="long"), "steps must be one of"),
        (lambda: Sublinear(horizon=0), "at least 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
