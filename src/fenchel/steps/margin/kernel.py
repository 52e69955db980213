"""The largest margin of functions of a kernel: the hard-margin problem of few samples, and those that it violates.

With least scores of 1 the problem is to minimise |f|_H^2 / 2 subject to y_i (f(x_i) + b) >= 1. Its dual is

    maximise sum_i y_i beta_i - beta'K beta / 2   subject to   y_i beta_i >= 0, and sum_i beta_i = 0 with an intercept,

f = sum_i beta_i k(x_i, .). At the optimum margin and bound are 1 / |f|_H. The optimum for some samples is that for all
if no other sample has y_i (f(x_i) + b) < 1; else those that have are added. Steps of pairs (SMO) find the samples with
multipliers, and the linear equations of these,

    sum_j K_ij beta_j + b = y_i,   sum_j beta_j = 0,

the multipliers themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from fenchel._core import kernels
from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem import KernelProblem
from fenchel.problem.losses import Hinge
from fenchel.problem.margin import KernelMargin
from fenchel.problem.penalties import L2
from fenchel.problem.traits import Trait
from fenchel.steps.base import Candidate, GaveUp, Goal, Progress, Solver, Start
from fenchel.steps.inner import Inner
from fenchel.steps.kernel.ascent import KernelAscent
from fenchel.steps.linear_algebra import safeguards
from fenchel.steps.margin import rounds
from fenchel.steps.margin.nearest import NearestPoint
from fenchel.steps.margin.rounds import Patience


@dataclass(frozen=True)
class KernelMarginTuning:
    """`python -m benchmarks.tuning steps.margin.kernel FIELD VALUE ... --rows "^kernel margin"`: times.

    `fewest` 150 600: of 5000 samples 1.47 and 1.31. `wider` 2 10: of these 1.54 and 1.18. `highest` 1e8 1e12: 1.02 and
    1.03. `pairs` 50 1000: 1.04 and 1.01 where a function separates the samples, 0.89 and 1.67 where none does. `rough`
    0.1 0.9: 1.01 and 0.99.
    """

    fewest: int = 300  # samples at first, and those that are added at least, beside as many as have multipliers
    wider: int = 5  # times as many are looked at for violated ones as are added, and again where there are none
    highest: float = 1e10  # multipliers beside 1 / k(x, x): if no function separates the samples, they grow
    pairs: int = 200  # steps for each sample, until scores are
    rough: float = 0.3  # so near to what they should be, or a tenth of it where that does not give the multipliers


TUNING = KernelMarginTuning()
#: Violations below this, and this part of the mean of the diagonal, are rounding.
STUCK = 2.0**-46


@dataclass
class KernelGrowingState:
    """Some samples, the solution for these, and where violated ones are looked for."""

    problem: KernelMargin
    order: Indices  # of the samples in which the pools grow
    pool: int
    which: Indices
    K: Matrix = field(repr=False)
    beta: Vector = field(repr=False)
    b: float = 0.0
    bound: float = 0.0  # on multipliers
    satisfied: float = 1e-3
    rounds: int = 0  # over all samples,
    looks: int = 0  # and those worth a certificate
    near: bool = False  # whether the last of them separated the samples
    done: bool = False

    @property
    def most(self) -> int:
        """Samples whose matrix fits into the cache, and four, two of each class, in any."""
        return max(4, int(np.sqrt(self.problem.X.gram.cache.megabytes * 2**20 / 8.0)))

    @classmethod
    def of(cls, problem: KernelMargin, start: Start, seed: int) -> KernelGrowingState:
        """Some samples of both classes at random, and those with multipliers."""
        n = len(problem.codes)
        order = np.random.default_rng(seed).permutation(n)
        ranks = np.empty(n)
        for code in (0, 1):  # so that every pool has about as many of both classes
            own = np.flatnonzero(problem.codes[order] == code)
            ranks[own] = np.arange(len(own))
        order = order[np.argsort(ranks, kind="stable")]
        which = np.union1d(order[: TUNING.fewest], np.flatnonzero(start.alpha))
        state = cls(problem, order, TUNING.wider * TUNING.fewest, which, np.zeros((0, 0)), np.zeros(len(which)))
        if len(which) > state.most:
            state.which, state.beta = np.sort(order[: state.most // 2]), np.zeros(state.most // 2)
        state.K = problem.X.gram.values(state.which, state.which)
        return state

    # The solution for the present samples -------------------------------------------------------------------------

    def solve(self) -> None:
        """Steps of pairs or of single samples, then linear equations."""
        y, diagonal = self.problem.y[self.which], float(np.mean(np.diagonal(self.K)))
        if not diagonal > 0.0:
            raise GaveUp("the kernel vanishes")
        self.bound = max(self.bound, np.sqrt(TUNING.highest) / diagonal, 10.0 * float(np.abs(self.beta).max()))
        enough, found = TUNING.rough, None
        while found is None:
            self._ascend(y, self.bound, enough)
            found = self._pivot(y)
            if found is None and limits.may_factor(len(y), len(y)):
                found = self._nearest(y, last=enough <= self.satisfied)
            if enough <= self.satisfied or self.done:
                break
            enough *= 0.1
        self.beta, self.b = (self.beta, self._intercept(y, self.K @ self.beta)) if found is None else found

    def _ascend(self, y: Vector, bound: float, enough: float) -> None:
        """The hinge loss, whose multipliers are at most the bound, until scores are within `enough`."""
        loss, n, ones = kernels.Hinge(), len(y), np.ones(len(y))
        alpha, scores = self.beta / bound, self.K @ self.beta
        if self.problem.intercept:
            kernels.gram_pairs(loss, self.K, y, ones, bound, alpha, scores, TUNING.pairs * n, enough)
        else:
            q, order, scores = np.diagonal(self.K) * bound, np.arange(n), np.append(scores, 0.0)
            for _ in range(TUNING.pairs):
                kernels.gram_epoch(loss, self.K, y, ones, q, bound, 0.0, order, alpha, scores, np.inf, 0.0)
                m = y * scores[:-1]
                if np.all(m >= 1.0 - enough) and np.all((m <= 1.0 + enough) | (alpha == 0.0)):
                    break
        self.beta = alpha * bound

    def _intercept(self, y: Vector, f: Vector) -> float:
        """In the middle of those for which least scores are equal."""
        if not self.problem.intercept:
            return 0.0
        return 0.5 * (float(np.max(1.0 - f[y > 0.0])) + float(np.min(-1.0 - f[y < 0.0])))

    def _pivot(self, y: Vector) -> tuple[Vector, float] | None:
        """The solution of the equations of samples with multipliers, changed as its signs and scores say."""
        active = self.beta != 0.0
        for _ in range(safeguards.TUNING.patience):
            A = np.flatnonzero(active)
            found = self._equations(A, y[A])
            if found is None:
                return None
            beta = np.zeros(len(y))
            beta[A], b = found
            if not np.abs(beta).max(initial=0.0) * float(np.mean(np.diagonal(self.K))) <= TUNING.highest:
                return None
            m = y * (self.K @ beta + b)
            wrong = active & (y * beta <= 0.0)
            late = ~active & (m < 1.0 - STUCK * len(y))
            if not (wrong.any() or late.any()):
                exact = np.all(np.abs(m[active] - 1.0) <= self.satisfied)  # not of rows that depend on each other
                return (beta, b) if exact else None
            active = (active & ~wrong) | late
        return None

    def _nearest(self, y: Vector, last: bool) -> tuple[Vector, float] | None:
        """The nearest point of the functions in a basis of their own, where these depend on each other.

        Of a kernel of small rank they do; of others it is the `last` resort. If zero is as near as rounding tells, no
        function separates the samples.
        """
        values, V = eigh(self.K, check_finite=False)
        noise = len(y) * UNIT_ROUNDOFF * float(values[-1])
        kept = values > noise
        if not (last or 2 * np.count_nonzero(kept) <= len(y)):
            return None
        A = y[:, None] * (V[:, kept] * np.sqrt(values[kept]))
        F = np.column_stack([y, np.ones(len(y))]) if self.problem.intercept else np.ones((len(y), 1))
        size = float(np.abs(self.beta).sum())
        point = NearestPoint(A, F, np.abs(self.beta) / size if size > 0.0 else np.zeros(len(y)))
        point.solve(0.1 * self.satisfied, len(y) ** 2)
        if point.square <= noise:
            self.done, self.beta = True, y * point.q
            return None
        return y * point.q / point.square, float(point.b[0]) / point.square if self.problem.intercept else 0.0

    def _equations(self, A: Indices, y: Vector) -> tuple[Vector, float] | None:
        K = self.K[np.ix_(A, A)]
        right = np.column_stack([y, np.ones(len(A))])
        ridged = K.copy()
        ridged[np.diag_indices(len(A))] += STUCK * float(np.mean(np.diagonal(K))) if len(A) else 0.0
        try:
            factor = cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
        except (LinAlgError, ValueError):
            return None
        u = cho_solve(factor, right, check_finite=False)
        u += cho_solve(factor, right - K @ u, check_finite=False)
        total = u.sum(axis=0)
        if not self.problem.intercept:
            return u[:, 0], 0.0
        b = float(total[0] / total[1]) if total[1] > 0.0 else np.nan
        return (u[:, 0] - b * u[:, 1], b) if np.isfinite(b) else None

    # Samples that it violates -------------------------------------------------------------------------------------

    def extend(self) -> None:
        """Add violated samples of the pool, or of a wider one; `looks` counts those of all samples."""
        problem, gram, n = self.problem, self.problem.X.gram, len(self.order)
        support = np.flatnonzero(self.beta)
        kept = support
        if self.rounds > rounds.TUNING.patience and 2 * len(self.beta) <= self.most:  # samples come and go
            kept = np.arange(len(self.beta))
        while True:
            rest = self.order[: self.pool]
            whole = len(rest) == n
            if whole and self.near:  # the judge asks for the same product
                f = gram.product(self.coefficients).value[rest]
            else:
                f = gram.values(rest, self.which[support]) @ self.beta[support]
            m = problem.y[rest] * (f + self.b)
            if whole:
                self.rounds += 1
                self.near = bool(m.min() > 0.0)
                self.looks += self.near or self.rounds % rounds.TUNING.patience == 0
                nearest = np.argsort(m, kind="stable")  # next time these are looked at first
                self.order, self.pool = rest[nearest], max(TUNING.wider * TUNING.fewest, n // TUNING.wider)
            m[np.isin(rest, self.which)] = np.inf
            violated = np.flatnonzero(m < 1.0 - self.satisfied)
            if len(violated) or whole:
                break
            self.pool *= TUNING.wider
        if not len(violated):
            self._finer()
            return
        room = self.most - len(kept)
        if room < 2:
            raise GaveUp("the samples with multipliers do not fit into the cache")
        count = min(max(TUNING.fewest, len(kept)), room)
        added, old = rest[violated[np.argsort(m[violated], kind="stable")[:count]]], len(kept)
        which = np.concatenate([self.which[kept], added])
        K = np.empty((len(which), len(which)))
        K[:old, :old] = self.K[np.ix_(kept, kept)]
        K[old:] = gram.values(added, which)
        K[:old, old:] = K[old:, :old].T
        self.which, self.K, self.beta = which, K, np.append(self.beta[kept], np.zeros(len(added)))

    def _finer(self) -> None:
        """No other sample is violated: raise the bound if it is reached, or the accuracy, as far as they go."""
        self.looks += 1
        if np.abs(self.beta).max() >= self.bound:
            self.done = self.bound * float(np.mean(np.diagonal(self.K))) >= TUNING.highest
            self.bound *= TUNING.highest**0.25
        else:
            self.done = self.satisfied <= STUCK
            self.satisfied = max(0.1 * self.satisfied, STUCK)

    @property
    def coefficients(self) -> Vector:
        """beta for all samples."""
        beta = np.zeros(len(self.order))
        beta[self.which] = self.beta
        return beta


@dataclass(frozen=True)
class KernelGrowing(Solver[KernelGrowingState]):
    """One step solves the problem of some samples, and looks for others that it violates."""

    name = "kernel_growing"
    summary = "the largest margin of functions of a kernel: exact solutions for samples that grow in number"
    requires = frozenset[Trait]()
    steps_per_check = 1  # by its own count
    passes_per_step = 1
    needs_storage = False

    def obstacle(self, problem: KernelMargin) -> str | None:
        return None if problem.is_binary else "is for two classes"

    def begin(self, problem: KernelMargin, start: Start, seed: int) -> KernelGrowingState:
        return KernelGrowingState.of(problem, start, seed)

    def aim(self, state: KernelGrowingState, goal: Goal) -> None:
        state.satisfied = rounds.SATISFIED * min(goal.tol, 0.1)

    def step(self, state: KernelGrowingState) -> KernelGrowingState:
        state.solve()
        if not state.done:
            state.extend()
        return state

    def candidates(self, state: KernelGrowingState) -> Sequence[Candidate]:
        beta = state.coefficients
        return [Candidate(beta, state.b, np.abs(beta))]

    def finished(self, state: KernelGrowingState) -> bool:
        """Whether no sample is violated by more than rounding."""
        return state.done

    def progress(self, state: KernelGrowingState) -> Progress:
        """A certificate is due when all samples were looked at."""
        return Progress(np.inf, np.inf, float(state.looks))


@dataclass
class KernelHardState:
    """The problem with the hinge loss, and where its solver is."""

    inner: Inner
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class KernelHardMargin(Solver[KernelHardState]):
    """The hinge loss with so small a penalty that it is a hard margin: one step is one of its solver."""

    name = "kernel_hard_margin"
    summary = "the same in little memory, for many samples with multipliers: dual ascent on the hinge loss"
    requires = frozenset[Trait]()
    steps_per_check = 1  # by its own count
    passes_per_step = 1
    needs_storage = False

    def obstacle(self, problem: KernelMargin) -> str | None:
        return None if problem.is_binary else "is for two classes"

    def begin(self, problem: KernelMargin, start: Start, seed: int) -> KernelHardState:
        gram, n = problem.X.gram, len(problem.codes)
        diagonal = float(np.mean(gram.diagonal))
        if not diagonal > 0.0:
            raise GaveUp("the kernel vanishes")
        lam = diagonal / (TUNING.highest * n)
        hinge = KernelProblem(gram, problem.y, Hinge(), L2(lam), intercept=problem.intercept)
        weights, _, multipliers = hinge.shapes
        zero = Start(np.zeros(weights), 0.0, np.zeros(multipliers))
        return KernelHardState(Inner.of(hinge, KernelAscent(), zero))

    def step(self, state: KernelHardState) -> KernelHardState:
        if state.inner.ended or state.patience.is_over:
            raise GaveUp("dual ascent does not get further")
        state.patience.looks += state.inner.step()
        return state

    def candidates(self, state: KernelHardState) -> Sequence[Candidate]:
        return [Candidate(found.w, found.b, np.abs(found.w)) for found in state.inner.candidates]

    def progress(self, state: KernelHardState) -> Progress:
        return state.patience.progress

    def observe(self, state: KernelHardState, z: Vector, primal: float, gap: float) -> None:
        state.patience.learn(primal, gap)
