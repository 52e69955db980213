"""Losses of k scores z for a class y: phi(z; y) = F(z) - z_y, F a maximum over the probability simplex.

Every subgradient is p - e_y with p in the simplex, so the multipliers of a sample are alpha = e_y - p, and
-phi*(-alpha) = g(p) is concave on the simplex, g(e_y) = 0. Below, p is stored as `off`, its entries off the true class
with 0 in place of p_y; p_y is 1 minus their sum, so that p lies in the simplex exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega, xlog1py, xlogy

from fenchel._core import CompiledMulticlassLoss, kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import inside

Codes = NDArray[np.int64]

#: Relative tolerance for sum_j alpha_ij = 0.
ROW_SUM = 1e-12


class MulticlassLoss(ABC):
    """A convex function phi(z; y) of k scores for a class y, as NumPy functions of (n, k) arrays.

    Attributes
    ----------
    smoothness : float
        Lipschitz constant of the gradient in the 2-norm; infinite if there is none.
    """

    smoothness: float = np.inf

    @abstractmethod
    def value(self, Z: Vector, y: Codes) -> Vector:
        """phi(z_i; y_i) for every row of Z."""

    @abstractmethod
    def off_class(self, Z: Vector, y: Codes) -> Vector:
        """A p with p - e_y in the subdifferential, as its entries off the true class; rows add up to at most 1."""

    @abstractmethod
    def dual_value(self, off: Vector) -> Vector:
        """g(p) = -phi*(p - e_y; y) >= 0."""

    @abstractmethod
    def dual_error(self, off: Vector) -> Vector:
        """A bound on the rounding error of `dual_value`, for entries of `off` with up to 8 roundings."""

    @abstractmethod
    def block_step(self, p: Vector, Z: Vector, q: Vector, y: Codes) -> Vector:
        """The p' in the simplex that maximises g(p') + z.(p' - p) - q |p' - p|^2 / 2."""

    @abstractmethod
    def kernel(self) -> CompiledMulticlassLoss:
        """The compiled version of this loss."""

    def gradient(self, Z: Vector, y: Codes) -> Vector:
        """p - e_y, a subgradient with respect to the scores."""
        return -multipliers(self.off_class(Z, y), y)

    def conjugate(self, U: Vector, y: Codes) -> Vector:
        """phi*(u; y) = -g(u + e_y), infinite where u + e_y is not in the simplex."""
        off = without_class(U, y)
        mass = off.sum(axis=1)
        ok = np.all(off >= 0.0, axis=1) & (mass <= 1.0) & (np.abs(U.sum(axis=1)) <= ROW_SUM * np.maximum(mass, 1e-300))
        return inside(ok, -self.dual_value(np.where(ok[:, None], off, 0.0)))

    def dual_step(self, alpha: Vector, Z: Vector, q: Vector, y: Codes) -> Vector:
        """The alpha' that maximises -phi*(-alpha') - z.(alpha' - alpha) - q |alpha' - alpha|^2 / 2, row by row."""
        p = self.block_step(probabilities(off_of(alpha, y), y), Z, q, y)
        return multipliers(within_simplex(without_class(p, y)), y)

    def best_intercepts(self, Z: Vector, y: Codes, s: Vector) -> Vector:
        """The b that minimises the mean loss at Z + b if the loss is smooth; else 0."""
        return np.zeros(Z.shape[1])

    def hessian_product(self, P: Vector, U: Vector) -> Vector:
        """The Hessian at p_i times u_i for each sample; the gradient there is p_i - e_y."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    def curvature(self, P: Vector) -> Vector:
        """The trace of the Hessian of each sample."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    @property
    def traits(self) -> frozenset[Trait]:
        """Smooth if the gradient is Lipschitz; always compiled."""
        smooth = {Trait.DIFFERENTIABLE_LOSS, Trait.SMOOTH_LOSS} if np.isfinite(self.smoothness) else set()
        return frozenset({Trait.COMPILED_LOSS} | smooth)


@dataclass(frozen=True)
class Multinomial(MulticlassLoss):
    """log sum_j exp(z_j) - z_y: softmax cross-entropy. g(p) = -sum_j p_j log p_j, and p is the softmax of z."""

    smoothness = 0.5

    def value(self, Z: Vector, y: Codes) -> Vector:
        """log sum_j exp(z_j - z_y), accurate also when it is small."""
        margin = margins(Z, y)
        top = margin.max(axis=1)
        shift = np.maximum(top, 0.0)
        others = np.exp(margin - shift[:, None]).sum(axis=1)
        with np.errstate(divide="ignore"):
            far = shift + np.log(np.exp(-shift) + others)
        return np.asarray(np.where(top > 0.0, far, np.log1p(others)), dtype=np.float64)

    def off_class(self, Z: Vector, y: Codes) -> Vector:
        return within_simplex(np.exp(margins(Z, y) - self.value(Z, y)[:, None]))

    def dual_value(self, off: Vector) -> Vector:
        mass = np.minimum(off.sum(axis=1), 1.0)
        return np.asarray(-xlogy(off, off).sum(axis=1) - xlog1py(1.0 - mass, -mass))

    def dual_error(self, off: Vector) -> Vector:
        """Rounding moves p_y by at most delta, and -x log x by at most -delta log delta."""
        k = off.shape[1]
        total = off.sum(axis=1)
        mass = np.minimum(total, 1.0)
        delta = 8.0 * (k + 4.0) * UNIT_ROUNDOFF * mass
        size = np.abs(xlogy(off, off)).sum(axis=1) + total + np.abs(xlog1py(1.0 - mass, -mass))
        return np.asarray((256.0 + 8.0 * k) * UNIT_ROUNDOFF * size - xlogy(delta, delta))

    def block_step(self, p: Vector, Z: Vector, q: Vector, y: Codes) -> Vector:
        """log p'_j + q p'_j = c_j - nu with c = z + q p, so p'_j = omega(c_j - nu + log q) / q with Wright's omega.

        sum_j p'_j decreases in nu; safeguarded Newton on its logarithm finds the root of sum_j p'_j = 1.
        """
        q = np.maximum(q, np.finfo(np.float64).tiny)[:, None]
        c, k = Z + q * p, Z.shape[1]
        highest = c.max(axis=1, keepdims=True)
        low, high = highest - q, highest + np.log(k) - q / k
        nu = 0.5 * (low + high)
        for _ in range(200):
            scaled = wrightomega(c - nu + np.log(q))
            found = scaled / q
            total = found.sum(axis=1, keepdims=True)
            if np.all(np.abs(total - 1.0) <= 1e-14):
                break
            low, high = np.where(total > 1.0, nu, low), np.where(total > 1.0, high, nu)
            step = nu + np.log(total) * total / (found / (1.0 + scaled)).sum(axis=1, keepdims=True)
            nu = np.where((step > low) & (step < high), step, 0.5 * (low + high))
        return np.asarray(found / total)

    def best_intercepts(self, Z: Vector, y: Codes, s: Vector) -> Vector:
        """The b with sum_i s_i p_ij = sum_{y_i = j} s_i for all j, by Newton's method; b_k = 0 fixes the constant."""
        k, W = Z.shape[1], float(s.sum())
        n = np.bincount(y, s, minlength=k)
        b, best, least = np.zeros(k), np.zeros(k), np.inf

        def state(b: Vector) -> tuple[float, Vector, Vector]:
            p = probabilities(self.off_class(Z + b, y), y)
            return float(s @ self.value(Z + b, y)) / W, (s @ p - n) / W, p

        value, gradient, p = state(b)
        for _ in range(60):
            size = float(np.max(np.abs(gradient)))
            if size < least:
                best, least = b, size
            if size == 0.0 or not np.isfinite(size):
                break
            hessian = (np.diag(s @ p) - (p * s[:, None]).T @ p)[:-1, :-1] / W
            step = np.append(-np.linalg.lstsq(hessian, gradient[:-1], rcond=1e-14)[0], 0.0)
            for _ in range(40):
                new_value, new_gradient, new_p = state(b + step)
                if new_value <= value + 1e-14 * abs(value):
                    break
                step = step / 2.0
            if size < 1e-12 and float(np.max(np.abs(new_gradient))) >= size:
                break
            b, value, gradient, p = b + step, new_value, new_gradient, new_p
        return best

    def kernel(self) -> CompiledMulticlassLoss:
        return kernels.Multinomial()

    def hessian_product(self, P: Vector, U: Vector) -> Vector:
        """(diag(p) - p p') u."""
        product = P * U
        return np.asarray(product - P * product.sum(axis=1, keepdims=True))

    def curvature(self, P: Vector) -> Vector:
        return np.asarray(1.0 - np.sum(P * P, axis=1))


@dataclass(frozen=True)
class CrammerSinger(MulticlassLoss):
    """max_j (1[j != y] + z_j) - z_y: the multiclass hinge. g(p) = 1 - p_y, linear on the simplex."""

    def value(self, Z: Vector, y: Codes) -> Vector:
        return np.asarray(np.maximum(0.0, 1.0 + margins(Z, y).max(axis=1)))

    def off_class(self, Z: Vector, y: Codes) -> Vector:
        """All mass on the class that attains the maximum; ties go to the true class."""
        margin = margins(Z, y)
        first = np.argmax(margin, axis=1)
        off, rows = np.zeros_like(Z), np.arange(len(Z))
        off[rows, first] = np.where(margin[rows, first] > -1.0, 1.0, 0.0)
        return off

    def dual_value(self, off: Vector) -> Vector:
        return np.asarray(off.sum(axis=1))

    def dual_error(self, off: Vector) -> Vector:
        return np.asarray((16.0 + off.shape[1]) * UNIT_ROUNDOFF * off.sum(axis=1))

    def block_step(self, p: Vector, Z: Vector, q: Vector, y: Codes) -> Vector:
        """q p' is the projection of t = q p + z + (1 - e_y) onto {x >= 0, sum x = q}: max(0, t - theta), by sorting."""
        q = np.maximum(q, np.finfo(np.float64).tiny)[:, None]
        t = q * p + Z + 1.0
        t[np.arange(len(Z)), y] -= 1.0
        t -= t.max(axis=1, keepdims=True)
        ordered = -np.sort(-t, axis=1)
        theta = (np.cumsum(ordered, axis=1) - q) / np.arange(1, t.shape[1] + 1)
        last = np.sum(ordered > theta, axis=1, keepdims=True) - 1
        found = np.maximum(0.0, t - np.take_along_axis(theta, last, axis=1)) / q
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def kernel(self) -> CompiledMulticlassLoss:
        return kernels.CrammerSinger()


def margins(Z: Vector, y: Codes) -> Vector:
    """z_j - z_y, -inf for the true class itself."""
    rows = np.arange(len(Z))
    margin = Z - Z[rows, y][:, None]
    margin[rows, y] = -np.inf
    return np.asarray(margin)


def without_class(P: Vector, y: Codes) -> Vector:
    """P with 0 for the true class."""
    off = P.copy()
    off[np.arange(len(P)), y] = 0.0
    return off


def within_simplex(off: Vector) -> Vector:
    """`off` with rows scaled down where their exact sum might exceed 1."""
    k = off.shape[1]
    most = off.sum(axis=1) * (1.0 + 4.0 * k * UNIT_ROUNDOFF)
    return off * np.where(most > 1.0, (1.0 - 8.0 * UNIT_ROUNDOFF) / np.maximum(most, 1.0), 1.0)[:, None]


def probabilities(off: Vector, y: Codes) -> Vector:
    """p from its entries off the true class."""
    p = off.copy()
    p[np.arange(len(off)), y] = np.maximum(0.0, 1.0 - off.sum(axis=1))
    return p


def multipliers(off: Vector, y: Codes) -> Vector:
    """alpha = e_y - p."""
    alpha = -off
    alpha[np.arange(len(off)), y] = off.sum(axis=1)
    return alpha


def off_of(alpha: Vector, y: Codes) -> Vector:
    """The p of any multipliers, moved into the simplex."""
    return within_simplex(np.maximum(without_class(-np.nan_to_num(alpha), y), 0.0))
