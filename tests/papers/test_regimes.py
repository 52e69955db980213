"""The table of section 2 of the SDCA paper: orders of steps, and that the algorithms keep to them."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.papers import regimes
from fenchel.papers.curves import follow
from fenchel.papers.datasets import split
from fenchel.solver.theory import Regime
from fenchel.steps import SDCA, SGD


def test_the_rates_are_those_of_the_table():
    n, lam, gap, gamma = 2000, 1e-2, 1e-3, 0.5
    rough, smooth = Regime(n, lam, gap), Regime(n, lam, gap, gamma)
    linear = (n + 1 / (lam * gamma)) * np.log(1 / gap)
    assert theory.sgd_rate(rough) == theory.sgd_rate(smooth) == pytest.approx(1 / (lam * gap))
    assert theory.exponentiated_rate(rough) == pytest.approx(n / gap)
    assert theory.frank_wolfe_rate(rough) == theory.sdca_rate(rough) == pytest.approx(n + 1 / (lam * gap))
    assert theory.exponentiated_rate(smooth) == theory.sag_rate(smooth) == theory.sdca_rate(smooth)
    assert theory.sdca_rate(smooth) == pytest.approx(linear)
    assert set(theory.TABLE) == {"SGD", "online EG", "SAG", "stochastic Frank-Wolfe", "SDCA"}


def test_sag_needs_a_smooth_loss_and_many_samples():
    assert theory.sag_rate(Regime(1000, 1e-2, 1e-3)) == np.inf
    assert theory.sag_rate(Regime(799, 1e-2, 1e-3, 1.0)) == np.inf  # 8 / (lam gamma) = 800
    assert np.isfinite(theory.sag_rate(Regime(800, 1e-2, 1e-3, 1.0)))


def test_arrays_broadcast():
    lams, gaps = np.geomspace(1e-6, 1, 7)[:, None], np.geomspace(1e-6, 1e-1, 5)
    for gamma in (0.0, 1.0):
        for rate in theory.TABLE.values():
            found = rate(Regime(100, lams, gaps, gamma))
            assert np.broadcast_shapes(np.shape(found), (7, 5)) == (7, 5)
            assert np.all(np.asarray(found) > 0)


def test_remarks_7_and_8():
    n = 10_000
    # lam of about 1/n, accuracy of about 1 / (lam n): all methods in about n steps
    even = Regime(n, 1.0 / n, 1.0, 1.0)
    assert theory.sdca_rate(even) <= 3 * n
    # accuracy much below 1 / (lam n): smooth losses still take about n, others 1 / (lam accuracy)
    fine = 1e-5
    assert theory.sdca_rate(Regime(n, 1.0 / n, fine, 1.0)) < 30 * n
    assert theory.sdca_rate(Regime(n, 1.0 / n, fine)) > 1e4 * n
    # SGD is better where n is much larger than 1 / (lam accuracy) ...
    many = Regime(10**9, 1e-2, 1e-2)
    assert 1e4 * theory.sgd_rate(many) < theory.sdca_rate(many)
    # ... but SDCA on that many samples costs no more than twice as much
    fewer = Regime(theory.sgd_rate(many), 1e-2, 1e-2)
    assert theory.sdca_rate(fewer) == pytest.approx(2 * theory.sgd_rate(many))
    # and for smooth losses SGD is much worse where accuracy is much below 1 / (lam n)
    smooth = Regime(n, 1.0 / n, fine, 1.0)
    assert theory.sgd_rate(smooth) > 1e3 * theory.sdca_rate(smooth)


@pytest.mark.parametrize("bad", [{"n": 0}, {"lam": -1.0}, {"accuracy": [0.1, 0.0]}, {"gamma": -1.0}])
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Regime(**({"n": 10, "lam": 0.1, "accuracy": 0.1} | bad))


def steps_to(accuracy, values, n):
    """Steps after which a curve stays below an accuracy."""
    return n * (1 + int(np.flatnonzero(np.append(np.inf, values) > accuracy)[-1]))


@pytest.mark.parametrize("height", [30.0, 3.0, 0.3])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_steps_are_within_a_constant_of_the_rates(gamma, height):
    """SDCA's gap and SGD's suboptimality: at most ten times the order, logarithms included."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1250, 20))
    one = split("normal", X, np.sign(X @ rng.normal(size=20) + 0.5 * rng.normal(size=1250)))
    n, lam = one.n, height / one.n
    loss = fl.losses.SmoothedHinge(gamma) if gamma else fl.losses.Hinge()
    problem = fl.Problem(one.X, one.y, loss, fl.penalties.L2(lam))
    best = fl.solve(problem, tol=1e-9).certificate.primal
    ascent = follow(problem, SDCA(sampling="uniform", shrink=False, accelerate=False), 60)
    descent = follow(problem, SGD(), 60)
    for accuracy in (0.1, 1e-2, 1e-3):
        regime = Regime(n, lam, accuracy, gamma)
        log = max(1.0, np.log(n))
        if ascent.gap[-1] <= accuracy:
            assert steps_to(accuracy, ascent.gap, n) <= 10 * log * theory.sdca_rate(regime)
        else:
            assert 60 * n <= 10 * log * theory.sdca_rate(regime)
        if descent.primal[-1] - best <= accuracy:
            assert steps_to(accuracy, descent.primal - best, n) <= 10 * log * max(theory.sgd_rate(regime), n)


# The picture of the page ----------------------------------------------------------------------------------------------


def test_the_map_says_where_sgd_and_sdca_are_ahead():
    n = 10_000
    # above accuracy 1 / (lam n) SGD, for a smooth loss far below it SDCA, for the hinge neither
    assert regimes.ahead(n, np.array(100.0), np.array(0.1), 0.0) == 1.0
    assert regimes.ahead(n, np.array(1.0), np.array(1e-5), 0.0) == 0.0
    assert regimes.ahead(n, np.array(1.0), np.array(1e-5), 1.0) == -1.0
    assert regimes.ahead(n, np.array(800.0), np.array(0.1), 1.0) == 1.0


def test_the_picture_has_the_three_regimes():
    figure = regimes.picture()
    assert len(figure.axes) == 3
    basic, *refined = (line.get_ydata() for line in figure.axes[2].get_lines())
    assert len(refined) == 3
    for curve in refined:
        assert np.all(np.diff(curve) <= 0)
        assert curve[-1] < basic[-1]
    none, some, even = refined
    assert none[-1] < 1e-9 < even[-1] < some[-1]
