"""Least squares where weights are few: all of it on the Gram matrix, which is formed once.

With p_i = s_i / W, and means taken off where there is an intercept, let q = sum_i p_i y_i^2, c = X' diag(p) y and
G = X' diag(p) X. Then sum_i p_i r_i^2 = q - 2 c.w + w'G w for the residuals r = y - X w, and v(r) = c - G w: coordinate
descent, Newton steps and bounds on P and D (`certificate.bounds.measured`) take d^2 operations, whatever n is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Goal, Model
from fenchel.steps.linear_algebra.augmented import gram_matrix, gram_of_some, known_gram
from fenchel.steps.measurements import AtMoments, Measurements, Sizes
from fenchel.steps.working_set.hessian import minimise


@dataclass(frozen=True, eq=False)
class Centre:
    """Means of the columns and of the targets, where there is an intercept; None and 0 without one."""

    columns: Vector | None
    target: float

    @classmethod
    def of(cls, problem: Problem) -> Centre:
        """The means of a problem's samples, weighted."""
        if not problem.intercept:
            return cls(None, 0.0)
        p = problem.weights / problem.total_weight
        total = float(p.sum())
        return cls(problem.design.rmatvec(p) / total, float(p @ problem.y) / total)


@dataclass(frozen=True, eq=False)
class Moments:
    """The second moments of samples with the squared loss."""

    G: Vector
    c: Vector
    q: float
    centre: Centre
    sizes: Sizes
    by_difference: bool = False  # whether G is that between all samples and those without weight, which is less exact

    @classmethod
    def of(cls, problem: Problem, may_share: bool = True) -> Moments:
        """Of a problem; from the Gram matrix that folds share, where there is one and it may be used."""
        centre, p = Centre.of(problem), problem.weights / problem.total_weight
        y = problem.y - centre.target
        c, q = problem.design.rmatvec(p * y), problem.mean(y * y)
        difference = _difference(problem, centre.columns) if may_share else None
        if difference is None:
            return cls(gram_matrix(problem.design, p, centre.columns), c, q, centre, Sizes.of(problem))
        lengths = problem.design.column_norms() / np.sqrt(np.count_nonzero(problem.weights))  # of all samples
        return cls(difference, c, q, centre, Sizes.of(problem, lengths), True)

    def at(self, w: Vector) -> AtWeights:
        """What follows from some weights."""
        curved, slope = self.G @ w, float(self.c @ w)
        return AtWeights(w, self.c - curved, self.q - 2.0 * slope + float(w @ curved), self.q - slope)

    def intercept(self, w: Vector) -> float:
        """The best one."""
        return 0.0 if self.centre.columns is None else self.centre.target - float(self.centre.columns @ w)

    def optima(self, blocks: Sequence[Blocks], w: Vector, goal: Goal, accuracy: float) -> list[AtWeights]:
        """For several penalties, each from the last, to this part of the gap that is asked for; from some weights."""
        models, at = [], self.at(w)
        for one in blocks:
            u = at.w.copy()
            enough = accuracy * goal.gap(self.q + one.value(u))
            minimise(self.G, one, u, one.ridge * u - at.v, enough)
            at = self.at(u)
            models.append(at)
        return models

    def measured(self, blocks: Sequence[Blocks], models: Sequence[AtWeights], steps: int) -> Measurements:
        """All that was computed of some models."""
        square, inner = np.array([at.square for at in models]), np.array([at.inner for at in models])
        loss = AtMoments(square, inner, self.centre.columns is not None, self.by_difference)
        each = [Model(at.w, self.intercept(at.w)) for at in models]
        return Measurements.of(self.sizes, blocks, each, loss, steps, *(at.v for at in models))


@dataclass(frozen=True, eq=False)
class AtWeights:
    """Weights, v of their residuals, and the products of `AtMoments`."""

    w: Vector
    v: Vector
    square: float
    inner: float


def gram_for_folds(problem: Problem) -> tuple[Vector, Vector | None]:
    """The Gram matrix of all samples, which count the same, and the means that were taken off: for paths on some."""
    mean, n = Centre.of(problem).columns, problem.shape[0]
    return known_gram(problem.design, np.full(n, 1.0 / n), mean), mean


def _difference(problem: Problem, mean: Vector | None) -> Vector | None:
    """The Gram matrix G of samples that count the same, from that of all, where it is known and most of them count.

    Let m be any centre, mu the mean over the k of n samples that count; A and B are sums of (x_i - m)(x_i - m)' / n
    over all samples, and over those that do not. Then k/n G = A - B - k/n (mu - m)(mu - m)'. Without an intercept there
    are no means.
    """
    design, n = problem.design, problem.shape[0]
    known = None if design.fold_cache is None else design.fold_cache.gram
    if known is None:
        return None
    out, kept = np.flatnonzero(problem.weights == 0.0), problem.weights[problem.weights > 0.0]
    if not 0 < len(out) <= len(kept) or kept.min() != kept.max():
        return None
    A, m = known
    G = A - gram_of_some(design, out, 1.0 / n, m)
    G *= n / len(kept)
    if m is not None and mean is not None:
        G -= np.outer(mean - m, mean - m)
    return G
