"""Interpolation's bounds: Proposition 1 at any multipliers, rates on average, and mistakes that no run exceeds."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.solver import Start
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.mirror import Mirror, Perceptron

SEEDS = 20
N, D = 30, 50
NORMS = (2.0, 1.5, 1.2)


def data(seed=0):
    """Rows that point in similar directions, so that multipliers depend on each other."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) + 0.7 * rng.normal(size=D)
    return X, np.where(rng.random(N) < 0.5, -1.0, 1.0)


def separation(p, **options):
    X, y = data()
    penalty = fl.penalties.L2(0.5) if p == 2.0 else fl.penalties.LpSquared(0.5, p)
    return fl.Interpolation(X, fl.sets.HalfLine(1.0, y), penalty, **options)


def solved(problem):
    return fl.solve(problem, tol=1e-9)


def iterates(problem, algorithm, passes, seed):
    """The candidates after every pass, from zero."""
    w, b, alpha = (np.zeros(shape) for shape in problem.shapes)
    state = algorithm.begin(problem, Start(w, float(b), alpha), seed)
    for _ in range(passes):
        state = algorithm.step(state)
        yield algorithm.candidates(state)


def wrong(problem, w):
    """How many samples are on the wrong side."""
    return np.count_nonzero(data()[1] * problem.scores(w) <= 0.0)


# Proposition 1 --------------------------------------------------------------------------------------------------------


PENALTIES = {
    "p = 2": fl.penalties.L2(0.5),
    "p = 1.5": fl.penalties.LpSquared(0.5, 1.5),
    "p = 1.2": fl.penalties.LpSquared(0.5, 1.2),
    "elastic net": fl.penalties.ElasticNet(0.3, 0.5),
    "entropy": fl.penalties.Entropy(0.5),
}


def feasible(rng, X, kind):
    """Intervals that hold the scores of a point of the simplex."""
    z = X @ rng.dirichlet(np.ones(D))
    ends = rng.uniform(0.0, 0.02, size=(2, N))
    some = rng.random(N) < 0.5
    low, high = z - ends[0], z + ends[1]
    return {
        "points": lambda: fl.sets.Point(z),
        "half-lines": lambda: fl.sets.HalfLine(np.where(some, low, -high), np.where(some, 1.0, -1.0)),
        "intervals": lambda: fl.sets.Interval(low, high),
        "mixed": lambda: fl.sets.Interval(np.where(some, low, -np.inf), np.where(rng.random(N) < 0.5, high, np.inf)),
    }[kind]()


