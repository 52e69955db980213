"""Smooth losses along a grid of lam: proximal Newton steps on Hessians that are used again, on the columns that matter.

A step is the minimum of a quadratic model around the last model, with the penalty as it is; from one lam to the next
one step may do. Its Hessian needs many passes over the samples, so it is formed anew only when steps that a fresh one
would have saved have cost as much, or when a step fails. Where columns are many and samples few, weights are looked for
in a working set, for several lams at a time, as in `solver.wide_path`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.certificate.moments import MomentBounds, has_moderate
from fenchel.certificate.responses import Response, Responses
from fenchel.data.design import Rounded, Vector
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.solver.base import Result, Stop
from fenchel.solver.found import found
from fenchel.solver.gram_path import eased
from fenchel.steps.gram_descent import gram_matrix, minimise, ridged

#: The gap to which a step's model is solved, as a part of what is asked for.
MODEL = 1e-3
#: Steps for one lam, and how often a step that makes P larger is halved.
MOST_STEPS, MOST_HALVES = 30, 10
#: The least curvature of a sample, as a part of the largest that its loss has.
DAMPING = 1e-3
#: Steps that cost as much as a Hessian: it is formed anew when so many were needed beside the first for each lam.
WASTE = 3
#: A Hessian that leaves more of the gap than this is not used again.
SLOW = 0.3
#: What may be missing of the intercept's equation, as a part of its terms, and the steps towards it.
BALANCE, BALANCING = 1e-8, 4


@dataclass(frozen=True, eq=False)
class Model:
    """The sum of all curvatures, the columns' means under them where there is an intercept, and the Hessian.

    An intercept at its best for every w takes off the columns' means, as in `steps.quadratic_model`.
    """

    total: float
    mean: Vector | None
    H: Vector


@dataclass(frozen=True, eq=False)
class Point:
    """A model and what follows from it; v is the product of its multipliers with the columns."""

    w: Vector
    b: float
    response: Response
    v: Vector


class SmoothPath:
    """Solves one penalty after the other; model and Hessian carry over."""

    def __init__(self, samples: Responses, w: Vector | None = None, b: float | None = None) -> None:
        self.problem, self.samples = samples.problem, samples
        w = np.zeros(self.problem.shape[1]) if w is None else w
        self.point = self._complete(w, *self._balanced(w, samples.best_constant if b is None else b))
        self.model: Model | None = None
        self.waste = 0

    def solve(self, penalties: Sequence[Penalty], stop: Stop) -> list[Result]:
        """The optimum for the first of these penalties, if it can be certified."""
        penalty, start = penalties[0], time.perf_counter()
        blocks = penalty.blocks(len(self.point.w))
        assert blocks is not None
        done = self.descend(blocks, stop) if has_moderate(blocks) else None
        if done is None:
            return []
        steps, bounds = done
        problem, seconds = self.problem.replace(penalty=penalty), time.perf_counter() - start
        return [found(problem, slice(None), self.point.w, self.point.b, bounds, stop, steps, seconds)]

    def descend(self, blocks: Blocks, stop: Stop) -> tuple[int, MomentBounds] | None:
        """Newton steps until the gap is proven to be small enough; None if it does not become so."""
        gap = np.inf
        for steps in range(1, MOST_STEPS + 1):
            enough = max(stop.tol * self.point.response.loss, stop.atol)
            if not self._step(blocks, MODEL * min(enough, gap)):
                return None
            bounds, last = self._bounds(blocks), gap
            if bounds.reach(stop.tol, stop.atol):
                return steps, bounds
            gap, self.waste = bounds.gap, self.waste + 1
            if self.waste >= WASTE or gap > SLOW * last:
                self.model, self.waste = None, 0
        return None

    def _bounds(self, blocks: Blocks) -> MomentBounds:
        point = self.point
        return self.samples.bounds(blocks, blocks.value(point.w), point.response, point.v)

    def _step(self, blocks: Blocks, accuracy: float) -> bool:
        """Go to the minimum of the model, or part of the way; False if P does not fall."""
        point, model = self.point, self.model or self._form_model()
        u, slope = point.w.copy(), blocks.ridge * point.w - point.v
        miss = 0.0 if model.mean is None else float(self.samples.p @ point.response.a)
        if model.mean is not None:
            slope += miss * model.mean
        minimise(ridged(model.H, blocks.ridge), eased(blocks), u, slope, accuracy)
        move = u - point.w
        shift = 0.0 if model.mean is None else miss / model.total - float(model.mean @ move)
        before, t = point.response.loss + blocks.value(point.w), 1.0
        for _ in range(MOST_HALVES):
            w = u if t == 1.0 else point.w + t * move
            b, response = self._balanced(w, point.b + t * shift)
            if response.loss + blocks.value(w) <= before * (1.0 + 1e-14):
                self.point = self._complete(w, b, response)
                return True
            self.waste, t = WASTE, 0.5 * t
        return False

    def _form_model(self) -> Model:
        """At the present curvatures."""
        c = self.samples.p * np.maximum(self.point.response.h, DAMPING * self.problem.loss.smoothness)
        total = float(c.sum())
        mean = self.problem.design.rmatvec(c) / total if self.problem.intercept else None
        self.model = Model(total, mean, gram_matrix(self.problem.design, c, mean))
        return self.model

    def _balanced(self, w: Vector, b: float) -> tuple[float, Response]:
        """An intercept near b that is nearly at its best, and the response of that model."""
        product, p = self.problem.design.matvec_bounded(w), self.samples.p
        response = self.samples.at(Rounded(product.value + b, product.absolute, product.depth))
        for _ in range(BALANCING if self.problem.intercept else 0):
            term, curved = p * response.a, float(p @ response.h)
            miss = float(term.sum())
            if abs(miss) <= BALANCE * float(np.abs(term).sum()) or not curved > 0.0:
                break
            at = b + miss / curved
            other = self.samples.at(Rounded(product.value + at, product.absolute, product.depth))
            if not other.loss <= response.loss * (1.0 + 1e-14):
                break
            b, response = at, other
        return b, response

    def _complete(self, w: Vector, b: float, response: Response) -> Point:
        return Point(w, b, response, self.problem.design.rmatvec(self.samples.p * response.a))
