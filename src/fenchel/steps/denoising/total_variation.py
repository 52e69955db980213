"""Total-variation denoising of signals and images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel._core import kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.losses import Squared
from fenchel.problem.penalties import FusedL1
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start


def not_denoising(problem: Problem) -> str | None:
    """Why a problem is not (1/(2n)) |w - y|^2 + lam |D w|_1; None if it is."""
    if not isinstance(problem.penalty, FusedL1) or not isinstance(problem.loss, Squared):
        return "needs the squared loss with FusedL1"
    if problem.intercept:
        return "does not support an intercept"
    if not problem.weightless:
        return "does not support sample weights"
    return None if problem.X.is_identity else "needs X to be the identity (scipy.sparse.eye_array(n))"


def fused_penalty(problem: Problem) -> FusedL1:
    """The penalty of a denoising problem, with its type."""
    assert isinstance(problem.penalty, FusedL1)
    return problem.penalty


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """y = w + a + b with a in the dual set of the rows and b in that of the columns; all arrays are flat."""

    w: Vector
    a: Vector
    b: Vector
    before: Vector  # the last b
    momentum: float
    steps: int
    primal: float
    gap: float  # as computed in floating point


@dataclass(frozen=True)
class DenoisedImage:
    """min 1/2 |w - y|^2 + c_across TV(rows of w) + c_down TV(columns of w)."""

    problem: Problem
    y: Vector
    shape: tuple[int, int]
    across: float
    down: float

    def rows(self, y: Vector) -> Vector:
        """Each row of y denoised."""
        return kernels.total_variation_of_rows(y, *self.shape, self.across, self.problem.X.threads)


@dataclass(frozen=True)
class TotalVariation(Solver[tuple[DenoisedImage, ImageSplit | None]]):
    """(1/(2n)) |w - y|^2 + lam |D w|_1 for D the differences of neighbours in a signal or an image.

    A signal is solved exactly in one step of O(n): dynamic programming, then the mean of each constant piece.

    An image has the dual  min 1/2 |y - a - b|^2, a = D_rows'u and b = D_columns'u with |u| <= n lam. The best a for a
    given b is y - b minus its rows denoised, and vice versa. Alternating between the two is a proximal gradient method
    on the function of b alone, with step size 1, accelerated with restarts (Chambolle and Pock 2015). u is feasible in
    every step, which gives a dual bound.
    """

    name = "tv"
    any_storage = True
    summary = "X the identity, neighbours in a signal or an image: exact, or alternating over rows and columns"
    requires = frozenset[Trait]()
    steps_per_check = 40
    passes_per_step = 1
    is_final = True

    def obstacle(self, problem: Problem) -> str | None:
        reason = not_denoising(problem)
        if reason is not None:
            return reason
        penalty = fused_penalty(problem)
        if penalty.chain is None and penalty.grid is None:
            return "needs the differences of neighbours in a signal or an image"
        return None

    def begin(self, problem: Problem, start: Start, seed: int) -> tuple[DenoisedImage, ImageSplit | None]:
        penalty = fused_penalty(problem)
        n = problem.shape[0]
        if penalty.chain is not None:
            return DenoisedImage(problem, problem.y, (1, n), n * penalty.lam * abs(penalty.chain), 0.0), None
        grid = penalty.grid
        assert grid is not None
        image = DenoisedImage(
            problem, problem.y, grid.shape, n * penalty.lam * grid.c_across, n * penalty.lam * grid.c_down
        )
        b = image.rows(start.alpha) if np.any(start.alpha) else np.zeros(n)
        return image, ImageSplit(image.y, image.y, b, b, 1.0, 0, np.inf, np.inf)

    def step(self, state: tuple[DenoisedImage, ImageSplit | None]) -> tuple[DenoisedImage, ImageSplit | None]:
        image, at = state
        if at is None:
            w, u = kernels.taut_string(image.y, image.across)
            if not np.all(np.isfinite(w)):
                raise Overflow("the targets or lam exceed double precision")
            return image, ImageSplit(w, u, u, u, 1.0, 1, 0.0, 0.0)
        if image.shape[0] == 1:
            raise Overflow("a signal is solved in one step, to double precision")
        return image, accelerated(image, at)

    def progress(self, state: tuple[DenoisedImage, ImageSplit | None]) -> Progress:
        """P and the gap as computed in floating point."""
        image, at = state
        assert at is not None  # after the first step
        n = len(image.y)
        return Progress(at.primal / n, at.gap / n, at.steps)

    def candidates(self, state: tuple[DenoisedImage, ImageSplit | None]) -> Sequence[Candidate]:
        image, at = state
        assert at is not None  # after the first step
        penalty = fused_penalty(image.problem)
        n = len(image.y)
        if image.shape[0] == 1:
            assert penalty.chain is not None
            return [Candidate(at.w, 0.0, u=at.a / (n * penalty.chain))]
        grid = penalty.grid
        assert grid is not None
        u = np.empty(len(grid.sign))
        sums = -np.cumsum(at.a.reshape(image.shape), axis=1)[:, :-1]
        u[grid.across] = sums / (n * grid.c_across)
        sums = -np.cumsum(at.b.reshape(image.shape), axis=0)[:-1]
        u[grid.down] = sums / (n * grid.c_down)
        return [Candidate(at.w, 0.0, u=grid.sign * u)]


def accelerated(image: DenoisedImage, at: ImageSplit) -> ImageSplit:
    """The best a for the extrapolated b, then the best b for it; a restart if the momentum points uphill."""
    momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * at.momentum**2))
    beta = (at.momentum - 1.0) / momentum
    threads = image.problem.X.threads
    w, a, b, (variation, square, aw, bw, uphill) = kernels.alternating_step(
        image.y, at.b, at.before, beta, *image.shape, image.across, image.down, threads
    )
    # b is optimal for w, so only the rows contribute to the gap
    gap = image.across * variation - aw
    primal = 0.5 * square + image.across * variation + bw
    if not np.isfinite(primal):
        raise Overflow("the targets or lam exceed double precision")
    last, momentum = (b, 1.0) if uphill > 0.0 else (at.b, momentum)
    return ImageSplit(w, a, b, last, momentum, at.steps + 1, primal, gap)
