"""LinearClassifier and LinearRegressor as a scikit-learn user meets them."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import fenchel as fl
from fenchel import LinearClassifier, LinearRegressor

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = scale(CANCER_X)
DIABETES_X, DIABETES_Y = load_diabetes(return_X_y=True)


def test_the_default_is_logistic_regression_with_c_1():
    ours = LinearClassifier(tol=1e-11).fit(CANCER_X, CANCER_Y)
    theirs = LogisticRegression(tol=1e-10, max_iter=10_000).fit(CANCER_X, CANCER_Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(CANCER_X), theirs.predict_proba(CANCER_X), atol=1e-4)
    assert ours.certificate_.ok


def test_lasso_agrees_with_scikit_learn():
    ours = LinearRegressor(penalty="l1", lam=0.5, tol=1e-11).fit(DIABETES_X, DIABETES_Y)
    theirs = Lasso(alpha=0.5, tol=1e-12, max_iter=100_000).fit(DIABETES_X, DIABETES_Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-4)
    assert isinstance(ours.intercept_, float)
    assert ours.score(DIABETES_X, DIABETES_Y) == pytest.approx(theirs.score(DIABETES_X, DIABETES_Y), abs=1e-6)


def test_it_works_in_pipelines_and_searches_and_clones():
    pipeline = make_pipeline(StandardScaler(), LinearClassifier(penalty=fl.penalties.ElasticNet(0.01, 0.5)))
    grid = {"linearclassifier__penalty__lam": [0.001, 0.1], "linearclassifier__penalty__l1_ratio": [0.1, 0.9]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(CANCER_X, CANCER_Y)
    assert 1.0 - search.best_score_ < 0.08
    best = search.best_estimator_[-1]
    assert best.penalty.lam == search.best_params_["linearclassifier__penalty__lam"]
    copy = clone(best)
    assert copy.penalty == best.penalty
    assert not hasattr(copy, "coef_")
    assert 1.0 - cross_val_score(LinearClassifier(lam=0.01), CANCER_X, CANCER_Y).mean() < 0.07


def test_parameters_of_losses_and_penalties_can_be_set():
    model = LinearRegressor(loss=fl.losses.Huber(1.0), penalty=fl.penalties.L2(0.1))
    assert model.get_params()["loss__delta"] == 1.0
    assert "loss__delta" not in model.get_params(deep=False)
    model.set_params(loss__delta=2.0, penalty__lam=0.5, tol=1e-3)
    assert (model.loss.delta, model.penalty.lam, model.tol) == (2.0, 0.5, 1e-3)
    with pytest.raises(ValueError, match="'penalty__gamma': penalty has lam"):
        model.set_params(penalty__gamma=1.0)
    with pytest.raises(ValueError, match="has no parameters"):
        LinearRegressor().set_params(penalty__lam=1.0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearClassifier(loss="hinge loss"), "loss must be a fenchel loss or one of 'absolute'"),
        (LinearClassifier(penalty="l3"), "penalty must be a fenchel penalty or one of 'elastic_net'"),
        (LinearClassifier(penalty=fl.penalties.L1(0.1), lam=0.2), "lam=0.2 would have no effect"),
        (LinearClassifier(lam=-1.0), "lam must be a positive finite number"),
        (LinearRegressor(loss="hinge"), "classification loss; use LinearClassifier"),
        (LinearClassifier(class_weight={0: -1.0}), "class_weight has -1 for the class 0"),
    ],
)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(CANCER_X, CANCER_Y)


def offered_names(model):
    """The names of losses and penalties that the model's own error messages list."""
    names = {}
    for parameter in ("loss", "penalty"):
        with pytest.raises(ValueError, match="or one of") as error:
            clone(model).set_params(**{parameter: "none of them"}).fit(CANCER_X[:20], CANCER_Y[:20])
        names[parameter] = re.findall(r"'([a-z0-9_]+)'", str(error.value).partition("one of ")[2].partition(";")[0])
    return names


