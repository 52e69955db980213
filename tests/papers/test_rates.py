"""From the suboptimality of any algorithm to its gap: Lemma 1 and Theorems 2 to 4 of the certificates paper."""

import numpy as np
import pytest

import fenchel as fl
from fenchel import theory
from fenchel.solver import Start
from fenchel.steps import APPROX, FISTA
from tests.papers.helpers import minibatch_approx

N, D = 60, 12


def problem_of(loss, penalty, seed=0, weights=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = X[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=N)
    y = np.sign(y) if loss.is_classification else y
    return fl.Problem(X, y, loss, penalty, sample_weight=rng.random(N) + 0.1 if weights else None)


def gradient_gap(problem, w, radius=None):
    """The gap of w and its gradient's multipliers; for L1 Lipschitzed with |w|_1 <= radius, Eq. (18)."""
    alpha = -problem.loss.derivative(problem.scores(w), problem.y)
    v, penalty = problem.dual_vector(alpha), problem.penalty
    loss = -problem.mean(problem.loss.conjugate(-alpha, problem.y))
    if radius is None:
        return problem.primal(w) - loss + penalty.conjugate(v)
    return problem.primal(w) - loss + radius * max(0.0, np.abs(v).max() - penalty.lam)


def near_optimum(problem):
    """Weights near the optimum, and a bound on P* from below."""
    result = fl.solve(problem, tol=1e-12, max_iter=20_000)
    return result.w, result.certificate.primal - result.certificate.gap


# Lemma 1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=repr)
def test_lemma_1_over_weights_for_any_model_and_step(loss):
    problem = problem_of(loss, fl.penalties.ElasticNet(0.1, 0.5), weights=True)
    mu, beta = problem.penalty.strong_convexity, 1.0 / loss.smoothness
    best, _ = near_optimum(problem)
    low = problem.primal(best)
    rng = np.random.default_rng(1)
    tightest = 0.0
    for size in (1e-3, 0.1, 1.0, 30.0):
        for _ in range(10):
            w = best + size * rng.normal(size=D)
            v = problem.dual_vector(-loss.derivative(problem.scores(w), problem.y))
            move = problem.penalty.grad_conjugate(v) - w
            image = np.sqrt(problem.mean(problem.scores(move) ** 2))
            gap, above = gradient_gap(problem, w), problem.primal(w) - low
            bounds = [
                theory.suboptimality_at_least(gap, np.linalg.norm(move), image, mu, beta, s)
                for s in np.linspace(0, 1, 101)
            ]
            sharp = theory.suboptimality_at_least(gap, np.linalg.norm(move), image, mu, beta)
            assert max(bounds) <= sharp * (1 + 1e-12)
            assert sharp <= max(bounds) + 1e-3 * gap  # the best of the grid is nearly the best
            assert sharp <= above * (1 + 1e-9) + 1e-12
            tightest = max(tightest, sharp / above)
    assert tightest > 0.3


def test_lemma_1_with_the_constant_4_and_not_2():
    """|u - x|^2 is 4 L^2 where x and u are at opposite ends: f(z) = z^2 / (2 beta) - c z on |x| <= L."""
    L, beta, c = 1.0, 0.25, 100.0
    x, best = -L, L
    gap = -(x / beta - c) * L + (x / beta - c) * x  # g*(-f'(x)) + f'(x) x, u = L
    above = (x**2 - best**2) / (2 * beta) - c * (x - best)
    sharp = theory.suboptimality_at_least(gap, 2 * L, 2 * L, 0.0, beta, 1.0)
    assert sharp == pytest.approx(gap - 4 * L**2 / (2 * beta)) == pytest.approx(above)
    assert gap - 2 * L**2 / (2 * beta) > above  # what the constant of the paper would claim


# The spectral sigma ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_sigma_is_the_largest_squared_ratio(shape, sparse):
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X, s = rng.normal(size=shape), rng.random(shape[0]) + 0.1
    problem = fl.Problem(sp.csr_array(X) if sparse else X, rng.normal(size=shape[0]), sample_weight=s)
    W = s.sum()
    assert theory.spectral_sigma(problem) == pytest.approx(np.linalg.norm(np.sqrt(s / W)[:, None] * X, 2) ** 2)
    assert theory.spectral_sigma(problem, "samples") == pytest.approx(np.linalg.norm((s / W)[:, None] * X, 2) ** 2)
    assert theory.spectral_sigma(problem, norm=1) == pytest.approx(np.max((s / W) @ X**2))
    assert theory.spectral_sigma(problem, "samples", norm=1) == pytest.approx(
        np.max((s / W) ** 2 * np.sum(X**2, axis=1))
    )


@pytest.mark.parametrize("shape", [(3, 2), (501, 502)], ids=str)
@pytest.mark.parametrize("norm", [1, 2])
def test_sigma_of_zeros_is_zero(shape, norm):
    problem = fl.Problem(np.zeros(shape), np.ones(shape[0]))
    for over in ("weights", "samples"):
        assert theory.spectral_sigma(problem, over, norm) == 0.0


def test_sigma_of_large_data_is_estimated_to_many_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 600))
    problem = fl.Problem(X, rng.normal(size=700))
    sigma = np.linalg.norm(X, 2) ** 2 / 700
    assert sigma <= theory.spectral_sigma(problem) <= sigma * (1 + 1e-6)


