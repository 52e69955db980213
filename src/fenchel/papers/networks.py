"""Kernels of networks for the experiments on margins: a network at its start, and one along its training.

A network of two layers with rectified linear units, f_c(x) = sum_j a_cj max(0, w_j.x), is 2-homogeneous in its
parameters. Its derivatives are max(0, w_j.x) for a_cj and a_cj 1[w_j.x > 0] x for w_j, so that of k outputs together

    <J(x), J(x')> = k sum_j max(0, w_j.x) max(0, w_j.x') + x.x' sum_j (sum_c a_cj^2) 1[w_j.x > 0] 1[w_j.x' > 0].

Training needs torch; this closed form does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel.certificate import InseparableWarning
from fenchel.data import Design, encode_labels
from fenchel.data.samples import load
from fenchel.data.typing import Indices, Matrix, MatrixLike, Vector, VectorLike
from fenchel.estimator import MaxMarginClassifier
from fenchel.kernel import Function, Gram, Samples, TangentKernel
from fenchel.kernel.network import require_torch
from fenchel.papers.datasets import Data
from fenchel.solver import NotCertifiedWarning
from fenchel.solver.blas import blas_threads


@dataclass(frozen=True)
class NetworkDefaults:
    """Of the experiments: the paper's width of Figure 3 and its 128 samples of Figure 4."""

    width: int = 128  # of the network at its start
    samples: int = 128  # for training a network
    tested: int = 1000  # at most so many others
    batch: int = 32
    rate: float = 0.05  # of stochastic gradient descent with momentum 0.9
    hidden: int = 32  # units of the trained network on given data
    channels: int = 6  # of the convolutional one, on bundled images
    tol: float = 1e-2  # of the interval of the largest margin


DEFAULTS = NetworkDefaults()
#: The paper's.
SEEDS = (100, 13579)


@dataclass(frozen=True)
class Labelled:
    """Dense samples with entries of at most 1, and the codes of their k classes, in random order."""

    name: str
    X: Matrix
    codes: Indices
    k: int
    is_image: bool = False

    @classmethod
    def of(cls, name: str, X: MatrixLike, y: VectorLike, seed: int, is_image: bool = False) -> Labelled:
        classes, codes = encode_labels(y)
        design = Design.of(X)
        dense = np.asarray(design.matrix.toarray() if design.is_sparse else design.matrix, dtype=np.float64)
        order = np.random.default_rng(seed).permutation(len(dense))
        largest = float(np.abs(dense).max())
        return cls(name, dense[order] / (largest or 1.0), codes[order].astype(np.int64), len(classes), is_image)


def labelled(data: Data, seed: int) -> Sequence[Labelled]:
    """The data sets by name, the one given as (X, y), or the bundled digits."""
    if data is None:
        sample = load("digits")
        return [Labelled.of("digits", sample.X, sample.y, seed, is_image=True)]
    if isinstance(data, Mapping):
        return [Labelled.of(name, X, y, seed) for name, (X, y) in data.items()]
    return [Labelled.of("data", *data, seed=seed)]


# A network at its start ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoLayers:
    """The normalised tangent kernel of a network of two layers, for samples with their preactivations beside them."""

    W: Matrix  # width x d
    a: Matrix  # k x width

    @classmethod
    def drawn(cls, d: int, k: int, width: int, seed: int) -> TwoLayers:
        """Independent normal parameters of variance 1 / d and 1 / width."""
        rng = np.random.default_rng(seed)
        return cls(rng.standard_normal((width, d)) / np.sqrt(d), rng.standard_normal((k, width)) / np.sqrt(width))

    def samples(self, X: Matrix) -> Matrix:
        """x and W x, side by side."""
        return np.hstack([X, X @ self.W.T])

    def __call__(self, A: Matrix, B: Matrix) -> Matrix:
        """The values for two blocks of such samples."""
        d, squares, k = self.W.shape[1], np.sum(self.a**2, axis=0), len(self.a)
        (x, z), (x2, z2) = ((part[:, :d], part[:, d:]) for part in (A, B))
        K = (x @ x2.T) * (((z > 0.0) * squares) @ (z2 > 0.0).T)
        K += k * (np.maximum(z, 0.0) @ np.maximum(z2, 0.0).T)
        K /= np.outer(self._lengths(x, z), self._lengths(x2, z2))
        return np.asarray(K)

    def _lengths(self, x: Matrix, z: Matrix) -> Vector:
        """|J(x)|, 1 if that is 0."""
        first = np.einsum("ij,ij->i", x, x) * ((z > 0.0) @ np.sum(self.a**2, axis=0))
        lengths = np.sqrt(first + len(self.a) * np.sum(np.maximum(z, 0.0) ** 2, axis=1))
        return np.asarray(np.where(lengths > 0.0, lengths, 1.0))


