"""Semismooth Newton steps on the multipliers of few constraints, for sets of any kind (Qi and Sun 1993).

With b_i = s_i alpha_i / W in R^k, w = grad R*(A'b), scores z = A w + E c for intercepts c, and any L > 0, the optimum
is the zero of

    G_i(b, c) = z_i - Pi_i(z_i - L b_i)   and of   E'b   if there is an intercept.

With J_i the derivative of Pi_i, H = w'(v) and K = A H A' a step solves

    ((I - J) K + L J) db + (I - J) E dc = -G,    E'db = -E'b.

J_i is a difference quotient, so that the projection is all that is asked of a set. A multiple of the identity is added
to K, because rows may depend on each other. Steps are shortened until |(G, L E'b)| falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Matrix, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties import LpSquared, Penalty
from fenchel.problem.penalties.base import LinkDerivative
from fenchel.problem.penalties.bregman import Bregman
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TINY, Damping, Patience, backtracked


def stages(penalty: Penalty) -> list[Penalty]:
    """p-norms from 2 down to p: each is solved from the solution of the one before; a centre stays where it is."""
    if isinstance(penalty, Bregman):
        return [*(Bregman(of, penalty.centre) for of in stages(penalty.of)[:-1]), penalty]
    if not isinstance(penalty, LpSquared):
        return [penalty]
    p, found = 2.0, list[Penalty]()
    while p - 1.0 > 2.0 * (penalty.p - 1.0):
        p = 1.0 + 0.5 * (p - 1.0)
        found.append(LpSquared(penalty.lam, p))
    return [*found, penalty]


@dataclass
class Point:
    """Multipliers n x k and k intercepts, with what follows from them."""

    beta: Vector
    b: Vector
    v: Vector
    z: Vector
    G: Vector
    size: float  # |(G, L E'b)|

    @property
    def relative(self) -> float:
        """The residual beside the scores."""
        return self.size / max(float(np.linalg.norm(self.z)), 1e-300)


@dataclass(frozen=True)
class Solution:
    """Multipliers, intercepts, and whether what is left of the residual is rounding."""

    beta: Vector
    b: Vector
    is_settled: bool


@dataclass
class SemismoothNewton:
    """The equations of a problem; `rows` is A."""

    problem: Interpolation
    rows: Matrix = field(init=False)
    L: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.rows = self.problem.X.rows(np.arange(self.problem.X.shape[0]))

    @staticmethod
    def suits(problem: Interpolation) -> bool:
        """Whether there are few rows, and the link has a derivative."""
        m, d = problem.X.shape
        few = limits.may_factor(2 * m, d)  # a system that is not symmetric, and a product: eight times a factor
        return few and problem.penalty.link_derivative(np.zeros(d)) is not None

    def solve(self, beta: Vector, b: Vector) -> Solution | None:
        """Multipliers and intercepts that are nearer to the optimum, from these; None if no way there was found.

        From the given point; where that fails, along p-norms from the solution for p = 2.
        """
        penalties = stages(self.problem.penalty)
        found = self._along(penalties[-1:], beta, b)
        return found if found is not None or len(penalties) == 1 else self._along(penalties, beta, b)

    def _along(self, penalties: list[Penalty], beta: Vector, b: Vector) -> Solution | None:
        point, before = self._start(penalties[-1], beta, b), np.inf
        before = point.relative
        for penalty in penalties:
            point = self._descend(penalty, self._start(penalty, point.beta, point.b))
        after = self._start(penalties[-1], point.beta, point.b).relative
        return Solution(point.beta, point.b, after <= ROUNDING) if after < 0.5 * before else None

    def _start(self, penalty: Penalty, beta: Vector, b: Vector) -> Point:
        """A point, with an L that makes L beta as long as the scores."""
        length, self.L = float(np.linalg.norm(beta)), 1.0
        if not length > 0.0:
            derivative = self._derivative(penalty, np.zeros(self.rows.shape[1]))
            self.L = float(np.mean(np.square(self.rows) @ derivative.diagonal))
            return self._at(penalty, beta, b)
        far = float(np.linalg.norm(self._at(penalty, beta, b).z))
        self.L = far / length if far > 0.0 else 1.0
        return self._at(penalty, beta, b)

    def _descend(self, penalty: Penalty, point: Point) -> Point:
        """Newton steps as long as the residual falls."""
        damping, patience = Damping(), Patience()
        while ROUNDING < point.relative < np.inf and not patience.is_over:
            after = self._step(penalty, point, damping.value)
            if after is None and damping.is_most:
                break
            point = point if after is None else after
            damping.learn(after is not None)
            patience.learn(point.size)
        return point

    def _step(self, penalty: Penalty, point: Point, damping: float) -> Point | None:
        direction = self._direction(penalty, point, damping)
        if direction is None:
            return None
        at = self._at

        def trial(t: float) -> Point:
            return at(penalty, point.beta + t * direction[0], point.b + t * direction[1])

        t = backtracked(lambda t: trial(t).size < (1.0 - 1e-4 * t) * point.size)
        return trial(t) if t > 0.0 else None

    def _at(self, penalty: Penalty, beta: Vector, b: Vector) -> Point:
        v = self.rows.T @ beta.ravel()
        z = (self.rows @ penalty.grad_conjugate(v)).reshape(beta.shape) + b
        G = z - self.problem.constraints.project(z - self.L * beta)
        G = np.where(self.problem.counts[:, None], G, 0.0)
        total = beta.sum(axis=0) if self.problem.intercept else np.zeros(0)
        size = float(np.hypot(np.linalg.norm(G), self.L * np.linalg.norm(total)))
        return Point(beta, b, v, z, G, size if np.isfinite(size) else np.inf)

    @staticmethod
    def _derivative(penalty: Penalty, v: Vector) -> LinkDerivative:
        derivative = penalty.link_derivative(v)
        assert derivative is not None
        if v.any() and np.all(np.isfinite(derivative.diagonal)):
            return derivative
        slope = max(float(np.nan_to_num(derivative.diagonal).max(initial=0.0)), 1.0 / penalty.strong_convexity)
        return LinkDerivative(np.full(len(v), slope))

    def _direction(self, penalty: Penalty, point: Point, damping: float) -> tuple[Vector, Vector] | None:
        problem, (n, k) = self.problem, point.beta.shape
        derivative, m = self._derivative(penalty, point.v), n * k
        K = derivative.gram(self.rows)
        slope = float(np.trace(K)) / m
        K[np.diag_indices(m)] += damping * slope
        J, E = self._projection(point.z - self.L * point.beta), np.tile(np.eye(k), (n, 1))
        M = self.L * J + K - J @ K
        off = np.flatnonzero(np.repeat(~problem.counts, k))
        M[off], M[off, off] = 0.0, 1.0
        right = -point.G.ravel()
        if problem.intercept:
            border = slope * (E - J @ E)  # the unknown is dc / slope, of the size of db
            border[off] = 0.0
            M = np.block([[M, border], [self.L * E.T, -self.L * damping * np.eye(k)]])
            right = np.concatenate([right, -self.L * point.beta.sum(axis=0)])
        if not np.all(np.isfinite(M)):
            return None
        try:
            step = np.linalg.solve(M, right)
        except np.linalg.LinAlgError:
            return None
        shift = np.asarray(slope * step[m:]) if problem.intercept else np.zeros(k)
        return np.asarray(step[:m].reshape(n, k)), shift

    def _projection(self, t: Vector) -> Matrix:
        """J as one matrix, with a block for each sample."""
        n, k = t.shape
        project = self.problem.constraints.project
        at, J = project(t), np.zeros((n, k, n, k))
        h = TINY * np.maximum(np.abs(t).max(axis=1), np.abs(at).max(axis=1))
        h = np.where(h > 0.0, h, TINY)
        every = np.arange(n)
        for j in range(k):
            moved = t.copy()
            moved[:, j] += h
            J[every, :, every, j] = (project(moved) - at) / (moved[:, j] - t[:, j])[:, None]
        return J.reshape(n * k, n * k)
