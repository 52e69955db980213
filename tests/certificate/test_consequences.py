"""What follows from a gap holds for the data that it was proven on, rounding included."""

import numpy as np
import pytest

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
