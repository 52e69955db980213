"""The Primal Gradient Solver of Zhu et al. (2009), with stochastic gradient descent and Pegasos as special cases.

The mean loss + lam/2 |w|_p^2, 1 < p <= 2. Step t takes the subgradient g_t of the mean loss over a batch of k samples,

    v_t = v_{t-1} - g_t,     w_t = grad R*(v_t / (t + 1)),

so that w_t minimises R(w) + (1/(t + 1)) sum_s g_s.w. By Lemma 1 of the paper the regret against any w is at most
(1/2) sum_t |g_t|_q^2 / (t mu), mu = lam (p - 1): O(log T / T) for the mean of the iterates, and fewer steps to a given
test error the more samples there are. The last iterate, their mean, or one drawn at random is certified. With
`SignedEntropy`, mu = lam / radius and q = inf: exponentiated gradients.

Losses without a Lipschitz constant need a bounded domain, |w|_p <= B. `SignedEntropy` has one; for squared norms
strong duality gives one with the optimum in it,

    lam |w*|_p^2 = -mean phi*(-alpha*) - mean phi(z*) <= mean phi(0) - mean min phi.

An intercept without a penalty has no such domain. Where the loss is neither Lipschitz nor smooth (the exponential), no
step moves it by more than `intercept_step`: in the ball scores are at most B |x|_q + |b|, and a sample moves b only
towards smaller losses of its own, so that slopes and |b| stay bounded, and from some step on the limit is not reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fenchel.data.design import Design
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.checks import require_count, require_flag, require_one_of
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import Penalty
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.stochastic.models import GradientModels, GradientPenalty, GradientRule, gradient_penalty

OUTPUTS = ("last", "average", "random")


@dataclass(frozen=True)
class DescentTuning:
    """Set by `python -m benchmarks.tuning steps.stochastic.pgs numpy_batch 1 8 32 --rows "uncompiled p=2"`: passes
    take 14, 1.9 and 0.58 times as long; what they learn is not compared.
    """

    numpy_batch: int = 16  # least samples of a step in NumPy, unless given


TUNING = DescentTuning()


@dataclass
class DescentState:
    """The model, the order of the samples, and one iterate drawn at random of all so far."""

    problem: Problem
    rows: Design | None  # None for functions of a kernel
    models: GradientModels
    sampler: Sampler
    batch: int
    rng: np.random.Generator | None  # of the iterate that is drawn
    drawn: Vector | None = field(default=None)


class StochasticDescent(Solver[DescentState]):
    """The base of the solvers below; a step is one pass over the samples."""

    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.COMPILED_LOSS})
    steps_per_check = 10
    passes_per_step = 1
    sampling: str
    output: str
    offset: ClassVar[float] = 0.0
    eager: ClassVar[bool] = False

    def _validate(self) -> None:
        require_one_of(self.sampling, ("uniform", "permutation", "cyclic"), f"{self.name}: sampling")
        require_one_of(self.output, OUTPUTS, f"{self.name}: output")

    def _batch(self, problem: Problem) -> int:
        return 1

    def _radius(self, problem: Problem) -> float:
        return np.inf

    def begin(self, problem: Problem, start: Start, seed: int) -> DescentState:
        """From zero at t = 0; a nonzero start counts as one pass, since a step at t = 0 would discard it."""
        penalty = _of(problem.penalty)
        sampler, batch = Sampler.of(problem, self.sampling, seed, np.ones(problem.shape[0])), self._batch(problem)
        step = intercept_step(problem.loss, problem.mean(np.abs(problem.y))) if problem.intercept else 0.0
        limit = intercept_limit(problem.loss, step)
        rule = GradientRule(penalty.p, self.offset, problem.X.constant, step, limit, self.eager)
        models = self._models(problem, rule, np.array([penalty.lam]), np.array([self._radius(problem)]))
        if start.w.any():
            models.start(problem.penalty, start.w[None], np.array([start.b]), -(-len(sampler.pool) // batch))
        models.numbers[2] = start.b
        # a separate generator: `output` must not change the iterates
        rng = np.random.default_rng(seed) if self.output == "random" else None
        rows = problem.design.stored_by_rows() if problem.is_stored else None
        drawn = models.last()[:, 0] if rng is not None else None  # a start counts as the steps before it
        return DescentState(problem, rows, models, sampler, batch, rng, drawn)

    def _models(self, problem: Problem, rule: GradientRule, lam: Vector, radius: Vector) -> GradientModels:
        return GradientModels(rule, lam, problem.design.n_features, radius, averages=self.output == "average")

    def _learn(self, state: DescentState, order: Indices, mean_weight: float, draw: int) -> Matrix | None:
        """Learn the samples in this order; the models after step `draw`, if it is one of these."""
        problem, rows = state.problem, state.rows
        assert rows is not None
        y, weights = problem.y, problem.weights
        return state.models.learn(problem.loss, rows, y, weights, order, mean_weight, state.batch, draw)[1]

    def step(self, state: DescentState) -> DescentState:
        """One pass over the samples."""
        problem, models, order = state.problem, state.models, state.sampler.next()
        mean_weight, draw = problem.total_weight / len(order), 0
        if state.rng is not None:  # the last of all steps so far that is drawn: each is with the same probability
            steps = -(-len(order) // state.batch)
            chosen = models.t + 1 + int(state.rng.integers(steps))
            draw = chosen if state.rng.integers(models.t + steps) < steps else 0
        drawn = self._learn(state, order, mean_weight, draw)
        if drawn is not None:
            state.drawn = drawn[:, 0]
        if not np.all(np.isfinite(models.v)):
            raise Overflow(f"{self.name}: the weights diverge")
        return state

    def candidates(self, state: DescentState) -> Sequence[Candidate]:
        if state.drawn is not None:
            models = [state.drawn]
        else:
            models = [state.models.last()[:, 0]]
            if self.output == "average":
                models.append(state.models.average()[:, 0])
        width = state.problem.shape[1]
        return [Candidate(model[:width].copy(), float(model[-1])) for model in models]


@dataclass(frozen=True)
class PGS(StochasticDescent):
    """The Primal Gradient Solver: one pass over the samples is a step.

    Parameters
    ----------
    batch_size : int or "auto", default "auto"
        Samples per gradient step; "auto" is 1 for p = 2, and for p < 2, where a step costs d, d over the mean number of
        entries of a row; 16 or more for a loss without a compiled version, which takes the steps in NumPy.
    ball : "auto", None or float, default "auto"
        |w|_p <= ball. "auto": for a loss without a Lipschitz constant a ball that contains the optimum, else None.
    sampling : {"uniform", "permutation", "cyclic"}, default "uniform"
        With replacement, without, or in the order of the data.
    output : {"average", "last", "random"}, default "average"
        The model that is certified: the last iterate; the mean of all iterates with weights t + 1, or the last one if
        it is better; or one drawn at random, each with the same probability. `solve` returns the best of its checks:
        with max_iter=k and check_every=k there is one, after k passes.
    """

    batch_size: int | str = "auto"
    ball: float | str | None = "auto"
    sampling: str = "uniform"
    output: str = "average"
    name = "pgs"
    summary = "one pass over many samples: stochastic gradients for p-norms"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY})
    offset = 1.0

    def __post_init__(self) -> None:
        self._validate()
        if self.batch_size != "auto":
            require_count(self.batch_size, "pgs: batch_size", 'samples, or "auto"')
        if isinstance(self.ball, str):
            require_one_of(self.ball, ("auto",), "pgs: ball")
        elif self.ball is not None and not (_is_number(self.ball) and self.ball > 0.0):
            raise ValueError(f'pgs: ball must be positive, None or "auto"; got {self.ball!r}')

    def obstacle(self, problem: Problem) -> str | None:
        found = gradient_penalty(problem.penalty)
        if found is None:
            return f"needs L2, LpSquared or SignedEntropy as penalty, which {problem.penalty!r} is not"
        if found.p == 1.0 and self.ball not in ("auto", None):
            return f"with ball={self.ball!r} needs a squared norm; the ball of {problem.penalty!r} is its radius"
        return None

    def _batch(self, problem: Problem) -> int:
        if self.batch_size != "auto":
            return int(self.batch_size)
        return default_batch(problem.loss, _of(problem.penalty).p, problem.design)

    def _radius(self, problem: Problem) -> float:
        found = _of(problem.penalty)
        if self.ball is None:
            return found.ball
        if self.ball != "auto":
            return min(float(self.ball), found.ball)
        bounded = np.isfinite(problem.loss.lipschitz) or found.p == 1.0
        return found.ball if bounded else min(found.ball, containing_ball(problem))


@dataclass(frozen=True)
class SGD(StochasticDescent):
    """Stochastic gradient descent with step sizes 1/(lam t), for L2; a baseline.

    w_t = (1 - 1/t) w_{t-1} - (1/(lam t)) phi'(x_i.w_{t-1}; y_i) x_i. (Section 8.6 of Shalev-Shwartz and Zhang 2013
    prints the factor 1/lam; it lacks the t.)

    Parameters
    ----------
    sampling : {"uniform", "permutation", "cyclic"}, default "uniform"
        The order of the samples in a pass.
    output : {"last", "average", "random"}, default "last"
        As for `PGS`, with weights t for the mean.
    """

    sampling: str = "uniform"
    output: str = "last"
    name = "sgd"
    requires = frozenset({Trait.QUADRATIC_PENALTY, Trait.COMPILED_LOSS})

    def __post_init__(self) -> None:
        self._validate()

    def obstacle(self, problem: Problem) -> str | None:
        return "needs a strongly convex objective, without an unpenalised intercept" if problem.intercept else None


@dataclass(frozen=True)
class Pegasos(SGD):
    """Stochastic gradient descent over batches, projected onto a ball that contains the optimum; a baseline.

    It is `PGS` for p = 2 without the offset of t and with a projection that goes on from the projected point. For the
    hinge the ball is |w| <= 1/sqrt(lam).

    Parameters
    ----------
    batch_size : int, default 1
        Samples per step.
    project : bool, default True
        Whether to project onto the ball after each step.
    sampling, output
        As for `SGD`.
    """

    batch_size: int = field(default=1, kw_only=True)
    project: bool = field(default=True, kw_only=True)
    name = "pegasos"
    eager = True

    def __post_init__(self) -> None:
        self._validate()
        require_count(self.batch_size, "pegasos: batch_size", "samples")
        require_flag(self.project, "pegasos: project")

    def _batch(self, problem: Problem) -> int:
        return int(self.batch_size)

    def _radius(self, problem: Problem) -> float:
        return containing_ball(problem) if self.project else np.inf


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def default_batch(loss: Loss, p: float, design: Design) -> int:
    """1 for p = 2; else as many samples as have d entries, so that the weights cost as much as the rows.

    More for a loss without a compiled version, for which each step is a few calls of NumPy.
    """
    n, d = design.shape
    batch = 1 if p == 2.0 else int(np.clip(d * n / max(design.nnz, 1), 1, d))
    return batch if loss.kernel() is not None else max(batch, TUNING.numpy_batch)


def _of(penalty: Penalty) -> GradientPenalty:
    found = gradient_penalty(penalty)
    assert found is not None
    return found


def containing_ball(problem: Problem) -> float:
    """A bound on |w*|_p from strong duality; the smallest positive one if w* = 0."""
    at_zero = problem.loss.value(np.zeros_like(problem.y), problem.y) + problem.conjugate_at_zero
    return float(max(np.sqrt(problem.mean(at_zero) / _of(problem.penalty).lam), np.finfo(float).tiny))


def intercept_step(loss: Loss, size: float) -> float:
    """The first step of an unpenalised intercept: 1 over the smoothness, at most 1; 1 for labels without one, and else
    `size`, the mean of |y|.
    """
    if np.isfinite(loss.smoothness):
        return float(min(1.0, 1.0 / loss.smoothness))
    return 1.0 if loss.is_classification else float(max(size, np.finfo(float).tiny))


def intercept_limit(loss: Loss, step: float) -> float:
    """The most by which a step moves a free intercept: `step` for a loss that is neither Lipschitz nor smooth."""
    return np.inf if np.isfinite(loss.lipschitz) or np.isfinite(loss.smoothness) else step
