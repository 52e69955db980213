"""Sample data are what they say they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from fenchel.data.samples import BUNDLED, load, make_classification, make_regression

GENERATORS = (make_regression, make_classification)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_set_is_scikit_learns(name: str) -> None:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    sample = load(name)
    np.testing.assert_array_equal(sample.X, X)
    np.testing.assert_array_equal(sample.y, y)
    assert sample.feature_names is not None
    assert len(sample.feature_names) == X.shape[1]
    assert "dataset" in sample.description
    assert sample.w is None


@pytest.mark.parametrize("name", BUNDLED)
def test_standardised_features_have_mean_0_and_variance_1_or_0(name: str) -> None:
    X = load(name, standardised=True).X
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    assert np.all(np.isclose(X.var(axis=0), 1) | (X.var(axis=0) == 0))


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown data set 'boston'; there are breast_cancer, diabetes"):
        load("boston")


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("options", [{}, {"rho": 0.5}, {"density": 0.1}, {"dtype": np.float32}])
def test_same_seed_gives_the_same_data(make: Any, options: Any) -> None:
    first, second, third = (make(30, 20, random_state=seed, **options) for seed in (1, 1, 2))
    assert np.array_equal(dense(first.X), dense(second.X))
    assert np.array_equal(first.y, second.y)
    assert not np.array_equal(dense(first.X), dense(third.X))


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [None, 0.05])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (200, 10), (10, 200)])
def test_shapes_and_dtypes_are_those_asked_for(make: Any, dtype: Any, density: Any, n: int, d: int) -> None:
    sample = make(n, d, density=density, dtype=dtype, random_state=0)
    assert sample.X.shape == (n, d)
    assert sample.X.dtype == dtype
    assert sample.y.shape == (n,)
    assert sample.w.shape == (d,)
    if density is not None:
        assert isinstance(sample.X, sparse.csr_array)
        assert sample.X.indices.dtype == sample.X.indptr.dtype == np.int32
    else:
        assert sample.X.flags.c_contiguous


def test_regression_without_noise_is_linear_with_unit_variance() -> None:
    sample = make_regression(500, 30, informative=4, rho=0.6, noise=0.0, random_state=0)
    assert sample.w is not None
    np.testing.assert_allclose(sample.X @ sample.w, sample.y, rtol=1e-12, atol=1e-12)
    assert sample.y.std() == pytest.approx(1)
    assert np.count_nonzero(sample.w) == 4


def test_noise_is_the_standard_deviation_of_the_residual() -> None:
    sample = make_regression(4000, 30, noise=0.3, random_state=0)
    assert np.std(sample.y - sample.X @ sample.w) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize("density", [None, 0.1])
def test_classification_without_noise_is_separated_by_the_true_weights(density: Any) -> None:
    sample = make_classification(500, 30, noise=0.0, density=density, random_state=0)
    assert np.all(sample.y * (sample.X @ sample.w) >= 0)
    assert set(sample.y) == {-1.0, 1.0}


@pytest.mark.parametrize("rho", [-0.8, 0.5, 0.9])
def test_features_correlate_by_their_distance(rho: float) -> None:
    X = make_regression(100_000, 5, rho=rho, random_state=0).X
    expected = rho ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_allclose(np.corrcoef(X.T), expected, atol=0.03)
    np.testing.assert_allclose(X.var(axis=0), 1, atol=0.05)


def test_sparse_design_looks_like_text() -> None:
    X: Any = make_regression(2000, 1000, density=0.02, random_state=0).X
    assert X.nnz / (2000 * 1000) == pytest.approx(0.02, rel=0.05)
    norms = np.sqrt((X * X).sum(axis=1))
    assert np.all(np.isclose(norms, 1) | (norms == 0))
    counts = np.sort(np.bincount(X.indices, minlength=1000))[::-1]
    assert counts[0] > 20 * counts[500]  # a few words are everywhere, most are rare
    assert X.has_canonical_format


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n=0 and d=5 should be at least 1"),
        ({"informative": 6}, "informative=6 should lie in 1 .. d=5"),
        ({"rho": 1.0}, r"rho=1.0 should lie in \(-1, 1\)"),
        ({"density": 1.5}, r"density=1.5 should lie in \(0, 1\)"),
        ({"density": 0.1, "rho": 0.5}, "rho applies to a dense design"),
        ({"dtype": np.int64}, "dtype int64 is neither float32 nor float64"),
    ],
)
@pytest.mark.parametrize("make", GENERATORS)
def test_impossible_requests_are_errors(make: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**({"n": 5, "d": 5} | options))


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X
