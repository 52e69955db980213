"""FusedLasso, TotalVariationDenoiser and denoise."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import fenchel as fl
from fenchel import FusedLasso, Ridge, TotalVariationDenoiser


def regression(seed=0, n=120, d=20, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    return X, X @ np.repeat(rng.normal(size=d // 5), 5) + 3.0 + noise * rng.normal(size=n)


def images(seed=0, count=3, shape=(12, 15)):
    rng = np.random.default_rng(seed)
    clean = np.zeros((count, *shape))
    for image in clean:
        i, j = rng.integers(1, min(shape) // 2, size=2)
        image[i : 2 * i, j : 3 * j] = 1.0
    return clean, clean + 0.1 * rng.normal(size=clean.shape)


# FusedLasso ---------------------------------------------------------------------------------------------------------


def test_the_objective_is_the_one_that_is_documented():
    cp = pytest.importorskip("cvxpy")
    X, y = regression()
    s = np.random.default_rng(1).random(len(y))
    w, b = cp.Variable(20), cp.Variable()
    loss = s @ cp.square(X @ w + b - y) / (2 * s.sum())
    best = cp.Problem(cp.Minimize(loss + 0.1 * cp.norm1(cp.diff(w)))).solve(solver="CLARABEL")
    model = FusedLasso(alpha=0.1, tol=1e-7).fit(X, y, sample_weight=s)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_, w.value, atol=1e-3)
    assert model.intercept_ == pytest.approx(float(b.value), abs=1e-2)


def test_proven_differences_are_zero_in_the_exact_solution():
    proven = 0
    for seed in range(10):
        X, y = regression(seed)
        loose = FusedLasso(alpha=0.1, tol=(1e-3, 1e-5)[seed % 2]).fit(X, y)
        tight = FusedLasso(alpha=0.1, tol=1e-9).fit(X, y)
        assert loose.certified_zeros_.shape == (19,)
        assert np.all(np.abs(np.diff(tight.coef_))[loose.certified_zeros_] < 1e-5)
        assert tight.certified_zeros_.sum() >= loose.certified_zeros_.sum()
        proven += tight.certified_zeros_.sum()
    assert proven > 50


def test_an_operator_of_ones_own():
    X, y = regression(d=20)
    D = fl.penalties.FusedL1.of_image(1.0, (4, 5)).operator
    for given in (D, D.toarray()):
        model = FusedLasso(alpha=0.1, D=given).fit(X, y)
        assert model.certificate_.ok
        assert model.certified_zeros_.shape == (31,)
    assert fl.certify(model, X, y).relative_gap <= 2e-4


@pytest.mark.parametrize("storage", [np.asfortranarray, sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32)])
def test_any_storage(storage):
    X, y = regression()
    expected = FusedLasso(alpha=0.1, tol=1e-8).fit(X, y)
    model = FusedLasso(alpha=0.1, tol=1e-8).fit(storage(X), y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)


@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "D",
    [None, fl.penalties.FusedL1.of_image(1.0, (5, 4)).operator, np.diff(np.eye(20), 2, axis=0)],
    ids=["line", "image", "trend"],
)
def test_whole_weights_are_repeated_rows_whatever_the_order_of_sums(D, storage, alpha):
    rng = np.random.default_rng(0)
    X, y, count = rng.random((15, 20)), rng.normal(size=15), rng.integers(0, 5, size=15)
    order = rng.permutation(15)
    weighted = FusedLasso(alpha, D=D).fit(storage(X[order]), y[order], sample_weight=count[order])
    repeated = FusedLasso(alpha, D=D).fit(storage(X.repeat(count, axis=0)), y.repeat(count))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0.0, atol=1e-9)


def test_the_finish_on_a_face_is_the_optimum():
    X, y = regression(n=60)
    for alpha in (0.3, 0.03):
        problem = fl.Problem(X, y, penalty=fl.penalties.FusedL1(alpha), intercept=True)
        coarse = fl.solve(problem, solver="fista", tol=1e-3, check_every=5)
        fine = fl.solve(problem, solver="fista", tol=1e-9, check_every=1000, warn=False)
        np.testing.assert_allclose(coarse.w, fine.w, rtol=0.0, atol=1e-9)


def test_parameters_can_be_searched_and_cloned():
    X, y = regression()
    search = GridSearchCV(FusedLasso(), {"alpha": [1e-3, 1e-1, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_["alpha"] < 10.0
    D = sp.csr_array(np.diff(np.eye(20), axis=0))
    assert clone(FusedLasso(D=D)).D.shape == (19, 20)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FusedLasso(alpha=-1.0), "alpha"),
        (FusedLasso(D=np.eye(3)), "columns"),
        (FusedLasso(D=np.ones(20)), "matrix"),
        (FusedLasso(D=np.full((2, 20), np.nan)), "not finite"),
    ],
)
def test_bad_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*regression())


def test_one_feature_has_no_differences():
    with pytest.raises(ValueError, match="minimum of 2"):
        FusedLasso().fit(np.ones((5, 1)), np.arange(5.0))


# denoise ------------------------------------------------------------------------------------------------------------


def test_the_weight_is_that_of_the_sum_form():
    cp = pytest.importorskip("cvxpy")
    _, noisy = images(count=1)
    w = cp.Variable(noisy[0].shape)
    value = cp.sum_squares(w - noisy[0]) / 2 + 0.15 * (
        cp.sum(cp.abs(cp.diff(w, axis=0))) + cp.sum(cp.abs(cp.diff(w, axis=1)))
    )
    cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL")
    found = fl.denoise(noisy[0], 0.15, tol=1e-8)
    np.testing.assert_allclose(found.values, w.value, atol=1e-3)
    assert found.certificate.primal * noisy[0].size == pytest.approx(value.value, rel=1e-6)


def test_denoising_removes_noise():
    clean, noisy = images(count=1, shape=(40, 50))
    found = fl.denoise(noisy[0], 0.15)
    assert np.mean((found.values - clean[0]) ** 2) < 0.1 * np.mean((noisy[0] - clean[0]) ** 2)
    assert found.certificate.ok


def test_a_trend_of_order_two_is_a_broken_line():
    rng = np.random.default_rng(0)
    truth = np.abs(np.linspace(-1, 1, 300))
    found = fl.denoise(truth + 0.05 * rng.normal(size=300), 5.0, order=2, tol=1e-9)
    assert found.solver == "trend"
    assert np.abs(found.values - truth).max() < 0.1
    assert (np.abs(np.diff(found.values, 2)) > 1e-6).sum() < 20


def test_a_single_row_or_column_is_a_line():
    y = np.random.default_rng(0).normal(size=30)
    line = fl.denoise(y, 0.5).values
    for shape in ((1, 30), (30, 1)):
        found = fl.denoise(y.reshape(shape), 0.5)
        assert found.values.shape == shape
        assert np.array_equal(found.values.ravel(), line)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], 1.0), ValueError, "at least two"),
        ((np.ones((4, 4, 3)), 1.0), ValueError, "channels"),
        ((np.ones(4), 0.0), ValueError, "weight"),
        ((np.ones(4), "a"), TypeError, "weight"),
        (([1.0, np.nan], 1.0), ValueError, "finite"),
        ((["a", "b"], 1.0), ValueError, "not a number"),
        ((np.ma.masked_array([1.0, 2.0], [True, False]), 1.0), ValueError, "masked"),
        ((np.ones((4, 4)), 1.0, 2), ValueError, "order"),
        ((np.ones(4), 1.0, 4), ValueError, "order 4"),
        ((np.ones(4), 1.0, 1.5), ValueError, "whole"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    y, weight, *order = arguments
    with pytest.raises(error, match=message):
        fl.denoise(y, weight, **({"order": order[0]} if order else {}))


def test_falling_short_is_said():
    _, noisy = images(count=1, shape=(40, 50))
    with pytest.warns(fl.NotCertifiedWarning, match="did not reach"):
        found = fl.denoise(noisy[0], 0.15, tol=1e-10, max_iter=3)
    assert not found.certificate.ok


# TotalVariationDenoiser ---------------------------------------------------------------------------------------------


def test_rows_are_signals():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(5, 4)), 25, axis=1) + 0.1 * rng.normal(size=(5, 100))
    model = TotalVariationDenoiser(weight=0.4)
    found = model.fit_transform(X)
    for row, clean in zip(X, found, strict=True):
        assert np.array_equal(fl.denoise(row, 0.4).values, clean)
    assert len(model.certificate_.parts) == 5
    assert model.certificate_.ok
    assert np.array_equal(model.transform(X), found)
    assert np.array_equal(clone(model).fit(X).transform(X[:2]), found[:2])


def test_rows_are_images_of_a_shape():
    _, noisy = images()
    found = TotalVariationDenoiser(weight=0.1, shape=(12, 15)).fit_transform(noisy.reshape(3, -1))
    for row, image in zip(found, noisy, strict=True):
        np.testing.assert_array_equal(row.reshape(12, 15), fl.denoise(image, 0.1).values)


def test_it_stands_in_a_pipeline():
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.normal(size=(60, 4)), 10, axis=1)
    X, y = truth + 0.3 * rng.normal(size=truth.shape), truth[:, 0] + truth[:, 20]
    model = make_pipeline(TotalVariationDenoiser(weight=0.5), Ridge())
    assert 1.0 - model.fit(X[:40], y[:40]).score(X[40:], y[40:]) < 0.2
    assert list(model[:1].get_feature_names_out([f"t{k}" for k in range(40)]))[:2] == ["t0", "t1"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TotalVariationDenoiser(weight=-1.0), "weight"),
        (TotalVariationDenoiser(shape=(3, 4)), "12 entries, but X has 10 columns"),
        (TotalVariationDenoiser(order=10), "order 10"),
        (TotalVariationDenoiser(order=2, shape=(2, 5)), "order=2 would have no effect"),
    ],
)
def test_bad_parameters_of_the_denoiser_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.ones((2, 10)))
