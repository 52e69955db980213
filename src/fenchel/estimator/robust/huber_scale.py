"""Huber's regression with its scale: the joint minimum over w, b and sigma.

For a fixed sigma the objective of `HuberClaim` is a `Problem`, up to a factor and a constant::

    P(w, b, sigma) = sigma + (2 / sigma) P_sigma(w, b)

where P_sigma has the loss Huber(epsilon sigma) and the penalty L2(lam sigma / 2). P is convex in all three, so its
minimum over w and b is a convex function of sigma, with derivative 1 - mean(a^2) / 4 at the minimiser,
a_i = H'(r_i / sigma). The search finds its root. Every evaluation is a certified solve with a warm start, and gives a
candidate (w, and the best b and sigma for it) that is certified for the joint objective. The first candidate within
the tolerance ends the search.

If the derivative is never negative (epsilon = 1, or residuals that may vanish), the infimum is at sigma -> 0, where
the loss is 2 epsilon |r|.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fenchel.certificate import Certificate
from fenchel.certificate.adapters.huber import HuberClaim, Scaled, ridge
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.estimator.base import StartLike
from fenchel.problem import Problem
from fenchel.problem.losses import Absolute, Huber, Loss
from fenchel.solver import Check, Result, Stop, Trace
from fenchel.solver.run import DEFAULT_MAX_ITER
from fenchel.solver.solve import Request, solve_request
from fenchel.steps.base import Model

#: Tolerances of the solves in each round, relative to that of the joint problem.
ROUNDS = (0.2, 0.02, 0.002)
#: A scale below this part of the largest |y| counts as zero.
SMALLEST = 1e-7
#: The scale in its place, in the same unit; of the smallest normal number it is still positive.
VANISHING = 8.0 * UNIT_ROUNDOFF


class _Ended(Exception):
    """The search ends; the message is the status."""


@dataclass
class ScaleSearch:
    """A search in progress; `claim` has the data, the start, and later the best candidate."""

    claim: HuberClaim
    options: dict[str, Any]
    trace: Trace = field(default_factory=Trace)
    n_iter: int = 0
    best: Certificate | None = None
    last_scale: float = 1.0  # the best one for the weights of the last solve

    def __post_init__(self) -> None:
        self.stop = Stop(
            self.options.pop("tol"), 0.0, self.options.pop("max_iter", None), self.options.pop("max_seconds", None)
        )
        self.clock = time.perf_counter()
        self.limit = DEFAULT_MAX_ITER if self.stop.max_iter is None else self.stop.max_iter
        self.start: Result | StartLike = None  # the solver's cold start
        if self.claim.sigma > 0.0:
            self.start = (self.claim.w, self.claim.b, np.zeros(len(self.claim.y)))
        else:
            self.claim = replace(self.claim, sigma=self._spread())
        self.inner, self.solver = ROUNDS[0], "auto"

    def run(self) -> Result:
        """The best candidate, with its certificate."""
        status = "stalled"
        try:
            if self.start is not None or self.limit == 0:
                self._judge(self.claim, effort="auto" if self.limit == 0 else "low")
            if self.limit == 0:
                raise _Ended("max_iter")
            if self.claim.epsilon <= 1.0 or not self.claim.sigma > SMALLEST * self._size:
                self._vanishing_scale()
            t = float(np.log(self.claim.sigma))
            step = 1.0
            for tolerance in ROUNDS:
                self.inner = tolerance
                t, step = self._search(t, step), tolerance
                self._judge(self.claim, effort="auto")
        except _Ended as end:
            status = str(end)
        except KeyboardInterrupt:
            status = self._interrupted()
        assert self.best is not None  # every solve certifies a candidate
        alpha = -self._slopes()
        return Result(Model(self.claim.w, self.claim.b), self.best, self.trace, self.n_iter, self.solver, status, alpha)

    def in_single_precision(self, result: Result) -> Result:
        """The result with weights and intercept rounded to float32, certified as they are with the scale found."""
        with np.errstate(over="ignore", under="ignore"):
            w, b = result.w.astype(np.float32).astype(np.float64), float(np.float32(result.b))
        if not (np.all(np.isfinite(w)) and np.isfinite(b)):
            return result
        self.claim = replace(self.claim, w=w, b=b, slopes=-result.alpha)
        certificate = replace(self.claim.certify("low", self.stop.tol or None), tol=self.stop.tol)
        status = "precision" if result.status == "certified" and not certificate.ok else result.status
        return replace(result, model=Model(w, b), certificate=certificate, status=status)

    def _interrupted(self) -> str:
        """Ctrl-C between two solves: keep the best candidate, or else the start."""
        try:
            if self.best is None:
                self._judge(self._with_best_scale(self.claim.w, self.claim.b), effort="low")
        except _Ended as end:
            return str(end)
        return "interrupted"

    def _slopes(self) -> Vector:
        """The dual point a of the best candidate."""
        if self.claim.slopes is not None:
            return self.claim.slopes
        r = self.claim.design.matvec(self.claim.w) + self.claim.b - self.claim.y
        return Scaled(r, self.claim.sigma).slopes(self.claim.epsilon)

    def _vanishing_scale(self) -> None:
        """sigma -> 0: solve with the loss 2 epsilon |r|."""
        claim, self.inner = self.claim, 0.5
        _, solved = self._solved(Absolute(), claim.penalty.lam / (2.0 * claim.epsilon))
        slopes, sigma = -2.0 * claim.epsilon * solved.alpha, VANISHING * self._size
        self._judge(replace(claim, w=solved.w, b=solved.b, sigma=sigma, slopes=slopes), effort="auto")
        raise _Ended(solved.status if solved.status != "certified" else "stalled")

    def _spread(self) -> float:
        """The standard deviation of y, an initial scale that is usually too large."""
        y, s = self.claim.y, self.claim.weights
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.average(y, weights=s) if self.claim.intercept else 0.0
            spread = float(np.sqrt(np.average((y - middle) ** 2, weights=s)))
        if not np.isfinite(spread):
            raise ValueError(f"y has entries as large as {self._size:.3g}, whose squares overflow; rescale y")
        return spread

    @property
    def _size(self) -> float:
        return float(max(np.abs(self.claim.y).max(), np.finfo(float).tiny))

    def _search(self, t: float, step: float) -> float:
        """The root of the derivative in t = log sigma: bracket, then Brent's method."""
        floor, known = float(np.log(SMALLEST * self._size)), dict[float, float]()

        def slope_at(t: float) -> float:
            """Cached: a second solve may give another sign near the root."""
            if t not in known:
                known[t] = self._slope(t)
            return known[t]

        slope = slope_at(t)
        side = -1.0 if slope > 0.0 else 1.0
        ahead = float(np.log(self.last_scale))  # near the root, if w changes little from one scale to the next
        if not 0.0 < side * (ahead - t) < np.inf:
            ahead = t + side * step
        while True:
            if ahead < floor:
                self._vanishing_scale()
            other = slope_at(ahead)
            if other * slope <= 0.0:
                break
            # a little beyond the root of the secant, to end in a bracket
            beyond = 1.5 * abs(other * (ahead - t) / (other - slope)) if other != slope else np.inf
            t, slope, ahead, step = ahead, other, ahead + side * min(max(beyond, 1e-9), step), 2.0 * step
        return float(brentq(slope_at, min(t, ahead), max(t, ahead), xtol=1e-13, maxiter=60, disp=False))

    def _slope(self, t: float) -> float:
        """The derivative of min_{w, b} P at sigma = exp(t); the minimiser becomes a candidate."""
        claim, sigma = self.claim, float(np.exp(t))
        problem, solved = self._solved(Huber(claim.epsilon * sigma), claim.penalty.lam * sigma / 2.0)
        self.start = solved
        candidate = self._with_best_scale(solved.w, solved.b)
        self.last_scale = candidate.sigma
        self._judge(replace(candidate, slopes=-2.0 / sigma * solved.alpha), effort="low")
        if solved.status in ("interrupted", "max_iter", "max_seconds"):
            raise _Ended(solved.status)
        r = problem.scores(solved.w, solved.b) - claim.y
        return 1.0 - problem.mean(Scaled(r, sigma).slopes(claim.epsilon) ** 2) / 4.0

    def _solved(self, loss: Loss, lam: float) -> tuple[Problem, Result]:
        """The problem with that loss and L2 penalty, solved from the last result."""
        claim = self.claim
        problem = Problem(claim.design, claim.y, loss, ridge(lam), claim.weights, claim.intercept)
        asked = Request.of(**self.options, **self._limits(), certify_start=False)  # the start is of another scale
        solved = solve_request(problem, asked, self.start)
        self.n_iter, self.solver = self.n_iter + solved.n_iter, solved.solver
        return problem, solved

    def _with_best_scale(self, w: Vector, b: float) -> HuberClaim:
        r = self.claim.design.matvec(w) + b - self.claim.y
        best = self.claim.best_scale(r)
        return replace(self.claim, w=w, b=b + float(best.r[0] - r[0]), sigma=best.sigma)

    def _limits(self) -> dict[str, Any]:
        """The remaining steps and seconds."""
        spent = time.perf_counter() - self.clock
        left = None if self.stop.max_seconds is None else max(self.stop.max_seconds - spent, 1e-9)
        return {"tol": self.inner * self.stop.tol, "max_iter": max(self.limit - self.n_iter, 1), "max_seconds": left}

    def _judge(self, candidate: HuberClaim, effort: str) -> None:
        """Keep the candidate if its gap is the smallest so far, and end the search if it is certified."""
        certificate = replace(candidate.certify(effort, self.stop.tol or None), tol=self.stop.tol)
        if self.best is None or certificate.gap < self.best.gap:
            self.claim, self.best = candidate, certificate
        best = self.best
        seconds = time.perf_counter() - self.clock
        nonzeros = int(np.count_nonzero(self.claim.w))
        row = (self.n_iter, seconds, best.primal, best.dual, best.gap, nonzeros, self.claim.w, self.claim.b)
        self.trace.append(Check(*row))
        if best.ok:
            raise _Ended("certified")
