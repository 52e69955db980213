"""Theorems 8 and 9, Corollaries 10 and 11 of the certificates paper: what they say, and that descent obeys."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.solver import Start
from fenchel.steps import APPROX, SDCA
from fenchel.steps.dual_ascent.averaging import SuffixAverage

SEEDS = 10
DESCENT = {over: APPROX(over=over, accelerate=False) for over in ("weights", "samples")}


def regression(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, : d // 2] @ rng.normal(size=d // 2) / np.sqrt(d) + 0.3 * rng.normal(size=n)


def iterates(problem, over, epochs, seed):
    n, d = problem.shape
    state = DESCENT[over].begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)
    for _ in range(epochs):
        state = DESCENT[over].step(state)
        yield state.candidate()


def own_gap(problem, candidate):
    """P - D with the multipliers of the paper: the gradient's over weights, the iterate's over samples."""
    alpha = candidate.alpha
    if alpha is None:
        alpha = -problem.loss.derivative(problem.scores(candidate.w), problem.y)
    return problem.primal(candidate.w) - problem.dual(alpha)


def mean_gaps(problem, over, epochs):
    runs = [[own_gap(problem, c) for c in iterates(problem, over, epochs, seed)] for seed in range(SEEDS)]
    return np.mean(runs, axis=0)


# What they say --------------------------------------------------------------------------------------------------------


def test_the_steps_are_those_printed_in_the_paper():
    n, R, mu, beta, initial, gap = 200, 3.0, 0.1, 0.5, 0.7, 1e-3
    K = n + n * R**2 / (mu * beta)
    assert theory.descent_smooth(n, R, mu, beta, initial).iterations(gap) == np.ceil(K * np.log(K * initial / gap))
    R, L = 1e-2, 0.3
    bound = theory.descent_lipschitz(n, R, L, beta, initial)
    forget = np.ceil(n * np.log(initial * beta / (2 * L**2 * R**2 * n)))
    assert bound.forget == forget > 0
    assert bound.iterations(gap) <= np.ceil(forget + n + 20 * n**2 * L**2 * R**2 / (beta * gap))
    assert bound.dual(forget + 16 * n**2 * L**2 * R**2 / (beta * gap)) <= gap / 2
    one_sided = theory.descent_lipschitz(n, R, L, beta, initial, one_sided=True)
    assert one_sided.spread == bound.spread / 4


def test_the_bounds_of_ascent_are_a_special_case():
    """Corollaries 16 and 18: A = X / n, g_i = phi* / n and f* = lam/2 |.|^2."""
    n, lam, gamma = 500, 1e-2, 0.5
    assert theory.descent_smooth(n, 1 / n, gamma / n, lam, 1.0) == theory.sdca_smooth(n, lam, gamma)
    ours, theirs = theory.descent_lipschitz(n, 1 / n, 1.0, lam, 1.0), theory.sdca_lipschitz(n, lam)
    for gap in (1e-1, 1e-4):
        assert ours.iterations(gap) == theirs.iterations(gap)


def test_a_mean_of_copies_has_the_same_bound():
    """The normalisation is a mean: all samples twice, or with weight 2, change nothing over weights."""
    X, y = regression(50, 8)
    for penalty, bound in ((fl.penalties.L1(0.1), theory.lasso), (fl.penalties.ElasticNet(0.1), theory.elastic_net)):
        once = bound(fl.Problem(X, y, penalty=penalty))
        twice = bound(fl.Problem(np.vstack([X, X]), np.append(y, y), penalty=penalty))
        weighted = bound(fl.Problem(X, y, penalty=penalty, sample_weight=np.full(50, 2.0)))
        for gap in (1e-1, 1e-3):
            assert once.iterations(gap) == pytest.approx(twice.iterations(gap), abs=1)
            assert once.iterations(gap) == pytest.approx(weighted.iterations(gap), abs=1)


def test_the_radius_of_the_lasso_is_that_of_a_mean():
    X, y = regression(60, 5)
    y = np.sign(y)
    bound = theory.lasso(fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L1(0.05)))
    B, R2 = np.log(2) / 0.05, np.max(np.mean(X**2, axis=0))
    assert bound.spread / bound.lam == pytest.approx(4 * 25 * B**2 * R2 * 0.25)  # beta = 4: the loss is 1/4-smooth


def test_what_they_do_not_cover_is_refused():
    X, y = regression(20, 4)
    with pytest.raises(TypeError, match=r"need a fenchel\.Problem, got 3"):
        theory.lasso(3)
    with pytest.raises(TypeError, match="needs an L1 penalty and no intercept"):
        theory.lasso(fl.Problem(X, y, penalty=fl.penalties.L2(0.1)))
    with pytest.raises(TypeError, match="needs an ElasticNet penalty and no intercept"):
        theory.elastic_net(fl.Problem(X, y, penalty=fl.penalties.ElasticNet(0.1), intercept=True))
    with pytest.raises(TypeError, match=r"smooth loss, which Absolute\(\) is not"):
        theory.lasso(fl.Problem(X, y, fl.losses.Absolute(), fl.penalties.L1(0.1)))
    with pytest.raises(ValueError, match="over must be one of"):
        theory.elastic_net(fl.Problem(X, y, penalty=fl.penalties.ElasticNet(0.1)), over="rows")
    with pytest.raises(ValueError, match="equal weight"):
        theory.elastic_net(
            fl.Problem(X, y, penalty=fl.penalties.ElasticNet(0.1), sample_weight=np.arange(20.0)), over="samples"
        )
    with pytest.raises(ValueError, match="every column of X is zero"):
        theory.lasso(fl.Problem(0.0 * X, y, penalty=fl.penalties.L1(0.1)))
    with pytest.raises(ValueError, match="mu must be a positive number"):
        theory.descent_smooth(10, 1.0, 0.0, 1.0, 1.0)


# What descent does, on average over 10 seeds --------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["weights", "samples"])
@pytest.mark.parametrize("shape", [(150, 15), (15, 150)], ids=str)
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=str)
def test_the_expected_gap_is_under_corollary_11(loss, shape, over):
    X, y = regression(*shape)
    y = np.sign(y) if loss.is_classification else y
    problem = fl.Problem(X, y, loss, fl.penalties.ElasticNet(0.5, 0.2))
    bound = theory.elastic_net(problem, over)
    epochs = 20
    assert np.all(mean_gaps(problem, over, epochs) <= bound.gap(bound.n * np.arange(1, epochs + 1)))


@pytest.mark.parametrize("shape", [(200, 10), (10, 200)], ids=str)
def test_fewer_coordinates_need_fewer_steps_as_corollary_11_says(shape):
    """The paper's d >> n is our (200, 10): over weights it is sooner there, at (10, 200) over samples."""
    X, y = regression(*shape)
    problem = fl.Problem(X / np.sqrt(shape[1]), y, penalty=fl.penalties.ElasticNet(1.0, 0.01))
    gap = 1e-6
    steps, bounds = {}, {}
    for over in ("weights", "samples"):
        bound = theory.elastic_net(problem, over)
        gaps = mean_gaps(problem, over, 60)
        assert gaps[-1] <= gap
        steps[over], bounds[over] = bound.n * (1 + int(np.argmax(gaps <= gap))), bound.iterations(gap)
        assert steps[over] <= bounds[over]
    fewer, more = ("weights", "samples") if shape[0] > shape[1] else ("samples", "weights")
    assert 5 * bounds[fewer] < bounds[more]
    assert 5 * steps[fewer] < steps[more]


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=str)
def test_the_lasso_is_certified_before_corollary_10_says(loss):
    X, y = regression(80, 12)
    y = np.sign(y) if loss.is_classification else y
    problem = fl.Problem(X, y, loss, fl.penalties.L1(0.05))
    bound, best = theory.lasso(problem), fl.solve(problem, tol=1e-10).certificate.primal
    runs = np.array([[problem.primal(c.w) - best for c in iterates(problem, "weights", 30, s)] for s in range(SEEDS)])
    steps = bound.n * np.arange(1, 31)
    assert np.all(runs.mean(axis=0) <= bound.dual(steps))  # the suboptimality of the iterates
    for gap in (1e-2, 1e-4):
        r = fl.solve(problem, solver="approx", accelerate=False, tol=0.0, atol=gap, check_every=1)
        assert r.n_iter * bound.n <= bound.iterations(gap)


