"""A matrix that is not a Design: certificates and first-order solvers ask for products only."""

from fractions import Fraction

import numpy as np
import pytest

import fenchel as fl
from fenchel.data import Products
from fenchel.data.products import Rounded

N, D, RANK = 40, 12, 3


class LowRank(Products):
    """U V' plus c times the first d rows of the identity: never formed, but for a few rows."""

    def __init__(self, U, V, c):
        self.U, self.V, self.c = U, V, c
        self.shape = (len(U), len(V))
        self.nnz = U.size + V.size + len(V)

    def matvec_bounded(self, w):
        w = np.asarray(w, dtype=np.float64)
        value, absolute = self.U @ (self.V.T @ w), np.abs(self.U) @ (np.abs(self.V).T @ np.abs(w))
        value[: len(w)] += self.c * w
        absolute[: len(w)] += np.abs(self.c * w)
        return Rounded(value, absolute, sum(self.V.shape) + 4)

    def rmatvec_bounded(self, a):
        a = np.asarray(a, dtype=np.float64)
        value, absolute = self.V @ (self.U.T @ a), np.abs(self.V) @ (np.abs(self.U).T @ np.abs(a))
        first = a[: len(value)]
        return Rounded(value + self.c * first, absolute + np.abs(self.c * first), sum(self.U.shape) + 4)

    def row_norms(self, p=2.0):
        return np.linalg.norm(self.rows(np.arange(self.shape[0])), ord=p, axis=1)

    def column_norms(self, p=2.0, weights=None):
        s = np.ones(self.shape[0]) if weights is None else np.asarray(weights)
        dense = self.rows(np.arange(self.shape[0]))
        return (s[:, None] * np.abs(dense) ** p).sum(axis=0) ** (1.0 / p)

    def rows(self, which):
        return self.U[which] @ self.V.T + self.c * np.eye(*self.shape)[which]


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(0)
    return LowRank(rng.normal(size=(N, RANK)), rng.normal(size=(D, RANK)), 2.0)


@pytest.fixture(scope="module")
def signs():
    return np.where(np.random.default_rng(1).normal(size=N) > 0, 1.0, -1.0)


