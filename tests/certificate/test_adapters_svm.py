"""Support vector machines fitted by LIBLINEAR and LIBSVM, and LIBLINEAR's model files, certified."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR
from sklearn.utils.class_weight import compute_class_weight

import fenchel as fl
from tests.helpers.models import (
    check,
    classification,
    half_square,
    hinge,
    insensitive,
    l1,
    logistic,
    regression,
    squared_hinge,
    weights,
)

TIGHT = {"tol": 1e-9, "max_iter": 1_000_000, "random_state": 0}


def signs(y, positive):
    return np.where(y == positive, 1.0, -1.0)


def penalised(model, penalty, scaling, k=0):
    """The penalty of row k, with the weight of the constant column."""
    coef = np.atleast_2d(model.coef_)[k]
    return penalty(np.append(coef, np.ravel(model.intercept_)[k] / scaling))


# LinearSVC and LinearSVR ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [LinearSVC(loss="hinge", tol=1e-8, max_iter=1_000_000), SVC(kernel="linear", tol=1e-8)]
)
def test_svms_fitted_to_eight_digits_are_certified_within_a_thousandth(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 15))
    y = X @ rng.normal(size=15) + rng.normal(size=200) > 0.3
    found = fl.certify(model.fit(X, y), X, y)
    assert found.relative_gap <= 1e-3
    labels, proven = found.labels(X)
    assert np.all((labels > 0)[proven] == model.predict(X)[proven])


@pytest.mark.parametrize(
    ("loss", "penalty", "dual"), [("hinge", "l2", True), ("squared_hinge", "l2", False), ("squared_hinge", "l1", False)]
)
@pytest.mark.parametrize("scaling", [None, 1.0, 5.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_linear_svc(loss, penalty, dual, scaling, storage):
    X, y = classification()
    s = weights(len(y))
    options = {"fit_intercept": scaling is not None, "intercept_scaling": scaling or 1.0, "class_weight": {"bee": 2.5}}
    model = LinearSVC(C=0.2, loss=loss, penalty=penalty, dual=dual, **options, **TIGHT).fit(X, y, s)
    full, R = s * np.where(y == "bee", 2.5, 1.0), {"l2": half_square, "l1": l1}[penalty]
    phi = {"hinge": hinge, "squared_hinge": squared_hinge}[loss]

    def stated(m):
        return penalised(m, R, scaling or 1.0) + 0.2 * full @ phi(X @ m.coef_[0] + m.intercept_, signs(y, "bee"))

    check(model, storage(X), y, stated, 0.2 * full.sum(), s, within=1e-3 if loss == "hinge" else 1e-4)


@pytest.mark.parametrize("class_weight", [None, {"cat": 3.0, "ape": 0.5}, "balanced"])
def test_linear_svc_of_several_classes_weighs_the_positive_class_only(class_weight):
    X, y = classification(classes=3)
    s = weights(len(y))
    model = LinearSVC(C=0.3, dual=False, class_weight=class_weight, **TIGHT).fit(X, y, s)
    each = dict.fromkeys(model.classes_, 1.0)
    if class_weight == "balanced":
        counted = s if "sample_weight" in signature(compute_class_weight).parameters else np.ones(90)
        each = {c: counted.sum() / (3 * counted[y == c].sum()) for c in model.classes_}
    elif class_weight:
        each |= class_weight

    def stated(m):
        return sum(
            penalised(m, half_square, 1.0, k)
            + 0.3 * (s * np.where(y == c, each[c], 1.0)) @ squared_hinge(X @ m.coef_[k] + m.intercept_[k], signs(y, c))
            for k, c in enumerate(m.classes_)
        )

    found, _ = check(model, X, y, stated, 0.3 * s.sum(), s)
    assert len(found.parts) == 3
    labels, proven = found.labels(X)
    assert np.all(model.classes_[labels][proven] == model.predict(X)[proven])


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_linear_svr(power, intercept):
    X, y = regression()
    s = weights(len(y))
    loss = {1: "epsilon_insensitive", 2: "squared_epsilon_insensitive"}[power]
    options = {"dual": power == 1, "fit_intercept": intercept, "intercept_scaling": 2.0}
    model = LinearSVR(C=0.1, epsilon=0.2, loss=loss, **options, **TIGHT).fit(X, y, s)

    def stated(m):
        return penalised(m, half_square, 2.0) + 0.1 * s @ insensitive(0.2, power)(X @ m.coef_ + m.intercept_, y)

    check(model, X, y, stated, 0.1 * s.sum(), s, within=1e-3)


def test_early_stopped_linear_svc_has_a_gap_that_covers_what_it_lacks():
    X, y = classification()

    def stated(m):
        return penalised(m, half_square, 1.0) + 5.0 * np.sum(hinge(X @ m.coef_[0] + m.intercept_, signs(y, "bee")))

    tight = LinearSVC(C=5.0, loss="hinge", **TIGHT).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        early = LinearSVC(C=5.0, loss="hinge", max_iter=3, random_state=0).fit(X, y)
    check(tight, X, y, stated, 5.0 * 90, worse=early, within=1e-3)


def test_a_joint_loss_of_all_classes_raises():
    X, y = classification(classes=3)
    with pytest.raises(ValueError, match=r"crammer_singer.*not supported"):
        fl.certify(LinearSVC(multi_class="crammer_singer", max_iter=100_000).fit(X, y), X, y)


# SVC and SVR ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, pd.DataFrame])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"ape": 3.0}])
def test_svc(storage, class_weight):
    X, y = classification()
    s = weights(len(y))
    model = SVC(kernel="linear", C=0.5, tol=1e-9, class_weight=class_weight).fit(storage(X), y, s)
    each = {None: {}, "balanced": {c: 45 / np.sum(y == c) for c in ("ape", "bee")}}
    given = each[class_weight] if not isinstance(class_weight, dict) else class_weight
    full = s * np.array([given.get(label, 1.0) for label in y])

    def stated(m):
        w = np.asarray(m.coef_.toarray() if sp.issparse(m.coef_) else m.coef_)[0]
        return half_square(w) + 0.5 * full @ hinge(X @ w + m.intercept_, signs(y, "bee"))

    early = SVC(kernel="linear", C=0.5, tol=0.5, class_weight=class_weight).fit(storage(X), y, s)
    check(model, storage(X), y, stated, 0.5 * full.sum(), s, within=1e-5, worse=early)


def test_svc_of_several_classes_is_the_sum_over_all_pairs():
    X, y = classification(classes=4, n=150)
    s = weights(len(y))
    model = SVC(kernel="linear", C=0.5, tol=1e-9, class_weight={"dog": 2.0}).fit(X, y, s)
    full = s * np.where(y == "dog", 2.0, 1.0)

    def stated(m):
        value, row = 0.0, 0
        for i, first in enumerate(m.classes_):
            for second in m.classes_[i + 1 :]:
                inside = (y == first) | (y == second)
                z = X[inside] @ m.coef_[row] + m.intercept_[row]
                value += half_square(m.coef_[row]) + 0.5 * full[inside] @ hinge(z, signs(y[inside], first))
                row += 1
        return value

    early = SVC(kernel="linear", C=0.5, tol=0.5, class_weight={"dog": 2.0}).fit(X, y, s)
    found, _ = check(model, X, y, stated, 0.5 * s.sum(), s, within=1e-5, worse=early)
    assert len(found.parts) == 6
    with pytest.raises(ValueError, match="only its numbers"):
        found.labels(X)


def test_svr():
    X, y = regression()
    s = weights(len(y))
    stated = lambda m: half_square(m.coef_) + 0.5 * s @ insensitive(0.2)(X @ m.coef_[0] + m.intercept_, y)  # noqa: E731
    model = SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-9).fit(X, y, s)
    early = SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1.0).fit(X, y, s)
    check(model, X, y, stated, 0.5 * s.sum(), s, within=1e-5, worse=early)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(kernel="sigmoid"), "'sigmoid' is not positive semidefinite"),
        (NuSVC(kernel="linear", nu=0.2), "variable of the problem"),
        (NuSVR(kernel="linear"), "variable of the problem"),
    ],
)
def test_other_machines_raise(model, message):
    X, y = classification()
    y = (y == "bee").astype(int)
    with pytest.raises((TypeError, ValueError), match=message):
        fl.certify(model.fit(X, y), X, y)


def test_svc_with_other_data_than_those_of_the_fit_raises():
    X, y = classification()
    with pytest.raises(ValueError, match="support vectors beyond"):
        fl.certify(SVC(kernel="linear").fit(X, y), X[:20], y[:20])


# Model files ----------------------------------------------------------------------------------------------------


def write(path, solver, w, bias, labels=None):
    """A file as LIBLINEAR's train writes it; w has a row for each feature."""
    lines = [f"solver_type {solver}", f"nr_class {2 if labels is None else len(labels)}"]
    lines += [] if labels is None else ["label " + " ".join(map(str, labels))]
    lines += [f"nr_feature {len(w) - (bias >= 0)}", f"bias {bias}", "w"]
    path.write_text("\n".join(lines + [" ".join(f"{x:.17g}" for x in row) + " " for row in w]) + "\n")
    return path


