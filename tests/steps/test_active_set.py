"""One violated constraint at a time: hard margins and intervals where rows are badly conditioned."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import fenchel as fl


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_its_models_are_those_of_newton_steps(seed, intercept):
    rng = np.random.default_rng(seed)
    n, d = (30, 8) if seed % 2 else (12, 20)
    X = rng.normal(size=(n, d))
    z = X @ rng.normal(size=d) + intercept
    low, high = z - rng.uniform(0.01, 0.5, size=n), z + rng.uniform(0.01, 0.5, size=n)
    high[::3], low[1::5] = np.inf, -np.inf
    centre = rng.normal(size=d) if seed > 3 else None
    weights = np.where(np.arange(n) == 2, 0.0, rng.uniform(0.5, 2.0, size=n))
    sets = fl.sets.Interval(low, high)
    problem = fl.Interpolation(X, sets, fl.penalties.L2(0.3), centre, intercept, weights)
    one, other = (fl.solve(problem, solver=name, tol=1e-9) for name in ("active_set", "newton"))
    np.testing.assert_allclose(one.w, other.w, atol=1e-4)
    again = fl.solve(problem, solver="active_set", tol=1e-9, start=one)
    assert again.n_iter <= 1


@pytest.mark.parametrize("data", [load_wine, load_breast_cancer])
def test_raw_features_have_a_certified_hard_margin(data):
    X, labels = data(return_X_y=True)
    y = np.where(labels == 1, 1.0, -1.0)
    result = fl.solve(fl.Interpolation(X, fl.sets.HalfLine(1.0, y), intercept=True), tol=1e-6)
    assert result.status == "certified"
    assert np.all(y * (X @ result.w + result.b) >= 1.0 - 1e-9)


def test_a_perceptron_ends_where_passes_do_not():
    X, labels = load_breast_cancer(return_X_y=True)
    model = fl.LpPerceptron(max_iter=20).fit(X, labels)
    assert model.certificate_.ok
    assert model.margin_ > 0.0
    assert model.score(X, labels) == 1.0
    assert len(model.n_mistakes_) <= 20


def test_classes_that_no_plane_separates_are_proven_to_be():
    X, labels = load_digits(return_X_y=True)
    y = np.where(labels == 9, 1.0, -1.0)
    sets = fl.sets.HalfLine(1.0, y)
    for solver in ("auto", "active_set"):
        with pytest.raises(fl.Infeasible) as raised:
            fl.solve(fl.Interpolation(X, sets, intercept=True), solver=solver)
        assert raised.value.certificate.verify(X, sets)


def test_what_it_does_not_take():
    X = np.eye(3)
    with pytest.raises(TypeError, match="takes no points"):
        fl.solve(fl.Interpolation(X, fl.sets.Point(np.ones(3))), solver="active_set")
    with pytest.raises(TypeError, match="one score"):
        fl.solve(fl.Interpolation(X, fl.sets.Box(np.zeros((3, 2)), np.ones((3, 2)))), solver="active_set")
