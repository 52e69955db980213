"""Newton steps on the multipliers: squared loss and elastic net, few samples, more nonzero weights than samples.

With B = diag(sqrt p) X and t = sqrt(p) y, both centred where there is an intercept, and alpha = sqrt(p) a, the dual is

    D(alpha) = t.alpha - |alpha|^2 / 2 - |(|v| - l1)+|^2 / (2 l2),    v = B'alpha,

without a constraint: columns of B are orthogonal to sqrt(p), and so is the maximiser, which is t - B w for
w = soft(v, l1) / l2. D is piecewise quadratic, with the gradient t - alpha - B w and the Hessian
-(I + B_A B_A' / l2) of the columns A with |v_j| > l1: as many equations as samples, however many weights are not zero.
B_A B_A' is kept from step to step and from lam to lam; columns that enter or leave A change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv

from fenchel.data import limits
from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.penalties import ElasticNet
from fenchel.problem.vectors import soft
from fenchel.steps.base import Candidate, GaveUp, Progress, Solver, Start
from fenchel.steps.linear_algebra.safeguards import Patience, backtracked
from fenchel.steps.working_set.moments import Centre


@dataclass
class DualState:
    """alpha and what belongs to it; B is stored by its columns."""

    problem: Problem
    penalty: ElasticNet
    centre: Centre
    root: Vector  # sqrt(p)
    B: Matrix  # its transpose, d x n
    target: Vector
    alpha: Vector
    v: Vector
    active: Mask
    gram: Matrix  # B_A B_A', its lower triangle
    patience: Patience
    steps: int = 0

    def evaluate(self) -> None:
        """w, t - B w, P and D."""
        l1, l2 = self.penalty.l1, self.penalty.l2
        self.w = soft(self.v, l1) / l2
        self.residual = self.target - self.w @ self.B
        ridge = 0.5 * l2 * float(self.w @ self.w)
        self.primal = 0.5 * float(self.residual @ self.residual) + l1 * float(np.abs(self.w).sum()) + ridge
        self.dual = float(self.target @ self.alpha) - 0.5 * float(self.alpha @ self.alpha) - ridge

    def update_gram(self) -> None:
        """B_A B_A' of the present A, from that of the last one where fewer columns have changed than there are."""
        now = self.w != 0.0
        enter, leave = np.flatnonzero(now & ~self.active), np.flatnonzero(self.active & ~now)
        self.active = now
        if len(enter) + len(leave) < np.count_nonzero(now):
            self._add(enter, 1.0)
            self._add(leave, -1.0)
        else:
            self.gram = np.zeros_like(self.gram, order="F")
            self._add(np.flatnonzero(now), 1.0)

    def _add(self, columns: Indices, sign: float) -> None:
        for part in limits.parts(len(columns), max(1, limits.TUNING.block // len(self.target))):
            some = self.B[columns[part]]
            self.gram = dsyrk(sign, some.T, beta=1.0, c=self.gram, trans=0, lower=1, overwrite_c=1)


@dataclass(frozen=True)
class DualNewton(Solver[DualState]):
    """A step factors a matrix of the order of the samples."""

    name = "dual_newton"
    summary = "few samples, elastic net with more nonzero weights than samples: Newton steps on the multipliers"
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.STRONGLY_CONVEX_PENALTY, Trait.BLOCK_PENALTY})
    steps_per_check = 40
    passes_per_step = 2
    any_storage = True

    def obstacle(self, problem: Problem) -> str | None:
        if not (problem.loss.quadratic and isinstance(problem.penalty, ElasticNet)):
            return "is for the squared loss with ElasticNet"
        n, d = problem.shape
        if problem.design.is_sparse or problem.design.constant:
            return "is for dense data without a penalised intercept"
        fits = n <= d and limits.may_factor(n) and limits.fits(n, d)
        return None if fits else "is for fewer samples, and no fewer columns than samples"

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        return False  # how many weights will not be zero is not known before

    def begin(self, problem: Problem, start: Start, seed: int) -> DualState:
        assert isinstance(problem.penalty, ElasticNet)
        centre, root = Centre.of(problem), np.sqrt(problem.weights / problem.total_weight)
        B = np.array(problem.design.matrix.T, dtype=np.float64, order="C")
        if centre.columns is not None:
            B -= centre.columns[:, None]
        B *= root
        target = root * (problem.y - centre.target)
        alpha = target - start.w @ B if start.w.any() else np.zeros_like(target)
        none, gram = np.zeros(len(B), dtype=bool), np.zeros((len(root), len(root)), order="F")
        state = DualState(problem, problem.penalty, centre, root, B, target, alpha, B @ alpha, none, gram, _patience())
        state.evaluate()
        return state

    def retarget(self, state: DualState, problem: Problem) -> DualState:
        assert isinstance(problem.penalty, ElasticNet)
        state.problem, state.penalty, state.patience = problem, problem.penalty, _patience()
        state.evaluate()
        return state

    def step(self, state: DualState) -> DualState:
        """A Newton step, halved until D rises."""
        if state.patience.is_over:
            raise GaveUp("Newton steps on the multipliers get no further")
        state.update_gram()
        M = state.gram / state.penalty.l2
        M.ravel(order="K")[:: len(M) + 1] += 1.0
        gradient = state.residual - state.alpha
        _, change, failed = dposv(M, gradient, lower=1, overwrite_a=1)
        if failed or not np.all(np.isfinite(change)):
            raise GaveUp("the Hessian of the multipliers cannot be factored")
        alpha, v, before, moved = state.alpha, state.v, state.dual, state.B @ change
        rise = float(gradient @ change)

        def rises(t: float) -> bool:
            state.alpha, state.v = alpha + t * change, v + t * moved
            state.evaluate()
            return state.dual >= before + 1e-4 * t * rise - 1e-15 * abs(before)

        backtracked(rises)
        state.steps += 1
        state.patience.learn(state.primal - state.dual)
        return state

    def candidates(self, state: DualState) -> Sequence[Candidate]:
        centre, root = state.centre, state.root
        b = 0.0 if centre.columns is None else centre.target - float(centre.columns @ state.w)
        alpha = np.divide(state.alpha, root, out=np.zeros_like(root), where=root > 0.0)
        return (Candidate(state.w, b, alpha),)

    def progress(self, state: DualState) -> Progress:
        return Progress(state.primal, state.primal - state.dual, 2.0 * state.steps)


def _patience() -> Patience:
    """D rises in every step, but P may fall late if l2 is small."""
    return Patience(times=10)