@pytest.mark.parametrize(
    ("solver", "phi", "R", "fit"),
    [
        ("L2R_LR", logistic, half_square, None),
        ("L2R_L2LOSS_SVC_DUAL", squared_hinge, half_square, {"loss": "squared_hinge"}),
        ("L2R_L1LOSS_SVC_DUAL", hinge, half_square, {"loss": "hinge"}),
        ("L1R_L2LOSS_SVC", squared_hinge, l1, {"penalty": "l1", "dual": False}),
    ],
)
@pytest.mark.parametrize("bias", [-1, 2.0])
def test_model_files_of_two_classes(tmp_path, solver, phi, R, fit, bias):
    """The first label of a file is the positive one, whatever it is."""
    from sklearn.linear_model import LogisticRegression

    X, y = classification()
    y = np.where(y == "bee", 7, 3)
    options = {"C": 0.2, "fit_intercept": bias > 0, "intercept_scaling": 2.0, **TIGHT}
    model = LogisticRegression(solver="liblinear", **options) if fit is None else LinearSVC(**fit, **options)
    model.fit(X, -y)  # so that 3 is the second class
    w = np.append(model.coef_[0], model.intercept_ / 2.0 if bias > 0 else [])
    path = write(tmp_path / "model", solver, w[:, None], bias, labels=[3, 7])
    z = X @ model.coef_[0] + model.intercept_
    value = R(w) + 0.2 * np.sum(phi(z, signs(y, 3)))
    for subject in (path, str(path)):
        found = fl.certify(subject, X, y, C=0.2)
        assert found.primal == pytest.approx(value / (0.2 * 90), rel=1e-12)
        assert found.relative_gap <= 1e-3


