"""The run loop: stopping, tracing, callbacks, interrupts, options, user's own losses."""

import os
import signal
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import xlog1py

import fenchel as fl
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.solver import FISTA, PDHG, Candidate, Solver
from fenchel.steps import Newton, Overflow

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 8)) @ (np.eye(8) + 5.0) * np.exp(rng.normal(size=8))  # strongly correlated features
Y = np.where(X @ rng.normal(size=8) + rng.normal(size=120) > 0, 1.0, -1.0)


def problem(loss=None, penalty=None, **kwargs):
    return fl.Problem(X, Y, loss or fl.losses.Logistic(), penalty or fl.penalties.L2(1e-3), **kwargs)


def test_tolerances_mean_the_certified_gap():
    for tol in (1e-2, 1e-5, 1e-9):
        result = fl.solve(problem(), tol=tol)
        assert result.status == "certified"
        assert result.certificate.gap <= tol * abs(result.certificate.primal)
    assert fl.solve(problem(), tol=0.0, atol=1e-3).certificate.gap <= 1e-3


def test_a_fit_that_runs_out_of_steps_says_which_gap_it_reached():
    with pytest.warns(fl.NotCertifiedWarning, match=r"only proven that no model .* by more than .* \(gap .*max_iter"):
        result = fl.solve(problem(), tol=1e-10, max_iter=7)
    assert result.status == "max_iter"
    assert result.n_iter == 7
    assert not result.certificate.ok


def test_a_fit_that_runs_out_of_time_returns_its_best_model(clock):
    big = fl.Problem(rng.normal(size=(4000, 300)), rng.normal(size=4000), fl.losses.Absolute(), fl.penalties.L1(1e-3))
    with pytest.warns(fl.NotCertifiedWarning, match=r"stopped after [0-9.]+ seconds"):
        result = fl.solve(big, tol=1e-12, max_seconds=0.2)
    assert clock.elapsed < 1.0  # the clock is read at least every few steps
    assert result.status == "max_seconds"
    assert result.certificate.gap >= 0


def test_a_tolerance_below_rounding_ends_as_stalled():
    with pytest.warns(fl.NotCertifiedWarning, match="rounding"):
        result = fl.solve(problem(), tol=1e-17)
    assert result.status == "stalled"
    assert result.certificate.relative_gap < 1e-9


def test_ctrl_c_returns_the_best_model_with_its_certificate():
    hard = problem(fl.losses.Hinge(), fl.penalties.L1(1e-3))

    def press(check):
        if check.iteration >= 60:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        result = fl.solve(hard, solver="pdhg", tol=1e-15, callback=press)
    assert result.status == "interrupted"
    assert result.certificate.primal == pytest.approx(hard.primal(result.w, result.b), rel=1e-13)
    assert np.isfinite(result.certificate.gap)


def test_an_interrupt_before_the_first_check_still_gives_a_certified_model():
    class Impatient(FISTA):
        def step(self, state):
            raise KeyboardInterrupt

    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        result = fl.solve(problem(), solver=Impatient())
    assert not result.w.any()
    assert result.certificate.primal == pytest.approx(np.log(2))


@pytest.mark.parametrize("solver", ["fista", "pdhg"])
def test_certificates_come_every_so_many_steps(solver):
    trace = fl.solve(problem(), solver=solver, tol=1e-6, check_every=3).trace
    assert list(trace["iteration"][:3]) == [3, 6, 9]


def test_the_compiled_path_is_certified_whatever_steps_are_asked_for():
    few = fl.Problem(rng.normal(size=(15, 60)), rng.normal(size=15), penalty=fl.penalties.L1(1.0))
    assert all(len(result.trace) for result in fl.path(few, n_lams=3, eps=0.1, check_every=3))


def test_steps_that_nobody_has_certified_are_not_thrown_away():
    """Newton is done in one step and gives up after many idle ones; second moments solve in one."""
    X = rng.normal(size=(200, 15))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * rng.normal(size=200)
    ridge = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L2(0.05))
    assert fl.solve(ridge, "newton", tol=1e-6, check_every=300).certificate.ok
    lasso = fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(0.05))
    assert "second moments" in fl.solve(lasso, check_every=3).certificate.how


def test_the_trace_has_a_row_for_every_check_and_the_best_values_so_far():
    result = fl.solve(problem(), tol=1e-8, check_every=1)
    trace = result.trace
    assert list(trace["iteration"]) == sorted(trace["iteration"])
    assert trace["iteration"][-1] == result.n_iter
    assert np.all(np.diff(trace["primal"]) <= 0)
    assert np.all(np.diff(trace["dual"]) >= -1e-15)
    assert trace["gap"][-1] <= 1e-8 * result.certificate.primal
    assert trace[0].nonzeros == 8
    assert len(trace[:2]) == 2
    with pytest.raises(KeyError, match="it has iteration, seconds, primal"):
        trace["loss"]


