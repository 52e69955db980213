"""Every estimator on every shape and storage: its certificate is of the objective that its documentation states."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import fenchel as fl
from fenchel import losses, penalties
from tests.matrix.statements import (
    SHAPES,
    STORAGES,
    VARIANTS,
    MulticlassStatement,
    Statement,
    check_certificate,
    classes,
    data,
    for_every_storage,
    proven_to,
)

TOL = 1e-6


def mean_form(C):
    """lam of an objective |w|^2 / 2 + C sum of losses, divided by C W."""
    return lambda model, W: 1.0 / (C * W)


#: Estimator, loss, penalty, and lam of the mean form from the fitted model and W; parameters as in `statements`.
MODELS = {
    "Lasso": (fl.Lasso(alpha=0.1), losses.Squared(), penalties.L1, lambda m, W: 0.1),
    "ElasticNet": (fl.ElasticNet(0.1, l1_ratio=0.6), losses.Squared(), penalties.ElasticNet, lambda m, W: 0.1),
    "GroupLasso": (fl.GroupLasso(0.1), losses.Squared(), penalties.GroupL2, lambda m, W: 0.1),
    "FusedLasso": (fl.FusedLasso(0.1), losses.Squared(), penalties.FusedL1, lambda m, W: 0.1),
    "Ridge": (fl.Ridge(alpha=0.5), losses.Squared(), penalties.L2, lambda m, W: 0.5 / W),
    "LinearSVR": (fl.LinearSVR(C=2.0, epsilon=0.1), losses.EpsilonInsensitive(0.1), penalties.L2, mean_form(2.0)),
    "QuantileRegressor": (
        fl.QuantileRegressor(quantile=0.2, alpha=0.1),
        losses.Pinball(0.2),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "LpRegressor": (fl.LpRegressor(losses.Huber(0.7), lam=0.1), losses.Huber(0.7), penalties.L2, lambda m, W: 0.1),
    "LpClassifier": (fl.LpClassifier(lam=0.1), losses.Logistic(), penalties.L2, lambda m, W: 0.1),
    "LinearRegressor": (
        fl.LinearRegressor(losses.Huber(0.7), "l1", lam=0.1),
        losses.Huber(0.7),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "LinearClassifier": (
        fl.LinearClassifier("squared_hinge", "l1", lam=0.1),
        losses.SquaredHinge(),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "LinearSVC": (fl.LinearSVC(C=2.0, loss="hinge"), losses.Hinge(), penalties.L2, mean_form(2.0)),
    "LogisticRegression": (fl.LogisticRegression(C=2.0), losses.Logistic(), penalties.L2, mean_form(2.0)),
    "RidgeClassifier": (fl.RidgeClassifier(alpha=0.5), losses.Squared(), penalties.L2, lambda m, W: 0.5 / W),
    "SparseLogisticRegression": (
        fl.SparseLogisticRegression(alpha=0.1),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "LassoCV": (fl.LassoCV(alphas=[0.3, 0.1], cv=2), losses.Squared(), penalties.L1, lambda m, W: m.alpha_),
    "ElasticNetCV": (
        fl.ElasticNetCV(alphas=[0.3, 0.1], l1_ratio=0.6, cv=2),
        losses.Squared(),
        penalties.ElasticNet,
        lambda m, W: m.alpha_,
    ),
    "GroupLassoCV": (
        fl.GroupLassoCV(alphas=[0.3, 0.1], cv=2),
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
        fl.SparseLogisticRegressionCV(alphas=[0.3, 0.1], cv=2),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: m.alpha_,
    ),
}
#: The same for three classes; one problem for all of them where the loss says so, else one for each against the rest.
THREE_CLASSES = {
    "LpClassifier": (fl.LpClassifier(lam=0.1), losses.Logistic(), penalties.L2, lambda m, W: 0.1),
    "LinearClassifier": (
        fl.LinearClassifier("squared_hinge", "l1", lam=0.1),
        losses.SquaredHinge(),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "LinearSVC": (fl.LinearSVC(C=2.0, loss="hinge"), losses.Hinge(), penalties.L2, mean_form(2.0)),
    "LinearSVC-crammer_singer": (
        fl.LinearSVC(C=2.0, multi_class="crammer_singer"),
        losses.CrammerSinger(),
        penalties.L2,
        mean_form(2.0),
    ),
    "LogisticRegression": (fl.LogisticRegression(C=2.0), losses.Multinomial(), penalties.L2, mean_form(2.0)),
    "LogisticRegression-elasticnet": (
        fl.LogisticRegression(C=2.0, l1_ratio=0.6),
        losses.Multinomial(),
        penalties.ElasticNet,
        mean_form(2.0),
    ),
    "LogisticRegression-ovr": (
        fl.LogisticRegression(C=2.0, multi_class="ovr"),
        losses.Logistic(),
        penalties.L2,
        mean_form(2.0),
    ),
    "LogisticRegressionCV": (
        fl.LogisticRegressionCV(Cs=[0.5, 2.0], cv=2),
        losses.Multinomial(),
        penalties.L2,
        lambda m, W: 1.0 / (float(np.ravel(m.C_)[0]) * W),
    ),
    "RidgeClassifier": (fl.RidgeClassifier(alpha=0.5), losses.Squared(), penalties.L2, lambda m, W: 0.5 / W),
    "SparseLogisticRegression": (
        fl.SparseLogisticRegression(alpha=0.1),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: 0.1,
    ),
    "SparseLogisticRegressionCV": (
        fl.SparseLogisticRegressionCV(alphas=[0.3, 0.1], cv=2),
        losses.Logistic(),
        penalties.L1,
        lambda m, W: m.alpha_,
    ),
}
CLASSIFIERS = {name for name in MODELS if is_classifier(MODELS[name][0])}


def takes(name, variant, count=2):
    """Whether the data are enough: two weights to have a difference, two samples of a class in every fold."""
    n, d = SHAPES[variant.shape]
    if name == "FusedLasso" and d == 1:
        return False
    if name in CLASSIFIERS and name.endswith("CV"):
        return n > 3 * count  # of fewer, one of which does not count, a fold may miss a class
    if name.partition("-")[0] in CLASSIFIERS or name.endswith("CV"):
        return n > 1
    return True


def name_of(case):
    return f"{case[0]}-{case[1]}"


def weights_of(variant):
    return {"sample_weight": data(variant)[3]} if variant.weighted else {}


def fitted(model, variant, storage, target):
    X = data(variant)[0]
    model = clone(model).set_params(fit_intercept=variant.intercept, tol=TOL)
    if "groups" in model.get_params():
        model.set_params(groups=np.arange(X.shape[1]) // 2)
    return model.fit(STORAGES[storage](X), target, **weights_of(variant))


@pytest.mark.filterwarnings("ignore:The least populated class", "ignore:R.2 score", "ignore:.*single precision of X")
@pytest.mark.parametrize("case", [(k, v) for k in MODELS for v in VARIANTS if takes(k, v)], ids=name_of)
@for_every_storage
def test_estimator(case, storage):
    name, variant = case
    model, loss, kind, lam_of = MODELS[name]
    X, numbers, labels, s = data(variant)
    of_labels = name in CLASSIFIERS
    target = np.where(labels > 0, "yes", "no") if of_labels else numbers
    found = fitted(model, variant, storage, target)
    statement = Statement(loss, kind, float(lam_of(found, s.sum())), "labels" if of_labels else "")
    assert found.coef_.dtype == np.dtype(np.float32 if storage == "float32" else np.float64)
    w, b = np.ravel(found.coef_).astype(np.float64), float(np.ravel(found.intercept_)[0])
    assert w.shape == (X.shape[1],)
    objective, best = statement.objective(variant, w, b), statement.optimum(variant)[2]
    check_certificate(found.certificate_, objective, best, proven_to(TOL, storage, objective))
    scores = found.decision_function(X) if of_labels else found.predict(X)
    np.testing.assert_allclose(np.ravel(scores), X @ w + b, rtol=1e-6, atol=1e-6)
    found.coef_ = 0.9 * w.reshape(found.coef_.shape)  # the oracle can tell this model from the optimum
    worse = fl.certify(found, STORAGES[storage](X), target, effort="low", **weights_of(variant))
    check_certificate(worse, statement.objective(variant, 0.9 * w, b), best, None)


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("case", [(k, v) for k in THREE_CLASSES for v in VARIANTS if takes(k, v, 3)], ids=name_of)
@for_every_storage
def test_three_classes(case, storage):
    name, variant = case
    model, loss, kind, lam_of = THREE_CLASSES[name]
    X, _, _, s = data(variant)
    target = np.array(["a", "b", "c"])[classes(variant)]
    found = fitted(model, variant, storage, target)
    assert found.coef_.dtype == np.dtype(np.float32 if storage == "float32" else np.float64)
    lam, w, b = float(lam_of(found, s.sum())), found.coef_.astype(np.float64), found.intercept_ + np.zeros(3)
    assert w.shape == (3, X.shape[1])
    objective, (B, c, best) = three_objectives(loss, kind, lam, variant, w, b)
    check_certificate(found.certificate_, objective, best, TOL)
    np.testing.assert_allclose(found.decision_function(X), X @ w.T + b, rtol=1e-6, atol=1e-6)
    labels, proven = found.predict_certified(STORAGES[storage](X))
    assert np.array_equal(labels, found.predict(X))
    scores = np.sort(X @ B.T + c, axis=1)
    certain = proven & (scores[:, -1] - scores[:, -2] > 1e-3)
    assert np.array_equal(labels[certain], found.classes_[np.argmax(X @ B.T + c, axis=1)][certain])
    found.coef_ = 0.9 * w
    worse = fl.certify(found, STORAGES[storage](X), target, effort="low", **weights_of(variant))
    check_certificate(worse, three_objectives(loss, kind, lam, variant, 0.9 * w, b)[0], best, None)


def three_objectives(loss, kind, lam, variant, w, b):
    """The objective of a model of three classes, and weights, intercepts and objective of the optimum."""
    if isinstance(loss, losses.MulticlassLoss):
        statement = MulticlassStatement(loss, kind, lam)
        return statement.objective(variant, w, b), statement.optimum(variant)
    against_rest = [Statement(loss, kind, lam, k) for k in range(3)]
    objective = sum(statement.objective(variant, w[k], b[k]) for k, statement in enumerate(against_rest))
    B, c, best = zip(*(statement.optimum(variant) for statement in against_rest), strict=True)
    return objective, (np.array(B), np.array(c), sum(best))
