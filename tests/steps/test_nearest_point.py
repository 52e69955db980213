"""The nearest point of a polytope: exact margins, proofs that nothing separates, in finitely many exchanges."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import fenchel as fl
from fenchel.certificate.margin import MarginJudge
from fenchel.data.limits import LimitsTuning
from fenchel.problem.margin import LargestMargin
from fenchel.solver.solve import Request, solve_request
from fenchel.steps.base import GaveUp, Start
from fenchel.steps.margin.finisher import NearestPoints
from fenchel.steps.margin.nearest import NearestPoint
from tests.helpers.margins import best_margin, random_classes, rows_of


def problem_of(X, codes, intercept=True, k=None):
    k = int(codes.max()) + 1 if k is None else k
    return LargestMargin(fl.Design(np.asarray(X, dtype=float)), codes.astype(np.int64), k, intercept)


def width(result):
    return result.certificate.gap / -result.certificate.dual


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_point_has_the_largest_margin(seed, k, intercept):
    X, codes = random_classes(np.random.default_rng([77, seed]), True, k)
    A, E = rows_of(X, codes)
    F = np.column_stack([E[:, : E.shape[1] * intercept], np.ones(len(A))])
    point = NearestPoint(A, F, np.zeros(len(A)))
    assert point.solve(0.0, 1000)
    assert np.sqrt(point.square) == pytest.approx(best_margin(X, codes, 2.0, intercept), abs=1e-6 * np.abs(X).max())
    assert point.q.min() >= 0.0
    np.testing.assert_allclose(F.T @ point.q, np.append(np.zeros(F.shape[1] - 1), 1.0), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("separable", [True, False])
def test_all_small_sets_are_decided_and_their_margins_have_ten_digits(k, separable):
    decided = []
    for seed in range(40):
        X, codes = random_classes(np.random.default_rng([77, seed]), separable, k)
        judge = MarginJudge(problem_of(X, codes))
        result = solve_request(judge.problem, Request(tol=1e-10, max_iter=20), judge=judge)
        assert (judge.contradiction is None) == (judge.margin > 0.0)
        decided.append(judge.contradiction is None)
        if judge.margin > 3e-3 * np.abs(X).max():
            assert result.status == "certified"
        elif judge.margin > 0.0:
            assert width(result) <= 1e-6
    assert any(decided)


def test_thin_margins_reach_the_default_tolerance():
    for seed in (1, 9, 18, 39, 111, 280, 329, 372):
        X, codes = random_classes(np.random.default_rng([77, seed]), True, 2)
        assert fl.MaxMarginClassifier().fit(X, codes).margin_interval_.ok


@pytest.mark.parametrize("k", [2, 3])
def test_rows_are_added_where_not_all_are_there(k, monkeypatch):
    samples, codes = load_digits(return_X_y=True)
    problem = problem_of(samples[codes < k], codes[codes < k])
    whole = fl.solve(problem, solver=NearestPoints(), tol=1e-10)
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(block=1))
    parts = fl.solve(problem, solver=NearestPoints(), tol=1e-10)
    assert whole.status == parts.status == "certified"
    assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-9)


def test_few_exchanges_follow_multipliers_that_are_known():
    samples, codes = load_digits(return_X_y=True)
    problem = problem_of(samples[codes < 2], codes[codes < 2])
    known = fl.solve(problem, tol=1e-10)
    state = NearestPoints().begin(problem, Start(known.w, known.b, known.alpha), 0)
    assert np.array_equal(np.flatnonzero(state.point.q), np.flatnonzero(known.alpha))
    state.point.exchange(1e-10)
    assert state.point.done


def test_samples_of_one_class_leave_nothing_to_do():
    with pytest.raises(GaveUp, match="equations"):
        NearestPoints().begin(problem_of(np.eye(3), np.ones(3), k=2), Start(np.zeros(3), 0.0, np.zeros(3)), 0)


@pytest.mark.parametrize("power", [-140, 0, 140])
@pytest.mark.parametrize("k", [2, 3])
def test_features_may_have_any_scale(power, k):
    X, codes = random_classes(np.random.default_rng([77, 5]), True, k)
    found = fl.solve(problem_of(X * 10.0**power, codes), solver=NearestPoints(), tol=1e-8, warn=False)
    plain = fl.solve(problem_of(X, codes), solver=NearestPoints(), tol=1e-8, warn=False)
    assert found.certificate.primal / 10.0**power == pytest.approx(plain.certificate.primal, rel=1e-7)


def test_equal_rows_and_rows_of_zeros_do_no_harm():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(6, 3)), 3, axis=0)
    codes = np.repeat([0, 1, 0, 1, 0, 1], 3)
    X[codes == 1] += 5.0
    X[:3] = 0.0
    assert fl.solve(problem_of(X, codes), solver=NearestPoints(), tol=1e-10).status == "certified"
