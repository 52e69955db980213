"""SDCA and Newton agree with the conic solver within their certificates, for every loss, penalty, storage and dtype."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import LOSSES, name, targets

STORAGE = {
    "C": np.ascontiguousarray,
    "csr32": sp.csr_array,
    "csr64": lambda X: _wide(sp.csr_array(X)),
}


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _penalties(lam):
    return {
        "l2": fl.penalties.L2(lam),
        "elastic_net": fl.penalties.ElasticNet(lam, 0.4),
        "lp": fl.penalties.LpSquared(lam, 1.4),
        "lp_ball": fl.penalties.LpSquared(lam, 1.6, radius=0.5),
    }


def _problem(loss, penalty, intercept, weighted, storage, dtype):
    rng = np.random.default_rng([LOSSES.index(loss), intercept, weighted, len(storage), dtype is np.float32])
    n, d = 60, 7
    X = (rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7) + 0.3).astype(dtype)
    X[3] = 0.0  # a row without entries
    weights = np.where(rng.random(n) < 0.1, 0.0, rng.random(n)) if weighted else None
    return fl.Problem(STORAGE[storage](X), targets(loss, rng, n), loss, penalty, weights, intercept)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", _penalties(0.05).values(), ids=_penalties(0.05).keys())
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_sdca_and_newton_reach_the_optimum(loss, penalty, intercept):
    cases = [(weighted, storage, dtype) for weighted in (False, True) for storage in STORAGE for dtype in ("f4", "f8")]
    # every combination over the whole test; a few of them, with one optimum each, here
    chosen = np.random.default_rng([LOSSES.index(loss), intercept]).permutation(len(cases))[:3]
    for weighted, storage, dtype in (cases[k] for k in chosen):
        problem = _problem(loss, penalty, intercept, weighted, storage, np.dtype(dtype).type)
        best = problem.primal(*reliable_optimum(problem))
        for solver in ["sdca", "newton"] if penalty.quadratic else ["sdca"]:
            result = fl.solve(problem, solver=solver, tol=1e-6)
            c = result.certificate
            assert c.ok, (solver, weighted, storage, dtype)
            assert c.gap >= c.primal - best, (solver, weighted, storage, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", _penalties(0.05).values(), ids=_penalties(0.05).keys())
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_sdca_and_newton_in_every_combination(loss, penalty, intercept, weighted, dtype, storage):
    problem = _problem(loss, penalty, intercept, weighted, storage, dtype)
    best = problem.primal(*reliable_optimum(problem))
    for solver in ["sdca", "newton"] if penalty.quadratic else ["sdca"]:
        c = fl.solve(problem, solver=solver, tol=1e-8).certificate
        assert c.ok
        assert c.gap >= c.primal - best


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared()], ids=name)
def test_penalised_intercept(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 4))
    design = fl.data.Design(X, constant=2.0)
    problem = fl.Problem(design, targets(loss, rng, 50), loss, fl.penalties.L2(0.01))
    best = problem.primal(*reliable_optimum(problem))
    for solver in ("sdca", "newton"):
        c = fl.solve(problem, solver=solver, tol=1e-8).certificate
        assert c.ok
        assert c.gap >= c.primal - best
