"""The primal-dual hybrid gradient: any loss, any penalty with a prox (or the l1 norm of D w).

One step T of Chambolle and Pock (2011) on the saddle point of P and D, in a restarted Halpern iteration with reflection
(Lu and Yang 2024):

    x_{k+1} = (k / (k + 1)) (2 T(x_k) - x_k) + (1 / (k + 1)) anchor.

A restart moves the anchor to T(x_k) when the fixed-point error |x_k - T(x_k)| is 0.2 of the first one since the last
restart, 0.8 of it and increasing, or after 0.36 of all steps, as in PDLP (Applegate et al. 2021; values of Lu and Yang
2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties.base import Penalty
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.first_order.fused_face import FusedFace
from fenchel.steps.linear_algebra.scaled_operator import ScaledOperator


@dataclass(frozen=True)
class Iterate:
    """Primal w and shift (centred intercept), dual alpha and u, and their images under the linear maps."""

    w: Vector
    shift: float
    alpha: Vector
    u: Vector  # multipliers of D w; empty without an analysis operator
    z: Vector  # centred scores
    Dw: Vector
    v: Vector  # backward(alpha) - D'u
    r: float

    def __add__(self, other: Iterate) -> Iterate:
        return Iterate(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))

    def __rmul__(self, factor: float) -> Iterate:
        return Iterate(*(factor * part for part in vars(self).values()))


@dataclass(frozen=True)
class SaddleState:
    """Point, anchor, counters, fixed-point errors, and the ratio of dual to primal step sizes."""

    point: Iterate
    output: Iterate  # T(point), inside the domains; certified
    anchor: Iterate
    weight: float
    inner: int
    total: int
    first_error: float
    last_error: float


class Saddle:
    """The iteration for one problem: `start`, then `step` repeatedly."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        self.problem = problem
        self.operator = ScaledOperator.of(problem, seed)
        analysis: tuple[sp.csr_array | None, Penalty] = problem.penalty.analysis or (None, problem.penalty)
        self.D, self.outer = analysis
        rows = 0 if self.D is None else self.D.shape[0]
        self.dual_scale, norm2 = 1.0, self.operator.norm2
        if self.D is not None and rows:
            # relative step size of u, so that the scaled D has the norm of the scaled X
            size = float(np.max(abs(self.D) @ (self.operator.steps * (abs(self.D).T @ np.ones(rows)))))
            self.dual_scale = norm2 / size
            norm2 *= 2.0
        self.eta = 0.99 / np.sqrt(norm2)
        self.rows = rows

    def start(self, w: Vector, b: float, alpha: Vector) -> SaddleState:
        """From given weights and multipliers."""
        point = self._images(w, self.operator.shift(w, b), alpha, np.zeros(self.rows))
        weight = self._first_weight(w, alpha)
        return SaddleState(point, point, point, weight, 0, 0, np.inf, np.inf)

    def step(self, state: SaddleState) -> SaddleState:
        """One application of T, then a restart or Halpern's average with the anchor."""
        output = self._apply(state.point, state.weight)
        error = self._distance(state.point, output, state.weight)
        inner, total = state.inner + 1, state.total + 1
        first = error if inner == 1 else state.first_error
        restart = inner > 1 and (
            error <= 0.2 * first or (error <= 0.8 * first and error > state.last_error) or inner >= 0.36 * total + 100
        )
        if restart:
            weight = self._rebalance(state.anchor, output, state.weight)
            return SaddleState(output, output, output, weight, 0, total, np.inf, np.inf)
        weight = inner / (inner + 1.0)
        point = weight * (2.0 * output + (-1.0) * state.point) + (1.0 - weight) * state.anchor
        return replace(state, point=point, output=output, inner=inner, total=total, first_error=first, last_error=error)

    def candidate(self, state: SaddleState) -> tuple[Vector, float, Vector]:
        """Weights, intercept and multipliers to certify."""
        output = state.output
        return output.w, self.operator.intercept(output.w, output.shift), output.alpha

    def _apply(self, at: Iterate, weight: float) -> Iterate:
        """T: a proximal step on w along v, then dual steps at the extrapolated scores."""
        tau, sigma = self.eta / weight, self.eta * weight
        if not (0.0 < tau < np.inf and 0.0 < sigma < np.inf and np.all(np.isfinite(tau * self.operator.steps * at.v))):
            raise Overflow("the problem's scale exceeds double precision; rescale the features or lam")
        w = at.w + tau * self.operator.steps * at.v
        if self.D is None:
            w = self.problem.penalty.prox(w, tau * self.operator.steps)
            if not np.all(np.isfinite(w)):
                raise Overflow("the penalty's proximal map overflows; rescale the features or lam")
        shift = at.shift + tau * self.operator.intercept_step * at.r
        z = self.operator.forward(w, shift)
        with np.errstate(over="ignore", invalid="ignore"):
            alpha = self.problem.loss.dual_step(at.alpha, 2.0 * z - at.z, 1.0 / sigma, self.problem.y)
        u, Dw = at.u, at.Dw
        if self.D is not None:
            Dw = np.asarray(self.D @ w)
            u = _conjugate_prox(
                self.outer, at.u + sigma * self.dual_scale * (2.0 * Dw - at.Dw), sigma * self.dual_scale
            )
        v, r = self._adjoint(alpha, u)
        return Iterate(w, shift, alpha, u, z, Dw, v, r)

    def _images(self, w: Vector, shift: float, alpha: Vector, u: Vector) -> Iterate:
        Dw = np.zeros(0) if self.D is None else np.asarray(self.D @ w)
        return Iterate(w, shift, alpha, u, self.operator.forward(w, shift), Dw, *self._adjoint(alpha, u))

    def _adjoint(self, alpha: Vector, u: Vector) -> tuple[Vector, float]:
        v, r = self.operator.backward(alpha)
        return (v if self.D is None else v - self.D.T @ u), r

    def _lengths(self, a: Iterate, b: Iterate) -> tuple[float, float]:
        """Squared primal and dual distances in the metric of the steps."""
        s, W = self.problem.weights, self.problem.total_weight
        primal = float(np.sum((a.w - b.w) ** 2 / self.operator.steps))
        if self.operator.intercept_step:
            primal += (a.shift - b.shift) ** 2 / self.operator.intercept_step
        dual = float(np.sum(s * (a.alpha - b.alpha) ** 2)) / W + float(np.sum((a.u - b.u) ** 2)) / self.dual_scale
        return primal, dual

    def _distance(self, a: Iterate, b: Iterate, weight: float) -> float:
        primal, dual = self._lengths(a, b)
        return float(np.sqrt(weight * primal + dual / weight))

    def _first_weight(self, w: Vector, alpha: Vector) -> float:
        n, d = self.problem.shape
        origin = self._images(np.zeros(d), 0.0, np.zeros(n), np.zeros(self.rows))
        return self._rebalance(origin, self._images(w, 0.0, alpha, np.zeros(self.rows)), 1.0, smoothing=0.0)

    def _rebalance(self, a: Iterate, b: Iterate, weight: float, smoothing: float = 0.5) -> float:
        """The ratio of dual to primal distance of two iterates, geometrically averaged with the last ratio."""
        primal, dual = self._lengths(a, b)
        if not (1e-200 < primal < 1e200 and 1e-200 < dual < 1e200):
            return weight
        return float(np.sqrt(dual / primal) ** (1.0 - smoothing) * weight**smoothing)


