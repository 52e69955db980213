"""Stochastic gradient descent, a baseline without multipliers and with sublinear convergence.

With lam/2 |w|^2 the objective is lam-strongly convex, and step t has the size 1/(lam t):

    w_t = (1 - 1/t) w_{t-1} - (1/(lam t)) phi'(x_i.w_{t-1}; y_i) x_i,

i uniformly at random. (Section 8.6 of Shalev-Shwartz and Zhang 2013 prints the factor 1/lam; it lacks the t.) Pegasos
(Shalev-Shwartz, Singer and Srebro 2007) takes the mean over a batch of k samples and then projects w onto a ball that
contains the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledLoss, kernels
from fenchel.data.typing import Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_count, require_flag, require_one_of
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.dual_ascent.averaging import SuffixAverage
from fenchel.steps.dual_ascent.sampling import Sampler


@dataclass
class SGDState:
    """v = lam t w after t steps, the weight of a constant column as last entry; modified in place by the kernel."""

    problem: Problem
    loss: CompiledLoss
    squared_norm: Vector
    radius: float
    sampler: Sampler
    v: Vector
    t: int
    averaging: SuffixAverage | None

    def weights(self, v: Vector) -> Vector:
        """v without its last entry if there is no constant column."""
        return v if self.problem.design.constant else v[:-1]


class _Descent(Solver[SGDState]):
    """The base of `SGD` and `Pegasos`; a step is one pass over the samples."""

    requires = frozenset({Trait.QUADRATIC_PENALTY, Trait.COMPILED_LOSS})
    steps_per_check = 10
    passes_per_step = 1
    sampling: str
    output: str

    def _validate(self) -> None:
        require_one_of(self.sampling, ("uniform", "permutation", "cyclic"), f"{self.name}: sampling")
        require_one_of(self.output, ("last", "average"), f"{self.name}: output")

    def obstacle(self, problem: Problem) -> str | None:
        if problem.intercept:
            return "needs a strongly convex objective, without an unpenalised intercept"
        if not problem.design.by_rows:
            return f"needs rows, but X is stored by columns ({problem.design!r}): pass X.tocsr()"
        return None

    @property
    def _batch(self) -> int:
        return 1

    def _radius(self, problem: Problem) -> float:
        return np.inf

    def begin(self, problem: Problem, start: Start, seed: int) -> SGDState:
        """From zero at t = 0; a nonzero start counts as one pass, since a step at t = 0 would discard it."""
        design, loss = problem.design, problem.loss.kernel()
        assert loss is not None
        width = design.n_features
        sampler = Sampler.of(problem, self.sampling, seed, np.ones(problem.shape[0]))
        t = -(-len(sampler.pool) // self._batch) if start.w.any() else 0
        v = np.zeros(width + 1)
        v[: len(start.w)] = problem.penalty.strong_convexity * t * start.w
        # a separate generator: `output` must not change the iterates
        averaging = None if self.output == "last" else SuffixAverage(width + 1, np.random.default_rng(seed))
        return SGDState(problem, loss, design.row_norms() ** 2, self._radius(problem), sampler, v, t, averaging)

    def step(self, state: SGDState) -> SGDState:
        """One pass over the samples."""
        problem, before = state.problem, state.t
        lam, order = problem.penalty.strong_convexity, state.sampler.next()
        held = None if state.averaging is None else np.zeros_like(state.v)
        mean_weight = problem.total_weight / len(order)
        state.t = kernels.descend(
            state.loss,
            problem.design.lines,
            problem.y,
            problem.weights,
            state.squared_norm,
            lam,
            mean_weight,
            problem.design.constant,
            state.radius,
            self._batch,
            order,
            state.t,
            state.v,
            held,
        )
        if not np.all(np.isfinite(state.v)):
            raise Overflow(f"{self.name}: the weights diverge")
        if state.averaging is not None and held is not None:
            state.averaging.add(held / (state.t - before), state.v / (lam * state.t))
        return state

    def candidates(self, state: SGDState) -> Sequence[Candidate]:
        last = state.v / (state.problem.penalty.strong_convexity * state.t)
        models = [Candidate(state.weights(last), 0.0)]
        if state.averaging is not None:
            models.append(Candidate(state.weights(state.averaging.average), 0.0))
        return models


@dataclass(frozen=True)
class SGD(_Descent):
    """Stochastic gradient descent with step sizes 1/(lam t).

    Parameters
    ----------
    sampling : {"uniform", "permutation", "cyclic"}, default "uniform"
        The order of the samples in a pass.
    output : {"last", "average"}, default "last"
        What is certified beside the last iterate: the average over the last half of the run or more.
    """

    sampling: str = "uniform"
    output: str = "last"
    name = "sgd"

    def __post_init__(self) -> None:
        self._validate()


@dataclass(frozen=True)
class Pegasos(_Descent):
    """Stochastic gradient descent over batches, projected onto a ball that contains the optimum.

    By strong duality lam |w*|^2 = -mean phi*(-alpha*) - mean phi(z*), and -phi*(-a) <= phi(0), so

        |w*| <= sqrt((mean phi(0) - mean min phi) / lam),       1/sqrt(lam) for the hinge.

    Parameters
    ----------
    batch_size : int, default 1
        Samples per step.
    project : bool, default True
        Whether to project onto the ball after each step.
    sampling, output
        As for `SGD`.
    """

    batch_size: int = 1
    project: bool = True
    sampling: str = "uniform"
    output: str = "last"
    name = "pegasos"

    def __post_init__(self) -> None:
        self._validate()
        require_count(self.batch_size, "pegasos: batch_size", "samples")
        require_flag(self.project, "pegasos: project")

    @property
    def _batch(self) -> int:
        return int(self.batch_size)

    def _radius(self, problem: Problem) -> float:
        if not self.project:
            return np.inf
        at_zero = problem.loss.value(np.zeros_like(problem.y), problem.y) + problem.conjugate_at_zero
        return float(np.sqrt(problem.mean(at_zero) / problem.penalty.strong_convexity))
