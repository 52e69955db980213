"""Compiled Newton steps on few columns, and the compiled search for the best shift."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.problem import intercept as shifts
from fenchel.steps import Newton, Start
from fenchel.steps.base import Goal, Overflow
from fenchel.steps.newton import few_columns
from fenchel.steps.newton.few_columns import FewColumnsState
from tests.helpers.registry import LOSSES, name, targets

COMPILED = [loss for loss in LOSSES if loss.kernel() is not None]


def data(loss, n=40, d=4, seed=0):
    g = np.random.default_rng(seed)
    return g.normal(size=(n, d)), targets(loss, g, n)


def first_state(p):
    n, d = p.shape
    state = Newton().begin(p, Start(np.zeros(d), 0.0, np.zeros(n)), 0)
    assert isinstance(state, FewColumnsState)
    return state


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
def test_compiled_steps_find_what_steps_from_python_find(loss, intercept, monkeypatch):
    X, y = data(loss)
    weights = np.random.default_rng(1).random(len(y)) + 0.5
    p = fl.Problem(X, y, loss, fl.penalties.L2(1e-2), sample_weight=weights, intercept=intercept)
    ours = fl.solve(p, "newton", tol=1e-9)
    monkeypatch.setattr(few_columns, "TUNING", replace(few_columns.TUNING, call=0.0))
    theirs = fl.solve(p, "newton", tol=1e-9)
    assert ours.certificate.ok
    assert abs(ours.certificate.primal - theirs.certificate.primal) <= 1e-8 * theirs.certificate.primal
    assert np.linalg.norm(ours.w - theirs.w) <= ours.certificate.weights_radius + theirs.certificate.weights_radius


@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_any_storage_by_rows_is_taken(kind, constant):
    X, y = data(fl.losses.Hinge())
    design = fl.data.Design(kind(X), constant=constant)
    p = fl.Problem(design, y, fl.losses.Hinge(), fl.penalties.L2(1e-2))
    first_state(p)
    assert fl.solve(p, "newton", tol=1e-8).certificate.ok


def exact(values):
    return [Fraction(float(x)) for x in values]


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared()], ids=name)
@pytest.mark.parametrize("free", [False, True])
def test_scores_and_residuals_are_as_exact_as_they_say(loss, free):
    X, y = data(loss, n=12, d=3)
    X *= 10.0 ** np.arange(-3, 9)[:, None]
    weights = np.random.default_rng(2).random(12) + 0.5
    p = fl.Problem(X, y, loss, fl.penalties.L2(0.3), sample_weight=weights, intercept=free)
    state = first_state(p)
    for _ in range(4):
        state.advance()
    (candidate,) = state.candidates()
    w, b, a = exact(candidate.w), Fraction(float(candidate.b)), exact(candidate.alpha)
    rows, s, lam = [exact(row) for row in X], exact(weights), Fraction(p.penalty.lam)
    for row, z, error in zip(rows, exact(candidate.scores.z), exact(candidate.scores.error), strict=True):
        assert abs(sum(x * u for x, u in zip(row, w, strict=True)) + b - z) <= error
    v = [sum(s[i] * a[i] * rows[i][j] for i in range(12)) / sum(s) for j in range(3)]
    length = float(sum((lam * w[j] - v[j]) ** 2 for j in range(3))) ** 0.5
    assert length <= candidate.residual.norm + candidate.residual.error


def test_no_more_steps_are_made_than_are_allowed():
    X, y = data(fl.losses.Hinge(), n=100, d=5)
    p = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-5))
    for most in (1, 2, 5):
        assert fl.solve(p, "newton", tol=1e-12, max_iter=most, warn=False).n_iter == most


def test_whoever_is_called_back_sees_single_steps():
    X, y = data(fl.losses.Hinge(), n=100, d=5)
    p, seen = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-3)), []
    fl.solve(p, "newton", tol=1e-10, check_every=1, callback=lambda row: seen.append(row.iteration))
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 3


@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Squared()], ids=name)
def test_steps_that_get_no_further_end(loss):
    X, y = data(loss)
    p = fl.Problem(X, y, loss, fl.penalties.L2(1e-3))
    state = first_state(p)
    state.goal = Goal((p.penalty,), 0.0, 0.0, np.inf, steps=100_000)
    for _ in range(1000):
        state.advance()
        if state.stuck:
            break
    with pytest.raises(Overflow, match="no progress"):
        state.advance()


@pytest.mark.parametrize("loss", COMPILED, ids=name)
@pytest.mark.parametrize("along", [None, "any"])
def test_the_compiled_search_for_the_best_shift_is_that_of_python(loss, along, monkeypatch):
    g = np.random.default_rng(3)
    y = targets(loss, g, 50)
    z, s = g.normal(size=50), g.random(50)
    f = 1.0 if along is None else g.normal(size=50)
    ours = shifts.best_shift(loss, z, y, s, f)
    monkeypatch.setattr(type(loss), "kernel", lambda self: None)
    theirs = shifts.best_shift(loss, z, y, s, f)
    values = [float(s @ loss.value(z + t * f, y)) for t in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
