"""Laws of difference operators, with exact arithmetic as the judge."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import fenchel as fl
from fenchel.certificate.bounds.differences import denoising_bound
from fenchel.problem.penalties.fused.differences import GeneralDifferences, PowerDifferences
from fenchel.problem.penalties.fused.fused import FusedL1
from fenchel.problem.penalties.fused.graphs import GraphDifferences

N = 12


def ring(n, scale=1.0):
    return scale * (np.roll(np.eye(n), 1, axis=1) - np.eye(n))


OPERATORS = {
    "line": FusedL1(1.0).on(N),
    "scaled line": FusedL1(1.0, -0.3 * np.diff(np.eye(N), axis=0)).on(N),
    "second": FusedL1.of_order(1.0, N, 2).on(N),
    "fourth": FusedL1.of_order(1.0, N, 4).on(N),
    "image": FusedL1.of_image(1.0, (3, 4)).on(N),
    "ring": FusedL1(1.0, ring(N, 0.7)).on(N),
    "two pieces": FusedL1(1.0, np.delete(np.diff(np.eye(N), axis=0), 5, axis=0)).on(N),
    "general": FusedL1(1.0, np.random.default_rng(0).normal(size=(9, N))).on(N),
    "identity": FusedL1(1.0, np.eye(N)).on(N),
}
every_operator = pytest.mark.parametrize("D", OPERATORS.values(), ids=OPERATORS.keys())


def exact(matrix, x):
    """The product in rational numbers."""
    rows = sp.csr_array(matrix).toarray().tolist()
    x = [Fraction(v) for v in x.tolist()]
    return [sum((Fraction(a) * b for a, b in zip(row, x, strict=True) if a), Fraction(0)) for row in rows]


def test_operators_are_recognised():
    kinds = [type(D) for D in OPERATORS.values()]
    assert kinds == [PowerDifferences] * 4 + [GraphDifferences] * 3 + [GeneralDifferences] * 2
    assert OPERATORS["image"].grid.shape == (3, 4)
    assert OPERATORS["ring"].grid is None
    assert OPERATORS["scaled line"].scale == -0.3


def test_a_stencil_that_was_rounded_is_no_stencil():
    """0.1 * 3 is not three times 0.1: its null space is not exactly the polynomials."""
    assert not isinstance(FusedL1(1.0, 0.1 * np.diff(np.eye(9), 3, axis=0)).on(9), PowerDifferences)
    assert isinstance(FusedL1(1.0, 0.1 * np.diff(np.eye(9), 2, axis=0)).on(9), PowerDifferences)


@every_operator
def test_products_are_those_of_the_matrix(D):
    rng = np.random.default_rng(1)
    w, u = rng.normal(size=N), rng.normal(size=D.shape[0])
    np.testing.assert_allclose(D.apply(w), D.matrix @ w, atol=1e-13)
    np.testing.assert_allclose(D.adjoint(u), D.matrix.T @ u, atol=1e-13)
    np.testing.assert_allclose(D.column_sums, abs(D.matrix).sum(axis=0), rtol=1e-13)
    gram = (D.matrix @ D.matrix.T).tocoo()
    assert D.overlap >= np.abs(gram.row - gram.col).max()


@every_operator
def test_rounding_is_within_its_bound(D):
    rng = np.random.default_rng(2)
    for _ in range(20):
        u = rng.normal(size=D.shape[0]) * np.exp(3 * rng.normal(size=D.shape[0]))
        allowed = 2.0**-53 * (D.depth + 1) * float(np.abs(u).max()) * D.column_sums
        error = [abs(Fraction(a) - b) for a, b in zip(D.adjoint(u).tolist(), exact(D.matrix.T, u), strict=True)]
        assert all(e <= a for e, a in zip(error, allowed.tolist(), strict=True))


@every_operator
def test_the_null_space_is_exact(D):
    space = D.null_space()
    if space is None:
        assert np.linalg.matrix_rank(D.matrix.toarray()) == N
        return
    assert space.basis.shape == (N, N - np.linalg.matrix_rank(D.matrix.toarray()))
    for n in space.basis.T:
        assert max(map(abs, exact(D.matrix, n))) <= Fraction(space.error) * 100


@every_operator
def test_the_dual_norm_is_bounded_from_above(D):
    """min |u|_inf with D'u = v is a linear program."""
    rng = np.random.default_rng(3)
    m = D.shape[0]
    for _ in range(5):
        v = D.adjoint(rng.normal(size=m))
        A = np.hstack([D.matrix.T.toarray(), np.zeros((N, 1))])
        inequalities = np.block([[np.eye(m), -np.ones((m, 1))], [-np.eye(m), -np.ones((m, 1))]])
        cost = np.append(np.zeros(m), 1.0)
        best = linprog(cost, inequalities, np.zeros(2 * m), A, v, bounds=(None, None), method="highs")
        assert best.success
        for near in (None, best.x[:m]):
            upper = D.dual_norm_upper(v, np.zeros(N), near)
            assert upper >= best.fun * (1 - 1e-7)
        assert upper <= best.fun * (1 + 1e-5)  # from the best u the bound is tight
        np.testing.assert_allclose(D.adjoint(D.potential(v)), v, atol=1e-9)


@every_operator
def test_rounded_multipliers_make_no_rounding_error(D):
    rng = np.random.default_rng(4)
    for size in (1e-9, 1.0, 1e12):
        u = size * rng.normal(size=D.shape[0])
        most = size * 1.3
        rounded = D.rounded_multipliers(u, most)
        assert np.abs(rounded).max() <= most
        assert np.abs(rounded - np.clip(u, -most, most)).max() <= 1e-11 * size
        if D.unit is not None:
            assert [Fraction(a) for a in D.adjoint(rounded).tolist()] == exact(D.matrix.T, rounded)
    assert (D.unit is None) == (D in (OPERATORS["scaled line"], OPERATORS["ring"], OPERATORS["general"]))


@every_operator
def test_what_is_called_exact_is_exact(D):
    rng = np.random.default_rng(5)
    found = 0
    for bits in range(40, 54):
        w = np.rint(rng.normal(size=N) * 2.0**bits) * 2.0**-bits
        if D.applies_exactly(w):
            assert [Fraction(a) for a in D.apply(w).tolist()] == exact(D.matrix, w)
            found += 1
    assert (found > 0) == (D.unit is not None)
    assert not D.applies_exactly(rng.normal(size=N) / 3)


@every_operator
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_bound_of_multipliers_holds_in_exact_arithmetic(D, scale):
    """D(alpha) <= the dual value of the rounded u, in rational numbers."""
    rng = np.random.default_rng(6)
    lam = 0.3 * scale / N
    problem = fl.Problem(sp.eye_array(N), scale * rng.normal(size=N), fl.losses.Squared(), FusedL1(lam, D.matrix))
    for _ in range(10):
        u = np.clip(rng.normal(size=D.shape[0]), -1, 1) * lam * 1.5
        bound = denoising_bound(problem, u, "test")
        used = D.rounded_multipliers(u, lam)
        assert np.abs(used).max() <= lam
        alpha = [N * v for v in exact(D.matrix.T, used)]
        y = [Fraction(v) for v in problem.y.tolist()]
        value = sum((b * a - a * a / 2 for a, b in zip(alpha, y, strict=True)), Fraction(0)) / N
        assert Fraction(bound.lower) <= value
        assert float(value) - bound.lower <= 1e-11 * (abs(float(value)) + scale**2)
