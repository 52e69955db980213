"""Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013), in the compiled core.

D is maximised over one multiplier after another; the weights follow by the penalty's link. With
q_i = s_i |x_i|_*^2 / (mu W) the step for sample i maximises

    -phi*(-a_i'; y_i) - z_i (a_i' - a_i) - q_i (a_i' - a_i)^2 / 2,

which is the change of D for L2, and a lower bound on it for any other mu-strongly convex penalty (prox-SDCA). A
constant column c is a quadratic on the intercept, lam/2 (b/c)^2. An unpenalised intercept has a quadratic around a
centre that moves to b after every epoch: the proximal-point method, which drives sum_i s_i alpha_i to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_count, require_flag, require_one_of
from fenchel.problem.vectors import dual_exponent
from fenchel.steps.base import Candidate, Progress, Solver, Start, expected_epochs, length
from fenchel.steps.dual_ascent.averaging import SuffixAverage, require_start
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.state import TUNING, Momentum, SDCAState, ascent_of
from fenchel.steps.dual_ascent.threads import EpochThreads
from fenchel.steps.linear_algebra import newton_system


@dataclass(frozen=True)
class SDCA(Solver[SDCAState]):
    """One step is a pass over the samples, with exact maximisation over each multiplier.

    Parameters
    ----------
    sampling : {"permutation", "uniform", "cyclic", "importance"}, default "permutation"
        The order of the samples in an epoch.
    block : int, optional
        Number of consecutive samples that a permutation keeps together, 8 by default, for sequential memory access.
    init : {"zeros", "sgd"}, default "zeros"
        "sgd": the first epoch is Modified-SGD (section 4 of the paper); "zeros": begin at the given start.
    output : {"last", "average", "random"}, default "last"
        What is certified beside the last iterate: the average over the last half of the run or more, or a random
        iterate from it. The model with the smallest gap is kept.
    average_from : int, optional
        T0 of the theorems, in epochs: the average, or the random iterate, is of those after so many epochs.
    shrink : bool, optional
        Leave out samples whose multipliers seem final (until the next check), and for good those whose multipliers a
        certificate proves. On by default if every sample is visited once per epoch, without momentum.
    accelerate : bool, optional
        Solve a sequence of better conditioned problems, with momentum. For L2 only; by default if the loss is smooth,
        the problem ill conditioned (mean L |x_i|^2 / (lam n) >= 3), n >= d / 2, and there is no unpenalised intercept.
        Dropped if the gap does not decrease.
    """

    sampling: str = "permutation"
    block: int | None = None
    init: str = "zeros"
    output: str = "last"
    average_from: int | None = None
    shrink: bool | None = None
    accelerate: bool | None = None
    name = "sdca"
    summary = "many samples: dual coordinate ascent"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.COMPILED_LOSS, Trait.COMPILED_LINK})
    steps_per_check = 20
    passes_per_step = 2
    has_own_threads = True

    def __post_init__(self) -> None:
        require_one_of(self.sampling, ("permutation", "uniform", "cyclic", "importance"), "sdca: sampling")
        require_one_of(self.init, ("zeros", "sgd"), "sdca: init")
        require_one_of(self.output, ("last", "average", "random"), "sdca: output")
        for name, flag in (("shrink", self.shrink), ("accelerate", self.accelerate)):
            if flag is not None:
                require_flag(flag, f"sdca: {name}")
                object.__setattr__(self, name, bool(flag))  # np.False_ is not False
        require_start(self.average_from, self.output, "sdca")
        if self.block is not None:
            require_count(self.block, "sdca: block", "samples")
        if self.block is not None and self.sampling != "permutation":
            raise ValueError(f'sdca: block needs sampling="permutation"; sampling is {self.sampling!r}')
        if self.shrink and self.sampling not in ("permutation", "cyclic"):
            raise ValueError(f"sdca: shrink=True needs every sample once per epoch; sampling is {self.sampling!r}")
        if self.shrink and self.accelerate:
            raise ValueError("sdca: shrink=True and accelerate=True exclude each other")
        if self.accelerate and self.init == "sgd":
            raise ValueError('sdca: accelerate=True and init="sgd" exclude each other')

    @property
    def ignores_start(self) -> bool:
        return self.init == "sgd"

    def obstacle(self, problem: Problem) -> str | None:
        if not problem.design.by_rows:
            return f"needs rows; X is stored by columns ({problem.design!r}): pass X.tocsr() or np.ascontiguousarray(X)"
        if problem.design.constant and not problem.penalty.quadratic:
            return f"needs an L2 penalty for a penalised intercept, got {problem.penalty!r}"
        if self.accelerate and (problem.design.constant or not problem.penalty.quadratic):
            return f"with accelerate=True needs an L2 penalty and no penalised intercept, got {problem.penalty!r}"
        return None

    @staticmethod
    def suits(problem: Problem, tol: float) -> bool:
        """Whether "auto" takes it: for L2 (momentum) and losses with kinks, else for many samples and few epochs.

        On few samples FISTA is deterministic: a row of weight 2 gives the same result as a repeated row.
        """
        if problem.penalty.quadratic or Trait.DIFFERENTIABLE_LOSS not in problem.loss.traits:
            return True
        return problem.shape[0] > newton_system.TUNING.few_rows and expected_epochs(problem, tol) <= TUNING.many_epochs

    def begin(self, problem: Problem, start: Start, seed: int) -> SDCAState:
        design, penalty = problem.design, problem.penalty
        mu, width = penalty.strong_convexity, design.n_features
        norms = design.lines.norms_along(dual_exponent(penalty.norm), None)
        momentum = self._momentum(problem, norms)
        mu += momentum.kappa if momentum else 0.0
        ascent, q, inverse_rho = ascent_of(problem, norms, mu)
        sampler = Sampler.of(problem, self.sampling, seed, q, self.block or TUNING.block)
        plain = self.output == "last"
        averaging = None if plain else SuffixAverage(problem.shape[0], sampler.rng, self.average_from)
        alpha, u = start.alpha.copy(), np.zeros(width + 1)
        # with replacement two threads may draw the same sample, and one update would be lost; in the order of the data
        # the threads' samples may differ in distribution
        threads = EpochThreads(design, width + 1, alone=self.sampling != "permutation")
        state = SDCAState(problem, ascent, norms, alpha, u, inverse_rho, sampler, averaging, momentum, threads)
        if self.init == "sgd":
            alpha[:] = 0.0
            # every sample once for any sampling: multipliers are set, not updated
            order = sampler.next() if sampler.visits_once else sampler.rng.permutation(sampler.pool)
            ascent.first_epoch(order, alpha, u)
            return state
        if momentum is not None:
            momentum.centre = momentum.last = problem.link(alpha)
        state.refresh()
        u[-1] = start.b if problem.intercept else problem.mean(alpha) * inverse_rho
        return state

    def _momentum(self, problem: Problem, norms: Vector) -> Momentum | None:
        """Momentum with kappa = min(L, 1) mean |x_i|^2 / n - lam (then q_i is about 1 / min(L, 1)); None if unused."""
        if not (self.accelerate or (self.accelerate is None and not self.shrink and self._may_accelerate(problem))):
            return None
        lam, smoothness = problem.penalty.lam, problem.loss.smoothness
        size = float(np.sum(problem.weights * norms**2)) / (problem.total_weight * problem.shape[0])
        if self.accelerate is None and not TUNING.ill_conditioned * lam <= smoothness * size < np.inf:
            return None
        zero = np.zeros(problem.shape[1])
        return Momentum(lam, max(min(smoothness, 1.0) * size - lam, 0.0), zero, zero)

    def _may_accelerate(self, problem: Problem) -> bool:
        """L2 without an intercept (whose centre moves as well), and enough rows: few are nearly orthogonal."""
        (n, d), plain = problem.shape, problem.penalty.quadratic and not problem.design.constant
        return plain and self.init == "zeros" and not problem.intercept and 2 * n >= d

    def step(self, state: SDCAState) -> SDCAState:
        """One epoch."""
        sampler = state.sampler
        if not sampler.active:  # all samples are left out
            self.include_all(state)
        whole, order = sampler.whole, sampler.next()
        state.passes += len(order) / state.problem.shape[0]
        if state.problem.intercept:
            # the quadratic's centre moves to b: for the same multipliers b moves by their mean / rho
            state.u[-1] += state.problem.mean(state.alpha) * state.inverse_rho
        # with momentum the centre moves, and a multiplier that did not change may change in the next epoch
        shrinks = sampler.visits_once and self.shrink is not False and state.momentum is None
        margin = state.margin if shrinks else np.inf
        loss, gap, move, kept = self._pass(state, order, margin)
        if shrinks:
            sampler.keep(kept)
            state.margin = move if move > 0.0 else np.inf
        W = state.problem.total_weight
        # for a smooth loss the samples left out add only their squared distance from the optimum to the gap
        state.partial = not whole and not np.isfinite(state.problem.loss.smoothness)
        if whole and not sampler.proven:
            state.primal = loss / W + state.problem.penalty.value(state.weights())
        gap /= W
        if state.momentum is not None:
            gap += state.momentum.mismatch(state.u[:-1])
        state.learn(gap)
        if state.momentum is not None:
            if state.momentum.helps(gap):
                # roundings of the new centre and weights
                sizes = state.size + length(state.momentum.centre)
                state.momentum.advance(state.u[:-1])
                state.drift += 8.0 * UNIT_ROUNDOFF * (sizes + state.size + length(state.momentum.centre))
            else:
                state.drop_momentum()
        return state

    def candidates(self, state: SDCAState) -> Sequence[Candidate]:
        b = float(state.u[-1]) if state.problem.intercept else 0.0
        w = state.weights()
        models = [Candidate(w, b, state.alpha, residual=state.residual, scores=state.scores(w, b))]
        if state.averaging is not None and state.averaging.windows:
            other = state.averaging.average if self.output == "average" else state.averaging.random
            models.append(Candidate(state.weights(other), b, other))
        return models

    def progress(self, state: SDCAState) -> Progress:
        """P and gap as summed over the last epoch; the gap is extrapolated to its end by the last rate."""
        return state.progress(state.threads.gap_factor)

    def include_all(self, state: SDCAState) -> None:
        """End shrinking: visit all samples again."""
        state.sampler.restore()
        state.margin = np.inf

    def observe(self, state: SDCAState, z: Vector, primal: float, gap: float) -> None:
        """After a check: visit all samples again, but those whose multipliers it proves.

        |w - w*| <= sqrt(2 gap / mu), so the optimal score of sample i is within r_i = |x_i|_* sqrt(2 gap / mu) of z_i.
        If the loss is linear on that interval, minus its slope is the optimal multiplier.
        """
        self.include_all(state)
        state.threads.checked(gap)
        state.primal = primal
        problem = state.problem
        if state.momentum is None:
            state.refresh()
        if not (problem.loss.has_straight_parts and self.shrink is not False) or problem.intercept:
            return
        mu = problem.penalty.strong_convexity
        norms = np.hypot(state.norms, problem.design.constant)
        radius = (1.0 + 1e-9) * norms * np.sqrt(2.0 * max(gap, 0.0) / mu) + 1e-12 * (1.0 + np.abs(z))
        below, above = (-problem.loss.derivative(z + side * radius, problem.y) for side in (-1.0, 1.0))
        proven = below == above
        if proven.any() and not proven[state.sampler.pool].all():
            state.alpha[proven] = below[proven]
            state.sampler.settle(proven)
            state.refresh()
            state.u[-1] = state.problem.mean(state.alpha) * state.inverse_rho

    def _pass(self, state: SDCAState, order: NDArray[np.int64], margin: float) -> tuple[float, float, float, int]:
        """One epoch of the kernel; with averaging, also its mean iterate and a random one."""
        if state.averaging is None:
            plan = state.threads.plan(len(order))
            loss, gap, move, kept, path, moves = state.ascent.epoch(order, state.alpha, state.u, margin, None, *plan)
            state.threads.done(moves / max(1, len(order)))
            state.moved(path, moves, *plan)
            return loss, gap, move, kept
        # split at a random step, whose iterate may be drawn
        earlier, steps = np.zeros_like(state.alpha), len(order)
        cut = int(state.sampler.rng.integers(1, steps + 1))
        first = state.ascent.epoch(order[:cut], state.alpha, state.u, margin, earlier, 1, 1)
        state.moved(*first[4:])
        inside = state.alpha.copy()
        later = np.zeros_like(earlier)
        second = state.ascent.epoch(order[cut:], state.alpha, state.u, margin, later, 1, 1)
        state.moved(*second[4:])
        # mean iterate: alpha_end - (1/steps) sum_k k (change at step k)
        mean = state.alpha - (earlier + later + cut * (state.alpha - inside)) / steps
        state.averaging.add(mean, inside)
        kept = first[3] + second[3]
        order[first[3] : kept] = order[cut : cut + second[3]]
        return first[0] + second[0], first[1] + second[1], max(first[2], second[2]), kept
