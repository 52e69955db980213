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

from fenchel.certificate.bounds import has_moderate
from fenchel.certificate.centred import Centred
from fenchel.certificate.moments import Moments
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.solver.base import Result, Stop
from fenchel.solver.found import found
from fenchel.steps.gram_descent import gram_matrix, minimise, ridged

#: The accuracies of the descent, as parts of the gap that is asked for: the next only where one was not enough.
ACCURACIES = (1e-6, 1e-9, 1e-12)
EASE = 1e-12


def eased(blocks: Blocks) -> Blocks:
    """Thresholds a little higher: at lam_max no weight differs from zero by rounding alone."""
    return replace(blocks, threshold=blocks.threshold * (1.0 + EASE))


class GramPath:
    """Solves one penalty after the other on the same moments; the weights carry over."""

    def __init__(self, samples: Centred) -> None:
        self.problem = problem = samples.problem
        self.samples, self.w = samples, np.zeros(problem.shape[1])
        p, y, mean = samples.p, samples.y, samples.mean
        c, q = problem.design.rmatvec(p * y), problem.mean(y * y)
        self.moments = Moments(problem, gram_matrix(problem.design, p, mean), c, q, mean is not None)

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optimum for the first of these penalties, if it can be certified."""
        penalty = penalties[0]
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
