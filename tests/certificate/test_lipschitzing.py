"""Penalties that are neither norms nor strongly convex have a dual bound: Corollary 7 of the certificates paper."""

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import optimize

import fenchel as fl
from fenchel.certificate.bounds.dual_point import largest_penalty
from fenchel.certificate.bounds.lipschitzing import Lipschitzed
from fenchel.problem.penalties.base import Penalty
from fenchel.problem.vectors import dual_exponent, p_norm
from tests.helpers.registry import targets

D = 6


@dataclass(frozen=True)
class PseudoHuber(Penalty):
    """lam sum_j (sqrt(1 + w_j^2) - 1): w^2 / 2 near zero, |w| far away. R* = lam sum_j (1 - sqrt(1 - (v_j/lam)^2))."""

    lam: float
    separable = True

    def value(self, w):
        return self.lam * float(np.sum(w * w / (1.0 + np.sqrt(1.0 + w * w))))

    def conjugate(self, v):
        u = np.abs(v / self.lam)
        if np.any(u > 1.0):
            return np.inf
        return self.lam * float(np.sum(u * u / (1.0 + np.sqrt((1.0 - u) * (1.0 + u)))))

    def prox(self, w, t):
        step, x = np.broadcast_to(t * self.lam, w.shape), np.zeros_like(w)
        low, high = np.minimum(w, 0.0), np.maximum(w, 0.0)
        for _ in range(80):
            x = (low + high) / 2.0
            above = x - w + step * x / np.sqrt(1.0 + x * x) > 0.0
            low, high = np.where(above, low, x), np.where(above, x, high)
        return x

    def level_radius(self, level):
        """sum_j (sqrt(1 + w_j^2) - 1) >= sqrt(1 + |w|_2^2) - 1: x -> sqrt(1 + x) - 1 is concave and 0 at 0."""
        return float(np.sqrt((1.0 + level / self.lam) ** 2 - 1.0))


@dataclass(frozen=True)
class OneSided(Penalty):
    """lam sum_j (2 max(w_j, 0) + max(-w_j, 0)): not a norm, for R(-w) is not R(w). R* = 0 on -lam <= v_j <= 2 lam."""

    lam: float
    separable = True

    def value(self, w):
        return self.lam * float(np.sum(np.where(w > 0.0, 2.0 * w, -w)))

    def conjugate(self, v):
        return 0.0 if np.all((-self.lam <= v) & (v <= 2.0 * self.lam)) else np.inf

    def prox(self, w, t):
        return np.maximum(w - 2.0 * t * self.lam, 0.0) + np.minimum(w + t * self.lam, 0.0)

    @property
    def norm(self):
        return 1.0

    def level_radius(self, level):
        """In the 1-norm."""
        return level / self.lam


PENALTIES = [PseudoHuber(0.1), PseudoHuber(1e-3), OneSided(0.05)]
LOSSES = [fl.losses.Squared(), fl.losses.Logistic(), fl.losses.Huber(0.5), fl.losses.SquaredHinge()]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem_of(loss, penalty, seed=0, **options):
    rng = np.random.default_rng(seed)
    return fl.Problem(rng.normal(size=(40, D)), targets(loss, rng, 40), loss, penalty, **options)


def best_of(problem):
    """The least objective found by scipy, no less than the optimum. One-sided parts as variables of their own."""
    one_sided, fitted = isinstance(problem.penalty, OneSided), D + problem.intercept

    def model(x):
        return (x[:D] - x[fitted:] if one_sided else x[:D]), (float(x[D]) if problem.intercept else 0.0)

    def objective(x):
        w, b = model(x)
        z = problem.scores(w, b)
        a = problem.weights * problem.loss.derivative(z, problem.y) / problem.total_weight
        g = problem.X.rmatvec(a)
        lam, free = problem.penalty.lam, [a.sum()] if problem.intercept else []
        if one_sided:
            value = 2.0 * lam * x[:D].sum() + lam * x[fitted:].sum()
            slope = np.concatenate([g + 2.0 * lam, free, lam - g])
        else:
            value, slope = problem.penalty.value(w), np.append(g + lam * w / np.sqrt(1.0 + w * w), free)
        return problem.mean(problem.loss.value(z, problem.y)) + value, slope

    bounds = [(0, None)] * D + [(None, None)] * problem.intercept + [(0, None)] * D if one_sided else None
    start = np.zeros(fitted + D * one_sided)
    options = {"maxiter": 20_000, "ftol": 1e-16, "gtol": 1e-12}
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    w, b = model(found.x)
    return w, b, problem.primal(w, b)