PROBLEMS = {
    "lasso": (fl.losses.Squared(), fl.penalties.L1(0.05), "fista"),
    "ridge": (fl.losses.Squared(), fl.penalties.L2(0.1), "fista"),
    "sparse logistic": (fl.losses.Logistic(), fl.penalties.ElasticNet(0.02, 0.5), "fista"),
    "svm": (fl.losses.Hinge(), fl.penalties.L2(0.1), "pdhg"),
    "median": (fl.losses.Absolute(), fl.penalties.L1(0.1), "pdhg"),
    "fused": (fl.losses.Squared(), fl.penalties.FusedL1(0.05), "pdhg"),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("intercept", [False, True])
def test_first_order_solvers_and_certificates_take_it(matrix, signs, name, intercept):
    loss, penalty, solver = PROBLEMS[name]
    problem = fl.Problem(matrix, signs, loss, penalty, intercept=intercept)
    dense = fl.Problem(matrix.rows(np.arange(N)), signs, loss, penalty, intercept=intercept)
    result = fl.solve(problem, solver=solver, tol=1e-6)
    assert result.status == "certified"
    assert fl.certify(dense, result.w, result.b, result.alpha).relative_gap < 1e-5
    optimum = fl.solve(dense, tol=1e-9, max_iter=100_000, warn=False).certificate
    for effort in ("low", "auto", "high"):
        certificate = fl.certify(problem, result.w, result.b, effort=effort)
        assert certificate.gap >= certificate.primal - optimum.primal
        assert certificate.relative_gap < 1e-3 or effort == "low"


def test_auto_takes_a_solver_that_needs_no_storage(matrix, signs):
    problem = fl.Problem(matrix, signs, fl.losses.Logistic(), fl.penalties.L1(0.01), intercept=True)
    assert fl.solve(problem).solver == "fista"
    assert fl.solve(problem.replace(loss=fl.losses.Hinge())).solver == "pdhg"


@pytest.mark.parametrize("solver", ["newton", "primal_cd", "sdca", "approx", "sgd"])
def test_compiled_solvers_say_that_they_need_a_design(matrix, signs, solver):
    problem = fl.Problem(matrix, signs, fl.losses.Logistic(), fl.penalties.ElasticNet(0.01, 0.5))
    if solver in ("newton", "sgd"):
        problem = problem.replace(penalty=fl.penalties.L2(0.01))
    with pytest.raises(TypeError, match=r"stored \(a Design\), which a LowRank is not; 'fista', 'pdhg' would work"):
        fl.solve(problem, solver=solver)
    with pytest.raises(TypeError, match=r"stored matrix \(a Design\)"):
        fl.MulticlassProblem(matrix, (signs > 0).astype(int))


def test_consequences_follow_from_it(matrix, signs):
    problem = fl.Problem(matrix, signs, fl.losses.Logistic(), fl.penalties.ElasticNet(0.1, 0.5))
    certificate = fl.solve(problem, tol=1e-10).certificate
    labels, proven = certificate.labels(matrix)
    dense_labels, dense_proven = certificate.labels(matrix.rows(np.arange(N)))
    assert np.array_equal(labels, dense_labels)
    assert np.array_equal(proven, dense_proven)
    assert proven.all()
    assert certificate.zeros().shape == (D,)
    assert problem.lam_max() > 0


def test_defaults_agree_with_a_design(matrix):
    rng = np.random.default_rng(2)
    design = fl.Design(matrix.rows(np.arange(N)))
    w, a, Q = rng.normal(size=D), rng.normal(size=N), rng.normal(size=(D, 2))
    np.testing.assert_allclose(matrix.matvec(w), design.matvec(w), rtol=1e-12)
    np.testing.assert_allclose(matrix.rmatvec(a), design.rmatvec(a), rtol=1e-12)
    np.testing.assert_allclose(matrix.times(Q), design.times(Q), rtol=1e-12)
    np.testing.assert_allclose(matrix.squared_row_norms, design.squared_row_norms, rtol=1e-12)
    np.testing.assert_allclose(matrix.column_norms(2.0, a**2), design.column_norms(2.0, a**2), rtol=1e-12)
    assert matrix.n_features == D
    assert matrix.using(2) is matrix
    assert not matrix.is_identity


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("whole", [False, True])
def test_tight_products_are_within_their_bounds(order, whole):
    rng = np.random.default_rng(3)
    X = np.asarray(np.rint(10 * rng.normal(size=(5, 9))) if whole else rng.normal(size=(5, 9)), order=order)
    w = np.ones(9) if whole else rng.normal(size=9)
    value, error = fl.Design(X).matvec_tight(w)
    for i in range(5):
        exact = sum(Fraction(X[i, j]) * Fraction(w[j]) for j in range(9))
        assert abs(Fraction(value[i]) - exact) <= Fraction(error[i])
    assert whole == (not error.any())


def test_restricted_keeps_columns_and_the_constant():
    X = np.arange(12.0).reshape(3, 4)
    keep = np.array([True, False, False, True, True])
    part = fl.Design(X, constant=2.0).restricted(keep)
    np.testing.assert_array_equal(part.rows(np.arange(3)), np.column_stack([X[:, [0, 3]], np.full(3, 2.0)]))
    assert fl.Design(X, constant=2.0).restricted(np.append(keep[:4], False)).shape == (3, 2)


def test_paths_take_it(matrix, signs):
    problem = fl.Problem(matrix, signs, fl.losses.Squared(), fl.penalties.L1(1.0), intercept=True)
    found = fl.path(problem, n_lams=5, tol=1e-6)
    assert all(certificate.ok for certificate in found.certificates)
