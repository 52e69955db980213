"""Least squares where weights are few: all of it on the Gram matrix, which is formed once.

With p_i = s_i / W, and means taken off where there is an intercept, let q = sum_i p_i y_i^2, c = X' diag(p) y and
G = X' diag(p) X. Then sum_i p_i r_i^2 = q - 2 c.w + w'G w for the residuals r = y - X w, and v(r) = c - G w: coordinate
descent, Newton steps and bounds on P and D (`certificate.bounds.measured`) take d^2 operations, whatever n is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Goal
from fenchel.steps.linear_algebra.augmented import gram_matrix, gram_of_some, known_gram
from fenchel.steps.measurements import UP, AtMoments, DualVector, Measurements, Sizes
from fenchel.steps.working_set.hessian import minimise, ridged


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
    lengths: Vector | None = None
    """S_j of all samples, where G is a difference between these and those without weight."""

    @classmethod
    def of(cls, problem: Problem, may_share: bool = True) -> Moments:
        """Of a problem; from the Gram matrix that folds share, where there is one and it may be used."""
        centre, p = Centre.of(problem), problem.weights / problem.total_weight
        y = problem.y - centre.target if problem.intercept else problem.y
        c, q = problem.design.rmatvec(p * y), problem.mean(y * y)
        difference = _difference(problem, centre.columns) if may_share else None
        if difference is None:
            return cls(gram_matrix(problem.design, p, centre.columns), c, q, centre)
        counted = np.sqrt(np.count_nonzero(problem.weights))
        return cls(difference, c, q, centre, np.asarray(problem.design.column_norms() / counted * UP))

    @property
    def by_difference(self) -> bool:
        """Whether G is a difference, which is less exact."""
        return self.lengths is not None

    def at(self, w: Vector) -> AtWeights:
        """What follows from some weights."""
        curved, slope = self.G @ w, float(self.c @ w)
        return AtWeights(w, self.c - curved, self.q - 2.0 * slope + float(w @ curved), self.q - slope)

    def intercept(self, w: Vector) -> float:
        """The best one."""
        return 0.0 if self.centre.columns is None else self.centre.target - float(self.centre.columns @ w)

    def step(self, blocks: Blocks, at: AtWeights, enough: float) -> AtWeights:
        """The optimum, to this accuracy, from some weights."""
        u = at.w.copy()
        minimise(ridged(self.G, blocks.ridge), blocks, u, blocks.ridge * u - at.v, enough)
        return self.at(u)


@dataclass(frozen=True, eq=False)
class AtWeights:
    """Weights, v of their residuals, and the products of `AtMoments`."""

    w: Vector
    v: Vector
    square: float
    inner: float


@dataclass(frozen=True, eq=False)
class Batch:
    """Models of the present penalty and of some that follow, each found from the last."""

    moments: Moments
    penalties: tuple[Penalty, ...]
    blocks: tuple[Blocks, ...]
    models: tuple[AtWeights, ...]

    @classmethod
    def of(cls, moments: Moments, penalties: tuple[Penalty, ...], at: AtWeights, goal: Goal, accuracy: float) -> Batch:
        """From some weights on; every model is solved to this part of the gap that is asked for."""
        blocks = [penalty.blocks(len(at.w)) for penalty in penalties]
        each, models = [one for one in blocks if one is not None], []
        for one in each:
            at = moments.step(one, at, accuracy * goal.gap(moments.q + one.value(at.w)))
            models.append(at)
        return cls(moments, penalties, tuple(each), tuple(models))

    def model_for(self, penalty: Penalty) -> AtWeights:
        """The model of a penalty, or the last one."""
        return self.models[self.penalties.index(penalty) if penalty in self.penalties else -1]

    def measured(self, sizes: Sizes) -> Measurements:
        """All that was computed of them."""
        moments, models, m, d = self.moments, self.models, len(self.models), len(self.models[0].w)
        first = self.blocks[0]
        low, high, _ = first.limits
        square, inner = np.array([at.square for at in models]), np.array([at.inner for at in models])
        return Measurements(
            sizes,
            np.array([one.limits[0] for one in self.blocks]),
            np.array([one.ridge for one in self.blocks]),
            np.arange(0, m * d + 1, d),
            None,
            np.concatenate([at.w for at in models]),
            np.array([moments.intercept(at.w) for at in models]),
            AtMoments(square, inner, moments.centre.columns is not None, moments.by_difference),
            DualVector.whole(*(at.v for at in models)),
            np.ones(m, dtype=np.int64),
            None if first.singles and low == high else first,
        )


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
