"""Total-variation denoising of lines and images, by exact solutions of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import FusedL1
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start


def not_denoising(problem: Problem) -> str | None:
    """What keeps a problem from being (1/(2n)) |w - y|^2 + lam |D w|_1; None if it is that."""
    if not isinstance(problem.penalty, FusedL1) or not isinstance(problem.loss, Squared):
        return "needs the squared loss with FusedL1"
    if problem.intercept:
        return "has no place for an intercept"
    if not problem.weightless:
        return "takes no sample weights"
    return None if problem.X.is_identity else "denoises: X must be the identity (scipy.sparse.eye_array(n))"


@dataclass(frozen=True, eq=False)
class Split:
    """y = w + a + b with a in the dual set of the rows and b in that of the columns; all arrays are flat."""

    w: Vector
    a: Vector
    b: Vector
    before: Vector  # the last b
    momentum: float
    steps: int
    primal: float
    gap: float  # as floating point has it


@dataclass(frozen=True)
class Image:
    """min 1/2 |w - y|^2 + c_across TV(rows of w) + c_down TV(columns of w)."""

    problem: Problem
    y: Vector
    shape: tuple[int, int]
    across: float
    down: float

    def rows(self, y: Vector) -> Vector:
        """Every row denoised."""
        return kernels.total_variation_of_rows(y, *self.shape, self.across, self.problem.X.threads)


@dataclass(frozen=True)
class TotalVariation(Solver[tuple[Image, Split | None]]):
    """(1/(2n)) |w - y|^2 + lam |D w|_1 for D the differences of neighbours on a line or in an image.

    A line is solved exactly, in one step of O(n): dynamic programming, then every constant piece once more.

    An image has the dual  min 1/2 |y - a - b|^2, a = D_rows'u and b = D_columns'u with |u| <= n lam. The best a for a
    given b is y - b less its rows denoised, and the other way round. Alternating between the two is a proximal
    gradient method on the function of b alone, with steps of length 1; so it can be accelerated like any other
    (Chambolle and Pock 2015), and is, with restarts. u is feasible all the time, and so every step has its bound.
    """

    name = "tv"
    requires = frozenset[Trait]()
    steps_per_check = 40
    passes_per_step = 1
    is_final = True

    def obstacle(self, problem: Problem) -> str | None:
        """What stands in the way."""
        reason = not_denoising(problem)
        if reason is not None:
            return reason
        penalty: Any = problem.penalty
        if penalty.chain is None and penalty.grid is None:
            return "needs the differences of neighbours on a line or in an image"
        return None

    def begin(self, problem: Problem, start: Start, seed: int) -> tuple[Image, Split | None]:
        penalty: Any = problem.penalty
        n = problem.shape[0]
        if penalty.chain is not None:
            return Image(problem, problem.y, (1, n), n * penalty.lam * abs(penalty.chain), 0.0), None
        grid = penalty.grid
        image = Image(problem, problem.y, grid.shape, n * penalty.lam * grid.c_across, n * penalty.lam * grid.c_down)
        b = image.rows(start.alpha) if np.any(start.alpha) else np.zeros(n)
        return image, Split(image.y, image.y, b, b, 1.0, 0, np.inf, np.inf)

    def step(self, state: tuple[Image, Split | None]) -> tuple[Image, Split | None]:
        image, at = state
        if at is None:
            w, u = kernels.taut_string(image.y, image.across)
            if not np.all(np.isfinite(w)):
                raise Overflow("the targets or lam exceed double precision")
            return image, Split(w, u, u, u, 1.0, 1, 0.0, 0.0)
        if image.shape[0] == 1:
            raise Overflow("a line is solved in one step, as exactly as double precision allows")
        return image, accelerated(image, at)

    def progress(self, state: tuple[Image, Split | None]) -> Progress:
        """The gap that floating point sees."""
        image, at = state
        assert at is not None  # after the first step
        n = len(image.y)
        return Progress(at.primal / n, at.gap / n, at.steps)

    def candidates(self, state: tuple[Image, Split | None]) -> Sequence[Candidate]:
        image, at = state
        assert at is not None  # after the first step
        penalty: Any = image.problem.penalty
        n = len(image.y)
        if image.shape[0] == 1:
            return [Candidate(at.w, 0.0, u=at.a / (n * penalty.chain))]
        u = np.empty(len(penalty.grid.sign))
        sums = -np.cumsum(at.a.reshape(image.shape), axis=1)[:, :-1]
        u[penalty.grid.across] = sums / (n * penalty.grid.c_across)
        sums = -np.cumsum(at.b.reshape(image.shape), axis=0)[:-1]
        u[penalty.grid.down] = sums / (n * penalty.grid.c_down)
        return [Candidate(at.w, 0.0, u=penalty.grid.sign * u)]


def accelerated(image: Image, at: Split) -> Split:
    """From the extrapolated b: the best a, then the best b for it; momentum is dropped where it points uphill."""
    momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * at.momentum**2))
    beta = (at.momentum - 1.0) / momentum
    threads = image.problem.X.threads
    w, a, b, (variation, square, aw, bw, uphill) = kernels.take_turn(
        image.y, at.b, at.before, beta, *image.shape, image.across, image.down, threads
    )
    # b fits w exactly, so that only the rows have a gap
    gap = image.across * variation - aw
    primal = 0.5 * square + image.across * variation + bw
    if not np.isfinite(primal):
        raise Overflow("the targets or lam exceed double precision")
    last, momentum = (b, 1.0) if uphill > 0.0 else (at.b, momentum)
    return Split(w, a, b, last, momentum, at.steps + 1, primal, gap)
