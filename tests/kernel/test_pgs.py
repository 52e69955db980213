"""Stochastic gradients for functions of a kernel: those of the weights, where the kernel is linear."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from tests.helpers.registry import targets

L2 = fl.penalties.L2


def data(loss, n=60, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[3] = X[4]
    return X, targets(loss, rng, n), rng.random(n) * (rng.random(n) < 0.9)


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared(), fl.losses.Absolute()])
@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("output", ["last", "average", "random"])
@pytest.mark.parametrize("cache_size", [200.0, 0.005])
def test_iterates_are_those_of_the_linear_solver(loss, batch_size, output, cache_size):
    X, y, s = data(loss)
    for intercept, sampling in ((False, "uniform"), (True, "permutation"), (False, "cyclic")):
        options = {"batch_size": batch_size, "output": output, "sampling": sampling, "random_state": 3}
        models = []
        kernel = fl.KernelProblem(
            X, y, loss, L2(0.1), "linear", sample_weight=s, intercept=intercept, cache_size=cache_size
        )
        for p in (fl.Problem(X, y, loss, L2(0.1), s, intercept), kernel):
            seen = []
            fl.solve(p, "pgs", tol=0.0, max_iter=3, check_every=1, warn=False, callback=seen.append, **options)
            models.append([np.append(X.T @ c.w if p is kernel else c.w, c.b) for c in seen])
        np.testing.assert_allclose(models[1], models[0], atol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_it_approaches_the_optimum(storage):
    loss = fl.losses.Hinge()
    X, y, _ = data(loss, 300)
    p = fl.KernelProblem(storage(X), y, loss, L2(0.05), gamma=0.5)
    best = fl.solve(p, tol=1e-8).certificate.primal
    r = fl.solve(p, "pgs", tol=0.0, max_iter=60, warn=False)
    assert best <= r.certificate.primal <= best * 1.03
    assert r.certificate.primal - r.certificate.gap <= best


def test_a_start_counts():
    loss = fl.losses.Hinge()
    X, y, _ = data(loss, 100)
    p = fl.KernelProblem(X, y, loss, L2(0.1), gamma=0.5)
    near = fl.solve(p, tol=1e-6)
    r = fl.solve(p, "pgs", tol=0.0, max_iter=1, start=near, warn=False)
    assert r.certificate.primal <= near.certificate.primal * 1.1
