"""The certificate against a conic solver that shares no code with it."""

import cvxpy as cp
import numpy as np
import pytest

import fenchel as fl
from tests.helpers.conic import domain_point, reliable_optimum
from tests.helpers.registry import LOSSES, name, penalties_for, targets

#: From random to optimal: how far to stand from the optimum.
DISTANCES = (
    1.0,
    0.7,
    0.5,
    0.3,
    0.2,
    0.1,
    0.05,
    0.02,
    1e-2,
    3e-3,
    1e-3,
    3e-4,
    1e-4,
    1e-5,
    1e-6,
    1e-7,
    1e-8,
    1e-9,
    1e-10,
    0.0,
)


def random_problem(loss, which, rng, dtype=np.float64):
    """A problem with random shape, weights, lam and intercept, and its optimum; drawn again where the oracle gives
    up.
    """
    n, d = int(rng.integers(15, 60)), int(rng.integers(3, 9))
    penalty = penalties_for(d, 10.0 ** rng.uniform(-2.5, -0.5))[which]
    n += 10 * d * penalty.is_zero  # no classifier separates so many
    weights = rng.random(n) * (rng.random(n) < 0.9) if rng.random() < 0.5 else None
    X, y = rng.normal(size=(n, d)).astype(dtype), targets(loss, rng, n)
    if weights is not None:
        weights[:2] = 1.0  # the two labels that are sure to differ
    problem = fl.Problem(X, y, loss, penalty, weights, intercept=bool(rng.random() < 0.5))
    try:
        return problem, *reliable_optimum(problem)
    except cp.SolverError:
        return random_problem(loss, which, rng, dtype)


def check(problem, w, b, rng, efforts):
    """The certified gap is never below the true suboptimality, and small at the optimum."""
    best = problem.primal(w, b)
    d = len(w)
    far, far_b = domain_point(problem.penalty, rng.normal(size=d)), float(rng.normal()) * problem.intercept
    for distance in DISTANCES:
        at = (1 - distance) * w + distance * far, (1 - distance) * b + distance * far_b
        suboptimality = problem.primal(*at) - best
        effort = "auto" if distance < 1e-3 else "low"
        assert fl.certify(problem, *at, effort=effort).gap >= suboptimality
    for effort, bound in efforts.items():
        c = fl.certify(problem, w, b, effort=effort)
        assert c.relative_gap <= bound, f"{problem!r}, {effort}: {c}"


@pytest.mark.parametrize("which", range(len(penalties_for(3))))
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_certified_gap_is_never_below_true_suboptimality(loss, which):
    rng = np.random.default_rng([which, LOSSES.index(loss)])
    problem, w, b = random_problem(loss, which, rng)
    check(problem, w, b, rng, {"auto": 1e-4} if loss.kinks(problem.y) else {"low": 1e-6})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("which", range(len(penalties_for(3))))
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_certified_gap_at_length(loss, which, seed, dtype):
    """432 problems at 20 points each, with both efforts at the optimum."""
    rng = np.random.default_rng([100 + seed, which, LOSSES.index(loss)])
    problem, w, b = random_problem(loss, which, rng, dtype)
    check(problem, w, b, rng, {"auto": 1e-4, "high": 1e-6} if loss.kinks(problem.y) else {"low": 1e-6})


@pytest.mark.slow
@pytest.mark.parametrize("lam", [1e-10, 1e-3, 1e10])
@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_scaled_problems_are_certified_honestly(loss, scale, lam):
    """At every scale, each lower bound lies below every primal value that is known."""
    rng = np.random.default_rng(5)
    n, d = 30, 4
    X, y = rng.normal(size=(n, d)), targets(loss, rng, n)
    for penalty in penalties_for(d, lam):
        for intercept in (False, True):
            problem = fl.Problem(scale * X, y, loss, penalty, intercept=intercept)
            points = [domain_point(penalty, rng.normal(size=d) * size) for size in (1e-3, 1.0, 1 / scale, 0.1 / scale)]
            with np.errstate(over="ignore"):
                found = [(fl.certify(problem, w, effort="low"), problem.primal(w)) for w in points]
            best = min(primal for _, primal in found)
            for c, primal in found:
                assert not np.isnan([c.primal, c.dual, c.gap, c.relative_gap]).any()
                assert c.gap >= primal - best or not np.isfinite(primal)
