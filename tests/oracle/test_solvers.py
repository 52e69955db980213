"""Every loss with every penalty is solved, and agrees with the conic solver within its certificate."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem import Trait
from fenchel.steps import PrimalCD
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import LOSSES, name, penalties_for, targets


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("which", range(len(penalties_for(3))))
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_solved_and_certified(loss, which, intercept):
    rng = np.random.default_rng([7, which, LOSSES.index(loss), intercept])
    n, d = 50, 6
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    y = targets(loss, rng, n)
    storage = [lambda X: X, sp.csr_array, sp.csc_array, np.asfortranarray][rng.integers(4)]
    problem = fl.Problem(storage(X), y, loss, penalties_for(d, 0.03)[which], rng.random(n), intercept)
    solvers = ["fista", "pdhg"] if Trait.DIFFERENTIABLE_LOSS in loss.traits else ["pdhg"]
    if Trait.PROX_PENALTY not in problem.penalty.traits:
        solvers = ["pdhg"]
    if PrimalCD.requires <= loss.traits | problem.penalty.traits:
        solvers = [*solvers, "primal_cd"]
    results = [fl.solve(problem, solver=solver, tol=1e-5, max_iter=30_000) for solver in solvers]
    best = problem.primal(*reliable_optimum(problem))
    for result in results:
        c = result.certificate
        assert c.ok
        assert c.gap >= c.primal - best