@every_penalty
def test_the_restricted_conjugate_is_the_largest_value_over_the_level_set(penalty):
    """By brute force in one dimension, where the level set is an interval."""
    one = type(penalty)(penalty.lam)
    w = np.linspace(-40.0, 40.0, 20_001)
    values = np.array([one.value(w[k : k + 1]) for k in range(len(w))])
    for level in (0.01, 0.3, 2.0):
        level = level * penalty.lam
        inside = values <= level
        for v in np.array([-30.0, -2.0, -1.0, -0.5, 0.0, 0.7, 1.0, 1.9, 2.1, 50.0]) * penalty.lam:
            found = Lipschitzed(penalty, level).conjugate(np.array([v]))
            best = np.max(v * w[inside] - values[inside])
            assert found >= best - 1e-15
            assert found <= best + (w[1] - w[0]) * (abs(v) + 2.0 * penalty.lam)


@every_penalty
def test_the_restricted_conjugate_of_vectors_bounds_and_is_attained(penalty):
    rng = np.random.default_rng(3)
    for size in (0.1, 1.0, 10.0):
        v = size * penalty.lam * rng.normal(size=D)
        level = 3.0 * penalty.lam
        bound = Lipschitzed(penalty, level)
        value = bound.conjugate(v)
        for _ in range(500):
            w = rng.normal(size=D) * np.exp(rng.normal())
            w *= min(1.0, level / penalty.value(w))  # R is convex and 0 at 0
            assert v @ w - penalty.value(w) <= value * (1.0 + 1e-12) + 1e-15
        error = 0.1 * penalty.lam * rng.random(D)
        upper = bound.conjugate_upper(v, error)
        for sign in (-1.0, 1.0):
            assert bound.conjugate(v + sign * error) <= upper
        slope = penalty.level_radius(level) * p_norm(error, dual_exponent(penalty.norm))
        assert upper <= value + slope * (1.0 + 1e-9) + 1e-9 * penalty.lam


def exact_conjugate(lam, level, v):
    """min over s >= 1 of s R*(v / s) + (s - 1) level for PseudoHuber, to 30 digits or more."""
    lam, level, v = Decimal(float(lam)), Decimal(float(level)), [Decimal(float(entry)) for entry in v]

    def value(s):
        parts = [1 - (entry / s / lam) ** 2 for entry in v]
        return s * lam * sum(1 - part.sqrt() for part in parts) + (s - 1) * level

    low = max(Decimal(1), max(abs(entry) for entry in v) / lam)
    high = 1000 * low
    for _ in range(200):
        third = (high - low) / 3
        low, high = (low, high - third) if value(low + third) <= value(high - third) else (low + third, high)
    return value(high)


@pytest.mark.parametrize("lam", [0.1, 3.0, 1e-7])
def test_rounding_is_bounded_at_the_edge_of_the_domain_where_the_slope_is_infinite(lam):
    rng = np.random.default_rng(0)
    with localcontext(prec=45):
        for ulps in (0, 1, 10**6):
            for level in (1e-3 * lam, lam, 1e4 * lam):
                v = lam * rng.uniform(-1.0, 1.0, 4)
                v[0] = lam * (1.0 - ulps * 2.0**-53)
                for scale in (1.0 + 1e-15, 3.0):
                    bound, exact = Lipschitzed(PseudoHuber(lam), level), exact_conjugate(lam, level, scale * v)
                    upper = bound.conjugate_upper(scale * v, np.zeros(4))
                    assert Decimal(upper) >= exact
                    assert upper <= float(exact) * (1.0 + 1e-3) + 1e-9 * lam  # s is found to about three digits


