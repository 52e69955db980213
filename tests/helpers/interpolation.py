"""The algorithms of Raj and Bach (2020) as they are printed, with every image computed anew in every step.

Their alpha is minus ours, and 1/n stands for the fraction s_i / W of a sample. Blocks x_i are d x k: X has the shape
(n, k, d). An intercept is a k-fold constant feature with the quadratic rho/2 |b - b_0|^2.
"""

from dataclasses import dataclass

import numpy as np

import fenchel as fl
from fenchel.problem import Interpolation
from fenchel.steps.base import Start


def zero(problem):
    w, b, alpha = problem.shapes
    return Start(np.zeros(w), np.zeros(b) if b else 0.0, np.zeros(alpha))


def recorded(state):
    """A list that will have the orders of all passes of a state."""
    orders, draw = [], state.sampler.next

    def record():
        orders.append(draw().copy())
        return orders[-1].copy()

    state.sampler.next = record
    return orders


def link(penalty):
    """grad R* by its formula."""
    if isinstance(penalty, fl.penalties.L2):
        return lambda v: v / penalty.lam
    if isinstance(penalty, fl.penalties.ElasticNet):
        return lambda v: np.sign(v) * np.maximum(np.abs(v) - penalty.l1, 0.0) / penalty.l2
    if isinstance(penalty, fl.penalties.Entropy):
        return lambda v: np.exp(v / penalty.lam) / np.exp(v / penalty.lam).sum()
    q = penalty.p / (penalty.p - 1.0)

    def power(v):
        size = np.sum(np.abs(v) ** q) ** (1.0 / q)
        return np.sign(v) * np.abs(v) ** (q - 1.0) * size ** (2.0 - q) / penalty.lam if size > 0 else 0.0 * v

    return power


@dataclass
class Printed:
    """The paper's quantities of a problem; `project(i, z)` is the projection onto the set of sample i."""

    X: np.ndarray
    fraction: np.ndarray
    link: object
    project: object
    L: np.ndarray
    inverse_rho: float = 0.0
    b: np.ndarray | float = 0.0

    @classmethod
    def of(cls, problem, X, L, intercept_step=0.0):
        """With the constants L_i."""
        fraction = problem.weights / problem.weights.sum()
        sets = problem.constraints

        def project(i, z):
            Z = np.zeros((problem.n_samples, problem.outputs))
            Z[i] = z
            return sets.project(Z)[i]

        return cls(X, fraction, link(problem.penalty), project, L, intercept_step)

    def model(self, alpha):
        """theta(alpha) and b."""
        weighted = -self.fraction[:, None] * alpha
        return self.link(np.einsum("ik,ikd->d", weighted, self.X)), self.b + weighted.sum(axis=0) * self.inverse_rho

    def scores(self, i, alpha):
        theta, b = self.model(alpha)
        return self.X[i] @ theta + b

    def algorithm_1(self, orders):
        """Proximal random coordinate ascent: our multipliers, weights and intercept after these passes."""
        alpha = np.zeros(self.X.shape[:2])
        for order in orders:
            self.move_centre(alpha)
            for i in order:
                q = self.fraction[i] * (self.L[i] + self.inverse_rho)
                z = self.scores(i, alpha)
                zeta = self.project(i, q * alpha[i] + z)
                alpha[i] = alpha[i] + z / q - zeta / q
        return (-alpha, *self.model(alpha))

    def algorithm_2(self, orders):
        """Accelerated proximal coordinate ascent: v, which has the guarantee, and alpha, each with its model."""
        n = sum(self.fraction > 0)
        alpha, v, z = (np.zeros(self.X.shape[:2]) for _ in range(3))
        gamma = 1.0 / n
        for order in orders:
            self.move_centre(v)
            for i in order:
                q = n * gamma * self.fraction[i] * (self.L[i] + self.inverse_rho)
                score = self.scores(i, z)
                after = alpha.copy()
                after[i] = alpha[i] + score / q - self.project(i, q * alpha[i] + score) / q
                v = z + n * gamma * (after - alpha)
                alpha = after
                gamma = (np.sqrt(gamma**4 + 4.0 * gamma**2) - gamma**2) / 2.0
                z = (1.0 - gamma) * v + gamma * alpha
        return [(-each, *self.model(each)) for each in (v, alpha)]

    def move_centre(self, alpha):
        """The proximal-point method for an intercept."""
        self.b = self.b - np.sum(self.fraction[:, None] * alpha, axis=0) * self.inverse_rho

    def mirror(self, orders, gamma):
        """Eq. (10), with the sign that descends: the last weights, and the mean of all before a step."""
        v, total, steps = np.zeros(self.X.shape[2]), 0.0, 0
        for i in np.concatenate(orders):
            theta = self.link(v)
            total, steps = total + theta, steps + 1
            z = self.X[i] @ theta
            v = v + gamma * (self.project(i, z) - z) @ self.X[i]
        return self.link(v), total / steps


def mixed_intervals(rng, n):
    """Points, half-lines both ways and intervals around values near 0."""
    at = rng.normal(size=n)
    kinds = np.arange(n) % 4
    low = np.where(kinds == 1, -np.inf, at)
    high = np.choose(kinds, [at, at, np.inf, at + 0.4])
    return fl.sets.Interval(low, high)


def problem_of(penalty, n=12, d=9, seed=0, storage=np.ascontiguousarray, **arguments):
    """A random problem with mixed intervals, and its rows as an (n, 1, d) array."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.exp(0.5 * rng.normal(size=d))).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.3] = 0.0
    return Interpolation(storage(X), mixed_intervals(rng, n), penalty, **arguments), X[:, None, :]
