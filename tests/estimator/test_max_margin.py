"""MaxMarginClassifier: the largest margin with its interval, and what becomes of classes that cannot be separated."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import scale

import fenchel as fl
from fenchel.certificate.margin import MarginJudge
from fenchel.kernel import Precomputed
from fenchel.steps import NearestPoints
from tests.helpers.margins import best_margin

X, y = load_iris(return_X_y=True)
X2, y2 = X[:100], y[:100]


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 4.0, np.inf])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_margin_is_that_of_a_conic_solver(p, fit_intercept):
    Z = X2 - X2.mean(axis=0)
    model = fl.MaxMarginClassifier(p=p, fit_intercept=fit_intercept).fit(Z, y2)
    best = best_margin(Z, y2, p, fit_intercept)
    assert (1.0 - 1e-3) * best <= model.margin_interval_.lower * (1 + 1e-7)
    assert model.margin_interval_.lower <= best * (1 + 1e-7)
    assert model.margin_interval_.upper >= best * (1 - 1e-7)
    assert model.margin_interval_.ok
    assert model.separable_ == "proven"
    assert model.score(Z, y2) == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_the_lower_end_is_below_the_exact_margin_of_the_stored_weights(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 3)) * [1.0, 1e-3, 1e3]
    labels = Z @ rng.normal(size=3) > 0.0
    model = fl.MaxMarginClassifier(tol=1e-9, fit_intercept=seed % 2 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NotCertifiedWarning)
        model.fit(Z, labels)
    w, b = [Fraction(v) for v in model.coef_[0].tolist()], Fraction(float(model.intercept_[0]))
    scores = [sum((Fraction(a) * c for a, c in zip(row, w, strict=True)), b) for row in Z.tolist()]
    least = min(z if label else -z for z, label in zip(scores, labels, strict=True))
    assert model.margin_interval_.lower > 0.0
    assert Fraction(model.margin_interval_.lower) ** 2 * sum(c * c for c in w) <= least**2


def test_least_scores_are_one():
    model = fl.MaxMarginClassifier(tol=1e-8).fit(X2, y2)
    scores = (2.0 * y2 - 1.0) * model.decision_function(X2)
    assert scores.min() == pytest.approx(1.0, rel=1e-9)
    assert model.margin_interval_.lower == pytest.approx(1.0 / np.linalg.norm(model.coef_), rel=1e-9)


def test_the_support_determines_the_model():
    model = fl.MaxMarginClassifier(tol=1e-9).fit(X2, y2)
    assert len(model.support_) == 3
    alone = fl.MaxMarginClassifier(tol=1e-9).fit(X2[model.support_], y2[model.support_])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_several_classes_have_one_margin(fit_intercept):
    Z, classes = scale(load_wine().data), load_wine().target
    model = fl.MaxMarginClassifier(fit_intercept=fit_intercept).fit(Z, classes)
    scores = model.decision_function(Z)
    others = np.where(np.eye(3, dtype=bool)[classes], -np.inf, scores).max(axis=1)
    margin = np.min(scores[np.arange(len(classes)), classes] - others) / np.linalg.norm(model.coef_)
    assert model.margin_interval_.lower == pytest.approx(margin, rel=1e-9)
    assert model.margin_interval_.ok
    assert model.coef_.shape == (3, 13)


def test_inseparable_classes_warn_with_the_proof_and_are_fitted_all_the_same():
    with pytest.warns(fl.InseparableWarning, match="Proven: no linear classifier separates"):
        model = fl.MaxMarginClassifier().fit(X, y)
    assert model.separable_ == "refuted"
    assert 1.0 - model.score(X, y) < 0.05
    assert model.margin_interval_.upper == 0.0


def test_inseparable_classes_raise_on_request():
    with pytest.raises(fl.Infeasible, match="Proven"):
        fl.MaxMarginClassifier(on_inseparable="raise").fit(X, y == 1)


@pytest.mark.parametrize("p", [1.0, np.inf])
def test_a_linear_program_has_the_time_that_is_left(p, monkeypatch):
    limits, linprog = [], optimize.linprog

    def recorded(*args, options, **others):
        limits.append(options.get("time_limit"))
        return linprog(*args, options=options, **others)

    monkeypatch.setattr(optimize, "linprog", recorded)
    fl.MaxMarginClassifier(p=p).fit(X[:100], y[:100])
    fl.MaxMarginClassifier(p=p, max_seconds=1e5).fit(X[:100], y[:100])
    assert limits[0] is None
    assert 0.0 < limits[1] <= 1e5


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_ends_within_a_few_steps_of_its_time(p, classes, clock):
    rng = np.random.default_rng(0)
    codes = rng.integers(classes, size=200)
    Z = rng.normal(size=(200, 300))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fl.MaxMarginClassifier(p=p, tol=1e-14, max_seconds=0.2).fit(Z, codes)
    assert any("stopped by max_seconds" in str(one.message) for one in caught)
    assert clock.elapsed < 0.6  # a question advances this clock by 0.01


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_keeps_the_best_known(at, monkeypatch):
    offered, keep = [], MarginJudge.keep_model

    def interrupted(self, *found):
        kept = keep(self, *found)
        offered.append(self.margin)
        if len(offered) == at:
            raise KeyboardInterrupt
        return kept

    monkeypatch.setattr(MarginJudge, "keep_model", interrupted)
    with pytest.warns(fl.NotCertifiedWarning, match="interrupted"):
        model = fl.MaxMarginClassifier(tol=1e-14).fit(X[:100], y[:100])
    assert model.margin_interval_.best == offered[at - 1] > 0.0
    assert len(offered) <= at + 2  # the start of the run, and the model of the result
    assert model.margin_interval_.upper < np.inf


def test_an_interrupt_before_any_model_is_found(monkeypatch):
    def interrupted(self, state):
        raise KeyboardInterrupt

    monkeypatch.setattr(NearestPoints, "step", interrupted)
    for codes in (y[:100], y[50:]):  # the nearest mean separates the first two classes, and not the others
        Z = X[:100] if codes[0] == 0 else X[50:]
        with pytest.warns(fl.NotCertifiedWarning if codes[0] == 0 else fl.InseparableWarning, match="interrupted"):
            model = fl.MaxMarginClassifier().fit(Z, codes)
        assert model.score(Z, codes) > 0.85
        assert model.separable_ == ("proven" if codes[0] == 0 else "unknown")
        assert model.margin_interval_.upper < np.inf
    found = fl.margin_interval((np.zeros(4), 0.0), X[:100], y[:100])
    assert found.best == 0.0
    assert 0.0 < found.upper < np.inf  # by equal multipliers


def test_time_that_is_over_is_said(clock):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 200))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fl.MaxMarginClassifier(tol=1e-9, max_seconds=1e-3).fit(Z, rng.choice([0, 1], size=300))
    assert any(issubclass(one.category, fl.NotCertifiedWarning | fl.InseparableWarning) for one in caught)
    assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (fl.MaxMarginClassifier(p=0.5), "from 1 to inf"),
        (fl.MaxMarginClassifier(tol=0.0), "tol must be positive"),
        (fl.MaxMarginClassifier(on_inseparable="ignore"), "on_inseparable must be one of"),
        (fl.MaxMarginClassifier(gamma="nonsense"), "no parameter gamma, got gamma='nonsense'"),
        (fl.MaxMarginClassifier(kernel="linear", gamma=-5), "no parameter gamma, got gamma=-5"),
        (fl.MaxMarginClassifier(kernel="linear", degree="x"), "no parameter degree, got degree='x'"),
        (fl.MaxMarginClassifier(cache_size=-3), "cache_size must be a positive number of MB, got -3"),
        (fl.MaxMarginClassifier(kernel="rbf", cache_size=-3), "cache_size must be a positive number of MB, got -3"),
    ],
)
def test_parameters_are_checked(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X2, y2)


def test_a_fit_leaves_nothing_of_an_earlier_one_with_another_kernel():
    linear, curved = fl.MaxMarginClassifier().fit(X2, y2), fl.MaxMarginClassifier(kernel="rbf").fit(X2, y2)
    first, second = linear.decision_function(X2), curved.decision_function(X2)
    of_linear, of_curved = set(vars(linear)), set(vars(curved))
    assert "coef_" in of_linear - of_curved
    assert {"kernel_", "dual_coef_", "support_vectors_"} <= of_curved - of_linear
    linear.set_params(kernel="rbf")
    assert np.array_equal(linear.decision_function(X2), first)  # until the next fit
    assert set(vars(linear.fit(X2, y2))) == of_curved
    assert np.array_equal(linear.decision_function(X2), second)
    assert fl.margin_interval(linear, X2, y2).lower == pytest.approx(curved.margin_interval_.lower, rel=1e-6)
    assert set(vars(linear.set_params(kernel=None).fit(X2, y2))) == of_linear
    assert np.array_equal(linear.decision_function(X2), first)


@pytest.mark.parametrize("kind", [fl.MaxMarginClassifier, fl.KernelClassifier])
def test_folds_take_rows_and_columns_of_a_gram_matrix(kind):
    K = X2 @ X2.T + np.eye(len(X2))
    by_name, by_object = (
        cross_val_score(kind(kernel=kernel), K, y2, error_score="raise") for kernel in ("precomputed", Precomputed())
    )
    assert np.array_equal(by_name, by_object)


def test_clones_are_equal():
    model = fl.MaxMarginClassifier(p=1.0, tol=1e-4)
    assert clone(model).get_params() == model.get_params()


def test_labels_may_be_text():
    names = np.array(["setosa", "versicolor"])[y2]
    model = fl.MaxMarginClassifier().fit(X2, names)
    assert list(model.predict(X2)) == list(names)
