"""The matrix Z of a hard-margin problem, and what its algorithms compute with it.

The problem is min lam/2 |w|^2 subject to y_i x_i.w >= m_i with all m_i > 0. The rows of Ji, Srebro and Telgarsky (2021)
are z_i = -y_i x_i / m_i, and the margin of w is -max_i z_i.w / |w|. Their |z_i| <= 1 is had by a power of two, which is
exact, and by the unit of step sizes, 1 / max_i |z_i|^2. For q >= 0,

    v = (1/W) sum_i s_i alpha_i x_i = -c Z'q    with    alpha_i = c q_i y_i W / (m_i s_i),
    D(alpha) = c sum_i q_i - c^2 |Z'q|^2 / (2 lam),    the most at c = lam sum_i q_i / |Z'q|^2.

For q in the simplex the margin is then at most |Z'q|, and that is what the certificate says of these multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation, Trait
from fenchel.problem.penalties.bregman import Bregman
from fenchel.steps.base import Candidate, Overflow, Solver


@dataclass(frozen=True, eq=False)
class MarginRows:
    """Z / 2^exponent, the rows of which have norms of at most 1: its products, one row at a time or all of them.

    Samples of weight 0 have the factor 0 and the score -inf, which gives them the multiplier 0.
    """

    problem: Interpolation
    factor: Vector  # z_i = factor_i x_i
    prior: Vector
    exponent: int
    longest: float  # max |z_i|, in (1/2, 1]; 1 if all are zero

    @classmethod
    def of(cls, problem: Interpolation) -> MarginRows:
        """Of a problem without an `obstacle`."""
        assert problem.constraints.ends is not None
        low, high = (end.ravel() for end in problem.constraints.ends)
        counts = problem.counts
        bound = np.where(np.isfinite(low), low, high)  # y_i m_i
        inverse = np.where(counts, -1.0 / np.where(counts, bound, 1.0), 0.0)
        with np.errstate(over="ignore"):
            norms = problem.row_norms * np.abs(inverse)
        longest = float(norms.max(initial=0.0))
        if not longest < np.inf:
            raise Overflow("the features are too large beside the margins; rescale them")
        part, exponent = np.frexp(longest)
        factor = np.ldexp(inverse, -int(exponent))
        prior = np.where(counts, 0.0, -np.inf)
        return cls(problem, factor, prior, int(exponent), float(part) if longest > 0.0 else 1.0)

    @property
    def n(self) -> int:
        """The number of rows, those of weight 0 included."""
        return len(self.factor)

    @cached_property
    def count(self) -> int:
        """The number of rows with a positive weight."""
        return int(np.count_nonzero(self.problem.counts))

    @property
    def unit(self) -> float:
        """The step size 1 for rows of norm at most 1."""
        return 1.0 / (self.longest * self.longest)

    def scores(self, w: Vector) -> Vector:
        """Z w."""
        return np.asarray(self.factor * self.problem.X.matvec(w) + self.prior)

    def combination(self, q: Vector) -> Vector:
        """Z'q."""
        return self.problem.X.rmatvec(self.factor * q)

    def gram(self, q: Vector) -> Vector:
        """Z Z'q."""
        return np.asarray(self.factor * self.problem.X.gram_product(self.factor * q))

    def gram_row(self, i: int) -> Vector:
        """Z z_i."""
        return np.asarray(self.factor * (self.factor[i] * self.problem.X.gram_row(i)))

    def row(self, i: int) -> Vector:
        """z_i."""
        return np.asarray(self.factor[i] * self.problem.X.rows(np.array([i]))[0])

    def tilted(self, w: Vector, logistic: bool, offset: float) -> tuple[Vector, Vector, float] | None:
        """Z w - offset, and sum_i e_i z_i with e_i the slopes there over exp(shift), and the shift, in one pass.

        None if X is not stored by rows: two products do it then.
        """
        problem = self.problem
        if not problem.is_stored or not problem.design.by_rows:
            return None
        prior = self.prior - offset if offset else self.prior
        return kernels.tilted_rows(problem.design.lines, w, self.factor, prior, logistic, problem.X.threads)

    def candidate(self, w: Vector, least: float, q: Vector | None, image: Vector | None = None) -> Candidate:
        """A model with margins of about 1 if the `least` one is positive; multipliers from q; Z'q if it is known."""
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(w / least if 0.0 < least < np.inf else w, -self.exponent)
        alpha = None if q is None else self.multipliers(q, self.combination(q) if image is None else image)
        return Candidate(scaled.reshape(self.problem.weights_shape), 0.0, alpha)

    def multipliers(self, q: Vector, image: Vector) -> Vector:
        """alpha, with nearly the best c; any other one gives the same certificate."""
        problem, total, length = self.problem, q.sum(), np.linalg.norm(image)
        with np.errstate(all="ignore"):
            share = np.where(problem.counts, -self.factor * q / problem.fractions[:, 0], 0.0)
            best = problem.penalty.strong_convexity * (total / length) / length  # infinite where Z'q = 0
            scale = best if 0.0 < best < np.inf else 1.0
            return np.asarray(np.ldexp(share * scale, -self.exponent))


class Offers(Protocol):
    """A state that has models to certify."""

    def candidates(self) -> Sequence[Candidate]:
        """Its models."""


State = TypeVar("State", bound=Offers)


class MarginSolver(Solver[State]):
    """The base of all algorithms for hard margins: half-lines with an L2 penalty, from zero."""

    requires = frozenset({Trait.QUADRATIC_PENALTY, Trait.INTERVALS})
    needs_storage = False
    any_storage = True
    has_own_threads = True

    @property
    def ignores_start(self) -> bool:
        return True

    def obstacle(self, problem: Interpolation) -> str | None:
        if problem.intercept:
            return "has no intercept: it maximises the margin of planes through the origin"
        if isinstance(problem.penalty, Bregman):
            return "has no centre: the margin is that of the weights themselves"
        if not problem.is_scalar:
            return (
                f"needs one score per sample, not {problem.outputs}; for several classes pass "
                "fenchel.data.ClassDifferences as X"
            )
        assert problem.constraints.ends is not None
        low, high = (end.ravel()[problem.counts] for end in problem.constraints.ends)
        if np.all(((low > 0.0) & (high == np.inf)) | ((high < 0.0) & (low == -np.inf))):
            return None
        return "needs half-lines with a positive margin, such as HalfLine(1.0, y), for every sample"

    def candidates(self, state: State) -> Sequence[Candidate]:
        return state.candidates()
