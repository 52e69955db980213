"""KernelProblem: the same as a linear problem for the linear kernel, and as a quadratic program for any other."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import fenchel as fl
from fenchel.kernel import Gram, kernel_of
from tests.helpers.registry import LOSSES, name, targets

L2 = fl.penalties.L2


def data(loss=fl.losses.Hinge(), n=40, d=5, seed=0):  # noqa: B008  (a frozen object)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    X[3] = X[4]
    return X, targets(loss, rng, n), rng.random(n) * (rng.random(n) < 0.9)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_linear_kernel_is_the_linear_problem(loss, intercept, weighted):
    X, y, s = data(loss)
    s = s if weighted else None
    linear = fl.Problem(X, y, loss, L2(0.05), s, intercept)
    p = fl.KernelProblem(X, y, loss, L2(0.05), kernel="linear", sample_weight=s, intercept=intercept)
    r = fl.solve(p, tol=1e-7)
    assert r.certificate.ok
    w = X.T @ r.w
    np.testing.assert_allclose(p.primal(r.w, r.b), linear.primal(w, r.b), rtol=1e-11)
    np.testing.assert_allclose(p.dual(r.alpha), linear.dual(r.alpha), rtol=1e-9, atol=1e-12)
    found, expected = (fl.certify(q, x, r.b, alpha=r.alpha, effort="low") for q, x in ((p, r.w), (linear, w)))
    assert abs(found.primal - expected.primal) <= found.rounding + expected.rounding
    best = fl.solve(linear, tol=1e-9).certificate
    assert best.primal - best.gap <= r.certificate.primal <= best.primal + 2e-7 * abs(best.primal)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine", "poly"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("cache", [200.0, 1e-6])
def test_gaps_are_above_those_of_a_quadratic_program(kernel, intercept, cache):
    X, y, s = data()
    lam, n = 0.03, len(y)
    p = fl.KernelProblem(
        X, y, fl.losses.Hinge(), L2(lam), kernel, sample_weight=s, intercept=intercept, cache_size=cache
    )
    K, a, W = p.gram.whole, cp.Variable(n), s.sum()  # a = s alpha y
    root = np.linalg.cholesky(K + 1e-11 * np.trace(K) * np.eye(n))
    quadratic = cp.sum_squares(root.T @ cp.multiply(y, a)) / (2.0 * lam * W * W)
    constraints = [a >= 0.0, a <= s, *([y @ a == 0.0] if intercept else [])]
    optimum = cp.Problem(cp.Maximize(cp.sum(a) / W - quadratic), constraints).solve(solver=cp.CLARABEL)
    for tol in (1e-1, 1e-3, 1e-6):
        c = fl.solve(p, tol=tol).certificate
        assert c.ok
        assert c.primal - optimum <= c.gap + 1e-7
        assert c.primal >= optimum - 1e-7
    rng = np.random.default_rng(0)
    for beta in (np.zeros(n), rng.normal(size=n)):
        c = fl.certify(p, beta, 0.1 if intercept else 0.0)
        assert c.primal - optimum <= c.gap + 1e-7


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("options", [{}, {"working_set": 6}])
def test_every_loss_is_solved_on_working_sets_as_on_the_whole(loss, intercept, options):
    X, y, s = data(loss)
    p = fl.KernelProblem(X, y, loss, L2(0.02), gamma=0.5, sample_weight=s, intercept=intercept)
    assert fl.solve(p, tol=1e-6, **options).certificate.ok


def test_scores_of_the_optimum_lie_within_the_radius():
    X, y, _ = data()
    new, p = data(seed=1)[0], fl.KernelProblem(X, y, fl.losses.Hinge(), L2(0.05), intercept=True)
    rough, fine = fl.solve(p, tol=1e-2), fl.solve(p, tol=1e-10, warn=False)
    for at in (X, new, sp.csr_array(new)):
        apart = np.abs(p.function_scores(rough.w, at) - p.function_scores(fine.w, at))
        assert np.all(apart <= rough.certificate.weights_radius * (1.0 + 1e-6) + fine.certificate.weights_radius)
        labels, proven = rough.certificate.labels(at)
        assert np.all(labels[proven] == np.sign(p.function_scores(fine.w, at, fine.b))[proven])
        assert np.all(fine.certificate.labels(at)[1] >= proven)
    never, always = fine.certificate.support_vectors()
    assert never.any()
    assert always.any()
    assert not np.any((np.abs(fine.w) > 1e-9) & never)
    assert not fine.certificate.zeros().any()


def test_a_model_of_svc_is_certified_by_its_coefficients():
    X, y, _ = data(n=80)
    model = SVC(C=2.0, tol=1e-8).fit(X, y)
    beta = np.zeros(80)
    beta[model.support_] = model.dual_coef_[0]
    p = fl.KernelProblem(X, y, fl.losses.Hinge(), L2(1.0 / (2.0 * 80)), intercept=True)
    c = fl.certify(p, beta, model.intercept_)
    assert c.relative_gap <= 1e-6
    np.testing.assert_allclose(p.function_scores(beta, X, model.intercept_[0]), model.decision_function(X), atol=1e-9)


def test_precomputed_labels_need_the_diagonal():
    X, y, _ = data()
    new = data(seed=1)[0]
    K, cross = X @ X.T, new @ X.T
    p = fl.KernelProblem(K, y, fl.losses.Hinge(), L2(0.05), kernel="precomputed")
    r = fl.solve(p, tol=1e-8)
    labels, proven = r.certificate.labels((cross, np.sum(new * new, axis=1)))
    assert proven.any()
    assert np.all(labels == np.sign(cross @ r.w))
    with pytest.raises(ValueError, match="pass the pair"):
        r.certificate.labels(cross)
    with pytest.raises(ValueError, match="has 5 columns, but the kernel's samples have 40"):
        r.certificate.labels(new)


def test_a_gram_matrix_is_shared():
    X, y, _ = data()
    gram = Gram(X, kernel_of("rbf"))
    first, second = (fl.KernelProblem(gram, sign * y, fl.losses.Hinge(), L2(0.1)) for sign in (1.0, -1.0))
    assert first.gram is second.gram
    np.testing.assert_allclose(fl.solve(first, tol=1e-9).w, -fl.solve(second, tol=1e-9).w, atol=1e-6)
    with pytest.raises(ValueError, match="leave out gamma"):
        fl.KernelProblem(gram, y, gamma=0.5)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("loss", [fl.losses.Hinge(), fl.losses.Logistic(), fl.losses.Squared()], ids=name)
@pytest.mark.parametrize("X", [np.array([[1.0], [-1.0]]), np.ones((4, 2)), np.zeros((3, 1)), np.eye(4) * 1e-9])
def test_extreme_samples(kernel, loss, X):
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    for intercept in (False, True):
        p = fl.KernelProblem(X, y, loss, L2(0.1), kernel, intercept=intercept)
        assert fl.solve(p, tol=1e-4).certificate.ok


def test_all_weight_on_one_class():
    X, y, _ = data()
    p = fl.KernelProblem(X, y, fl.losses.Hinge(), L2(0.1), sample_weight=y > 0.0, intercept=True)
    r = fl.solve(p, atol=1e-9)
    assert r.certificate.ok
    assert r.b >= 1.0


def test_one_sample():
    p = fl.KernelProblem(np.array([[2.0, 1.0]]), np.array([3.0]), fl.losses.Squared(), L2(0.5))
    np.testing.assert_allclose(fl.solve(p, tol=1e-10).w, [3.0 / 1.5])


@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e12])
@pytest.mark.parametrize("lam", [1e-6, 1.0, 1e6])
def test_extreme_widths_and_penalties(gamma, lam):
    X, y, _ = data()
    p = fl.KernelProblem(X, y, fl.losses.Hinge(), L2(lam), gamma=gamma, intercept=True)
    assert fl.solve(p, tol=1e-3, max_iter=20_000).certificate.ok


def test_bad_input():
    X, y, _ = data()
    with pytest.raises(TypeError, match="penalty must be a L2"):
        fl.KernelProblem(X, y, penalty=fl.penalties.L1(0.1))
    with pytest.raises(ValueError, match="w must be a vector of 40"):
        fl.certify(fl.KernelProblem(X, y), np.zeros(5))
    with pytest.raises(ValueError, match="unknown solver 'sdca'; there are 'auto', 'kernel_ascent', 'pgs'"):
        fl.solve(fl.KernelProblem(X, y), "sdca")
    with pytest.raises(ValueError, match="working_set must be a whole number"):
        fl.solve(fl.KernelProblem(X, y), working_set=0)
