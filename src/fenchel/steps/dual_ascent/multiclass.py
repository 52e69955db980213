"""Dual ascent over blocks of k multipliers (Shalev-Shwartz and Zhang 2013, in the form for vector-valued scores).

The step of sample i maximises D over its block alpha_i, and B follows by the link, a soft threshold; the intercepts
have the proximal-point loop of `sdca`. For a loss with kinks and an L2 penalty, where single blocks converge slowly,
Newton steps on all free multipliers follow (`multiclass_face`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledMulticlassLoss, kernels
from fenchel.data.multi_products import padded
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem, Trait
from fenchel.problem.penalties import L2, ElasticNet, Penalty
from fenchel.steps.base import Candidate, Progress, Solver, Start
from fenchel.steps.dual_ascent.multiclass_face import TUNING as FACE_TUNING
from fenchel.steps.dual_ascent.multiclass_face import ascend_faces
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.state import TUNING, LastEpoch, intercept_step
from fenchel.steps.dual_ascent.threads import EpochThreads


@dataclass
class BlockState(LastEpoch):
    """Multipliers alpha (n x k), and u = V' / mu (d x k, padded) with the intercepts as last row; modified in place."""

    problem: MulticlassProblem
    loss: CompiledMulticlassLoss
    squared_norms: Vector
    alpha: Vector
    u: Vector
    centre: Vector
    inverse_rho: float
    sampler: Sampler
    threads: EpochThreads
    epochs: int = 0
    allowance: float = 0.0  # work left for steps on faces: that of the epochs so far, less theirs
    margin: float = np.inf

    @property
    def b(self) -> Vector:
        """The intercepts, a view of the last row of u."""
        return self.u[-1, : self.problem.n_classes]


