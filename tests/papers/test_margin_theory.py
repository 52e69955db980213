"""The rates of Ji, Srebro and Telgarsky (2021) against runs."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.data.class_differences import ClassDifferences
from fenchel.steps import Margin, MarginSampling
from fenchel.steps.margin.potentials import LOGISTIC_STEP
from tests.helpers.interpolation import zero
from tests.helpers.margin import algorithm_1, hard, largest_margin, margin_of, mixed_up, separable, unit_rows

STEPS = 1000
T = np.arange(1, STEPS + 1)


@pytest.mark.parametrize("seed", range(20))
def test_theorem_3_1_at_every_step_on_data_that_can_be_separated(seed):
    X, y = separable(seed)
    n, radius, best = len(y), np.linalg.norm(X, axis=1).max(), largest_margin(X, y)
    problem = hard(X, y)
    state = Margin(step_size=1.0).begin(problem, zero(problem), 0)
    margins, lengths = np.empty(STEPS), np.empty(STEPS)
    for t in range(STEPS):
        state.step()
        scale = np.ldexp(1.0, state.form.rows.exponent)
        margins[t] = -np.max(state.point.z) / np.linalg.norm(state.weights) * scale
        lengths[t] = np.linalg.norm(state.M) * scale
    spare = 1e-7 * best
    assert np.all(margins <= best + spare)
    assert np.all(margins >= theory.margin_momentum(T, n, best, radius) - spare)
    assert np.all(margins >= theory.margin_momentum(T, n, best, radius, sharp=True) - spare)
    assert np.all(margins >= theory.margin_half(T, n, best, radius) - spare)
    assert np.all(0.5 * (lengths**2 - best**2) <= theory.margin_dual(T, n, radius) + spare * best)
    lower, upper = theory.margin_between(T, n, lengths, radius)
    assert np.all((lower <= best + spare) & (best - spare <= upper))


@pytest.mark.parametrize("seed", range(5))
def test_theorem_3_1_part_2_on_data_that_cannot_be_separated(seed):
    X, y = mixed_up(seed)
    n, radius = len(y), np.linalg.norm(X, axis=1).max()
    with pytest.raises(fl.Infeasible):  # so that the largest margin is 0
        fl.solve(hard(X, y))
    lengths = [radius * np.linalg.norm(image) for _, _, image in algorithm_1(unit_rows(X, y), STEPS)]
    lower, upper = theory.margin_between(T, n, lengths, radius)
    assert np.all(lower == 0.0)
    assert upper[-1] < 0.01 * radius
    problem = hard(X, y)
    state = Margin(step_size=1.0).begin(problem, zero(problem), 0)
    for length in lengths[:300]:
        state.step()
        own = np.linalg.norm(state.M) / state.form.rows.longest
        assert own == pytest.approx(length / radius, rel=1e-6, abs=1e-9)


def test_the_bound_without_the_logarithm_is_the_sharper_one():
    for n in (2, 10, 10**6):
        printed, sharp = (theory.margin_momentum(T, n, 0.3, sharp=sharp) for sharp in (False, True))
        assert np.all(sharp >= printed)
    assert theory.margin_momentum(1000, 100, 1.0) == pytest.approx(
        1.0 - 4.0 * (1.0 + np.log(100.0)) * (1.0 + 2.0 * np.log(1001.0)) / 1001.0**2
    )
    assert theory.margin_momentum(1000, 100, 2.0, 2.0) == pytest.approx(2.0 * theory.margin_momentum(1000, 100, 1.0))


def test_proposition_3_7_a_quarter_of_the_margin():
    n, g = 1000, 0.05
    t = 4.0 * np.sqrt(np.log(n)) / g - 1.0
    assert theory.margin_half(t, n, g) == pytest.approx(g / 4.0)


@pytest.mark.parametrize(("shift", "step"), [(0.0, None), (None, LOGISTIC_STEP)])
@pytest.mark.parametrize("seed", range(6))
def test_the_logistic_loss_keeps_its_bound(seed, shift, step):
    X, y = separable(seed)
    n, radius, best = len(y), np.linalg.norm(X, axis=1).max(), largest_margin(X, y)
    problem, solver = hard(X, y), Margin(loss="logistic", step_size=1.0 / n if step is None else step, shift=shift)
    state = solver.begin(problem, zero(problem), 0)
    bound = theory.margin_logistic(T, n, best, radius, shift)
    for t in range(STEPS):
        state.step()
        assert margin_of(-y[:, None] * X, state.weights) >= bound[t] - 1e-7 * best
    assert state.form.potential.value(np.zeros(n)) == pytest.approx(  # psi(0)
        (radius * (best / radius - bound[0] / radius)) * best / radius**2 * solver.step_size
    )


@pytest.mark.parametrize("k", [2, 3, 5])
def test_theorem_5_1_for_several_classes(k):
    rng = np.random.default_rng(k)
    X, codes = rng.normal(size=(30, 6)), np.arange(30) % k
    X[np.arange(30), codes] += 4.0
    problem = hard(ClassDifferences(fl.Design(X), codes, k), np.ones(30 * (k - 1)))
    best, radius = 1.0 / np.linalg.norm(fl.solve(problem, tol=1e-9).w), np.linalg.norm(X, axis=1).max()
    state = Margin(step_size=1.0).begin(problem, zero(problem), 0)
    bounds = [theory.margin_multiclass(T, 30, k, best, radius, sharp) for sharp in (False, True)]
    for t in range(STEPS):
        state.step()
        U = state.weights.reshape(k, 6)
        Z = X @ U.T
        gaps = Z[np.arange(30), codes][:, None] - np.where(np.eye(k, dtype=bool)[codes], -np.inf, Z)
        own = gaps.min() / np.linalg.norm(U)
        assert own >= max(bound[t] for bound in bounds) - 1e-7 * best
    assert np.all(bounds[1] >= bounds[0])


def test_theorem_4_1_has_the_printed_number_of_steps():
    n, g, e, d = 100, 0.2, 0.1, 0.05
    printed = max(
        np.ceil((32 * np.log(n) + 64 * np.log(2 / d)) / (g**2 * e**2)),
        np.ceil(32 / (d * e**2)),
    )
    assert theory.margin_sampling_steps(n, g, e, d) == printed
    assert theory.margin_sampling_steps(n, 10 * g, 10 * e, d, 10.0) == printed
    assert theory.margin_sampling_steps(n, 1.0, e, 1e-6) == np.ceil(32 / (1e-6 * e**2))


def test_theorem_4_1_by_steps_is_the_one_by_accuracy():
    n, g, radius = 100, 0.2, 2.0
    for e, d in [(0.1, 0.05), (0.01, 0.3), (0.1, 1e-4)]:
        t = theory.margin_sampling_steps(n, g, e, d, radius)
        at, before = theory.margin_sampling([t, t - 1], n, g, d, radius)
        assert before < g - e <= at


@pytest.mark.parametrize("seed", range(5))
def test_theorem_4_1_for_runs_of_their_own(seed):
    X, y = separable(seed)
    best, radius = largest_margin(X, y), np.linalg.norm(X, axis=1).max()
    problem = hard(X, y)
    for steps in (100, 1000):
        solver = MarginSampling(steps="proven", horizon=steps)
        state = solver.begin(problem, zero(problem), seed)
        for _ in range(steps):
            state.step()
        assert margin_of(-y[:, None] * X, state.weights) >= theory.margin_sampling(steps, len(y), best, 0.1, radius)


def test_numbers_without_sense_are_errors():
    for make, words in [
        (lambda: theory.margin_momentum(0, 10, 0.1), "iterations must be at least 1"),
        (lambda: theory.margin_momentum(1, 0, 0.1), "n must be"),
        (lambda: theory.margin_momentum(1, 10, 2.0), "at most max"),
        (lambda: theory.margin_half(1, 10, -1.0), "margin must be"),
        (lambda: theory.margin_dual(1, 10, 0.0), "radius must be"),
        (lambda: theory.margin_logistic(1, 10, 0.1, shift=3.0), "shift must be"),
        (lambda: theory.margin_sampling_steps(10, 0.1, 0.1, 1.5), "failure must be below 1"),
        (lambda: theory.margin_sampling(10, 10, 0.1, 1.5), "margin_sampling: failure must be below 1"),
        (lambda: theory.margin_multiclass(1, 10, 1, 0.1), "two classes"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
