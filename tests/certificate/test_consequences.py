"""What follows from a gap holds for the data that it was proven on, rounding included."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel as fl


def test_a_column_without_a_weight_that_changes_is_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    result = fl.solve(fl.Problem(X, y, fl.losses.Squared(), fl.penalties.L1(0.1)), tol=1e-8)
    assert result.certificate.zeros().any()
    X[:, 1] = 100.0 * y
    with pytest.raises(ValueError, match="X has changed since this certificate was made"):
        result.certificate.zeros()


@pytest.mark.parametrize(("large", "scale"), [(1e17, 1.0), (1e13, 1e-4), (1e15, 1e-2)])
def test_sums_that_cancel_prove_no_difference_zero(large, scale):
    """w = (1, 1, 1, -2) / scale has a smaller P than any w with w_3 = w_4: their difference is not zero."""
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(size=(2, 30)), 2)
    X = np.column_stack([np.full(30, large), scale * a, np.full(30, -large), scale * b])
    problem = fl.Problem(X, a - 2.0 * b, fl.losses.Squared(), fl.penalties.FusedL1(1e-3 * scale))
    assert not fl.certify(problem, np.zeros(4)).zeros()[-1]


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_rows_of_one_sum_leave_no_doubt_about_the_intercept(storage):
    """With one-hot rows the intercept and the null vector of FusedL1 are one direction: one equation, not two."""
    rng = np.random.default_rng(0)
    X = np.eye(6)[rng.integers(0, 6, 200)]
    y = X @ [1.0, 1.0, 1.0, -2.0, -2.0, -2.0] + 0.1 * rng.normal(size=200)
    penalty = fl.penalties.FusedL1(0.01)
    with_b = fl.solve(fl.Problem(storage(X), y, fl.losses.Squared(), penalty, intercept=True), tol=1e-8)
    without = fl.solve(fl.Problem(storage(X), y, fl.losses.Squared(), penalty), tol=1e-8)
    assert with_b.certificate.dual <= without.certificate.primal
    assert without.certificate.dual <= with_b.certificate.primal


def test_rows_that_sum_to_zero_leave_a_direction_that_costs_nothing():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(50, 5)).astype(float)
    X[:, 4] = -X[:, :4].sum(axis=1)
    problem = fl.Problem(X, X @ [1.0, 1.0, 0.0, 0.0, 0.0], fl.losses.Squared(), fl.penalties.FusedL1(0.01))
    assert fl.solve(problem, tol=1e-4).certificate.ok


@pytest.mark.parametrize("classes", [2, 3])
def test_certificates_of_pipelines_label_nothing(classes):
    """They would take what the pipeline is given for what its last step sees."""
    X, y = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=classes, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=1000)).fit(X, y)
    certificate = fl.certify(model, X, y)
    assert certificate.relative_gap < 1e-6
    with pytest.raises(ValueError, match="only its numbers"):
        certificate.labels(X)
