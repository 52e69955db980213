"""Strongly convex penalties: R* is finite and smooth, so every dual point gives a bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, softmax, wrightomega, xlogy

from fenchel._core import CompiledLink, kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Mask, Vector
from fenchel.problem.penalties.base import EVALUATION, FEASIBILITY, LinkDerivative, Penalty, Subgradients
from fenchel.problem.penalties.blocks import Blocks
from fenchel.problem.sets import Simplex
from fenchel.problem.vectors import bracketed_root, p_norm, set_number, set_positive, soft, square_over, times_square


@dataclass(frozen=True)
class L2(Penalty):
    """lam/2 |w|_2^2. R*(v) = |v|^2 / (2 lam), link w = v / lam."""

    lam: float
    separable = True
    quadratic = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    @property
    def strong_convexity(self) -> float:
        return self.lam

    def kernel(self) -> CompiledLink:
        return kernels.Linear()

    def value(self, w: Vector) -> float:
        return times_square(self.lam / 2.0, p_norm(w, 2))

    def conjugate(self, v: Vector) -> float:
        return square_over(p_norm(v, 2), 2.0 * self.lam)

    def grad_conjugate(self, v: Vector) -> Vector:
        return v / self.lam

    def link_derivative(self, v: Vector) -> LinkDerivative:
        return LinkDerivative(np.full(len(v), 1.0 / self.lam))

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """R increases in every |w_j|."""
        return self.value_upper((np.abs(w) + error) * (1.0 + EVALUATION))

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return w / (1.0 + t * self.lam)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return Subgradients(self.lam * w)


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2), 0 <= l1_ratio < 1.

    With l1 = lam l1_ratio and l2 = lam (1 - l1_ratio):  R*(v) = sum (|v_j| - l1)+^2 / (2 l2),  w = soft(v, l1) / l2.
    """

    lam: float
    l1_ratio: float = 0.5
    separable = True

    def __post_init__(self) -> None:
        set_positive(self, "lam")
        if not 0.0 <= set_number(self, "l1_ratio") < 1.0:
            raise ValueError(f"ElasticNet: l1_ratio must lie in [0, 1), got {self.l1_ratio!r}; for 1 use L1(lam)")

    @property
    def l1(self) -> float:
        """Weight of |w|_1."""
        return self.lam * self.l1_ratio

    @property
    def l2(self) -> float:
        """Weight of |w|_2^2 / 2."""
        return self.lam * (1.0 - self.l1_ratio)

    @property
    def strong_convexity(self) -> float:
        return self.l2

    @property
    def sparsity(self) -> float:
        return self.l1_ratio

    def kernel(self) -> CompiledLink:
        return kernels.Threshold(self.l1 / self.l2)

    def blocks(self, d: int) -> Blocks:
        return Blocks.single(d, self.l1, self.l2)

    def value(self, w: Vector) -> float:
        return self.l1 * float(np.abs(w).sum()) + times_square(self.l2 / 2.0, p_norm(w, 2))

    def conjugate(self, v: Vector) -> float:
        return square_over(p_norm(soft(v, self.l1), 2), 2.0 * self.l2)

    def grad_conjugate(self, v: Vector) -> Vector:
        return soft(v, self.l1) / self.l2

    def link_derivative(self, v: Vector) -> LinkDerivative:
        return LinkDerivative((np.abs(v) > self.l1) / self.l2)

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """R increases in every |w_j|."""
        return self.value_upper((np.abs(w) + error) * (1.0 + EVALUATION))

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        return soft(w, t * self.l1) / (1.0 + t * self.l2)

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        return signs_and_intervals(w, tol, self.l1, self.l2 * w)

    def restricted(self, keep: Mask) -> Penalty:
        """A sum over coordinates: zeros add nothing."""
        return self

    def zero_groups(self, v: Vector, radius: Vector) -> Mask:
        """w_j = soft(v_j, l1) / l2 is zero where |v_j| <= l1."""
        return np.abs(v) + radius <= self.l1