def test_callbacks_see_every_check_and_can_stop():
    seen = []
    result = fl.solve(
        problem(), tol=1e-12, check_every=1, callback=lambda check: seen.append(check.gap) or len(seen) == 2
    )
    assert result.status == "callback"
    assert len(seen) == len(result.trace) == 2
    assert fl.solve(problem(), callback=lambda check: 1).status == "certified"  # only True stops


def test_the_same_seed_gives_the_same_bits():
    for solver in ("fista", "pdhg", "sdca", "newton"):
        one, other = (fl.solve(problem(intercept=True), solver=solver, random_state=3, tol=1e-6) for _ in range(2))
        assert np.array_equal(one.w, other.w)
        assert one.b == other.b
        assert one.certificate == other.certificate


def test_more_threads_give_the_same_certificate():
    wide = rng.normal(size=(3000, 150))
    p = fl.Problem(wide, rng.normal(size=3000), fl.losses.Squared(), fl.penalties.L1(0.1))
    one, many = fl.solve(p, tol=1e-8), fl.solve(p, tol=1e-8, n_threads=None)
    assert many.certificate.ok
    assert many.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-8)


def test_a_warm_start_saves_steps():
    cold = fl.solve(problem(), tol=1e-6)
    near = problem(penalty=fl.penalties.L2(1.05e-3))
    assert fl.solve(near, tol=1e-6, start=cold).n_iter < fl.solve(near, tol=1e-6).n_iter
    assert fl.solve(problem(), tol=1e-6, start=(cold.w, cold.b, cold.alpha)).n_iter <= cold.n_iter
    with pytest.raises(ValueError, match="start must have 8 weights"):
        fl.solve(problem(), start=(np.zeros(3), 0.0, np.zeros(120)))


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic()], ids=str)
def test_a_start_that_is_good_enough_comes_back_after_no_step(loss):
    first = fl.solve(problem(loss, intercept=True), tol=1e-6)
    again = fl.solve(problem(loss, intercept=True), tol=1e-6, start=first)
    assert (again.n_iter, again.status) == (0, "certified")
    assert np.array_equal(again.w, first.w)
    assert again.b == first.b
    assert again.certificate.relative_gap <= 1e-6
    assert list(again.trace["iteration"]) == [0]


def test_no_steps_certify_the_start():
    w, seen = np.full(8, 0.1), []
    result = fl.solve(problem(), max_iter=0, start=(w, 0.0, np.zeros(120)), warn=False, callback=seen.append)
    assert (result.n_iter, result.status) == (0, "max_iter")
    assert np.array_equal(result.w, w)
    assert result.certificate.primal == pytest.approx(problem().primal(w), rel=1e-12)
    assert problem().primal(w) - fl.solve(problem(), tol=1e-8).certificate.primal <= result.certificate.gap < np.inf
    assert [row.iteration for row in seen] == [0]
    assert not fl.solve(problem(), max_iter=0, warn=False).w.any()


def test_a_callback_may_end_a_run_at_its_start():
    start = (np.full(8, 0.1), 0.0, np.zeros(120))
    result = fl.solve(problem(), start=start, callback=lambda check: True)
    assert (result.n_iter, result.status) == (0, "callback")


def test_a_result_prints_its_solver_its_objective_and_what_is_proven():
    result = fl.solve(problem(), tol=1e-6)
    first, second = str(result).splitlines()
    assert first == f"{result.solver}, {result.n_iter} steps: objective {result.certificate.primal:.10g}."
    assert second == str(result.certificate).splitlines()[0]
    assert repr(result).startswith(f"Result(solver={result.solver!r}, status='certified', n_iter={result.n_iter}, ")
    with pytest.warns(fl.NotCertifiedWarning, match="stopped after 1 step; raise max_iter"):
        short = fl.solve(problem(), solver="fista", tol=1e-12, max_iter=1)
    assert str(short).startswith("fista, 1 step, ended by 'max_iter': objective ")
    assert "Not certified" in str(short)


