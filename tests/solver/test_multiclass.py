"""Multiclass problems: the run loop, warm starts, interrupts, what scikit-learn finds, and what is proven."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import fenchel as fl
from fenchel.data import Design
from fenchel.data.limits import LimitsTuning
from fenchel.solver import solve_many
from fenchel.steps.newton import multiclass as matrix_newton

rng = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
both = pytest.mark.parametrize("loss", [fl.losses.Multinomial(), fl.losses.CrammerSinger()])


def problem(loss=None, lam=1e-2, X=IRIS, y=SPECIES, **kwargs):
    return fl.MulticlassProblem(X, y, loss or fl.losses.Multinomial(), fl.penalties.L2(lam), **kwargs)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_softmax_agrees_with_scikit_learn(intercept, C):
    model = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-10, max_iter=100_000, solver="newton-cg")
    model.fit(IRIS, SPECIES)
    p = problem(lam=1 / (C * len(SPECIES)), intercept=intercept)
    result = fl.solve(p, tol=1e-10)
    assert result.certificate.ok
    assert p.primal(model.coef_, model.intercept_) == pytest.approx(result.certificate.primal, rel=1e-8)
    assert np.abs(result.w - model.coef_).max() <= 1e-4
    assert fl.certify(p, model.coef_, model.intercept_).relative_gap <= 1e-6
    assert fl.certify(model, IRIS, SPECIES).gap == fl.certify(p, model.coef_, model.intercept_).gap


@pytest.mark.parametrize("C", [0.01, 0.3])
def test_crammer_singer_agrees_with_liblinear(C):
    """LIBLINEAR minimises |B|^2 / 2 + C sum of the losses."""
    model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-9, max_iter=1_000_000)
    model.fit(IRIS, SPECIES)
    p = problem(fl.losses.CrammerSinger(), lam=1 / (C * len(SPECIES)))
    result = fl.solve(p, tol=1e-7)
    assert result.certificate.ok
    assert p.primal(model.coef_) >= result.certificate.primal - result.certificate.gap
    assert p.primal(model.coef_) == pytest.approx(result.certificate.primal, rel=1e-5)


def test_a_penalised_intercept_is_a_constant_column():
    constant, stored = Design(IRIS, constant=2.0), np.column_stack([IRIS, np.full(150, 2.0)])
    for loss in (fl.losses.Multinomial(), fl.losses.CrammerSinger()):
        one, other = (fl.solve(problem(loss, 0.1, X), solver="sdca", tol=1e-5) for X in (constant, stored))
        assert one.w.shape == other.w.shape == (3, 5)
        assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-5)


@both
def test_tolerances_mean_the_certified_gap(loss):
    for tol in (1e-2, 1e-4, 1e-6):
        result = fl.solve(problem(loss, lam=0.1), tol=tol)
        assert result.status == "certified"
        assert result.certificate.gap <= tol * result.certificate.primal


def test_digits_and_twenty_classes_reach_small_gaps():
    X, y = load_digits(return_X_y=True)
    assert fl.solve(problem(X=X, y=y, lam=1 / len(y), intercept=True), tol=1e-6).certificate.ok
    X = sp.random_array((1500, 800), density=0.03, format="csr", rng=np.random.default_rng(1))
    y = np.argmax(X @ np.random.default_rng(2).normal(size=(800, 20)), axis=1)
    for loss in (fl.losses.Multinomial(), fl.losses.CrammerSinger()):
        result = fl.solve(problem(loss, X=X, y=y, lam=1 / 1500), tol=1e-6 if loss.smoothness < 1 else 1e-4)
        assert result.certificate.ok
        assert result.w.shape == (20, 800)


@both
def test_a_warm_start_saves_steps(loss):
    first, near = (problem(loss, lam=lam, intercept=True) for lam in (0.1, 0.1001))
    cold = fl.solve(first, solver="sdca", tol=1e-5)
    warm = fl.solve(near, solver="sdca", tol=1e-5, start=cold)
    assert warm.n_iter < fl.solve(near, solver="sdca", tol=1e-5).n_iter
    again = fl.solve(first, solver="sdca", tol=2e-5, start=(cold.w, cold.b, cold.alpha))
    assert again.n_iter <= 10
    with pytest.raises(ValueError, match="start must have 4 weights and 150 multipliers for each of 3 classes"):
        fl.solve(near, start=(np.zeros((3, 3)), np.zeros(3), np.zeros((150, 3))))


@both
def test_the_same_seed_gives_the_same_bits(loss):
    one, other = (fl.solve(problem(loss, lam=0.1, intercept=True), random_state=3, tol=1e-4) for _ in range(2))
    assert np.array_equal(one.w, other.w)
    assert np.array_equal(one.b, other.b)
    assert one.certificate == other.certificate


@both
def test_ctrl_c_returns_the_best_model_with_its_certificate(loss):
    p = problem(loss, lam=1e-7, intercept=True)
    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        result = fl.solve(p, solver="sdca", tol=1e-13, callback=lambda check: os.kill(os.getpid(), signal.SIGINT))
    assert result.status == "interrupted"
    assert result.certificate.primal == p.primal(result.w, result.b)
    assert np.isfinite(result.certificate.gap)


def test_time_is_limited(clock):
    big = problem(fl.losses.CrammerSinger(), X=rng.normal(size=(5000, 200)), y=rng.integers(5, size=5000), lam=1e-7)
    with pytest.warns(fl.NotCertifiedWarning, match=r"stopped after [0-9.]+ seconds"):
        result = fl.solve(big, tol=1e-12, max_seconds=0.2)
    assert clock.elapsed < 1.0
    assert result.status == "max_seconds"
    assert np.isfinite(result.certificate.gap)


def test_the_trace_and_the_bar_work_as_for_one_score(capsys):
    result = fl.solve(problem(intercept=True), tol=1e-6, progress=True)
    assert np.all(np.diff(result.trace["primal"]) <= 0)
    assert np.all(np.diff(result.trace["dual"]) >= -1e-15)
    assert result.trace[-1].nonzeros == 12
    assert "too high" in capsys.readouterr().out


# What is proven -------------------------------------------------------------------------------------------------


@both
def test_proven_labels_are_those_of_the_optimum(loss):
    p = problem(loss, lam=0.05)
    best = fl.solve(p, tol=1e-9 if loss.smoothness < 1 else 1e-6)
    share = []
    for tol in (0.3, 1e-2, 1e-5):
        labels, proven = fl.solve(p, tol=tol, solver="sdca").certificate.labels(IRIS)
        exact, sure = best.certificate.labels(IRIS)
        assert np.array_equal(labels[proven], np.argmax(IRIS @ best.w.T, axis=1)[proven])
        assert np.array_equal(labels[proven & sure], exact[proven & sure])
        share.append(proven.mean())
    assert share == sorted(share)
    assert 1.0 - share[-1] < 0.2


def test_weights_of_the_optimum_lie_within_the_radius():
    p = problem(lam=0.05)
    best, rough = fl.solve(p, tol=1e-11), fl.solve(p, tol=1e-2, solver="sdca")
    assert np.linalg.norm(rough.w - best.w) <= rough.certificate.weights_radius + best.certificate.weights_radius


def test_certified_zeros_are_zero_in_the_optimum():
    X = np.column_stack([IRIS, rng.normal(size=(150, 6))])
    p = fl.MulticlassProblem(X, SPECIES, fl.losses.Multinomial(), fl.penalties.ElasticNet(0.3, 0.9))
    rough, best = fl.solve(p, tol=1e-4), fl.solve(p, tol=1e-10)
    zeros = rough.certificate.zeros()
    assert zeros.shape == (3, 10)
    assert zeros.any()
    assert not best.w[zeros].any()


def test_what_is_not_known_for_several_scores_is_an_error():
    c = fl.solve(problem()).certificate
    with pytest.raises(TypeError, match="one score per sample"):
        c.multipliers()
    with pytest.raises(ValueError, match="X has 2 columns, but the model has 4 weights"):
        c.labels(IRIS[:, :2])


def test_certificates_round_trip_through_json():
    c = fl.solve(problem(intercept=True)).certificate
    assert fl.Certificate.from_json(c.to_json()) == c


# What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y": [0.5] * 150}, ValueError, "y has 0.5 at position 0; classes are the integers"),
        ({"y": [-1] * 150}, ValueError, "y has -1 at position 0; classes are the integers"),
        ({"y": [0] * 150}, ValueError, "one class only"),
        ({"n_classes": 2}, ValueError, "y has the class 2, but n_classes is 2"),
        ({"n_classes": 2.5}, ValueError, "n_classes must be a positive integer"),
        ({"loss": fl.losses.Logistic()}, TypeError, "loss must be a MulticlassLoss"),
        ({"penalty": fl.penalties.Entropy(1.0)}, TypeError, "is 0 at zero"),
        ({"penalty": fl.penalties.FusedL1(1.0)}, TypeError, "is 0 at zero"),
        ({"intercept": 1}, TypeError, "intercept must be True or False"),
    ],
)
def test_bad_statements_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        fl.MulticlassProblem(**{"X": IRIS, "y": SPECIES, **arguments})


def test_bad_matrices_are_refused():
    p = problem()
    for B, b, message in [
        (np.zeros((2, 4)), 0.0, r"w must be a matrix of shape \(3, 4\): a row of weights for each class"),
        (np.full((3, 4), np.nan), 0.0, "nan at position"),
        (np.zeros((3, 4)), np.ones(3), "the problem has no intercept"),
    ]:
        with pytest.raises(ValueError, match=message):
            fl.certify(p, B, b)


def test_solvers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="unknown solver 'fista'; there are 'auto', 'newton', 'sdca'"):
        fl.solve(problem(lam=1e4), solver="fista")
    with pytest.raises(TypeError, match=r"needs a loss with a Lipschitz derivative.*'sdca' would work"):
        fl.solve(problem(fl.losses.CrammerSinger()), solver="newton")
    with pytest.raises(TypeError, match="no solver takes"):
        fl.solve(fl.MulticlassProblem(IRIS, SPECIES, penalty=fl.penalties.L1(0.1)))


def test_a_class_without_samples_is_certified():
    for intercept in (False, True):
        p = problem(n_classes=5, intercept=intercept, lam=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fl.NotCertifiedWarning)
            result = fl.solve(p, tol=1e-5, max_iter=200)
        assert result.w.shape == (5, 4)
        assert np.isfinite(result.certificate.gap)
        assert intercept or result.certificate.ok


# Several problems at once ---------------------------------------------------------------------------------------


def against_rest(design, y):
    return [
        fl.Problem(design, np.where(y == j, 1.0, -1.0), fl.losses.Logistic(), fl.penalties.L2(1e-3)) for j in range(3)
    ]


def test_problems_solved_side_by_side_are_those_solved_alone(monkeypatch):
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(product=1))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    design = Design(IRIS)
    problems = against_rest(design, SPECIES)
    threads = set()
    together = solve_many(
        problems, tol=1e-6, n_threads=2, callback=lambda check: threads.add(threading.current_thread().name)
    )
    assert not any("MainThread" in name for name in threads)
    for result, p in zip(together, problems, strict=True):
        assert p.design is design
        assert np.array_equal(result.w, fl.solve(p, tol=1e-6).w)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_all_problems(n_threads, monkeypatch):
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(product=1))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    pressed, told = threading.Event(), threading.Event()
    monkeypatch.setattr("fenchel.solver.many.Event", lambda: told)

    def press(check):
        if check.iteration >= 5:
            if not pressed.is_set():
                pressed.set()
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            if threading.current_thread() is not threading.main_thread():
                assert told.wait(60.0)  # no run ends before the main thread has seen the signal

    problems = against_rest(Design(IRIS), SPECIES)
    results = solve_many(problems, tol=1e-15, n_threads=n_threads, callback=press, solver="fista")
    assert [result.status for result in results] == ["interrupted"] * 3
    assert all(np.isfinite(result.certificate.gap) for result in results)


def test_time_is_limited_for_all_problems_together(clock):
    results = solve_many(against_rest(Design(IRIS), SPECIES), tol=0.0, max_seconds=0.3)
    assert clock.elapsed < 1.5
    assert len(results) == 3
    with pytest.raises(ValueError, match="there are 3 problems, but 1 starts"):
        solve_many(against_rest(Design(IRIS), SPECIES), starts=[None])


@pytest.mark.parametrize("layout", ["dense", "Fortran", "csr", "csc"])
@pytest.mark.parametrize(("intercept", "constant"), [(False, 0.0), (True, 0.0), (False, 3.0)])
def test_the_matrix_that_preconditions_newton_steps(layout, intercept, constant):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.6)
    X = {"dense": rows, "Fortran": np.asfortranarray(rows), "csr": sp.csr_array(rows), "csc": sp.csc_array(rows)}[
        layout
    ]
    design = Design(X, constant=constant)
    problem = fl.MulticlassProblem(
        design, np.resize([0, 1, 2], 30), fl.losses.Multinomial(), fl.penalties.L2(0.1), intercept=intercept
    )
    some, s, own = np.arange(0, 30, 2), rng.random(15), float(intercept)
    columns = [rows, *([np.full((30, 1), constant)] if constant else []), np.full((30, 1), own)]
    whole = np.hstack(columns)[some]
    G = matrix_newton._gram(problem, some, s, own)
    np.testing.assert_allclose(np.tril(G), np.tril(whole.T @ (s[:, None] * whole)), atol=1e-12)
