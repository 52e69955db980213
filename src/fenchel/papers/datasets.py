"""Data for the experiments: labels -1 and +1, rows of norm at most 1, a fifth of the samples for testing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fenchel.data import Design, encode_labels
from fenchel.data.convert import as_vector
from fenchel.data.typing import Array, MatrixLike, Vector, VectorLike

Features: TypeAlias = Array | sparse.csr_array
#: Data sets by name, one as (X, y), or None for the generated ones.
Data: TypeAlias = Mapping[str, tuple[MatrixLike, VectorLike]] | tuple[MatrixLike, VectorLike] | None

#: The number of generated data sets.
GENERATED = 3


@dataclass(frozen=True)
class Dataset:
    """A training set and a test set."""

    name: str
    X: Features
    y: Vector
    X_test: Features
    y_test: Vector

    @property
    def n(self) -> int:
        """The number of training samples."""
        return int(self.X.shape[0])

    @property
    def has_labels(self) -> bool:
        """Whether y is -1 and +1, and not numbers."""
        return bool(np.all(np.abs(self.y) == 1.0))


def split(
    name: str, X: MatrixLike, y: VectorLike, seed: int = 0, held_out: float = 0.2, regression: bool = False
) -> Dataset:
    """Shuffle, hold out a fraction of the samples for testing, and divide X by its largest row norm. y has two labels;
    the larger becomes +1. With `regression` it may have other numbers of values; they become numbers with mean 0 and
    variance 1.
    """
    classes, codes = encode_labels(y)
    if len(classes) != 2 and not regression:
        raise ValueError(f"{name}: the experiments need two classes, got {len(classes)}")
    rows = sparse.csr_array(X) if sparse.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    order = np.random.default_rng(seed).permutation(rows.shape[0])
    longest = float(Design(rows).row_norms().max())
    if longest == 0.0:
        raise ValueError(f"{name}: every row is zero")
    rows = rows * (1.0 / longest)
    count = max(1, int(held_out * len(order)))
    test, train = order[:count], order[count:]
    if len(classes) == 2:
        signs = np.where(codes == 1, 1.0, -1.0)
    else:
        targets = as_vector(y, rows.shape[0], f"{name}: y")
        signs = (targets - targets[train].mean()) / max(float(targets[train].std()), np.finfo(float).tiny)
    if len(np.unique(signs[train])) < 2:
        raise ValueError(f"{name}: {rows.shape[0]} samples are too few to hold out a fifth of them")
    return Dataset(name, rows[train], signs[train], rows[test], signs[test])


def datasets(data: Data, seed: int, regression: bool = False) -> Sequence[Dataset]:
    """The data sets by name, the one given as (X, y), or the generated ones."""
    if data is None:
        data = generated(seed)
    named = data if isinstance(data, Mapping) else {"data": data}
    return [split(name, X, y, seed, regression=regression) for name, (X, y) in named.items()]


def generated(seed: int = 0, n: int = 10_000) -> dict[str, tuple[Features, Vector]]:
    """Stand-ins for the paper's sets: texts with many words (astro-ph) and with fewer (CCAT), forest cover (cov1).

    The texts have about 80 different words per document, of 40000 and of 5000, on one of two topics. Forest cover has
    its 54 columns: ten nonnegative measurements and two one-hot codes of 4 and 40 values, so that 12 entries of a row
    are nonzero (22 %). In all three the rows point in similar directions, since no entry is negative, and the classes
    are far enough from each other that up to lam = 800/n some margins are above 1: w is not just the mean of y_i x_i,
    which is the hinge's optimum where no margin is.
    """
    rng = np.random.default_rng(seed)
    return {
        "texts, many words": _texts(rng, n, 4 * n, 0.03),
        "texts, fewer words": _texts(rng, n, n // 2, 0.1),
        "forest cover": _forest(rng, n),
    }


def _texts(rng: np.random.Generator, n: int, d: int, wrong: float) -> tuple[Features, Vector]:
    """Documents on both topics, with shares of Beta(1/2, 1/2); the label is the larger one, some of them wrong."""
    counts, topic = _documents(rng, n, d, 2.0, 100.0, mixed=True)
    counts.data = 1.0 + np.log(counts.data)
    X = sparse.csr_array(sparse.diags_array(1.0 / Design(counts).row_norms()) @ counts)
    return X, np.where(topic ^ (rng.random(n) < wrong), 1.0, -1.0)


def _documents(
    rng: np.random.Generator, count: int, d: int, tilt: float, words: float, mixed: bool = False
) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
    """Counts of words in documents of Poisson length, and which of two topics each is on.

    Words have frequencies 1 / (rank + 2), times exp(+-tilt g_j) in the two topics, g_j standard normal.
    """
    frequency, tilts = 1.0 / np.arange(3.0, d + 3.0), tilt * rng.standard_normal(d)
    share = rng.beta(0.5, 0.5, count) if mixed else (rng.random(count) < 0.5).astype(np.float64)
    topic, lengths = share > 0.5, rng.poisson(words, count)
    draws, positive = rng.random(lengths.sum()), np.repeat(topic, lengths)
    if mixed:
        positive = rng.random(lengths.sum()) < np.repeat(share, lengths)
    found = np.empty(len(draws), dtype=np.int32)
    for sign, part in ((1.0, positive), (-1.0, ~positive)):
        upto = np.cumsum(frequency * np.exp(sign * tilts))
        found[part] = np.searchsorted(upto, draws[part] * upto[-1], side="right").clip(max=d - 1)
    starts = np.append(0, np.cumsum(lengths)).astype(np.int32)
    counts = sparse.csr_array((np.ones(len(found)), found, starts), shape=(count, d))
    counts.sum_duplicates()
    return counts, topic


def _forest(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float64], Vector]:
    """Classes two standard deviations apart in one of three latent directions; one label in ten is wrong."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    latent = rng.standard_normal((n, 3))
    latent[:, 0] += y
    mixing, noise = rng.standard_normal((3, 10)), rng.standard_normal((n, 10))
    mixing[0] = 2.0 * np.sign(mixing[0])
    measured = 1.0 / (1.0 + np.exp(-(latent @ mixing + 0.5 * noise)))
    area, soil = (np.argmax(latent @ rng.standard_normal((3, k)) + rng.gumbel(size=(n, k)), axis=1) for k in (4, 40))
    X = np.hstack([measured, np.eye(4)[area], np.eye(40)[soil]])
    return X, np.where(rng.random(n) < 0.1, -y, y)


