"""Targets of any size, far from zero, and constant ones: what is certified must not depend on the unit of y."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

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
    assert result.n_iter < 2000


@pytest.mark.parametrize("loss", KINKED[:3], ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [1e-5, 1e-9])
def test_small_targets_are_certified_in_a_few_steps(loss, intercept, size):
    result = fl.solve(fl.Problem(X, size * Y, loss, fl.penalties.L2(1e-3), intercept=intercept))
    assert result.certificate.ok
    assert result.n_iter < 2000


@pytest.mark.parametrize("solver", ["auto", "newton", "fista", "pdhg"])  # sdca would need 1e24 epochs
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


CONSTANT = [
    fl.Ridge(),
    fl.LinearSVR(),
    fl.LinearSVR(epsilon=0.1, C=100.0),
    fl.LinearSVR(loss="squared_epsilon_insensitive"),
    fl.QuantileRegressor(quantile=0.3),
    fl.HuberRegressor(),
    fl.HuberRegressor(epsilon=1.0),
    fl.LinearRegressor(fl.losses.Absolute(), fl.penalties.ElasticNet(0.01, 0.5)),
]


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9 / 3, 1e-20, 1e99 / 7])
@pytest.mark.parametrize("model", CONSTANT, ids=repr)
def test_constant_targets_are_fitted_and_certified(model, value):
    weights = rng.random(50) + 0.1
    model = clone(model).fit(X, np.full(50, value), sample_weight=weights)
    assert model.certificate_.ok
    assert model.certificate_.vanishes
    assert np.max(model.n_iter_) < 300
    tube = getattr(model, "epsilon", 0.0) if isinstance(model, fl.LinearSVR) else 0.0
    assert np.allclose(model.predict(X), value, rtol=1e-12, atol=tube)
    assert "zero up to rounding" in str(model.certificate_)


@pytest.mark.parametrize("solver", ["newton", "sdca", "fista", "pdhg"])
def test_every_solver_certifies_constant_targets(solver):
    for loss in (fl.losses.Squared(), fl.losses.Huber()):
        p = fl.Problem(X, np.full(50, np.pi), loss, fl.penalties.L2(1e-3), intercept=True)
        assert fl.solve(p, solver=solver).status == "certified"


def test_one_constant_target_among_several_is_certified():
    model = fl.Ridge().fit(X, np.column_stack([Y, np.full(50, 5.0)]))
    assert model.certificate_.ok
    assert not model.certificate_.vanishes


def test_only_an_objective_lost_in_rounding_vanishes():
    p = fl.Problem(X, np.full(50, 5.0), fl.losses.Absolute(), fl.penalties.L2(0.1), intercept=True)
    exact = fl.certify(p, np.zeros(5), 5.0)
    assert exact.ok
    assert exact.vanishes
    assert exact.gap > 0.0
    assert exact == fl.Certificate.from_json(exact.to_json())
    for w, b in ((np.zeros(5), 5.0 + 1e-9), (np.full(5, 1e-5), 5.0), (np.zeros(5), 0.0)):
        assert not fl.certify(p, w, b).ok
    # rounding that is large beside the loss of a model of zeros is no excuse
    assert not replace(exact, primal=1e-3, rounding=1.0, gap=1.0).ok
    assert not replace(exact, primal=1e-3, rounding=1e-2, gap=1e-2).vanishes


@pytest.mark.parametrize("lam", [1e-8, 1e-10, 1e-12])
def test_small_objectives_of_separable_data_are_still_relative(lam):
    result = fl.solve(fl.Problem(X, np.sign(X[:, 0]), fl.losses.Hinge(), fl.penalties.L2(lam)))
    assert result.certificate.primal < 1e3 * lam
    assert result.certificate.relative_gap <= 1e-4
    assert not result.certificate.vanishes
