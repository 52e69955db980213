"""What algorithms say of their own scores and residuals, against exact arithmetic; and the sums of the bounds."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction as Q

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel._core import kernels
from fenchel.certificate.judge import Judge
from fenchel.data.design import Design
from fenchel.problem import losses
from fenchel.solver import run
from fenchel.steps import SDCA, Newton, Start
from tests.helpers.registry import LOSSES, name, targets
from tests.laws.test_exact_arithmetic import badly_scaled, cancelling, offset, plain, single

ASCENTS = {
    "plain": SDCA(accelerate=False),
    "momentum": SDCA(accelerate=True),
    "uniform": SDCA(sampling="uniform"),
    "average": SDCA(output="average", accelerate=False),
}


def sparse(rng, n, d):
    X = plain(rng, n, d)
    X[np.abs(X) < 0.8] = 0.0
    return sp.csr_array(X)


def length(values):
    """|values| of fractions, from below by at most a part in 1e12."""
    return math.sqrt(sum(x * x for x in values))


def exact_scores(problem, w, b):
    rows = problem.design.rows(np.arange(problem.shape[0]))
    return [sum(Q(float(x)) * Q(float(u)) for x, u in zip(row, w, strict=True)) + Q(float(b)) for row in rows]


def exact_residual(problem, w, alpha):
    """|lam w - v(alpha)| of the doubles given."""
    rows = problem.design.rows(np.arange(problem.shape[0]))
    s = [Q(float(x)) for x in problem.weights]
    v = [Q(0)] * problem.shape[1]
    for row, weight, a in zip(rows, s, alpha, strict=True):
        v = [total + weight * Q(float(a)) * Q(float(x)) for total, x in zip(v, row, strict=True)]
    lam, W = Q(problem.penalty.lam), sum(s)
    return length([lam * Q(float(u)) - total / W for u, total in zip(w, v, strict=True)])


def states(problem, solver, steps):
    n, d = problem.shape
    state = solver.begin(problem, Start(np.zeros(d), 0.0, np.zeros(n)), 0)
    for _ in range(steps):
        state = solver.step(state)
        yield state


def problem_of(loss, design, lam, seed=0, n=17, d=4, constant=0.0, **options):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, n) * rng.random(n)
    weights[:2] = 1.0  # one of each class
    X = Design(design(rng, n, d), constant=constant)
    return fl.Problem(X, targets(loss, rng, n), loss, fl.penalties.L2(lam), weights, **options)


@pytest.mark.parametrize("design", [plain, cancelling, badly_scaled, offset, single, sparse])
@pytest.mark.parametrize("kind", ASCENTS)
@pytest.mark.parametrize("loss", [losses.SquaredHinge(), losses.Logistic(), losses.Squared()], ids=name)
def test_dual_ascent_knows_how_far_its_weights_drift(loss, kind, design):
    solver, hinge = ASCENTS[kind], isinstance(loss, losses.SquaredHinge)
    loss = losses.Hinge() if hinge and kind != "momentum" else loss  # momentum is for smooth losses
    for lam in (1e-4, 10.0):
        problem = problem_of(loss, design, lam)
        for state in states(problem, solver, 12):
            candidate = solver.candidates(state)[0]
            residual = exact_residual(problem, candidate.w, candidate.alpha)
            assert residual <= candidate.residual.norm + candidate.residual.error
            truth = exact_scores(problem, candidate.w, candidate.b)
            errors = [abs(Q(float(z)) - t) for z, t in zip(candidate.scores.z, truth, strict=True)]
            assert all(error <= bound for error, bound in zip(errors, candidate.scores.error, strict=True))


@pytest.mark.parametrize("options", [{"intercept": True}, {"constant": 3.0}], ids=str)
def test_dual_ascent_with_an_intercept(options):
    problem = problem_of(losses.SquaredHinge(), plain, 0.01, **options)
    solver = SDCA()
    for state in states(problem, solver, 8):
        candidate = solver.candidates(state)[0]
        residual = exact_residual(problem, candidate.w, candidate.alpha)
        assert residual <= candidate.residual.norm + candidate.residual.error


@pytest.mark.parametrize("design", [plain, cancelling, badly_scaled, offset, single, sparse])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [losses.Hinge(), losses.Pinball(0.3), losses.Logistic(), losses.Squared()], ids=name)
def test_newton_knows_its_scores_and_residuals(loss, intercept, design):
    seen = 0
    for lam in (1e-4, 10.0):
        problem = problem_of(loss, design, lam, intercept=intercept)
        everyone = problem.replace(weights=problem.weights + 0.1)
        for task in (problem, everyone):
            for state in states(task, Newton(), 12):
                candidate = Newton().candidates(state)[0]
                if candidate.scores is not None:
                    truth = exact_scores(task, candidate.w, candidate.b)
                    errors = [abs(Q(float(z)) - t) for z, t in zip(candidate.scores.z, truth, strict=True)]
                    assert all(e <= bound for e, bound in zip(errors, candidate.scores.error, strict=True))
                    seen += 1
                if candidate.residual is not None:
                    residual = exact_residual(task, candidate.w, candidate.alpha)
                    assert abs(residual - candidate.residual.norm) <= candidate.residual.error
                    seen += 1
    assert seen > 8


@pytest.mark.parametrize("solver", ["sdca", "newton"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [losses.Hinge(), losses.SquaredHinge(), losses.Squared()], ids=name)
def test_bounds_from_residuals_agree_with_those_from_products(loss, intercept, solver):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 6)) + 1.0, targets(loss, rng, 300)
    problem = fl.Problem(X, y, loss, fl.penalties.L2(0.01), intercept=intercept)
    for tol in (1e-2, 1e-4, 1e-7):
        result = fl.solve(problem, solver=solver, tol=tol)
        again = Judge(problem)
        again.consider(result.w, result.b)
        again.try_multipliers(result.alpha, "product")
        assert result.certificate.ok
        assert again.gap <= result.certificate.gap * 1.2 + 1e-12
        # what is good enough is not made sharper
        assert result.certificate.gap <= max(again.gap * 1.2 + 1e-12, tol * result.certificate.primal)


@pytest.mark.parametrize(("solver", "products"), [("sdca", {"matvec": 1}), ("newton", {})])
def test_a_certificate_costs_one_product_at_most(monkeypatch, solver, products):
    """What a run knows is not computed again: no product with X', and none with X where the scores are known."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 10)), rng.normal(size=20_000)
    problem = fl.Problem(X, y, losses.Squared(), fl.penalties.L2(0.1))
    counts, inside = Counter(), []
    for product in ("matvec", "rmatvec", "matvec_bounded", "rmatvec_bounded"):
        original = getattr(Design, product)

        def counted(self, x, product=product, original=original):
            if inside:
                counts[product] += 1
            return original(self, x)

        monkeypatch.setattr(Design, product, counted)

    def check(*args, original=run._check):
        inside.append(1)
        try:
            return original(*args)
        finally:
            inside.clear()

    monkeypatch.setattr(run, "_check", check)
    result = fl.solve(problem, solver=solver, tol=1e-6)
    assert result.status == "certified"
    assert len(result.trace) == 1
    assert counts == products