@dataclass(frozen=True)
class Entropy(Penalty):
    """lam sum w_j log w_j on the probability simplex. R*(v) = lam log sum exp(v_j / lam), link w = softmax(v / lam)."""

    lam: float

    def __post_init__(self) -> None:
        set_positive(self, "lam")

    @property
    def strong_convexity(self) -> float:
        return self.lam

    @property
    def norm(self) -> float:
        """Pinsker: strongly convex in the 1-norm."""
        return 1.0

    def value(self, w: Vector) -> float:
        return self.lam * float(xlogy(w, w).sum()) if np.isfinite(self.slack(w)) else np.inf

    def slack(self, w: Vector) -> float:
        """|sum w - 1|: a positive w within rounding of the simplex stands for w / sum(w)."""
        excess = abs(float(w.sum()) - 1.0)
        return excess + 64 * UNIT_ROUNDOFF if np.all(w >= 0) and excess <= FEASIBILITY else np.inf

    def value_upper(self, w: Vector) -> float:
        """Scaling w by 1 / (1 + slack) changes sum w log w by at most 2 slack (|sum w log w| + 1)."""
        return super().value_upper(w) + 2.0 * self.slack(w) * (abs(self.value(w)) + self.lam)

    def conjugate(self, v: Vector) -> float:
        # shifted before the division: v / lam must not overflow for tiny lam
        top = float(v.max())
        with np.errstate(under="ignore", over="ignore"):
            return top + self.lam * float(logsumexp((v - top) / self.lam))

    def conjugate_upper(self, v: Vector, error: Vector) -> float:
        """R*(v + error): R* increases in every coordinate. The rounding error of the logarithm is absolute."""
        v = v + error + 4 * UNIT_ROUNDOFF * np.abs(v)
        value = self.conjugate(v)
        largest = float(np.abs(v).max())
        return float(value + EVALUATION * (abs(value) + 2.0 * largest + self.lam * (1.0 + np.log(len(v)))))

    def grad_conjugate(self, v: Vector) -> Vector:
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(softmax((v - v.max()) / self.lam))

    def link_derivative(self, v: Vector) -> LinkDerivative:
        """(diag(w) - w w') / lam."""
        w = self.grad_conjugate(v)
        return LinkDerivative(w / self.lam, -1.0 / self.lam, w)

    def domain_support(self, v: Vector, error: Vector) -> float:
        """The largest entry."""
        return float(np.max(v + error + EVALUATION * np.abs(v)))

    def equations(self, d: int) -> tuple[Vector, Vector]:
        """sum w = 1."""
        return np.ones((1, d)), np.ones(1)

    def value_upper_near(self, w: Vector, error: Vector) -> float:
        """R(u) <= R(w) + sum_j |R_j'(u)| error_j, with |R_j'(u)| <= lam (|log w_j| + 2) where error_j <= w_j / 2."""
        if not np.all((w > 0.0) & (error <= 0.5 * w)):
            return np.inf
        terms = np.abs(xlogy(w, w))
        value = self.lam * float(xlogy(w, w).sum() + EVALUATION * terms.sum())
        return value + self.lam * float((error * (np.abs(np.log(w)) + 2.0)).sum()) * (1.0 + EVALUATION) + 5e-324

    def prox(self, w: Vector, t: Vector | float) -> Vector:
        """x_j + tau log x_j = w_j - nu, tau = t lam: x_j = tau omega((w_j - nu)/tau - log tau), with sum_j x_j = 1."""
        tau = float(np.min(t)) * self.lam
        if tau > 1e15 * (1.0 + float(np.abs(w).max())):  # x_j <= 1 is negligible beside tau log x_j
            return np.asarray(softmax(w / tau))
        if tau < 1e-300:
            return Simplex().project(w)

        def point(nu: float) -> Vector:
            return np.asarray(tau * wrightomega((w - nu) / tau - np.log(tau)))

        # the largest entry lies between 1/d and 1
        top, d = float(w.max()), len(w)
        low, high = top - 1.0 - tau, top - 1.0 / d + tau * np.log(d) + tau
        x = point(
            bracketed_root(lambda nu: float(point(nu).sum()) - 1.0, low - 1e-9 * abs(low), high + 1e-9 * abs(high))
        )
        return np.asarray(x / x.sum())

    def subgradients(self, w: Vector, tol: float) -> Subgradients:
        """lam (log w + 1) plus any multiple of the ones vector, the normal of the simplex."""
        d = len(w)
        point = self.lam * (np.log(np.maximum(w, 1e-300)) + 1.0)
        return Subgradients(point, np.ones((d, 1)), np.array([-np.inf]), np.array([np.inf]))


def signs_and_intervals(w: Vector, tol: float, l1: float, smooth: Vector) -> Subgradients:
    """smooth + l1 sign(w_j) where |w_j| > tol, smooth + [-l1, l1] elsewhere."""
    zero = np.flatnonzero(np.abs(w) <= tol)
    sign = np.sign(w)
    sign[zero] = 0.0
    m = len(zero)
    directions = sp.csc_array((np.ones(m), (zero, np.arange(m))), shape=(len(w), m))
    return Subgradients(smooth + l1 * sign, directions, np.full(m, -l1), np.full(m, l1))
