"""Intervals of margins: for anybody's classifier, every norm, storage and scale."""

import json
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, LinearSVC

import fenchel as fl
from fenchel.certificate.margin.bounds import exceeded_by_none, margin_of
from fenchel.problem.margin import LargestMargin, Model
from tests.matrix.statements import STORAGES

iris = load_iris(return_X_y=True)
X2, y2 = iris[0][:100], iris[1][:100]
#: The largest margin of setosa against versicolor.
BEST = 0.81755577

rng = np.random.default_rng(0)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=1e3),
        LogisticRegression(C=1e3, max_iter=10_000),
        Perceptron(),
        SGDClassifier(random_state=0),
        RidgeClassifier(),
        SVC(kernel="linear", C=1e6),
        fl.LinearSVC(C=10.0),
        fl.MaxMarginClassifier(),
        GridSearchCV(LinearSVC(), {"C": [1.0, 10.0]}, cv=2),
        OneVsRestClassifier(LinearSVC()),
    ],
    ids=lambda model: f"{type(model).__module__.partition('.')[0]}-{type(model).__name__}",
)
def test_every_linear_classifier_has_an_interval(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(X2, y2)
    found = fl.margin_interval(fitted, X2, y2, tol=1e-8)
    w = (
        np.ravel(getattr(fitted, "best_estimator_", fitted).coef_)
        if hasattr(fitted, "coef_") or hasattr(fitted, "best_estimator_")
        else np.ravel(fitted.estimators_[0].coef_)
    )
    scores = fitted.decision_function(X2).ravel()
    own = float(np.min((2.0 * y2 - 1.0) * scores)) / float(np.linalg.norm(w))
    assert found.lower == pytest.approx(own, rel=1e-9)
    assert found.lower <= BEST * (1 + 1e-6)
    assert found.upper == pytest.approx(BEST, rel=1e-6)


def test_pipelines_are_judged_in_the_space_of_the_last_step():
    model = make_pipeline(StandardScaler(), LinearSVC(C=100.0)).fit(X2, y2)
    inside = fl.margin_interval(model[-1], scale(X2), y2)
    assert fl.margin_interval(model, X2, y2).upper == pytest.approx(inside.upper, rel=1e-12)


def test_several_classes_count_differences_of_scores():
    X, y = scale(load_wine().data), load_wine().target
    model = LogisticRegression(C=100.0).fit(X, y)
    found = fl.margin_interval(model, X, y)
    Z = model.decision_function(X)
    others = np.where(np.eye(3, dtype=bool)[y], -np.inf, Z).max(axis=1)
    own = float(np.min(Z[np.arange(len(y)), y] - others)) / float(np.linalg.norm(model.coef_))
    assert found.lower == pytest.approx(own, rel=1e-9)
    assert found.classes == 3
    assert found.best <= found.upper <= 1.001 * found.best


def test_a_model_that_misclassifies_says_how_many():
    w = np.array([0.0, 1.0, 0.0, 0.0])
    found = fl.margin_interval((w, -3.0), X2, y2)
    wrong = np.count_nonzero((2.0 * y2 - 1.0) * (X2 @ w - 3.0) <= 0.0)
    assert found.misclassified == wrong > 0
    assert found.lower < 0.0
    assert f"{wrong} of 100 samples are misclassified" in str(found)


def test_weights_alone_have_no_intercept():
    w = np.array([1.0, 1.0, 1.0, 1.0])
    assert not fl.margin_interval(w, X2, y2).intercept
    assert fl.margin_interval((w, 0.0), X2, y2).intercept
    # each interval is that of its own classifiers: the best one with an intercept exceeds all without
    assert fl.margin_interval(w, X2, y2).upper < fl.margin_interval((w, 0.0), X2, y2).best


def test_zero_weights_have_margin_zero():
    found = fl.margin_interval(np.zeros(4), X2, y2)
    assert found.lower == 0.0
    assert found.misclassified == 100


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 3.0, 10.0, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_search_closes_the_interval_for_every_norm(p, intercept):
    w = np.zeros(4)
    found = fl.margin_interval((w, 0.0) if intercept else w, X2 - X2.mean(axis=0), y2, p=p)
    assert found.upper - found.best <= 3e-3 * found.upper
    assert found.separable is True


def test_high_effort_reaches_ten_digits():
    found = fl.margin_interval((np.zeros(4), 0.0), X2, y2, effort="high")
    assert found.upper - found.best <= 1e-10 * found.upper
    model = fl.margin_interval(found.model, X2, y2, effort="high")
    assert model.ok


@pytest.mark.parametrize(("p", "intercept", "k"), list(product([1.0, 2.0, np.inf], [False, True], [2, 3])))
def test_bounds_hold_in_rational_arithmetic(p, intercept, k):
    """The margin of the model as it is, and |A'q| for q as it is, against their bounds; sums that cancel."""
    n, d = 12, 5
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 8, size=(n, d))
    codes = np.arange(n) % k
    problem = LargestMargin(fl.Design(X), codes, k, intercept, p)
    w, b = rng.normal(size=problem.weights_shape), rng.normal(size=1 if k == 2 else k)
    w *= 1.0 / np.abs(X).max(axis=0)
    lower = margin_of(problem, Model(w, b if intercept else 0.0 * b)).lower
    scores = [
        [sum(Fraction(x) * Fraction(c) for x, c in zip(row, u, strict=True)) for u in np.atleast_2d(w)] for row in X
    ]
    shifts = [Fraction(v) if intercept else Fraction(0) for v in b]
    Z = [[z + v for z, v in zip(row, shifts, strict=True)] for row in scores]
    if k == 2:
        least = min(row[0] if code else -row[0] for row, code in zip(Z, codes, strict=True))
    else:
        least = min(row[own] - row[c] for row, own in zip(Z, codes, strict=True) for c in range(k) if c != own)
    sizes = [abs(Fraction(v)) for v in w.ravel()]
    length = max(sizes) if p == np.inf else sum(sizes) if p == 1.0 else sum(s * s for s in sizes)
    claimed = Fraction(lower)
    if p == 2.0:
        assert claimed * abs(claimed) * length <= least * abs(least)
    else:
        assert claimed * length <= least
    assert lower == pytest.approx(float(least) / float(length) ** (0.5 if p == 2.0 else 1.0), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_upper_bounds_hold_in_rational_arithmetic(p):
    """Without an intercept the bound is |A'q| / sum q exactly, for the q that was given."""
    for _ in range(20):
        X = rng.normal(size=(8, 3))
        y = np.where(np.arange(8) % 2, 1.0, -1.0)
        q = rng.exponential(size=8) * 10.0 ** rng.integers(-6, 6, size=8)
        # a combination that nearly cancels
        X[-1] = -y[-1] / q[-1] * ((y * q)[:-1] @ X[:-1])
        problem = LargestMargin(fl.Design(X), (y > 0).astype(np.int64), 2, False, p)
        upper = Fraction(exceeded_by_none(problem, q))
        v = [sum(Fraction(s * t) * Fraction(x) for s, t, x in zip(y, q, X[:, j], strict=True)) for j in range(3)]
        total = sum(Fraction(t) for t in q)
        if p == 2.0:
            assert (upper * total) ** 2 >= sum(x * x for x in v)
        elif p == np.inf:
            assert upper * total >= sum(abs(x) for x in v)
        else:
            assert upper * total >= max(abs(x) for x in v)


def test_unbalanced_multipliers_cost_what_the_intercept_could_gain():
    """The bound of any q holds for all classifiers with an intercept, balanced or not."""
    for _ in range(50):
        X, y = rng.normal(size=(10, 3)) + 5.0, np.where(np.arange(10) % 2, 1.0, -1.0)
        X += 4.0 * y[:, None]
        problem = LargestMargin(fl.Design(X), (y > 0).astype(np.int64), 2, True, 2.0)
        w, b = 4.0 * np.ones(3) + rng.normal(size=3), -60.0 + 10.0 * rng.normal()
        assert margin_of(problem, Model(w, np.array([b]))).lower <= exceeded_by_none(problem, rng.exponential(size=10))
    codes = np.arange(12) % 3
    X = 3.0 * np.eye(3)[codes] + 0.3 * rng.normal(size=(12, 3))
    problem = LargestMargin(fl.Design(X), codes, 3, True, 2.0)
    best = fl.margin_interval((np.eye(3), np.zeros(3)), X, codes).best
    for _ in range(50):
        assert best <= exceeded_by_none(problem, rng.exponential(size=24) * (rng.random(24) < 0.5))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [2, 3])