@lru_cache(maxsize=1)
def topics(n: int, d: int = 47_000, seed: int = 0, tilt: float = 0.25, wrong: float = 0.03) -> Dataset:
    """A stand-in for CCAT: n training documents on one of two topics, and a quarter of that for testing.

    Rows are tf-idf of about 100 different words (`_documents`). A part `wrong` of the labels is turned, so that no
    model is right more often than 1 - wrong: linear models get to 95 %, as on CCAT. The last set is
    kept for the next figure.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    rng, count = np.random.default_rng(seed), n + max(n // 4, 1)
    counts, topic = _documents(rng, count, d, tilt, 120.0)
    X = sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    y = np.where(topic ^ (rng.random(count) < wrong), 1.0, -1.0)
    return Dataset("generated texts", X[:n], y[:n], X[n:], y[n:])


@dataclass(frozen=True)
class Gaussians:
    """Two classes with means -mu and +mu and the same covariance S, as likely as each other.

    The best separating plane goes through zero with the normal S^-1 mu (Fisher's discriminant). S has eigenvalues from
    1 down to 1 / spread in random directions; |S^(-1/2) mu| = distance, so that the best plane is wrong for a part
    Phi(-distance) of the samples.
    """

    d: int
    distance: float = 1.5  # wrong for 6.7 %
    spread: float = 1.5
    seed: int = 0

    def parameters(self) -> tuple[Vector, NDArray[np.float64]]:
        """mu, and a root A of the covariance S = A A'."""
        rng = np.random.default_rng(self.seed)
        directions = np.linalg.qr(rng.standard_normal((self.d, self.d)))[0]
        root = directions * np.sqrt(np.geomspace(1.0, 1.0 / self.spread, self.d))
        mean = rng.standard_normal(self.d)
        return mean * (self.distance / float(np.linalg.norm(np.linalg.solve(root, mean)))), root

    def best(self) -> Vector:
        """w* of length 1: the direction of S^-1 mu."""
        mean, root = self.parameters()
        w = np.linalg.solve(root @ root.T, mean)
        return np.asarray(w / np.linalg.norm(w))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], Vector]:
        """Samples and their labels."""
        mean, root = self.parameters()
        y = rng.choice([-1.0, 1.0], n)
        return y[:, None] * mean + rng.standard_normal((n, self.d)) @ root.T, y
