"""Example data: the sets packaged with scikit-learn, and generated regression and classification problems."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike
from scipy import optimize, signal, sparse

from fenchel.data.typing import Array, Dtype, Vector

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")


@dataclass(frozen=True)
class Sample:
    """A data set.

    Attributes
    ----------
    X : ndarray or csr_array of shape (samples, features)
    y : ndarray of shape (samples,)
    feature_names : names of the columns, or None
    description : one line
    w : the weights that generated y, or None if unknown
    """

    X: Array | sparse.csr_array
    y: Array
    feature_names: tuple[str, ...] | None
    description: str
    w: Vector | None = None


def load(name: str, *, standardised: bool = False) -> Sample:
    """Load a data set that is packaged with scikit-learn.

    Parameters
    ----------
    name : {'breast_cancer', 'diabetes', 'digits', 'iris', 'wine'}
    standardised : bool
        Whether to give every feature mean 0 and variance 1; a constant feature becomes 0.
    """
    if name not in BUNDLED:
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(BUNDLED)}")
    from sklearn import datasets, preprocessing

    bunch = getattr(datasets, f"load_{name}")()
    X = np.ascontiguousarray(bunch.data, dtype=np.float64)
    if standardised:
        X = preprocessing.StandardScaler().fit_transform(X)
    title = next(line for line in bunch.DESCR.splitlines() if line.strip() and not line.startswith(".."))
    return Sample(X, bunch.target, tuple(map(str, bunch.feature_names)), title.strip())


def make_regression(
    n: int,
    d: int,
    *,
    informative: int | None = None,
    rho: float = 0.0,
    density: float | None = None,
    noise: float = 0.1,
    dtype: DTypeLike = np.float64,
    random_state: int | np.random.Generator | None = None,
) -> Sample:
    """Generate y = X w + noise, with X w of variance 1.

    A dense design has standard normal features with correlation rho^abs(j - k) between features j and k. A
    sparse one resembles text: see `density`.

    Parameters
    ----------
    n, d : number of samples and of features
    informative : number of weights that are not 0, by default at most 10
    rho : correlation of neighbouring features, in (-1, 1), of a dense design
    density : expected fraction of entries that are not 0, in (0, 1), of a sparse design; None for a dense one
        Columns are words with frequencies by Zipf's law, in random order; rows are documents; entries are
        tf-idf, and rows have norm 1 (or 0: a document may be empty).
    noise : standard deviation of the noise
    dtype : of X
    random_state : seed or generator; the same seed gives the same data

    Returns
    -------
    Sample, with the true weights in `w`
    """
    rng, kind = np.random.default_rng(random_state), np.dtype(dtype)
    _check(n, d, informative, rho, density, kind)
    if density is None:
        X: Array | sparse.csr_array = _correlated(rng, n, d, rho, kind)
        description = f"{n} x {d}, correlation {rho}"
    else:
        X = _text_like(rng, n, d, density, kind)
        description = f"{n} x {d}, text-like with density {density}"
    w = _weights(rng, d, min(d, 10) if informative is None else informative)
    z = np.asarray(X @ w, dtype=np.float64)
    scale = float(z.std()) or 1.0
    y = z / scale + noise * rng.standard_normal(n)
    return Sample(X, y, None, f"regression, {description}", w / scale)


def make_classification(
    n: int,
    d: int,
    *,
    informative: int | None = None,
    rho: float = 0.0,
    density: float | None = None,
    noise: float = 0.1,
    dtype: DTypeLike = np.float64,
    random_state: int | np.random.Generator | None = None,
) -> Sample:
    """Generate y = sign(X w + noise), -1 or +1, with X w of variance 1; separable if the noise is 0.

    The parameters are those of `make_regression`. When n is small, all labels may be the same.
    """
    sample = make_regression(
        n, d, informative=informative, rho=rho, density=density, noise=noise, dtype=dtype, random_state=random_state
    )
    description = sample.description.replace("regression", "classification", 1)
    return replace(sample, y=np.where(sample.y >= 0, 1.0, -1.0), description=description)


def _check(n: int, d: int, informative: int | None, rho: float, density: float | None, dtype: Dtype) -> None:
    if n < 1 or d < 1:
        raise ValueError(f"n={n} and d={d} should be at least 1")
    if informative is not None and not 1 <= informative <= d:
        raise ValueError(f"informative={informative} should lie in 1 .. d={d}")
    if not -1 < rho < 1:
        raise ValueError(f"rho={rho} should lie in (-1, 1)")
    if density is not None and not 0 < density < 1:
        raise ValueError(f"density={density} should lie in (0, 1)")
    if density is not None and rho != 0:
        raise ValueError("rho applies to a dense design, not to one with a density")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype {dtype} is neither float32 nor float64")


def _weights(rng: np.random.Generator, d: int, informative: int) -> Vector:
    w = np.zeros(d)
    w[rng.choice(d, informative, replace=False)] = rng.uniform(0.5, 1.5, informative) * rng.choice([-1, 1], informative)
    return w


def _correlated(rng: np.random.Generator, n: int, d: int, rho: float, dtype: Dtype) -> Array:
    """Rows x_j = rho x_{j-1} + sqrt(1 - rho^2) e_j, started at the stationary distribution."""
    X = rng.standard_normal((n, d), dtype=dtype.type)
    if rho == 0:
        return X
    innovation = np.sqrt(1 - rho**2)
    X[:, 0] /= innovation
    filtered: Array = signal.lfilter([innovation], [1.0, -rho], X, axis=1)
    return filtered.astype(dtype, copy=False)


def _text_like(rng: np.random.Generator, n: int, d: int, density: float, dtype: Dtype) -> sparse.csr_array:
    """Documents of Poisson length, words drawn by Zipf's law, weighted by tf-idf.

    A document of expected length L has word j with probability 1 - exp(-L p_j); the density determines L.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    frequency = rng.permutation(1 / np.arange(1.0, d + 1))
    frequency /= frequency.sum()

    def excess(log_length: float) -> float:
        return float(np.mean(-np.expm1(-np.exp(log_length) * frequency)) - density)

    length = np.exp(optimize.brentq(excess, -50, 50))
    lengths = rng.poisson(length, n)
    words = np.searchsorted(np.cumsum(frequency), rng.random(lengths.sum()), side="right").clip(max=d - 1)
    index = np.int32 if max(d, words.size) <= np.iinfo(np.int32).max else np.int64
    parts = (np.ones(words.size), words.astype(index), np.append(0, np.cumsum(lengths)).astype(index))
    counts = sparse.csr_array(parts, shape=(n, d))
    counts.sum_duplicates()
    return sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts), dtype=dtype)
