"""Signals and images of every shape: no targets, no intercept, no weights; the storage is that of the rows."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import fenchel as fl
from tests.matrix.statements import SHAPES, STORAGES, Variant, check_certificate, data

WEIGHT, TOL = 0.3, 1e-6
DENSE = ("C", "F", "float32")
#: What the tests here are of.
ENTRY_POINTS = {"Denoised", "TotalVariationDenoiser", "denoise"}


def values(shape):
    return data(Variant(shape, intercept=False, weighted=False))[0]


def variation(w, order):
    """The sum of |differences|: of an image across and down, of a signal of that order."""
    if w.ndim == 1:
        return float(np.sum(np.abs(np.diff(w, order))))
    return float(np.sum(np.abs(np.diff(w, axis=0))) + np.sum(np.abs(np.diff(w, axis=1))))


def objective(y, w, order):
    """(|w - y|^2 / 2 + weight |D w|_1) / n."""
    return (float(np.sum((w - y) ** 2)) / 2 + WEIGHT * variation(w, order)) / y.size


@cache
def optimum(shape, row, order):
    """The objective of what a conic solver finds, for a row, or the whole as an image."""
    y = values(shape) if row is None else values(shape)[row]
    w = cp.Variable(y.shape)
    parts = [cp.diff(w, order)] if y.ndim == 1 else [cp.diff(w, axis=k) for k in (0, 1) if y.shape[k] > 1]
    total = sum(cp.sum(cp.abs(part)) for part in parts)
    statement = cp.Problem(cp.Minimize(cp.sum_squares(w - y) / 2 + WEIGHT * total))
    statement.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return objective(y, w.value, order)


@pytest.mark.parametrize("storage", DENSE)
@pytest.mark.parametrize("shape", SHAPES)
def test_images(shape, storage):
    y = STORAGES[storage](values(shape))
    found = fl.denoise(y, WEIGHT, tol=TOL)
    assert isinstance(found, fl.estimator.Denoised)
    assert found.values.shape == y.shape
    check_certificate(found.certificate, objective(values(shape), found.values, 1), optimum(shape, None, 1), TOL)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("shape", [shape for shape, (_, d) in SHAPES.items() if d > 2])
@pytest.mark.parametrize("storage", DENSE)
def test_signals(shape, order, storage):
    """Each row by itself, and all of them by the transformer."""
    rows = STORAGES[storage](values(shape))
    model = fl.TotalVariationDenoiser(WEIGHT, order=order, tol=TOL)
    clean = model.fit_transform(rows)
    worth, best = 0.0, 0.0
    for k, row in enumerate(values(shape)):
        alone = fl.denoise(rows[k], WEIGHT, order=order, tol=TOL)
        check_certificate(alone.certificate, objective(row, alone.values, order), optimum(shape, k, order), TOL)
        np.testing.assert_allclose(clean[k], alone.values, atol=1e-2)
        worth, best = worth + objective(row, clean[k], order), best + optimum(shape, k, order)
    check_certificate(model.certificate_, worth, best, TOL)
    np.testing.assert_array_equal(model.transform(rows), clean)


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_are_images(shape):
    y = values(shape)
    model = fl.TotalVariationDenoiser(WEIGHT, shape=y.shape, tol=TOL).fit(y.reshape(1, -1))
    clean = model.transform(y.reshape(1, -1)).reshape(y.shape)
    check_certificate(model.certificate_, objective(y, clean, 1), optimum(shape, None, 1), TOL)


@pytest.mark.parametrize("storage", sorted(set(STORAGES) - set(DENSE)))
def test_sparse_rows_are_refused(storage):
    rows = STORAGES[storage](values("n>d"))
    with pytest.raises(TypeError, match="dense"):
        fl.TotalVariationDenoiser(WEIGHT).fit(rows)
    with pytest.raises((TypeError, ValueError)):
        fl.denoise(rows, WEIGHT)
