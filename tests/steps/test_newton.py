"""Semismooth Newton: levels, working sets, conjugate gradients, and its compiled parts."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

import fenchel as fl
from fenchel.data import Design, limits
from fenchel.steps import Newton, Start
from fenchel.steps.linear_algebra import newton_system
from fenchel.steps.linear_algebra.augmented import AugmentedDesign
from fenchel.steps.newton import few_columns
from fenchel.steps.newton.newton import line_search
from tests.helpers.conic import reliable_optimum
from tests.helpers.registry import LOSSES, name, targets

rng = np.random.default_rng(0)


@pytest.fixture
def one_by_one(monkeypatch):
    """Steps are called from Python, however few the columns are."""
    monkeypatch.setattr(few_columns, "TUNING", replace(few_columns.TUNING, call=0.0))


def separable(n, d, density=None, seed=0):
    g = np.random.default_rng(seed)
    X = g.normal(size=(n, d)) if density is None else sp.random_array((n, d), density=density, format="csr", rng=g)
    y = np.where(X @ g.normal(size=d) + g.normal(size=n) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_multipliers_respond_as_the_smoothed_loss_says(loss):
    """a(z) is minus the slope of psi, h its second derivative, both by differences of psi itself."""
    z = 2.0 * rng.normal(size=400)
    y = targets(loss, rng, 400)
    ones = np.ones(400)
    straight = bool(loss.kinks(y))
    tau = 0.7 if straight else 0.0
    c = np.clip(rng.normal(size=400), *loss.domain(y)) if straight else np.zeros(400)

    def psi(z):
        a = loss.kernel().respond(z, y, ones, c, tau)[0]
        return -z * a - loss.conjugate(-a, y) - 0.5 * tau * (a - c) ** 2

    eps = 1e-5
    a, h, total, gap = loss.kernel().respond(z, y, ones, c, tau)
    np.testing.assert_allclose((psi(z - eps) - psi(z + eps)) / (2 * eps), a, atol=1e-4)
    slopes = [loss.kernel().respond(z + side * eps, y, ones, c, tau)[0] for side in (-1, 1)]
    bend = (slopes[0] - slopes[1]) / (2 * eps)
    away = np.abs(bend - h) > 1e-3 * (1 + np.abs(h))
    assert away.mean() < 0.02  # h jumps at a few points, and differences straddle them
    assert total == pytest.approx(loss.value(z, y).sum())
    assert gap >= -1e-9


def test_the_logistic_response_is_accurate_from_one_tail_to_the_other():
    z = np.concatenate([np.linspace(-690, 690, 20_001), np.linspace(-3, 3, 20_001), [0.0, -1e5, 1e5]])
    for y in (np.ones_like(z), -np.ones_like(z)):
        a, h, total, _ = fl.losses.Logistic().kernel().respond(z, y, np.ones_like(z), np.zeros_like(z), 0.0)
        t, rest = expit(-y * z), expit(y * z)
        np.testing.assert_allclose(a, y * t, rtol=2e-15, atol=1e-300)
        np.testing.assert_allclose(h, t * rest, rtol=4e-15, atol=1e-300)
        assert total == pytest.approx(np.logaddexp(0.0, -y * z).sum(), rel=1e-13)
    a, _, total, _ = fl.losses.Logistic().kernel().respond(np.full(1, np.nan), *np.ones((3, 1)), 0.0)
    assert np.isnan(a[0])
    assert np.isnan(total)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_the_gap_of_given_multipliers_is_the_sum_of_fenchel_and_young(loss):
    z, y, s = 2.0 * rng.normal(size=500), targets(loss, rng, 500), rng.random(500)
    low, high = np.broadcast_arrays(*loss.domain(y))
    a = np.clip(rng.normal(size=500), low, high)
    a[:50], a[50:100] = low[:50], high[50:100]  # also where logarithms meet 0
    a = np.where(np.isfinite(a), a, 1.0)
    a = np.clip(a, low, high)
    expected = np.sum(s * (loss.value(z, y) + loss.conjugate(-a, y) + a * z))
    assert loss.kernel().gap_sum(z, y, s, a) == pytest.approx(expected, rel=1e-12)
    if np.isfinite(high[0] - low[0]):
        assert loss.kernel().gap_sum(z, y, s, np.where(np.arange(500) == 7, high + 1e-9, a)) == np.inf
        assert np.isfinite(loss.kernel().gap_sum(z, y, np.where(np.arange(500) == 7, 0.0, s), a))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [fl.losses.Logistic(), fl.losses.SquaredHinge(), fl.losses.Huber(0.5)], ids=name)
def test_the_multipliers_of_the_tangent_have_the_gap_that_a_step_says(loss, intercept, one_by_one):
    X, y = separable(400, 6)
    p = fl.Problem(X, y, loss, fl.penalties.L2(1e-4), intercept=intercept, sample_weight=rng.random(400))
    near = fl.solve(p, solver="newton", tol=1e-3)
    solver = Newton()
    state = solver.step(solver.begin(p, Start(1.2 * near.w, near.b, near.alpha), 0))
    b = float(state.w[-1]) if intercept else 0.0
    w = state.w[:-1] if intercept else state.w
    loose = p.primal(w, b) - p.dual(-loss.derivative(p.scores(w, b), p.y)) if not intercept else np.inf
    assert state.tangent is not None
    value = -p.mean(loss.conjugate(-state.tangent, p.y)) - p.penalty.conjugate(p.dual_vector(state.tangent))
    price = abs(p.mean(state.tangent)) * (1.0 + abs(b)) if intercept else 0.0  # b pays for a mean that is not zero
    assert state.tangent_gap >= p.primal(w, b) - value - b * p.mean(state.tangent) - 1e-12
    assert state.tangent_gap == pytest.approx(p.primal(w, b) - value, rel=1e-3, abs=4.0 * price + 1e-12)
    assert state.tangent_gap <= loose + 1e-12
    best = fl.solve(p, tol=1e-12, warn=False).certificate
    assert state.tangent_gap >= p.primal(w, b) - best.primal - 1e-12


def test_steps_go_on_where_the_slope_says_so(one_by_one):
    """On separable data the curvature fades along the way, and the best step is longer than Newton's."""
    X = rng.normal(size=(3000, 5))
    y = np.where(X @ np.ones(5) > 0, 1.0, -1.0)
    p = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L2(1e-6))
    state = Newton().begin(p, Start(np.zeros(5), 0.0, np.zeros(3000)), 0)
    q, residual = state.system.solve(state.active.rows, state.active.s * state.active.h / state.W, state.gradient, 0.0)
    assert np.linalg.norm(residual) == 0.0
    t = line_search(state, -q, X @ -q)
    assert t > 1.0
    gradient = p.penalty.lam * (-t * q) + X.T @ p.loss.derivative(X @ (-t * q), y) / 3000
    assert abs(gradient @ q) <= 0.11 * abs(state.gradient @ q)


