"""Stochastic gradients for functions of a kernel: those of the weights, where the kernel is linear."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

import fenchel as fl
from fenchel.steps.base import Start
from fenchel.steps.kernel.pgs import KernelPGS
from tests.helpers.registry import targets

L2, LOGISTIC = fl.penalties.L2, fl.losses.Logistic()


def data(loss, n=60, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[3] = X[4]
    return X, targets(loss, rng, n), rng.random(n) * (rng.random(n) < 0.9)


@dataclass(frozen=True)
class OwnLogistic(fl.losses.Logistic):
    """A loss without a compiled version."""

    def kernel(self):
        return None


@pytest.mark.parametrize(
    "loss",
    [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared(), fl.losses.Absolute(), OwnLogistic()],
)
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


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", lambda A, B: (A @ B.T) ** 2 + A @ B.T, "precomputed"])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Squared(), OwnLogistic()])
@pytest.mark.parametrize(("batch_size", "cache_size"), [(1, 200.0), (7, 0.005)])
def test_iterates_are_those_of_figure_1_in_the_space_of_the_kernel(kernel, loss, batch_size, cache_size):
    """With features Phi Phi' = K: the paper's steps on their weights give the same functions."""
    X, y, s = data(loss)
    given = rbf_kernel(X, gamma=0.3) if kernel == "precomputed" else X
    p = fl.KernelProblem(given, y, loss, L2(0.1), kernel, sample_weight=s, cache_size=cache_size)
    K = p.gram.block(np.arange(60), np.arange(60))
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    solver = KernelPGS(batch_size=batch_size, sampling="cyclic", ball=2.0)
    state = solver.begin(p, Start(np.zeros(60), 0.0, np.zeros(60)), 0)
    order = np.flatnonzero(p.weights > 0.0)
    v, w, t, share = np.zeros(60), np.zeros(60), 0, s / s[order].mean()
    for _ in range(3):
        state = solver.step(state)
        for first in range(0, len(order), batch_size):
            rows, t = order[first : first + batch_size], t + 1
            slopes = share[rows] * loss.derivative(features[rows] @ w, y[rows])
            v = v - features[rows].T @ slopes / len(rows)
            w = v / (0.1 * (t + 1))
            w *= min(1.0, 2.0 / np.linalg.norm(w))
        beta = solver.candidates(state)[0].w
        np.testing.assert_allclose(K @ beta, features @ w, rtol=1e-9, atol=1e-9)
    certificate = fl.certify(p, beta)
    assert certificate.primal >= fl.solve(p.replace(loss=LOGISTIC) if loss == OwnLogistic() else p).certificate.dual


def test_a_loss_of_your_own_works_with_a_kernel():
    loss = OwnLogistic()
    X, y, _ = data(loss, 100)
    p = fl.KernelProblem(X, y, loss, L2(0.1), gamma=0.5)
    best = fl.solve(fl.KernelProblem(X, y, LOGISTIC, L2(0.1), gamma=0.5), tol=1e-8).certificate
    r = fl.solve(p, tol=0.05, max_iter=300)
    assert (r.solver, r.status) == ("pgs", "certified")
    assert 0.0 <= r.certificate.primal - best.dual <= r.certificate.gap * 1.001
    assert fl.solve(fl.KernelProblem(X, y, LOGISTIC, L2(0.1), gamma=0.5)).solver == "kernel_ascent"
    with pytest.raises(TypeError, match=r"'kernel_ascent' needs .* which .* is not; 'pgs' would work"):
        fl.solve(p, "kernel_ascent")


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