def test_for_a_norm_it_is_the_lipschitzed_norm():
    v = np.array([0.3, -0.1, 0.05, 0.0, 0.2, -0.31])
    for lam in (0.4, 0.31, 0.1, 1e-3):
        found = Lipschitzed(fl.penalties.L1(lam), 2.0).conjugate(v)
        assert found == pytest.approx(2.0 / lam * max(0.31 - lam, 0.0), rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@every_loss
@every_penalty
def test_a_solve_is_certified_and_right(penalty, loss, intercept):
    problem = problem_of(loss, penalty, intercept=intercept)
    result = fl.solve(problem, tol=1e-6)
    _, _, best = best_of(problem)
    c = result.certificate
    assert c.ok
    assert c.primal - c.gap <= best
    assert c.primal - best <= c.gap
    assert c.primal == pytest.approx(best, rel=3e-6)


@pytest.mark.parametrize("effort", ["low", "auto"])
@every_loss
@every_penalty
def test_no_bound_of_any_model_is_above_the_optimum(penalty, loss, effort):
    rng = np.random.default_rng(1)
    for seed in range(3):
        problem = problem_of(loss, penalty, seed, intercept=bool(seed % 2), sample_weight=rng.random(40))
        w, b, best = best_of(problem)
        for share in (0.0, 0.9, 0.999, 1.0 - 1e-6, 1.0):
            model = share * w + (1.0 - share) * 10.0 * rng.normal(size=D)
            c = fl.certify(problem, model, b, effort=effort)
            assert c.dual <= best + 1e-12 * abs(best)
            assert c.gap >= problem.primal(model, b) - best
            (construction,) = c.constructions().values()
            assert construction.dual <= best + 1e-12 * abs(best)


@every_penalty
def test_kinks_of_the_loss_are_certified_as_well(penalty):
    problem = problem_of(fl.losses.Hinge(), penalty)
    c = fl.solve(problem, tol=1e-3).certificate
    assert c.ok
    smoothed = best_of(problem_of(fl.losses.SmoothedHinge(1e-4), penalty))[2]  # at most 5e-5 below
    assert c.primal - c.gap <= smoothed + 5e-5
    assert c.primal >= smoothed - 1e-9


@pytest.mark.parametrize("penalty", [PseudoHuber(0.1), fl.penalties.L1(0.1)], ids=repr)
def test_a_model_worse_than_zero_is_bounded_by_the_objective_at_zero(penalty):
    """B = min(P(w), P(0)) / lam: the bound is that of a model whose objective is P(0)."""
    problem = problem_of(fl.losses.Squared(), penalty)
    zero = problem.primal(np.zeros(D))
    assert largest_penalty(problem, 1e6) == pytest.approx(zero)
    assert largest_penalty(problem, np.inf) == pytest.approx(zero)
    assert largest_penalty(problem, 0.5 * zero) == pytest.approx(0.5 * zero)
    best = fl.solve(problem, tol=1e-10).certificate.primal
    assert largest_penalty(problem, 1e6) >= best
    far = 100.0 * np.random.default_rng(0).normal(size=D)
    dual = fl.certify(problem, far, effort="low").constructions()["Lipschitzing"].dual
    assert dual <= best
    # with P(w) in the place of P(0) it would be P(w) / P(0) times as far below
    assert -dual <= 1e-2 * problem.primal(far) * np.abs(problem.dual_vector(problem.scores(far))).max() / penalty.lam


def test_without_a_bound_on_the_optimum_nothing_is_claimed():
    bound, v = Lipschitzed(PseudoHuber(0.1), np.inf), np.array([0.05, 0.3])
    assert bound.conjugate(v) == bound.conjugate_upper(v, np.zeros(2)) == np.inf
    assert bound.largest_multiple(v) == 1.0


def test_extreme_scales_stay_valid():
    for lam in (1e-10, 1e-3, 1e8):
        problem = problem_of(fl.losses.Squared(), PseudoHuber(lam))
        c = fl.certify(problem, np.ones(D))
        best = best_of(problem)[2]
        assert c.dual <= best * (1.0 + 1e-9)
        assert c.gap >= problem.primal(np.ones(D)) - best * (1.0 + 1e-9)


def test_several_scores_per_sample_are_refused():
    X = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(TypeError, match="for several scores per sample"):
        fl.problem.MulticlassProblem(X, np.arange(9) % 3, fl.losses.Multinomial(), PseudoHuber(0.1))