def test_products_with_some_rows_are_those_of_numpy():
    for X in (rng.normal(size=(40, 6)), sp.random_array((40, 6), density=0.4, format="csr", rng=rng)):
        dense = X.toarray() if sp.issparse(X) else X
        for dtype in (np.float32, np.float64):
            lines = Design(X.astype(dtype)).lines
            A = dense.astype(dtype).astype(np.float64)
            which, p = np.array([3, 1, 17, 39]), rng.normal(size=6)
            a = rng.random(4)
            for threads in (1, 3):
                np.testing.assert_allclose(lines.gather_some(which, p, threads), A[which] @ p)
                np.testing.assert_allclose(lines.scatter_some(which, a, None, threads), A[which].T @ a)
                np.testing.assert_allclose(lines.scatter_some(which, a, p, threads), A[which].T @ (a * (A[which] @ p)))
            np.testing.assert_allclose(lines.squares_some(which, a), (A[which] ** 2).T @ a)
            gram = A[which].T @ (a[:, None] * A[which])
            np.testing.assert_allclose(np.tril(lines.gram_some(which, a).reshape(6, 6, order="F")), np.tril(gram))
            with pytest.raises(ValueError, match="does not exist"):
                lines.gather_some(np.array([40]), p, 1)


@pytest.mark.parametrize("ordered", [True, False])
def test_gram_matrices_of_rows_of_any_length_and_order(ordered):
    X = sp.random_array((200, 23), density=0.4, format="csr", rng=rng)
    if not ordered:
        for i in range(200):
            part = slice(X.indptr[i], X.indptr[i + 1])
            order = rng.permutation(part.stop - part.start)
            X.indices[part], X.data[part] = X.indices[part][order], X.data[part][order]
        X.has_sorted_indices = False
    A, rows = X.toarray(), np.arange(0, 200, 3)
    h = np.where(np.arange(len(rows)) % 5 == 0, 0.0, rng.random(len(rows)))
    gram = Design(X).lines.gram_some(rows, h).reshape(23, 23, order="F")
    np.testing.assert_allclose(np.tril(gram), np.tril(A[rows].T @ (h[:, None] * A[rows])), atol=1e-13)