@pytest.mark.parametrize("model", [LinearClassifier(lam=0.1), LinearRegressor(lam=0.1)], ids=["classes", "numbers"])
def test_every_name_that_is_offered_can_be_fitted(model):
    names = offered_names(model)
    assert len(names["loss"]) >= 6
    others = {"no_penalty", "non_negative_elastic_net", "non_negative_l1"}
    assert set(names["penalty"]) == {"elastic_net", "entropy", "fused_l1", "l1", "l2", "lp_squared"} | others
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X @ rng.normal(size=4) + 3.0 * rng.normal(size=30)  # no linear classifier separates the signs
    y = y > 0.0 if isinstance(model, LinearClassifier) else y
    for loss in names["loss"]:
        assert clone(model).set_params(loss=loss).fit(X, y).certificate_.ok
    for penalty in names["penalty"]:
        lam = None if penalty == "no_penalty" else 0.1
        assert clone(model).set_params(penalty=penalty, lam=lam).fit(X, y).certificate_.ok
    with pytest.raises(ValueError, match=r"lam=0\.1 would have no effect"):
        clone(model).set_params(penalty="no_penalty").fit(X, y)


def test_penalties_that_a_name_cannot_describe_say_what_they_need():
    for penalty, kind in (("group_l2", "GroupL2"), ("sparse_group", "SparseGroup")):
        for model in (LinearClassifier(penalty=penalty), LinearRegressor(penalty=penalty, lam=0.1)):
            with pytest.raises(ValueError, match=rf"'{penalty}' needs groups.*fenchel\.penalties\.{kind}\(lam, groups"):
                model.fit(CANCER_X, CANCER_Y)


def test_weight_two_is_the_row_twice_to_the_last_digits():
    weights = np.random.default_rng(0).integers(0, 4, len(CANCER_Y))
    repeated = np.repeat(np.arange(len(CANCER_Y)), weights)
    for loss in ("logistic", "squared_hinge"):
        model = LinearClassifier(loss=loss, tol=1e-11, lam=0.01)
        one = clone(model).fit(CANCER_X, CANCER_Y, sample_weight=weights)
        other = clone(model).fit(CANCER_X[repeated], CANCER_Y[repeated])
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6, atol=1e-8)
        assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-13)


def test_class_weights_multiply_sample_weights():
    balanced = LinearClassifier(class_weight="balanced", lam=0.01, tol=1e-10).fit(CANCER_X, CANCER_Y)
    counts = np.bincount(CANCER_Y)
    weights = (len(CANCER_Y) / (2 * counts))[CANCER_Y]
    by_hand = LinearClassifier(lam=0.01, tol=1e-10).fit(CANCER_X, CANCER_Y, sample_weight=weights)
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-6)
    by_name = LinearClassifier(class_weight={0: 2.0, 1: 1.0}, lam=0.01, tol=1e-10).fit(CANCER_X, CANCER_Y)
    doubled = LinearClassifier(lam=0.01, tol=1e-10).fit(CANCER_X, CANCER_Y, sample_weight=np.where(CANCER_Y == 0, 2, 1))
    np.testing.assert_allclose(by_name.coef_, doubled.coef_, atol=1e-6)


def test_several_classes_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LinearClassifier(tol=1e-8).fit(X, names)
    assert model.coef_.shape == (3, 4)
    assert model.dual_coef_.shape == (3, 150)
    assert 1.0 - model.score(X, names) < 0.15
    assert model.certificate_.ok
    assert len(model.certificate_.parts) == len(model.trace_) == 3
    for k, label in enumerate(model.classes_):
        alone = LinearClassifier(tol=1e-8).fit(X, names == label)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-5)
    labels, proven = model.predict_certified(X)
    assert np.array_equal(labels, model.predict(X))
    assert 1.0 - proven.mean() < 0.2
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["pandas", "polars", "csr", "csc", "float32", "fortran", "list"])
def test_every_kind_of_input_gives_the_same_model(kind):
    X, y = CANCER_X[:, :6], CANCER_Y
    names = [f"feature {k}" for k in range(6)]
    forms = {
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "polars": lambda: pl.DataFrame(X, schema=names),
        "csr": lambda: sp.csr_matrix(X),
        "csc": lambda: sp.csc_array(X),
        "float32": lambda: X.astype(np.float32),
        "fortran": lambda: np.asfortranarray(X),
        "list": lambda: X.tolist(),
    }
    data = forms[kind]()
    model = LinearClassifier(tol=1e-10, lam=0.01).fit(data, y)
    reference = LinearClassifier(tol=1e-10, lam=0.01).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4 if kind == "float32" else 1e-5)
    assert np.array_equal(model.predict(data), reference.predict(X))
    if kind in ("pandas", "polars"):
        assert list(model.feature_names_in_) == names


def test_models_survive_pickling_without_their_training_data():
    model = LinearClassifier().fit(CANCER_X, CANCER_Y)
    stored = pickle.dumps(model)
    assert len(stored) < CANCER_X.nbytes / 3
    again = pickle.loads(stored)
    assert np.array_equal(again.predict(CANCER_X), model.predict(CANCER_X))
    assert again.certificate_ == model.certificate_


