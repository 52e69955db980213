"""The bounds of Theorems 2, 5 and 11: what they say, and that the algorithm keeps below them on average."""

from dataclasses import replace

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.solver import Start
from fenchel.steps import APPROX, SDCA
from fenchel.steps.dual_ascent.averaging import SuffixAverage

SEEDS = 20


def normalised(n=300, d=12, seed=0):
    """Rows of norm at most 1, some of exactly 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5
    X /= np.linalg.norm(X, axis=1).max()
    return X, np.where(X @ rng.normal(size=d) + 0.1 * rng.normal(size=n) > 0, 1.0, -1.0)


def iterates(problem, epochs, seed, **options):
    """The candidate that SDCA offers last, after every epoch, one sample after the other."""
    n, d = problem.shape
    problem = problem.replace(X=problem.design.using(1))
    algorithm = SDCA(sampling="uniform", shrink=False, accelerate=False, **options)
    state = algorithm.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)
    for _ in range(epochs):
        state = algorithm.step(state)
        yield algorithm.candidates(state)[-1]


def mean_gaps(problem, epochs, **options):
    low, high = problem.loss.domain(problem.y)  # which an average may leave by a rounding error
    runs = [
        [
            problem.primal(c.w) - problem.dual(np.clip(c.alpha, low, high))
            for c in iterates(problem, epochs, seed, **options)
        ]
        for seed in range(SEEDS)
    ]
    return np.mean(runs, axis=0)


# What the theorems say ------------------------------------------------------------------------------------------------


def test_the_steps_are_those_printed_in_the_paper():
    n, lam, gap = 1000, 1e-2, 1e-3
    K = n + 1 / (lam * 0.5)
    assert theory.sdca_smooth(n, lam, gamma=0.5).iterations(gap) == np.ceil(K * np.log(K / gap))
    assert theory.sdca_lipschitz(n, lam).forget == np.ceil(n * np.log(0.5 * lam * n))
    assert theory.sdca_sgd(n, lam).forget == np.ceil(n * np.log(np.log(np.e * n)))
    assert theory.sdca_first_epoch(n, lam) == pytest.approx(2 * np.log(np.e * n) / (lam * n))


def test_the_second_half_of_theorem_5_is_as_printed():
    n, lam, gamma, gap, length = 1000, 1e-3, 0.5, 1e-3, 5000
    K = n + 1 / (lam * gamma)
    bound = theory.sdca_smooth(n, lam, gamma)
    T0 = bound.average_from(gap, length)
    assert np.ceil(K * np.log(K / (length * gap))) == T0
    assert bound.gap(T0 + length, T0) <= gap < bound.gap(T0 + length - 5, T0 - 5)
    assert bound.iterations(gap, T0) <= T0 + length
    assert bound.gap(T0, T0) == np.inf
    # Remark 6: T = 2 T0 and T0 >= K
    T0 = int(np.ceil(K * np.log(1 / gap)))
    assert T0 >= K
    assert bound.average_from(gap, T0) <= T0


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("gap", [10.0, 1.0, 0.1, 1e-2, 1e-4])
@pytest.mark.parametrize("lam", [1e-6, 1e-3, 1e-2, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("n", [1, 30, 1000])
def test_no_total_of_the_paper_is_less_than_ours(n, lam, gap, one_sided):
    """Theorems 2 and 11, and Remarks 4 and 13, whose shorter start the slack of 2 n in the proof pays for."""
    G = 1 if one_sided else 4
    printed = max(0, np.ceil(n * np.log(0.5 * lam * n))) + n + 5 * G / (lam * gap)
    assert theory.sdca_lipschitz(n, lam, one_sided=one_sided).iterations(gap) <= np.ceil(printed) + 2
    printed = np.ceil(n * np.log(np.log(np.e * n))) + n + 5 * G / (lam * gap)
    assert theory.sdca_sgd(n, lam, one_sided=one_sided).iterations(gap) <= np.ceil(printed) + 2


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 10.0])
def test_no_other_start_of_the_average_has_a_better_bound(lam):
    """Where the bound says more than D* - D(0) <= 1 does."""
    bound = theory.sdca_lipschitz(500, lam, one_sided=True)
    tried = 0
    for T in (600, 2000, 20_000, 10**6):
        starts = np.arange(0, T - 500, max(1, T // 20_000))
        best = np.min(bound.gap(np.full(len(starts), T), starts))
        if best < 1.0:
            tried += 1
            assert best == pytest.approx(float(bound.gap(T)), rel=5e-3)
            assert bound.iterations(best, bound.average_from(best)) <= bound.iterations(best)
    assert tried


def test_an_average_may_begin_where_one_likes():
    bound = theory.sdca_lipschitz(1000, 1e-2)
    for gap in (0.5, 1e-2):
        for T0 in (bound.average_from(gap), 2 * bound.average_from(gap), 10**6):
            T = bound.iterations(gap, T0)
            assert bound.gap(T, T0) <= gap
            assert bound.n == T - T0 or bound.gap(T - 2, T0) > gap
    with pytest.raises(ValueError, match=r"no average from step 0 on has a bound of 0\.01"):
        bound.iterations(1e-2, 0)


@pytest.mark.parametrize("lam", [1e-5, 1e-2, 10.0])
@pytest.mark.parametrize(
    "bound", [lambda lam: theory.sdca_smooth(500, lam, 0.1), lambda lam: theory.sdca_lipschitz(500, lam, radius=2.0)]
)
def test_steps_and_gap_are_inverse_to_each_other(bound, lam):
    b = bound(lam)
    for gap in (1e-1, 1e-4, 1e-9):
        T = b.iterations(gap)
        assert b.gap(T) <= gap * (1 + 1e-12)
        assert b.gap(T - 2) > gap * (1 - 1e-9) or b.gap(T - 2) == np.inf


def test_the_theorems_choice_of_the_average_keeps_its_promise():
    b = theory.sdca_lipschitz(2000, 1e-3)
    for gap in (1e-1, 1e-3):
        assert b.gap(b.iterations(gap), b.average_from(gap)) <= gap
        assert b.dual(b.average_from(gap)) <= 2 * gap / 3 * (1 + 1e-12)
    assert b.gap(b.n - 1) == np.inf
    assert b.gap(10**6, 10**6 - 1) == np.inf  # shorter than an epoch


def test_long_rows_are_short_rows_with_a_smaller_lam():
    X, y = normalised()
    for loss in (fl.losses.Hinge(), fl.losses.SmoothedHinge(0.5)):
        short, long = (fl.Problem(s * X, y, loss, fl.penalties.L2(s * s * 1e-2)) for s in (1.0, 7.0))
        np.testing.assert_allclose(theory.sdca(long).gap(5000), theory.sdca(short).gap(5000))
        for one, other in zip(iterates(short, 3, seed=1), iterates(long, 3, seed=1), strict=True):
            np.testing.assert_allclose(other.alpha, one.alpha, atol=1e-10)  # the substitution that the bounds rest on


def test_a_problem_finds_its_theorem():
    X, y = normalised()

    def bound(loss, **options):
        return theory.sdca(fl.Problem(X, y, loss, fl.penalties.L2(0.01)), **options)

    assert bound(fl.losses.Logistic()) == theory.sdca_smooth(300, 0.01, 4.0, initial=np.log(2))
    assert bound(fl.losses.Hinge()) == theory.sdca_lipschitz(300, 0.01, one_sided=True)
    assert bound(fl.losses.Hinge(), init="sgd") == theory.sdca_sgd(300, 0.01, one_sided=True)
    assert bound(fl.losses.Absolute()) == theory.sdca_lipschitz(300, 0.01)


def test_what_the_theorems_do_not_cover_is_refused():
    X, y = normalised()
    hinge, l2 = fl.losses.Hinge(), fl.penalties.L2(0.01)
    with pytest.raises(TypeError, match=r"need a fenchel\.Problem, got 3"):
        theory.sdca(3)
    with pytest.raises(TypeError, match="L2 penalty and no intercept"):
        theory.sdca(fl.Problem(X, y, hinge, l2, intercept=True))
    with pytest.raises(ValueError, match="equal weight"):
        theory.sdca(fl.Problem(X, y, hinge, l2, sample_weight=np.arange(300.0)))
    with pytest.raises(TypeError, match=r"smooth or a Lipschitz loss, which Exponential\(\) is not"):
        theory.sdca(fl.Problem(X, y, fl.losses.Exponential(), l2))
    with pytest.raises(ValueError, match="every row of X is zero"):
        theory.sdca(fl.Problem(0.0 * X, y, hinge, l2))
    with pytest.raises(ValueError, match="init must be"):
        theory.sdca(fl.Problem(X, y, hinge, l2), init="ones")
    with pytest.raises(ValueError, match="lam must be a positive number"):
        theory.sdca_lipschitz(10, 0.0)
    with pytest.raises(ValueError, match="gap must be a positive number"):
        theory.sdca_smooth(10, 1.0, 1.0).iterations(0.0)


@pytest.mark.parametrize("sampling", ["uniform", "permutation", "cyclic", "importance"])
def test_a_start_by_sgd_links_weights_and_multipliers(sampling):
    X, y = normalised()
    problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(0.01))
    algorithm = SDCA(sampling=sampling, init="sgd")
    state = algorithm.begin(problem, Start(np.zeros(12), 0.0, np.zeros(300)), seed=0)
    np.testing.assert_allclose(state.weights(), problem.link(state.alpha), atol=1e-12)


# What the algorithm does, on average over 20 seeds --------------------------------------------------------------------


@pytest.mark.parametrize(
    "loss", [fl.losses.SmoothedHinge(1.0), fl.losses.SmoothedHinge(0.1), fl.losses.Logistic()], ids=str
)
@pytest.mark.parametrize("lam", [0.1, 1e-2, 1e-3])
def test_the_expected_gap_of_the_last_iterate_is_under_theorem_5(loss, lam):
    X, y = normalised()
    problem = fl.Problem(X, y, loss, fl.penalties.L2(lam))
    epochs = np.arange(1, 26)
    assert np.all(mean_gaps(problem, 25) <= theory.sdca(problem).gap(300 * epochs))


@pytest.mark.parametrize("output", ["average", "random"])
@pytest.mark.parametrize("lam", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("init", ["zeros", "sgd"])
def test_the_expected_gap_of_average_and_random_iterates_is_under_theorems_2_and_11(output, lam, init):
    X, y = normalised()
    n = len(y)
    problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(lam))
    bound = theory.sdca(problem, init=init)
    epochs = np.arange(1, 64)
    limit = bound.gap(n * epochs, n * SuffixAverage.skipped(epochs))
    covered = np.isfinite(limit)
    assert covered.sum() >= 16
    assert np.all(mean_gaps(problem, 63, output=output, init=init)[covered] <= limit[covered])
    # the bound is of use: far below what is known without a step
    assert limit[-1] < 1.0 or lam < 0.1


@pytest.mark.parametrize("lam", [0.1, 1e-2])
def test_the_expected_suboptimality_keeps_below_the_bounds_from_the_first_step(lam):
    X, y = normalised()
    problem = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(lam))
    best = fl.solve(problem, tol=1e-10).certificate.primal
    for init, bound in (("zeros", theory.sdca(problem)), ("sgd", theory.sdca(problem, init="sgd"))):
        runs = [[best - problem.dual(c.alpha) for c in iterates(problem, 20, seed, init=init)] for seed in range(SEEDS)]
        steps = 300 * np.arange(20) if init == "sgd" else 300 * np.arange(1, 21)  # the epoch of SGD is not counted
        assert np.all(np.mean(runs, axis=0) <= bound.dual(steps))


@pytest.mark.parametrize("output", ["average", "random"])
@pytest.mark.parametrize("lam", [0.1, 1e-2])
def test_the_expected_gap_of_the_average_is_under_the_second_half_of_theorem_5(output, lam):
    X, y = normalised()
    problem = fl.Problem(X, y, fl.losses.SmoothedHinge(0.5), fl.penalties.L2(lam))
    bound, epochs = theory.sdca(problem), np.arange(1, 64)
    limit = bound.gap(300 * epochs, 300 * SuffixAverage.skipped(epochs))
    assert np.all(mean_gaps(problem, 63, output=output) <= limit)


@pytest.mark.parametrize("skip", [0, 3, 10])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.SmoothedHinge(0.5)], ids=repr)
def test_the_average_may_begin_after_any_epoch(loss, skip):
    X, y = normalised()
    problem = fl.Problem(X, y, loss, fl.penalties.L2(0.05))
    limit = theory.sdca(problem).gap(300 * np.arange(skip + 1, 25), 300 * skip)
    assert np.isfinite(limit).all()
    gaps = mean_gaps(problem, 24, output="average", average_from=skip)[skip:]
    assert np.all(gaps <= limit)


def test_the_average_from_an_epoch_on_is_that_of_its_epochs():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(9, 4))
    for skip in (0, 2, 8):
        average = SuffixAverage(4, rng, skip)
        for epoch, mean in enumerate(means, start=1):
            average.add(mean, mean)
            assert bool(average.windows) == (epoch > skip)
        np.testing.assert_allclose(average.average, means[skip:].mean(axis=0))
        assert any(np.array_equal(average.random, mean) for mean in means[skip:])
    for bad, message in ((-1, "at least 0"), (1.5, "whole number"), (True, "whole number")):
        for solver in (SDCA(output="average"), APPROX(accelerate=False, output="average")):
            with pytest.raises(ValueError, match=message):
                replace(solver, average_from=bad)
    with pytest.raises(ValueError, match='average_from needs output="average"'):
        SDCA(average_from=2)


@pytest.mark.parametrize("lam", [1.0, 0.1, 1e-2])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Absolute(), fl.losses.Logistic()], ids=repr)
def test_the_first_epoch_of_sgd_is_under_theorem_9(loss, lam):
    """Over the samples as well: each seed draws its own."""
    found = []
    for seed in range(SEEDS):
        X, y = normalised(seed=seed)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        problem = fl.Problem(X, y, loss, fl.penalties.L2(lam))
        best = fl.solve(problem, tol=1e-9).certificate.primal
        algorithm = SDCA(sampling="uniform", init="sgd", accelerate=False)
        state = algorithm.begin(problem, Start(np.zeros(12), 0.0, np.zeros(300)), seed)
        found.append(best - problem.dual(np.clip(state.alpha, *problem.domain)))
    assert np.mean(found) <= theory.sdca_first_epoch(300, lam)


def test_the_dual_rate_of_theorem_5_is_nearly_attained_by_orthogonal_rows():
    n, lam = 400, 1.0
    problem = fl.Problem(np.eye(n), np.resize([1.0, -1.0], n), fl.losses.SmoothedHinge(1.0), fl.penalties.L2(lam))
    best = fl.solve(problem, solver="newton", tol=1e-12).certificate.primal
    bound = theory.sdca(problem)
    runs = np.array([[best - problem.dual(c.alpha) for c in iterates(problem, 4, seed)] for seed in range(200)])
    mean, error = runs.mean(axis=0), runs.std(axis=0) / np.sqrt(200)
    limit = bound.dual(n * np.arange(1, 5))
    # the bound is off by less than the 200 seeds can tell, and no smaller one would hold
    assert np.all(mean - 3 * error <= limit)
    assert np.all(mean + 3 * error >= 0.98 * limit)