def test_numbers_of_numpy_are_plain_numbers_in_messages():
    for tol in (np.float64(-1.0), np.float32(-1.0)):
        with pytest.raises(ValueError, match=r"tol must be a number >= 0, got -1\.0$"):
            fl.solve(problem(), tol=tol)
    with pytest.raises(ValueError, match=r"lam must be a positive finite number, got -1\.0$"):
        fl.penalties.L2(np.float64(-1.0))
    with pytest.raises(ValueError, match=r"alpha must be positive and finite \(or 0, for no penalty\), got -1\.0$"):
        fl.Lasso(np.float64(-1.0)).fit(np.eye(2), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y has one class only \('a'\)"):
        fl.LinearSVC().fit(np.eye(2), np.array(["a", "a"]))


def test_progress_is_shown(capsys):
    fl.solve(problem(), tol=1e-6, progress=True)
    assert "too high" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"solver": "simplex"},
            ValueError,
            "unknown solver 'simplex'; there are 'auto', 'newton', 'sparse_path', 'dual_newton', 'primal_cd'",
        ),
        ({"tolerance": 1e-3}, TypeError, "there is no option 'tolerance'; did you mean tol\\?"),
        ({"threads": 2}, TypeError, "there is no option 'threads'; did you mean n_threads\\?"),
        ({"acelerate": True}, TypeError, "there is no option 'acelerate'; did you mean accelerate\\?"),
        ({"colour": 1}, TypeError, "no solver for this problem has the options 'colour'; .*fista: restart"),
        ({"solver": "fista", "tolerance": 1e-3}, TypeError, "did you mean tol"),
        ({"solver": "fista", "colour": 1}, TypeError, "no option 'colour'; its options are restart"),
        ({"solver": "pdhg", "restart": False}, TypeError, "'pdhg' has no option 'restart'; it has no options"),
        ({"solver": FISTA(), "restart": False}, TypeError, "options belong to the solver object"),
        ({"tol": -1.0}, ValueError, "tol must be a number >= 0"),
        ({"tol": "small"}, ValueError, "tol must be a number >= 0"),
        ({"max_iter": -1}, ValueError, "max_iter must be an integer >= 0"),
        ({"max_iter": 1.5}, ValueError, "max_iter must be an integer >= 0"),
        ({"max_seconds": 0}, ValueError, "max_seconds must be a positive number"),
        ({"max_seconds": "1"}, ValueError, "max_seconds must be a positive number"),
        ({"tol": True}, ValueError, "tol must be a number >= 0"),
        ({"n_threads": 1.5}, ValueError, "threads must be an integer"),
        ({"n_threads": 0}, ValueError, "threads must be an integer of at least 1"),
        ({"n_threads": True}, ValueError, "threads must be an integer of at least 1"),
        ({"check_every": True}, ValueError, "check_every must be a whole number of steps"),
        ({"progress": "yes"}, TypeError, "progress must be True or False"),
        ({"warn": 0}, TypeError, "warn must be True or False"),
        ({"random_state": True}, ValueError, "random_state must be a whole number"),
        ({"start": 0}, TypeError, r"start must be a Result or a tuple \(w, b, alpha\), got 0"),
        ({"start": (1, 2)}, TypeError, r"start must be a Result or a tuple \(w, b, alpha\)"),
        ({"start": ("a", 0.0, None)}, TypeError, r"start must be .* of numbers"),
        ({"solver": "fista", "restart": "no"}, TypeError, "restart must be True or False"),
    ],
)
def test_bad_options_are_refused_before_any_work(arguments, error, message):
    with pytest.raises(error, match=message):
        fl.solve(problem(), **arguments)


def test_a_mismatch_names_the_trait_and_the_solvers_that_would_work():
    with pytest.raises(
        TypeError,
        match=r"'fista' needs a differentiable loss, which Hinge\(\).*'newton', 'sdca', 'pdhg', 'approx' would work",
    ):
        fl.solve(problem(fl.losses.Hinge()), solver="fista")
    with pytest.raises(TypeError, match="a penalty with a proximal map"):
        fl.solve(problem(penalty=fl.penalties.FusedL1(0.1, D=np.eye(8))), solver="fista")
    with pytest.raises(TypeError, match=r"must be a fenchel\.Problem"):
        fl.solve(X)


def test_solvers_can_be_objects_and_anyone_can_write_one():
    assert fl.solve(problem(), solver=PDHG(), tol=1e-4).solver == "pdhg"

    class Gradient(Solver):
        """Plain gradient descent on a smooth problem."""

        name = "gradient"
        requires = frozenset()
        steps_per_check = 50
        passes_per_step = 2

        def begin(self, problem, start, seed):
            return problem, start.w

        def step(self, state):
            p, w = state
            v = p.dual_vector(-p.loss.derivative(p.scores(w), p.y))
            return p, w + (v - p.penalty.lam * w) / (0.25 * np.linalg.norm(X, 2) ** 2 / len(X) + p.penalty.lam)

        def candidates(self, state):
            return [Candidate(state[1], 0.0)]

    result = fl.solve(problem(penalty=fl.penalties.L2(0.1)), solver=Gradient(), tol=1e-6)
    assert result.solver == "gradient"
    assert result.certificate.ok


@pytest.mark.parametrize(("loss", "times"), [(fl.losses.Squared(), 3), (fl.losses.Logistic(), 1)], ids=str)
def test_restart_helps_fista(loss, times):
    steps = fl.solve(problem(loss), tol=1e-10, solver="fista").n_iter
    plain = fl.solve(problem(loss), tol=1e-10, solver="fista", restart=False, max_iter=times * steps, warn=False)
    assert plain.status == "max_iter"


