"""The state of dual coordinate ascent: multipliers, weights, momentum, and a bound on the weights' rounding error."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fenchel._core import kernels
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.losses import Loss
from fenchel.problem.losses.multiclass import MulticlassLoss
from fenchel.steps.base import Progress, Residual, Scores, length
from fenchel.steps.dual_ascent.averaging import SuffixAverage
from fenchel.steps.dual_ascent.sampling import Sampler
from fenchel.steps.dual_ascent.threads import EpochThreads
from fenchel.steps.linear_algebra.augmented import DEPTH
from fenchel.steps.linear_algebra.safeguards import Patience


@dataclass(frozen=True)
class SDCATuning:
    """`python -m benchmarks.tuning steps.dual_ascent.state block 1 32 --rows "^race text hinge .*n 1e-03"`: 1.17 and
    0.86 of the time on data that fit into the cache; `ill_conditioned 0.3 30`, 0.96 and 1.02. `many_epochs 10 1e9
    --rows "^race text (logistic|ridge) .*n 1e-03"`: 1.52 and 1.00. With --rows "^auto logistic", 6000 x 500:
    `ill_conditioned`, 1.07 and 2.72; `block`, 1.55 and 0.80.
    """

    block: int = 8  # consecutive samples that a permutation keeps together: a cache line of multipliers
    ill_conditioned: float = 3.0  # mean L |x_i|^2 / (lam n) from which momentum is used
    many_epochs: float = 1000.0  # epochs above which "auto" prefers a method for ill-conditioned problems


TUNING = SDCATuning()


@dataclass
class Momentum:
    """An accelerated outer loop (Shalev-Shwartz and Zhang 2014; Lin, Mairal and Harchaoui 2015).

    P(w) + (kappa/2) |w - centre|^2 has the dual of P with the link w = (v + kappa centre) / (lam + kappa): the same
    steps, on a problem whose condition number is smaller by lam / (lam + kappa). After every epoch the centre moves:

        centre' = w + beta (w - w_last),    beta = (1 - r) / (1 + r),    r = sqrt(lam / (lam + kappa)),

    so that about sqrt((lam + kappa) / lam) epochs suffice instead of (lam + kappa) / lam. If momentum points uphill, it
    is omitted for a step (O'Donoghue and Candes 2015). Moving the centre changes the weights in place.
    """

    lam: float
    kappa: float
    centre: Vector
    last: Vector
    patience: Patience = field(default_factory=Patience)

    @property
    def beta(self) -> float:
        """The factor of the extrapolation."""
        r = np.sqrt(self.lam / (self.lam + self.kappa))
        return float((1.0 - r) / (1.0 + r))

    def helps(self, gap: float) -> bool:
        """Whether the gap decreases; it may not for nearly orthogonal rows, whose condition number is pessimistic."""
        self.patience.learn(gap)
        return not self.patience.is_over

    def advance(self, w: Vector) -> None:
        """Move the centre, and the weights with it."""
        step, now = w - self.last, w.copy()
        uphill = float((self.centre - w) @ step) > 0.0
        centre = now if uphill else now + self.beta * step
        w += self.kappa / (self.lam + self.kappa) * (centre - self.centre)
        self.centre, self.last = centre, now

    def weights(self, v: Vector) -> Vector:
        """The link, (v + kappa centre) / (lam + kappa)."""
        return (v + self.kappa * self.centre) / (self.lam + self.kappa)

    def mismatch(self, w: Vector) -> float:
        """|lam w - v|^2 / (2 lam): the gap of P minus that of the inner problem."""
        difference = self.kappa * (self.centre - w)
        return float(difference @ difference) / (2.0 * self.lam)


@dataclass(kw_only=True)
class LastEpoch:
    """P and gap as summed over the last epoch, and by what factor the gap fell in it."""

    primal: float = np.inf
    gap: float = np.inf
    rate: float = 1.0
    passes: float = 0.0
    partial: bool = False

    def learn(self, gap: float) -> None:
        """The gap of another epoch."""
        self.rate = min(max(gap / self.gap, 0.1), 1.0) if self.gap > 0.0 else 1.0
        self.gap = gap

    def progress(self, factor: float = 1.0) -> Progress:
        """With the gap at the epoch's end, by the last rate."""
        return Progress(self.primal, factor * self.gap * self.rate, self.passes, self.partial)


@dataclass
class SDCAState(LastEpoch):
    """Multipliers alpha, and u = v / mu with the intercept as last entry; modified in place by the kernel."""

    problem: Problem
    ascent: kernels.Ascent
    norms: Vector  # dual norms of the rows
    alpha: Vector
    u: Vector
    inverse_rho: float
    sampler: Sampler
    averaging: SuffixAverage | None
    momentum: Momentum | None
    threads: EpochThreads
    margin: float = np.inf
    drift: float = np.inf  # bound on the rounding error of u, |u - v(alpha) / mu|_2

    def refresh(self) -> None:
        """Recompute u from the multipliers, without the accumulated rounding errors of the steps."""
        problem = self.problem
        v = problem.dual_vector(self.alpha)[: len(self.u) - 1]
        self.u[:-1] = v / problem.penalty.strong_convexity if self.momentum is None else self.momentum.weights(v)
        if problem.design.constant:
            self.u[-1] = problem.mean(self.alpha) * self.inverse_rho
        # sums of at most n products
        sizes = problem.mean(np.abs(self.alpha) * np.hypot(self.norms, problem.design.constant)) / self.curvature
        centre = 0.0 if self.momentum is None else length(self.momentum.centre)
        self.drift = gamma(len(self.alpha) + DEPTH) * sizes * (1.0 + 1e-6) + 8.0 * UNIT_ROUNDOFF * (self.size + centre)

    @property
    def curvature(self) -> float:
        """mu of the inner problem, mu + kappa with momentum: v = mu u."""
        mu, momentum = self.problem.penalty.strong_convexity, self.momentum
        return mu if momentum is None else mu + momentum.kappa

    @property
    def size(self) -> float:
        """A bound on |u|, penalised intercept included."""
        return length(self.u[:-1]) + (abs(self.u[-1] / c) if (c := self.problem.design.constant) else 0.0)

    def moved(self, path: float, moves: int, threads: int = 1, rounds: int = 1) -> None:
        """Add a bound on the rounding errors of an epoch's steps to the drift.

        A step adds c x_i to u, with |c x_i|^2 <= change^2 s_i q_i / (mu W): the sum of these lengths is at most
        sqrt(moves path / (mu W)), with path = sum s_i q_i change^2, and |u| was never larger than now plus that sum.
        Each step rounds the addend, a few times, and the sum. With threads, steps in copies of u are longer by a factor
        below their number, and each round ends with a sum of the copies, of factors 5/3 in all: threads + 3 roundings.
        """
        lengths = np.sqrt(moves * path / (self.curvature * self.problem.total_weight)) * (1.0 + 1e-6)
        if threads > 1:
            moves, lengths = moves + 2 * (threads + 3) * rounds, (1 + threads) * lengths
        rounding = UNIT_ROUNDOFF * (moves * (self.size + lengths) + 16.0 * lengths)
        self.drift += rounding * (1.0 + 1e-6) + moves * 1e-300

    def scores(self, w: Vector, b: float) -> Scores | None:
        """X w + b, with error bounds from the norms of the rows."""
        if not self.problem.penalty.quadratic:
            return None
        rounding, lengths = gamma(w.size + DEPTH), self.norms
        if self.problem.design.constant:
            lengths = np.hypot(lengths, self.problem.design.constant)
        return Scores(self.problem.scores(w, b), lengths, rounding * length(w) * (1.0 + 1e-9), rounding * abs(b))

    @property
    def residual(self) -> Residual | None:
        """|lam w - v|: kappa |centre - w| with momentum, else zero; and its error bound."""
        if not (self.problem.penalty.quadratic and np.isfinite(self.drift)):
            return None
        error = self.curvature * (self.drift + 8.0 * UNIT_ROUNDOFF * self.size) * (1.0 + 1e-6)
        if self.momentum is None:
            return Residual(0.0, error)
        difference = self.momentum.kappa * (self.momentum.centre - self.u[:-1])
        size = length(self.momentum.centre) + self.size
        return Residual.of(difference, error + 8.0 * UNIT_ROUNDOFF * self.momentum.kappa * size)

    def drop_momentum(self) -> None:
        """Continue without momentum."""
        mu, self.momentum, self.gap = self.problem.penalty.strong_convexity, None, np.inf
        self.ascent, _, self.inverse_rho = ascent_of(self.problem, self.norms, mu)
        self.refresh()

    def weights(self, alpha: Vector | None = None) -> Vector:
        """The weights of the current u (possibly a view), or of other multipliers."""
        problem = self.problem
        if alpha is not None:
            return problem.link(alpha)
        u, penalty = self.u[:-1], problem.penalty
        w = u if penalty.quadratic else penalty.grad_conjugate(u * penalty.strong_convexity)
        constant = problem.design.constant
        return np.append(w, self.u[-1] / constant) if constant else w


def intercept_step(loss: Loss | MulticlassLoss, mean_square: float, mu: float) -> float:
    """1 / rho = max(mean |x_i|^2 / mu, 4 / min(L, 1)) of the proximal steps on an unpenalised intercept.

    The first is the rate at which scores move with the weights; the second matters for large mu.
    """
    return max(mean_square / mu, 4.0 / min(loss.smoothness, 1.0))


def ascent_of(problem: Problem, norms: Vector, mu: float) -> tuple[kernels.Ascent, Vector, float]:
    """The compiled epochs of a problem whose rows have these dual norms; q_i = dz_i / dalpha_i; and 1 / rho."""
    loss, link, W = problem.loss.kernel(), problem.penalty.kernel(), problem.total_weight
    assert loss is not None
    assert link is not None
    lines, y, s = problem.design.lines, problem.y, problem.weights
    inverse_rho = problem.design.constant**2 / mu
    if problem.intercept:
        inverse_rho = intercept_step(problem.loss, float(np.mean(norms**2)), mu)
    q = s * ((norms**2 / mu + inverse_rho) / W)
    return kernels.Ascent(loss, link, lines, y, s, q, 1.0 / (mu * W), inverse_rho / W, W), q, inverse_rho