@pytest.mark.parametrize("lam", [0.1, 1e-2])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Absolute()], ids=repr)
def test_kinks_with_an_elastic_net_are_under_theorem_9(loss, lam):
    """The third row of Table 1 for a loss with kinks: f = R*, averages by dual ascent over samples."""
    X, y = regression(150, 10)
    y = np.sign(y) if loss.is_classification else y
    X /= np.linalg.norm(X, axis=1).max()
    problem = fl.Problem(X, y, loss, fl.penalties.ElasticNet(lam, 0.3))
    bound = theory.elastic_net(problem, "samples")
    assert bound.spread == pytest.approx(1.0 if loss.is_classification else 4.0)
    assert bound.lam == pytest.approx(0.7 * lam)
    best, epochs = fl.solve(problem, tol=1e-9).certificate.primal, np.arange(1, 64)
    algorithm = SDCA(sampling="uniform", shrink=False, accelerate=False, output="average")
    gaps, below = [], []
    for seed in range(SEEDS):
        state = algorithm.begin(problem, Start(np.zeros(10), 0.0, np.zeros(150)), seed)
        for _ in epochs:
            state = algorithm.step(state)
            last, mean = algorithm.candidates(state)
            gaps.append(problem.primal(mean.w) - problem.dual(np.clip(mean.alpha, *problem.domain)))
            below.append(best - problem.dual(last.alpha))
    assert np.all(np.mean(np.reshape(below, (SEEDS, -1)), axis=0) <= bound.dual(150 * epochs))
    limit = bound.gap(150 * epochs, 150 * SuffixAverage.skipped(epochs))
    assert np.isfinite(limit).sum() >= 16
    assert np.all(np.mean(np.reshape(gaps, (SEEDS, -1)), axis=0) <= limit)