# A user's own loss and penalty ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogCosh(Loss):
    """log cosh(z - y): quadratic near zero, absolute far away."""

    smoothness = 1.0
    lipschitz = 1.0

    def value(self, z, y):
        r = np.abs(z - y)  # cosh r = 1 + 2 sinh(r/2)^2, accurate where r is small
        return np.where(
            r < 1, np.log1p(2 * np.sinh(np.minimum(r, 1) / 2) ** 2), r + np.log1p(np.exp(-2 * r)) - np.log(2)
        )

    def derivative(self, z, y):
        return np.tanh(z - y)

    def conjugate(self, u, y):
        t = np.clip(u, -1, 1)
        return np.where(t == u, u * y + (xlog1py(1 + t, t) + xlog1py(1 - t, -t)) / 2, np.inf)

    def domain(self, y):
        return -np.ones_like(y), np.ones_like(y)


@dataclass(frozen=True)
class NonNegativeL2(Penalty):
    """lam/2 |w|^2 on w >= 0."""

    lam: float
    separable = True

    @property
    def strong_convexity(self):
        return self.lam

    def value(self, w):
        return self.lam / 2 * float(w @ w) if np.all(w >= 0) else np.inf

    def conjugate(self, v):
        return float(np.sum(np.maximum(v, 0) ** 2)) / (2 * self.lam)

    def grad_conjugate(self, v):
        return np.maximum(v, 0) / self.lam

    def prox(self, w, t):
        return np.maximum(w, 0) / (1 + t * self.lam)


@pytest.mark.parametrize("solver", ["fista", "pdhg"])
@pytest.mark.parametrize("penalty", [fl.penalties.L2(0.01), fl.penalties.L1(0.05), NonNegativeL2(0.01)], ids=str)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_users_own_loss_and_penalty_are_solved_and_certified(solver, penalty, intercept):
    import cvxpy as cp

    y = X @ rng.normal(size=8) + rng.normal(size=120)
    p = fl.Problem(X, y, LogCosh(), penalty, intercept=intercept)
    result = fl.solve(p, solver=solver, tol=1e-6)
    assert result.certificate.ok
    w, b = cp.Variable(8), cp.Variable() if intercept else 0.0
    r = X @ w + b - y
    log_cosh = cp.logistic(2 * r) - r - np.log(2)
    size = cp.norm1(w) * 0.05 if isinstance(penalty, fl.penalties.L1) else 0.005 * cp.sum_squares(w)
    constraints = [w >= 0] if isinstance(penalty, NonNegativeL2) else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inaccurate solution is a model like any other
        cp.Problem(cp.Minimize(cp.sum(log_cosh) / 120 + size), constraints).solve(solver="CLARABEL")
    theirs = np.maximum(w.value, 0.0) if constraints else w.value
    best = p.primal(theirs, float(b.value) if intercept else 0.0)
    assert result.certificate.primal - best <= result.certificate.gap
    assert best == pytest.approx(result.certificate.primal, rel=1e-5)


def test_numpys_true_stops_too_and_other_callbacks_are_refused():
    run = fl.solve(problem(), tol=1e-12, callback=lambda check: np.bool_(True), check_every=1)
    assert run.status == "callback"
    with pytest.raises(TypeError, match="callback must be callable"):
        fl.solve(problem(), callback=3)
    for solver in (None, FISTA, [1]):
        with pytest.raises(TypeError, match="solver must be a name or an object"):
            fl.solve(problem(), solver=solver)


@pytest.mark.parametrize("penalty", [fl.penalties.LpSquared(1e-6, 1.3), fl.penalties.Entropy(1e-9)], ids=str)
def test_proximal_maps_survive_tiny_penalties(penalty):
    X = np.random.default_rng(2).normal(size=(30, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        result = fl.solve(fl.Problem(X, y, fl.losses.SmoothedHinge(1e-3), penalty), max_iter=3000)
    assert np.isfinite(result.certificate.gap)


def test_a_start_that_is_not_finite_is_refused():
    for start in ((np.full(8, np.nan), 0.0, np.zeros(len(X))), (np.zeros(8), 0.0, np.full(len(X), np.nan))):
        with pytest.raises(ValueError, match="start must be finite"):
            fl.solve(problem(), start=start)


def test_auto_tries_another_solver_when_the_first_gives_up(monkeypatch):
    def give_up(self, state):
        raise Overflow("enough")

    monkeypatch.setattr(Newton, "step", give_up)
    result = fl.solve(problem(), tol=1e-6)
    assert result.certificate.ok
    assert result.solver != "newton"
    assert fl.solve(problem(), tol=1e-6, solver="newton", warn=False).status == "overflow"
