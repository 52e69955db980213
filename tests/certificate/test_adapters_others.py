"""celer, skglm and torch: certified where they are installed, and through stand-ins where they are not."""

import numpy as np
import pytest

import fenchel as fl
from tests.helpers.models import (
    check,
    classification,
    half_square,
    half_squared,
    hinge,
    l1,
    logistic,
    mixed,
    regression,
    weights,
)

GROUPS = [[0, 3], [1, 2], [4, 5]]
GROUP_WEIGHTS = np.array([1.0, 2.0, 0.5])
FEATURE_WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.2])


def groups(w):
    return sum(GROUP_WEIGHTS[k] * np.linalg.norm(w[g]) for k, g in enumerate(GROUPS))


def least_squares(X, y, penalty, loss=half_squared):
    def stated(m):
        w = np.ravel(m.coef_)
        return np.mean(loss(X @ w + m.intercept_, y)) + penalty(w)

    return stated


def against_rest(X, y, loss, penalty):
    """Mean loss plus penalty, for each class against the rest."""

    def stated(m):
        positive = m.classes_[1:] if len(m.coef_) == 1 else m.classes_
        b = np.broadcast_to(m.intercept_, len(m.coef_))
        return sum(
            np.mean(loss(X @ m.coef_[k] + b[k], np.where(y == c, 1.0, -1.0))) + penalty(m.coef_[k])
            for k, c in enumerate(positive)
        )

    return stated


