"""Random interpolations agree with the conic solver within their certificates; contradictions are proven."""

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import fenchel as fl
from tests.helpers.conic import PENALTY

STORAGE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}
PENALTIES = [
    fl.penalties.L2(0.7),
    fl.penalties.LpSquared(1.3, 1.5),
    fl.penalties.LpSquared(1.0, 1.2),
    fl.penalties.LpSquared(0.4, 1.05),
    fl.penalties.ElasticNet(0.9, 0.4),
    fl.penalties.Entropy(1.2),
]
KINDS = ["points", "half-lines", "intervals", "mixed", "several points", "balls", "boxes", "simplices"]


@dataclass
class Stated:
    """An interpolation, and the same for the conic solver."""

    problem: fl.Interpolation
    conic: cp.Problem
    W: cp.Variable


def _sets(kind, Z, rng):
    """Sets that contain the rows of Z, and their constraints on the scores of one sample."""
    n, k = Z.shape
    spread = rng.uniform(0.05, 0.5, size=Z.shape)
    if kind == "points":
        return fl.sets.Point(Z[:, 0]), lambda i, z: [z == Z[i]]
    if kind == "several points":
        return fl.sets.Point(Z), lambda i, z: [z == Z[i]]
    if kind == "half-lines":
        sign, bound = np.where(Z[:, 0] >= 0, 1.0, -1.0), np.abs(Z[:, 0]) * rng.uniform(size=n)
        return fl.sets.HalfLine(bound, sign), lambda i, z: [sign[i] * z >= bound[i]]
    if kind == "intervals":
        low, high = (Z - spread)[:, 0], (Z + spread)[:, 0]
        return fl.sets.Interval(low, high), lambda i, z: [z >= low[i], z <= high[i]]
    if kind == "mixed":
        each = [
            [fl.sets.Point(z), fl.sets.Interval(z - 0.3, np.inf), fl.sets.Interval(z - 0.2, z + 0.1)][i % 3]
            for i, z in enumerate(Z[:, 0])
        ]
        ends = [(float(one.ends[0]), float(one.ends[1])) for one in each]
        return each, lambda i, z: [z >= ends[i][0]] + ([z <= ends[i][1]] if np.isfinite(ends[i][1]) else [])
    if kind == "balls":
        centre = Z + 0.3 * spread
        radius = np.linalg.norm(Z - centre, axis=1) + 0.1
        return fl.sets.Ball(centre, radius), lambda i, z: [cp.norm(z - centre[i]) <= radius[i]]
    if kind == "boxes":
        low, high = Z - spread, np.where(rng.random(Z.shape) < 0.2, np.inf, Z + spread)
        return fl.sets.Box(low, high), lambda i, z: [
            z >= low[i],
            *(z[j] <= high[i, j] for j in range(k) if np.isfinite(high[i, j])),
        ]
    total = Z.sum(axis=1)
    return fl.sets.Simplex(total), lambda i, z: [z >= 0, cp.sum(z) == total[i]]


def stated(kind, penalty, seed):
    """A random feasible problem: every shape, storage, with and without an intercept and weights of zero."""
    rng = np.random.default_rng([seed, KINDS.index(kind), PENALTIES.index(penalty)])
    several = kind in ("several points", "balls", "boxes", "simplices")
    k = int(rng.integers(2, 4)) if several else 1
    n = int(rng.integers(1, 13))
    d = int(rng.integers(n, 25)) if "points" in kind or kind in ("mixed", "simplices") else int(rng.integers(1, 25))
    intercept, storage = bool(rng.integers(2)), list(STORAGE)[rng.integers(len(STORAGE))]
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    entropy = isinstance(penalty, fl.penalties.Entropy)
    if kind == "simplices":  # nonnegative scores
        X = np.abs(X)
    W0 = rng.dirichlet(np.ones(k * d)).reshape(k, d) if entropy else np.abs(rng.normal(size=(k, d)))
    Z = X @ W0.T + (rng.uniform(0.1, 1.0, size=k) if intercept else 0.0)
    weights = np.where(rng.random(n) < 0.15, 0.0, rng.uniform(0.5, 2.0, size=n)) if rng.random() < 0.4 else np.ones(n)
    weights[0] = 1.0
    sets, constraints = _sets(kind, Z, rng)
    problem = fl.Interpolation(
        STORAGE[storage](X), sets, penalty, intercept=intercept, sample_weight=weights, outputs=k
    )
    W, b = cp.Variable((k, d)), cp.Variable(k)
    value, domain = PENALTY[type(penalty)](penalty, cp.vec(W, order="C"))
    rules = [] if intercept else [b == 0]
    for i in np.flatnonzero(weights > 0):
        rules += constraints(i, X[i] @ W.T + b)
    return Stated(problem, cp.Problem(cp.Minimize(value), domain + rules), W)


