"""The certificate against exact rational arithmetic, on the same floating-point data."""

from decimal import Decimal, localcontext
from fractions import Fraction as Q
from itertools import pairwise

import numpy as np
import pytest

import fenchel as fl
from fenchel.problem import losses, penalties
from tests.helpers.registry import name, targets

LOSS = {
    losses.Hinge: lambda f, z, y: max(Q(0), 1 - y * z),
    losses.SquaredHinge: lambda f, z, y: max(Q(0), 1 - y * z) ** 2,
    losses.SmoothedHinge: lambda f, z, y: _huber(max(Q(0), 1 - y * z), Q(f.gamma)) / Q(f.gamma),
    losses.Squared: lambda f, z, y: (z - y) ** 2 / 2,
    losses.Absolute: lambda f, z, y: abs(z - y),
    losses.Pinball: lambda f, z, y: max(Q(f.tau) * (y - z), (1 - Q(f.tau)) * (z - y)),
    losses.EpsilonInsensitive: lambda f, z, y: max(Q(0), abs(z - y) - Q(f.epsilon)),
    losses.SquaredEpsilonInsensitive: lambda f, z, y: max(Q(0), abs(z - y) - Q(f.epsilon)) ** 2,
    losses.Huber: lambda f, z, y: _huber(z - y, Q(f.delta)),
    losses.Logistic: lambda f, z, y: _logistic(y * z),
}
PENALTY = {
    penalties.L2: lambda r, w: Q(r.lam) / 2 * sum(x * x for x in w),
    penalties.L1: lambda r, w: Q(r.lam) * sum(map(abs, w)),
    penalties.ElasticNet: lambda r, w: (
        Q(r.lam) * (Q(r.l1_ratio) * sum(map(abs, w)) + (1 - Q(r.l1_ratio)) / 2 * sum(x * x for x in w))
    ),
    penalties.NoPenalty: lambda r, w: Q(0),
    penalties.FusedL1: lambda r, w: Q(r.lam) * sum(abs(b - a) for a, b in pairwise(w)),
    penalties.GroupL2: lambda r, w: (
        Q(r.lam)
        * sum(
            Q(float(weight)) * _root(sum(x * x for x, g in zip(w, r.groups, strict=True) if g == k))
            for k, weight in enumerate(r.weights)
        )
    ),
}


def _huber(r, delta):
    return r * r / 2 if abs(r) <= delta else delta * abs(r) - delta * delta / 2


def _root(square):
    """To 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return Q((Decimal(square.numerator) / Decimal(square.denominator)).sqrt())


def _logistic(m):
    """log(1 + exp(-m)) to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        margin = Decimal(abs(m.numerator)) / Decimal(m.denominator)
        return Q((1 + (-margin).exp()).ln()) + max(Q(0), -m)


def exact(problem, w, b):
    """P(w, b), every digit of it."""
    w = [Q(x) for x in w]
    total, weight = Q(0), Q(0)
    for row, y, s in zip(problem.design.matrix, problem.y, problem.weights, strict=True):
        z = sum(Q(float(x)) * u for x, u in zip(row, w, strict=True)) + Q(b)
        total += Q(s) * LOSS[type(problem.loss)](problem.loss, z, Q(y))
        weight += Q(s)
    return total / weight + PENALTY[type(problem.penalty)](problem.penalty, w)


def gaps_of_paths_hold(problem, shares):
    """No gap is below the distance to the best model known, both objectives exact, at shares of lam_max."""
    for lam in problem.lam_max() * np.array(shares):
        at = problem.with_lam(lam)
        best = fl.solve(at, tol=1e-13, max_iter=100, warn=False)
        lowest = exact(at, best.w, best.b)
        for tol in (1e-1, 1e-4, 1e-8):
            found = fl.path(problem, lams=[lam], tol=tol, max_iter=200, warn=False)[0]
            c = found.certificate
            assert exact(at, found.w, found.b) - lowest <= c.gap
            assert c.primal - c.gap <= lowest


def plain(rng, n, d):
    return rng.normal(size=(n, d))


def offset(rng, n, d):
    return 1e8 + plain(rng, n, d)


def cancelling(rng, n, d):
    """Two columns that all but cancel."""
    X = plain(rng, n, d)
    return np.column_stack([1e6 * X[:, :1] + X[:, 1:2], -1e6 * X[:, :1], X[:, 2:]])


def badly_scaled(rng, n, d):
    return plain(rng, n, d) * 10.0 ** np.linspace(-6, 6, d)


def single(rng, n, d):
    return plain(rng, n, d).astype(np.float32)


slow = [pytest.param(design, marks=pytest.mark.slow) for design in (plain, offset, badly_scaled, single)]


