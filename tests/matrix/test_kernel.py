"""Functions of the linear kernel on every shape and storage: the objective and the optimum are those of the weights."""

import numpy as np
import pytest
from sklearn.base import clone

import fenchel as fl
from fenchel import losses, penalties
from tests.matrix.statements import STORAGES, VARIANTS, Statement, check_certificate, classes, data, for_every_storage

TOL = 1e-6
MODELS = {"KernelClassifier": fl.KernelClassifier(losses.Hinge(), 0.1, kernel="linear", tol=TOL)}
ENOUGH = [variant for variant in VARIANTS if variant.shape != "n=1"]


def fitted(variant, storage, target):
    X, _, _, s = data(variant)
    model = clone(MODELS["KernelClassifier"]).set_params(fit_intercept=variant.intercept)
    return model.fit(STORAGES[storage](X), target, s if variant.weighted else None)


@pytest.mark.parametrize("variant", ENOUGH, ids=str)
@for_every_storage
def test_kernel_classifier(variant, storage):
    X, _, labels, s = data(variant)
    target, weights = np.where(labels > 0, "yes", "no"), s if variant.weighted else None
    found, statement = fitted(variant, storage, target), Statement(losses.Hinge(), penalties.L2, 0.1, "labels")
    w, b = found.support_vectors_.T @ found.dual_coef_[0], float(found.intercept_[0])
    np.testing.assert_allclose(w, X[found.support_].T @ found.dual_coef_[0])
    best = statement.optimum(variant)[2]
    check_certificate(found.certificate_, statement.objective(variant, w, b), best, TOL)
    np.testing.assert_allclose(found.decision_function(STORAGES[storage](X)), X @ w + b, rtol=1e-6, atol=1e-6)
    found.dual_coef_ = 0.9 * found.dual_coef_
    worse = fl.certify(found, STORAGES[storage](X), target, weights, effort="low")
    check_certificate(worse, statement.objective(variant, 0.9 * w, b), best, None)


@pytest.mark.parametrize("variant", ENOUGH, ids=str)
@for_every_storage
def test_three_classes(variant, storage):
    X = data(variant)[0]
    found = fitted(variant, storage, np.array(["a", "b", "c"])[classes(variant)])
    w, b = found.dual_coef_ @ X[found.support_], found.intercept_
    rest = [Statement(losses.Hinge(), penalties.L2, 0.1, k) for k in range(3)]
    objective = sum(each.objective(variant, w[k], b[k]) for k, each in enumerate(rest))
    check_certificate(found.certificate_, objective, sum(each.optimum(variant)[2] for each in rest), TOL)
    labels, proven = found.predict_certified(STORAGES[storage](X))
    assert np.array_equal(labels, found.predict(X))
    scores = np.column_stack([X @ each.optimum(variant)[0] + each.optimum(variant)[1] for each in rest])
    ordered = np.sort(scores, axis=1)
    certain = proven & (ordered[:, -1] - ordered[:, -2] > 1e-3)
    assert np.array_equal(labels[certain], found.classes_[np.argmax(scores, axis=1)][certain])