# Theorems 2 to 4, as formulas -----------------------------------------------------------------------------------------


def test_theorem_2_is_as_printed():
    C, D0, sigma, mu, beta, gap = 0.01, 3.0, 5.0, 0.1, 2.0, 1e-6
    printed = np.log(D0 * (sigma / beta + mu) / (mu * gap)) / C
    steps = theory.gap_strongly_convex(theory.LinearRate(C, D0), sigma, mu, beta).iterations(gap)
    assert 0.98 * printed < steps <= np.ceil(printed)  # log(1 - C) <= -C


@pytest.mark.parametrize("gap", [1e3, 10.0, 1.0, 1e-4])
def test_theorem_3_with_its_constant_doubled(gap):
    C, D0, sigma, L, beta = 0.01, 3.0, 5.0, 0.7, 2.0
    corrected = np.log(2 * D0 * max(1.0, 4 * sigma * L**2 / (gap * beta)) / gap) / C
    bound = theory.gap_lipschitz(theory.LinearRate(C, D0), sigma, L, beta)
    steps = bound.iterations(gap)
    assert steps <= max(0, np.ceil(corrected))
    if gap <= bound.spread:  # where its two terms balance, the theorem is the best that the lemma gives
        assert steps >= 0.98 * corrected


@pytest.mark.parametrize("gap", [1.0, 1e-3])
def test_theorem_4_with_its_gap_doubled_and_its_condition_quadrupled(gap):
    C, sigma, L, beta = 2.0, 5.0, 0.7, 2.0
    printed = max(2 * C * beta / (sigma * L**2), 2 * C * sigma * L**2 / (beta * gap**2))
    corrected = max(C * beta / (2 * sigma * L**2), 8 * C * sigma * L**2 / (beta * gap**2))
    bound = theory.gap_lipschitz(theory.PowerRate(C), sigma, L, beta)
    assert bound.iterations(gap) == pytest.approx(corrected, abs=1)
    assert corrected == pytest.approx(4 * printed)
    assert bound.gap(printed) == pytest.approx(2 * gap)


def test_approxs_iterations_are_those_of_the_paper_with_the_constant_corrected():
    n, tau, sigma, L, beta, gap = 1000, 8, 5.0, 0.7, 2.0, 1e-3
    rate = theory.approx_rate(n, 2.0, 0.5, tau)
    C = 4 * n**2 * ((1 - tau / n) * 0.5 + 2.0)
    np.testing.assert_allclose(rate([1, 2, 100]), C / ((np.array([1, 2, 100]) - 1) * tau + 2 * n) ** 2)
    t = 1 - 2 * n / tau + 2 * L / (gap * tau) * np.sqrt(2 * C * sigma / beta)
    assert theory.gap_lipschitz(rate, sigma, L, beta).iterations(gap) == pytest.approx(t, abs=1)


