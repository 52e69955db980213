"""Denoising of lines and images, and trend filtering: exact, certified, and never more than is proven."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel._core import kernels
from fenchel.problem.penalties.fused.fused import FusedL1
from tests.helpers.conic import reliable_optimum


def denoising(y, penalty, **options):
    return fl.Problem(sp.eye_array(np.size(y), format="csr"), np.ravel(y), fl.losses.Squared(), penalty, **options)


def steps(rng, n, noise=0.3):
    return np.repeat(rng.normal(size=-(-n // 20)), 20)[:n] + noise * rng.normal(size=n)


# Lines --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7, 40])
def test_a_line_agrees_with_the_conic_solver(n):
    rng = np.random.default_rng(n)
    for _ in range(15):
        problem = denoising(rng.normal(size=n) * np.exp(rng.normal()), FusedL1(np.exp(rng.normal() - 2) / n))
        result = fl.solve(problem, tol=1e-10)
        assert result.solver == "tv"
        assert result.n_iter == 1
        w, _ = reliable_optimum(problem)
        assert result.certificate.gap >= result.certificate.primal - problem.primal(w)
        np.testing.assert_allclose(result.w, w, atol=1e-4)


def test_a_line_is_the_best_of_all_its_partitions():
    """Brute force: with given signs of the jumps, every constant piece is a mean; the best of all is the optimum."""
    rng = np.random.default_rng(1)
    n = 6
    for _ in range(10):
        y, lam = rng.normal(size=n), 0.05
        problem = denoising(y, FusedL1(lam))
        best = np.inf
        for signs in itertools.product((-1, 0, 1), repeat=n - 1):
            u = n * lam * np.concatenate([[0], signs, [0]])
            pieces = np.split(np.arange(n), 1 + np.flatnonzero(signs))
            w = np.concatenate([np.full(len(p), y[p].mean() + (u[p[-1] + 1] - u[p[0]]) / len(p)) for p in pieces])
            best = min(best, problem.primal(w))
        assert problem.primal(fl.solve(problem).w) == pytest.approx(best, abs=1e-14)


@pytest.mark.parametrize("lam", [1e-9, 1e-6, 1e-4, 1e-2, 1e3])
def test_a_long_line_is_exact_to_rounding(lam):
    y = steps(np.random.default_rng(2), 20_000)
    certificate = fl.solve(denoising(y, FusedL1(lam)), tol=1e-11).certificate
    assert certificate.ok


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
def test_the_scale_of_the_signal_does_not_matter(scale):
    y = steps(np.random.default_rng(3), 500)
    result = fl.solve(denoising(scale * y, FusedL1(scale * 1e-3)), tol=1e-10)
    assert result.certificate.ok
    np.testing.assert_allclose(result.w / scale, fl.solve(denoising(y, FusedL1(1e-3))).w, rtol=1e-10)


def test_a_constant_line_stays_as_it_is():
    result = fl.solve(denoising(np.full(50, 3.0), FusedL1(0.1)))
    assert np.array_equal(result.w, np.full(50, 3.0))
    assert result.status == "certified"


def test_multipliers_of_a_line_are_feasible_and_explain_it():
    y = steps(np.random.default_rng(4), 1000)
    w, u = kernels.taut_string(y, 2.0)
    assert np.abs(u).max() <= 2.0
    np.testing.assert_allclose(np.diff(np.pad(u, 1)), w - y, atol=1e-12)
    jump = np.diff(w)
    assert np.array_equal(u[jump != 0], 2.0 * np.sign(jump[jump != 0]))


def test_a_scaled_first_difference_is_recognised():
    y = steps(np.random.default_rng(5), 60)
    D = -3.0 * np.diff(np.eye(60), axis=0)
    result = fl.solve(denoising(y, FusedL1(0.01 / 3, D)), tol=1e-11)
    assert result.solver == "tv"
    np.testing.assert_allclose(result.w, fl.solve(denoising(y, FusedL1(0.01))).w, atol=1e-13)


def test_what_cannot_be_proven_in_double_precision_ends_at_once():
    with pytest.warns(fl.NotCertifiedWarning, match=r"rounding|double precision"):
        result = fl.solve(denoising(steps(np.random.default_rng(6), 300), FusedL1(1e-3)), tol=1e-17)
    assert result.n_iter <= 2


# Images -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (5, 2), (6, 7)])
def test_an_image_agrees_with_the_conic_solver(shape):
    rng = np.random.default_rng(shape[0])
    n = shape[0] * shape[1]
    for k in range(8):
        problem = denoising(rng.normal(size=shape), FusedL1.of_image(np.exp(rng.normal() - 2) / n, shape))
        tol = (1e-1, 1e-3, 1e-8)[k % 3]
        result = fl.solve(problem, tol=tol)
        assert result.solver == "tv"
        w, _ = reliable_optimum(problem)
        suboptimality = result.certificate.primal - problem.primal(w)
        assert result.certificate.gap >= suboptimality
        assert result.certificate.relative_gap <= tol


def test_the_gap_of_an_image_is_never_below_its_suboptimality():
    rng = np.random.default_rng(8)
    shape = (20, 30)
    problem = denoising(rng.normal(size=shape), FusedL1.of_image(0.3 / 600, shape))
    best = fl.solve(problem, tol=1e-10).certificate
    with pytest.warns(fl.NotCertifiedWarning):
        result = fl.solve(problem, tol=1e-12, max_iter=30, check_every=1)
    gaps, primal = result.trace["gap"], result.trace["primal"]
    assert np.all(gaps >= primal - best.primal)
    assert np.all(best.primal - best.gap <= primal)
    assert np.all(np.diff(gaps) <= 0)


def test_rows_of_d_may_have_any_order_and_sign():
    rng = np.random.default_rng(9)
    shape = (8, 9)
    y = rng.normal(size=shape)
    straight = FusedL1.of_image(0.2 / 72, shape)
    shuffled = straight.operator[rng.permutation(straight.operator.shape[0])]
    shuffled = sp.diags_array(np.where(rng.random(shuffled.shape[0]) < 0.5, -1.0, 1.0)) @ shuffled
    result = fl.solve(denoising(y, FusedL1(0.2 / 72, shuffled)), tol=1e-8)
    assert result.solver == "tv"
    assert result.certificate.ok
    np.testing.assert_allclose(result.w, fl.solve(denoising(y, straight), tol=1e-8).w, atol=1e-3)


def test_neighbours_across_and_down_may_have_weights_of_their_own():
    rng = np.random.default_rng(10)
    D = FusedL1.of_image(1.0, (5, 6)).operator
    D = sp.diags_array(np.repeat([2.0, 0.5], [25, 24])) @ D
    problem = denoising(rng.normal(size=(5, 6)), FusedL1(0.01, D))
    result = fl.solve(problem, tol=1e-8)
    assert result.solver == "tv"
    assert result.certificate.primal == pytest.approx(problem.primal(reliable_optimum(problem)[0]), rel=1e-6)


@pytest.mark.parametrize("spoil", ["missing", "crossing", "weights", "doubled"])
def test_a_graph_that_is_no_image_is_not_taken_for_one(spoil):
    D = FusedL1.of_image(1.0, (4, 5)).operator.toarray()
    if spoil == "missing":
        D = D[1:]
    elif spoil == "crossing":
        D[0] = 0.0
        D[0, 4:6] = -1.0, 1.0
    elif spoil == "weights":
        D[3] *= 2
    else:
        D[1] = D[0]
    penalty = FusedL1(0.01, D)
    assert penalty.grid is None
    problem = denoising(np.random.default_rng(11).normal(size=20), penalty)
    result = fl.solve(problem, tol=1e-6)
    assert result.certificate.gap >= result.certificate.primal - problem.primal(reliable_optimum(problem)[0])
    assert result.certificate.ok


def test_anyones_image_is_certified():
    """The gradient alone says little about an image: certify raises the bound until the gap is the image's own."""
    rng = np.random.default_rng(12)
    shape = (40, 50)
    problem = denoising(rng.normal(size=shape), FusedL1.of_image(0.5 / 2000, shape))
    best = fl.solve(problem, tol=1e-9).w
    assert fl.certify(problem, best).relative_gap <= 1e-4
    worse = fl.certify(problem, best + 0.01 * rng.normal(size=2000))
    own = worse.primal - problem.primal(best)
    assert own <= worse.gap <= 1.2 * own


