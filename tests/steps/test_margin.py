"""Margins by momentum: Algorithm 1 of Ji, Srebro and Telgarsky (2021), its forms, losses, steps and scales."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.steps import GradientDescent, Margin, NormalizedGradient
from fenchel.steps.margin.potentials import LOGISTIC_STEP, ExponentialPotential, LogisticPotential
from fenchel.steps.margin.rows import MarginRows
from tests.helpers.interpolation import zero
from tests.helpers.margin import algorithm_1, dual_nesterov, hard, largest_margin, margin_of, separable, unit_rows

STORAGE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}


def states(solver, problem, steps):
    state = solver.begin(problem, zero(problem), 0)
    for _ in range(steps):
        state = solver.step(state)
        yield state


def quiet(problem, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        return fl.solve(problem, **options)


# Algorithm 1 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["primal", "dual"])
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_iterates_are_those_of_algorithm_1_in_both_forms(seed, storage, form):
    X, y = separable(seed)
    X = X.astype(np.float32).astype(np.float64)
    problem = hard(STORAGE[storage](X), y)
    scale = np.linalg.norm(X, axis=1).max()
    for state, (w, q, image) in zip(
        states(Margin(form=form, step_size=1.0), problem, 60), algorithm_1(unit_rows(X, y), 60), strict=True
    ):
        # w is in the units of rows divided by a power of two, not by the largest norm
        own = state.weights * state.form.rows.longest
        np.testing.assert_allclose(own, w, atol=1e-10 * np.linalg.norm(w))
        np.testing.assert_allclose(state.point.q, q, atol=1e-10)
        mu = -(y * state.mu) @ X / scale
        np.testing.assert_allclose(mu, image, atol=1e-10)


def test_the_iterates_are_those_of_nesterovs_method_on_the_dual():
    X, y = separable(3)
    run = states(Margin(form="dual", step_size=1.0), hard(X, y), 80)
    for state, (q, mu) in zip(run, dual_nesterov(unit_rows(X, y), 80), strict=True):
        np.testing.assert_allclose(state.point.q, q, atol=1e-10)
        np.testing.assert_allclose(state.mu, mu, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"loss": "logistic"}, {"loss": "logistic", "shift": 0.0}, {"step_size": 1.0}])
def test_both_forms_have_the_same_iterates_whatever_the_loss_and_the_steps(options):
    problem = hard(*separable(5, n=40, d=6))
    pair = (states(Margin(form=form, **options), problem, 60) for form in ("primal", "dual"))
    for one, two in zip(*pair, strict=True):
        np.testing.assert_allclose(one.weights, two.weights, rtol=1e-7, atol=1e-9 * np.linalg.norm(one.weights))


def test_the_dual_form_asks_for_products_with_the_gram_matrix_only(monkeypatch):
    problem = hard(*separable(5, n=40, d=6))
    run = states(Margin(form="dual"), problem, 10)
    next(run)
    monkeypatch.setattr(MarginRows, "scores", None)
    monkeypatch.setattr(MarginRows, "combination", None)
    monkeypatch.setattr(MarginRows, "tilted", None)
    assert len(list(run)) == 9


def test_threads_change_no_more_than_rounding():
    X, y = separable(7, n=3000, d=120)  # enough entries for two threads
    one, two = (
        list(states(Margin(step_size=1.0), hard(fl.Design(X, threads=threads), y), 20))[-1] for threads in (1, 2)
    )
    assert two.form.rows.problem.X.threads == 2
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-9)


def test_rows_of_weight_zero_are_left_out():
    X, y = separable(8, n=30, d=5)
    X, y, weight = np.vstack([X, -X[:2]]), np.append(y, y[:2]), np.append(np.full(30, 2.0), np.zeros(2))
    for form in ("primal", "dual"):
        whole, part = (
            list(states(Margin(form=form), problem, 30))[-1]
            for problem in (hard(X, y, sample_weight=weight), hard(X[:30], y[:30]))
        )
        np.testing.assert_allclose(whole.weights, part.weights, rtol=1e-9)
        assert np.all(whole.mu[30:] == 0.0)


def test_rows_may_have_different_margins():
    X, y = separable(9, n=30, d=5)
    bound = np.random.default_rng(0).uniform(0.5, 3.0, size=30)
    given = fl.Interpolation(X, fl.sets.HalfLine(bound, y), fl.penalties.L2(3.0), sample_weight=1.0 + np.arange(30) % 3)
    result = fl.solve(given, solver="margin", tol=1e-4)
    best = fl.solve(given, tol=1e-9).certificate
    assert result.certificate.ok
    assert best.primal * (1.0 - 1e-8) <= result.certificate.primal <= best.primal * (1.0 + 1.1e-4)
    scaled = list(states(Margin(), hard(X / bound[:, None], y), 30))[-1]
    np.testing.assert_allclose(list(states(Margin(), given, 30))[-1].weights, scaled.weights, rtol=1e-9)


# Certificates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "margin"},
        {"solver": "margin", "step_size": 1.0},
        {"solver": "margin", "form": "dual"},
        {"solver": "margin", "loss": "logistic"},
        {"solver": "margin_sampling"},
        {"solver": "margin_sampling", "steps": "proven", "horizon": 300},
        {"solver": "gradient_descent"},
        {"solver": "normalized_gradient", "loss": "logistic"},
        {"solver": "batch_perceptron"},
        {"solver": "sublinear", "horizon": 3000},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_certificate_has_the_largest_margin_between_its_bounds(seed, options):
    X, y = separable(seed, n=40, d=4)
    steps = 1000 if options["solver"] == "margin" else 200
    result, best = quiet(hard(X, y), max_iter=steps, tol=1e-3, **options), largest_margin(X, y)
    made = result.certificate
    upper = 1.0 / np.sqrt(2.0 * (made.dual - made.rounding)) if made.dual > made.rounding else np.inf
    assert upper >= best * (1.0 - 1e-8)
    if np.isfinite(made.gap):
        own = np.min(y * (X @ result.w)) / np.linalg.norm(result.w)
        assert own <= best * (1.0 + 1e-8)
        assert made.feasible == "exact"
    if options["solver"] == "margin":
        assert made.ok


@pytest.mark.parametrize("options", [{}, {"form": "dual"}, {"loss": "logistic"}, {"step_size": 1.0}])
def test_the_estimate_of_the_gap_is_that_of_the_certificate(options):
    X, y = separable(4, n=40, d=4)
    weight = (np.arange(40) % 5 > 0) * 2.0
    problem = hard(X, y, penalty=fl.penalties.L2(0.3), sample_weight=weight)
    state = list(states(Margin(**options), problem, 200))[-1]
    model, seen = state.candidates()[0], state.progress()
    made = fl.certify(problem, model.w, alpha=model.alpha, effort="low")
    assert seen.primal == pytest.approx(made.primal, rel=1e-9)
    assert seen.gap == pytest.approx(made.gap, rel=1e-4)
    assert seen.passes >= 400  # two products a step, and more for steps that were too long
    assert (seen.passes == 400) == ("step_size" in options)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_the_margin_of_features_of_any_scale(scale):
    X, y = separable(11, n=30, d=4)
    X = X / np.abs(X).max()
    with np.errstate(all="ignore"):
        rows = [list(states(Margin(), hard(factor * X, y), 50))[-1] for factor in (1.0, 2.0 ** round(np.log2(scale)))]
    assert np.array_equal(rows[0].weights, rows[1].weights)  # a power of two is exact
    if 1e-140 < scale < 1e140:  # beyond it the least |w|^2 / 2 is no number
        result = fl.solve(hard(scale * X, y), solver="margin", tol=1e-3)
        assert 1.0 / np.linalg.norm(result.w) == pytest.approx(scale * largest_margin(X, y), rel=1e-3)


@pytest.mark.parametrize("margin", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("options", [{}, {"form": "dual"}, {"loss": "logistic"}])
def test_margins_of_any_size_never_overflow(margin, options):
    """Two rows of length about 1 at nearly opposite sides, or long ones."""
    X, y = np.array([[1.0, margin], [-1.0, margin]]), np.ones(2)
    best = margin  # half way between both
    result = quiet(hard(X, y), solver="margin", tol=1e-3, max_iter=3000, **options)
    assert result.certificate.ok
    assert 1.0 / np.linalg.norm(result.w) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 200)])
def test_every_shape(shape):
    X, y = separable(2, *shape)
    for solver in ("margin", "margin_sampling", "batch_perceptron", "sublinear"):
        result = quiet(hard(X, y), solver=solver, tol=1e-2, max_iter=300)
        assert np.isfinite(result.certificate.gap)
    X = np.vstack([X, X, X[:1]])  # duplicates
    X = np.column_stack([X, np.zeros(len(X))])
    assert fl.solve(hard(X, np.append(np.append(y, y), y[:1])), solver="margin", tol=1e-2).certificate.ok


def test_data_that_cannot_be_separated_are_proven_so():
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.ones(3)
    with pytest.raises(fl.Infeasible) as error:
        fl.solve(hard(X, y), solver="margin", max_iter=500)
    assert error.value.certificate.verify(X, fl.sets.HalfLine(1.0, y))
    with pytest.raises(fl.Infeasible):
        fl.solve(hard(np.zeros((2, 3)), np.ones(2)), solver="margin")


# Losses ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("potential", [ExponentialPotential(), LogisticPotential(), LogisticPotential(2.0)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 800.0, 1e6])
def test_psi_is_the_inverse_loss_of_the_sum_and_its_slopes_are_its_gradient(potential, size):
    rng = np.random.default_rng(0)
    for shift in (-size, 0.0, size):
        z = size * rng.normal(size=7) + shift
        psi = potential.value(z)
        q = potential.slopes(z, psi)
        assert psi >= z.max()
        assert np.isfinite(psi)
        assert q.sum() >= 1.0 - 1e-12
        assert np.all((q >= 0.0) & (q <= 1.0 + 1e-12))
        if size <= 1.0:
            u = z - potential.offset
            loss = np.log1p(np.exp(u)) if potential.is_logistic else np.exp(u)
            inverse = np.log(np.expm1(loss.sum())) if potential.is_logistic else np.log(loss.sum())
            assert psi == pytest.approx(potential.offset + inverse, rel=1e-12)
            moves = 1e-6 * np.eye(7)
            slopes = [(potential.value(z + move) - potential.value(z - move)) / 2e-6 for move in moves]
            np.testing.assert_allclose(q, slopes, atol=1e-8)


@pytest.mark.parametrize("potential", [ExponentialPotential(), LogisticPotential(), LogisticPotential(3.0)])
@pytest.mark.parametrize("storage", ["C", "csr", "float32"])
@pytest.mark.parametrize("length", [0.0, 1.0, 1e4])
def test_one_pass_has_the_scores_and_the_combination_of_two_products(potential, storage, length):
    X, y = separable(4, n=300, d=9)
    X = X.astype(np.float32).astype(np.float64)
    rows = MarginRows.of(hard(STORAGE[storage](X), y, sample_weight=(np.arange(300) % 7 > 0).astype(float)))
    w = length * np.random.default_rng(1).normal(size=9)
    z, v, shift = rows.tilted(w, potential.is_logistic, potential.offset)
    scores = rows.scores(w)
    np.testing.assert_allclose(z + potential.offset, scores, rtol=1e-12, atol=1e-12)
    psi = potential.value(scores)
    both = rows.combination(potential.slopes(scores, psi))
    np.testing.assert_allclose(v * potential.normaliser(psi, shift), both, rtol=1e-9, atol=1e-11)


def test_the_steps_of_the_shifted_logistic_loss_are_short_enough_for_any_number_of_rows():
    """The paper leaves a first step size open: for log(1 + exp(z - log n)) it is 1 - 1/e, whatever n is."""
    for n in (2, 20, 2000):
        run = states(Margin(loss="logistic", step_size=LOGISTIC_STEP), hard(*separable(6, n=n, d=8)), 300)
        for state in run:
            assert state.point.q.sum() <= 1.0 / LOGISTIC_STEP + 1e-9
            before = replace(state.point)
            assert before.psi <= np.log(n) + np.log(np.e - 1.0)  # at most that of w = 0, where L = n log(1 + 1 / n) < 1


def test_the_shifted_logistic_loss_does_not_need_steps_of_1_over_n():
    X, y = separable(6, n=2000, d=20)
    best, missing = largest_margin(X, y), {}
    for name, options in {
        "shifted": {"step_size": LOGISTIC_STEP},
        "1/n": {"step_size": 1.0 / 2000, "shift": 0.0},
        "adaptive": {},
    }.items():
        w = list(states(Margin(loss="logistic", **options), hard(X, y), 1500))[-1].weights
        missing[name] = 1.0 - margin_of(-y[:, None] * X, w) / best
    assert missing["shifted"] < 0.08
    assert missing["adaptive"] < 0.005
    assert missing["1/n"] > 0.08


# Adaptive steps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"loss": "logistic"}, {"step_size": 1.0}])
@pytest.mark.parametrize("seed", range(6))
def test_every_step_satisfies_the_inequality_of_the_proof(seed, options):
    X, y = separable(seed)
    best = largest_margin(X, y)
    state = Margin(**options).begin(problem := hard(X, y), zero(problem), 0)
    start, before, total = state.point.psi, state.point, 0.0
    scale = np.ldexp(1.0, state.form.rows.exponent)
    for _ in range(300):
        step, weight = state.step_size, state.weight
        state.step()
        after = state.point
        used = state.weight * (2.0 / (state.steps + 1.0)) ** 2 if options.get("step_size") else None
        divergence = before.psi - after.psi - after.q @ (before.z - after.z)
        share = 2.0 / (state.steps + 1.0) if used is not None else 1.0 - weight / state.weight
        length = state.weight * share**2
        size = abs(before.psi) + abs(after.psi) + after.q @ np.abs(before.z - after.z)
        assert 0.5 * length * np.sum((after.v - before.v) ** 2) <= divergence + 1e-13 * size
        assert length <= step * (1.0 + 1e-9)
        total += length / share
        before = after
        # what follows from it: the margin and the dual value
        w = state.weights
        own, g = -np.max(after.z) / np.linalg.norm(w), best / scale
        assert own >= (g - start / np.linalg.norm(w)) * (1.0 - 1e-9) - 1e-12
        assert np.linalg.norm(w) >= g * total * (1.0 - 1e-9)
        excess = 0.5 * (state.M @ state.M - g * g)
        assert excess <= start / state.weight + 1e-9 * g * g


def test_adaptive_steps_need_fewer_passes():
    X, y = separable(1, n=500, d=60)
    short, long = (
        fl.solve(hard(X, y), solver="margin", tol=1e-3, check_every=10, step_size=size).n_iter
        for size in ("adaptive", 1.0)
    )
    assert short <= long / 1.3


# Baselines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_gradient_descent_follows_the_gradient_of_the_mean_loss(loss):
    X, y = separable(2, n=30, d=4)
    Z, w = unit_rows(X, y), np.zeros(4)
    for state in states(GradientDescent(loss=loss), hard(X, y), 50):
        z = Z @ w
        slopes = np.exp(z) if loss == "exponential" else 4.0 / (1.0 + np.exp(-z))
        w = w - Z.T @ slopes / 30
        np.testing.assert_allclose(state.weights * state.form.rows.longest, w, atol=1e-10)


@pytest.mark.parametrize("steps", ["constant", "root"])
def test_normalised_gradients_are_those_of_the_logarithm_of_the_loss(steps):
    X, y = separable(2, n=30, d=4)
    Z, w = unit_rows(X, y), np.zeros(4)
    for t, state in enumerate(states(NormalizedGradient(steps=steps), hard(X, y), 50)):
        e = np.exp(Z @ w)
        w = w - Z.T @ (e / e.sum()) / (np.sqrt(t + 1.0) if steps == "root" else 1.0)
        np.testing.assert_allclose(state.weights * state.form.rows.longest, w, atol=1e-10)


# What does not fit ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver", ["margin", "margin_sampling", "gradient_descent", "normalized_gradient", "batch_perceptron", "sublinear"]
)
def test_other_problems_are_refused_in_words(solver):
    X, y = separable(0, n=6, d=2)
    sets, L2 = fl.sets, fl.penalties.L2
    for problem, words in [
        (fl.Interpolation(X, sets.HalfLine(1.0, y), intercept=True), "no intercept"),
        (fl.Interpolation(X, sets.HalfLine(1.0, y), centre=np.ones(2)), "no centre"),
        (fl.Interpolation(X, sets.HalfLine(1.0, y), fl.penalties.LpSquared(1.0, 1.5)), "a quadratic penalty"),
        (fl.Interpolation(X, sets.HalfLine(1.0), L2(1.0), outputs=2), "one score per sample|is stored"),
        (fl.Interpolation(X, sets.HalfLine(0.0, y)), "positive margin"),
        (fl.Interpolation(X, sets.Point(y)), "half-lines"),
        (fl.Interpolation(X, sets.Ball(0.0), outputs=2), "intervals"),
    ]:
        with pytest.raises(TypeError, match=words):
            fl.solve(problem, solver=solver)
    with pytest.raises(ValueError, match="ignores start"):
        fl.solve(hard(X, y), solver=solver, start=(np.ones(2), 0.0, np.zeros(6)))


def test_options_without_sense_are_errors():
    for make, words in [
        (lambda: Margin(loss="hinge"), "loss must be one of"),
        (lambda: Margin(form="both"), "form must be one of"),
        (lambda: Margin(step_size="long"), "step_size must be one of"),
        (lambda: Margin(step_size=0.0), "step_size must be a positive"),
        (lambda: Margin(shift=1.0), "no effect"),
        (lambda: Margin(loss="logistic", shift=-1.0), "shift must be"),
        (lambda: NormalizedGradient(steps="long"), "steps must be one of"),
        (lambda: GradientDescent(step_size=-1.0), "step_size must be a positive"),
    ]:
        with pytest.raises(ValueError, match=words):
            make()
