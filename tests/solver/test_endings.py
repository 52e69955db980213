"""How a fit ends where something goes wrong: another solver's turn, the clock, Ctrl-C at any moment, many problems."""

from importlib import import_module

import numpy as np
import pytest

import fenchel as fl
from fenchel.certificate.judge import Judge
from fenchel.data.limits import LimitsTuning
from fenchel.solver import solve_many
from fenchel.steps import SDCA, Newton, Overflow
from fenchel.steps.choose import choose

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 8)) @ (np.eye(8) + 5.0) * np.exp(rng.normal(size=8))  # strongly correlated features
NEWTON_STEP, SDCA_STEP = Newton.step, SDCA.step
Y = np.where(X @ rng.normal(size=8) + rng.normal(size=120) > 0, 1.0, -1.0)


def problem(loss=None, penalty=None, **kwargs):
    return fl.Problem(X, Y, loss or fl.losses.Logistic(), penalty or fl.penalties.L2(1e-3), **kwargs)


def overflow_after(steps):
    """A step of Newton's method that gives up after so many."""
    done = []

    def limited(self, state):
        done.append(0)
        if len(done) > steps:
            raise Overflow("enough")
        return NEWTON_STEP(self, state)

    return limited


def test_the_clock_also_ends_the_second_solver(monkeypatch, clock):
    def slow(self, state):
        clock.now += 0.02
        return SDCA_STEP(self, state)

    monkeypatch.setattr(Newton, "step", overflow_after(3))
    first = fl.solve(problem(), solver="newton", tol=1e-12, check_every=1, warn=False)
    monkeypatch.setattr(Newton, "step", overflow_after(3))
    monkeypatch.setattr(SDCA, "step", slow)
    with pytest.warns(fl.NotCertifiedWarning, match="seconds"):
        result = fl.solve(problem(), tol=1e-12, max_seconds=0.2, check_every=1)
    assert result.status == "max_seconds"
    assert result.certificate.gap <= first.certificate.gap
    assert 0.2 <= result.trace[-1].seconds < 1.0
    assert np.all(np.diff(result.trace["iteration"]) > 0)
    assert np.all(np.diff(result.trace["gap"]) <= 0)


def test_no_time_left_for_a_second_solver_is_a_matter_of_time(monkeypatch, clock):
    def slow(self, state):
        clock.now += 0.5
        raise Overflow("enough")

    monkeypatch.setattr(Newton, "step", slow)
    assert fl.solve(problem(), max_seconds=0.3, tol=1e-12, warn=False).status == "max_seconds"


def test_ctrl_c_in_the_second_solver_keeps_the_best_of_both(monkeypatch):
    def interrupt(self, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(Newton, "step", overflow_after(3))
    first = fl.solve(problem(), solver="newton", tol=1e-12, check_every=1, warn=False)
    monkeypatch.setattr(Newton, "step", overflow_after(3))
    monkeypatch.setattr(SDCA, "step", interrupt)
    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        both = fl.solve(problem(), tol=1e-12, check_every=1)
    assert both.status == "interrupted"
    # the scores of the same model may have been computed once more, and sharper
    assert both.certificate.gap == pytest.approx(first.certificate.gap, rel=1e-9)
    assert np.array_equal(both.w, first.w)


@pytest.mark.parametrize("name", ["fit", "certificate"])
def test_ctrl_c_after_the_last_step_keeps_the_model(monkeypatch, name):
    method, pressed = getattr(Judge, name), []

    def interrupt(self, *arguments):
        if not pressed:
            pressed.append(name)
            raise KeyboardInterrupt
        return method(self, *arguments)

    monkeypatch.setattr(Judge, name, interrupt)
    result = fl.solve(problem(), tol=1e-12, max_iter=2, warn=False)
    assert pressed
    assert result.status == "interrupted"
    again = fl.solve(problem(), tol=1e-12, max_iter=2, warn=False)
    assert np.array_equal(result.w, again.w)
    assert result.certificate.gap <= 4.0 * again.certificate.gap


def test_one_generator_for_several_problems_gives_the_same_bits_in_threads(monkeypatch):
    monkeypatch.setattr("fenchel.data.limits.TUNING", LimitsTuning(product=1))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2}, raising=False)

    def weights(n_threads):
        generator = np.random.RandomState(3)
        found = solve_many([problem()] * 6, solver="sdca", random_state=generator, n_threads=n_threads)
        return np.array([result.w for result in found])

    expected = weights(1)
    assert len(np.unique(expected, axis=0)) == 6
    for _ in range(5):
        assert np.array_equal(weights(3), expected)


def test_several_problems_are_a_list_of_problems():
    for problems in (3, problem(), [problem(), 3]):
        with pytest.raises(TypeError, match="problems must be a list"):
            solve_many(problems)
    with pytest.raises(TypeError, match="starts must be a list"):
        solve_many([problem()], starts=3)


def test_ctrl_c_between_two_problems_keeps_the_finished_ones(monkeypatch):
    pressed = []

    def interrupt(*arguments):
        if len(pressed) == 1:
            pressed.append(2)
            raise KeyboardInterrupt
        pressed.append(1)
        return choose(*arguments)

    monkeypatch.setattr(import_module("fenchel.solver.solve"), "choose", interrupt)
    results = solve_many([problem()] * 3, tol=1e-9)
    assert results[0].status == "certified"
    assert [result.status for result in results[1:]] == ["interrupted"] * 2