def initial_gram(data: Labelled, seed: int) -> Gram:
    """The Gram matrix of a network of two layers at its start."""
    network = TwoLayers.drawn(data.X.shape[1], data.k, DEFAULTS.width, seed)
    return Gram(network.samples(data.X), Function(network))


# A network along its training ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    """After some epochs: the interval of the largest margin with the kernel of the network, and test errors."""

    epoch: int
    lower: float
    upper: float
    kernel_error: float
    network_error: float


def snapshots(data: Labelled, seed: int, epochs: Sequence[int]) -> list[Snapshot]:
    """Train on the first samples, and look at the tangent kernel at these epochs."""
    count = min(DEFAULTS.samples, int(0.8 * len(data.X)))
    centred = data.X - data.X[:count].mean()
    X, test = centred[:count], centred[count : count + DEFAULTS.tested]
    y, own = data.codes[:count], data.codes[count : count + DEFAULTS.tested]
    if len(np.unique(y)) < 2:
        raise ValueError(f"{data.name}: the {count} training samples have one class only")
    found = []
    with blas_threads(1), torch_threads(1):  # a seed gives the same figure, and the network is small
        for epoch, model in trained(data, X, y, seed, epochs):
            lower, upper, guessed = largest_margin_predictor(TangentKernel(model), X, y, test)
            errors = (float(np.mean(each != own)) for each in (guessed, classes(model, test)))
            found.append(Snapshot(epoch, lower, upper, *errors))
    return found


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many threads for torch."""
    torch = require_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def network_of(data: Labelled) -> Any:
    """Two convolutional layers for the bundled images of 8 x 8, one hidden layer for other data."""
    nn, c = require_torch().nn, DEFAULTS.channels
    if not data.is_image:
        d = data.X.shape[1]
        return nn.Sequential(nn.Linear(d, DEFAULTS.hidden), nn.ReLU(), nn.Linear(DEFAULTS.hidden, data.k))
    first = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, c, 3), nn.ReLU(), nn.Conv2d(c, c, 3), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, nn.Linear(16 * c, data.k))


def trained(data: Labelled, X: Matrix, y: Indices, seed: int, epochs: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The network at some epochs of stochastic gradient descent on the logistic loss of several classes.

    The seed is that of its parameters at the start and of the order of samples.
    """
    torch = require_torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = network_of(data)
    order = torch.Generator().manual_seed(seed)
    samples, targets = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    descent = torch.optim.SGD(model.parameters(), lr=DEFAULTS.rate, momentum=0.9)
    loss, done = torch.nn.CrossEntropyLoss(), 0
    for epoch in epochs:
        while done < epoch:
            for batch in torch.randperm(len(samples), generator=order).split(DEFAULTS.batch):
                descent.zero_grad()
                loss(model(samples[batch]), targets[batch]).backward()
                descent.step()
            done += 1
        yield epoch, model


def classes(model: Any, X: Matrix) -> Indices:
    """What the network says."""
    torch = require_torch()
    with torch.no_grad():
        scores = model(torch.tensor(X, dtype=torch.float32))
    return np.asarray(scores.argmax(dim=1).numpy(), dtype=np.int64)


def largest_margin_predictor(
    kernel: TangentKernel, X: Matrix, y: Indices, test: Matrix
) -> tuple[float, float, Indices]:
    """The interval of the largest margin, and the classes that a classifier of this margin gives to other samples.

    The functions k(x_i, .) of n samples have n coordinates, in a basis that is orthonormal in the kernel's space: with
    K = Q D Q', the rows of Q D^(1/2); those of other samples are the rows of K_test Q D^(-1/2). Margins in these
    coordinates are margins of the kernel.
    """
    A = Samples.of(X)
    values, Q = np.linalg.eigh(kernel.block(A, A))
    used = values > 1e-12 * values[-1]
    root, Q = np.sqrt(values[used]), Q[:, used]
    with warnings.catch_warnings():
        for kind in (InseparableWarning, NotCertifiedWarning):
            warnings.simplefilter("ignore", kind)
        model = MaxMarginClassifier(fit_intercept=False, tol=DEFAULTS.tol).fit(Q * root, y)
    interval = model.margin_interval_
    guessed = model.predict(kernel.block(Samples.of(test), A) @ (Q / root))
    return interval.lower, interval.upper, np.asarray(guessed, dtype=np.int64)
