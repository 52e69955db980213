"""Small problems of every shape and storage, their objectives in plain NumPy, and their optima by a conic solver.

Nothing here asks fenchel what an objective is worth. Entries of X are float32 numbers, so that every storage states the
same problem and has the same optimum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from inspect import Signature, signature
from itertools import product

import numpy as np
import scipy.sparse as sp

import fenchel as fl
from fenchel import losses, penalties
from tests.helpers.conic import multiclass_optimum, reliable_optimum

SHAPES = {"n<d": (5, 9), "n=d": (6, 6), "n>d": (12, 4), "n=1": (1, 5), "d=1": (9, 1)}
STORAGES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "float32": lambda X: X.astype(np.float32),
}


def proven_to(tol, storage, left):
    """What a fit to this tolerance proves: nothing if weights in single precision should fit all samples exactly.

    `left` is the objective, or the largest residual.
    """
    return None if storage == "float32" and left <= 1e-6 else tol


def for_every_storage(test):
    """The test, called with one storage after the other; a failure says which it was."""

    @wraps(test)
    def every(**arguments):
        for storage in STORAGES:
            try:
                test(**arguments, storage=storage)
            except Exception as error:
                error.add_note(f"X was stored as {storage}")
                raise

    # what pytest is to hand over
    every.__signature__ = Signature([p for name, p in signature(test).parameters.items() if name != "storage"])
    return every


@dataclass(frozen=True)
class Variant:
    """A shape, with or without an intercept, with or without weights of samples."""

    shape: str
    intercept: bool
    weighted: bool

    def __str__(self):
        return f"{self.shape}{'-b' if self.intercept else ''}{'-s' if self.weighted else ''}"


VARIANTS = [Variant(*values) for values in product(SHAPES, (False, True), (False, True))]


@cache
def data(variant):
    """X, numbers, labels (both of them, unless there is one sample) and weights (one of them zero, of several)."""
    n, d = SHAPES[variant.shape]
    rng = np.random.default_rng([n, d])
    X = (rng.normal(size=(n, d)) + 0.5 * rng.normal(size=d)) * (rng.random((n, d)) < 0.7)
    X[:, d // 2] *= d < 4  # a column without entries
    X[n // 3] *= n < 4  # and a row
    X = np.round(64.0 * X) / 64.0
    numbers = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 1.0
    labels = np.where(numbers > np.median(numbers), 1.0, -1.0) if n > 1 else np.ones(1)
    s = rng.integers(1, 8, size=n) / 4.0
    s[n // 2] *= n < 4  # a sample that does not count
    return X, numbers, labels, s if variant.weighted else np.ones(n)


@cache
def classes(variant):
    """Three classes by size of the numbers, 0 to 2; each has a sample that counts, unless there is one sample."""
    numbers = data(variant)[1]
    return np.argsort(np.argsort(numbers)) * 3 // len(numbers)


def mean(values, s):
    return float(np.sum(s * values) / np.sum(s))


LOSSES = {
    losses.Squared: lambda z, y: (z - y) ** 2 / 2,
    losses.Absolute: lambda z, y: np.abs(z - y),
    losses.Pinball: lambda z, y: np.maximum(0.2 * (y - z), 0.8 * (z - y)),
    losses.EpsilonInsensitive: lambda z, y: np.maximum(0.0, np.abs(z - y) - 0.1),
    losses.SquaredEpsilonInsensitive: lambda z, y: np.maximum(0.0, np.abs(z - y) - 0.1) ** 2,
    losses.Huber: lambda z, y: np.where(np.abs(z - y) <= 0.7, (z - y) ** 2 / 2, 0.7 * np.abs(z - y) - 0.245),
    losses.Hinge: lambda z, y: np.maximum(0.0, 1.0 - y * z),
    losses.SmoothedHinge: lambda z, y: np.where(
        y * z >= 1.0, 0.0, np.where(y * z <= 0.5, 1.0 - y * z - 0.25, (1.0 - y * z) ** 2)
    ),
    losses.SquaredHinge: lambda z, y: np.maximum(0.0, 1.0 - y * z) ** 2,
    losses.Logistic: lambda z, y: np.logaddexp(0.0, -y * z),
    losses.Exponential: lambda z, y: np.exp(-y * z),
    losses.Multinomial: lambda z, y: np.logaddexp.reduce(z - z[np.arange(len(y)), y, None], axis=1),
    losses.CrammerSinger: lambda z, y: np.max(z + (np.arange(3) != y[:, None]) - z[np.arange(len(y)), y, None], axis=1),
}
PENALTIES = {
    penalties.L2: lambda w: np.sum(w**2) / 2,
    penalties.L1: lambda w: np.sum(np.abs(w)),
    penalties.ElasticNet: lambda w: 0.6 * np.sum(np.abs(w)) + 0.4 * np.sum(w**2) / 2,
    penalties.LpSquared: lambda w: np.sum(np.abs(w) ** 1.5) ** (2.0 / 1.5) / 2,
    penalties.GroupL2: lambda w: sum(np.sqrt(np.sum(w[k : k + 2] ** 2)) for k in range(0, len(w), 2)),
    penalties.SparseGroup: lambda w: (
        0.4 * np.sum(np.abs(w)) + 0.6 * sum(np.sqrt(np.sum(w[k : k + 2] ** 2)) for k in range(0, len(w), 2))
    ),
    penalties.FusedL1: lambda w: np.sum(np.abs(np.diff(w))),
    penalties.Entropy: lambda w: np.sum(w * np.log(np.maximum(w, 1e-300))),
    penalties.SignedEntropy: lambda w: _signed_entropy(w, 2.5),
    penalties.NoPenalty: lambda w: 0.0,
    penalties.NonNegativeL1: lambda w: np.sum(w) if np.all(w >= 0.0) else np.inf,
    penalties.NonNegativeElasticNet: lambda w: 0.6 * np.sum(w) + 0.4 * np.sum(w**2) / 2 if np.all(w >= 0.0) else np.inf,
}


def _signed_entropy(w, B):
    """The relative entropy of w = a - b with sum a + b = B, a_j b_j = c^2: c by bisection of its logarithm."""
    low, high = np.log(B / 2.0 / len(w)) - 60.0, np.log(B / 2.0 / len(w))
    for _ in range(200):
        middle = (low + high) / 2.0
        inside = np.sum(np.sqrt(w**2 + 4.0 * np.exp(2.0 * middle))) <= B
        low, high = (middle, high) if inside else (low, middle)
    s = np.sqrt(w**2 + 4.0 * np.exp(2.0 * low))
    larger = (s + np.abs(w)) / 2.0
    parts = np.concatenate([larger, np.exp(2.0 * low) / larger])
    return np.sum(parts * np.log(2.0 * len(w) * parts / B))


@dataclass(frozen=True)
class Statement:
    """A loss and a penalty, with the parameters of the formulas above.

    The targets are what the loss is for; or, if `target` says so, the "labels", or a class against the rest.
    """

    loss: losses.Loss
    kind: type
    lam: float = 0.1
    target: str | int = ""
    oracle = staticmethod(reliable_optimum)
    labels = (-1, 1)

    def __str__(self):
        return f"{type(self.loss).__name__}-{self.kind.__name__}"

    @property
    def is_classification(self):
        return type(self.loss) in (
            losses.Hinge,
            losses.SmoothedHinge,
            losses.SquaredHinge,
            losses.Logistic,
            losses.Exponential,
        )

    def fits(self, variant):
        """Whether there is such a problem: one weight has no differences, one sample has no two classes."""
        n, d = SHAPES[variant.shape]
        return (self.kind is not penalties.FusedL1 or d > 1) and not (self.is_classification and n == 1)

    def penalty(self, d, lam=None):
        lam = self.lam if lam is None else lam
        makers: dict[type, Callable] = {
            penalties.ElasticNet: lambda: penalties.ElasticNet(lam, 0.6),
            penalties.NoPenalty: penalties.NoPenalty,
            penalties.NonNegativeElasticNet: lambda: penalties.NonNegativeElasticNet(lam, 0.6),
            penalties.LpSquared: lambda: penalties.LpSquared(lam, 1.5),
            penalties.SignedEntropy: lambda: penalties.SignedEntropy(lam, 2.5),
            penalties.GroupL2: lambda: penalties.GroupL2(lam, np.arange(d) // 2, np.ones(-(-d // 2))),
            penalties.SparseGroup: lambda: penalties.SparseGroup(lam, np.arange(d) // 2, 0.4, np.ones(-(-d // 2))),
        }
        return makers.get(self.kind, lambda: self.kind(lam))()

    def targets(self, variant):
        _, numbers, labels, _ = data(variant)
        if isinstance(self.target, int):
            return np.where(classes(variant) == self.target, 1.0, -1.0)
        return labels if self.is_classification or self.target == "labels" else numbers

    def problem(self, variant, storage="C", lam=None):
        """The problem as fenchel states it."""
        X, _, _, s = data(variant)
        weights = s if variant.weighted else None
        penalty = self.penalty(X.shape[1], lam)
        return fl.Problem(
            STORAGES[storage](X), self.targets(variant), self.loss, penalty, weights, intercept=variant.intercept
        )

    def nothing(self, variant):
        """Weights and an intercept of zero."""
        return np.zeros(SHAPES[variant.shape][1]), 0.0

    def scores(self, variant, w, b):
        """X w + b."""
        return data(variant)[0] @ w + b

    def winners(self, scores):
        """The labels of these scores, and how far they are from being others."""
        return np.sign(scores), np.abs(scores)

    def objective(self, variant, w, b, lam=None):
        """P(w, b)."""
        value = LOSSES[type(self.loss)](self.scores(variant, w, b), self.targets(variant))
        penalty = (self.lam if lam is None else lam) * float(PENALTIES[self.kind](np.ravel(w)))
        return mean(value, data(variant)[3]) + penalty

    def optimum(self, variant, lam=None):
        """Weights, intercept and objective of a model that a conic solver finds: an upper bound on the optimum."""
        return _optimum(self, variant, self.lam if lam is None else lam)


@cache
def _optimum(statement, variant, lam):
    w, b = statement.oracle(statement.problem(variant, lam=lam))
    return w, b, statement.objective(variant, w, b, lam)


@dataclass(frozen=True)
class MulticlassStatement(Statement):
    """The same for a loss of three scores a sample; weights are 3 x d, a row for each class."""

    loss: losses.MulticlassLoss
    oracle = staticmethod(multiclass_optimum)
    labels = (0, 1, 2)
    is_classification = True

    def fits(self, variant):
        """One sample with intercepts has no optimum: any loss can be had."""
        return SHAPES[variant.shape][0] > 1 or not variant.intercept

    def targets(self, variant):
        return classes(variant)

    def problem(self, variant, storage="C", lam=None):
        X, _, _, s = data(variant)
        weights = s if variant.weighted else None
        penalty = self.penalty(3 * X.shape[1], lam)
        parts = (STORAGES[storage](X), classes(variant), self.loss, penalty, weights, variant.intercept)
        return fl.MulticlassProblem(*parts, n_classes=3)

    def nothing(self, variant):
        return np.zeros((3, SHAPES[variant.shape][1])), np.zeros(3)

    def scores(self, variant, w, b):
        return data(variant)[0] @ w.T + b

    def winners(self, scores):
        """The class of the highest score, and how far it is ahead of the next one."""
        second, first = np.sort(scores, axis=1)[:, -2:].T
        return np.argmax(scores, axis=1), first - second


REGRESSION = [
    Statement(losses.Squared(), penalties.L2),
    Statement(losses.Squared(), penalties.L1),
    Statement(losses.Squared(), penalties.ElasticNet),
    Statement(losses.Squared(), penalties.GroupL2),
    Statement(losses.Squared(), penalties.SparseGroup),
    Statement(losses.Squared(), penalties.FusedL1),
    Statement(losses.Squared(), penalties.LpSquared, lam=0.5),
    Statement(losses.Squared(), penalties.Entropy),
    Statement(losses.Squared(), penalties.SignedEntropy),
    Statement(losses.Absolute(), penalties.SignedEntropy),
    Statement(losses.Squared(), penalties.NonNegativeL1),
    Statement(losses.Squared(), penalties.NonNegativeElasticNet),
    Statement(losses.Absolute(), penalties.NonNegativeElasticNet),
    Statement(losses.Huber(0.7), penalties.L1),
    Statement(losses.Squared(), penalties.NoPenalty),
    Statement(losses.Absolute(), penalties.NoPenalty),
    Statement(losses.Huber(0.7), penalties.NoPenalty),
    Statement(losses.Absolute(), penalties.L1),
    Statement(losses.Pinball(0.2), penalties.L2),
    Statement(losses.EpsilonInsensitive(0.1), penalties.ElasticNet),
    Statement(losses.SquaredEpsilonInsensitive(0.1), penalties.L2),
]
CLASSIFICATION = [
    Statement(losses.Hinge(), penalties.L2),
    Statement(losses.SmoothedHinge(0.5), penalties.L2),
    Statement(losses.SquaredHinge(), penalties.L1),
    Statement(losses.SquaredHinge(), penalties.NoPenalty),
    Statement(losses.Logistic(), penalties.L2),
    Statement(losses.Logistic(), penalties.L1),
    Statement(losses.Exponential(), penalties.L2),
    Statement(losses.Logistic(), penalties.SignedEntropy),
]
STATEMENTS = REGRESSION + CLASSIFICATION
MULTICLASS = [
    MulticlassStatement(losses.Multinomial(), penalties.L2),
    MulticlassStatement(losses.Multinomial(), penalties.ElasticNet),
    MulticlassStatement(losses.CrammerSinger(), penalties.L2),
    MulticlassStatement(losses.CrammerSinger(), penalties.ElasticNet),
]


def cases(statements):
    """Every statement on every variant that it fits."""
    return [(statement, variant) for statement in statements for variant in VARIANTS if statement.fits(variant)]


CASES = cases(STATEMENTS)


#: What plain sums of a dozen terms may be off by.
SUMS = 1e-13


def case_id(case):
    return f"{case[0]}-{case[1]}"


def check_certificate(certificate, objective, best, tol, size=1.0):
    """A certificate against the objective of its model, and one that some model attains; `size` is that of P's terms.

    `best` is at least the optimum, so that no proven lower bound may exceed it.
    """
    c, slack = certificate, SUMS * (size + abs(objective))
    assert abs(c.primal - objective) <= slack + c.rounding
    assert c.gap >= objective - best - slack
    assert c.dual <= best + slack + c.rounding
    assert c.primal - c.gap <= best + slack
    assert min(c.gap, c.rounding) >= 0.0
    if c.primal:
        np.testing.assert_allclose(c.relative_gap, c.gap / abs(c.primal), rtol=1e-12)
    if tol is not None:
        assert c.ok
        assert c.tol == tol
        assert best <= objective + 1e-5 * (size + abs(objective))  # the oracle is worth its name
        assert c.gap <= tol * abs(c.primal) or c.vanishes