def test_kinks_are_refused_over_weights():
    X, y = regression(20, 4)
    with pytest.raises(TypeError, match=r"smooth loss, which Hinge\(\) is not"):
        theory.elastic_net(fl.Problem(X, np.sign(y), fl.losses.Hinge(), fl.penalties.ElasticNet(0.1)))


# The average of Algorithm 1 over weights ------------------------------------------------------------------------------


def averages(problem, epochs, seed, skip=None):
    algorithm = APPROX(over="weights", accelerate=False, output="average", average_from=skip)
    n, d = problem.shape
    state = algorithm.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)
    for _ in range(epochs):
        state = algorithm.step(state)
        yield algorithm.candidates(state)


def test_the_average_is_of_all_iterates_of_its_window():
    """Of single steps: by running them one at a time with the same coordinates."""
    X, y = regression(30, 5)
    problem = fl.Problem(X, y, penalty=fl.penalties.L1(0.05), intercept=True)
    order = np.random.default_rng(7).integers(6, size=(7, 6))  # the intercept is a coordinate

    curvature, z, windows = np.append(np.mean(X**2, axis=0), 1.0), np.zeros(6), []
    for epoch in order:
        means = []
        for j in epoch:
            means.append(z.copy())
            r = X @ z[:5] + z[5] - y
            slope = np.append(X.T @ r, r.sum()) / 30
            step = z[j] - slope[j] / curvature[j]
            z[j] = np.sign(step) * max(abs(step) - 0.05 / curvature[j], 0.0) if j < 5 else step
        windows.append(np.mean(means, axis=0))
    found = list(averages(problem, 7, seed=7))
    last, mean = found[-1]
    np.testing.assert_allclose(np.append(last.w, last.b), z, atol=1e-12)
    np.testing.assert_allclose(np.append(mean.w, mean.b), np.mean(windows[1:], axis=0), atol=1e-12)
    for skip in (0, 4):
        _, mean = list(averages(problem, 7, 7, skip))[-1]
        np.testing.assert_allclose(np.append(mean.w, mean.b), np.mean(windows[skip:], axis=0), atol=1e-12)


@pytest.mark.parametrize("lam", [0.3, 0.1])
@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=str)
def test_the_expected_gap_of_the_average_is_under_corollary_10(loss, lam):
    """The gap of the paper: of the mean weights and their gradient, every lam |w_j| Lipschitzed with B."""
    X, y = regression(80, 12)
    y = np.sign(y) if loss.is_classification else y
    problem = fl.Problem(X, y, loss, fl.penalties.L1(lam))
    B, bound, epochs = problem.loss_at_zero / lam, theory.lasso(problem), np.arange(1, 128)

    def gap(w):
        assert np.abs(w).max() <= B
        alpha = -loss.derivative(problem.scores(w), y)
        v = problem.dual_vector(alpha)
        conjugate = B * float(np.maximum(np.abs(v) - lam, 0.0).sum())
        return problem.primal(w) + problem.mean(loss.conjugate(-alpha, y)) + conjugate

    gaps = np.mean([[gap(mean.w) for _, mean in averages(problem, 127, seed)] for seed in range(SEEDS)], axis=0)
    limit = bound.gap(12 * epochs, 12 * SuffixAverage.skipped(epochs))
    assert np.isfinite(limit).sum() > 64
    assert np.all(gaps <= limit)


def test_a_solve_certifies_the_average_as_well():
    X, y = regression(60, 8)
    problem = fl.Problem(X, y, penalty=fl.penalties.L1(0.1))
    plain, averaged = (
        fl.solve(problem, solver="approx", accelerate=False, output=output, tol=1e-6) for output in ("last", "average")
    )
    assert averaged.certificate.ok
    assert averaged.n_iter <= plain.n_iter
    with pytest.raises(ValueError, match='output="average" needs accelerate=False'):
        fl.solve(problem, solver="approx", output="average")
    with pytest.raises(TypeError, match="sdca has the average over samples"):
        fl.solve(problem.replace(penalty=fl.penalties.L2(0.1)), solver="approx", accelerate=False, output="average")
