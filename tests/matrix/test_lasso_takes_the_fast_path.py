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


@pytest.mark.parametrize("shape", [(38, 700), (200, 30)], ids=["wide", "tall"])
@pytest.mark.parametrize("kind", [fl.LassoCV, fl.ElasticNetCV])
def test_a_limit_on_the_steps_that_is_not_reached_changes_nothing(kind, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = X[:, :5] @ np.ones(5) + 0.1 * rng.normal(size=shape[0])
    plain, limited = kind(cv=3).fit(X, y), kind(cv=3, max_iter=10_000).fit(X, y)
    assert (limited.alpha_, limited.n_iter_) == (plain.alpha_, plain.n_iter_)
    assert [row.iteration for row in limited.trace_] == [row.iteration for row in plain.trace_]
    np.testing.assert_array_equal(limited.coef_, plain.coef_)
    np.testing.assert_array_equal(limited.mse_path_, plain.mse_path_)
