"""Least squares along a grid of lam where weights are few: all of it on the Gram matrix, which is formed once.

Coordinate descent and Newton steps on a d x d matrix take microseconds, and so do the bounds on P and D from second
moments (`certificate.moments`): after the matrix is formed no lam costs a look at the samples. Where rounding or a
hard problem keeps the gap from the tolerance, `solve` has to do it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fenchel.certificate.bounds.centred import Centred
from fenchel.certificate.bounds.moments import Moments
from fenchel.certificate.bounds.samples import has_moderate
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.solver.paths.found import found
from fenchel.solver.result import Result, Stop
from fenchel.steps.working_set.dense_hessian import gram_matrix, gram_of_some, known_gram, minimise, ridged

#: The accuracies of the descent, as parts of the gap that is asked for: the next only where one was not enough.
ACCURACIES = (1e-6, 1e-9, 1e-12)
EASE = 1e-12


def eased(blocks: Blocks) -> Blocks:
    """Thresholds a little higher: at lam_max no weight differs from zero by rounding alone."""
    return replace(blocks, threshold=blocks.threshold * (1.0 + EASE))


def gram_of_all(problem: Problem) -> tuple[Vector, Vector | None]:
    """The Gram matrix of all samples, which count the same, and the means that were taken off: for paths on some."""
    mean, n = Centred.of(problem).mean, problem.shape[0]
    return known_gram(problem.design, np.full(n, 1.0 / n), mean), mean


def _difference(samples: Centred) -> Vector | None:
    """The Gram matrix G of samples that count the same, from that of all, where it is known and most of them count.

    Let m be any centre, mu the mean over the k of n samples that count; A and B are sums of (x_i - m)(x_i - m)' / n
    over all samples, and over those that do not. Then k/n G = A - B - k/n (mu - m)(mu - m)'. Without an intercept there
    are no means.
    """
    problem, design, n = samples.problem, samples.problem.design, samples.problem.shape[0]
    out, kept = np.flatnonzero(problem.weights == 0.0), problem.weights[problem.weights > 0.0]
    known = None if design.fold_cache is None else design.fold_cache.gram
    if known is None or not 0 < len(out) <= len(kept) or kept.min() != kept.max():
        return None
    A, m = known
    G = A - gram_of_some(design, out, 1.0 / n, m)
    G *= n / len(kept)
    if m is not None and samples.mean is not None:
        G -= np.outer(samples.mean - m, samples.mean - m)
    return G


class GramPath:
    """Solves one penalty after the other on the same moments; the weights carry over."""

    def __init__(self, samples: Centred) -> None:
        self.problem = problem = samples.problem
        self.samples, self.w = samples, np.zeros(problem.shape[1])
        self.moments = self._moments(_difference(samples))
        if not self.moments.are_moderate:
            self.moments = self._moments(None)

    def _moments(self, difference: Vector | None) -> Moments:
        samples, problem = self.samples, self.problem
        p, y, mean = samples.p, samples.y, samples.mean
        c, q = problem.X.rmatvec(p * y), problem.mean(y * y)
        G = gram_matrix(problem.design, p, mean) if difference is None else difference
        return Moments(problem, G, c, q, mean is not None, difference is not None)

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optimum for the first of these penalties, if it can be certified."""
        found = self._solve(penalties[0], stop)
        if not found and self.moments.by_difference:  # whose rounding is larger
            self.moments = self._moments(None)
            found = self._solve(penalties[0], stop)
        return found

    def _solve(self, penalty: Penalty, stop: Stop) -> list[Result]:
        start, moments, blocks = time.perf_counter(), self.moments, penalty.blocks(len(self.w))
        assert blocks is not None
        if not has_moderate(blocks):
            return []
        H, w = ridged(moments.G, blocks.ridge), self.w.copy()
        for steps, accuracy in enumerate(ACCURACIES, start=1):
            enough = accuracy * max(stop.tol * (moments.q + blocks.value(w)), stop.atol)
            minimise(H, eased(blocks), w, H @ w - moments.c, enough)
            bounds = moments.bounds(blocks, w)
            if bounds.reach(stop.tol, stop.atol):
                self.w, b, problem = w, self.samples.intercept(w), self.problem.replace(penalty=penalty)
                return [found(problem, slice(None), w, b, bounds, stop, steps, time.perf_counter() - start)]
        return []
