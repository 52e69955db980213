"""The search for the largest margin: one run like any other, with its stop rule, clock, callback and start."""

import os
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import fenchel as fl
from fenchel.certificate.margin import MarginJudge
from fenchel.data.limits import LimitsTuning
from fenchel.problem.margin import LargestMargin, UnitBall
from fenchel.steps.choose import choose, solvers_of
from tests.helpers.margins import best_margin

X, y = (part[:100] for part in load_iris(return_X_y=True))
zero = np.zeros(4), 0.0


def largest(p=2.0, k=2, **options):
    samples, codes = load_iris(return_X_y=True)
    some = codes < k
    return LargestMargin(fl.Design(samples[some]), codes[some].astype(np.int64), k, True, p, **options)


def on_digits(k):
    """Too many samples and features for exchanges of single rows at first."""
    samples, codes = load_digits(return_X_y=True)
    samples = np.repeat(samples, 6, axis=1)
    return LargestMargin(fl.Design(samples[codes < k]), codes[codes < k].astype(np.int64), k, True)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_the_statement_is_solved_like_any_other(p):
    result = fl.solve(largest(p), tol=1e-3)
    assert result.status == "certified"
    assert result.certificate.ok
    assert -result.certificate.primal == pytest.approx(best_margin(X, y, p, True), rel=1e-3)
    # a first gap, and rows that only narrow it
    assert np.all(np.diff(result.trace["gap"]) <= 0.0)


def test_a_contradiction_ends_the_run():
    problem = largest(k=3)
    result = fl.solve(problem, tol=1e-6)
    assert result.status == "certified"
    assert result.certificate.primal == result.certificate.dual == 0.0


def test_any_margin_is_less_to_ask_for():
    result = fl.solve(largest(any_margin=True))
    assert result.solver == "squared_hinge"
    assert result.certificate.primal < 0.0


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        (largest(1.0), "linear_program"),
        (largest(np.inf), "linear_program"),
        (largest(2.0), "nearest_point"),
        (on_digits(2), "hard_margins"),
        (largest(1.5), "hard_margins"),
        (largest(2.0, k=3), "nearest_point"),
        (on_digits(3), "growing"),
        (largest(1.0, any_margin=True), "squared_hinge"),
    ],
)
def test_auto_takes(problem, name):
    assert choose(problem, "auto", {}, 1e-3).name == name
    assert str(fl.explain(problem)).count(name) >= 1


@pytest.fixture
def two_threads(monkeypatch):
    """Products of any size take two threads, those of a solver one."""
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(product=1))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_large_data_have_threads_of_their_own(kernel):
    assert fl.Design(X).threads == 2
    model = fl.MaxMarginClassifier(kernel=kernel).fit(X, y)
    found = fl.margin_interval(model, X, y, tol=1e-6)
    assert found.upper - found.best <= 1e-6 * found.upper


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
@pytest.mark.parametrize("k", [2, 3])
def test_every_norm_has_threads_of_its_own(p, k):
    samples, codes = load_digits(return_X_y=True)
    some = codes < k
    found = fl.margin_interval((np.zeros((k, 64) if k > 2 else 64), 0.0), samples[some], codes[some], p=p, tol=0.1)
    assert 0.0 < found.best <= found.upper
    assert fl.separable(samples[some], codes[some]).answer


def test_there_is_no_other_penalty():
    problem = largest()
    assert problem.replace(penalty=UnitBall(2.0)) is problem
    with pytest.raises(ValueError, match="one penalty only"):
        problem.replace(penalty=UnitBall(1.0))


def test_every_solver_says_what_it_cannot_do():
    for kind in solvers_of(largest()).kinds:
        for problem in (largest(1.5), largest(2.0), largest(1.0, k=3)):
            reason = kind().hindrance(problem)
            assert reason is None or len(reason.split()) > 3


def test_a_judge_that_knows_the_best_margin_ends_the_search_at_once():
    best = fl.margin_interval(zero, X, y, effort="high")
    steps = []
    again = fl.margin_interval(
        best.model, X, y, multipliers=best.multipliers, effort="high", callback=lambda check: steps.append(check)
    )
    assert again.ok
    assert steps == []