def test_a_result_is_never_worse_than_its_start():
    rng = np.random.default_rng(13)
    shape = (60, 70)
    penalty = FusedL1.of_image(0.5 / 4200, shape)
    problem = denoising(rng.normal(size=shape), penalty)
    near = fl.solve(problem, tol=1e-6)
    again = fl.solve(problem, start=near, tol=1e-12, max_iter=1, warn=False)
    cold = fl.solve(problem, tol=1e-12, max_iter=1, warn=False)
    assert again.certificate.primal <= near.certificate.primal < cold.certificate.primal


def test_threads_change_nothing_in_an_image():
    shape = (400, 600)
    problem = denoising(np.random.default_rng(14).normal(size=shape), FusedL1.of_image(0.3 / 240_000, shape))
    one, two = (fl.solve(problem, tol=1e-2, n_threads=k) for k in (1, 2))
    assert np.array_equal(one.w, two.w)


# Trends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_trend_agrees_with_the_conic_solver(order):
    rng = np.random.default_rng(order)
    for n in (order + 1, 12, 60):
        for _ in range(5):
            y = np.cumsum(rng.normal(size=n))
            problem = denoising(y, FusedL1.of_order(np.exp(rng.normal()) / n, n, order))
            result = fl.solve(problem, tol=1e-8)
            assert result.solver == "trend"
            assert result.certificate.ok
            assert result.certificate.gap >= result.certificate.primal - problem.primal(reliable_optimum(problem)[0])


