"""Margin intervals contain what a conic solver finds; separability is called right, and never wrongly."""

import numpy as np
import pytest
from scipy.optimize import linprog

import fenchel as fl
from tests.helpers.margins import best_margin, random_classes, rows_of

NORMS = (1.0, 1.5, 2.0, np.inf)


def check_interval(seed):
    rng = np.random.default_rng([18, seed])
    p, intercept, k = NORMS[seed % 4], bool(seed // 4 % 2), 2 + seed // 8 % 3
    X, codes = random_classes(rng, separable=seed // 24 % 2 == 0, k=k)
    d = X.shape[1]
    w = rng.normal(size=d if k == 2 else (k, d))
    given = (w, np.zeros(1 if k == 2 else k)) if intercept else w
    found = fl.margin_interval(given, X, codes, p=p, effort="auto")
    best = best_margin(X, codes, p, intercept)
    scale = np.abs(X).max()
    # the conic solver is accurate to about 1e-8 of the scale
    assert found.lower <= found.upper
    assert found.best <= max(best, 0.0) + 1e-6 * scale
    assert found.upper >= best - 1e-6 * scale
    A, E = rows_of(X, codes)
    if found.best > 0.0:
        W, b = found.model
        assert found.separable is True
        assert np.min(A @ W.ravel() + (E @ np.ravel(b) if intercept else 0.0)) > 0.0
        if best > 1e-2 * scale:  # thinner margins are bracketed, but not always closely
            assert found.upper - found.best <= 0.02 * found.upper
    else:
        assert best <= 1e-6 * scale
    asked = fl.separable(X, codes, intercept=intercept)
    if best > 1e-6 * scale:
        assert asked.answer is True
    elif not separates(A, E, intercept):
        assert asked.answer is False
        assert found.separable is False
    assert asked.answer is None or asked.verify(X, codes)


def separates(A, E, intercept):
    """Whether a linear program finds a separating hyperplane."""
    rows = np.hstack([A, E]) if intercept else A
    rows = rows / np.abs(rows).max()
    found = linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize("seed", range(24))
def test_intervals_contain_the_best_margin(seed):
    check_interval(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24, 324))
def test_intervals_contain_the_best_margin_of_300_sets(seed):
    check_interval(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_separability_near_the_capacity_is_called_right(seed):
    rng = np.random.default_rng([19, seed])
    d = int(rng.integers(2, 30))
    n = 2 * d + int(rng.integers(-2, 5))
    X = rng.normal(size=(n, d)) if seed % 2 else rng.integers(-3, 4, size=(n, d)).astype(float)
    y = rng.choice([-1.0, 1.0], size=n)
    if y.min() == y.max():
        y[0] = -y[0]
    found = fl.separable(X, y, intercept=seed % 4 < 2)
    A, E = rows_of(X, (y > 0).astype(int))
    assert found.answer == separates(A, E, seed % 4 < 2)
    assert found.verify(X, y)
