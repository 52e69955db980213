"""The largest margin of functions of a kernel: right, in bounded memory, for anybody's classifier."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC, NuSVC

import fenchel as fl
from fenchel.certificate.margin import MarginJudge
from fenchel.certificate.margin.bounds import exceeded_by_none, margin_of
from fenchel.kernel import RBF, Gram, Linear, Polynomial, Precomputed, kernel_of
from fenchel.problem.margin import FunctionBall, KernelMargin, LargestMargin, Model
from tests.helpers.margins import best_margin, random_classes

X, y = make_moons(200, noise=0.1, random_state=0)
codes = y.astype(np.int64)


def largest(kernel, intercept=True, samples=X, labels=codes, cache_size=200.0):
    return KernelMargin.of(Gram(samples, kernel, cache_size), labels, intercept)


def quadratic(A, B):
    return (1.0 + np.asarray(A @ B.T)) ** 2


def random_set(seed):
    rng = np.random.default_rng([19, seed])
    n, d = int(rng.integers(10, 60)), int(rng.integers(1, 5))
    Z = rng.normal(size=(n, d))
    labels = rng.integers(2, size=n) if seed % 3 == 0 else (Z[:, 0] ** 2 + 0.3 * rng.normal(size=n) > 0.5).astype(int)
    labels[:2] = 0, 1
    return Z, labels.astype(np.int64)


KERNELS = {
    "rbf": RBF(0.7),
    "poly": Polynomial(0.5, 2, 1.0),
    "linear": kernel_of("linear"),
    "laplacian": kernel_of("laplacian", gamma=0.5),
    "function": kernel_of(quadratic),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("intercept", [False, True])
def test_intervals_contain_the_margin_of_a_conic_solver(seed, kernel, intercept):
    """Which takes rows L of K = L L' for features."""
    Z, labels = random_set(seed)
    problem = largest(KERNELS[kernel], intercept, Z, labels)
    K = problem.X.gram.whole
    values, V = np.linalg.eigh(K)
    kept = values > 1e-12 * values[-1]
    best = best_margin(V[:, kept] * np.sqrt(values[kept]), labels, 2.0, intercept)
    scale = float(np.sqrt(values[-1]))
    result = fl.solve(problem, tol=1e-6, warn=False)
    assert -result.certificate.primal <= max(best, 0.0) + 1e-6 * scale
    assert -result.certificate.dual >= best - 1e-6 * scale
    if best > 1e-3 * scale:
        assert result.status == "certified"