def test_the_callback_sees_both_ends_and_may_stop():
    checks = []

    def first(check):
        checks.append(check)
        return True

    found = fl.margin_interval(zero, X - X.mean(axis=0), y, p=1.5, effort="high", callback=first)
    assert len(checks) == 1
    assert (found.best, found.upper) == (-checks[0].primal, -checks[0].dual)


def test_no_effort_is_no_search():
    found = fl.margin_interval(zero, X, y, effort="low", callback=lambda check: pytest.fail("a search"))
    assert found.best == 0.0
    assert found.upper < np.inf


def test_the_search_ends_with_its_time(clock):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 20)) * 10.0 ** rng.integers(-6, 6, size=20)
    fl.margin_interval(np.ones(20), Z, np.sign(Z[:, 0]), p=1.5, tol=1e-12, max_seconds=0.3)
    assert clock.elapsed < 0.9  # a question advances this clock by 0.01


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 10.0])
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_features_of_odd_scales_take_few_steps(p, seed):
    """12 samples whose columns differ by up to 1e12: what is found is right, and the search gives up early."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(12, 4)) * 10.0 ** rng.integers(-6, 6, size=4)
    w = rng.normal(size=4) / np.abs(Z).max(axis=0)
    steps = []
    found = fl.margin_interval(w, Z, np.sign(Z @ w), p=p, callback=lambda check: steps.append(check.iteration))
    assert found.separable is True
    assert found.best <= found.upper
    assert steps[-1] <= 2000


def test_rounding_errors_are_bounded_tightly_when_it_matters():
    x = np.random.default_rng(0).normal(size=400)
    judge = MarginJudge(LargestMargin(fl.Design(np.stack([x, -x])), np.array([1, 0]), 2, False))
    judge.consider(x, 0.0)
    rough = judge.margin
    judge.try_multipliers(np.ones(2), "given")
    assert rough < judge.margin <= judge.upper


def test_models_of_any_length_and_zero_count():
    judge = MarginJudge(largest())
    judge.consider(np.zeros(4), 1.0)
    assert judge.model is None
    w, b = fl.margin_interval(zero, X, y).model
    judge.consider(1e100 * w, 1e100 * b)
    assert judge.margin == pytest.approx(fl.margin_interval(zero, X, y).best, rel=1e-9)


def test_the_ball_and_the_dual_norm_are_conjugate():
    rng = np.random.default_rng(0)
    for p in (1.0, 1.5, 2.0, np.inf):
        ball, v = UnitBall(p), rng.normal(size=5)
        inside = [u / max(1.0, np.linalg.norm(u, p)) for u in rng.normal(size=(200, 5))]
        assert max(v @ u for u in inside) <= ball.conjugate(v)
        assert all(ball.value(u) == 0.0 for u in inside)
        assert ball.value(2.0 * v / np.linalg.norm(v, p)) == np.inf
        assert ball.conjugate(v) < ball.conjugate_upper(v, np.full(5, 1e-6))
    below, above = UnitBall(2.0).lengths(v)
    assert Fraction(below) ** 2 < sum(Fraction(t) ** 2 for t in v) < Fraction(above) ** 2
    assert np.linalg.norm(UnitBall(2.0).prox(3.0 * v, 1.0)) == pytest.approx(1.0)
    with pytest.raises(TypeError, match="p=2"):
        UnitBall(1.5).prox(v, 1.0)


def test_several_classes_by_rows_that_matter():
    digits, codes = load_digits(n_class=5, return_X_y=True)
    problem = LargestMargin(fl.Design(digits), codes.astype(np.int64), 5, True)
    growing, hard = (fl.solve(problem, solver=name, tol=1e-3, warn=False) for name in ("growing", "hard_margins"))
    assert growing.status == "certified"
    assert growing.certificate.primal == pytest.approx(hard.certificate.primal, rel=3e-3)
