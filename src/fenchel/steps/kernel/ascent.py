"""Dual coordinate ascent on the rows of a Gram matrix, in the compiled core.

The scores f(x_i) of all samples are kept beside the multipliers, so that to look at a sample costs one number, and only
a step that changes its multiplier costs a row. With q_i = s_i k(x_i, x_i) / (lam W) the step for sample i maximises

    -phi*(-a_i'; y_i) - z_i (a_i' - a_i) - q_i (a_i' - a_i)^2 / 2,

which is the change of D. A sweep makes the steps that are worth a part of the mean of those made in the last one. An
unpenalised intercept is handled as in `SDCA`: a quadratic around a centre that moves to b after every sweep. For
piecewise linear losses with an intercept a step changes two multipliers and leaves their sum: the pair that raises D
most.

If the matrix does not fit into the cache, steps are made within a working set: the samples whose steps raise D most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel._core import CompiledLoss, CompiledPieces, kernels
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Mask, Matrix, Vector
from fenchel.problem import KernelProblem, Trait
from fenchel.problem.checks import require_count
from fenchel.problem.intercept import best_shift
from fenchel.steps.base import Candidate, Overflow, Progress, Residual, Solver, Start
from fenchel.steps.dual_ascent.state import LastEpoch, intercept_step
from fenchel.steps.linear_algebra import safeguards


@dataclass(frozen=True)
class KernelAscentTuning:
    """`python -m benchmarks.tuning steps.kernel.ascent worth 0.1 0.6 --rows "^kernel logistic"`: 1.16 and 1.69 of the
    time; `decrease 0.03 0.3 --rows "^kernel working set"`: 1.10 and 0.97; `working_set 128 512 --rows "^kernel
    pgs"`: 1.05 and 1.05.
    """

    worth: float = 0.3  # a step is made if it raises D by this part of the mean of those of the last sweep
    working_set: int = 256  # rows
    decrease: float = 0.1  # sweeps over a working set end where one raises D by this part of the first one's


TUNING = KernelAscentTuning()


@dataclass
class KernelAscentState(LastEpoch):
    """Multipliers, and the scores that go with them; the intercept after them."""

    problem: KernelProblem
    loss: CompiledLoss
    alpha: Vector
    scores: Vector
    q: Vector
    inverse_rho: float
    rng: np.random.Generator
    order: Indices
    least: float = 0.0
    done: bool = False  # no step raises D any more
    active: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # samples that pairs are taken of
    own: Matrix = field(default_factory=lambda: np.zeros((0, 0)), repr=False)  # the Gram matrix of the active samples

    @property
    def pieces(self) -> CompiledPieces | None:
        """The loss, if it is piecewise linear."""
        return self.loss if isinstance(self.loss, CompiledPieces) else None

    @property
    def step_length(self) -> float:
        """1 / (lam W): of a score with respect to s_i alpha_i K_ij."""
        return 1.0 / (self.problem.penalty.lam * self.problem.total_weight)

    @property
    def shift(self) -> float:
        """Of the intercept with respect to s_i alpha_i."""
        return self.inverse_rho / self.problem.total_weight

    @property
    def coefficients(self) -> Vector:
        """beta = s alpha / (lam W)."""
        return self.problem.weights * self.alpha * self.step_length

    def activate(self, may_move: Mask, K: Matrix) -> Indices:
        """The samples of the submatrix, which is taken anew if it lacks one or has become too large."""
        count = int(np.count_nonzero(may_move))
        if 2 * count > len(may_move):  # a copy costs page faults
            return np.arange(len(may_move))
        lacks = np.count_nonzero(may_move[self.active]) < count
        if lacks or 2 * count < len(self.active):
            self.active = np.flatnonzero(may_move).astype(np.int64)
            self.own = np.ascontiguousarray(K[np.ix_(self.active, self.active)])
        return self.active

    def refresh(self) -> None:
        """Compute the scores anew."""
        self.scores[:-1] = self.problem.X.matvec(self.coefficients)


@dataclass(frozen=True)
class KernelAscent(Solver[KernelAscentState]):
    """One step is a sweep over the samples, or over a working set of them if the Gram matrix exceeds the cache.

    Parameters
    ----------
    working_set : int, optional
        The most rows of a working set, by default 256.
    """

    working_set: int | None = None
    name = "kernel_ascent"
    summary = "functions of a kernel: dual ascent on rows of the Gram matrix"
    requires = frozenset({Trait.COMPILED_LOSS})
    steps_per_check = 20
    passes_per_step = 1
    needs_storage = False

    def __post_init__(self) -> None:
        if self.working_set is not None:
            require_count(self.working_set, "kernel_ascent: working_set", "samples")

    def begin(self, problem: KernelProblem, start: Start, seed: int) -> KernelAscentState:
        loss, n = problem.loss.kernel(), len(problem.gram)
        assert loss is not None
        lam, W, diagonal = problem.penalty.lam, problem.total_weight, problem.gram.diagonal
        inverse_rho = intercept_step(problem.loss, float(np.mean(diagonal)), lam) if problem.intercept else 0.0
        q = problem.weights * ((diagonal / lam + inverse_rho) / W)
        if not np.all(np.isfinite(q)):
            raise Overflow(f"{self.name}: lam is too small beside the kernel's values")
        order = np.flatnonzero(problem.weights > 0.0).astype(np.int64)
        state = KernelAscentState(
            problem, loss, start.alpha.copy(), np.zeros(n + 1), q, inverse_rho, np.random.default_rng(seed), order
        )
        if state.pieces is not None and problem.intercept:
            state.alpha = _balanced(problem.weights * state.alpha, state.alpha)
        if np.any(state.alpha):
            state.refresh()
        if problem.intercept:
            state.scores[-1] = start.b
        return state

    def step(self, state: KernelAscentState) -> KernelAscentState:
        """One sweep."""
        if state.pieces is not None and state.problem.intercept:
            self._pairs(state)
        else:
            if state.problem.intercept:
                state.scores[-1] += state.problem.mean(state.alpha) * state.inverse_rho
            if self._has_matrix(state.problem):
                self._sweep(state)
            else:
                self._work(state)
        if not np.all(np.isfinite(state.scores)):
            raise Overflow(f"{self.name}: the scores overflow")
        return state

    @property
    def _rows_of_set(self) -> int:
        return self.working_set or TUNING.working_set

    def _has_matrix(self, problem: KernelProblem) -> bool:
        """Whether steps use the whole matrix."""
        return problem.gram.cache.holds_all and self.working_set is None

    def _measure(self, state: KernelAscentState) -> None:
        """P and the gap at the present scores."""
        problem, f = state.problem, state.scores[:-1]
        z, norm = f + state.scores[-1], max(float(state.coefficients @ f), 0.0)
        state.primal = problem.mean(problem.loss.value(z, problem.y)) + 0.5 * problem.penalty.lam * norm
        state.gap = state.loss.gap_sum(z, problem.y, problem.weights, state.alpha) / problem.total_weight

    def finished(self, state: KernelAscentState) -> bool:
        """Whether no pair of samples raises D."""
        return state.done

    def _sweep(self, state: KernelAscentState) -> None:
        """Over all samples."""
        problem = state.problem
        order = state.rng.permutation(state.order)
        loss, gap, path, moves = _epoch(
            state, problem.gram.whole, problem.y, problem.weights, state.q, order, state.alpha, state.scores
        )
        state.passes += 1
        state.least = TUNING.worth * path / moves if moves else 0.0
        W = problem.total_weight
        state.learn(gap / W)
        state.primal = loss / W + 0.5 * problem.penalty.lam * max(float(state.coefficients @ state.scores[:-1]), 0.0)

    def _pairs(self, state: KernelAscentState) -> None:
        """Steps of pairs, within all samples or a working set."""
        problem, f, loss = state.problem, state.scores[:-1], state.pieces
        assert loss is not None
        above, below = kernels.kinks_beside(loss, problem.y, state.alpha)
        counts = problem.weights > 0.0
        up, down = np.where(counts, above - f, -np.inf), np.where(counts, below - f, np.inf)
        high, low = float(up.max()), float(down.min())
        ends = [end for end in (high, low) if np.isfinite(end)]  # one of them if all weight is on one side
        state.scores[-1] = float(np.mean(ends)) if ends else 0.0
        self._measure(state)
        if not high > low:
            state.done = True
            return
        y, s, n = problem.y, problem.weights, len(f)
        most, length = n // 2 + 1, state.step_length
        has_matrix = self._has_matrix(problem)
        if has_matrix:  # all but those that can move in one direction only, which the gradient does not point to
            which = state.activate((up > low) | (down < high), problem.gram.whole)
        else:
            half = min(self._rows_of_set, n) // 2 + 1
            which = np.union1d(_largest(up, half), _largest(-down, half))
        if has_matrix and 2 * len(which) > n:
            steps, *_ = kernels.gram_pairs(loss, problem.gram.whole, y, s, length, state.alpha, f, most, 0.0)
            state.passes += 2.0 * steps / n
        else:
            enough, most = TUNING.decrease * (high - low), most * n // len(which)
            rows = None if has_matrix else problem.gram.rows(which)
            own = state.own if rows is None else np.ascontiguousarray(rows[:, which])
            alpha, scores = state.alpha[which], f[which]
            steps, *_ = kernels.gram_pairs(loss, own, y[which], s[which], length, alpha, scores, most, enough)
            change = np.zeros(n)
            change[which] = s[which] * (alpha - state.alpha[which])
            f += length * (problem.gram.whole @ change if rows is None else change[which] @ rows)
            state.alpha[which] = alpha
            state.passes += len(which) / n + 2.0 * steps * (len(which) / n) ** 2 / n
        state.done = steps == 0

    def _work(self, state: KernelAscentState) -> None:
        """Over the samples whose steps raise D most, several times."""
        problem, z = state.problem, state.scores[:-1] + state.scores[-1]
        change = state.loss.dual_step(state.alpha, z, state.q, problem.y) - state.alpha
        gain = problem.weights * state.q * change * change
        self._measure(state)
        which = _largest(np.where(problem.weights > 0.0, gain, -np.inf), self._rows_of_set)
        rows = problem.gram.rows(which)
        own, s = np.ascontiguousarray(rows[:, which]), problem.weights[which]
        alpha, scores = state.alpha[which], np.append(state.scores[which], state.scores[-1])
        q, y, before, first = state.q[which], problem.y[which], state.alpha[which], 0.0
        state.least = 0.0
        weighted, W = float(np.sum(problem.weights * state.alpha)), problem.total_weight
        for sweep in range(safeguards.TUNING.patience):
            if sweep:  # the centre of the intercept's quadratic moves
                scores[-1] += (weighted + float(np.sum(s * (alpha - before)))) / W * state.inverse_rho
            order = state.rng.permutation(len(which)).astype(np.int64)
            _, _, path, moves = _epoch(state, own, y, s, q, order, alpha, scores)
            first = path if sweep == 0 else first
            state.least = TUNING.worth * path / moves if moves else 0.0
            if path <= TUNING.decrease * first or not moves:
                break
        state.scores[:-1] += ((s * (alpha - before)) @ rows) * state.step_length
        state.scores[-1] = scores[-1]
        state.alpha[which] = alpha
        state.passes += len(which) / len(gain)

    def candidates(self, state: KernelAscentState) -> Sequence[Candidate]:
        problem, b = state.problem, float(state.scores[-1])
        if problem.intercept:
            z = state.scores[:-1] + b
            b += best_shift(problem.loss, z, problem.y, problem.weights)
        beta = state.coefficients
        rounding = 8.0 * UNIT_ROUNDOFF * problem.penalty.lam * float(np.abs(beta) @ problem.gram.lengths)
        residual = Residual(0.0, rounding * (1.0 + 1e-6) + 1e-300)  # of lam beta - a
        return [Candidate(beta, b if problem.intercept else 0.0, state.alpha, residual=residual)]

    def progress(self, state: KernelAscentState) -> Progress:
        """P and gap as summed over the last sweep."""
        return state.progress()

    def observe(self, state: KernelAscentState, z: Vector, primal: float, gap: float) -> None:
        """After a check: the scores, which rounding errors have moved, are computed anew; all steps are made again."""
        state.refresh()
        state.least, state.done = 0.0, False


def _largest(values: Vector, most: int) -> Indices:
    """The places of the largest values that are not -infinity, in order."""
    which = np.argpartition(-values, most - 1)[:most] if most < len(values) else np.arange(len(values))
    return np.sort(which[values[which] > -np.inf]).astype(np.int64)


def _balanced(u: Vector, alpha: Vector) -> Vector:
    """alpha with the heavier of its sides shrunk, so that the sum of u = s alpha is 0."""
    up, down = float(u[u > 0.0].sum()), float(-u[u < 0.0].sum())
    if min(up, down) <= 0.0:
        return np.zeros_like(alpha)
    heavier = (u > 0.0) if up > down else (u < 0.0)
    return np.where(heavier, alpha * (min(up, down) / max(up, down)), alpha)


def _epoch(
    state: KernelAscentState, K: Matrix, y: Vector, s: Vector, q: Vector, order: Indices, alpha: Vector, scores: Vector
) -> tuple[float, float, float, int]:
    """A sweep: the sums of losses and gaps before the steps, of the rises of D, and the number of steps."""
    loss, gap, _, _, path, moves = kernels.gram_epoch(
        state.loss, K, y, s, q, state.step_length, state.shift, order, alpha, scores, np.inf, state.least
    )
    return loss, gap, path, moves
