"""Newton steps on the multipliers of an interpolation: their linear systems, and how exact their solutions are."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import limits


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_more_rows_than_a_factorisation_takes_are_met_up_to_rounding_within_few_steps(monkeypatch, sparse, intercept):
    """By conjugate gradients, whose system has the damping that the model of the step has."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 100)) * (rng.random((40, 100)) < 0.3), rng.normal(size=40)
    exact = np.linalg.lstsq(X - intercept * X.mean(axis=0), y - intercept * y.mean(), rcond=None)[0]
    monkeypatch.setattr(limits, "TUNING", replace(limits.TUNING, dense=40 * 39))
    problem = fl.Interpolation(sp.csr_array(X) if sparse else X, fl.sets.Point(y), intercept=intercept)
    result = fl.solve(problem, solver="newton", tol=1e-8, warn=False)
    assert result.n_iter <= 3
    assert result.certificate.violation < 1e-11
    np.testing.assert_allclose(result.w, exact, atol=1e-10)
