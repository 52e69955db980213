"""Huber's regression with its scale: a joint certificate for w, b and sigma.

With residuals r_i = x_i.w + b - y_i and H(z) = z^2 for |z| <= epsilon, 2 epsilon |z| - epsilon^2 beyond::

    primal   P(w, b, sigma) = (1/W) sum_i s_i (sigma + sigma H(r_i / sigma)) + lam/2 |w|_2^2,    sigma > 0

H*(a) = a^2 / 4 on |a| <= 2 epsilon, so sigma H(r / sigma) = max_a  a r - sigma a^2 / 4. For any such a the infimum over
w, b and sigma is ::

    dual     D(a) = -(1/W) sum_i s_i a_i y_i - |v|_2^2 / (2 lam),    v = (1/W) sum_i s_i a_i x_i
             subject to |a_i| <= 2 epsilon,  sum_i s_i (1 - a_i^2 / 4) >= 0  (else D is unbounded in sigma),
             and sum_i s_i a_i = 0 with an intercept; with lam = 0, v = 0 in place of the last term.

At the optimum a_i = H'(r_i / sigma). All constraints are convex and hold at a = 0, so theta a with theta <= 1 is
feasible if a is.
(scikit-learn multiplies P by W; its alpha is lam W / 2.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fenchel.certificate.bounds.rounding import DOWN, INPUT, UP, DualPoint, dual_of, gap_between, primal_of
from fenchel.certificate.bounds.unpenalised import FreeDirections
from fenchel.certificate.certificate import Certificate
from fenchel.certificate.certify import certify_weights, search_plan
from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.limits import is_factorable
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.intercept import best_shift
from fenchel.problem.losses import Absolute, Huber
from fenchel.problem.penalties import L2, NoPenalty, Penalty
from fenchel.problem.penalties.base import EVALUATION

#: The most Newton steps; they converge in fewer.
NEWTON_STEPS = 20


def ridge(lam: float) -> Penalty:
    """lam/2 |w|_2^2; lam may be 0."""
    return L2(lam) if lam else NoPenalty()


@dataclass(frozen=True, eq=False)
class Scaled:
    """Residuals (the intercept included) and a scale."""

    r: Vector
    sigma: float

    def slopes(self, epsilon: float) -> Vector:
        """H'(r_i / sigma)."""
        return np.clip(2.0 / self.sigma * self.r, -2.0 * epsilon, 2.0 * epsilon)

    def loss(self, epsilon: float) -> Vector:
        """sigma H(r_i / sigma) = c (2 |r_i| - c sigma) with c = min(|r_i| / sigma, epsilon)."""
        clipped = np.minimum(np.abs(self.r) / self.sigma, epsilon)
        return clipped * (2.0 * np.abs(self.r) - clipped * self.sigma)


