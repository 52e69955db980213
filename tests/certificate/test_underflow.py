"""Sizes where squares and products fall below the smallest double: bounds hold there, too."""

from fractions import Fraction

import numpy as np
import pytest

import fenchel as fl
from fenchel.certificate.certificate import vanishes


@pytest.mark.parametrize(
    ("x", "y", "lam"), [(1e-150, 1e-15, 1e-300), (1e-154, 1e-8, 1e-307), (1e-11, 3e-150, 1e-22), (1e-170, 1e-3, 1e-280)]
)
def test_small_lam_and_small_features_hide_nothing(x, y, lam):
    """|v|^2 / (2 lam) is of the size of P though |v|^2 alone is zero in double precision."""
    problem = fl.Problem([[x]], [y], fl.losses.Squared(), fl.penalties.L2(lam))
    X, Y, L = Fraction(x), Fraction(y), Fraction(lam)
    best = Y**2 / 2 * L / (L + X**2)
    for w in (0.0, float(X * Y / (L + X**2))):
        W = Fraction(w)
        true = (X * W - Y) ** 2 / 2 + L / 2 * W**2 - best
        assert Fraction(fl.certify(problem, [w]).gap) >= true


def test_small_weights_hide_nothing():
    X, y = np.ones((2, 1)), np.array([1e-118, 2e-118])
    gaps = []
    for size in (1.0, 1e-90, 1e-250, 1e90):
        problem = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L2(0.1), sample_weight=[size, size])
        gaps.append(fl.certify(problem, [5e-119]).gap)
    assert gaps == pytest.approx([gaps[0]] * 4, rel=1e-6)
    assert gaps[0] >= 4.1e-237


def test_an_infinite_gap_is_never_good_enough():
    assert not vanishes(np.inf, np.inf, np.inf, np.inf)
    y = np.random.default_rng(0).normal(size=5) * 1e160
    certificate = fl.certify(fl.Problem(np.ones((5, 1)), y, fl.losses.Squared(), fl.penalties.L2(0.1)), [0.0])
    assert certificate.gap == np.inf
    assert not certificate.ok


def test_an_intercept_at_infinity_ends_the_search():
    for X in (np.eye(2), np.asfortranarray(np.eye(2))):
        problem = fl.Problem(
            X, [1.0, -1.0], fl.losses.Exponential(), fl.penalties.L2(0.1), sample_weight=[1.0, 0.0], intercept=True
        )
        assert np.isfinite(fl.certify(problem, np.zeros(2)).gap)
        result = fl.solve(problem, max_iter=200, warn=False)
        assert result.status in ("certified", "max_iter", "stalled", "overflow")
        assert np.isfinite(result.certificate.gap)


def test_softmax_of_features_beyond_double_precision_ends(clock):
    X = np.array([[1.0], [-0.5], [2.0]]) * 1e150
    with pytest.warns(fl.NotCertifiedWarning):
        model = fl.LogisticRegression(max_seconds=5.0).fit(np.vstack([X, 1.1 * X]), [0, 1, 2, 0, 1, 2])
    assert clock.elapsed < 16.0
    assert np.all(np.isfinite(model.coef_))
