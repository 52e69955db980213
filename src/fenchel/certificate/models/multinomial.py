"""Softmax regression over k classes: a certificate for a matrix of weights.

With scores z_i = B x_i + b, one row of B for each class::

    primal   P(B, b)  = (1/W) sum_i s_i (log sum_j exp(z_ij) - z_iy) + R(B),    y = y_i
    dual     D(p)     = (1/W) sum_i s_i H(p_i) - R*(V),    V = (1/W) sum_i s_i (e_y - p_i) x_i'

for p_i in the probability simplex, with H(p) = -sum_j p_j log p_j, and with free intercepts
sum_i s_i p_ij = n_j := sum of s_i over y_i = j. At the optimum p_i is the softmax of z_i. R is any penalty of the k d
entries of B. Below, p_i is kept as its entries off the true class; what they leave of 1 is the entry of the true class,
so that p_i lies in the simplex exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import xlog1py, xlogy

from fenchel.certificate.certificate import Certificate
from fenchel.certificate.models.claim import Bounds
from fenchel.certificate.models.fitted import Codes
from fenchel.certificate.rounding import INPUT
from fenchel.data.design import UNIT_ROUNDOFF, Design, Vector
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import EVALUATION, NormPenalty

UP, DOWN = 1.0 + EVALUATION, 1.0 - EVALUATION


@dataclass(frozen=True, eq=False)
class MultinomialClaim:
    """B (k x d) and b minimise P."""

    design: Design
    codes: Codes
    weights: Vector
    penalty: Penalty
    intercept: bool
    B: Vector
    b: Vector
    scale: float = 1.0

    @np.errstate(all="ignore")  # overflow makes a bound infinite, never wrong
    def certify(self, effort: str, tol: float | None) -> Certificate:
        primal, upper, Z = self._primal()
        if not np.isfinite(upper):
            return Bounds(primal, np.inf, 0.0, 0.0, "zero").certificate(effort, tol)
        found = [(0.0, 0.0, "zero"), *self._dual(Z, upper)]  # all mass on the true class: H = 0, V = 0
        dual, lower, how = max(found, key=lambda bound: bound[1])
        return Bounds(primal, upper, dual, lower, how, self.penalty.strong_convexity).certificate(effort, tol)

    @property
    def _grant(self) -> float:
        """Relative error of one evaluation: that of sums over classes comes on top."""
        return EVALUATION + 8.0 * len(self.B) * UNIT_ROUNDOFF

    def _mean(self, values: Vector) -> float:
        return float(np.sum(self.weights * np.where(self.weights > 0, values, 0.0))) / float(self.weights.sum())

    def _primal(self) -> tuple[float, float, Vector]:
        """P as computed, a bound on it, and the scores.

        If every score is off by at most e_i, the loss is off by at most 2 e_i.
        """
        n, k = self.design.shape[0], len(self.B)
        Z, error = np.empty((n, k)), np.zeros(n)
        with np.errstate(over="ignore", invalid="ignore"):
            for j in range(k):
                product = self.design.matvec_bounded(self.B[j])
                Z[:, j] = product.value + self.b[j]
                error = np.maximum(error, product.error + INPUT * (np.abs(product.value) + abs(self.b[j])))
            loss = log_loss(Z, self.codes)
            weights = self.B.ravel()
            primal = self._mean(loss) + self.penalty.value(weights)
            upper = (1.0 + self._grant) * self._mean(loss + 2.0 * error) + self.penalty.value_upper(weights)
        return (primal, upper, Z) if np.isfinite(upper) else (np.inf, np.inf, Z)

    def _dual(self, Z: Vector, upper: float) -> list[tuple[float, float, str]]:
        """Bounds on the optimum from the softmax of the scores, after the best intercepts."""
        if self.intercept:
            Z = Z + best_intercepts(Z, self.codes, self.weights)
        off = off_class(Z, self.codes)
        eps = self._imbalance(off) if self.intercept else 0.0
        if not eps < 0.5:
            return []
        V, error = self._dual_matrix(off, eps)
        if not (np.all(np.isfinite(V)) and np.all(np.isfinite(error))):
            return []
        penalty = self.penalty
        if isinstance(penalty, NormPenalty):
            norm = penalty.dual_norm_upper(V, error)
            if not norm >= 0.0:  # not a number: it overflowed
                return []
            largest = min(1.0, penalty.lam / norm * DOWN) if norm > 0.0 else 1.0
            theta = _best(lambda t: self._entropy(off, t)[0], largest)
            excess = max(0.0, norm - penalty.lam) * UP
            cost = upper / penalty.lam * excess * UP
            return [
                self._bound(off, eps, theta, 0.0, 0.0, "gradient, rescaled" if theta < 1.0 else "gradient"),
                self._bound(off, eps, 1.0, cost, cost, "gradient, Lipschitzed" if excess else "gradient"),
            ]
        theta = _best(lambda t: self._entropy(off, t)[0] - penalty.conjugate(t * V), 1.0)
        conjugate = penalty.conjugate_upper(theta * V, theta * error * UP)
        how = "gradient, rescaled" if theta < 1.0 else "gradient"
        return [self._bound(off, eps, theta, penalty.conjugate(theta * V), conjugate, how)]

    def _bound(
        self, off: Vector, eps: float, theta: float, conjugate: float, conjugate_upper: float, how: str
    ) -> tuple[float, float, str]:
        """D as computed and from below; H is concave and >= 0, so a share eps of anything costs at most eps H."""
        entropy, error = self._entropy(off, theta)
        lower = max(entropy - error, 0.0) * (1.0 - eps) * DOWN - conjugate_upper
        return entropy - conjugate, lower - EVALUATION * (abs(lower) + conjugate_upper), how

    def _entropy(self, off: Vector, theta: float) -> tuple[float, float]:
        """The mean of H((1 - theta) e_y + theta p), and a bound on its error.

        Rounding moves the true class's entry by some delta, and -x log x by at most -delta log delta.
        """
        k = off.shape[1]
        t = theta * off
        mass = np.minimum(t.sum(axis=1), 1.0)
        parts, rest = -xlogy(t, t), -xlog1py(1.0 - mass, -mass)
        delta = 8.0 * (k + 4.0) * UNIT_ROUNDOFF * mass
        size = np.abs(parts).sum(axis=1) + t.sum(axis=1) + np.abs(rest)
        error = self._mean(self._grant * size - xlogy(delta, delta)) * UP
        return self._mean(parts.sum(axis=1) + rest), error

    def _imbalance(self, off: Vector) -> float:
        """The share eps of a common distribution q that makes sum_i s_i p_ij exactly n_j.

        Let r_j = sum_i s_i p_ij - n_j, so that sum_j r_j = 0. Then (1 - eps) p_i + eps q has the right sums for
        q_j = (eps n_j - (1 - eps) r_j) / (eps W), which is a distribution if eps >= |r_j| / n_j for all j; and
        q_j <= 2 n_j / W.
        """
        eps = 0.0
        for j, column in enumerate(self._multipliers(off).T):
            term = self.weights * column
            r = abs(float(np.sum(term))) + (self._grant + EVALUATION) * float(np.sum(np.abs(term)))
            n = float(np.sum(self.weights[self.codes == j])) * DOWN
            if r > 0.0:
                eps = max(eps, r / n * UP if n > 0.0 else np.inf)
        return eps

    def _dual_matrix(self, off: Vector, eps: float) -> tuple[Vector, Vector]:
        """V as a vector, and a bound on its error.

        The move by eps is part of it: at most eps (1 + 2 n_j / W) (1/W) sum_i s_i |x_i|.
        """
        W = float(self.weights.sum())
        alpha = self._multipliers(off)
        products = [self.design.rmatvec_bounded(self.weights * column) for column in alpha.T]
        spread = 3.0 * eps * self.design.rmatvec_bounded(self.weights).absolute if eps else 0.0
        error = [product.error + self._grant * product.absolute + spread for product in products]
        return np.concatenate([product.value for product in products]) / W, np.concatenate(error) / W * UP

    def _multipliers(self, off: Vector) -> Vector:
        """e_y - p, a contiguous column for each class (sums over samples are then pairwise)."""
        alpha = -off
        alpha[np.arange(len(off)), self.codes] = off.sum(axis=1)
        return np.array(alpha, dtype=np.float64, order="F")


def log_loss(Z: Vector, codes: Codes) -> Vector:
    """log sum_j exp(z_j - z_y), accurate when it is small, too."""
    margin = _margins(Z, codes)
    top = margin.max(axis=1)
    shift = np.maximum(top, 0.0)
    others = np.exp(margin - shift[:, None]).sum(axis=1)
    with np.errstate(divide="ignore"):
        far = shift + np.log(np.exp(-shift) + others)
    return np.asarray(np.where(top > 0.0, far, np.log1p(others)), dtype=np.float64)


def off_class(Z: Vector, codes: Codes) -> Vector:
    """The softmax with 0 in place of the true class; rows add up to at most 1, exactly."""
    k = Z.shape[1]
    off = np.exp(_margins(Z, codes) - log_loss(Z, codes)[:, None])
    most = off.sum(axis=1) * (1.0 + 4.0 * k * UNIT_ROUNDOFF)
    return off * np.where(most > 1.0, (1.0 - 8.0 * UNIT_ROUNDOFF) / np.maximum(most, 1.0), 1.0)[:, None]


def best_intercepts(Z: Vector, codes: Codes, s: Vector, steps: int = 60) -> Vector:
    """The b that minimises the mean loss at Z + b, by Newton's method.

    Its last entry stays 0: adding a constant to b changes nothing.
    """
    k = Z.shape[1]
    W, n = float(s.sum()), np.bincount(codes, s, minlength=k)
    rows = np.arange(len(Z))
    b, best, least = np.zeros(k), np.zeros(k), np.inf

    def state(b: Vector) -> tuple[float, Vector, Vector]:
        p = off_class(Z + b, codes)
        p[rows, codes] = 1.0 - p.sum(axis=1)
        return float(s @ log_loss(Z + b, codes)) / W, (s @ p - n) / W, p

    value, gradient, p = state(b)
    for _ in range(steps):
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


def _margins(Z: Vector, codes: Codes) -> Vector:
    """z_j - z_y, -inf for the true class itself."""
    rows = np.arange(len(Z))
    margin = Z - Z[rows, codes][:, None]
    margin[rows, codes] = -np.inf
    return np.asarray(margin)


def _best(f: Callable[[float], float], largest: float) -> float:
    """The maximiser of a concave f on [0, largest]: nearly always the right end."""
    if f(largest) >= f(largest * (1.0 - 1e-6)):
        return largest
    return float(minimize_scalar(lambda t: -f(t), bounds=(0.0, largest), method="bounded", options={"xatol": 1e-9}).x)