@dataclass(frozen=True)
class BlockSDCA(Solver[BlockState]):
    """One step is a pass over the samples in random order, with exact maximisation over each sample's block.

    Shrinking for losses with kinks: samples whose blocks are far from changing are left out until the next check. Data
    stored by columns are copied by rows, once.
    """

    name = "sdca"
    summary = "many samples: dual coordinate ascent over blocks of multipliers"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.COMPILED_LOSS})
    steps_per_check = 20
    passes_per_step = 1
    has_own_threads = True

    def obstacle(self, problem: MulticlassProblem) -> str | None:
        if problem.design.constant and not problem.penalty.quadratic:
            return f"needs an L2 penalty for penalised intercepts, got {problem.penalty!r}"
        if isinstance(problem.penalty, L2 | ElasticNet):
            return None
        return f"needs the penalty L2 or ElasticNet, got {problem.penalty!r}"

    def begin(self, problem: MulticlassProblem, start: Start, seed: int) -> BlockState:
        if not problem.design.by_rows:
            problem = problem.replace(X=problem.design.stored_by_rows())
        design, mu, k = problem.design, problem.penalty.strong_convexity, problem.n_classes
        norms = design.squared_row_norms
        if design.constant:
            inverse_rho = design.constant**2 / mu
        else:
            inverse_rho = intercept_step(problem.loss, float(np.mean(norms)), mu) if problem.intercept else 0.0
        alpha = np.array(start.alpha, dtype=np.float64, order="C")
        u = self._u(problem, alpha)
        centre = np.array(start.b, dtype=np.float64) if problem.intercept else np.zeros(k)
        pool = np.flatnonzero(problem.weights > 0).astype(np.int64)
        sampler = Sampler("permutation", np.random.default_rng(seed), pool, block=TUNING.block)
        u[-1, :k] = centre
        threads = EpochThreads(design, u.size, u.shape[1])
        return BlockState(problem, problem.loss.kernel(), norms, alpha, u, centre, inverse_rho, sampler, threads)

    def step(self, state: BlockState) -> BlockState:
        problem, penalty, sampler = state.problem, state.problem.penalty, state.sampler
        W = problem.total_weight
        if not sampler.active:  # all samples are left out
            self.include_all(state)
        whole, order = sampler.whole, sampler.next()
        fraction = len(order) / problem.shape[0]
        state.b[:] = self._intercepts(state)
        loss, gap, move, kept, moves = kernels.ascend_blocks(
            state.loss,
            problem.design.lines,
            problem.y,
            problem.weights,
            state.squared_norms,
            order,
            state.alpha,
            state.u,
            penalty.strong_convexity,
            threshold(penalty),
            state.inverse_rho,
            W,
            state.margin,
            *state.threads.plan(len(order)),
        )
        sampler.keep(kept)
        state.threads.done(moves / max(1, len(order)))
        state.margin = move if move > 0.0 else np.inf
        if problem.intercept:
            state.centre = state.b.copy()
        state.epochs, state.passes = state.epochs + 1, state.passes + fraction
        if whole:
            state.primal = loss / W + self._penalty(state)
        state.partial = not whole and np.isinf(problem.loss.smoothness)
        state.learn(gap / W)
        # a step costs about 20 products per class beside its passes over a row
        state.allowance += fraction * (float(problem.design.nnz * state.u.shape[1]) + 20.0 * state.alpha.size)
        if state.epochs % FACE_TUNING.epochs == 0 and np.isinf(problem.loss.smoothness) and threshold(penalty) == 0.0:
            self._finish(state)
        return state

    def progress(self, state: BlockState) -> Progress:
        """P and gap as summed over the last epoch; the gap is extrapolated to its end by the last rate."""
        return state.progress(state.threads.gap_factor)

    def include_all(self, state: BlockState) -> None:
        """End shrinking: visit all samples again."""
        state.sampler.restore()
        state.margin = np.inf

    def observe(self, state: BlockState, z: Vector, primal: float, gap: float) -> None:
        """After a check: visit all samples again."""
        self.include_all(state)
        state.threads.checked(gap)
        state.primal = primal

    def _penalty(self, state: BlockState) -> float:
        """R at the current model, without the part of penalised intercepts."""
        penalty = state.problem.penalty
        if threshold(penalty) == 0.0:
            return 0.5 * penalty.strong_convexity * float(np.sum(state.u[:-1] ** 2))
        return penalty.value(self.candidates(state)[0].w.ravel())

    def _finish(self, state: BlockState) -> None:
        """For a loss with kinks: Newton steps on all free multipliers, if there are few."""
        problem, model = state.problem, self.candidates(state)[0]
        best = ascend_faces(problem, state.alpha, model.w, model.b, state.allowance)
        if best is None:
            return
        state.allowance -= best.work
        self.include_all(state)
        state.alpha = best.alpha
        state.u = self._u(problem, best.alpha)
        if problem.intercept:
            state.centre = best.b
        state.b[:] = best.b if problem.intercept else self._intercepts(state)

    @staticmethod
    def _intercepts(state: BlockState) -> Vector:
        """centre + (1 / rho) mean alpha: the intercepts of the multipliers."""
        problem = state.problem
        return state.centre + state.inverse_rho / problem.total_weight * (problem.weights @ state.alpha)

    @staticmethod
    def _u(problem: MulticlassProblem, alpha: Vector) -> Vector:
        """V' / mu, padded, and a row of zeros."""
        stored, k = problem.design.n_features, problem.n_classes
        u = np.zeros((stored + 1, padded(k)))
        u[:-1, :k] = problem.dual_vector(alpha)[:, :stored].T / problem.penalty.strong_convexity
        return u

    def candidates(self, state: BlockState) -> Sequence[Candidate]:
        t, k = threshold(state.problem.penalty), state.problem.n_classes
        u = np.ascontiguousarray(state.u[:-1, :k].T)
        B, b = u - np.clip(u, -t, t), state.b.copy()
        if constant := state.problem.design.constant:
            B, b = np.column_stack([B, b / constant]), np.zeros(k)
        return [Candidate(B, b, state.alpha.copy())]


def threshold(penalty: Penalty) -> float:
    """The link is B = soft(U, threshold) for U = V / mu."""
    return penalty.lam * penalty.sparsity / penalty.strong_convexity
