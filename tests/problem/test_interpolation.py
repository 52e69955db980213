"""The statement of an interpolation: shapes, sets, the divergence from a centre, and errors before any work."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem.penalties.bregman import Bregman

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 8))
PENALTIES = [
    fl.penalties.L2(0.7),
    fl.penalties.LpSquared(1.3, 1.4),
    fl.penalties.ElasticNet(0.9, 0.4),
    fl.penalties.Entropy(1.2),
]


def simplex(size):
    return rng.dirichlet(np.ones(size))


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_weak_duality(penalty):
    entropy = isinstance(penalty, fl.penalties.Entropy)
    for intercept in (False, True):
        w = simplex(8) if entropy else rng.normal(size=8)
        z = X @ w + 0.3 * intercept
        problem = fl.Interpolation(X, fl.sets.Interval(z - 0.1, z + 0.2), penalty, intercept=intercept)
        for _ in range(20):
            alpha = rng.normal(size=5)
            alpha -= alpha.mean() * intercept
            assert problem.dual(alpha) <= problem.primal(w) + 1e-12


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_a_divergence_is_zero_at_its_centre_and_obeys_fenchel_and_young(penalty):
    entropy = isinstance(penalty, fl.penalties.Entropy)
    centre = simplex(8) if entropy else rng.normal(size=8)
    divergence = Bregman(penalty, centre)
    assert abs(divergence.value(centre)) < 1e-12
    for _ in range(20):
        w, v = simplex(8) if entropy else rng.normal(size=8), rng.normal(size=8)
        assert divergence.value(w) > -1e-12
        assert divergence.value(w) + divergence.conjugate(v) >= v @ w - 1e-12
        best = divergence.grad_conjugate(v)
        assert abs(divergence.value(best) + divergence.conjugate(v) - v @ best) < 1e-9
        assert divergence.conjugate_upper(v, np.zeros(8)) >= divergence.conjugate(v)
        assert divergence.value_upper(w) >= divergence.value(w)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_derivative_of_the_link(penalty):
    v, step = 3.0 * rng.normal(size=8), 1e-6
    derivative = penalty.link_derivative(v)
    for _ in range(5):
        direction = rng.normal(size=8)
        difference = penalty.grad_conjugate(v + step * direction) - penalty.grad_conjugate(v - step * direction)
        np.testing.assert_allclose(derivative.times(direction), difference / (2 * step), atol=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_bound_near_a_point_holds(penalty):
    entropy = isinstance(penalty, fl.penalties.Entropy)
    for _ in range(20):
        w = simplex(8) if entropy else rng.normal(size=8)
        error = 0.3 * np.abs(w) * rng.random(8)
        bound = penalty.value_upper_near(w, error)
        for _ in range(20):
            u = w + error * rng.uniform(-1.0, 1.0, size=8)
            if entropy:
                u = w + (u - w) - (u - w).mean()
                if np.any(np.abs(u - w) > error) or np.any(u < 0):
                    continue
                u = u / u.sum()
            assert penalty.value(u) <= bound


def test_blocks_and_outputs_are_the_same_problem():
    """z_i = B x_i as blocks: X_i' = [x_i' in the columns of each row of B]."""
    blocks = np.stack([np.kron(np.eye(3), x[:, None]) for x in X])  # 5 x 24 x 3
    centre, B = rng.normal(size=(5, 3)), rng.normal(size=(3, 8))
    ball = fl.sets.Ball(centre, 0.3)
    several = fl.Interpolation(X, ball)
    for same in (fl.Interpolation(blocks, ball), fl.Interpolation([sp.csr_array(block) for block in blocks], ball)):
        assert same.outputs == several.outputs == 3
        np.testing.assert_allclose(same.scores(B.ravel()), several.scores(B))
        alpha = rng.normal(size=(5, 3))
        np.testing.assert_allclose(same.dual(alpha), several.dual(alpha))
        first, second = (fl.solve(problem, tol=1e-7) for problem in (same, several))
        np.testing.assert_allclose(first.w, second.w.ravel(), atol=1e-3)


def test_sets_differ_by_sample_and_may_be_foreign():
    class Positive:
        def project(self, z):
            return np.maximum(z, 0.0)

        def support(self, u):
            return np.where(u <= 0, 0.0, np.inf)

    sets = [fl.sets.Point(1.0), Positive(), fl.sets.Interval(-1.0, 1.0), fl.sets.HalfLine(2.0), Positive()]
    result = fl.solve(fl.Interpolation(X, sets), tol=1e-3, max_iter=3000, warn=False)
    z = X @ result.w
    assert abs(z[0] - 1.0) < 1e-4
    assert min(z[1], z[4]) > -1e-4
    assert abs(z[2]) < 1.0 + 1e-4
    assert z[3] > 2.0 - 1e-4


BAD = [
    (lambda: fl.Interpolation(X, fl.sets.Point(np.ones(4))), "does not fit 5 samples"),
    (lambda: fl.Interpolation(X, [fl.sets.Point(1.0)] * 4), "there are 4 sets, but X has 5 samples"),
    (lambda: fl.sets.Point(np.array([1.0, np.nan])), "y is NaN at position"),
    (lambda: fl.sets.Interval(1.0, 0.0), "the set would be empty"),
    (lambda: fl.sets.Interval(np.inf, np.inf), "the set would be empty"),
    (lambda: fl.sets.HalfLine(1.0, 0.5), "sign must be -1 or"),
    (lambda: fl.sets.Ball(np.zeros(2), -1.0), "radius must be a positive finite number"),
    (lambda: fl.Interpolation(X, fl.sets.Simplex(1.0, 0.6), outputs=3), "add up to more than the total"),
    (lambda: fl.Interpolation(X, fl.sets.Point(1.0), centre=np.ones(7)), r"centre must have the shape of the weights"),
    (lambda: fl.Interpolation(X, fl.sets.Point(1.0), on_infeasible="ignore"), "on_infeasible must be one of"),
    (lambda: fl.Interpolation([X, X[:, :2]], fl.sets.Point(1.0)), "all blocks of X must have one shape"),
    (lambda: fl.Interpolation(np.full((2, 2), np.nan), fl.sets.Point(1.0)), "nan"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_a_clear_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_types_are_clear_errors():
    with pytest.raises(TypeError, match="needs a strongly convex penalty"):
        fl.Interpolation(X, fl.sets.Point(1.0), fl.penalties.L1(1.0))
    with pytest.raises(TypeError, match=r"must be a set of fenchel\.sets"):
        fl.Interpolation(X, np.ones(5))
    with pytest.raises(TypeError, match="an instance, not the class"):
        fl.Interpolation(X, fl.sets.Point)