def test_steps_and_gap_are_inverse_for_any_rate():
    rates = [
        theory.LinearRate(1.0, 2.0),
        theory.LinearRate(1e-4, 2.0),
        theory.PowerRate(3.0, 2.0, 5.0, 2.0),
        theory.sdca_lipschitz(100, 0.1).dual,
        lambda t: 1.0 / np.log(2.0 + np.asarray(t)),
    ]
    for rate in rates:
        for bound in (theory.gap_strongly_convex(rate, 2.0, 0.5, 1.0), theory.gap_lipschitz(rate, 0.02, 1.0, 1.0)):
            for gap in (100.0, 0.8):
                T = bound.iterations(gap)
                assert bound.gap(T) <= gap
                assert T == 0 or bound.gap(T - 1) > gap
    with pytest.raises(ValueError, match="its gap stays above"):
        theory.gap_strongly_convex(lambda t: 1.0 + 0.0 * np.asarray(t), 1.0, 1.0, 1.0).iterations(1e-3)


# Real runs: FISTA, coordinate descent, APPROX -------------------------------------------------------------------------


def textbook_fista(problem, steps):
    """The iterates of Beck and Teboulle with the step 1 / L, L = smoothness sigma."""
    L = problem.loss.smoothness * theory.spectral_sigma(problem)
    x = y = np.zeros(problem.shape[1])
    t = 1.0
    for _ in range(steps):
        v = problem.dual_vector(-problem.loss.derivative(problem.scores(y), problem.y))
        x_next, t_next = problem.penalty.prox(y + v / L, 1.0 / L), (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        y = x_next + (t - 1.0) / t_next * (x_next - x)
        x, t = x_next, t_next
        yield x


def solver_iterates(solver, problem, epochs, seed):
    d, n = problem.shape[1], problem.shape[0]
    state = solver.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), seed)
    for _ in range(epochs):
        state = solver.step(state)
        yield solver.candidates(state)[-1]


def l1_radius(problem, runs):
    """A ball that holds every iterate, and the optimum (Theorem 6)."""
    return max(problem.loss_at_zero / problem.penalty.lam, *(np.abs(w).sum() for run in runs for w in run))


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=repr)
@pytest.mark.parametrize("penalty", [fl.penalties.ElasticNet(0.05, 0.5), fl.penalties.L1(0.05)], ids=repr)
@pytest.mark.parametrize("whose", ["textbook", "solver"])
def test_fista_is_under_its_rate_and_its_gap_under_theorems_2_and_4(loss, penalty, whose):
    problem = problem_of(loss, penalty)
    best, low = near_optimum(problem)
    L = loss.smoothness * theory.spectral_sigma(problem)
    rate = theory.fista_rate(L, 1.001 * np.linalg.norm(best))
    if whose == "textbook":
        run = list(textbook_fista(problem, 300))
    else:
        run = [c.w for c in solver_iterates(FISTA(restart=False), problem, 300, 0)]
    steps = np.arange(1, 301)
    assert np.all([problem.primal(w) for w in run] <= low + rate(steps) + 1e-12)
    radius = l1_radius(problem, [run]) if isinstance(penalty, fl.penalties.L1) else None
    bound = theory.gap_of_rate(problem, rate, radius=radius)
    gaps = np.array([gradient_gap(problem, w, radius) for w in run])
    assert np.all(gaps <= bound.gap(steps))
    assert gaps[bound.iterations(1.0) - 1 :].max(initial=0.0) <= 1.0