@dataclass(frozen=True, eq=False)
class HuberClaim:
    """w, b and sigma minimise P with an L2 penalty or none. `slopes` is a dual point a, if one is known."""

    design: Design
    y: Vector
    weights: Vector
    penalty: Penalty
    epsilon: float
    intercept: bool
    w: Vector
    b: float
    sigma: float
    slopes: Vector | None = None
    scale: float = 1.0

    @np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
    def certify(self, effort: str, tol: float | None) -> Certificate:
        if self.b != 0.0 and not self.intercept:
            raise ValueError(f"the intercept is {self.b:g}, but the model was fitted without one")
        plan = search_plan(effort, tol)
        primal, upper, r = self._primal()
        found = [(0.0, 0.0, "zero")]
        if np.isfinite(upper):
            found.append(self._dual(self.best_scale(r)))
            if self.slopes is not None:
                found.append(self._bound(self.slopes, "given multipliers"))
            if plan.recover and gap_between(upper, max(lower for _, lower, _ in found)) > plan.tol * primal:
                found.append(self._absolute(effort, tol) if self.epsilon <= 1.0 else self._polished(r))
        dual, lower, how = max(found, key=lambda bound: bound[1])
        size = 2.0 * self.epsilon * self._mean(np.abs(self.y))  # P at w = 0, b = 0, sigma -> 0
        mu = self.penalty.strong_convexity
        return Certificate.of(primal, upper, dual, lower, how=how, tol=plan.tol, at_zero=size, strong_convexity=mu)

    def _mean(self, values: Vector) -> float:
        return float(np.sum(self.weights * np.where(self.weights > 0, values, 0.0))) / float(self.weights.sum())

    def _primal(self) -> tuple[float, float, Vector]:
        """P as computed, an upper bound, and the residuals. The loss increases in |r|: evaluate it at |r| + error."""
        with np.errstate(over="ignore", invalid="ignore"):
            product = self.design.matvec_bounded(self.w)
            r = product.value + self.b - self.y
            error = product.error + INPUT * (np.abs(product.value) + abs(self.b) + np.abs(self.y))
            loss = self.sigma + self._mean(Scaled(r, self.sigma).loss(self.epsilon))
            worst = self.sigma + UP * self._mean(Scaled(np.abs(r) + error, self.sigma).loss(self.epsilon))
            penalty = self.penalty
            primal, upper = primal_of(loss, worst - loss, penalty.value(self.w), penalty.value_upper(self.w))
        return (primal, upper, r) if np.isfinite(upper) else (np.inf, np.inf, r)

    def _dual(self, state: Scaled, how: str = "gradient") -> tuple[float, float, str]:
        """D at a_i = H'(r_i / sigma)."""
        return self._bound(state.slopes(self.epsilon), how)

    def _bound(self, a: Vector, how: str) -> tuple[float, float, str]:
        """D as computed, and a lower bound, at a made feasible."""
        if self.penalty.is_zero:
            return self._free_bound(a, how)
        a, shrink = self._feasible(np.clip(a, -2.0 * self.epsilon, 2.0 * self.epsilon))
        with np.errstate(over="ignore", invalid="ignore"):
            linear = -self._mean(a * self.y)
            product = self.design.rmatvec_bounded(self.weights * a)
            W = float(self.weights.sum())
            v, error = product.value / W, (product.error + (2.0 * EVALUATION + shrink) * product.absolute) / W * UP
            conjugate = self.penalty.conjugate(v)
            # D(theta a) = theta linear - theta^2 conjugate
            theta = float(np.clip(linear / (2.0 * conjugate), 0.0, 1.0)) if conjugate > 0.0 else 1.0
            theta = 1.0 if theta > 0.999 else theta
            error_of_linear = (2.0 * EVALUATION + shrink) * self._mean(np.abs(a * self.y))
            conjugate_upper = self.penalty.conjugate_upper(theta * v, theta * error * UP)
            least = theta * (linear - error_of_linear)
            dual, lower = dual_of(theta * linear, least, theta**2 * conjugate, conjugate_upper)
        if not np.isfinite(lower):
            return 0.0, 0.0, "zero"
        return dual, lower, how if theta == 1.0 else f"{how}, rescaled"

    def _free_bound(self, a: Vector, how: str) -> tuple[float, float, str]:
        """The same without a penalty: D is linear, at an a with v = 0 in exact arithmetic, as for the Huber loss."""
        problem = Problem(self.design, self.y, Huber(self.epsilon), self.penalty, self.weights, self.intercept)
        point = FreeDirections.of(problem).satisfy(problem, DualPoint(-0.5 * a, how=how))
        alpha, size = point.alpha, np.abs(point.alpha)
        moved = np.zeros_like(alpha) if point.moved is None else point.moved
        square = self._mean((size + moved) ** 2) * UP
        theta = DOWN / np.sqrt(square) if square * UP > 1.0 else 1.0
        linear = 2.0 * self._mean(alpha * self.y)
        error = 2.0 * UP * self._mean((moved + (2.0 * EVALUATION + point.shrink) * size) * np.abs(self.y))
        dual, lower = dual_of(theta * linear, theta * (linear - error), 0.0, 0.0)
        return (dual, lower, point.how) if lower > 0.0 else (0.0, 0.0, "zero")

    def best_scale(self, r: Vector) -> Scaled:
        """The best b and sigma for these weights: the root of mean(1 - a^2 / 4), the derivative in sigma.

        It is positive where sigma is twice the largest |r_i|, since a^2 / 4 <= H: with the best b the mean of H is at
        most what it is with the given one, 1/4.
        """
        largest = float(np.abs(r[self.weights > 0]).max())
        if largest == 0.0:
            return Scaled(r, self.sigma)
        pieces = self._best_of_pieces(r)
        if pieces is not None:
            return pieces

        def at(log_sigma: float) -> Scaled:
            sigma = float(np.exp(log_sigma))
            if not self.intercept:
                return Scaled(r, sigma)
            return Scaled(r + best_shift(Huber(self.epsilon * sigma), r, np.zeros_like(r), self.weights), sigma)

        def excess(log_sigma: float) -> float:
            return 1.0 - self._mean(at(log_sigma).slopes(self.epsilon) ** 2) / 4.0

        low, high = np.log(UNIT_ROUNDOFF * largest), np.log(2.0 * largest)
        if excess(low) >= 0.0:
            return at(low)
        return at(float(brentq(excess, low, high, xtol=1e-15, rtol=8.9e-16, maxiter=200, disp=False)))

    def _best_of_pieces(self, r: Vector) -> Scaled | None:
        """The best b and sigma by Newton steps; None if these do not end.

        Let I be the samples with |r_i + b| <= epsilon sigma, p_I their part of the weight, m and V the mean and p_I
        times the variance of their r, and q and u the part of the others and their mean sign times q. Where I is fixed,
        P is stationary at  b = -m - k sigma,  k = epsilon u / p_I,  and  sigma^2 (1 - epsilon^2 q - p_I k^2) = V.
        """
        p, epsilon = self.weights / float(self.weights.sum()), self.epsilon
        b, sigma, before = 0.0, self.sigma, None
        for _ in range(NEWTON_STEPS):
            inner = np.abs(r + b) <= epsilon * sigma
            if before is not None and np.array_equal(inner, before):
                return Scaled(r + b, sigma)
            part = p * inner
            mass, signs = float(part.sum()), float((p - part) @ np.sign(r + b))
            if not mass > 0.0:
                return None
            mean = float(part @ r) / mass if self.intercept else 0.0
            k = epsilon * signs / mass if self.intercept else 0.0
            left, variance = 1.0 - epsilon**2 * (1.0 - mass) - mass * k**2, float(part @ np.square(r - mean))
            if not (left > EVALUATION and 0.0 < variance < np.inf):
                return None
            sigma, before = float(np.sqrt(variance / left)), inner
            b = -mean - k * sigma
        return None

    def _polished(self, r: Vector) -> tuple[float, float, str]:
        """D after Newton steps on w, b and sigma: the dual point may come from other weights than the model's."""
        n, d = self.design.shape
        state = self.best_scale(r)
        if n * d > limits.TUNING.dense or not is_factorable(d, NEWTON_STEPS * n):
            return self._dual(state)
        X, s, W = self.design.rows(np.arange(n)), self.weights, float(self.weights.sum())
        lam, w, start = self.penalty.lam, self.w, r
        columns = np.column_stack([X, np.ones(n)]) if self.intercept else X
        for _ in range(NEWTON_STEPS):
            inner = np.abs(state.r) <= self.epsilon * state.sigma
            # derivatives of sigma + sigma H(r / sigma) in r and sigma; the second ones are zero beyond epsilon
            z = np.where(inner, state.r / state.sigma, 0.0)
            A = np.column_stack([columns, -z]) * np.sqrt(2.0 * s * inner / (W * state.sigma))[:, None]
            hessian = A.T @ A
            hessian[np.arange(d), np.arange(d)] += lam
            slopes = state.slopes(self.epsilon)
            gradient = np.append(columns.T @ (s * slopes) / W, 1.0 - self._mean(slopes**2) / 4.0)
            gradient[:d] += lam * w
            if not (np.all(np.isfinite(hessian)) and np.all(np.isfinite(gradient))):
                break
            step = -np.linalg.lstsq(hessian, gradient, rcond=None)[0][:d]
            value = self._value(state, w)
            for scale in 0.5 ** np.arange(12):
                trial = self.best_scale(start + X @ (w + scale * step - self.w))
                if self._value(trial, w + scale * step) < value:
                    break
            else:
                break
            w, state = w + scale * step, trial
        return self._dual(state, "Newton steps")

    def _value(self, state: Scaled, w: Vector) -> float:
        """P at w and the residuals and scale of `state`."""
        return state.sigma + self._mean(state.loss(self.epsilon)) + self.penalty.value(w)

    def _absolute(self, effort: str, tol: float | None) -> tuple[float, float, str]:
        """For epsilon <= 1 the constraint on sum a^2 always holds: the dual is that of 2 epsilon |r|, sigma -> 0."""
        scale = 2.0 * self.epsilon
        penalty = ridge(self.penalty.lam / scale * DOWN)  # rounded down: P* increases in lam
        problem = Problem(self.design, self.y, Absolute(), penalty, self.weights, self.intercept)
        found = certify_weights(problem, self.w, self.b, None, effort, tol)
        lower = scale * (found.primal - found.gap)
        return scale * found.dual, lower - EVALUATION * scale * (abs(found.primal) + found.gap), found.how

    def _feasible(self, a: Vector) -> tuple[Vector, float]:
        """a scaled to satisfy all constraints up to rounding, and the further relative shrinking that is exact."""
        shrink = 0.0
        a = np.where(self.weights > 0, a, 0.0)
        if self.intercept:
            term = self.weights * a
            up, down = float(term[term > 0].sum()), float(-term[term < 0].sum())
            if min(up, down) <= 0.0:
                return np.zeros_like(a), 0.0
            heavier = term > 0 if up > down else term < 0
            a = np.where(heavier, min(up, down) / max(up, down) * a, a)
            shrink = 2.0 * EVALUATION
        square = self._mean(a**2) / 4.0 * UP
        if square > 1.0:
            a, shrink = a * (DOWN / np.sqrt(square)), shrink + EVALUATION
        return a, shrink
