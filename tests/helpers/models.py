"""What the tests of certified models share: data, and the objectives as the models' own documentation states them."""

import copy

import numpy as np
import pytest

import fenchel as fl


def regression(n=80, d=6, targets=0, seed=0):
    """Features of different scales and a noisy linear target with a few outliers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.5, 2.0, d)
    y = X @ rng.normal(size=(d, max(targets, 1))) + 1.5 + 0.3 * rng.normal(size=(n, max(targets, 1)))
    y[:4] += 8.0
    return X, (y if targets else y[:, 0])


def classification(n=90, d=6, classes=2, seed=0):
    """Overlapping classes of unequal size, with text labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.5, 2.0, d)
    score = X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes)) + 0.7 * np.arange(classes)
    labels = score.argmax(axis=1)
    labels[:classes] = np.arange(classes)
    return X, np.array(["ape", "bee", "cat", "dog"])[labels]


def weights(n, seed=1):
    s = np.random.default_rng(seed).uniform(0.2, 3.0, size=n)
    s[5] = 0.0
    return s


# Penalties and losses, written out -------------------------------------------------------------------------------

half_square = lambda w: 0.5 * np.sum(w**2)  # noqa: E731
l1 = lambda w: np.sum(np.abs(w))  # noqa: E731


def mixed(ratio):
    return lambda w: ratio * l1(w) + (1 - ratio) * half_square(w)


hinge = lambda z, y: np.maximum(0, 1 - y * z)  # noqa: E731
squared_hinge = lambda z, y: np.maximum(0, 1 - y * z) ** 2  # noqa: E731
logistic = lambda z, y: np.logaddexp(0, -y * z)  # noqa: E731
half_squared = lambda z, y: 0.5 * (z - y) ** 2  # noqa: E731


def insensitive(epsilon, power=1):
    return lambda z, y: np.maximum(0, np.abs(z - y) - epsilon) ** power


def perturbed(model, size=0.05, seed=2):
    """A copy of a fitted model whose weights are off."""
    other = copy.deepcopy(model)
    rng = np.random.default_rng(seed)
    other.coef_ = model.coef_ + size * rng.normal(size=np.shape(model.coef_))
    if np.any(model.intercept_):
        other.intercept_ = model.intercept_ + size * rng.normal(size=np.shape(model.intercept_))
    return other


def check(model, X, y, objective, factor, s=None, within=1e-4, worse=None, **options):
    """The certificate of a model: of the objective stated by hand, tight for this model, and honest for a worse one.

    `objective(model)` is the model's own objective, `factor` what it must be divided by to be ours.
    """
    args = (X, y) if s is None else (X, y, s)
    found = fl.certify(model, *args, **options)
    best = objective(model)
    assert found.primal == pytest.approx(best / factor, rel=1e-10)
    assert found.relative_gap <= within, str(found)
    assert found.ok or within > found.tol
    worse = perturbed(model) if worse is None else worse
    lost = objective(worse) - best
    assert lost > 0, "the worse model is no worse"
    other = fl.certify(worse, *args, **options)
    assert other.primal == pytest.approx(objective(worse) / factor, rel=1e-10)
    assert other.gap >= lost / factor * (1 - 1e-9)
    assert other.dual <= best / factor * (1 + 1e-9)
    return found, other