@pytest.mark.parametrize(("order", "weight"), [(2, 1e1), (2, 1e4), (3, 1e2), (3, 1e6)])
def test_a_long_trend_is_certified(order, weight):
    n = 20_000
    t = np.linspace(0, 1, n)
    y = np.sin(8 * t) + np.abs(t - 0.4) + 0.1 * np.random.default_rng(0).normal(size=n)
    result = fl.solve(denoising(y, FusedL1.of_order(weight / n, n, order)), tol=1e-6)
    assert result.certificate.ok
    assert result.n_iter <= 80


def test_uneven_samples_have_a_trend_too():
    """Second differences on a grid of one's own: no stencil, but D D' is as narrow."""
    rng = np.random.default_rng(3)
    t = np.sort(rng.random(200))
    slopes = sp.diags_array(1.0 / np.diff(t)) @ sp.csr_array(np.diff(np.eye(200), axis=0))
    D = sp.csr_array(np.diff(slopes.toarray(), axis=0))
    problem = denoising(np.abs(t - 0.5) + 0.05 * rng.normal(size=200), FusedL1(1e-4, D))
    result = fl.solve(problem, tol=1e-7)
    assert result.solver == "trend"
    assert result.certificate.gap >= result.certificate.primal - problem.primal(reliable_optimum(problem)[0])


