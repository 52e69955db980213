"""Passes over the samples of an interpolation, one multiplier (a block of k) at a time: compiled, or in NumPy.

With mu-strong convexity of R, v = (1/W) sum_i s_i alpha_i x_i and g the gradient of R at a centre (0 without one), the
state is u = (v + g) / mu, with the intercepts behind its entries; the weights are w = grad R*(mu u). Three rules for
the multiplier of a visited sample with score z, Pi the projection onto its set (the alpha of Raj and Bach 2020 is minus
ours):

    ascent       alpha' = (Pi(t) - t) / q,  t = z - q alpha      Lemma 1
    mirror       alpha' = alpha + (Pi(z) - z) / q                Eq. (10), with the sign that descends
    perceptron   alpha' = alpha + sign / q  if sign z <= 0       half-lines

Ascent needs q_i >= (s_i / W) (|x_i|_{2->*}^2 / mu + 1 / rho); a larger q_i only makes the step shorter. An intercept b
has the quadratic rho/2 (b - b_0)^2, so that b = b_0 + (1 / (rho W)) sum_i s_i alpha_i.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.repeated import RepeatedColumns
from fenchel.data.storage import lines_of
from fenchel.data.typing import Indices, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.bregman import Bregman
from fenchel.problem.vectors import dual_exponent
from fenchel.steps.base import Overflow

Order = NDArray[np.int64]
Move = Callable[[Vector, Vector, float, Callable[[Vector], Vector]], Vector]


def _ascent(a: Vector, z: Vector, q: float, project: Callable[[Vector], Vector]) -> Vector:
    t = z - q * a
    return (project(t) - t) / q


def _mirror(a: Vector, z: Vector, q: float, project: Callable[[Vector], Vector]) -> Vector:
    return a + (project(z) - z) / q


def _perceptron(a: Vector, z: Vector, q: float, project: Callable[[Vector], Vector]) -> Vector:
    sign = np.where(project(np.full_like(z, np.inf)) == np.inf, 1.0, -1.0)
    return np.where(sign * z > 0.0, a, a + sign / q)


class Rule(Enum):
    """How a visited multiplier changes: in NumPy, and the name of the compiled form."""

    ASCENT = (_ascent, "Within")
    MIRROR = (_mirror, "Mirrored")
    PERCEPTRON = (_perceptron, "Corrected")


@dataclass
class Sequence:
    """theta of the next step of an accelerated method, theta^2 of the last one, and the number N of blocks."""

    blocks: int
    theta: float
    square: float = 0.0
    momentum: bool = True  # else theta stays 1 / N: plain coordinate ascent

    @classmethod
    def of(cls, blocks: int, momentum: bool = True) -> Sequence:
        """Before the first step: theta = 1 / N."""
        return cls(blocks, 1.0 / max(1, blocks), momentum=momentum)

    @property
    def change_factor(self) -> float:
        """The change of x's second part for a unit change of z."""
        return -(1.0 - self.blocks * self.theta) / self.theta**2 if self.momentum else 0.0

    def advance(self) -> None:
        """theta'^2 = (1 - theta') theta^2."""
        theta = self.theta
        self.square = theta * theta
        if self.momentum:
            self.theta = 2.0 * theta / (np.sqrt(theta * theta + 4.0) + theta)


class LocalSteps(NamedTuple):
    """Steps 1 / l_i with l_i = min(L_i, max(factor x_i'diag(H) x_i, least L_i)), H at the model of the visit."""

    factor: float = 0.0  # 0: l_i = L_i
    least: float = 0.0