@pytest.mark.parametrize("constant", [0.0, 1.5])
@pytest.mark.parametrize("density", [None, 0.3])
def test_the_augmented_design_has_one_more_column(constant, density):
    X, y = separable(30, 5, density)
    intercept = not constant
    p = fl.Problem(Design(X, constant=constant), y, fl.losses.Logistic(), fl.penalties.L2(0.1), intercept=intercept)
    augmented = AugmentedDesign.of(p)
    A = np.column_stack([X.toarray() if density else X, np.full(30, constant or 1.0)])
    rows, h, v = np.array([2, 5, 7, 20]), rng.random(4), rng.normal(size=6)
    np.testing.assert_allclose(augmented.scores(rows, v), A[rows] @ v)
    np.testing.assert_allclose(augmented.combine(rows, h), A[rows].T @ h)
    np.testing.assert_allclose(augmented.hessian_product(rows, h, v), A[rows].T @ (h * (A[rows] @ v)))
    np.testing.assert_allclose(np.tril(augmented.gram(rows, h)), np.tril(A[rows].T @ (h[:, None] * A[rows])))
    np.testing.assert_allclose(augmented.diagonal(rows, h), (A[rows] ** 2).T @ h)
    assert augmented.ridge[-1] == (0.0 if intercept else 0.1)


@pytest.mark.parametrize("width", ["factored", "sampled", "wide"])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Absolute()], ids=name)
def test_every_way_to_solve_a_newton_system(width, loss, monkeypatch, one_by_one):
    if width == "wide":
        monkeypatch.setattr(limits, "TUNING", replace(limits.TUNING, step=3.0**3))
    if width == "sampled":
        monkeypatch.setattr(newton_system, "TUNING", replace(newton_system.TUNING, dense_rows=3, few_rows=1))
    X, y = separable(600, 8)
    for intercept in (False, True):
        p = fl.Problem(X, y, loss, fl.penalties.L2(1e-3), intercept=intercept)
        assert fl.solve(p, solver="newton", tol=1e-8).certificate.ok


def test_first_steps_look_at_a_part_of_the_samples():
    X, y = separable(50_000, 4)
    p = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L2(1e-3))
    solver = Newton()
    state = solver.begin(p, Start(np.zeros(4), 0.0, np.zeros(50_000)), 0)
    sizes = [len(state.full.rows)]
    for _ in range(15):
        state = solver.step(state)
        sizes.append(len(state.full.rows))
    assert sizes[0] < 10_000
    assert sizes == sorted(sizes)
    assert sizes[-1] == 50_000
    assert not np.isfinite(solver.progress(solver.begin(p, Start(np.zeros(4), 0.0, np.zeros(50_000)), 0)).gap)


def test_samples_that_were_not_looked_at_are_taken_in_when_they_cross_a_kink(one_by_one):
    X, y = separable(3000, 10)
    p = fl.Problem(X, y, fl.losses.Hinge(), fl.penalties.L2(1e-4))
    solver = Newton()
    state = solver.begin(p, Start(np.zeros(10), 0.0, np.zeros(3000)), 0)
    for _ in range(200):
        state = solver.step(state)
        if state.positions is not None:
            break
    assert 0 < len(state.positions) < 3000
    state.w = state.w + 1.0  # so far that others cross
    state.active.z = state.design.scores(state.active.rows, state.w)
    crossed = state.activate_all()
    assert len(crossed)
    np.testing.assert_allclose(state.combined, state.design.combine(state.full.rows, state.full.s * state.full.a))


def test_warm_start_begins_with_all_samples():
    X, y = separable(50_000, 4)
    p = fl.Problem(X, y, fl.losses.Logistic(), fl.penalties.L2(1e-3))
    first = fl.solve(p, solver="newton", tol=1e-10)
    assert len(Newton().begin(p, Start(first.w, 0.0, first.alpha), 0).full.rows) == 50_000
    again = fl.solve(p, solver="newton", tol=1e-8, start=first)
    assert again.n_iter <= 3


