"""Two-class data to race on: bundled, generated, from a file, or from a folder of the well-known sets.

Labels are -1 and +1; numbers are float64; sparse data are CSR with sorted indices, dense data are in C order.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import fenchel as fl
from fenchel.data import encode_labels, samples


@dataclass(frozen=True)
class Data:
    """A name, a matrix, labels -1 and +1; the group of each column, numbered from 0, where columns have groups."""

    name: str
    X: Any
    y: np.ndarray
    groups: np.ndarray | None = None

    def __str__(self) -> str:
        n, d = self.X.shape
        kind = f"{self.X.nnz} entries" if sparse.issparse(self.X) else "dense"
        groups = "" if self.groups is None else f", {self.groups.max() + 1} groups"
        return f"{self.name}: {n} x {d}, {kind}{groups}"


def two_class(name: str, X: Any, y: Any, sizes: Sequence[int] | None = None) -> Data:
    """Data in the form that every solver is given; anything but two classes is an error.

    Parameters
    ----------
    sizes : of groups of columns side by side
    """
    classes, codes = encode_labels(y)
    if len(classes) != 2:
        raise ValueError(f"{name} has {len(classes)} classes; the race needs two")
    if sparse.issparse(X):
        X = sparse.csr_matrix(X, dtype=np.float64)
        X.sum_duplicates()  # sorts the indices too
    else:
        X = np.ascontiguousarray(X, dtype=np.float64)
    groups = None if sizes is None else np.repeat(np.arange(len(sizes)), sizes)
    return Data(name, X, np.where(codes == 1, 1.0, -1.0), groups)


def _breast_cancer() -> Data:
    sample = samples.load("breast_cancer", standardised=True)
    return two_class("breast_cancer", sample.X, sample.y)


def _text() -> Data:
    sample = samples.make_classification(5000, 8000, density=0.004, noise=0.5, random_state=0)
    return two_class("text", sample.X, sample.y)


def _correlated() -> Data:
    sample = samples.make_classification(5000, 100, rho=0.9, noise=0.5, random_state=0)
    return two_class("correlated", sample.X, sample.y)


def _wide() -> Data:
    """Many more columns than rows, as measurements of genes have."""
    sample = samples.make_classification(60, 3000, rho=0.5, noise=0.5, random_state=0)
    return two_class("wide", sample.X, sample.y)


def _attributes() -> Data:
    """Attributes with several values each, a column for every value: their columns are groups."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 9, size=20)
    starts = np.cumsum(sizes) - sizes
    columns = starts + (rng.random((3000, sizes.size)) ** 2 * sizes).astype(int)  # a few values are frequent
    rows = np.repeat(np.arange(len(columns)), sizes.size)
    X = sparse.csr_array((np.ones(columns.size), (rows, columns.ravel())), shape=(len(columns), sizes.sum()))
    w = rng.standard_normal(sizes.sum()) * np.repeat(rng.random(sizes.size) < 0.4, sizes)
    z = X @ w
    return two_class("attributes", X, z + rng.standard_normal(z.size) > np.median(z), sizes)


#: What needs no file: bundled with scikit-learn, or generated.
BUILT_IN: dict[str, Callable[[], Data]] = {
    "breast_cancer": _breast_cancer,
    "text": _text,
    "correlated": _correlated,
    "wide": _wide,
    "attributes": _attributes,
}


def large_text() -> Data:
    """50000 x 48000 with 6.7 million nonzeros and the skewed columns of text."""
    sample = samples.make_classification(50_000, 48_000, density=6.7e6 / (50_000 * 48_000), random_state=0)
    return two_class("text", sample.X, sample.y)


def from_file(path: Path, format: str | None = None) -> Data:
    """A file that `fenchel.read` reads, with labels of two kinds."""
    X, y = fl.read(path, format=format)
    if y is None:
        raise ValueError(f"{path.name} has no labels")
    return two_class(path.name.split(".")[0], X, y)


def _svmlight(name: str, n_features: int, sizes: Sequence[int] | None = None) -> Callable[[Path], Data]:
    def load(folder: Path) -> Data:
        X, y = fl.read(folder / f"{name}.xz", format="svmlight", n_features=n_features, zero_based=False)
        return two_class(name, X, y, sizes)

    return load


#: The columns of a9a that belong to each attribute of UCI's Adult: age in five parts, workclass, final weight in five
#: parts, education, its years in five parts, marital status, occupation, relationship, race, sex, capital gain, capital
#: loss, hours a week in five parts, native country.
A9A_ATTRIBUTES = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)


def _leukemia(folder: Path) -> Data:
    """Gene expressions of 38 patients, 7129 genes: dense."""
    X, y = fl.read(folder / "leu.xz", format="svmlight", n_features=7129, zero_based=False)
    return two_class("leukemia", X.toarray(), y)


def _dna(folder: Path) -> Data:
    """60 nucleotides around a point, three columns each: is there no splice junction?"""
    X, y = fl.read(folder / "DNA.csv.xz", format="csv", target="Class")
    return two_class("dna", X, y == "n", [3] * 60)


def _imdb(folder: Path) -> Data:
    """Film reviews as tf-idf of words that occur in three or more of them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with lzma.open(folder / "aclImdb.jsonl.xz", "rt", encoding="utf-8") as lines:
        reviews = [json.loads(line) for line in lines]
    X = TfidfVectorizer(min_df=3).fit_transform(review["text"] for review in reviews)
    return two_class("imdb", X, np.array([review["label"] for review in reviews]))


def mnist_digits(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The 60000 training images, 784 pixels from 0 to 255, and their digits."""

    def numbers(name: str, header: int) -> np.ndarray:
        with gzip.open(folder / name, "rb") as stream:
            return np.frombuffer(stream.read(), np.uint8, offset=header)

    digits = numbers("train-labels-idx1-ubyte.gz", 8)
    return numbers("train-images-idx3-ubyte.gz", 16).reshape(digits.size, -1), digits


def _mnist(folder: Path) -> Data:
    """The training digits, pixels in [0, 1]: odd against even."""
    images, digits = mnist_digits(folder)
    return two_class("mnist", images / 255.0, digits % 2)


#: How each set lies in a data folder, as `<folder>/<name>/<files>`.
IN_FOLDER: dict[str, Callable[[Path], Data]] = {
    "imdb": _imdb,
    "a9a": _svmlight("a9a", 123, A9A_ATTRIBUTES),
    "w8a": _svmlight("w8a", 300),
    "mnist": _mnist,
    "leukemia": _leukemia,
    "dna": _dna,
}


def from_folder(folder: Path, name: str, cache: Path) -> Data:
    """One of the sets of IN_FOLDER; the tf-idf of imdb takes half a minute and is kept in the cache folder."""
    kept = cache / f"{name}.npz"
    if kept.exists():
        with np.load(kept, allow_pickle=False) as parts:
            X = sparse.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
            return two_class(name, X, parts["y"])
    data = IN_FOLDER[name](folder / name)
    if name == "imdb":
        cache.mkdir(parents=True, exist_ok=True)
        X = data.X
        np.savez(kept, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=data.y)
    return data
