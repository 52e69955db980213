"""Smooth losses along a grid of lam: proximal Newton steps whose Hessians are used again.

A step is the minimum of a quadratic model around the last model, with the penalty as it is; from one lam to the next
one step may do. Its Hessian needs many passes over the samples, so it is formed anew only when steps that a fresh one
would have saved have cost as much, or when a step fails or leaves much of the gap.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel.certificate.bounds.responses import Response, Responses
from fenchel.certificate.bounds.samples import Bounds, has_moderate
from fenchel.data.typing import Vector
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.solver.paths.found import found
from fenchel.solver.paths.gram_path import eased
from fenchel.solver.result import Result, Stop
from fenchel.steps.working_set.dense_hessian import gram_matrix, minimise, ridged
from fenchel.steps.working_set.quadratic_model import Elimination
from fenchel.steps.working_set.state import DAMPING

#: The gap to which a step's model is solved, as a part of what is asked for.
MODEL = 1e-3
#: Steps for one lam, and how often a step that makes P larger is halved.
MOST_STEPS, MOST_HALVES = 30, 10
#: Steps that cost as much as a Hessian: it is formed anew when so many were needed beside the first for each lam.
WASTE = 3
#: A Hessian that leaves more of the gap than this is not used again. Fresh ones that leave more than that will not get
#: there, if there are so many of them.
SLOW, STUCK, MOST_STUCK = 0.3, 0.9, 4


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
        self.hessian: tuple[Elimination, Vector] | None = None
        self.waste, self.damping = 0, DAMPING[0]

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

    def descend(self, blocks: Blocks, stop: Stop) -> tuple[int, Bounds] | None:
        """Newton steps until the gap is proven to be small enough; None if it does not become so."""
        gap, stuck = np.inf, 0
        end = np.inf if stop.max_seconds is None else time.perf_counter() + stop.max_seconds
        for steps in range(1, MOST_STEPS + 1):
            enough, fresh = max(stop.tol * self.point.response.loss, stop.atol), self.hessian is None
            full = self._step(blocks, MODEL * min(enough, gap))
            point = self.point
            bounds = self.samples.bounds(blocks, blocks.value(point.w), point.response, point.v)
            if bounds.reach(stop.tol, stop.atol):
                return steps, bounds
            out_of_reach = bounds.rounding > max(stop.tol * abs(bounds.primal), stop.atol)
            stuck += fresh and not bounds.gap <= STUCK * gap
            if out_of_reach or stuck >= MOST_STUCK or time.perf_counter() > end:
                break
            self.waste += 1
            if not full or self.waste >= WASTE or bounds.gap > SLOW * gap:
                self.hessian, self.waste = None, 0
            gap = bounds.gap
        self.hessian = None
        return None

    def _step(self, blocks: Blocks, accuracy: float) -> bool:
        """Go to the minimum of the model, or part of the way, or stay where P does not fall; whether all of the way."""
        point, (intercept, H) = self.point, self.hessian or self._form_hessian()
        u, miss = point.w.copy(), float(self.samples.p @ point.response.a)
        slope = intercept.slope(blocks.ridge * point.w - point.v, miss)
        minimise(ridged(H, blocks.ridge), eased(blocks), u, slope, accuracy)
        move = u - point.w
        before, shift = point.response.loss + blocks.value(point.w), intercept.shift(move, miss)
        for t in 0.5 ** np.arange(MOST_HALVES):
            w = u if t == 1.0 else point.w + t * move
            b, response = self._balanced(w, point.b + t * shift)
            if response.loss + blocks.value(w) <= before * (1.0 + 1e-14):
                self.point = self._complete(w, b, response)
                break
        else:
            t = 0.0
        self.damping = float(np.clip(self.damping * (0.1 if t == 1.0 else 10.0), *DAMPING[1:]))
        return bool(t == 1.0)

    def _form_hessian(self) -> tuple[Elimination, Vector]:
        """At the present curvatures, and what becomes of the intercept."""
        problem = self.problem
        c = self.samples.p * np.maximum(self.point.response.h, self.damping * problem.loss.smoothness)
        intercept = Elimination.of(problem.design, c, problem.intercept)
        self.hessian = intercept, gram_matrix(problem.design, c, intercept.mean)
        return self.hessian

    def _balanced(self, w: Vector, b: float) -> tuple[float, Response]:
        """An intercept near b that is nearly at its best, and the response of that model."""
        return self.samples.balanced(self.problem.X.matvec_bounded(w), b)

    def _complete(self, w: Vector, b: float, response: Response) -> Point:
        return Point(w, b, response, self.problem.X.rmatvec(self.samples.p * response.a))