def test_storage_makes_no_difference(storage, k):
    X = iris[0].astype(np.float32).astype(np.float64)
    codes = np.minimum(iris[1], k - 1)
    w = rng.normal(size=4 if k == 2 else (3, 4))
    given = fl.margin_interval((w, np.zeros(1 if k == 2 else 3)), STORAGES[storage](X), codes)
    plain = fl.margin_interval((w, np.zeros(1 if k == 2 else 3)), X, codes)
    assert given.lower == pytest.approx(plain.lower, rel=1e-9)
    assert given.upper == pytest.approx(plain.upper, rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("power", [-150, -20, 0, 20, 140])
def test_features_may_have_any_scale(power):
    X = X2 * 10.0**power
    found = fl.margin_interval((np.array([0.0, -0.5, 1.0, 0.5]), 0.0), X, y2)
    assert found.best == pytest.approx(BEST * 10.0**power, rel=2e-3)
    assert found.upper == pytest.approx(BEST * 10.0**power, rel=2e-3)


@pytest.mark.parametrize("power", [-300, -150, 150, 300])
def test_weights_may_have_any_scale(power):
    w = np.array([0.0, -0.5, 1.0, 0.5])
    b = -1.0
    there = fl.margin_interval((w * 10.0**power, b * 10.0**power), X2, y2, effort="low")
    assert there.lower == pytest.approx(fl.margin_interval((w, b), X2, y2, effort="low").lower, rel=1e-9)


@pytest.mark.parametrize(
    ("X", "y", "best"),
    [
        ([[1.0], [-2.0]], [1, -1], 1.0),  # d = 1
        ([[3.0, 4.0], [0.0, 0.0]], [1, -1], None),  # a row of zeros
        ([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [1, -1, 1], 1.0),  # duplicates, a column of zeros
    ],
)
def test_small_and_degenerate_data(X, y, best):
    X = np.array(X)
    found = fl.margin_interval(np.ones(X.shape[1]), X, y)
    if best is None:
        assert found.separable is not True
        assert found.best == 0.0
        assert found.upper <= 1e-300
    else:
        assert found.best <= best <= found.upper <= 1.001 * best


def test_data_that_cannot_be_separated_are_proven_so():
    X, y = iris
    found = fl.margin_interval((np.ones(4), -10.0), X, y == 1)
    assert found.separable is False
    assert found.upper == 0.0
    assert found.contradiction.verify(X, fl.sets.HalfLine(1.0, np.where(y == 1, 1.0, -1.0)))
    assert "Proven: no linear classifier separates" in str(found)


def test_given_multipliers_are_used():
    high = fl.margin_interval((np.zeros(4), 0.0), X2, y2, effort="high")
    again = fl.margin_interval((np.zeros(4), 0.0), X2, y2, multipliers=high.multipliers, effort="low")
    assert again.upper <= high.upper * (1 + 1e-12)
    assert again.how == "given multipliers"


# Support --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_samples_outside_the_support_may_be_dropped_or_moved(intercept, k):
    X, y = (scale(load_wine().data), load_wine().target) if k == 3 else (X2 - X2.mean(axis=0), y2)
    d = X.shape[1]
    zero = np.zeros(d if k == 2 else (3, d))
    given = (zero, np.zeros(1 if k == 2 else 3)) if intercept else zero
    found = fl.margin_interval(given, X, y, tol=1e-9)
    assert found.separable is True
    assert len(np.unique(y)) <= len(found.support) < len(y) // 2
    alone = fl.margin_interval(given, X[found.support], y[found.support], tol=1e-9)
    assert alone.best == pytest.approx(found.best, rel=1e-8)
    w, b = (np.asarray(part) / np.linalg.norm(found.model[0]) for part in found.model)
    w_alone, b_alone = (np.asarray(part) / np.linalg.norm(alone.model[0]) for part in alone.model)
    np.testing.assert_allclose(w, w_alone, atol=1e-4)
    if k == 2:
        np.testing.assert_allclose(b, b_alone, atol=1e-3)
    moved, rng = np.array(X, dtype=float), np.random.default_rng(0)
    for i in np.setdiff1d(np.arange(len(y)), found.support):  # so that all its differences become larger
        own = int(np.searchsorted(np.unique(y), y[i]))
        rows = w[None] * (2 * own - 1) if k == 2 else w[own] - np.delete(w, own, axis=0)
        moved[i] += np.linalg.pinv(rows) @ (rng.exponential() * np.linalg.norm(X, axis=1).max() * np.ones(k - 1))
    assert np.abs(moved - X).max() > 1.0
    after = fl.margin_interval(given, moved, y, tol=1e-9)
    assert after.best == pytest.approx(found.best, rel=1e-8)


def test_support_contains_every_sample_that_matters():
    """Dropping a sample of the optimum's own support raises the best margin: it cannot be proven idle."""
    found = fl.margin_interval((np.zeros(4), 0.0), X2, y2, effort="high")
    for i in [*found.support, *range(0, 100, 9)]:
        keep = np.arange(100) != i
        without = fl.margin_interval((np.zeros(4), 0.0), X2[keep], y2[keep], effort="high")
        if without.best > found.upper:
            assert i in found.support


def test_nothing_is_said_of_support_where_the_best_classifier_is_not_unique():
    assert fl.margin_interval((np.zeros(4), 0.0), X2, y2, p=1.0).support is None
    assert fl.margin_interval((np.zeros(4), 0.0), X2, y2, p=np.inf).support is None


# Text and files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2.0, np.inf])
def test_json_round_trip(p):
    found = fl.margin_interval((np.ones(4), -10.0), X2, y2, p=p)
    assert fl.MarginInterval.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["separable"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": 2.0},
        {"best": 2.0},
        {"best": -1.0},
        {"upper": "nan"},
        {"lower": "nan"},
        {"best": "nan"},
        {"p": 0.5},
        {"tol": "nan"},
        {"samples": 100.5},
        {"samples": True},
        {"classes": "2"},
        {"misclassified": 101},
        {"misclassified": -1},
        {"classes": 1},
        {"intercept": 1},
        {"how": 3},
    ],
    ids=str,
)
def test_numbers_that_cannot_be_those_of_an_interval_are_refused(wrong):
    written = json.loads(fl.margin_interval((np.ones(4), -10.0), X2, y2).to_json())
    assert written["upper"] < 2.0
    with pytest.raises(ValueError, match="not a margin interval"):
        fl.MarginInterval.from_json(json.dumps(written | wrong))


def test_ends_may_be_infinite():
    written = json.loads(fl.margin_interval((np.ones(4), -10.0), X2, y2).to_json())
    found = fl.MarginInterval.from_json(json.dumps(written | {"lower": "-inf", "upper": "inf", "best": "inf"}))
    assert (found.lower, found.best, found.upper) == (-np.inf, np.inf, np.inf)
    assert not fl.MarginInterval.from_json(json.dumps(written | {"lower": 0.1, "upper": "inf"})).ok


def test_other_json_is_an_error():
    with pytest.raises(ValueError, match="not a margin interval"):
        fl.MarginInterval.from_json("{}")


def test_html_has_the_text():
    found = fl.margin_interval((np.ones(4), -10.0), X2, y2)
    assert str(found).splitlines()[0] in found._repr_html_()


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fl.margin_interval(Ridge().fit(X2, y2), X2, y2), TypeError, "not a classifier"),
        (lambda: fl.margin_interval(LinearSVC(), X2, y2), TypeError, "not fitted"),
        (lambda: fl.margin_interval(LinearSVC, X2, y2), TypeError, "the class LinearSVC itself"),
        (
            lambda: fl.margin_interval(SVC(kernel="sigmoid").fit(X2, y2), X2, y2),
            ValueError,
            "not positive semidefinite",
        ),
        (lambda: fl.margin_interval(SVC().fit(*iris), *iris), TypeError, "votes among pairs"),
        (lambda: fl.margin_interval(SVC().fit(X2, y2), X2[1:], y2[1:]), ValueError, "data of its fit"),
        (lambda: fl.margin_interval(SVC().fit(X2, y2), X2, y2, p=1.0), ValueError, "2-norm only"),
        (lambda: fl.margin_interval(SVC(kernel="linear").fit(*iris), *iris), TypeError, "votes among pairs"),
        (lambda: fl.margin_interval(np.ones(3), X2, y2), ValueError, "4 columns, but the model has 3"),
        (lambda: fl.margin_interval(np.ones((3, 4)), X2, y2), ValueError, "a vector of weights"),
        (lambda: fl.margin_interval((np.ones(4), np.ones(3)), X2, y2), ValueError, "b must have 1 entry"),
        (lambda: fl.margin_interval((np.ones(4), 0.0, 1), X2, y2), TypeError, "pair"),
        (lambda: fl.margin_interval([np.nan] * 4, X2, y2), ValueError, "must be finite"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2, p=0.5), ValueError, "from 1 to inf"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2, tol=0.0), ValueError, "tol must be positive"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2, effort="all"), ValueError, "effort"),
        (lambda: fl.margin_interval(np.ones(4), X2, np.zeros(100)), ValueError, "one class only"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2[48:53]), ValueError, "5 entries"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2, multipliers=-np.ones(100)), ValueError, "not negative"),
        (lambda: fl.margin_interval(np.ones(4), X2, y2, multipliers=np.ones(3)), ValueError, "of shape"),
    ],
)
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_sparse_data_that_are_nearly_inseparable_are_separated():
    X, y = load_breast_cancer(return_X_y=True)
    found = fl.margin_interval((np.zeros(30), 0.0), sp.csr_array(X), y)
    assert found.separable is True  # with a margin of 5e-6 beside rows of length 1000
    assert found.best > 1.8e-6


def test_differences_of_rows_of_weights_count_their_rounding():
    model = LogisticRegression()
    model.classes_, model.n_features_in_ = np.array([0, 1, 2]), 2
    model.coef_ = np.array([[3e-17, 0.0], [1.0, 1.0], [-5.0, -5.0]])
    model.intercept_ = np.array([0.0, 1e-18, -9.0])
    X = np.array([[1.0, -1.0], [-1.0, -2.0]])  # the first sample is on the wrong side by 2.9e-17
    assert fl.margin_interval(model, X, [1, 0], effort="low").lower < 0.0