@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_hold_in_rational_arithmetic(intercept):
    """k(x, x') = (x.x' + 1)^2 of numbers that are rational: the margin and the bound are known exactly."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        n, d = 9, 3
        Z = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 3, size=(n, d))
        labels = np.arange(n) % 2
        problem = largest(Polynomial(1.0, 2, 1.0), intercept, Z, labels)
        rows = [[Fraction(x) for x in row] for row in Z]
        K = [[(1 + sum(s * t for s, t in zip(a, c, strict=True))) ** 2 for c in rows] for a in rows]
        beta, b = rng.normal(size=n), float(rng.normal()) * intercept
        exact = [Fraction(x) for x in beta]
        f = [sum(k * c for k, c in zip(row, exact, strict=True)) for row in K]
        signs = [1 if code else -1 for code in labels]
        least = min(sign * (score + Fraction(b)) for sign, score in zip(signs, f, strict=True))
        length = sum(c * score for c, score in zip(exact, f, strict=True))
        lower = Fraction(margin_of(problem, Model(beta, np.array([b]))).lower)
        assert lower * abs(lower) * length <= least * abs(least)
        if not intercept:
            q = rng.exponential(size=n) * 10.0 ** rng.integers(-6, 6, size=n)
            signed = [sign * Fraction(t) for sign, t in zip(signs, q, strict=True)]
            square = sum(s * t * K[i][j] for i, s in enumerate(signed) for j, t in enumerate(signed))
            upper = Fraction(exceeded_by_none(problem, q))
            assert (upper * sum(Fraction(t) for t in q)) ** 2 >= square


@pytest.mark.parametrize("cache_size", [1e-3, 0.02, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_little_memory_gives_the_same_margin(cache_size, intercept):
    best = fl.solve(largest(RBF(2.0), intercept), tol=1e-6)
    found = fl.solve(largest(RBF(2.0), intercept, cache_size=cache_size), tol=1e-4)
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-4)


def test_the_interval_is_as_narrow_as_rounding_allows():
    result = fl.solve(largest(RBF(2.0)), tol=1e-9)
    assert result.status == "certified"
    assert result.solver == "kernel_growing"


def test_more_samples_than_are_looked_at_at_first():
    Z, labels = make_moons(3000, noise=0.12, random_state=1)
    found = fl.solve(largest(RBF(10.0), True, Z, labels.astype(np.int64)), tol=1e-6)
    assert found.status == "certified"
    theirs = SVC(C=1e10, gamma=10.0, tol=1e-6).fit(Z, labels)
    a = theirs.dual_coef_.ravel()
    length = np.sqrt(a @ rbf_kernel(theirs.support_vectors_, gamma=10.0) @ a)
    assert -found.certificate.primal == pytest.approx(1.0 / length, rel=1e-4)


# Anybody's classifier -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=1e6),
        SVC(C=10.0, kernel="poly", coef0=1.0),
        SVC(C=1e3, kernel=quadratic),
        NuSVC(nu=0.01),
        fl.KernelClassifier(lam=1e-7),
        fl.KernelClassifier("logistic", lam=1e-6, fit_intercept=False),
        fl.MaxMarginClassifier(kernel="rbf"),
        fl.MaxMarginClassifier(kernel="laplacian", fit_intercept=False),
        fl.MaxMarginClassifier(kernel="poly", coef0=1.0, cache_size=0.1),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "sparse"])
def test_classifiers_with_a_kernel_have_an_interval(model, storage):
    if storage is sp.csr_array and callable(getattr(model, "kernel", None)):
        pytest.skip("scikit-learn takes no sparse data with a function")
    Z = storage(X)
    fitted = model.fit(Z, y)
    found = fl.margin_interval(fitted, Z, y)
    least = float(np.min((2.0 * y - 1.0) * fitted.decision_function(Z)))
    if least > 0.0:
        assert 0.0 < found.lower <= found.best <= found.upper
    else:
        assert found.lower < 0.0
    assert found.misclassified == np.count_nonzero(fitted.predict(Z) != y)
    assert found.kind == "function of the kernel"
    assert "function of the kernel" in str(found)


def test_the_margin_is_that_of_the_decision_function():
    model = SVC(C=1e6).fit(X, y)
    a = model.dual_coef_.ravel()
    length = np.sqrt(a @ rbf_kernel(model.support_vectors_, gamma=model._gamma) @ a)
    found = fl.margin_interval(model, X, y)
    assert found.lower == pytest.approx(np.min((2.0 * y - 1.0) * model.decision_function(X)) / length, rel=1e-9)
    # its own coefficients prove nearly as much
    low = fl.margin_interval(model, X, y, effort="low")
    assert low.how == "the model's coefficients"
    assert found.best <= low.upper <= 1.01 * found.upper


def test_a_given_matrix_is_a_kernel():
    K = rbf_kernel(X, gamma=2.0)
    model = fl.MaxMarginClassifier(kernel="precomputed", tol=1e-6).fit(K, y)
    plain = fl.MaxMarginClassifier(kernel="rbf", gamma=2.0, tol=1e-6).fit(X, y)
    assert model.margin_interval_.best == pytest.approx(plain.margin_interval_.best, rel=1e-6)
    assert list(model.predict(K)) == list(plain.predict(X)) == list(y)
    theirs = SVC(C=1e6, kernel="precomputed").fit(K, y)
    assert fl.margin_interval(theirs, K, y).upper == pytest.approx(plain.margin_interval_.upper, rel=2e-3)


def test_what_is_taken_for_granted_is_said(monkeypatch):
    gram = Gram(rbf_kernel(X), Precomputed())
    gram.is_verified = False
    judge = MarginJudge(KernelMargin.of(gram, codes, True))
    judge.try_multipliers(np.ones(len(y)), "equal multipliers")
    assert judge.interval(0.0, 0, 1e-3).how.endswith("symmetric and positive semidefinite")


def test_samples_outside_the_support_may_be_dropped():
    found = fl.margin_interval(fl.MaxMarginClassifier(kernel="rbf", gamma=2.0).fit(X, y), X, y, effort="high")
    alone = fl.MaxMarginClassifier(kernel="rbf", gamma=2.0, tol=1e-9).fit(X[found.support], y[found.support])
    assert len(found.support) < 40
    assert alone.margin_interval_.best == pytest.approx(found.best, rel=1e-8)


# The estimator --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_estimator_has_least_scores_of_one(fit_intercept):
    model = fl.MaxMarginClassifier(kernel="rbf", gamma=2.0, tol=1e-6, fit_intercept=fit_intercept).fit(X, y)
    scores = (2.0 * y - 1.0) * model.decision_function(X)
    assert scores.min() == pytest.approx(1.0, rel=1e-9)
    assert model.separable_ == "proven"
    assert model.margin_interval_.ok
    assert model.dual_coef_.shape == (1, len(model.support_))
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    K = rbf_kernel(model.support_vectors_, gamma=2.0)
    length = float(np.sqrt(model.dual_coef_[0] @ K @ model.dual_coef_[0]))
    assert model.margin_interval_.lower == pytest.approx(1.0 / length, rel=1e-9)


def test_the_linear_kernel_is_the_linear_classifier():
    linear, plain = fl.MaxMarginClassifier(kernel="linear"), fl.MaxMarginClassifier()
    Z, labels = X + 3.0 * y[:, None], y
    np.testing.assert_allclose(linear.fit(Z, labels).coef_, plain.fit(Z, labels).coef_)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_equal_samples_with_different_labels_are_a_proof(storage):
    Z = np.vstack([X, X[:3]])
    labels = np.append(y, 1 - y[:3])
    with pytest.warns(fl.InseparableWarning, match="Proven: no function of the kernel separates"):
        model = fl.MaxMarginClassifier(kernel="poly", degree=2, coef0=1.0).fit(storage(Z), labels)
    interval = model.margin_interval_
    assert model.separable_ == "refuted"
    assert interval.separable is False
    assert interval.upper == 0.0
    assert np.count_nonzero(interval.multipliers) == 2
    assert interval.contradiction.excess <= np.sqrt(2.0 / len(labels))
    assert model.score(Z, labels) > 0.7
    with pytest.raises(fl.Infeasible, match="two equal samples"):
        fl.MaxMarginClassifier(kernel="rbf", on_inseparable="raise").fit(storage(Z), labels)
    assert fl.margin_interval(model, storage(Z), labels).separable is False


def test_nothing_is_proven_of_equal_samples_of_a_function():
    Z, labels = np.vstack([X, X[:3]]), np.append(y, 1 - y[:3])
    with pytest.warns(fl.InseparableWarning, match="is not known"):
        model = fl.MaxMarginClassifier(kernel=lambda A, B: A @ B.T).fit(Z, labels)
    assert model.separable_ == "unknown"


@pytest.mark.parametrize("n", [60, 400])
def test_a_kernel_of_small_rank_ends_soon(n):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(n, 4)), rng.integers(2, size=n).astype(np.int64)
    problem = KernelMargin.of(Gram(Z, Polynomial(degree=2, coef0=1.0)), labels, True)
    result = fl.solve(problem, tol=1e-3, warn=False)
    assert result.status == "stalled"
    assert result.n_iter <= 2
    assert result.certificate.primal == 0.0
    assert -result.certificate.dual < 1e-5


def test_functions_that_depend_on_each_other_have_exact_margins():
    reached = 0
    for seed in range(60):
        Z, codes = random_classes(np.random.default_rng([77, seed]), True, 2)
        result = fl.solve(KernelMargin.of(Gram(Z, Linear()), codes.astype(np.int64), True), tol=1e-3, warn=False)
        linear = fl.margin_interval((np.zeros(Z.shape[1]), 0.0), Z, codes)
        assert (result.status == "certified") == bool(linear.separable)
        reached += result.status == "certified"
    assert reached > 40


def test_the_search_ends_with_its_time(clock):
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(300, 3)), rng.integers(2, size=300)
    with pytest.warns(UserWarning, match="max_seconds|not reached"):
        fl.MaxMarginClassifier(kernel="poly", coef0=1.0, max_seconds=0.02).fit(Z, labels)
    assert clock.elapsed < 1.0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (fl.MaxMarginClassifier(kernel="rbf", p=1.0), "2-norm only"),
        (fl.MaxMarginClassifier(kernel="sigmoid"), "kernel must be one of"),
        (fl.MaxMarginClassifier(kernel="rbf", gamma=-1.0), "gamma must be"),
        (fl.MaxMarginClassifier(kernel="laplacian", degree=2), "no parameter degree"),
    ],
)
def test_parameters_are_checked(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_several_classes_have_one_margin_in_the_kernels_space(seed, intercept):
    Z, labels = random_classes(np.random.default_rng([77, seed]), True, 3)
    labels = labels.astype(np.int64)
    found = fl.solve(KernelMargin.of(Gram(Z, Linear()), labels, intercept, 3), tol=1e-6, warn=False)
    linear = fl.solve(LargestMargin(fl.Design(Z), labels, 3, intercept), tol=1e-8, warn=False)
    assert -found.certificate.dual >= -linear.certificate.primal
    assert found.certificate.primal >= linear.certificate.dual
    if linear.certificate.primal < 0.0:
        assert found.certificate.primal == pytest.approx(linear.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("kernel", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_classes_are_judged_by_their_own_functions(kernel, fit_intercept):
    Z, labels = load_iris(return_X_y=True)
    model = fl.MaxMarginClassifier(fit_intercept=fit_intercept, **kernel).fit(Z, labels)
    interval = model.margin_interval_
    assert model.separable_ == "proven"
    assert interval.ok
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.score(Z, labels) == 1.0
    scores = model.decision_function(Z)
    own = np.take_along_axis(scores, labels[:, None], axis=1)
    least = np.min(np.delete(own - scores, 0, axis=1)[labels == 0])
    assert least >= 1.0 - 1e-6
    again = fl.margin_interval(model, Z, labels, multipliers=interval.multipliers, effort="low")
    assert again.lower == pytest.approx(interval.lower, rel=1e-6)
    assert again.upper == pytest.approx(interval.upper, rel=1e-9)


def test_several_classes_that_no_functions_separate_have_a_model_all_the_same():
    Z, labels = load_iris(return_X_y=True)
    with pytest.warns(fl.InseparableWarning, match="No separating"):
        model = fl.MaxMarginClassifier(kernel="poly", degree=1, coef0=1.0).fit(Z, labels)
    assert model.separable_ == "unknown"
    assert model.score(Z, labels) > 0.8


def test_the_data_of_the_fit_are_needed():
    fitted = fl.MaxMarginClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="pass the data of the"):
        fl.margin_interval(fitted, X[:20], y[:20])


def test_machines_that_vote_among_pairs_have_no_margin():
    Z, labels = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="votes among pairs"):
        fl.margin_interval(SVC().fit(Z, labels), Z, labels)


def test_the_ball_of_functions():
    K = polynomial_kernel(X, degree=2, gamma=1.0)
    gram = Gram(X, Polynomial(1.0, 2, 1.0))
    ball, beta = FunctionBall(gram), np.random.default_rng(0).normal(size=200)
    below, above = ball.lengths(beta)
    assert below <= np.sqrt(beta @ K @ beta) * (1 + 1e-9)
    assert above >= np.sqrt(beta @ K @ beta) * (1 - 1e-9)
    assert ball.value(0.5 * beta / above) == 0.0
    assert ball.value(3.0 * beta / above) == np.inf
    assert ball.value(ball.prox(beta, 1.0)) == 0.0
    assert ball.conjugate(beta) <= ball.conjugate_upper(beta, np.zeros(200)) <= 1.001 * ball.conjugate(beta)