def test_probabilities_need_the_logistic_loss():
    model = LinearClassifier(loss="squared_hinge").fit(CANCER_X, CANCER_Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(CANCER_X)


def test_an_uncertified_fit_warns_once_with_its_gap():
    with pytest.warns(fl.NotCertifiedWarning, match="only proven that no model lowers the objective") as caught:
        LinearClassifier(tol=1e-12, max_iter=3).fit(CANCER_X, CANCER_Y)
    assert len(caught) == 1


def test_warm_starts_continue():
    model = LinearClassifier(warm_start=True, tol=1e-8).fit(CANCER_X, CANCER_Y)
    first = model.n_iter_
    assert model.fit(CANCER_X, CANCER_Y).n_iter_ < first


def test_a_fitted_model_can_be_certified_again():
    X, y = load_iris(return_X_y=True)
    model = LinearClassifier(tol=1e-6).fit(X, y)
    again = fl.certify(model, X, y)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert again.relative_gap <= 1.1e-6
    regression = LinearRegressor(loss="huber", tol=1e-6).fit(DIABETES_X, DIABETES_Y)
    assert fl.certify(regression, DIABETES_X, DIABETES_Y).relative_gap <= 1.1e-6
    with pytest.raises(ValueError, match="y has 7 at position 0, which is none of the model's classes"):
        fl.certify(model, X, np.full(150, 7))


def test_a_time_limit_holds_for_all_classes_together(clock):
    X, y = load_iris(return_X_y=True)
    wide = np.random.default_rng(0).normal(size=(150, 2000)) + np.repeat(X, 500, axis=1)
    model = LinearClassifier(loss="hinge", tol=1e-14, max_seconds=0.3)
    with pytest.warns(fl.NotCertifiedWarning, match="3 of 3 classes"):
        model.fit(wide, y)
    assert clock.elapsed < 0.9  # not three times as much
    assert np.all(np.isfinite(model.coef_))


def test_an_interrupt_ends_the_whole_fit(monkeypatch):
    X, y = load_iris(return_X_y=True)
    calls = []
    step = fl.solver.FISTA.step

    def interrupted(self, state):
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(fl.solver.FISTA, "step", interrupted)
    with pytest.warns(fl.NotCertifiedWarning, match="of 3 classes.*interrupted"):
        model = LinearClassifier(tol=1e-12, solver="fista").fit(X, y)
    assert len(calls) < 100  # a fit to the end takes hundreds
    assert model.coef_.shape == (3, 4)


def test_copies_keep_what_was_proven():
    import copy

    model = copy.deepcopy(LinearClassifier(tol=1e-6).fit(CANCER_X, CANCER_Y))
    labels, proven = model.predict_certified(CANCER_X)
    assert 1.0 - proven.mean() < 0.1
    assert np.array_equal(labels, model.predict(CANCER_X))


def test_any_loss_can_prove_labels():
    labels, proven = LinearClassifier(loss="squared", tol=1e-8).fit(CANCER_X, CANCER_Y).predict_certified(CANCER_X)
    assert 1.0 - proven.mean() < 0.1
    assert set(labels) == {0, 1}


def test_certifying_with_other_columns_is_refused():
    frame = pd.DataFrame(CANCER_X[:, :3], columns=["a", "b", "c"])
    model = LogisticRegression().fit(frame, CANCER_Y)
    assert fl.certify(model, frame, CANCER_Y).relative_gap < 1e-3
    with pytest.raises(ValueError, match="X has the column 'b' at position 0 where the model was fitted with 'a'"):
        fl.certify(model, frame[["b", "a", "c"]], CANCER_Y)


@pytest.mark.parametrize("name", ["Ridge", "LogisticRegression", "LinearSVC", "Lasso", "QuantileRegressor", "LassoCV"])
@pytest.mark.parametrize("value", ["no", 1, None])
def test_an_intercept_is_wanted_or_not_and_nothing_else(name, value):
    with pytest.raises(TypeError, match="fit_intercept must be True or False"):
        getattr(fl, name)(fit_intercept=value).fit(CANCER_X, CANCER_Y)


@pytest.mark.parametrize("quantile", [1.5, 0.0, "half", None])
def test_a_quantile_lies_between_0_and_1(quantile):
    with pytest.raises(ValueError, match="quantile must lie strictly between 0 and 1"):
        fl.QuantileRegressor(quantile=quantile).fit(DIABETES_X, DIABETES_Y)
