"""Newton steps where the working set is narrow: its Hessian is formed, and coordinate descent works on it alone.

With H = X' diag(p h) X and the gradient g at w, a step minimises g.(u - w) + (u - w)'H(u - w)/2 + R(u) over u: passes
over a k x k matrix, however many samples there are. For the squared loss that is the problem itself. Where coordinate
descent has found which groups are zero, Newton steps on all others at once take the rest of the way. A Hessian costs
many passes over the samples, so it is used again as long as steps with it are good enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cython_lapack

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.typing import Vector
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.linear_algebra.augmented import gram_matrix, known_gram

if TYPE_CHECKING:
    from fenchel.steps.working_set.state import WorkingSetState

#: LAPACK's solution of a positive definite system, for the compiled core to call.
POSV = kernels.Posv(cython_lapack.__pyx_capi__["dposv"])


@dataclass(frozen=True)
class HessianTuning:
    """`python -m benchmarks.race --sparse`, paths of a9a, leukemia and imdb."""

    uses: int = 3  # a Hessian of all columns is formed anew after so many steps beside the first for each lam,
    stale: float = 0.3  # or when a step with it leaves more of the gap than this
    set_uses: int = 8  # the same for a working set, whose Hessian costs more beside a step
    set_stale: float = 0.5
    ease: float = 1e-12  # thresholds a little higher: at lam_max no weight differs from zero by rounding alone


TUNING = HessianTuning()


@dataclass(frozen=True)
class Elimination:
    """An unpenalised intercept that is at its best for every u, under some curvature c of the samples.

    It takes e e'/C from the Hessian X' diag(c) X and e r/C from the gradient, with e = X'c, C = sum c, r = mean a: the
    same as if every column had its mean, e / C, taken off.
    """

    total: float  # C
    mean: Vector | None  # of the columns; None without an intercept

    @classmethod
    def of(cls, design: Design, c: Vector, intercept: bool) -> Elimination:
        """For a design and its samples' curvature."""
        total = float(c.sum())
        return cls(total, design.rmatvec(c) / total if intercept else None)

    def slope(self, slope: Vector, missing: float) -> Vector:
        """That of the model, where the intercept's equation misses so much."""
        return slope if self.mean is None else slope + missing * self.mean

    def shift(self, move: Vector, missing: float) -> float:
        """What the intercept does when the weights move."""
        return 0.0 if self.mean is None else missing / self.total - float(self.mean @ move)


@dataclass
class Hessian:
    """That of the working set at some curvature, without the ridge; how often it has been used, and may be."""

    intercept: Elimination
    matrix: Vector
    uses: int
    stale: float
    spent: int = 0

    @classmethod
    def of(cls, state: WorkingSetState) -> Hessian:
        """At the present curvature."""
        columns, c = state.set, state.curvature()
        intercept = Elimination.of(columns.rows, c, state.problem.intercept)
        if columns.design is state.problem.design:
            return cls(intercept, known_gram(columns.rows, c, intercept.mean), TUNING.uses, TUNING.stale)
        return cls(intercept, gram_matrix(columns.rows, c, intercept.mean), TUNING.set_uses, TUNING.set_stale)

    def is_stale(self, left: float) -> bool:
        """Whether to form another, after a step that left this part of the gap."""
        self.spent += 1
        return self.spent >= self.uses or not left <= self.stale


def newton_step(state: WorkingSetState, accuracy: float) -> None:
    """To the minimum of the quadratic model, solved to this accuracy, or as far as P falls."""
    blocks, w = state.set.blocks, state.w
    unwatched = state.goal is None and not state.problem.loss.quadratic  # nobody says when a Hessian is too old
    if state.hessian is None or unwatched:
        state.hessian = Hessian.of(state)
    intercept, u = state.hessian.intercept, w.copy()
    v, missing = state.v[state.set.members], float(state.fractions @ state.a)
    slope = intercept.slope(blocks.ridge * w - v, missing)
    minimise(ridged(state.hessian.matrix, blocks.ridge), blocks, u, slope, accuracy)
    product = state.set.design.matvec(u)
    state.go_to(u, state.b + intercept.shift(u - w, missing), product)


def minimise(H: Vector, blocks: Blocks, u: Vector, slope: Vector, enough: float) -> None:
    """u and the slope there, changed in place: the minimum of a quadratic and the norms of groups, its ridge in H."""
    threshold = blocks.threshold * (1.0 + TUNING.ease)
    kernels.minimise_quadratic(POSV, H, blocks.column, blocks.first, threshold, u, slope, enough)


def ridged(H: Vector, ridge: float) -> Vector:
    """H with a ridge: a copy, if there is one."""
    if not ridge:
        return H
    H = H.copy()
    H[np.diag_indices_from(H)] += ridge
    return H
