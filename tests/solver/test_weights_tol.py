"""Stopping on the proven distance of the weights."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

import fenchel as fl
from fenchel.certificate.bounds.rounding import distance_to_optimum
from fenchel.problem.losses import Logistic, Multinomial
from fenchel.problem.penalties import L1, L2, ElasticNet
from fenchel.solver.solve import gap_for_distance

X, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(X), 2.0 * Y - 1.0
PROBLEM = fl.Problem(X, Y, Logistic(), L2(1e-2), intercept=True)


@pytest.mark.parametrize("penalty", [L2(1e-2), ElasticNet(1e-2, 0.5)], ids=str)
@pytest.mark.parametrize("distance", [0.5, 1e-2, 1e-4])
def test_the_weights_are_within_the_distance_of_the_optimum(penalty, distance):
    problem = PROBLEM.replace(penalty=penalty)
    best = fl.solve(problem, tol=1e-13, warn=False).w
    result = fl.solve(problem, weights_tol=distance)
    assert result.status == "certified"
    assert result.certificate.ok
    assert np.linalg.norm(result.w - best) <= result.certificate.weights_radius <= distance


def test_a_large_distance_takes_no_more_steps_than_a_small_one():
    steps = [fl.solve(PROBLEM, solver="fista", weights_tol=r).n_iter for r in (1.0, 1e-1, 1e-2)]
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]


def test_other_statements_have_it_too():
    features, labels = load_iris(return_X_y=True)
    several = fl.MulticlassProblem(features, labels, Multinomial(), L2(1e-2))
    kernel = fl.KernelProblem(features[:100], 2.0 * labels[:100] - 1.0, fl.losses.Hinge(), L2(1e-2), kernel="rbf")
    for problem in (several, kernel):
        assert fl.solve(problem, weights_tol=1e-3).certificate.weights_radius <= 1e-3


@pytest.mark.parametrize("mu", [1e-300, 1e-12, 1.0, 3.7, 1e12])
@pytest.mark.parametrize("distance", [1e-160, 1e-9, 0.1, 7.0])
def test_the_gap_of_a_distance_proves_it(mu, distance):
    gap = gap_for_distance(PROBLEM.replace(penalty=L2(mu)), distance, 0.0)
    radius = distance_to_optimum(gap, mu)
    assert radius <= distance
    assert radius >= 0.999 * distance or gap < 1e-300


def test_what_cannot_be_proven_is_refused():
    with pytest.raises(ValueError, match=r"strongly convex penalty.*L1"):
        fl.solve(PROBLEM.replace(penalty=L1(0.1)), weights_tol=0.1)
    with pytest.raises(ValueError, match="takes the place of atol"):
        fl.solve(PROBLEM, weights_tol=0.1, atol=0.1)
    with pytest.raises(ValueError, match="takes the place of tol"):
        fl.solve(PROBLEM, weights_tol=0.1, tol=0.1)
    for wrong in (0.0, -1.0, True, "1", np.nan):
        with pytest.raises(ValueError, match="weights_tol must be a positive number"):
            fl.solve(PROBLEM, weights_tol=wrong)


def test_a_distance_that_rounding_does_not_allow_is_a_warning_with_the_gap():
    with pytest.warns(fl.NotCertifiedWarning, match="did not reach atol="):
        result = fl.solve(PROBLEM, weights_tol=1e-12)
    assert 1e-12 < result.certificate.weights_radius < 1e-3
