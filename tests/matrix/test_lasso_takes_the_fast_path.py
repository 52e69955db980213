"""The estimators of the Lasso's family are solved by what fl.solve takes for the same problem."""

import numpy as np
import pytest

import fenchel as fl


@pytest.mark.parametrize(
    ("model", "penalty"),
    [
        (fl.Lasso(alpha=0.1, tol=1e-6), fl.penalties.L1(0.1)),
        (fl.ElasticNet(alpha=0.1, l1_ratio=0.6, tol=1e-6), fl.penalties.ElasticNet(0.1, 0.6)),
    ],
    ids=["Lasso", "ElasticNet"],
)
@pytest.mark.parametrize("shape", [(38, 700), (200, 30)], ids=["wide", "tall"])
def test_the_steps_and_the_model_are_those_of_solve(model, penalty, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.normal(size=shape[0])
    direct = fl.solve(fl.Problem(X, y, penalty=penalty, intercept=True), tol=1e-6)
    found = model.fit(X, y)
    assert found.n_iter_ == direct.n_iter
    np.testing.assert_array_equal(found.coef_, direct.w)
