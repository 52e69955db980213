"""Laws that every loss obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fenchel.problem import losses
from tests.helpers.registry import LOSSES, MULTICLASS, name, targets

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=name)
scores = st.floats(-50, 50)
numbers = st.floats(-3, 3)


def one(x):
    return np.array([float(x)])


def target(loss, number):
    return one(1.0 if number >= 0 else -1.0) if loss.is_classification else one(number)


def interior(loss, y, fraction):
    """A point of the domain of alpha, unbounded ends cut off at 5."""
    low, high = (np.clip(end, -5.0, 5.0) for end in loss.domain(y))
    return low + fraction * (high - low)


def test_every_exported_loss_is_in_the_registry():
    exported = {getattr(losses, n) for n in losses.__all__} - {losses.Loss, losses.MulticlassLoss}
    exported -= {type(loss) for loss in MULTICLASS}
    assert {type(loss) for loss in LOSSES} == exported


@every_loss
@given(z=scores, number=numbers, fraction=st.floats(0, 1))
def test_fenchel_young_inequality(loss, z, number, fraction):
    z, y = one(z), target(loss, number)
    a = interior(loss, y, fraction)
    value, conjugate = loss.value(z, y), loss.conjugate(-a, y)
    assert np.isfinite(conjugate).all()
    assert (value + conjugate + a * z >= -1e-12 * (1 + np.abs(value) + np.abs(a * z))).all()


@every_loss
@given(z=st.floats(-20, 20), number=numbers)
def test_fenchel_young_equality_at_the_derivative(loss, z, number):
    z, y = one(z), target(loss, number)
    u = loss.derivative(z, y)
    value = loss.value(z, y)
    assert np.allclose(value + loss.conjugate(u, y), u * z, rtol=1e-9, atol=1e-9 * (1 + np.abs(u * z) + value))


@every_loss
@given(number=numbers, fraction=st.floats(0, 1))
def test_conjugate_by_brute_force(loss, number, fraction):
    y = target(loss, number)
    a = interior(loss, y, fraction)
    grid = np.concatenate([np.linspace(-60, 60, 120001), *loss.kinks(y)])
    brute = np.max(-a * grid - loss.value(grid, np.broadcast_to(y, grid.shape)))
    assert loss.conjugate(-a, y)[0] >= brute - 1e-9
    if 0.01 < fraction < 0.99 and np.isfinite(loss.domain(y)).all():
        assert loss.conjugate(-a, y)[0] <= brute + 1e-3  # the spacing of the grid


@every_loss
def test_conjugate_is_infinite_outside_the_domain(loss):
    y = target(loss, 1.0)
    low, high = loss.domain(y)
    for end, beyond in ((low, low - 1e-3), (high, high + 1e-3)):
        if np.isfinite(end).all():
            assert np.isfinite(loss.conjugate(-end, y)).all()
            assert np.isposinf(loss.conjugate(-beyond, y)).all()
        else:
            assert np.isfinite(loss.conjugate(-np.sign(end) * 1e3, y)).all()


@every_loss
@given(a=st.floats(0, 1), z=scores, q=st.floats(1e-3, 1e3), number=numbers)
def test_dual_step_maximises(loss, a, z, q, number):
    y = target(loss, number)
    a, z, q = interior(loss, y, a), one(z), one(q)
    step = loss.dual_step(a, z, q, y)

    def objective(new):
        return -loss.conjugate(-new, y) - z * (new - a) - q * (new - a) ** 2 / 2

    best = objective(step)
    assert np.isfinite(best).all()
    low, high = loss.domain(y)
    for other in (step - 1e-4, step + 1e-4, a, low, high, 0 * a):
        if np.isfinite(other).all():
            assert (objective(other) <= best + 1e-9 * (1 + np.abs(best) + np.abs(z) + q)).all()


@every_loss
@settings(max_examples=40)
@given(a=st.floats(0, 1), z=st.floats(-20, 20), q=st.floats(1e-2, 1e2), number=numbers)
def test_default_dual_step_agrees_with_the_closed_form(loss, a, z, q, number):
    y = target(loss, number)
    a, z, q = interior(loss, y, a), one(z), one(q)
    assert np.allclose(losses.Loss.dual_step(loss, a, z, q, y), loss.dual_step(a, z, q, y), rtol=1e-6, atol=1e-6)


@every_loss
def test_compiled_and_numpy_forms_agree(loss):
    rng = np.random.default_rng(0)
    n = 2000
    y = targets(loss, rng, n)
    z = rng.normal(size=n) * np.exp(rng.normal(size=n) * 2)
    low, high = (np.clip(end, -4, 4) for end in loss.domain(y))
    a, q = low + rng.random(n) * (high - low), np.exp(rng.normal(size=n) * 3)
    kernel = loss.kernel()
    for compiled, numpy in (
        (kernel.value(z, y), loss.value(z, y)),
        (kernel.derivative(z, y), loss.derivative(z, y)),
        (kernel.conjugate(-a, y), loss.conjugate(-a, y)),
        (kernel.dual_step(a, z, q, y), loss.dual_step(a, z, q, y)),
    ):
        np.testing.assert_allclose(compiled, numpy, rtol=1e-11, atol=1e-12)


@every_loss
@given(z=scores, number=numbers, error=st.floats(1e-12, 1))
def test_rise_bounds_the_change_of_the_value(loss, z, number, error):
    z, y, error = one(z), target(loss, number), one(error)
    bound = loss.rise(z, y, error)
    for shift in (-1, -0.3, 0.5, 1):
        # the difference is itself rounded
        noise = 1e-14 * (loss.value(z, y) + np.abs(z) + 1)
        assert (loss.value(z + shift * error, y) - loss.value(z, y) <= bound + noise).all()


@every_loss
@given(z=scores, number=numbers)
def test_subdifferential_brackets_the_difference_quotients(loss, z, number):
    y = target(loss, number)
    for at in (one(z), *loss.kinks(y)):
        left, right = loss.subdifferential(at, y)
        assert (left <= loss.derivative(at, y)).all()
        assert (loss.derivative(at, y) <= right).all()
        h = 1e-3
        assert (loss.value(at, y) - loss.value(at - h, y) <= h * left + 1e-9 * (1 + loss.value(at, y))).all()
        assert (loss.value(at + h, y) - loss.value(at, y) >= h * right - 1e-9 * (1 + loss.value(at, y))).all()


@every_loss
def test_constants_hold(loss):
    rng = np.random.default_rng(1)
    n = 4000
    y = targets(loss, rng, n)
    z, other = rng.normal(size=n) * 5, rng.normal(size=n) * 5
    gap = np.abs(z - other)
    assert np.isfinite(min(loss.lipschitz, loss.smoothness)) != isinstance(loss, losses.Exponential)
    if np.isfinite(loss.lipschitz):
        assert (np.abs(loss.value(z, y) - loss.value(other, y)) <= loss.lipschitz * gap + 1e-12).all()
    if np.isfinite(loss.smoothness):
        change = np.abs(loss.derivative(z, y) - loss.derivative(other, y))
        assert (change <= loss.smoothness * gap + 1e-12).all()


def test_logistic_is_safe_at_extreme_scores():
    z, y = np.array([1e4, -1e4, 1e300, -1e300]), np.ones(4)
    loss = losses.Logistic()
    with np.errstate(all="raise", under="ignore"):
        assert np.array_equal(loss.value(z, y), [0.0, 1e4, 0.0, 1e300])
        assert np.array_equal(loss.derivative(z, y), [-0.0, -1.0, -0.0, -1.0])
        assert np.array_equal(loss.conjugate(np.array([0.0, -1.0]), np.ones(2)), [0.0, 0.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.SmoothedHinge(0.0),
        lambda: losses.SmoothedHinge(-1),
        lambda: losses.Pinball(1.0),
        lambda: losses.Huber(np.inf),
        lambda: losses.Huber("1"),
        lambda: losses.EpsilonInsensitive(-0.1),
        lambda: losses.EpsilonInsensitive(np.nan),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ValueError, match=r"must (be|lie)"):
        make()
