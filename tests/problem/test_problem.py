"""The problem: primal, dual, link, weights, lam_max."""

import dataclasses
import functools
import math

import numpy as np
import pytest

from fenchel import MulticlassProblem, Problem, losses, penalties, sets, solve
from fenchel.data.multi_products import BlockProducts
from fenchel.problem.vectors import is_finite, sum_of_squares
from tests.helpers.registry import LOSSES, name, penalties_for, targets

rng = np.random.default_rng(0)


def test_a_problem_cannot_be_changed():
    problem = Problem(rng.normal(size=(5, 2)), rng.normal(size=5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.y = np.zeros(5)
    with pytest.raises(TypeError, match="has no lam"):
        problem.replace(lam=1.0)


def cached_values(problem):
    """All cached properties of a problem, computed if need be."""
    cached = {each for kind in type(problem).__mro__ for each, value in vars(kind).items() if is_cached(value)}
    return {each: getattr(problem, each) for each in cached}


def is_cached(value):
    return isinstance(value, functools.cached_property)


@pytest.mark.parametrize("kind", [Problem, MulticlassProblem])
def test_nothing_cached_depends_on_the_penalty(kind):
    """`replace(penalty=)` keeps what is cached: it must be what a new problem would compute."""
    draw = np.random.default_rng(1)
    X, y, weights = draw.normal(size=(9, 4)), np.arange(9) % 3, draw.random(9)
    of_classes = (p for p in penalties_for(12) if not isinstance(p, penalties.Entropy | penalties.FusedL1))
    for after in penalties_for(4) if kind is Problem else of_classes:
        problem = kind(X, y, penalty=penalties.L2(0.3), sample_weight=weights)
        assert cached_values(problem)
        replaced, new = problem.replace(penalty=after), kind(X, y, penalty=after, sample_weight=weights)
        assert vars(replaced).keys() > set(cached_values(problem))  # they are kept
        kept, fresh = cached_values(replaced), cached_values(new)
        assert kept.keys() == fresh.keys()
        for each, value in fresh.items():
            if isinstance(value, BlockProducts):
                assert kept[each].design is replaced.X
            else:
                np.testing.assert_array_equal(kept[each], value)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
def test_weak_duality(loss, intercept):
    n, d = 20, 4
    X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
    for penalty in penalties_for(d):
        problem = Problem(X, y, loss, penalty, rng.random(n), intercept)
        w = rng.dirichlet(np.ones(d)) if isinstance(penalty, penalties.Entropy) else rng.normal(size=d) * 0.1
        primal = problem.primal(w, 0.3 * intercept)
        low, high = (np.clip(end, -2, 2) for end in loss.domain(y))
        for _ in range(20):
            alpha = (low + rng.random(n) * (high - low)) * rng.random()
            assert problem.dual(alpha) <= primal + 1e-12


def test_link_attains_the_conjugate():
    problem = Problem(rng.normal(size=(9, 3)), rng.normal(size=9), losses.Squared(), penalties.ElasticNet(0.1, 0.2))
    alpha = rng.normal(size=9)
    v, w = problem.dual_vector(alpha), problem.link(alpha)
    assert problem.penalty.value(w) + problem.penalty.conjugate(v) == pytest.approx(v @ w)


def test_weight_two_is_the_row_twice():
    X, y, w = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=3)
    twice = np.array([0, 0, 1, 2, 2, 3, 4, 5])
    weighted = Problem(X, y, sample_weight=[2, 1, 2, 1, 1, 1])
    assert weighted.primal(w) == pytest.approx(Problem(X[twice], y[twice]).primal(w), rel=1e-14)


def test_samples_of_weight_zero_do_not_count_even_when_their_loss_overflows():
    X, y = np.array([[1.0], [2.0], [1e200]]), np.array([1.0, -1.0, -1.0])
    problem = Problem(X, y, losses.Exponential(), sample_weight=[1, 1, 0])
    with np.errstate(over="ignore"):
        assert np.isfinite(problem.primal(np.ones(1)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", [penalties.L1, lambda lam: penalties.ElasticNet(lam, 0.5)])
def test_lam_max_is_where_the_weights_become_zero(make, intercept):
    X, y = rng.normal(size=(30, 5)), np.where(rng.random(30) < 0.3, 1.0, -1.0)
    problem = Problem(X, y, losses.Logistic(), make(1.0), intercept=intercept)
    largest = problem.lam_max()
    above = solve(problem.replace(penalty=make(1.001 * largest)), tol=1e-8)
    below = solve(problem.replace(penalty=make(0.98 * largest)), tol=1e-8)
    assert not above.w.any()
    assert below.w.any()


def test_lam_max_of_a_smooth_penalty_is_an_error():
    with pytest.raises(TypeError, match="no lam_max"):
        Problem(np.eye(2), np.ones(2)).lam_max()


SETS = [
    (sets.Point(0.7), 0),
    (sets.HalfLine(1.0, -1.0), 0),
    (sets.Interval(-0.5, 2.0), 0),
    (sets.Box(np.zeros(3), np.array([1.0, 2.0, 3.0])), 3),
    (sets.Ball(np.ones(3), 0.5), 3),
    (sets.Simplex(2.0), 3),
]


@pytest.mark.parametrize(("convex", "k"), SETS, ids=lambda s: type(s).__name__)
def test_sets_project_to_the_nearest_point_and_support_bounds_every_point(convex, k):
    assert isinstance(convex, sets.ConvexSet)
    for _ in range(50):
        z, u = (rng.normal(size=(4, k) if k else 4) * 3 for _ in range(2))
        p = convex.project(z)
        np.testing.assert_allclose(convex.project(p), p, atol=1e-12)
        inner = u * p if not k else (u * p).sum(axis=-1)
        assert np.all(convex.support(u) >= inner - 1e-12)
        # variational inequality: (z - p).(q - p) <= 0 for q in the set, which is support(z - p) <= (z - p).p
        normal = z - p
        attained = normal * p if not k else (normal * p).sum(axis=-1)
        np.testing.assert_allclose(convex.support(normal), attained, atol=1e-9)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 100_000])
def test_sums_of_squares_are_right_to_the_last_digits(size):
    x = np.random.default_rng(size).normal(size=2 * size) * np.logspace(-9, 9, 2 * size)
    exact = math.fsum(value * value for value in x[::2])
    assert abs(sum_of_squares(x[::2]) - exact) <= 70 * 2.0**-53 * exact


def test_sums_of_squares_know_what_is_not_finite():
    assert sum_of_squares(np.array([1e200, 1.0])) == np.inf
    assert np.isnan(sum_of_squares(np.array([np.nan, np.inf])))
    assert is_finite(np.array([1e200, -1e300]))
    assert not is_finite(np.array([1.0, np.nan]))
    assert not is_finite(np.array([-np.inf, 1.0]))
