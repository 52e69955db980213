"""Targets of any size, far from zero, and constant ones: what is certified must not depend on the unit of y."""

import numpy as np
import pytest

import fenchel as fl

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 5))
Y = X @ rng.normal(size=5) + 0.5 * rng.normal(size=50) + 1.0
KINKED = [fl.losses.Absolute(), fl.losses.Pinball(0.3), fl.losses.Huber(1.35), fl.losses.EpsilonInsensitive(0.1)]


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [1e9, 1e4])
def test_large_targets_are_certified_in_a_few_steps(loss, intercept, size):
    result = fl.solve(fl.Problem(X, size * Y, loss, fl.penalties.L2(1e-3), intercept=intercept))
    assert result.certificate.ok
    assert result.n_iter < 500


@pytest.mark.parametrize("loss", KINKED[:3], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [1e-5, 1e-9])
def test_small_targets_are_certified_in_a_few_steps(loss, intercept, size):
    result = fl.solve(fl.Problem(X, size * Y, loss, fl.penalties.L2(1e-3), intercept=intercept))
    assert result.certificate.ok
    assert result.n_iter < 500


@pytest.mark.parametrize("solver", ["newton", "sdca", "fista", "pdhg"])
def test_a_dual_point_that_rounding_spoils_ends_the_run(solver):
    """lam is so small that the rounding of v, squared, is more than lam: D(0) stays the best bound."""
    p = fl.Problem(X, 1e-20 * Y, fl.losses.Huber(2e-20), fl.penalties.L2(3e-26), intercept=True)
    result = fl.solve(p, solver=solver, tol=2e-6, warn=False)
    assert result.status == "stalled"
    assert result.n_iter < 1000
    plain = fl.solve(p.replace(y=Y, loss=fl.losses.Huber(2.0), penalty=fl.penalties.L2(1e-9)), tol=1e-10)
    assert np.allclose(result.w, 1e-20 * plain.w, rtol=1e-4, atol=0.0)


def test_hubers_scale_is_found_for_targets_of_any_size():
    one = fl.HuberRegressor().fit(X, Y)
    for size in (1e9, 1e-9):
        # the penalty is of the second degree, the loss of the first
        other = fl.HuberRegressor(alpha=0.0001 / size).fit(X, size * Y)
        assert other.certificate_.ok
        assert other.scale_ == pytest.approx(size * one.scale_, rel=1e-3)
    with pytest.warns(fl.NotCertifiedWarning, match="rounding"):
        tiny = fl.HuberRegressor().fit(X, 1e-20 * Y)
    assert tiny.n_iter_ < 5000
    assert tiny.scale_ == pytest.approx(1e-20 * one.scale_, rel=1e-2)
