"""Passes over active constraints: D never falls, every storage and kind of interval, rows that are nearly equal."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.steps.base import Start
from fenchel.steps.interpolation.active import ActivePasses

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
}


def separable(n=600, d=1000, twins=0, seed=0):
    """Labels that some weights satisfy; the last rows are nearly equal to the first ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if twins:
        X[-twins:] = X[:twins] + 0.01 * rng.normal(size=(twins, d))
        y[-twins:] = y[:twins]
    return X, y


def passes_of(problem, seed=0):
    start = Start(np.zeros(problem.shapes[0]), problem.first_intercept(), np.zeros(problem.shapes[2]))
    made = ActivePasses.of(problem, start, seed)
    assert made is not None
    return made


def rounds_to(problem, violation, most=200):
    passes = passes_of(problem)
    for k in range(most):
        if passes.violation <= violation:
            return k
        passes.round()
    return most


@pytest.mark.parametrize("storage", ["C", "csr", "csr float32"])
def test_the_dual_bound_never_falls(storage):
    X, y = separable()
    passes = passes_of(fl.Interpolation(STORAGES[storage](X), fl.sets.HalfLine(1.0, y)))
    values = [passes.iterates.objective()]
    for _ in range(12):
        passes.round()
        values.append(passes.iterates.objective())
    assert np.all(np.diff(values) >= -1e-12 * np.abs(values[-1]))
    assert passes.gap() <= 1e-6


def test_images_belong_to_their_multipliers():
    X, y = separable()
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y), intercept=True)
    passes = passes_of(problem)
    for _ in range(3):
        passes.round()
    u = passes.iterates.u.copy()
    passes.iterates.refresh()
    np.testing.assert_allclose(u, passes.iterates.u, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_half_lines_are_certified(storage, weighted, intercept):
    X, y = separable()
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float) if weighted else None
    problem = fl.Interpolation(
        STORAGES[storage](X), fl.sets.HalfLine(1.0, y), intercept=intercept, sample_weight=weights
    )
    result = fl.solve(problem, tol=1e-5)
    assert result.status == "certified"
    X = X.astype(np.float32).astype(float) if "float32" in storage else X
    scores = (y * (X @ result.w + result.b))[slice(None) if weights is None else weights > 0]
    assert scores.min() >= 1.0 - 1e-12


@pytest.mark.parametrize("intercept", [False, True])
def test_intervals_of_every_kind_are_certified(intercept):
    X, _ = separable(600, 900)
    rng = np.random.default_rng(2)
    centre = rng.normal(size=600)
    low, high = centre - rng.random(600), centre + rng.random(600)
    low[:100], high[100:200] = -np.inf, np.inf
    result = fl.solve(fl.Interpolation(X, fl.sets.Interval(low, high), intercept=intercept), tol=1e-4)
    assert result.status == "certified"
    z = X @ result.w + result.b
    assert np.all((z >= low - 1e-12) & (z <= high + 1e-12))


def test_the_nearest_model_to_a_given_one_is_certified():
    X, y = separable()
    centre = np.random.default_rng(3).normal(size=X.shape[1])
    result = fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y), centre=centre), tol=1e-6)
    assert result.status == "certified"
    assert np.min(y * (X @ result.w)) >= 1.0 - 1e-12


def test_nearly_equal_rows_are_solved_for_together(monkeypatch):
    X, y = separable(twins=30)
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    together = rounds_to(problem, 1e-5)
    monkeypatch.setattr(ActivePasses, "_step_on_near_rows", lambda self: False)
    assert together < rounds_to(problem, 1e-5)


def test_extrapolation_saves_passes(monkeypatch):
    X, y = separable(600, 600)
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    extrapolated = rounds_to(problem, 1e-10)
    monkeypatch.setattr(ActivePasses, "_try", lambda self, alpha, u: False)
    assert extrapolated < rounds_to(problem, 1e-10)


def test_the_same_seed_gives_the_same_bits():
    X, y = separable()
    problem = fl.Interpolation(sp.csr_array(X), fl.sets.HalfLine(1.0, y))
    first, second = (fl.solve(problem, tol=1e-5, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    other = fl.solve(problem, tol=1e-5, random_state=8)
    assert np.any(first.w != other.w)


def test_more_samples_than_a_factorisation_takes_are_certified():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(7000, 30))
    w = rng.normal(size=30)
    keep = np.abs(X @ w) > 0.5 * np.linalg.norm(w)
    X, y = X[keep], np.sign(X[keep] @ w)
    result = fl.solve(fl.Interpolation(np.vstack([X, X, X]), fl.sets.HalfLine(1.0, np.tile(y, 3))), tol=1e-3)
    assert result.status == "certified"
    assert 3 * len(X) > 6000