# Any X --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("which", ["line", "second", "image", "tree"])
def test_fused_regression_agrees_with_the_conic_solver(which, intercept):
    rng = np.random.default_rng([len(which), intercept])
    d = 12
    penalty = {
        "line": FusedL1(0.05),
        "second": FusedL1.of_order(0.05, d, 2),
        "image": FusedL1.of_image(0.05, (3, 4)),
        "tree": FusedL1(0.05, np.array([np.eye(d)[k] - np.eye(d)[(k - 1) // 2] for k in range(1, d)])),
    }[which]
    X = rng.normal(size=(40, d))
    y = X @ np.repeat(rng.normal(size=3), 4) + 0.3 * rng.normal(size=40)
    problem = fl.Problem(X, y, fl.losses.Squared(), penalty, rng.random(40), intercept)
    result = fl.solve(problem, tol=1e-7)
    best = problem.primal(*reliable_optimum(problem))
    assert result.certificate.ok
    assert result.certificate.gap >= result.certificate.primal - best


# What is proven zero ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_differences_that_are_proven_zero_are_zero(order):
    proven = 0
    for seed in range(25):
        rng = np.random.default_rng([order, seed])
        d = 15
        X = np.eye(d) if seed % 2 else rng.normal(size=(40, d))
        truth = np.repeat(rng.normal(size=3), 5) if order == 1 else np.abs(np.arange(d) - 7.0)
        y = X @ truth + 0.2 * rng.normal(size=len(X))
        problem = fl.Problem(X, y, fl.losses.Squared(), FusedL1.of_order(0.02, d, order))
        result = fl.solve(problem, tol=(1e-3, 1e-6, 1e-9)[seed % 3])
        zero = result.certificate.zeros()
        assert zero.shape == (d - order,)
        w, _ = reliable_optimum(problem)
        assert np.all(np.abs(np.diff(w, order)[zero]) < 1e-4)
        proven += int(zero.sum())
    assert proven > 25


def test_nothing_is_proven_zero_where_multipliers_are_not_unique():
    problem = denoising(np.zeros((4, 4)), FusedL1.of_image(1.0, (4, 4)))
    assert not fl.solve(problem).certificate.zeros().any()


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intercept": True}, "intercept"),
        ({"sample_weight": [1.0, 2.0, 1.0, 1.0]}, "sample weights"),
        ({"X": np.diag([1.0, 1.0, 1.0, 2.0])}, "identity"),
        ({"X": sp.eye_array(4, 4, k=1) + sp.eye_array(4, 4, k=-3)}, "identity"),
        ({"loss": fl.losses.Absolute()}, "squared loss"),
        ({"penalty": fl.penalties.L1(1.0)}, "FusedL1"),
        ({"penalty": FusedL1(1.0, np.array([[1.0, 0.0, 0.0, -1.0], [0.0, 1.0, -1.0, 0.0]]))}, "signal or an image"),
    ],
)
def test_the_solver_for_lines_and_images_says_what_it_needs(options, message):
    parts = {"X": np.eye(4), "y": np.arange(4.0), "penalty": FusedL1(1.0), **options}
    with pytest.raises(TypeError, match=message):
        fl.solve(fl.Problem(**parts), solver="tv")


@pytest.mark.parametrize(
    "make",
    [
        lambda: FusedL1.of_image(1.0, (3,)),
        lambda: FusedL1.of_image(1.0, (3, 0)),
        lambda: FusedL1.of_image(1.0, 4),
        lambda: FusedL1.of_image(1.0, (1, 1)),
        lambda: FusedL1.of_image(1.0, (2.5, 2)),
        lambda: FusedL1.of_order(1.0, 5, 5),
        lambda: FusedL1.of_order(1.0, 5, 0),
        lambda: fl.Problem(np.ones((3, 200_000)), np.ones(3), penalty=FusedL1.of_order(1.0, 200_000, 5)),
        lambda: fl.Problem(np.ones((3, 2001)), np.ones(3), penalty=FusedL1(1.0, sp.eye_array(2001))),
    ],
)
def test_bad_differences_are_refused(make):
    with pytest.raises(ValueError, match="FusedL1"):
        make()


def test_another_lam_keeps_what_is_known_about_d():
    penalty = FusedL1.of_image(1.0, (30, 40))
    grid = penalty.grid
    other = penalty.with_lam(2.0)
    assert other.lam == 2.0
    assert other.grid is grid