@pytest.mark.parametrize("loss", [fl.losses.Squared(), fl.losses.Logistic()], ids=repr)
@pytest.mark.parametrize("penalty", [fl.penalties.ElasticNet(0.05, 0.5), fl.penalties.L1(0.05)], ids=repr)
@pytest.mark.parametrize("kind", ["APPROX", "CD"])
def test_steps_over_weights_are_under_their_rates_and_gaps_on_average(loss, penalty, kind):
    problem = problem_of(loss, penalty)
    best, low = near_optimum(problem)
    accelerated = kind == "APPROX"
    solver = APPROX(over="weights", accelerate=accelerated, restart=False if accelerated else None)
    distance = 1.001 * np.sqrt(theory.approx_curvature(problem) @ best**2)
    initial = problem.loss_at_zero - low
    rates = [theory.approx_rate(D, distance, initial)] if accelerated else [theory.descent_rate(D, distance, initial)]
    if not accelerated:  # the corollaries' own rates are rates as well
        corollary = theory.lasso if isinstance(penalty, fl.penalties.L1) else theory.elastic_net
        rates.append(corollary(problem).dual)
    runs = [[c.w for c in solver_iterates(solver, problem, 40, seed)] for seed in range(10)]
    steps = D * np.arange(1, 41)
    above = np.mean([[problem.primal(w) - low for w in run] for run in runs], axis=0)
    radius = l1_radius(problem, runs) if isinstance(penalty, fl.penalties.L1) else None
    gaps = np.mean([[gradient_gap(problem, w, radius) for w in run] for run in runs], axis=0)
    for rate in rates:
        assert np.all(above <= rate(steps) + 1e-12)
        assert np.all(gaps <= theory.gap_of_rate(problem, rate, radius=radius).gap(steps))


@pytest.mark.parametrize("penalty", [fl.penalties.L2(0.05), fl.penalties.ElasticNet(0.05, 0.3)], ids=repr)
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.SmoothedHinge(0.5)], ids=repr)
@pytest.mark.parametrize("kind", ["APPROX", "CD"])
def test_steps_over_samples_are_under_their_rates_and_gaps_on_average(loss, penalty, kind):
    """The SVM: the gap of the iterates themselves, with the box of its multipliers."""
    problem = problem_of(loss, penalty)
    best = fl.solve(problem, solver="sdca", tol=1e-10).certificate.primal
    accelerated = kind == "APPROX"
    solver = APPROX(over="samples", accelerate=accelerated, restart=False if accelerated else None)
    # |alpha*|_v with |alpha_i| <= 1 and v_i = |x_i|^2 / (mu n^2)
    distance = np.sqrt(np.sum(problem.X.row_norms() ** 2) / (penalty.strong_convexity * N**2))
    rate = (theory.approx_rate if accelerated else theory.descent_rate)(N, distance, best)
    runs = [list(solver_iterates(solver, problem, 40, seed)) for seed in range(10)]
    steps = N * np.arange(1, 41)
    assert np.all(np.mean([[best - problem.dual(c.alpha) for c in run] for run in runs], axis=0) <= rate(steps))
    gaps = np.mean([[problem.primal(c.w) - problem.dual(c.alpha) for c in run] for run in runs], axis=0)
    assert np.all(gaps <= theory.gap_of_rate(problem, rate, "samples").gap(steps))


