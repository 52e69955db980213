"""Dual ascent on losses that are smooth almost everywhere (Shalev-Shwartz and Zhang 2013, section 5).

A loss with kinks is linear around most scores. Where it is, the dual is curved: with u in d phi*(-b) (Definition 14)

    phi*(-a) - phi*(-b) + u (a - b) >= gamma(u) (a - b)^2.

Let a piecewise linear phi have no kink within r of u. Then phi(u + r e) = phi(u) - b r e for e = +-1, and by
Fenchel-Young the left side is at least r |a - b|, so that gamma(u) = r / max |a - b| over a in the domain. For the
hinge this is |u y - 1|, as in the paper. For the absolute loss multipliers are in [-1, 1], and it is |u - y| / 2; the
paper prints |u - y|, which a = -b contradicts. For a (1/gamma)-smooth loss it is gamma / 2.

As in `fenchel.solver.theory.sdca`, rows of norm at most R have the bounds of norm 1 with lam / R^2 for lam, and G is
4 (L R)^2, or (L R)^2 where multipliers keep one sign.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, log

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.losses import Absolute, EpsilonInsensitive, Hinge, Loss, Pinball
from fenchel.solver.theory.bounds import require_positive
from fenchel.solver.theory.rates import spectral_sigma
from fenchel.solver.theory.sdca import sdca

#: Losses that are linear between their kinks.
PIECEWISE_LINEAR = (Hinge, Absolute, Pinball, EpsilonInsensitive)


def dual_convexity(loss: Loss, z: ArrayLike, y: ArrayLike, error: ArrayLike = 0.0) -> Vector:
    """gamma_i at scores z_i: how strongly convex phi* is at the multipliers that belong to them.

    Parameters
    ----------
    loss : Loss
        Piecewise linear, or smooth.
    error : float or array, default 0
        The scores are known up to this; the result holds for all of them.
    """
    scores, targets = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(y, dtype=np.float64))
    if np.isfinite(loss.smoothness):
        return np.full(len(scores), 0.5 / loss.smoothness)
    if not isinstance(loss, PIECEWISE_LINEAR):
        raise TypeError(f"the refined analysis needs a smooth or a piecewise linear loss, which {loss!r} is not")
    distance = np.min([np.abs(scores - kink) for kink in loss.kinks(targets)], axis=0) - np.asarray(error)
    low, high = loss.domain(targets)
    b = -loss.derivative(scores, targets)
    return np.where(distance > 0.0, distance / np.maximum(high - b, b - low), 0.0)


def dual_growth(problem: Problem, gamma: Vector, alpha: Vector, best_alpha: Vector, w: Vector, best_w: Vector) -> float:
    """Proposition 15: D(alpha*) - D(alpha) >= (1/n) sum_i gamma_i (alpha_i - alpha_i*)^2 + (lam/2) |w - w*|^2.

    Besides, |x_i.(w - w*)| >= gamma_i |a_i - alpha_i*| for any w and -a_i in d phi_i(x_i.w).

    Parameters
    ----------
    gamma : array
        `dual_convexity` at the scores of w*.
    alpha, w : array
        Any multipliers of the problem, and their w.
    best_alpha, best_w : array
        The optimal ones.
    """
    curved = float(np.mean(gamma * (alpha - best_alpha) ** 2))
    return curved + 0.5 * problem.penalty.strong_convexity * float(np.sum((w - best_w) ** 2))


def near_kinks(gamma: ArrayLike, below: ArrayLike) -> Vector:
    """N(u), the number of gamma_i < u."""
    return _count(np.sort(np.asarray(gamma, dtype=np.float64)), below)


def _count(ascending: Vector, below: ArrayLike) -> Vector:
    return np.asarray(np.searchsorted(ascending, np.asarray(below), side="left"), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class AlmostSmoothBound:
    """Theorems 16 and 18. For every s in (0, 1], with N(u) the number of gamma_i < u::

        E[D* - D(alpha_t)]  <= initial exp(-s t / (2 n)) + (s / (lam n)) G N(s R^2 / (lam n)) / n
        E[P(w) - D(alpha)]  <= e + h / (2 lam (T - T0))      for the average from T0 to T >= T0 + n, e the above at T0,
        h = min over g > 0 of  G N(g) / n + 2 R^2 e / min(g, lam g^2 / (2 rho))

    rho is the largest eigenvalue of (1/n) X'X. Theorem 16 asks that each term of the first is half of the accuracy.
    Remark 17 has three regimes: s = 1 (linear until N(1 / (lam n)) matters), an s with N(s / (lam n)) = 0 (linear for
    good), and N(u) / n = O(u^nu) (steps 1 / e^(1 / (1 + nu))).
    """

    n: int
    lam: float
    gamma: Vector = field(repr=False)  # sorted
    spread: float  # G
    radius: float = 1.0
    rho: float = 1.0
    initial: float = 1.0

    def __post_init__(self) -> None:
        require_positive(
            n=self.n, lam=self.lam, spread=self.spread, radius=self.radius, rho=self.rho, initial=self.initial
        )
        object.__setattr__(self, "gamma", np.sort(np.asarray(self.gamma, dtype=np.float64)))

    def scales(self) -> tuple[Vector, Vector]:
        """Intervals of s on which N(s R^2 / (lam n)) is constant: their right ends, rising to 1, and N."""
        ends = self.lam * self.n * self.gamma / self.radius**2
        ends = np.append(np.unique(ends[(ends > 0.0) & (ends < 1.0)]), 1.0)
        return ends, _count(self.gamma, ends * self.radius**2 / (self.lam * self.n))

    def remainder(self, s: ArrayLike) -> Vector:
        """(s / (lam n)) G N(s R^2 / (lam n)) / n, what the bound does not fall below for this s."""
        s = np.asarray(s, dtype=np.float64)
        count = _count(self.gamma, s * self.radius**2 / (self.lam * self.n))
        return np.asarray(s * self.spread * count / (self.lam * self.n**2))

    def dual(self, iterations: ArrayLike) -> Vector:
        """Theorem 16, with the best s: its intervals' ends, and the stationary points between them."""
        t = np.asarray(iterations, dtype=np.float64)
        ends, count = self.scales()
        starts, slope = np.append(0.0, ends[:-1]), self.spread * count / (self.lam * self.n**2)
        found = np.full(t.size, self.initial)
        for k in np.flatnonzero(t.ravel() > 0.0):
            rate = t.ravel()[k] / (2.0 * self.n)
            with np.errstate(divide="ignore"):
                inner = np.log(self.initial * rate / slope) / rate  # infinite where the slope is zero
            s = np.clip(inner, starts, ends)  # just above `starts` the bound is near its limit there
            found[k] = min(self.initial, float(np.min(self.initial * np.exp(-s * rate) + slope * s)))
        return found.reshape(t.shape)

    def iterations(self, dual: float) -> int:
        """Theorem 16: 2 (n / s) log(2 initial / dual) steps with the largest s whose remainder is at most dual / 2."""
        require_positive(dual=dual)
        ends, count = self.scales()
        slope = self.spread * count / (self.lam * self.n**2)
        with np.errstate(divide="ignore"):
            s = np.minimum(ends, np.where(slope > 0.0, 0.5 * dual / slope, inf))
        s = s[s > np.append(0.0, ends[:-1])]  # else N is that of an interval further left
        return max(0, ceil(2.0 * self.n / float(s.max()) * log(2.0 * self.initial / dual)))

    def gap(self, iterations: ArrayLike, average_from: ArrayLike | None = None) -> Vector:
        """Theorem 18 after T steps, of the average from T0 on, T / 2 by default; infinite for T < T0 + n."""
        T = np.asarray(iterations, dtype=np.float64)
        T0 = np.floor(0.5 * T) if average_from is None else np.asarray(average_from, dtype=np.float64)
        length = T - T0
        dual = self.dual(T0)
        spread = np.array([self.spread_at(e) for e in dual.ravel()]).reshape(dual.shape)
        return np.where(length >= self.n, dual + spread / (2.0 * self.lam * np.maximum(length, 1.0)), inf)

    def spread_at(self, dual: float) -> float:
        """h: a bound on the mean of R^2 (u_i - alpha_i)^2 where the suboptimality of D is at most `dual`."""
        levels = np.unique(self.gamma[self.gamma > 0.0])
        levels = np.append(levels, inf)  # the second term falls: where N is constant, the right end is best
        count = _count(self.gamma, levels)
        curved = np.minimum(levels, 0.5 * self.lam * levels**2 / self.rho)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(np.isinf(curved), 0.0, 2.0 * dual / curved)
        return float(np.min(self.spread * count / self.n + self.radius**2 * rest))


def almost_smooth(problem: Problem, w: Vector, weights_radius: float = 0.0) -> AlmostSmoothBound:
    """The bound of a problem, from weights near the optimum; rho is from `spectral_sigma`, for large data an estimate.

    Parameters
    ----------
    problem : Problem
        With an L2 penalty, no intercept, equal sample weights, and a nonnegative, Lipschitz, piecewise linear loss.
    w : array
        The optimum, or weights within `weights_radius` of it.
    weights_radius : float, default 0
        As in `Certificate.weights_radius`; gamma_i is the least over that ball.
    """
    sdca(problem)  # checks the problem
    lengths = problem.X.row_norms()
    gamma = dual_convexity(problem.loss, problem.scores(w), problem.y, lengths * weights_radius)
    low, high = problem.domain
    if not np.all(np.isfinite(high - low)):
        raise TypeError(f"the refined analysis needs a Lipschitz loss, which {problem.loss!r} is not")
    radius = float(lengths.max())
    spread = (radius * float(np.max(high - low))) ** 2
    rho = spectral_sigma(problem)
    return AlmostSmoothBound(
        problem.shape[0], problem.penalty.strong_convexity, gamma, spread, radius, rho, problem.loss_at_zero
    )
