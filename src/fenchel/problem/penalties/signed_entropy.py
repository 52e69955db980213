"""The entropy of weights of both signs, on a ball of the 1-norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledLink, kernels
from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import EVALUATION, FEASIBILITY, LinkDerivative, Penalty, Subgradients
from fenchel.problem.sets import Simplex
from fenchel.problem.vectors import bracketed_root, p_norm, set_positive

#: |w|_1 / radius from which R is taken from its value on the sphere: there 1 - |w|_1 / radius is mostly rounding.
NEAR_SPHERE = 1.0 - 4.0 * EVALUATION
#: |v| / lam up to which R* is computed by hyperbolic sines; their squares do not overflow.
SINH_RANGE = 500.0
#: Bounds underflow in sums of terms of size 1.
UNDERFLOW = 1e-300


@dataclass(frozen=True)
class SignedEntropy(Penalty):
    """The least relative entropy of a splitting w = a - b, sum_j a_j + b_j = B = radius, a, b >= 0, times lam:

        R(w) = lam min sum_j a_j log(2 d a_j / B) + b_j log(2 d b_j / B),   on |w|_1 <= B.

    At the minimum a_j b_j = c^2: with s_j = sqrt(w_j^2 + 4 c^2) and c such that sum_j s_j = B,

        R(w) / lam = sum_j (w_j asinh(w_j / 2c) - w_j^2 / (s_j + 2c)) - B (t + e^-t - 1),   t = log(B / 2dc).

    R*(v) = lam B log((1/d) sum_j cosh(v_j / lam)). The link is w_j = B sinh(v_j / lam) / sum_k cosh(v_k / lam), which
    makes the Primal Gradient Solver the exponentiated gradient algorithm with both signs (Kivinen and Warmuth 1997).
    Strong convexity: lam / B in the 1-norm, since a and b are B times a point of a simplex. R is 0 at w = 0 only, and
    lam (sum_j |w_j| log |w_j| + B log(2d / B)) where |w|_1 = B. Most weights of the optimum are nearly zero.
    """

    lam: float
    radius: float

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        set_positive(self, "radius")
        if not 0.0 < self.lam / self.radius < np.inf or not 0.0 < self.lam * self.radius < np.inf:
            raise ValueError(
                "SignedEntropy: lam / radius and lam radius must be positive finite numbers; "
                f"got lam={self.lam!r}, radius={self.radius!r}"
            )

    @property
    def strong_convexity(self) -> float:
        return self.lam / self.radius

    @property
    def norm(self) -> float:
        return 1.0

    @property
    def ball(self) -> float:
        """The radius."""
        return self.radius

    def kernel(self) -> CompiledLink:
        return kernels.Entropic(self.radius)

    def _scaled(self, w: Vector) -> tuple[float, float]:
        """R(w) / (lam B) and a bound on how far it is from the exact value, inside the ball.

        The formula is a lower bound for every c (Lagrange), and concave in t with the derivative sum_j s_j - B. So at
        any t its error is at most |sum_j s_j - B| times the distance to the best t; both lie in
        [0, -log(1 - |w|_1 / B)], because sum_j s_j is at most |w|_1 + 2 c d.

        Near the sphere, at w = (1 - x) u with |u|_1 = B, the slope along u is at most asinh(d / x) <= log(3 d / x), as
        t <= -log x. So R on the sphere, at u, is above R(w) by at most x (log(3 d / x) + 1), the integral.
        """
        a = np.abs(w) / self.radius
        total = float(a.sum())
        if total == 0.0:
            return 0.0, 0.0
        if total >= NEAR_SPHERE:  # R increases along rays: its value on the sphere is a bound
            x = max(0.0, 1.0 - total) + 2.0 * EVALUATION  # the total is rounded, too
            beyond = x * (float(np.log(3.0 * len(w) / x)) + 1.0) * 1.01
            ratio = a / total
            with np.errstate(under="ignore"):
                terms = ratio * np.log(np.maximum(ratio * (2.0 * len(w)), UNDERFLOW))
            return float(terms.sum()), EVALUATION * (1.0 + float(np.abs(terms).sum())) + beyond
        most = -float(np.log1p(-total))
        t = bracketed_root(lambda t: float(np.expm1(-t)) + float(_excess(a, _half(t, len(w))).sum()), 0.0, most)
        c = _half(t, len(w))
        with np.errstate(under="ignore"):
            first, second = a * np.arcsinh(a / (2.0 * c)), _excess(a, c)
        h = t + float(np.expm1(-t))
        rest = float(np.expm1(-t)) + float(second.sum())
        sizes = float(first.sum()) + 2.0 * float(second.sum()) + 2.0 * t
        error = (abs(rest) + EVALUATION * sizes) * most * 1.01 + EVALUATION * sizes
        return float((first - second).sum()) - h, error

    def value(self, w: Vector) -> float:
        return self.lam * self.radius * self._scaled(w)[0] if np.isfinite(self.slack(w)) else np.inf

    def slack(self, w: Vector) -> float:
        """|w|_1 / radius - 1 if positive and within rounding: w then stands for the point of the ball on its ray."""
        excess = float(np.sum(np.abs(w) / self.radius)) - 1.0
        if not excess <= FEASIBILITY:
            return np.inf
        return max(0.0, excess + EVALUATION)

    def value_upper(self, w: Vector) -> float:
        if not np.isfinite(self.slack(w)):
            return np.inf
        value, error = self._scaled(w)
        return self.lam * self.radius * (value + error + len(w) * UNDERFLOW) * (1.0 + EVALUATION) + 5e-324

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """R increases in every |w_j|; infinite unless all points are in the ball."""
        most = (np.abs(w) + error) * (1.0 + EVALUATION)
        inside = float(np.sum(most / self.radius)) * (1.0 + EVALUATION) <= 1.0
        return self.value_upper(most) if inside else np.inf

    def _log_mean_cosh(self, v: Vector) -> tuple[float, float]:
        """log((1/d) sum_j cosh(v_j / lam)), and a bound on its rounding error.

        As log(1 + x), x the mean of 2 sinh^2(v_j / 2 lam), unless this might overflow: x is off by a part
        (1 + |v|_inf / lam) EVALUATION at most, which changes the logarithm by at most this part of itself.
        """
        top = float(np.max(np.abs(v), initial=0.0))
        if top == 0.0:
            return 0.0, 0.0
        if top <= SINH_RANGE * self.lam:
            with np.errstate(under="ignore"):
                x = np.abs(v) / self.lam
                value = float(np.log1p(np.mean(2.0 * np.sinh(0.5 * x) ** 2)))
            return value, EVALUATION * (1.0 + top / self.lam) * value + UNDERFLOW
        grown, shrunk = self._terms(v)
        value = top / self.lam + float(np.log((grown + shrunk).mean() / 2.0))
        return value, EVALUATION * (2.0 * top / self.lam + np.log(2.0 * len(v)) + 1.0)

    def _terms(self, v: Vector) -> tuple[Vector, Vector]:
        """exp(|v_j| / lam) and exp(-|v_j| / lam), each over exp(|v|_inf / lam)."""
        size = np.abs(v)
        top = np.max(size)
        with np.errstate(under="ignore", over="ignore"):
            return np.exp((size - top) / self.lam), np.exp(-(size / self.lam) - top / self.lam)

    def conjugate(self, v: Vector) -> float:
        top = float(np.max(np.abs(v), initial=0.0))
        if not np.isfinite(top / self.lam):
            return self.radius * top
        return self.lam * self._log_mean_cosh(v)[0] * self.radius

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """R* increases in every |v_j|; it is at most B |v|_inf."""
        most = np.abs(v) * (1.0 + EVALUATION) + error
        top = float(np.max(most, initial=0.0))
        if not np.isfinite(top / self.lam):
            return self.radius * top * (1.0 + EVALUATION)
        value, off = self._log_mean_cosh(most)
        return min(self.lam * (value + off) * self.radius, self.radius * top) * (1.0 + EVALUATION) + 5e-324

    def grad_conjugate(self, v: Vector) -> Vector:
        size = np.abs(v)
        grown, shrunk = self._terms(v)
        with np.errstate(under="ignore", over="ignore"):
            part = np.sign(v) * grown * -np.expm1(-2.0 * (size / self.lam))
            return np.asarray(part / (grown + shrunk).sum() * self.radius)

    def link_derivative(self, v: Vector) -> LinkDerivative:
        """(diag(B cosh(v_j / lam) / sum_k cosh(v_k / lam)) - w w' / B) / lam."""
        grown, shrunk = self._terms(v)
        both = grown + shrunk
        w = self.grad_conjugate(v)
        return LinkDerivative(both / both.sum() * (self.radius / self.lam), -1.0 / (self.lam * self.radius), w)

    def domain_support(self, v: Vector, error: Vector) -> float:
        """radius |v|_inf."""
        return self.radius * float(np.max(np.abs(v) * (1.0 + EVALUATION) + error, initial=0.0)) * (1.0 + EVALUATION)

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """x_j + tau asinh(x_j / 2c) = w_j with tau = t lam, and c such that sum_j sqrt(x_j^2 + 4 c^2) = radius.

        With nu = -tau log c the sum is a decreasing function of nu.
        """
        step = float(np.min(t))
        size, tau, d, B = np.abs(w), step * self.lam, len(w), self.radius
        if tau > 1e15 * B:  # x_j is negligible beside tau asinh(x_j / 2c)
            return self.grad_conjugate(w / step)
        top = float(size.max())
        if tau <= 1e-18 * top:  # the entropy is nothing beside the ball
            total = float(np.sum(size / B))
            return w if total <= 1.0 else np.sign(w) * B * Simplex().project(size / B)
        low = -tau * float(np.log(B / (2.0 * d)))
        # c >= B / (2 sum cosh(|w_j| / tau)), because x_j <= 2c sinh(|w_j| / tau)
        high = top + tau * float(np.log(2.0 * d) - np.log(B))

        def excess(nu: float) -> float:
            a, b = _split(size, tau, nu)
            return float(np.sum(a + b)) / B - 1.0

        pad = 1e-14 * (abs(low) + abs(high))
        nu = bracketed_root(excess, low - pad, high + pad)
        a, b = _split(size, tau, nu)
        x = np.sign(w) * np.maximum(a - b, 0.0)
        return np.asarray(x * min(1.0, B / max(p_norm(x, 1.0), 1e-300)))

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam asinh(w_j / 2c); it grows without bound towards the sphere."""
        a = w / self.radius
        total = min(float(np.abs(a).sum()), NEAR_SPHERE)
        most, size = -float(np.log1p(-total)), np.abs(a)
        t = bracketed_root(lambda t: float(np.expm1(-t)) + float(_excess(size, _half(t, len(w))).sum()), 0.0, most)
        return Subgradients(self.lam * np.arcsinh(a / (2.0 * _half(t, len(w)))))


def _half(t: float, d: int) -> float:
    """c / B = e^-t / 2d."""
    return float(np.exp(-t)) / (2.0 * d)


def _excess(a: Vector, c: float) -> Vector:
    """sqrt(a_j^2 + 4 c^2) - 2c, without cancellation."""
    with np.errstate(under="ignore"):
        return np.asarray(a * (a / (np.hypot(a, 2.0 * c) + 2.0 * c)))


def _split(size: Vector, tau: float, nu: float) -> tuple[Vector, Vector]:
    """a_j = c e^s, b_j = c e^-s with a_j - b_j + tau s = size_j, s >= 0 and c = exp(-nu / tau).

    Newton's method in log a_j, from the right, where the equation is convex; b_j = c^2 / a_j may underflow.
    """
    log_c = -nu / tau
    rest = size - nu
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        c = np.exp(log_c)
        r = np.minimum(rest / tau, np.log((size + np.hypot(size, 2.0 * c)) / 2.0))
        for _ in range(100):
            a, b = np.exp(r), np.exp(2.0 * log_c - r)
            change = (a - b + tau * r - rest) / (a + b + tau)
            change = np.where(np.isfinite(change), change, 0.0)
            r = r - change
            if not np.any(np.abs(change) > 1e-15 * (1.0 + np.abs(r))):
                break
        return np.exp(r), np.exp(2.0 * log_c - r)
