"""Multiclass problems against a conic solver that shares no code with them."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem import penalties
from tests.helpers.conic import multiclass_optimum as optimum
from tests.helpers.registry import MULTICLASS, name

STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr32": lambda X: sp.csr_array(X.astype(np.float32)),
    "C32": lambda X: X.astype(np.float32),
}
every_loss = pytest.mark.parametrize("loss", MULTICLASS, ids=name)


def draw(seed, loss, penalty, storage="C", intercept=False, weighted=True, n=45, d=5, k=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(0.5 * rng.normal(size=d)) + 0.3
    if storage.startswith("cs"):
        X = X * (rng.random((n, d)) < 0.6)
    y = np.append(np.arange(k), rng.integers(k, size=n - k))
    s = np.append(np.ones(k), rng.random(n - k) * (rng.random(n - k) < 0.9)) if weighted else None
    return fl.MulticlassProblem(STORAGES[storage](X), y, loss, penalty, s, intercept)


@every_loss
@pytest.mark.parametrize("penalty", [penalties.L2(0.03), penalties.ElasticNet(0.05, 0.5)], ids=name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
def test_solved_and_certified(loss, penalty, intercept, storage):
    problem = draw([1, len(storage), intercept], loss, penalty, storage, intercept, weighted=storage != "F")
    result = fl.solve(problem, tol=1e-6)
    best = problem.primal(*optimum(problem))
    c = result.certificate
    assert c.ok
    assert c.primal == problem.primal(result.w, result.b)
    assert c.gap >= c.primal - best
    assert best >= c.primal - c.gap
    assert problem.dual(result.alpha) == pytest.approx(c.dual, rel=1e-9)
    assert result.w.shape == (4, 5)
    assert result.b.shape == (4,)
    assert result.alpha.shape == (45, 4)


@pytest.mark.parametrize("solver", ["sdca", "newton"])
@pytest.mark.parametrize("intercept", [False, True])
def test_both_solvers_find_the_softmax_optimum(solver, intercept):
    problem = draw(3, fl.losses.Multinomial(), penalties.L2(1e-3), "csr", intercept)
    result = fl.solve(problem, solver=solver, tol=1e-9)
    assert result.certificate.ok
    assert result.solver == solver
    B, _ = optimum(problem)
    assert np.abs(result.w - B).max() <= result.certificate.weights_radius + 1e-4


@every_loss
@pytest.mark.parametrize("penalty", [penalties.L2(0.02), penalties.L1(0.02), penalties.ElasticNet(0.02, 0.6)], ids=name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["C", "csc", "C32"])
def test_certified_gap_is_never_below_true_suboptimality(loss, penalty, intercept, storage):
    problem = draw([5, intercept], loss, penalty, storage, intercept)
    B, b = optimum(problem)
    best = problem.primal(B, b)
    rng = np.random.default_rng(0)
    far, far_b = rng.normal(size=B.shape), rng.normal(size=4) * intercept
    for distance in (1.0, 0.3, 0.1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 0.0):
        at = (1 - distance) * B + distance * far, (1 - distance) * b + distance * far_b
        for effort in ("low", "auto"):
            c = fl.certify(problem, *at, effort=effort)
            assert c.gap >= problem.primal(*at) - best
            assert c.primal - c.gap <= best
    smooth = np.isfinite(loss.smoothness)
    if smooth or penalty.strong_convexity > 0:
        assert fl.certify(problem, B, b).relative_gap <= (1e-4 if smooth else 1e-3)  # the oracle is no better


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_any_multipliers_give_a_bound_below_the_optimum(loss, intercept):
    problem = draw(6, loss, penalties.L2(0.05), intercept=intercept)
    B, b = optimum(problem)
    best = problem.primal(B, b)
    rng = np.random.default_rng(1)
    for size in (0.1, 1.0, 10.0):
        alpha = size * rng.normal(size=(45, 4))
        c = fl.certify(problem, B, b, alpha=alpha, effort="low")
        assert c.primal - c.gap <= best


@every_loss
@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("lam", [1e-10, 1e10])
def test_extreme_scales_are_certified_honestly(loss, scale, lam):
    """At every scale, each lower bound lies below every primal value that is known."""
    rng = np.random.default_rng(5)
    X, y = scale * rng.normal(size=(30, 4)), np.arange(30) % 3
    for penalty in (penalties.L2(lam), penalties.ElasticNet(lam, 0.5)):
        for intercept in (False, True):
            problem = fl.MulticlassProblem(X, y, loss, penalty, intercept=intercept)
            points = [rng.normal(size=(3, 4)) * size for size in (0.0, 1e-3, 1.0, 0.1 / scale)]
            with np.errstate(over="ignore", invalid="ignore"):
                found = [(fl.certify(problem, B, effort="low"), problem.primal(B)) for B in points]
            least = min(primal for _, primal in found)
            for c, primal in found:
                assert not np.isnan([c.primal, c.dual, c.gap]).any()
                assert c.gap >= primal - least or not np.isfinite(primal)
