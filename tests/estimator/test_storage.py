"""Data frames and arrays stored by columns are fitted as fast as rows: one copy by rows, where rows are faster."""

import importlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import fenchel as fl

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=120) > 0, 1, 0)

BY_COLUMNS = {
    "fortran": lambda: np.asfortranarray(X),
    "float32": lambda: np.asfortranarray(X.astype(np.float32)),
    "frame": lambda: pd.DataFrame({f"column {k}": X[:, k] for k in range(4)}),
    "csc": lambda: sp.csc_array(X),
}
ALONG_ROWS = [
    fl.LinearSVC(loss="hinge"),
    fl.LinearSVC(solver="sdca"),
    fl.LogisticRegression(),
    fl.LogisticRegression(penalty="elasticnet", l1_ratio=0.5),
    fl.LogisticRegressionCV(Cs=2, cv=2),
    fl.Ridge(),
    fl.RidgeCV(cv=2),
    fl.RidgeClassifier(),
    fl.LinearSVR(),
    fl.HuberRegressor(),
    fl.LinearClassifier(loss="hinge"),
]
AS_IT_IS = [
    fl.LinearSVC(penalty="l1"),
    fl.LogisticRegression(penalty="l1"),
    fl.LogisticRegression(solver="fista"),
    fl.LinearClassifier(solver=fl.solver.FISTA()),
    fl.QuantileRegressor(alpha=0.01),
    fl.Lasso(alpha=0.01),
    fl.GroupLasso(alpha=0.01, groups=2),
    fl.SparseLogisticRegression(),
]


@pytest.fixture
def designs(monkeypatch):
    """The design of every problem that is solved."""
    seen, module = [], importlib.import_module("fenchel.solver.solve")
    run = module.run
    monkeypatch.setattr(module, "run", lambda fit, carried: seen.append(fit.problem.design) or run(fit, carried))
    return seen


@pytest.mark.parametrize("form", BY_COLUMNS)
@pytest.mark.parametrize("model", ALONG_ROWS, ids=str)
def test_columns_are_copied_by_rows_once(model, form, designs):
    data = BY_COLUMNS[form]()
    clone(model).fit(data, Y)
    assert designs
    assert all(design.by_rows for design in designs)
    whole = [design.matrix for design in designs if design.shape[0] == 120]
    assert all(matrix is whole[0] for matrix in whole)
    assert {matrix.dtype for matrix in whole} == {np.dtype(np.float32 if form == "float32" else np.float64)}


@pytest.mark.parametrize("model", ALONG_ROWS, ids=str)
def test_rows_are_not_copied(model, designs):
    for data in (X, sp.csr_array(X)):
        designs.clear()
        clone(model).fit(data, Y)
        stored = data.data if sp.issparse(data) else data
        whole = [design.matrix for design in designs if design.shape[0] == 120]
        assert whole
        assert all(np.shares_memory(matrix.data if sp.issparse(data) else matrix, stored) for matrix in whole)


@pytest.mark.parametrize("model", AS_IT_IS, ids=str)
def test_columns_stay_where_no_solver_goes_along_rows(model, designs):
    columns = np.asfortranarray(X)
    clone(model).fit(columns, Y)
    assert designs
    assert all(np.shares_memory(design.matrix, columns) for design in designs)


@pytest.mark.parametrize("form", ["fortran", "frame", "csc"])
@pytest.mark.parametrize("model", ALONG_ROWS[:6], ids=str)
def test_the_storage_does_not_change_the_model(model, form):
    one = clone(model).fit(BY_COLUMNS[form](), Y).coef_
    other = clone(model).fit(sp.csr_array(X) if form == "csc" else X, Y).coef_
    np.testing.assert_array_equal(one, other)