# celer ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "penalty"),
    [
        ("Lasso", {}, l1),
        ("Lasso", {"weights": FEATURE_WEIGHTS}, lambda w: l1(FEATURE_WEIGHTS * w)),
        ("Lasso", {"fit_intercept": False}, l1),
        ("ElasticNet", {"l1_ratio": 0.4}, mixed(0.4)),
        ("GroupLasso", {"groups": GROUPS, "weights": GROUP_WEIGHTS}, groups),
        ("GroupLasso", {"groups": 2}, lambda w: sum(np.linalg.norm(w[k : k + 2]) for k in (0, 2, 4))),
        ("GroupLasso", {"groups": [1, 5]}, lambda w: abs(w[0]) + np.linalg.norm(w[1:])),
    ],
)
def test_celer(name, options, penalty):
    celer = pytest.importorskip("celer")
    X, y = regression()
    model = getattr(celer, name)(alpha=0.2, tol=1e-12, **options).fit(X, y)
    check(model, X, y, least_squares(X, y, lambda w: 0.2 * penalty(w)), 1.0, within=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_celer_logistic_regression_is_a_sum_over_samples(classes):
    celer = pytest.importorskip("celer")
    X, y = classification(classes=classes)
    model = celer.LogisticRegression(C=0.5, tol=1e-10).fit(X, y)
    stated = against_rest(X, y, logistic, lambda w: l1(w) / (0.5 * 90))
    check(model, X, y, stated, 1.0)
    with pytest.raises(TypeError, match="without sample_weight"):
        fl.certify(model, X, y, weights(90))


@pytest.mark.parametrize("name", ["LassoCV", "ElasticNetCV", "GroupLassoCV"])
def test_celer_cross_validation_reads_what_was_chosen(name):
    """Through a stand-in: celer's CV classes need an older scikit-learn."""
    X, y = regression()
    kind = type(name, (), {"__module__": "celer.dropin_sklearn"})
    model = kind()
    model.__dict__ |= {"alpha_": 0.2, "l1_ratio": [0.4, 0.9], "l1_ratio_": 0.4, "groups": 2, "fit_intercept": True}
    model.coef_, model.intercept_ = np.arange(6.0), 1.0
    penalty = {
        "LassoCV": l1,
        "ElasticNetCV": mixed(0.4),
        "GroupLassoCV": lambda w: sum(np.linalg.norm(w[k : k + 2]) for k in (0, 2, 4)),
    }[name]
    stated = least_squares(X, y, lambda w: 0.2 * penalty(w))
    assert fl.certify(model, X, y).primal == pytest.approx(stated(model))


def test_celer_models_outside_our_penalties_raise():
    celer = pytest.importorskip("celer")
    X, y = regression()
    with pytest.raises(ValueError, match="elastic net with weights"):
        fl.certify(celer.ElasticNet(l1_ratio=0.5, weights=FEATURE_WEIGHTS).fit(X, y), X, y)
    with pytest.raises(ValueError, match="positive"):
        fl.certify(celer.Lasso(positive=True).fit(X, y), X, y)


# skglm ----------------------------------------------------------------------------------------------------------


SKGLM = [
    ("Lasso", {}, l1),
    ("WeightedLasso", {"weights": FEATURE_WEIGHTS}, lambda w: l1(FEATURE_WEIGHTS * w)),
    ("ElasticNet", {"l1_ratio": 0.4}, mixed(0.4)),
    ("GroupLasso", {"groups": GROUPS, "weights": GROUP_WEIGHTS}, groups),
]


@pytest.mark.parametrize(("name", "options", "penalty"), SKGLM)
def test_skglm_objectives(name, options, penalty):
    """With weights put in by hand: fitting one of each takes long to compile."""
    skglm = pytest.importorskip("skglm")
    X, y = regression()
    model = getattr(skglm, name)(alpha=0.2, **options)
    model.coef_, model.intercept_ = np.arange(6.0) - 2.0, 0.7
    stated = least_squares(X, y, lambda w: 0.2 * penalty(w))(model)
    assert fl.certify(model, X, y).primal == pytest.approx(stated, rel=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::Warning")
@pytest.mark.parametrize(("name", "options", "penalty"), SKGLM)
def test_skglm(name, options, penalty):
    skglm = pytest.importorskip("skglm")
    X, y = regression()
    model = getattr(skglm, name)(alpha=0.2, tol=1e-10, **options).fit(X, y)
    check(model, X, y, least_squares(X, y, lambda w: 0.2 * penalty(w)), 1.0, within=1e-6)


def test_skglm_classifier_objectives():
    skglm = pytest.importorskip("skglm")
    X, y = classification(classes=3)
    model = skglm.SparseLogisticRegression(alpha=0.05, l1_ratio=0.7)
    model.coef_, model.intercept_, model.classes_ = np.eye(3, 6), 0, np.unique(y)
    stated = against_rest(X, y, logistic, lambda w: 0.05 * mixed(0.7)(w))(model)
    assert fl.certify(model, X, y).primal == pytest.approx(stated, rel=1e-12)
    model = skglm.LinearSVC(C=0.5)
    model.coef_, model.intercept_, model.classes_, model.dual_coef_ = np.eye(3, 6), 0, np.unique(y), np.zeros((3, 90))
    stated = against_rest(X, y, hinge, lambda w: half_square(w) / (0.5 * 90))(model)
    assert fl.certify(model, X, y).primal == pytest.approx(stated, rel=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::Warning")
def test_skglm_classifiers():
    skglm = pytest.importorskip("skglm")
    X, y = classification()
    model = skglm.SparseLogisticRegression(alpha=0.05, l1_ratio=0.7, tol=1e-10).fit(X, y)
    check(model, X, y, against_rest(X, y, logistic, lambda w: 0.05 * mixed(0.7)(w)), 1.0)
    model = skglm.LinearSVC(C=0.5, tol=1e-10).fit(X, y)
    check(model, X, y, against_rest(X, y, hinge, lambda w: half_square(w) / (0.5 * 90)), 1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::Warning")
def test_skglm_general_estimators():
    skglm = pytest.importorskip("skglm")
    from skglm import datafits, solvers
    from skglm import penalties as theirs

    X, y = regression()
    huber = lambda z, t: np.where(np.abs(z - t) <= 0.5, half_squared(z, t), 0.5 * np.abs(z - t) - 0.125)  # noqa: E731
    solver = solvers.AndersonCD(tol=1e-10)
    model = skglm.GeneralizedLinearEstimator(datafits.Huber(0.5), theirs.L1_plus_L2(0.1, 0.6), solver).fit(X, y)
    check(model, X, y, least_squares(X, y, lambda w: 0.1 * mixed(0.6)(w), huber), 1.0)
    model.penalty = theirs.MCPenalty(1.0, 3.0)
    with pytest.raises(ValueError, match="MCPenalty is none of"):
        fl.certify(model, X, y)
    model.penalty, model.datafit = theirs.L1(0.1, positive=True), datafits.Quadratic()
    with pytest.raises(ValueError, match="positive"):
        fl.certify(model, X, y)


def test_skglm_models_that_are_not_convex_raise():
    skglm = pytest.importorskip("skglm")
    X, y = regression()
    with pytest.raises(TypeError, match="not convex"):
        fl.certify(skglm.MCPRegression(), X, y)


# torch ----------------------------------------------------------------------------------------------------------


class Tensor:
    """As much of a torch tensor as is needed."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float32)

    def detach(self):
        return self

    cpu = detach

    def double(self):
        return self

    def numpy(self):
        return self.values


def layer(w, b=None):
    linear = type("Linear", (), {"__module__": "torch.nn.modules.linear"})()
    linear.weight, linear.bias = Tensor(np.atleast_2d(w)), None if b is None else Tensor([b])
    return linear


def torch_layer(w, b=None):
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(len(np.atleast_2d(w)[0]), len(np.atleast_2d(w)), bias=b is not None)
    with torch.no_grad():
        linear.weight[:] = torch.as_tensor(np.atleast_2d(w))
        if b is not None:
            linear.bias[:] = b
    return linear


@pytest.mark.parametrize("make", [layer, torch_layer])
def test_a_linear_layer_with_a_stated_objective(make):
    X, y = classification()
    signs = np.where(y == "bee", 1.0, -1.0)
    loss, penalty = fl.losses.Logistic(), fl.penalties.L2(0.05)
    best = fl.solve(fl.Problem(X, signs, loss, penalty, intercept=True), tol=1e-8)
    found = fl.certify(make(best.w, best.b), X, signs, loss=loss, penalty=penalty, intercept=True)
    assert found.ok
    w, b = best.w.astype(np.float32), np.float32(best.b)
    stated = np.mean(logistic(X @ w.astype(float) + float(b), signs)) + 0.05 * half_square(w.astype(float))
    assert found.primal == pytest.approx(stated, rel=1e-12)
    assert fl.certify(make(best.w), X, signs, loss=loss, penalty=penalty).gap > 0
    with pytest.raises(TypeError, match="does not store its objective"):
        fl.certify(make(best.w, best.b), X, signs, loss=loss)
    with pytest.raises(ValueError, match="2 outputs"):
        fl.certify(make(np.zeros((2, 6))), X, signs, loss=loss, penalty=penalty)