@pytest.mark.parametrize("batch", [1, 3, D])
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_mini_batches_of_approx_are_under_their_rate(batch, density):
    problem = sparse_problem(density)
    best, low = near_optimum(problem)
    curvature = theory.approx_curvature(problem, batch)
    rate = theory.approx_rate(D, np.sqrt(curvature @ best**2), problem.loss_at_zero - low, batch)
    runs = [[problem.primal(w) - low for w in minibatch_approx(problem, curvature, batch, 150, s)] for s in range(10)]
    assert np.all(np.mean(runs, axis=0) <= rate(np.arange(1, 151)) + 1e-12)
    # and so is the solver, whose epochs are D // batch steps
    solver = APPROX(over="weights", restart=False, batch=batch)
    runs = [[problem.primal(c.w) - low for c in solver_iterates(solver, problem, 40, seed)] for seed in range(10)]
    assert np.all(np.mean(runs, axis=0) <= rate(D // batch * np.arange(1, 41)) + 1e-12)


def sparse_problem(density):
    problem = problem_of(fl.losses.Squared(), fl.penalties.L1(0.05))
    keep = np.random.default_rng(3).random((N, D)) < density
    return fl.Problem(problem.X.rows(np.arange(N)) * keep, problem.y, problem.loss, problem.penalty)


@pytest.mark.parametrize("batch", [2, 5, D])
def test_the_solver_takes_the_steps_that_are_printed(batch):
    problem = sparse_problem(0.5)
    solver = APPROX(over="weights", restart=False, batch=batch)
    found = list(solver_iterates(solver, problem, 6, seed=4))
    steps = minibatch_approx(problem, theory.approx_curvature(problem, batch), batch, 6 * (D // batch), seed=4)
    for epoch, w in enumerate(list(steps)[D // batch - 1 :: D // batch]):
        np.testing.assert_allclose(found[epoch].w, w, atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", [fl.penalties.GroupL2(0.05, np.arange(D) // 3), fl.penalties.ElasticNet(0.05)])
def test_batches_of_blocks_end_in_a_certificate(penalty, intercept):
    base = sparse_problem(0.5)
    problem = fl.Problem(base.X.rows(np.arange(N)), base.y, fl.losses.Huber(0.5), penalty, intercept=intercept)
    best = fl.solve(problem, tol=1e-9).certificate.primal
    for batch in (2, 4, 50):
        c = fl.solve(problem, solver="approx", over="weights", batch=batch, tol=1e-6).certificate
        assert c.ok
        assert c.primal == pytest.approx(best, rel=3e-6)


def test_larger_batches_need_fewer_steps():
    problem = problem_of(fl.losses.Squared(), fl.penalties.L1(0.05))
    best, low = near_optimum(problem)
    steps = []
    for batch in (1, 2, 6, D):
        curvature = theory.approx_curvature(problem, batch)
        rate = theory.approx_rate(D, np.sqrt(curvature @ best**2), problem.loss_at_zero - low, batch)
        steps.append(theory.gap_of_rate(problem, rate).iterations(1e-2))
    assert steps == sorted(steps, reverse=True)


def test_what_the_theorems_do_not_cover_is_refused():
    rate = theory.LinearRate(0.1, 1.0)
    with pytest.raises(ValueError, match="contraction must be at most 1"):
        theory.LinearRate(1.5, 1.0)
    with pytest.raises(ValueError, match="distance must be a number >= 0"):
        theory.fista_rate(1.0, -1.0)
    assert theory.fista_rate(1.0, 0.0)(5) == 0.0  # a start at the optimum
    with pytest.raises(ValueError, match="batch must be at most n = 5"):
        theory.approx_rate(5, 1.0, 1.0, 6)
    with pytest.raises(TypeError, match="need a smooth loss"):
        theory.gap_of_rate(problem_of(fl.losses.Hinge(), fl.penalties.L1(0.1)), rate)
    with pytest.raises(TypeError, match="L2, ElasticNet or L1"):
        theory.gap_of_rate(problem_of(fl.losses.Squared(), fl.penalties.LpSquared(0.1, 1.5)), rate)
    with pytest.raises(TypeError, match="over samples the theorems need L2 or ElasticNet"):
        theory.gap_of_rate(problem_of(fl.losses.Squared(), fl.penalties.L1(0.1)), rate, "samples")
    with pytest.raises(ValueError, match="equal weight"):
        theory.gap_of_rate(problem_of(fl.losses.Squared(), fl.penalties.L2(0.1), weights=True), rate, "samples")
    with pytest.raises(TypeError, match=r"smooth or a Lipschitz loss, which Exponential\(\)"):
        theory.gap_of_rate(problem_of(fl.losses.Exponential(), fl.penalties.L2(0.1)), rate, "samples")
    with pytest.raises(ValueError, match="norm must be 1 or 2"):
        theory.spectral_sigma(problem_of(fl.losses.Squared(), fl.penalties.L2(0.1)), norm=3.0)
