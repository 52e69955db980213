"""The squared p-norm of the Primal Gradient Solver, 1 < p <= 2, optionally on a ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledLink, kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION, FEASIBILITY, LinkDerivative, Penalty, Subgradients
from fenchel.problem.vectors import (
    bracketed_root,
    dual_exponent,
    p_norm,
    set_number,
    set_positive,
    square_over,
    times_square,
)


@dataclass(frozen=True)
class LpSquared(Penalty):
    """lam/2 |w|_p^2, 1 < p <= 2, on |w|_p <= radius if one is given.

    R*(v) = |v|_q^2 / (2 lam) with 1/p + 1/q = 1 while |v|_q <= lam radius, else radius |v|_q - lam radius^2 / 2.
    The link is grad R*(v) = sign(v_j) |v_j|^(q-1) |v|_q^(2-q) / lam, shrunk to p-norm radius if longer.
    Strong convexity: lam (p - 1) in the p-norm.
    """

    lam: float
    p: float = 1.5
    radius: float | None = None

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        if not 1.0 < set_number(self, "p") <= 2.0:
            raise ValueError(f"LpSquared: p must lie in (1, 2], got {self.p!r}")
        if self.radius is not None:
            set_positive(self, "radius")

    @property
    def q(self) -> float:
        """The dual exponent."""
        return dual_exponent(self.p)

    @property
    def strong_convexity(self) -> float:
        return self.lam * (self.p - 1.0)

    @property
    def norm(self) -> float:
        return self.p

    def kernel(self) -> CompiledLink:
        return kernels.Power(self.p, self.ball)

    @property
    def ball(self) -> float:
        """The radius, infinite if there is none."""
        return np.inf if self.radius is None else self.radius

    def value(self, w: Vector) -> float:
        return times_square(self.lam / 2.0, p_norm(w, self.p)) if np.isfinite(self.slack(w)) else np.inf

    def slack(self, w: Vector) -> float:
        """|w|_p / radius - 1 if positive and within rounding: w then stands for its projection onto the ball."""
        if self.radius is None:
            return 0.0
        excess = p_norm(w, self.p) / self.radius - 1.0
        if excess > FEASIBILITY:
            return np.inf
        return max(0.0, excess + 256 * UNIT_ROUNDOFF)

    def conjugate(self, v: Vector) -> float:
        length = p_norm(v, self.q)
        if length <= self.lam * self.ball:
            return square_over(length, 2.0 * self.lam)
        return self.ball * (length - self.lam * self.ball / 2.0)

    def grad_conjugate(self, v: Vector) -> Vector:
        length = p_norm(v, self.q)
        if length == 0.0:
            return np.zeros_like(v)
        with np.errstate(under="ignore"):
            direction = np.sign(v) * (np.abs(v) / length) ** (self.q - 1.0)  # of p-norm 1
        return direction * min(length / self.lam, self.ball)

    def link_derivative(self, v: Vector) -> LinkDerivative | None:
        """With r_j = |v_j| / |v|_q: (q - 1) r_j^(q-2) / lam on the diagonal, and (2 - q) / lam times f f', where
        f_j = sign(v_j) r_j^(q-1). None on a ball.
        """
        length = p_norm(v, self.q)
        if self.radius is not None:
            return None
        if length == 0.0:
            return LinkDerivative(np.full(len(v), (self.q - 1.0) / self.lam))
        with np.errstate(under="ignore"):
            ratio = np.abs(v) / length
            diagonal = (self.q - 1.0) / self.lam * ratio ** (self.q - 2.0)
            direction = np.sign(v) * ratio ** (self.q - 1.0)
        return LinkDerivative(diagonal, (2.0 - self.q) / self.lam, direction)

    def domain_support(self, v: Vector, error: Vector) -> float:
        """radius |v|_q, infinite without a radius."""
        length = p_norm((np.abs(v) + error) * (1.0 + EVALUATION), self.q)
        return self.ball * length * (1.0 + EVALUATION) if length else 0.0

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """R increases in every |w_j|; infinite unless all points are on the ball."""
        most = (np.abs(w) + error) * (1.0 + EVALUATION)
        inside = self.radius is None or p_norm(most, self.p) * (1.0 + EVALUATION) <= self.radius
        return self.value_upper(most) if inside else np.inf

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """|x_j| + c |x_j|^(p-1) = |w_j| with c = t lam |x|_p^(2-p): |x|_p is the root of a decreasing function."""
        size, tau = np.abs(w), float(np.min(t)) * self.lam
        length = p_norm(w, self.p)
        if length == 0.0:
            return np.zeros_like(w)
        r = self.p - 1.0

        def at(c: float) -> Vector:
            return np.sign(w) * solve_power(size, c, r)

        def log_norm(log_s: float) -> float:
            return float(np.log(p_norm(at(tau * np.exp(log_s * (2.0 - self.p))), self.p)))

        # the norm lies between |x(length)|_p and length; in logarithms, since it may be tiny
        high = float(np.log(length))
        low = log_norm(high)
        if not np.isfinite(low):
            return np.zeros_like(w)
        log_s = high if low >= high else bracketed_root(lambda t: log_norm(t) - t, low, high)
        x = at(tau * np.exp(log_s * (2.0 - self.p)))
        if p_norm(x, self.p) <= self.ball:
            return x
        # on the sphere: c is the multiplier that brings the norm down to the radius
        low = high = float(np.log(max(tau, 1e-300)))
        while p_norm(at(np.exp(high)), self.p) > self.ball:
            low, high = high, high + 2.0
        while p_norm(at(np.exp(low)), self.p) < self.ball:
            low, high = low - 2.0, low
        x = at(np.exp(bracketed_root(lambda t: p_norm(at(np.exp(t)), self.p) - self.ball, low, high)))
        return x * min(1.0, self.ball / p_norm(x, self.p))

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam |w|_p^(2-p) |w_j|^(p-1) sign(w_j); on the sphere, any larger multiple of it."""
        length = p_norm(w, self.p)
        if length == 0.0:
            return Subgradients(np.zeros_like(w))
        gradient = self.lam * length * np.sign(w) * (np.abs(w) / length) ** (self.p - 1.0)
        if length < self.ball * (1.0 - 1e-7):
            return Subgradients(gradient)
        return Subgradients(gradient, gradient[:, None], np.zeros(1), np.array([np.inf]))


def solve_power(a: Vector, c: float, r: float) -> Vector:
    """The x >= 0 with x + c x^r = a, for a >= 0, c >= 0, 0 < r <= 1.

    In y = log x the logarithm of the left side is convex and increasing with slope in [r, 1]: Newton's method from the
    right converges monotonically.
    """
    if c == 0.0:
        return a.copy()
    if r == 1.0:
        return a / (1.0 + c)
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        log_a, log_c = np.log(a), np.log(c)
        y = np.minimum(log_a, (log_a - log_c) / r)
        for _ in range(100):
            other = log_c + r * y
            both = np.logaddexp(y, other)
            slope = np.exp(y - both) + r * np.exp(other - both)
            change = (both - log_a) / slope
            y = y - np.where(np.isfinite(change), change, 0.0)
            if not np.any(np.abs(change[np.isfinite(change)]) > 1e-15 * (1.0 + np.abs(y[np.isfinite(change)]))):
                break
        return np.where(a > 0, np.exp(y), 0.0)
