"""Differences of scores between classes, without the matrix and with it."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.data.class_pairs import ClassPairs
from tests.helpers.margins import rows_of
from tests.matrix.statements import STORAGES

rng = np.random.default_rng(0)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_products_norms_and_rows_are_those_of_the_matrix(storage, constant):
    X, codes = rng.normal(size=(10, 4)).astype(np.float32).astype(np.float64), np.arange(10) % 3
    pairs = ClassPairs(fl.Design(STORAGES[storage](X), constant=constant), codes, 3)
    A, _ = rows_of(np.column_stack([X, np.full(10, constant)]) if constant else X, codes)
    w, a, s = rng.normal(size=A.shape[1]), rng.normal(size=len(A)), rng.exponential(size=len(A))
    assert pairs.shape == A.shape
    np.testing.assert_allclose(pairs.matvec(w), A @ w, atol=1e-12)
    np.testing.assert_allclose(pairs.rmatvec(a), A.T @ a, atol=1e-12)
    for product, value, absolute in (
        (pairs.matvec_bounded(w), A @ w, np.abs(A) @ np.abs(w)),
        (pairs.rmatvec_bounded(a), A.T @ a, np.abs(A).T @ np.abs(a)),
        (pairs.rmatvec_bounded(s), A.T @ s, np.abs(A).T @ s),
    ):
        np.testing.assert_allclose(product.value, value, atol=1e-12)
        np.testing.assert_allclose(product.absolute, absolute, rtol=1e-12)
    np.testing.assert_allclose(pairs.rows(np.array([0, 7, 19])), A[[0, 7, 19]])
    for p in (1.0, 2.0, np.inf):
        np.testing.assert_allclose(pairs.row_norms(p), np.linalg.norm(A, p, axis=1))
    np.testing.assert_allclose(pairs.column_norms(2.0, s), np.sqrt(s @ A**2))
    np.testing.assert_allclose(pairs.using(1).matvec(w), A @ w, atol=1e-12)


def test_bounds_cover_sums_that_cancel():
    """Large terms of both signs: the error of the products is below its bound."""
    X = rng.normal(size=(30, 5)) * 10.0 ** rng.integers(-6, 6, size=(30, 5))
    codes = np.arange(30) % 4
    pairs = ClassPairs(fl.Design(X), codes, 4)
    A, _ = rows_of(X, codes)
    exact = A.astype(np.longdouble)
    w, a = rng.normal(size=A.shape[1]) / np.tile(X[0], 4), rng.normal(size=len(A))
    forward, back = pairs.matvec_bounded(w), pairs.rmatvec_bounded(a)
    assert np.all(np.abs(forward.value - exact @ w) <= forward.error)
    assert np.all(np.abs(back.value - exact.T @ a) <= back.error)