@pytest.mark.parametrize("kind", ["points", "half-lines", "intervals", "mixed"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_proposition_1_the_divergence_is_below_the_dual_gap_at_any_multipliers(penalty, kind):
    rng = np.random.default_rng(4)
    X = data()[0]
    problem = fl.Interpolation(X, feasible(rng, X, kind), PENALTIES[penalty])
    # Newton steps stall on some elastic nets
    best = fl.solve(problem, solver="fista" if penalty == "elastic net" else "auto", tol=1e-7)
    R, optimum = problem.penalty, best.certificate.primal
    for size in (1e-3, 0.1, 1.0, 10.0) * 5:
        alpha = problem.in_domain(size * rng.normal(size=N))
        v, w = problem.dual_vector(alpha), problem.link(alpha)
        # with v as the gradient at w(alpha), of which the elastic net has many
        divergence = R.value(best.w) - R.value(w) - v @ (best.w - w)
        gap = optimum - problem.dual(alpha)
        assert divergence <= gap + 1e-9 * (1.0 + abs(gap))  # exact, if rounding were
        assert divergence >= R.strong_convexity / 2 * np.linalg.norm(best.w - w, R.norm) ** 2 - 1e-9 * (1 + abs(gap))


# What the theorems say ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerate", [False, True])
def test_steps_and_gap_are_inverse_to_each_other(accelerate):
    bound = (theory.AcceleratedAscentBound if accelerate else theory.AscentBound)(500, 2.0, 7.0)
    for gap in (1e-1, 1e-4, 1e-9):
        t = bound.iterations(gap)
        assert bound.dual(t) <= gap * (1 + 1e-12)
        assert bound.dual(t - 2) > gap * (1 - 1e-9)
    assert bound.iterations(100.0) <= 1
    assert bound.dual(0) >= bound.initial


def test_acceleration_divides_by_the_square_of_the_passes():
    plain, fast = theory.AscentBound(100, 1.0, 4.0), theory.AcceleratedAscentBound(100, 1.0, 4.0)
    passes = np.array([1e4, 1e5])
    np.testing.assert_allclose(plain.dual(100 * passes), 3.0 / passes, rtol=0.01)
    np.testing.assert_allclose(fast.dual(100 * passes), 4 * 2.99 / passes**2, rtol=0.01)


def test_the_scaling_of_the_penalty_by_lam_changes_no_number_of_steps():
    # R' = c R, alpha' = c alpha, D' = c D, L' = L / c
    X, y = data()
    steps = []
    for lam in (1.0, 8.0):
        problem = fl.Interpolation(X, fl.sets.HalfLine(1.0, y), fl.penalties.LpSquared(lam, 1.5))
        bound = theory.dykstra(problem, solved(problem).alpha, accelerate=True)
        steps.append(theory.perceptron_steps(bound, theory.largest_smoothness(problem)))
    assert abs(steps[0] - steps[1]) <= 1


def test_sample_weights_change_no_bound():
    weighted = separation(1.5, sample_weight=np.linspace(0.5, 4.0, N))
    bounds = [theory.dykstra(one, solved(one).alpha) for one in (separation(1.5), weighted)]
    assert bounds[0].initial == pytest.approx(bounds[1].initial, rel=1e-6)
    assert bounds[0].distance == pytest.approx(bounds[1].distance, rel=1e-4)


def test_lemma_3_in_numbers():
    problem = separation(1.5)
    best = solved(problem)
    X = data()[0]
    L = np.linalg.norm(X, 3.0, axis=1) ** 2 / (0.5 * 0.5)
    largest = theory.largest_smoothness(problem)
    assert largest == pytest.approx(L.max())
    C = (1 - 1 / N) * best.certificate.dual + L @ (best.alpha / N) ** 2 / 2
    steps = theory.perceptron_steps(theory.dykstra(problem, best.alpha, accelerate=True), largest)
    assert steps == pytest.approx(2 * N * np.sqrt(2 * L.max() * C) - 2 * N + 1, abs=6)
    surely = theory.perceptron_steps(theory.dykstra(problem, best.alpha, accelerate=True), largest, failure=0.01)
    assert surely == pytest.approx(10 * steps, rel=0.1)  # 1/t^2: ten times the steps for a hundredth
    one_size = theory.dykstra(problem, best.alpha, steps="largest")
    assert one_size.distance == pytest.approx(L.max() * np.sum((best.alpha / N) ** 2))


def test_what_the_theorems_do_not_cover_is_refused():
    with pytest.raises(TypeError, match=r"need a fenchel\.Interpolation, got 3"):
        theory.dykstra(3, np.zeros(N))
    with pytest.raises(TypeError, match="without an intercept"):
        theory.dykstra(separation(2.0, intercept=True), np.zeros(N))
    with pytest.raises(ValueError, match="steps must be"):
        theory.dykstra(separation(2.0), np.zeros(N), steps="some")
    with pytest.raises(ValueError, match="gap must be a positive number"):
        theory.AscentBound(10, 1.0, 1.0).iterations(0.0)
    with pytest.raises(ValueError, match="largest must be a positive number"):
        theory.mirror_mistakes(10, -1.0, 1.0)


# What the algorithms do -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["each", "largest"])
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("p", NORMS)
def test_the_expected_dual_gap_is_under_equations_5_and_8(p, accelerate, steps):
    problem = separation(p)
    best = solved(problem)
    algorithm = Dykstra(sampling="uniform", accelerate=accelerate, steps=steps)
    runs = [
        [best.certificate.primal - problem.dual(one[0].alpha) for one in iterates(problem, algorithm, 40, seed)]
        for seed in range(SEEDS)
    ]
    limit = theory.dykstra(problem, best.alpha, accelerate, steps).dual(N * np.arange(1, 41))
    assert np.all(np.mean(runs, axis=0) <= limit)


@pytest.mark.parametrize("p", NORMS)
def test_corollary_1_bounds_the_distance_to_the_least_norm(p):
    problem = separation(p)
    best = solved(problem)
    for one in iterates(problem, Dykstra(sampling="uniform", accelerate=True), 30, seed=0):
        gap = best.certificate.primal - problem.dual(one[0].alpha)
        limit = theory.weights_distance(gap, problem.penalty.strong_convexity)
        assert np.linalg.norm(one[0].w - best.w, p) <= limit + 1e-3 * np.linalg.norm(best.w, p)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("p", NORMS)
def test_no_run_needs_more_steps_than_lemma_3_for_no_mistake(p, accelerate):
    problem = separation(p)
    bound = theory.dykstra(problem, solved(problem).alpha, accelerate)
    steps = theory.perceptron_steps(bound, theory.largest_smoothness(problem))
    passes = min(-(-steps // N), 60)
    for seed in range(SEEDS):
        algorithm = Dykstra(sampling="uniform", accelerate=accelerate)
        counts = [wrong(problem, one[0].w) for one in iterates(problem, algorithm, passes, seed)]
        assert counts[-1] == 0
        assert 3 * (counts.index(0) + 1) <= -(-steps // N)


@pytest.mark.parametrize("p", NORMS)
def test_mirror_descent_is_under_theorem_1_and_corollary_2(p):
    problem = separation(p)
    largest, optimum = theory.largest_smoothness(problem), solved(problem).certificate.primal
    distance, proportion = np.zeros(100), np.zeros(100)
    for seed in range(SEEDS):
        for t, (_, mean) in enumerate(iterates(problem, Mirror(output="average"), 100, seed)):
            short = np.maximum(0.0, 1.0 - data()[1] * problem.scores(mean.w))
            distance[t] += np.mean(short**2) / 2 / SEEDS
            proportion[t] += wrong(problem, mean.w) / N / SEEDS
    steps = N * np.arange(1, 101)
    assert np.all(distance <= theory.mirror_objective(steps, largest, optimum))
    assert np.all(proportion <= theory.mirror_mistakes(steps, largest, optimum))


@pytest.mark.parametrize("p", NORMS)
def test_no_perceptron_makes_more_corrections_than_novikoffs_bound(p):
    problem = separation(p)
    most = theory.perceptron_corrections(theory.largest_smoothness(problem), solved(problem).certificate.primal)
    for seed in range(SEEDS):
        *_, (last,) = iterates(problem, Perceptron(sampling="permutation"), 60, seed)
        corrections = np.abs(last.alpha).sum() / N  # a correction adds the rate times n to a multiplier
        assert wrong(problem, last.w) == 0
        assert 1 <= corrections <= most


# Appendix C: losses that are smooth -----------------------------------------------------------------------------------


def ascent(X, y, lam, steps, seed):
    """lam/2 |w - w*|^2 and D* - D before every step of dual coordinate ascent for (z - y)^2 / 2, exact in each."""
    n, d = X.shape
    rng, alpha, w = np.random.default_rng(seed), np.zeros(n), np.zeros(d)
    best = np.linalg.solve(X.T @ X / n + lam * np.eye(d), X.T @ y / n)
    optimum = np.mean((X @ best - y) ** 2) / 2.0 + lam / 2.0 * float(best @ best)
    found = []
    for _ in range(steps):
        dual = float(np.mean(y * alpha - alpha**2 / 2.0)) - lam / 2.0 * float(w @ w)
        found.append((lam / 2.0 * float((w - best) @ (w - best)), optimum - dual))
        i = rng.integers(n)
        change = (y[i] - X[i] @ w - alpha[i]) / (1.0 + X[i] @ X[i] / (lam * n))
        alpha[i] += change
        w = w + change * X[i] / (lam * n)
    return np.array(found).T


@pytest.mark.parametrize("lam", [1e-3, 1e-1, 10.0])
def test_corollary_c1_bounds_the_distance_of_the_last_model_on_average(lam):
    X, y = data()
    radius, steps = float(np.linalg.norm(X, axis=1).max()), 10 * N
    distance, gap = np.mean([ascent(X, y, lam, steps, seed) for seed in range(SEEDS)], axis=0)
    bound = theory.sdca_distance(np.arange(steps), N, lam, 1.0, radius, gap[0])
    assert bound[0] == gap[0]
    assert np.all(distance <= gap * (1.0 + 1e-9) + 1e-12)
    assert np.all(gap <= bound * 1.05 + 1e-12)  # a mean of 20 runs
    if lam == 10.0:  # the printed rate is negative, and its square below the gap
        printed = 1.0 - lam / radius**2
        assert printed < 1.0 - 1.0 / N
        assert gap[N] > 3.0 * gap[0] * max(printed, 0.0) ** N


def test_corollary_c2_needs_fewer_steps_where_the_condition_is_bad():
    t = np.arange(100_000)
    plain, accelerated = (theory.sdca_distance(t, N, 1e-4, 1.0, 3.0, 2.0, accelerate) for accelerate in (False, True))
    assert accelerated[0] == 2.0 * plain[0] == 4.0
    first, other = (int(np.argmax(bound < 1e-6)) for bound in (plain, accelerated))
    assert 0 < 5 * other < first or first == 0 < other
    with pytest.raises(ValueError, match="lam"):
        theory.sdca_distance(t, N, 0.0, 1.0)