@pytest.mark.parametrize("design", [cancelling, *slow])
@pytest.mark.parametrize("penalty", [penalties.L2, penalties.L1, penalties.ElasticNet, penalties.FusedL1])
@pytest.mark.parametrize("loss", [kind() for kind in LOSS], ids=name)
def test_the_gap_holds_in_exact_arithmetic(loss, penalty, design):
    rng = np.random.default_rng(0)
    n, d = 14, 4
    X, y = design(rng, n, d), targets(loss, rng, n)
    for intercept in (False, True):
        problem = fl.Problem(X, y, loss, penalty(0.03), rng.random(n) + 1e-3, intercept)
        best = fl.solve(problem, tol=1e-13, max_iter=900, warn=False)
        lowest = exact(problem, best.w, best.b)
        assert best.certificate.primal - best.certificate.gap <= lowest
        for distance in (1.0, 1e-3, 1e-6, 1e-9, 0.0):
            w = best.w + distance * rng.normal(size=d) * (1 + np.abs(best.w))
            b = best.b + distance * float(rng.normal()) if intercept else 0.0
            c = fl.certify(problem, w, b, alpha=best.alpha, effort="low")
            assert Q(c.gap) >= exact(problem, w, b) - lowest


@pytest.mark.parametrize("design", [cancelling, badly_scaled, *slow])
@pytest.mark.parametrize("loss", [kind() for kind in LOSS], ids=name)
def test_the_gap_without_a_penalty_holds_in_exact_arithmetic(loss, design):
    rng = np.random.default_rng(0)
    n, d = 30, 4
    X, y = design(rng, n, d), targets(loss, rng, n)
    for intercept in (False, True):
        problem = fl.Problem(X, y, loss, penalties.NoPenalty(), rng.random(n) + 1e-3, intercept)
        best = fl.solve(problem, tol=1e-13, max_iter=100, warn=False)
        lowest = exact(problem, best.w, best.b)
        assert best.certificate.relative_gap <= 1e-5
        assert best.certificate.primal - best.certificate.gap <= lowest
        for distance in (1.0, 1e-3, 1e-6, 1e-9, 0.0):
            w = best.w + distance * rng.normal(size=d) * (1 + np.abs(best.w))
            b = best.b + distance * float(rng.normal()) if intercept else 0.0
            c = fl.certify(problem, w, b, alpha=best.alpha, effort="low")
            assert Q(c.gap) >= exact(problem, w, b) - lowest


@pytest.mark.parametrize("size", [1e-9, 1e-20, 1e-150, 1e9])
@pytest.mark.parametrize("loss", [kind() for kind in LOSS if not kind.is_classification], ids=name)
def test_the_gap_of_targets_of_any_size_holds_in_exact_arithmetic(loss, size):
    rng = np.random.default_rng(1)
    n, d = 14, 4
    X, y = plain(rng, n, d), size * rng.normal(size=n)
    for intercept in (False, True):
        problem = fl.Problem(X, y, loss, penalties.L2(0.03), rng.random(n) + 1e-3, intercept)
        best = fl.solve(problem, tol=1e-13, max_iter=900, warn=False)
        lowest = exact(problem, best.w, best.b)
        assert Q(best.certificate.primal) - Q(best.certificate.gap) <= lowest
        for distance in (1.0, 1e-3, 0.0):
            w = best.w + distance * rng.normal(size=d) * (size + np.abs(best.w))
            c = fl.certify(problem, w, best.b, alpha=best.alpha, effort="low")
            assert Q(c.gap) >= exact(problem, w, best.b) - lowest


@pytest.mark.parametrize(("seed", "options"), [(285, {"accelerate": True, "max_iter": 30}), (0, {"max_iter": 10})])
def test_a_dual_point_moved_to_feasibility_is_no_higher_for_it(seed, options):
    """Multipliers whose sum is not zero are moved until it is: the value said is that of where they end."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 25)), int(rng.integers(1, 4))
    X = 1.0 + 10.0 ** rng.integers(-4, 1) * rng.normal(size=(n, d))
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    problem = fl.Problem(X, y, losses.Hinge(), fl.penalties.L2(10.0 ** rng.uniform(-3, 0)), intercept=True)
    certificate = fl.solve(problem, "sdca", tol=1e-3, **options).certificate
    best = fl.solve(problem, tol=1e-10)
    assert certificate.dual <= exact(problem, best.w, best.b) + Q(1e-12)
    assert certificate.rounding <= 1e-9


@pytest.mark.parametrize("shift", [1.0, 1e3, 1e6])
def test_the_upper_bound_holds_for_losses_below_zero(shift):
    """A user's own loss may be negative: the squared loss, less a constant."""

    class Lowered(losses.Squared):
        def value(self, z, y):
            return super().value(z, y) - shift

        def conjugate(self, a, y):
            return super().conjugate(a, y) + shift

        def kernel(self):
            return None

    rng = np.random.default_rng(0)
    problem = fl.Problem(rng.normal(size=(30, 4)), rng.normal(size=30), Lowered(), penalties.L2(0.1))
    w = rng.normal(size=4)
    P = exact(problem.replace(loss=losses.Squared()), w, 0.0) - Q(shift)
    evidence = fl.certify(problem, w).evidence
    assert Q(evidence.upper) >= P >= Q(evidence.lower)
    assert evidence.upper <= float(P) + 1e-9 * shift
