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
from fenchel.steps.linear_algebra.safeguards import ROUNDING

if TYPE_CHECKING:
    from fenchel.steps.working_set.state import WorkingSetState

#: LAPACK's solution of a positive definite system, for the compiled core to call.
POSV = kernels.Posv(cython_lapack.__pyx_capi__["dposv"])


@dataclass(frozen=True)
class HessianTuning:
    """`python -m benchmarks.tuning steps.working_set.hessian uses "(4, 2)" "(16, 6)" --rows "^logistic lasso$"`: 0.89
    and 1.05 of the time.
    """

    # of a working set, and of all columns, whose Hessian costs less beside a step:
    uses: tuple[int, int] = (8, 3)  # it is formed anew after so many steps beside the last for each lam


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
    """That of the working set at some curvature, without the ridge; how often it has been used."""

    intercept: Elimination
    matrix: Vector
    whole: bool  # of all columns
    spent: int = 0

    @classmethod
    def of(cls, state: WorkingSetState) -> Hessian:
        """At the present curvature."""
        columns, c, whole = state.set, state.curvature(), state.set.design is state.problem.design
        intercept = Elimination.of(columns.rows, c, state.problem.intercept)
        return cls(intercept, (known_gram if whole else gram_matrix)(columns.rows, c, intercept.mean), whole)

    def is_stale(self, left: float) -> bool:
        """Whether to form another, after a step that left this part of the gap."""
        self.spent += 1
        return self.spent >= TUNING.uses[self.whole] or not left <= (0.3 if self.whole else 0.5)


def newton_step(state: WorkingSetState, accuracy: float) -> None:
    """To the minimum of the quadratic model, solved to this accuracy, or as far as P falls."""
    blocks, w = state.set.blocks, state.w
    if state.hessian is None or not (state.problem.loss.quadratic or state.goal.penalties):
        state.hessian = Hessian.of(state)  # without a goal no certificate says when it is too old
    intercept, u = state.hessian.intercept, w.copy()
    v = state.v[state.set.members]
    missing = float(state.fractions @ state.a) if state.problem.intercept else 0.0
    slope = intercept.slope(blocks.ridge * w - v, missing)
    minimise(state.hessian.matrix, blocks, u, slope, accuracy)
    state.go_to(u, state.b + intercept.shift(u - w, missing), state.set.design.matvec(u))


def minimise(H: Vector, blocks: Blocks, u: Vector, slope: Vector, enough: float) -> None:
    """u and the slope there, changed in place: the minimum of a quadratic with this Hessian and the penalty."""
    threshold = blocks.threshold * (1.0 + ROUNDING)  # at lam_max no weight differs from zero by rounding alone
    if blocks.ridge:
        H = H.copy()
        H[np.diag_indices_from(H)] += blocks.ridge
    kernels.minimise_quadratic(POSV, H, blocks.column, blocks.first, threshold, u, slope, enough)
