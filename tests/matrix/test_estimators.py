"""Every estimator on every shape and storage: its certificate is of the objective that its documentation states."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier

import fenchel as fl
from fenchel import losses, penalties
from tests.matrix.statements import SHAPES, STORAGES, VARIANTS, Statement, check_certificate, data

TOL = 1e-6


def mean_form(C):
    """lam of an objective |w|^2 / 2 + C sum of losses, divided by C W."""
    return lambda model, W: 1.0 / (C * W)


#: Estimator, loss, penalty, and lam of the mean form from the fitted model and W; parameters as in `statements`.
MODELS = {
    "Lasso": (fl.Lasso(alpha=0.05), losses.Squared(), penalties.L1, lambda m, W: 0.05),
    "ElasticNet": (fl.ElasticNet(0.05, l1_ratio=0.6), losses.Squared(), penalties.ElasticNet, lambda m, W: 0.05),
    "GroupLasso": (fl.GroupLasso(0.05), losses.Squared(), penalties.GroupL2, lambda m, W: 0.05),
    "FusedLasso": (fl.FusedLasso(0.05), losses.Squared(), penalties.FusedL1, lambda m, W: 0.05),
    "Ridge": (fl.Ridge(alpha=0.5), losses.Squared(), penalties.L2, lambda m, W: 0.5 / W),
    "LinearSVR": (fl.LinearSVR(C=2.0, epsilon=0.1), losses.EpsilonInsensitive(0.1), penalties.L2, mean_form(2.0)),
    "QuantileRegressor": (
        fl.QuantileRegressor(quantile=0.2, alpha=0.05),
        losses.Pinball(0.2),
        penalties.L1,
        lambda m, W: 0.05,
    ),
    "LinearRegressor": (
        fl.LinearRegressor(losses.Huber(0.7), "l1", lam=0.05),
        losses.Huber(0.7),
        penalties.L1,
        lambda m, W: 0.05,
    ),
    "LinearClassifier": (
        fl.LinearClassifier("squared_hinge", "l1", lam=0.05),
        losses.SquaredHinge(),
        penalties.L1,
        lambda m, W: 0.05,
    ),
    "LinearSVC": (fl.LinearSVC(C=2.0, loss="hinge"), losses.Hinge(), penalties.L2, mean_form(2.0)),
    "LogisticRegression": (fl.LogisticRegression(C=2.0), losses.Logistic(), penalties.L2, mean_form(2.0)),
    "RidgeClassifier": (fl.RidgeClassifier(alpha=0.5), losses.Squared(), penalties.L2, lambda m, W: 0.5 / W),
    "SparseLogisticRegression": (
        fl.SparseLogisticRegression(alpha=0.05),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: 0.05,
    ),
    "LassoCV": (fl.LassoCV(alphas=[0.3, 0.05], cv=2), losses.Squared(), penalties.L1, lambda m, W: m.alpha_),
    "ElasticNetCV": (
        fl.ElasticNetCV(alphas=[0.3, 0.05], l1_ratio=0.6, cv=2),
        losses.Squared(),
        penalties.ElasticNet,
        lambda m, W: m.alpha_,
    ),
    "GroupLassoCV": (
        fl.GroupLassoCV(alphas=[0.3, 0.05], cv=2),
        losses.Squared(),
        penalties.GroupL2,
        lambda m, W: m.alpha_,
    ),
    "RidgeCV": (fl.RidgeCV(alphas=[0.5, 2.0]), losses.Squared(), penalties.L2, lambda m, W: m.alpha_ / W),
    "LogisticRegressionCV": (
        fl.LogisticRegressionCV(Cs=[0.5, 2.0], cv=2),
        losses.Logistic(),
        penalties.L2,
        lambda m, W: 1.0 / (float(np.ravel(m.C_)[0]) * W),
    ),
    "SparseLogisticRegressionCV": (
        fl.SparseLogisticRegressionCV(alphas=[0.3, 0.05], cv=2),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: m.alpha_,
    ),
}
#: Not in this matrix: one has a scale among its unknowns, the other no targets.
OTHERS = {"HuberRegressor", "TotalVariationDenoiser"}
CLASSIFIERS = {name for name in MODELS if is_classifier(MODELS[name][0])}


def takes(name, variant):
    """Whether the data are enough: two weights to have a difference, two samples of a class in every fold."""
    n, d = SHAPES[variant.shape]
    if name == "FusedLasso" and d == 1:
        return False
    if name in CLASSIFIERS and name.endswith("CV"):
        return n > 5  # of five samples, one of which does not count, a fold may miss a class
    if name in CLASSIFIERS or name.endswith("CV"):
        return n > 1
    return True


CASES = [(name, variant) for name in MODELS for variant in VARIANTS if takes(name, variant)]


def test_every_estimator_is_here():
    kinds = {
        name
        for name in fl.__all__
        if inspect.isclass(getattr(fl, name)) and issubclass(getattr(fl, name), BaseEstimator)
    }
    assert kinds == set(MODELS) | OTHERS


def fitted(model, variant, storage, target):
    X, _, _, s = data(variant)
    weights = {"sample_weight": s} if variant.weighted else {}
    model = clone(model).set_params(fit_intercept=variant.intercept, tol=TOL)
    if "groups" in model.get_params():
        model.set_params(groups=np.arange(X.shape[1]) // 2)
    return model.fit(STORAGES[storage](X), target, **weights)


@pytest.mark.filterwarnings("ignore:The least populated class", "ignore:R.2 score")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_estimator(case):
    name, variant = case
    model, loss, kind, lam_of = MODELS[name]
    X, numbers, labels, s = data(variant)
    signs = name in CLASSIFIERS
    for storage in STORAGES:
        found = fitted(model, variant, storage, np.where(labels > 0, "yes", "no") if signs else numbers)
        statement = Statement(loss, kind, float(lam_of(found, s.sum())))
        w, b = np.ravel(found.coef_), float(np.ravel(found.intercept_)[0])
        assert w.shape == (X.shape[1],)
        if name == "RidgeClassifier":  # least squares on labels
            z = X @ w + b
            objective = float(np.sum(s * (z - labels) ** 2) / (2 * s.sum()) + statement.lam * np.sum(w**2) / 2)
            best = least_squares(X, labels, s, statement.lam, variant.intercept)
        else:
            objective = statement.objective(variant, w, b)
            best = statement.optimum(variant)[2]
        check_certificate(found.certificate_, objective, best, TOL)
        again = fl.certify(found, STORAGES[storage](X), labels_of(labels) if signs else numbers, **extra(variant, s))
        check_certificate(again, objective, best, None)
        scores = found.decision_function(X) if signs else found.predict(X)
        np.testing.assert_allclose(np.ravel(scores), X @ w + b, rtol=1e-6, atol=1e-6)


def labels_of(labels):
    return np.where(labels > 0, "yes", "no")


def extra(variant, s):
    return {"sample_weight": s} if variant.weighted else {}


def least_squares(X, y, s, lam, intercept):
    """The optimum of ridge regression by its normal equations."""
    share = s / s.sum()
    centre, level = (share @ X, share @ y) if intercept else (np.zeros(X.shape[1]), 0.0)
    A, r = X - centre, y - level
    w = np.linalg.solve(A.T @ (share[:, None] * A) + lam * np.eye(X.shape[1]), A.T @ (share * r))
    return float(share @ (A @ w - r) ** 2 / 2 + lam * np.sum(w**2) / 2)