@dataclass
class Passes(ABC):
    """The steps of one rule; arrays of multipliers and of images u are changed in place."""

    problem: Interpolation
    rule: Rule
    geometry: Penalty  # whose link makes weights of u: the problem's penalty, or the Euclidean one
    q: Vector
    inverse_rho: float
    base: Penalty = field(init=False)
    gradient: Vector | float = field(init=False)

    def __post_init__(self) -> None:
        self.base, self.gradient = _uncentred(self.geometry)

    @staticmethod
    def of(problem: Interpolation, rule: Rule, geometry: Penalty, q: Vector, inverse_rho: float) -> Passes:
        """Compiled for one score per sample in an interval, rows of a `Design` and a link that is compiled.

        Data stored by columns are copied by rows once.
        """
        link, ends = _uncentred(geometry)[0].kernel(), problem.constraints.ends
        compiled = problem.is_scalar and ends is not None and link is not None and problem.is_stored
        if isinstance(problem.X, Design):
            problem = problem.replace(X=problem.X.stored_by_rows())
        return (CompiledPasses if compiled else BlockPasses)(problem, rule, geometry, q, inverse_rho)

    @property
    def mu(self) -> float:
        """The strong convexity of the geometry."""
        return self.base.strong_convexity

    @property
    def tail(self) -> int:
        """How many entries of u are intercepts."""
        return self.problem.outputs

    def image(self, alpha: Vector) -> Vector:
        """v / mu of multipliers and (1 / (rho W)) sum_i s_i alpha_i, without the centre's gradient and b_0."""
        v = self.problem.dual_vector(alpha).ravel() / self.mu
        return np.concatenate([v, self.mean(alpha) * self.inverse_rho])

    def origin(self, b: float | Vector) -> Vector:
        """The image of zero multipliers around an intercept: g / mu, b."""
        u = np.zeros(self.problem.X.shape[1] + self.tail)
        u[: -self.tail] = np.asarray(self.gradient) / self.mu
        u[-self.tail :] = b if self.problem.intercept else 0.0
        return u

    def mean(self, alpha: Vector) -> Vector:
        """(1/W) sum_i s_i alpha_i."""
        return np.asarray(np.sum(self.problem.fractions * np.reshape(alpha, (-1, self.tail)), axis=0))

    def weights(self, u: Vector) -> Vector:
        """w = grad R*(mu u), flat."""
        inner = u[: -self.tail]
        return inner.copy() if self.base.quadratic else self.base.grad_conjugate(self.mu * inner)

    def model(self, u: Vector) -> tuple[Vector, float | Vector]:
        """Weights and intercept of an image."""
        return self.shaped(self.weights(u), u[-self.tail :])

    def shaped(self, w: Vector, b: Vector) -> tuple[Vector, float | Vector]:
        """Weights and intercept in the problem's shapes."""
        problem = self.problem
        return w.reshape(problem.weights_shape), float(b[0]) if problem.is_scalar else b.copy()

    def dual(self, alpha: Vector, u: Vector) -> float:
        """D(alpha) from its image, up to a constant: with the quadratic on an intercept its term is -(rho/2) |b|^2."""
        problem, b = self.problem, u[-self.tail :]
        support = problem.constraints.support(-np.reshape(alpha, (-1, self.tail)))
        pull = float(b @ b) / (2.0 * self.inverse_rho) if problem.intercept else 0.0
        return -problem.mean(support) - self.base.conjugate(self.mu * u[: -self.tail]) - pull

    @abstractmethod
    def plain(self, order: Order, alpha: Vector, u: Vector, total: Vector | None = None) -> int:
        """One step for each sample of the order; how many multipliers changed. The models before them go to `total`."""

    @abstractmethod
    def accelerated(
        self,
        order: Order,
        sequence: Sequence,
        images: Vector,
        z: Vector,
        change: Vector,
        local: LocalSteps = LocalSteps(),  # noqa: B008
    ) -> None:
        """Steps of APPROX at y = z + theta^2 change; `images` has the images of z and change side by side."""


@dataclass
class CompiledPasses(Passes):
    """One score per sample, in an interval."""

    kernel: kernels.Constrained = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel = self._over(self.problem.design.lines, slice(None))

    def _over(self, lines: kernels.Lines, rows: Indices | slice) -> kernels.Constrained:
        """The kernel of some samples, whose rows these are."""
        problem, W = self.problem, self.problem.total_weight
        link, ends = self.base.kernel(), problem.constraints.ends
        assert link is not None
        assert ends is not None
        low, high = (np.ascontiguousarray(end.ravel()[rows]) for end in ends)
        rule: type[kernels.Within] = getattr(kernels, self.rule.value[1])
        step, shift = 1.0 / (self.mu * W), self.inverse_rho / W
        weights, q = problem.weights[rows], self.q[rows]
        return kernels.Constrained(rule(low, high), link, lines, weights, q, step, shift, W)

    def over(self, rows: Indices, damping: float) -> Callable[[Vector, Vector], None]:
        """Passes over some rows in this order, each with further steps on the rows that have large steps left.

        They change alpha and u. Sparse rows are copied, one after the other: memory is then read as it lies, in half
        the time on imdb.
        """
        if not self.problem.design.is_sparse:

            def run(alpha: Vector, u: Vector) -> None:
                self.kernel.epoch_again(rows, alpha, u, damping)

            return run
        kernel = self._over(lines_of(self.problem.design.matrix[rows], True, checked=True), rows)
        order = np.arange(len(rows))

        def run_copied(alpha: Vector, u: Vector) -> None:
            part = alpha[rows]
            kernel.epoch_again(order, part, u, damping)
            alpha[rows] = part

        return run_copied

    def plain(self, order: Order, alpha: Vector, u: Vector, total: Vector | None = None) -> int:
        return self.kernel.epoch(order, alpha, u, total)[2]

    def accelerated(
        self,
        order: Order,
        sequence: Sequence,
        images: Vector,
        z: Vector,
        change: Vector,
        local: LocalSteps = LocalSteps(),  # noqa: B008
    ) -> None:
        sequence.theta, sequence.square = self.kernel.accelerate(
            order, sequence.theta, sequence.blocks, images.reshape(-1), z, change, sequence.momentum, *local
        )