def optimum(one):
    """The conic solver's value, and how far it may be off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            one.conic.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=300)
        except cp.SolverError:
            return None
    if one.conic.status == "optimal":
        return one.conic.value, 1e-6 * (1.0 + abs(one.conic.value))
    return (one.conic.value, 1e-3 * (1.0 + abs(one.conic.value))) if one.conic.status == "optimal_inaccurate" else None


def check(kind, penalty, seed):
    one = stated(kind, penalty, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        result = fl.solve(one.problem, tol=1e-6, max_iter=10**6)
    c = result.certificate
    assert one.problem.violation(result.w, result.b) <= c.violation + 1e-14
    found = optimum(one)
    if found is not None:
        best, off = found
        assert c.primal - c.gap <= best + off
        if c.feasible:
            assert c.primal >= best - off
            assert c.primal - best <= c.gap + off
            if np.isfinite(c.weights_radius) and one.problem.penalty.norm == 2.0:
                far = np.linalg.norm(np.ravel(result.w) - one.W.value.ravel())
                assert far <= c.weights_radius + np.sqrt(2.0 * off / one.problem.penalty.strong_convexity)
    return c.ok


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_solutions_agree_with_the_conic_solver(kind, penalty):
    assert check(kind, penalty, 0)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_many_solutions_agree_with_the_conic_solver(kind, penalty):
    certified = [check(kind, penalty, seed) for seed in range(1, 8)]
    assert sum(certified) >= 6


def contradiction(seed):
    """More samples than weights: targets of a model, or random ones; whether an LP finds a feasible point."""
    rng = np.random.default_rng([5, seed])
    d, intercept = int(rng.integers(1, 12)), bool(rng.integers(2))
    n = int(rng.integers(d + 3, 60))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[:, 0] = 0.0
    if rng.random() < 0.3 and d > 2:
        X[:, 1] = X[:, 2]
    y = X @ rng.normal(size=d) + intercept if seed % 2 else rng.normal(size=n)
    kind = ["intervals", "half-lines"][rng.integers(2)] if seed % 2 else KINDS[rng.integers(3)]
    if kind == "half-lines":
        low = np.where(y >= 0, 0.9 * np.abs(y), -np.inf)
        high = np.where(y >= 0, np.inf, -0.9 * np.abs(y))
    else:
        half = 0.2 if kind == "intervals" else 0.0
        low, high = y - half, y + half
    penalty = [fl.penalties.L2(1.0), fl.penalties.LpSquared(1.0, 1.5), fl.penalties.ElasticNet(1.0, 0.3)][seed % 3]
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    up, down = np.isfinite(high), np.isfinite(low)
    lp = linprog(
        np.zeros(A.shape[1]),
        A_ub=np.vstack([A[up], -A[down]]),
        b_ub=np.concatenate([high[up], -low[down]]),
        bounds=(None, None),
    )
    return X, fl.sets.Interval(low, high), penalty, intercept, lp.status == 0


def prove(seed):
    X, sets, penalty, intercept, feasible = contradiction(seed)
    problem = fl.Interpolation(X, sets, penalty, intercept=intercept)
    if feasible:
        assert fl.solve(problem, tol=1e-6).certificate.ok
        return
    with pytest.raises(fl.Infeasible) as caught:
        fl.solve(problem, tol=1e-6)
    certificate = caught.value.certificate
    assert certificate.verify(X, sets)
    # at least as large a violation as it says, also where it is least
    least = fl.solve(problem.replace(on_infeasible="least_violation"), tol=1e-6)
    assert least.certificate.ok
    assert least.certificate.primal >= certificate.excess


@pytest.mark.parametrize("seed", range(12))
def test_contradictions_are_proven_and_nothing_else(seed):
    prove(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 112))
def test_many_contradictions_are_proven_and_nothing_else(seed):
    prove(seed)
