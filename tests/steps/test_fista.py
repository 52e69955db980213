"""FISTA: compiled passes do what the formulas say, and the guess of the curvature stays where it belongs."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.problem import Trait
from fenchel.solver import Start
from fenchel.steps import FISTA
from fenchel.steps.first_order.fista import SamplePasses, WeightPasses
from tests.helpers.registry import LOSSES, name, targets

DIFFERENTIABLE = [loss for loss in LOSSES if Trait.DIFFERENTIABLE_LOSS in loss.traits]
SINGLE = [fl.penalties.L1(0.3), fl.penalties.ElasticNet(0.3, 0.4), fl.penalties.ElasticNet(0.3, 0.0)]


def problem_of(loss, penalty, n=301, d=37):
    rng = np.random.default_rng(0)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    return fl.Problem(rng.normal(size=(n, d)), targets(loss, rng, n), loss, penalty, weights), rng


@pytest.mark.parametrize("loss", DIFFERENTIABLE, ids=name)
def test_compiled_passes_over_samples_agree_with_numpy(loss, monkeypatch):
    problem, rng = problem_of(loss, SINGLE[0])
    now, before, x = rng.normal(size=(3, 301))
    passes = SamplePasses(problem)
    z, a, total = passes.extrapolate(now, before, 0.7)
    found = *passes.curvature(x, z, a), total
    monkeypatch.setattr(type(loss), "kernel", lambda self: None)
    plain_z, plain_a, plain_total = passes.extrapolate(now, before, 0.7)
    np.testing.assert_allclose(z, plain_z, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(a, plain_a, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found, (*passes.curvature(x, plain_z, plain_a), plain_total), rtol=1e-11)


@pytest.mark.parametrize("penalty", SINGLE, ids=name)
def test_compiled_passes_over_weights_agree_with_numpy(penalty, monkeypatch):
    problem, rng = problem_of(fl.losses.Squared(), penalty)
    now, before, v = rng.normal(size=(3, 37))
    steps = np.exp(rng.normal(size=37))
    compiled = WeightPasses.of(problem, steps)
    assert compiled.blocks is not None
    x, *numbers = compiled.shrink(now, before, 0.7, v, 0.5)
    plain_x, *plain_numbers = WeightPasses(problem, steps, None).shrink(now, before, 0.7, v, 0.5)
    np.testing.assert_allclose(x, plain_x, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(numbers, plain_numbers, rtol=1e-12)
    assert np.count_nonzero(x == 0.0) > 0 or penalty.l1 == 0.0
    v[3] = np.inf
    assert not compiled.shrink(now, before, 0.7, v, 0.5)[3]


@pytest.mark.parametrize("loss", [fl.losses.SquaredHinge(), fl.losses.Logistic(), fl.losses.Squared()], ids=name)
def test_the_curvature_never_exceeds_what_the_data_allow(loss):
    """Twice the smoothness of the loss times the norm of X is enough for every step, whatever rounding says."""
    problem, _ = problem_of(loss, fl.penalties.L1(1e-2), n=60, d=5)
    X = np.asarray(problem.design.matrix)
    algorithm = FISTA()
    state = algorithm.begin(problem, Start(np.zeros(5), 0.0, np.zeros(60)), seed=0)
    share = problem.weights / problem.total_weight
    scaled = X * np.sqrt(np.asarray(state.operator.steps))
    largest = loss.smoothness * np.linalg.eigvalsh(scaled.T @ (share[:, None] * scaled))[-1]
    for _ in range(1500):
        state = algorithm.step(state)
        assert state.curvature <= 2.2 * largest
    # more than half of it is the bound on rounding, which is fixed by the formula
    assert fl.certify(problem, state.now.w).relative_gap <= 3e-12


def test_an_intercept_that_overflows_is_an_overflow():
    X, y = np.eye(3)[:, :2] + 1.0, np.array([1e154, -1e154, 2e154])
    problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.FusedL1(1.0), intercept=True)
    with pytest.warns(fl.NotCertifiedWarning):
        fl.solve(problem, solver="fista", max_iter=50)