def upper_bounds(loss, X, y):
    """Objectives at scale 1 as functions of lam, each at a point that a conic solver found: the least is P* or above.

    With s X and lam the optimum is that of X and lam / s^2, with weights divided by s.
    """
    points = [
        reliable_optimum(fl.Problem(X, y, loss, fl.penalties.L2(lam), intercept=True)) for lam in (1e-9, 1e-4, 1e4)
    ]
    points.append((np.zeros(X.shape[1]), points[-1][1]))
    return [
        lambda lam, u=u, b=b: np.mean(loss.value(X @ u + b, y)) + (lam / 2 * (u @ u) if u.any() else 0.0)
        for u, b in points
    ]


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_extremes_are_solved_or_say_so(loss):
    """Whatever the scale, a result comes back, and no optimum found elsewhere is below what it proves."""
    X, y = np.random.default_rng(1).normal(size=(20, 3)), targets(loss, np.random.default_rng(2), 20)
    bounds = upper_bounds(loss, X, y)
    for scale in (1e-150, 1e-8, 1e8, 1e150):
        for lam in (1e-12, 1.0, 1e12):
            best = min(bound(lam / scale / scale) for bound in bounds)
            p = fl.Problem(scale * X, y, loss, fl.penalties.L2(lam), intercept=True)
            for solver in ("newton", "sdca"):
                c = fl.solve(p, solver=solver, max_iter=50, warn=False).certificate
                assert c.gap >= c.primal - best, (scale, lam, solver)
                assert not c.ok or c.primal <= best * (1 + 1e-4), (scale, lam, solver)
                # beyond these lam is all but zero, and 50 steps may not be enough
                if scale <= 1e-8 or (solver == "newton" and lam / scale**2 >= 1e-4):
                    assert c.ok, (scale, lam, solver)


def test_one_sample_and_one_feature():
    for solver in ("newton", "sdca"):
        for intercept in (False, True):
            p = fl.Problem(np.array([[2.0]]), [1.0], fl.losses.Squared(), fl.penalties.L2(0.5), intercept=intercept)
            c = fl.solve(p, solver=solver, tol=1e-6, atol=1e-12).certificate
            assert c.ok


@pytest.mark.parametrize("loss", [fl.losses.Absolute(), fl.losses.Hinge(), fl.losses.Pinball(0.2)], ids=name)
def test_columns_of_unequal_sizes_are_no_obstacle(loss):
    """Far from every kink no sample is curved, and the first steps are too long by many powers of ten."""
    g = np.random.default_rng(0)
    for seed in range(15):
        g = np.random.default_rng(seed)
        n = int(g.integers(50, 400))
        X = g.normal(size=(n, 5)) * 10.0 ** g.uniform(0, 5, size=5)
        p = fl.Problem(X, targets(loss, g, n), loss, fl.penalties.L2(10.0 ** g.uniform(-5, 0)), intercept=True)
        result = fl.solve(p, solver="newton", tol=1e-4)
        assert result.certificate.ok


def test_nothing_to_fit_is_fitted():
    zero = fl.Problem(rng.normal(size=(6000, 4)), np.zeros(6000), fl.losses.Squared(), fl.penalties.L2(0.1))
    empty = fl.Problem(np.zeros((6000, 4)), np.tile([-1.0, 1.0], 3000), fl.losses.Logistic(), fl.penalties.L2(0.1))
    wide = fl.Problem(rng.normal(size=(50, 1200)), np.zeros(50), fl.losses.Squared(), fl.penalties.L2(0.1))
    for p in (zero, empty, wide):
        result = fl.solve(p, solver="newton", tol=1e-6, atol=1e-12)
        assert result.certificate.ok
        np.testing.assert_allclose(result.w, 0.0, atol=1e-9)


@pytest.mark.parametrize("lam", [1e-8, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_free_intercept_is_found_whatever_lam_is(loss, lam):
    """The intercept's own curvature says how far it goes; steps that lam scaled were stuck where lam is large."""
    X, y = rng.normal(size=(60, 3)), targets(loss, rng, 60)
    p = fl.Problem(X, y, loss, fl.penalties.L2(lam), intercept=True)
    assert fl.solve(p, solver="newton", tol=1e-6, max_iter=200).certificate.ok
    if lam >= 1.0:
        assert fl.solve(p, solver="sdca", tol=1e-3, max_iter=20_000).certificate.ok


def test_a_quadratic_with_a_free_intercept_takes_one_step():
    X = rng.normal(size=(300, 4))
    y = X @ np.ones(4) + 3.0
    assert fl.solve(fl.Problem(X, y, penalty=fl.penalties.L2(1.0), intercept=True), tol=1e-9).n_iter == 1
