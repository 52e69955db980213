"""Section 5 of the SDCA paper: losses that are smooth almost everywhere."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.solver import Start
from fenchel.steps import SDCA
from fenchel.steps.dual_ascent.averaging import SuffixAverage

SEEDS = 10
STRAIGHT = [fl.losses.Hinge(), fl.losses.Absolute(), fl.losses.Pinball(0.2), fl.losses.EpsilonInsensitive(0.3)]


def problem_of(loss, lam=0.05, n=200, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1).max()
    y = X @ rng.normal(size=d) + 0.2 * rng.normal(size=n)
    return fl.Problem(X, np.sign(y) if loss.is_classification else y, loss, fl.penalties.L2(lam))


def optimum(problem):
    """w* with its certified radius, D*, and alpha*."""
    result = fl.solve(problem, solver="newton", tol=1e-11, atol=1e-13, warn=False)
    return result.w, result.certificate.weights_radius, result.certificate.primal, result.alpha


def runs(problem, epochs, output="last"):
    algorithm = SDCA(sampling="uniform", shrink=False, accelerate=False, output=output)
    for seed in range(SEEDS):
        n, d = problem.shape
        state, found = algorithm.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed), []
        for _ in range(epochs):
            state = algorithm.step(state)
            last = algorithm.candidates(state)[-1]
            found.append((last.w, np.clip(last.alpha, *problem.domain)))
        yield found


# Definition 14 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*STRAIGHT, fl.losses.SmoothedHinge(0.5), fl.losses.Logistic(), fl.losses.Squared()])
def test_the_conjugate_is_as_convex_as_gamma_says(loss):
    """By brute force over scores and multipliers."""
    y = np.array([1.0, -1.0])
    for z in np.linspace(-2.4, 2.4, 97):
        scores = np.full(2, z)
        gamma = theory.dual_convexity(loss, scores, y)
        b = -loss.derivative(scores, y)
        low, high = loss.domain(y)
        for share in np.linspace(0.0, 1.0, 101):
            a = (1 - share) * np.maximum(low, -3.0) + share * np.minimum(high, 3.0)
            left = loss.conjugate(-a, y) - loss.conjugate(-b, y) + scores * (a - b)
            assert np.all(left >= gamma * (a - b) ** 2 - 1e-12)


@pytest.mark.parametrize("loss", STRAIGHT, ids=repr)
def test_no_larger_gamma_would_do_where_one_kink_is_near(loss):
    y = np.array([1.0])
    for z in (0.55, 0.9, 1.05, 1.25, 1.6, 4.0):
        scores = np.array([z])
        gamma, b = theory.dual_convexity(loss, scores, y), -loss.derivative(scores, y)
        ratios = []
        for a in loss.domain(y):
            if abs(a - b) > 0:
                left = loss.conjugate(-a, y) - loss.conjugate(-b, y) + scores * (a - b)
                ratios.append(float(left[0] / (a - b)[0] ** 2))
        # inside the tube the other kink is as far for the other end
        assert min(ratios) == pytest.approx(float(gamma[0]), rel=1e-9) or isinstance(loss, fl.losses.EpsilonInsensitive)


def test_gamma_of_the_hinge_is_the_papers_and_of_the_absolute_loss_half_of_it():
    z, y = np.array([-0.5, 0.3, 1.0, 2.0]), np.array([1.0, -1.0, 1.0, 1.0])
    np.testing.assert_allclose(theory.dual_convexity(fl.losses.Hinge(), z, y), np.abs(z * y - 1))
    np.testing.assert_allclose(theory.dual_convexity(fl.losses.Absolute(), z, y), np.abs(z - y) / 2)
    # what the paper prints for the absolute loss fails at a = -b
    u, target, b, a = 3.0, np.array([1.0]), -1.0, 1.0
    left = fl.losses.Absolute().conjugate(np.array([-a]), target) - fl.losses.Absolute().conjugate(
        np.array([-b]), target
    )
    left = float(left[0]) + u * (a - b)
    assert left < abs(u - 1.0) * (a - b) ** 2
    assert left == pytest.approx(abs(u - 1.0) / 2 * (a - b) ** 2)


def test_gamma_is_the_least_over_the_error_of_the_scores():
    loss, y = fl.losses.Absolute(), np.zeros(5)
    z, error = np.array([-2.0, -0.3, 0.0, 0.3, 2.0]), 0.25
    found = theory.dual_convexity(loss, z, y, error)
    for shift in np.linspace(-error, error, 51):
        assert np.all(found <= theory.dual_convexity(loss, z + shift, y) + 1e-15)
    assert found[2] == 0.0


def test_near_kinks_counts():
    np.testing.assert_array_equal(theory.near_kinks([0.3, 0.0, 0.1, 0.1], [0.0, 0.1, 0.2, 9.0]), [0, 1, 3, 4])


# Proposition 15 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [*STRAIGHT, fl.losses.SmoothedHinge(0.5)], ids=repr)
def test_proposition_15_holds_for_any_multipliers(loss):
    problem = problem_of(loss)
    w, radius, best, alpha = optimum(problem)
    gamma = theory.dual_convexity(loss, problem.scores(w), problem.y, problem.X.row_norms() * radius)
    rng, low, high = np.random.default_rng(1), *problem.domain
    tightest = 0.0
    for share in (1e-3, 0.1, 0.5, 1.0):
        for _ in range(10):
            other = (1 - share) * alpha + share * (low + (high - low) * rng.random(len(alpha)))
            other = np.where(rng.random(len(alpha)) < share, other, alpha)
            growth = theory.dual_growth(problem, gamma, other, alpha, problem.link(other), w)
            above = best - problem.dual(other)
            assert growth <= above * (1 + 1e-6) + 1e-9
            tightest = max(tightest, growth / above)
    assert tightest > 0.1
    for _ in range(20):  # the second part
        model = w + rng.normal(size=len(w))
        a = -loss.derivative(problem.scores(model), problem.y)
        assert np.all(gamma * np.abs(a - alpha) <= np.abs(problem.scores(model - w)) + 1e-6)


# Theorems 16 and 18 ---------------------------------------------------------------------------------------------------


def bound_of(n=100, lam=0.02, gamma=None, spread=1.0):
    gamma = np.linspace(0.0, 2.0, n) if gamma is None else gamma
    return theory.AlmostSmoothBound(n, lam, gamma, spread, rho=0.5)


def test_theorem_16_is_as_printed():
    bound, n, lam = bound_of(spread=4.0), 100, 0.02
    for accuracy in (1.0, 0.1, 1e-2, 1e-4):
        t = bound.iterations(accuracy)
        s = 2 * n * np.log(2 / accuracy) / t
        tried = np.linspace(1e-4, 1.0, 20_001)
        allowed = tried[8 * (tried / (lam * n)) * theory.near_kinks(bound.gamma, tried / (lam * n)) / n <= accuracy]
        assert s == pytest.approx(allowed.max(), rel=1e-2, abs=1e-3)
        assert bound.dual(t) <= accuracy * (1 + 1e-9)


def test_the_curve_is_the_least_over_all_s():
    bound = bound_of()
    s = np.linspace(1e-5, 1.0, 100_001)
    for t in (1, 100, 1000, 20_000):
        brute = np.min(np.exp(-s * t / 200) + bound.remainder(s))
        assert bound.dual(t) <= brute * (1 + 1e-12)
        assert bound.dual(t) == pytest.approx(min(brute, 1.0), rel=1e-2)


def test_theorem_18_is_as_printed():
    n, lam, rho = 100, 0.02, 0.5
    bound = bound_of(spread=4.0)
    g = np.linspace(1e-4, 4.0, 400_001)
    for T in (200, 2000, 20_000):
        e = float(bound.dual(T // 2))
        spread = np.min(theory.near_kinks(bound.gamma, g) / n * 4 + 2 * e / np.minimum(g, lam * g**2 / (2 * rho)))
        spread = min(spread, 4.0)  # g towards infinity
        assert bound.gap(T) == pytest.approx(e + spread / (2 * lam * (T // 2)), rel=1e-2)
    assert bound.gap(197) == np.inf


def test_the_three_regimes_of_remark_17():
    n, lam = 1000, 1e-2
    # no sample near its kink: linear for good
    far = theory.AlmostSmoothBound(n, lam, np.full(n, 0.05), 1.0)
    s0 = 0.05 * lam * n
    assert far.iterations(1e-9) == np.ceil(2 * n / s0 * np.log(2e9))
    # few of them within 1 / (lam n): linear as with s = 1, until they matter
    few = theory.AlmostSmoothBound(n, lam, np.append(np.zeros(10), np.full(990, 1.0)), 1.0)
    least = 2 * (1 / (lam * n)) * 10 / n
    assert few.iterations(least) == np.ceil(2 * n * np.log(2 / least))
    assert few.iterations(least / 10) > 5 * few.iterations(least)
    # N(u) / n = u^nu: steps grow as accuracy^(-1 / (1 + nu)), but for the logarithm
    nu = 1.0
    power = theory.AlmostSmoothBound(10**5, 1e-3, np.linspace(0, 1, 10**5) ** (1 / nu), 1.0)
    steps = [power.iterations(a) / np.log(2 / a) for a in (1e-5, 1e-7)]
    assert steps[1] / steps[0] == pytest.approx(100 ** (1 / (1 + nu)), rel=0.1)


@pytest.mark.parametrize("lam", [0.5, 0.05, 5e-3])
@pytest.mark.parametrize("loss", STRAIGHT, ids=repr)
def test_runs_are_under_theorems_16_and_18(loss, lam):
    problem = problem_of(loss, lam)
    n = problem.shape[0]
    w, radius, best, _ = optimum(problem)
    bound, epochs = theory.almost_smooth(problem, w, radius), np.arange(1, 33)
    below = [[best - problem.dual(alpha) for _, alpha in run] for run in runs(problem, 32)]
    assert np.all(np.mean(below, axis=0) <= bound.dual(n * epochs))
    gaps = [[problem.primal(v) - problem.dual(a) for v, a in run] for run in runs(problem, 32, "average")]
    limit = bound.gap(n * epochs, n * SuffixAverage.skipped(epochs))
    assert np.isfinite(limit).all()
    assert np.all(np.mean(gaps, axis=0) <= limit)


def test_the_refined_bound_of_the_dual_overtakes_theorem_2():
    """Where few samples are near their kinks the refined bound is linear, and that of Theorem 2 is not."""
    problem = problem_of(fl.losses.Hinge(), lam=0.5)
    w, radius, _, _ = optimum(problem)
    refined, basic = theory.almost_smooth(problem, w, radius), theory.sdca(problem)
    t = 200 * np.array([1, 30, 1000, 100_000])
    assert refined.dual(t)[0] > basic.dual(t)[0]
    assert refined.dual(t)[-1] < 0.1 * basic.dual(t)[-1]


def test_what_the_analysis_does_not_cover_is_refused():
    with pytest.raises(TypeError, match="smooth or a piecewise linear loss"):
        theory.dual_convexity(fl.losses.Exponential(), np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="needs a Lipschitz loss"):
        theory.almost_smooth(problem_of(fl.losses.Squared()), np.zeros(8))
    with pytest.raises(TypeError, match="L2 penalty and no intercept"):
        theory.almost_smooth(problem_of(fl.losses.Hinge()).replace(penalty=fl.penalties.L1(0.1)), np.zeros(8))