def test_data_changed_in_place_is_noticed_where_scores_are_the_solver_s_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.choice([-1.0, 1.0], 300)
    problem = fl.Problem(X, y, losses.Logistic(), fl.penalties.L2(0.1))
    certificate = fl.solve(problem, solver="newton").certificate
    certificate.multipliers()
    X[7] *= 1.001
    with pytest.raises(ValueError, match="changed"):
        certificate.multipliers()


def test_a_penalised_intercept_does_not_drift_unseen():
    """Multipliers of 1e12 at the start leave their rounding in the intercept, unless it is computed anew too."""
    problem = problem_of(losses.Squared(), plain, 0.01, constant=1.0)
    solver, (n, d) = SDCA(), problem.shape
    state = solver.begin(problem, Start(np.zeros(d), 0.0, np.full(n, 1e12)), 0)
    state = [solver.step(state) for _ in range(60)][-1]  # changed in place
    solver.observe(state, np.zeros(n), state.primal, np.inf)
    for _ in range(3):
        candidate = solver.candidates(state)[0]
        residual = exact_residual(problem, candidate.w, candidate.alpha)
        assert residual <= candidate.residual.norm + candidate.residual.error
        state = solver.step(state)


@pytest.mark.parametrize("solver", ["sdca", "newton"])
@pytest.mark.parametrize("weight", [1.0, 0.0])
def test_one_huge_row_does_not_blur_the_others(solver, weight):
    """What is not sharp enough is computed sharply, for the candidate at hand."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.choice([-1.0, 1.0], 300)
    X[0] *= 1e10
    weights = np.ones(300)
    weights[0] = weight
    for loss in (losses.Logistic(), losses.Hinge()):
        problem = fl.Problem(X, y, loss, fl.penalties.L2(1e-2), weights)
        result = fl.solve(problem, solver=solver, tol=1e-4, max_iter=2000)
        assert result.status == "certified"


def test_data_changed_before_a_solve_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    problem = fl.Problem(X, y, losses.Squared(), fl.penalties.L2(0.1))
    X *= 1e8
    for state in states(problem, Newton(), 2):
        scores = Newton().candidates(state)[0].scores
        truth = exact_scores(problem, state.w, 0.0)
        errors = [abs(Q(float(z)) - t) for z, t in zip(scores.z, truth, strict=True)]
        assert all(error <= bound for error, bound in zip(errors, scores.error, strict=True))


# The sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_sums_of_losses(loss):
    """Against the NumPy forms, added exactly: within some of the 256 roundings that certificates allow for."""
    rng = np.random.default_rng(0)
    n = 1000
    y, z = targets(loss, rng, n), 3.0 * rng.normal(size=n)
    s, sizes = np.where(rng.random(n) < 0.2, 0.0, rng.random(n)), rng.random(n)
    relative, absolute, share = 1e-3, 1e-4, 1e-5
    total, rise, error = loss.kernel().bound_values(
        z, sizes, relative, absolute, share, y, s, loss.smoothness, loss.lipschitz
    )
    np.testing.assert_allclose(error, relative * sizes + absolute + share * (np.abs(z) + np.abs(y)), rtol=3e-15)
    value = loss.value(z, y)
    assert total == pytest.approx(math.fsum(s * value), rel=50 * 2.0**-53)
    for side in (-1.0, -0.5, 0.5, 1.0):
        assert math.fsum(s * (loss.value(z + side * error, y) - value)) <= rise
    assert rise <= math.fsum(s * loss.rise(z, y, error)) * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_sums_of_conjugates(loss):
    rng = np.random.default_rng(1)
    n = 1000
    y = targets(loss, rng, n)
    low, high = loss.domain(y)
    a = np.clip(3.0 * rng.normal(size=n), low, high)
    a[:10] = 0.0
    s, at_zero = np.where(rng.random(n) < 0.2, 0.0, rng.random(n)), rng.random(n)
    total, size = loss.kernel().bound_conjugates(a, at_zero, y, s, loss.unit)
    g = -loss.conjugate(-a, y)
    sizes = np.abs(g) + at_zero + 2.0 * np.abs(a) * (loss.unit + np.abs(y))
    assert abs(total - math.fsum(s * g)) <= 50 * 2.0**-53 * math.fsum(s * sizes)
    assert size == pytest.approx(math.fsum(s * sizes), rel=50 * 2.0**-53)


@pytest.mark.parametrize("t", [1e-300, 1e-16, 1e-12, 1e-8, 1e-5, 1e-2, 0.4999, 0.5, 0.9, 1 - 1e-9, 1 - 2.0**-53])
def test_entropy_of_multipliers_next_to_their_ends(t):
    """In 400 digits: the error is a few roundings of g itself, however small."""
    with localcontext() as context:
        context.prec = 400
        exactly = Decimal(t) * Decimal(t).ln() + (1 - Decimal(t)) * (1 - Decimal(t)).ln()
    total, _ = losses.Logistic().kernel().bound_conjugates(np.array([t]), np.zeros(1), np.ones(1), np.ones(1), 1.0)
    assert abs(Decimal(total) + exactly) <= Decimal(50 * 2.0**-53) * abs(exactly)


def test_sums_of_products():
    rng = np.random.default_rng(2)
    a, z = rng.normal(size=1001) * 10.0 ** rng.integers(-8, 8, 1001), rng.normal(size=1001)
    error, s = rng.random(1001), np.where(rng.random(1001) < 0.2, 0.0, rng.random(1001))
    found = kernels.bound_products(a, z, error, s)
    terms = [s * a * z, np.abs(s * a * z), s * np.abs(a) * error]
    for total, term in zip(found, terms, strict=True):
        assert abs(total - math.fsum(term)) <= 70 * 2.0**-53 * math.fsum(np.abs(term))


def test_samples_of_weight_zero_do_not_count_whatever_their_value():
    loss, one = losses.Exponential().kernel(), np.ones(2)
    z, s = np.array([0.0, -1e4]), np.array([1.0, 0.0])
    total, rise, _ = loss.bound_values(z, one, 0.0, 0.0, 0.0, one, s, np.inf, np.inf)
    assert (total, rise) == (1.0, 0.0)
