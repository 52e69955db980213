"""What "auto" chooses."""

import numpy as np
import pytest

import fenchel as fl
from tests.helpers.registry import name
from tests.steps.test_newton import separable


def test_auto_is_newton_where_narrow_and_sdca_where_wide():
    X, y = separable(500, 5)
    many, signs = separable(6000, 5)
    wide, labels = separable(200, 3000, density=0.01)
    L2 = fl.penalties.L2(1e-3)
    assert fl.solve(fl.Problem(X, y, fl.losses.Logistic(), L2)).solver == "newton"
    assert fl.solve(fl.Problem(wide, labels, fl.losses.Logistic(), L2)).solver == "sdca"
    assert fl.solve(fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(10.0))).solver == "newton"
    assert fl.solve(fl.Problem(many, signs, fl.losses.Hinge(), fl.penalties.L2(10.0))).solver == "sdca"
    assert fl.solve(fl.Problem(many, signs, fl.losses.Hinge(), fl.penalties.L2(1e-6))).solver == "newton"
    assert fl.solve(fl.Problem(np.asfortranarray(X), y, fl.losses.Logistic(), L2)).solver == "fista"
    assert fl.solve(fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(1e-2))).solver == "primal_cd"


@pytest.mark.parametrize(
    ("loss", "intercept", "lam", "solver"),
    [
        (fl.losses.Squared(), True, 1e-4, "newton"),  # no momentum helps a free intercept
        (fl.losses.Squared(), False, 1e-2, "sdca"),
        (fl.losses.Logistic(), True, 1e-5, "newton"),
        (fl.losses.SquaredHinge(), True, 1e-4, "sdca"),  # curvatures come and go where samples are few
    ],
    ids=name,
)
def test_auto_is_newton_where_wide_and_dual_ascent_takes_very_long(loss, intercept, lam, solver):
    X, y = separable(1500, 1200, density=0.02)
    result = fl.solve(fl.Problem(X, y, loss, fl.penalties.L2(lam), intercept=intercept))
    assert (result.solver, result.certificate.ok) == (solver, True)


@pytest.mark.parametrize(
    ("intercept", "lam", "solver"), [(True, 1e-4, "newton"), (False, 1e-4, "sdca"), (True, 1e-1, "sdca")]
)
def test_auto_is_newton_where_tall_and_an_intercept_makes_dual_ascent_slow(intercept, lam, solver):
    X, y = separable(4000, 1200, density=0.02)
    problem = fl.Problem(X, y, fl.losses.SquaredHinge(), fl.penalties.L2(lam), intercept=intercept)
    result = fl.solve(problem)
    assert (result.solver, result.certificate.ok) == (solver, True)


@pytest.mark.parametrize(
    ("loss", "tol", "intercept", "solver"),
    [
        (fl.losses.Logistic(), 1e-3, False, "sdca"),  # a Hessian of 500 dense columns is dear
        (fl.losses.Logistic(), 1e-3, True, "newton"),
        (fl.losses.Squared(), 1e-3, False, "newton"),
        (fl.losses.SquaredHinge(), 1e-6, False, "newton"),
    ],
    ids=name,
)
def test_auto_is_sdca_where_momentum_beats_dense_hessians(loss, tol, intercept, solver):
    X = np.random.default_rng(0).normal(size=(6000, 500)) / 10.0
    problem = fl.Problem(X, np.sign(X[:, 0]), loss, fl.penalties.L2(1e-3), intercept=intercept)
    for threads in (1, 2):
        result = fl.solve(problem, tol=tol, n_threads=threads)
        assert (result.solver, result.certificate.ok) == (solver, True)