@dataclass
class BlockPasses(Passes):
    """Any sets in R^k, any strongly convex penalty, any matrix with rows: O(k d) per step, in NumPy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.move: Move = self.rule.value[0]

    def _block(self, i: int) -> Vector:
        """The k rows of sample i."""
        k = self.tail
        return self.problem.X.rows(np.arange(i * k, (i + 1) * k))

    def _next(self, i: int, a: Vector, rows: Vector, u: Vector, q: float) -> Vector:
        """The next multiplier at the model of u."""
        z = rows @ self.weights(u) + u[-self.tail :]
        return self.move(a, z, q, lambda t: self.problem.constraints.project_sample(i, t))

    def _step(self, i: int, rows: Vector, u: Vector, local: LocalSteps) -> float:
        """q_i of a visit; the sum over the k rows bounds the curvature along all of them."""
        derivative = self.base.link_derivative(self.mu * u[: -self.tail]) if local.factor > 0.0 else None
        if derivative is None:
            return float(self.q[i])
        fraction = self.problem.fractions.ravel()[i]
        curvature, rest = fraction * float(np.sum(np.square(rows) @ derivative.diagonal)), fraction * self.inverse_rho
        return float(min(self.q[i], max(local.factor * curvature, local.least * (self.q[i] - rest)) + rest))

    def _moved(self, i: int, change: Vector, rows: Vector) -> Vector:
        """The change of the image with that of the multipliers of sample i."""
        weighted = self.problem.fractions[i] * change
        return np.concatenate([weighted @ rows / self.mu, weighted * self.inverse_rho])

    def plain(self, order: Order, alpha: Vector, u: Vector, total: Vector | None = None) -> int:
        A, moves = alpha.reshape(-1, self.tail), 0
        for i in order:
            if total is not None:
                total += np.concatenate([self.weights(u), u[-self.tail :]])
            rows = self._block(i)
            change = self._next(i, A[i], rows, u, self.q[i]) - A[i]
            if np.any(change != 0.0):
                A[i] += change
                u += self._moved(i, change, rows)
                moves += 1
        return moves

    def accelerated(
        self,
        order: Order,
        sequence: Sequence,
        images: Vector,
        z: Vector,
        change: Vector,
        local: LocalSteps = LocalSteps(),  # noqa: B008
    ) -> None:
        Z, C = z.reshape(-1, self.tail), change.reshape(-1, self.tail)
        for i in order:
            rows, u = self._block(i), images[:, 0] + sequence.theta**2 * images[:, 1]
            q = sequence.blocks * sequence.theta * self._step(i, rows, u, local)
            move = self._next(i, Z[i], rows, u, q) - Z[i]
            if np.any(move != 0.0):
                factor = sequence.change_factor
                Z[i] += move
                C[i] += factor * move
                moved = self._moved(i, move, rows)
                images[:, 0] += moved
                images[:, 1] += factor * moved
            sequence.advance()


def smoothness(problem: Interpolation, geometry: Penalty) -> Vector:
    """L_i >= |x_i|_{2->*}^2 / mu for each sample, x_i its d x k block; the largest one for rows of zeros.

    With n_j the dual norms of the k columns, |x_i beta|_* <= sum_j |beta_j| n_j <= |beta|_2 sqrt(sum_j n_j^2). If the
    dual norm is an r-norm with r >= 2, it is below the 2-norm, so the largest singular value is a bound as well; and if
    the columns are one vector x in k disjoint places, |beta x|_r <= |beta|_2 |x|_r. A row of zeros has no effect on the
    weights; any step will do.
    """
    mu, r, k = geometry.strong_convexity, dual_exponent(geometry.norm), problem.outputs
    with np.errstate(over="ignore"):
        squares = (problem.row_norms if r == 2.0 else problem.X.row_norms(r)).reshape(-1, k) ** 2
    if isinstance(problem.X, RepeatedColumns) and r >= 2.0:
        size = squares.max(axis=1)
    elif k > 1 and r >= 2.0:
        blocks = (problem.X.rows(np.arange(i * k, (i + 1) * k)) for i in range(problem.n_samples))
        spectral = np.array([np.linalg.norm(block, 2) ** 2 for block in blocks]) * (1.0 + 1e-9)
        size = np.minimum(squares.sum(axis=1), spectral)
    else:
        size = squares.sum(axis=1)
    L = size / mu
    if not np.all(np.isfinite(L)):
        raise Overflow("the squares of the features overflow; rescale them")
    largest = float(L[problem.counts].max(initial=0.0))
    return np.where(size > np.finfo(float).tiny, L, largest if largest > 0.0 else 1.0)


def _uncentred(penalty: Penalty) -> tuple[Penalty, Vector | float]:
    """R and the gradient at its centre."""
    return (penalty.of, penalty.gradient) if isinstance(penalty, Bregman) else (penalty, 0.0)


def is_quadratic(penalty: Penalty) -> bool:
    """Whether it is L2, around a centre or not."""
    return _uncentred(penalty)[0].quadratic