def test_model_files_of_several_classes_and_class_weights(tmp_path):
    X, y = classification(classes=3)
    codes = np.searchsorted(["ape", "bee", "cat"], y) + 1
    model = LinearSVC(C=0.3, dual=False, class_weight={2: 4.0}, **TIGHT).fit(X, codes)
    w = np.column_stack([model.coef_, model.intercept_]).T
    path = write(tmp_path / "model", "L2R_L2LOSS_SVC", w[:, [1, 0, 2]], 1, labels=[2, 1, 3])
    found = fl.certify(path, X, codes, C=0.3, class_weight={2: 4.0})
    assert found.relative_gap <= 1e-4
    assert found.primal == pytest.approx(fl.certify(model, X, codes).primal)
    assert fl.certify(path, X, codes, C=0.3).relative_gap > 1e-3


@pytest.mark.parametrize(("solver", "power"), [("L2R_L1LOSS_SVR_DUAL", 1), ("L2R_L2LOSS_SVR", 2)])
def test_model_files_of_regression(tmp_path, solver, power):
    X, y = regression()
    loss = {1: "epsilon_insensitive", 2: "squared_epsilon_insensitive"}[power]
    model = LinearSVR(C=0.1, epsilon=0.2, loss=loss, dual=power == 1, **TIGHT).fit(X, y)
    w = np.append(model.coef_, model.intercept_)[:, None]
    path = write(tmp_path / "model", solver, w, 1)
    found = fl.certify(path, X, y, C=0.1, epsilon=0.2)
    assert found.primal == pytest.approx(fl.certify(model, X, y).primal)
    assert found.relative_gap <= 1e-3
    with pytest.raises(TypeError, match="epsilon"):
        fl.certify(path, X, y, C=0.1)