@dataclass(frozen=True)
class PDHGState:
    """The iteration, its state, and the faces of a fused Lasso."""

    saddle: Saddle
    at: SaddleState
    face: FusedFace | None


@dataclass(frozen=True)
class PDHG(Solver[PDHGState]):
    """Primal-dual steps with restarts, primal and dual step sizes balanced at each restart."""

    name = "pdhg"
    any_storage = True
    summary = "any loss and penalty: primal-dual steps"
    requires = frozenset[Trait]()
    steps_per_check = 30
    passes_per_step = 2
    needs_storage = False

    def begin(self, problem: Problem, start: Start, seed: int) -> PDHGState:
        saddle = Saddle(problem, seed)
        return PDHGState(saddle, saddle.start(start.w, start.b, start.alpha), FusedFace.of(problem))

    def step(self, state: PDHGState) -> PDHGState:
        return replace(state, at=state.saddle.step(state.at))

    def candidates(self, state: PDHGState) -> Sequence[Candidate]:
        saddle, output = state.saddle, state.at.output
        u = output.u if saddle.rows else None
        own = Candidate(*saddle.candidate(state.at), u=u)
        return [own] if state.face is None else state.face.candidates(own)


def _conjugate_prox(penalty: Penalty, u: Vector, sigma: float) -> Vector:
    """prox of sigma S* by Moreau: u - sigma prox_{S / sigma}(u / sigma)."""
    return u - sigma * penalty.prox(u / sigma, 1.0 / sigma)
