"""Newton steps on the multipliers of the elastic net, where there are more weights than samples."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.solver.solve import Clock, Request, follow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 600))
Y = X[:, :10].sum(axis=1) + RNG.normal(size=20)


def problem(lam=0.05, ratio=0.5, **options):
    return fl.Problem(X, Y, fl.losses.Squared(), fl.penalties.ElasticNet(lam, ratio), **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weights", [None, np.arange(20.0)], ids=["equal", "weights"])
@pytest.mark.parametrize("ratio", [0.1, 0.9, 0.999])
def test_it_has_the_optimum_of_coordinate_descent(ratio, weights, intercept):
    stated = problem(ratio=ratio, sample_weight=weights, intercept=intercept)
    own, other = (fl.solve(stated, solver=name, tol=1e-10) for name in ("dual_newton", "primal_cd"))
    assert own.status == "certified"
    assert own.n_iter <= (30 if ratio < 0.99 else 300)
    assert own.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-10)


def test_a_path_goes_on_with_it_once_there_are_many_weights():
    stated = problem(ratio=0.1, intercept=True)
    lams = stated.lam_max() * np.logspace(-0.3, -4, 40)
    results = list(follow(stated, [stated.penalty.with_lam(lam) for lam in lams], Request(), None, Clock(None)))
    solvers = [result.solver for result in results]
    assert all(result.status == "certified" for result in results)
    assert (solvers[0], solvers[-1]) == ("sparse_path", "dual_newton")


def test_a_single_lam_with_many_weights_is_its_own_too():
    result = fl.solve(problem(1e-3, 0.1))
    assert (result.solver, result.status) == ("dual_newton", "certified")


def test_it_refuses_what_it_cannot_solve():
    with pytest.raises(TypeError, match="ElasticNet"):
        fl.solve(fl.Problem(X, Y, fl.losses.Squared(), fl.penalties.L2(0.1)), solver="dual_newton")
    with pytest.raises(TypeError, match="no fewer columns than samples"):
        fl.solve(
            fl.Problem(X.T, np.ones(600), fl.losses.Squared(), fl.penalties.ElasticNet(0.1, 0.5)), solver="dual_newton"
        )