def test_model_files_with_an_unpenalised_intercept(tmp_path):
    X, y = classification()
    X = X + 0.5  # so that the intercept is large enough to matter
    y = (y == "bee").astype(int)
    model = SVC(kernel="linear", C=0.5, tol=1e-9).fit(X, y)
    w = np.append(model.coef_[0], model.intercept_)[:, None]
    path = write(tmp_path / "model", "L2R_L1LOSS_SVC_DUAL", w, 1, labels=[1, 0])
    assert fl.certify(path, X, y, C=0.5, regularize_bias=False, tol=1e-4).relative_gap <= 1e-4
    assert fl.certify(path, X, y, C=0.5).relative_gap > 1e-3


def test_model_files_say_what_is_missing_or_wrong(tmp_path):
    X, y = classification()
    y = (y == "bee").astype(int)
    w = np.zeros((6, 1))
    good = write(tmp_path / "good", "L2R_LR", w, -1, labels=[1, 0])
    with pytest.raises(TypeError, match="does not store C"):
        fl.certify(good, X, y)
    with pytest.raises(TypeError, match="does not use epsilon"):
        fl.certify(good, X, y, C=1.0, epsilon=0.1)
    with pytest.raises(TypeError, match=r"does not use gamma for .*takes C"):
        fl.certify(good, X, y, gamma=1.0)
    with pytest.raises(ValueError, match="5 columns, but the model has 6"):
        fl.certify(good, X[:, :5], y, C=1.0)
    with pytest.raises(ValueError, match="MCSVM_CS is not supported"):
        fl.certify(write(tmp_path / "cs", "MCSVM_CS", w, -1, labels=[1, 0]), X, y, C=1.0)
    (tmp_path / "bad").write_text("hello\n")
    with pytest.raises(ValueError, match="not a LIBLINEAR model file"):
        fl.certify(tmp_path / "bad", X, y, C=1.0)
    with pytest.raises(FileNotFoundError):
        fl.certify(str(tmp_path / "none"), X, y, C=1.0)


# Kernels --------------------------------------------------------------------------------------------------------


def power(A, B):
    product = A @ B.T
    return np.asarray(product.todense() if sp.issparse(product) else product) ** 2 + 1.0


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "function", "precomputed"])
@pytest.mark.parametrize("classes", [2, 3])
def test_svc_with_a_kernel(kernel, storage, classes):
    if kernel in ("function", "precomputed") and storage is not np.asarray:
        return  # scikit-learn takes these of dense data only
    X, y = classification(classes=classes)
    s = weights(len(y))
    data = storage(X @ X.T if kernel == "precomputed" else X)
    options = {"kernel": power if kernel == "function" else kernel, "C": 0.5}
    tight, early = (SVC(tol=tol, **options).fit(data, y, s) for tol in (1e-9, 0.5))
    found, rough = fl.certify(tight, data, y, s), fl.certify(early, data, y, s, effort="low")
    assert found.relative_gap <= 1e-5
    # both are bounds on one optimum: the better objective is not below the bound of the other
    assert rough.primal - rough.gap <= found.primal
    assert rough.primal >= found.primal - found.gap
    if classes == 2 and kernel in ("rbf", "poly"):  # SVC predicts wrongly with others and weights of zero
        labels, proven = found.labels(data)
        assert np.all(tight.classes_[(labels > 0).astype(int)][proven] == tight.predict(data)[proven])


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_svr_with_a_kernel(kernel):
    X, y = regression()
    s = weights(len(y))
    found = fl.certify(SVR(kernel=kernel, C=0.5, epsilon=0.2, tol=1e-9).fit(X, y, s), X, y, s)
    assert found.relative_gap <= 1e-6


def test_svc_that_is_not_fitted():
    X, y = classification()
    with pytest.raises(ValueError, match="not fitted"):
        fl.certify(SVC(), X, y)
