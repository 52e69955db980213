"""The state of Newton's method: scores, multipliers, weights, and bounds on their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fenchel._core import CompiledLoss
from fenchel.data.products import UNIT_ROUNDOFF, gamma
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps.base import Overflow, Residual, Scores, length
from fenchel.steps.linear_algebra import newton_system
from fenchel.steps.linear_algebra.augmented import DEPTH, AugmentedDesign
from fenchel.steps.linear_algebra.newton_system import NewtonSystem
from fenchel.steps.linear_algebra.safeguards import Patience


@dataclass(frozen=True)
class NewtonTuning:
    """When "auto" takes Newton's method, and parameters of its steps; times as parts of those with the present values.

    `python -m benchmarks.regression` of builds with `kink_epochs` as it is and with 25 for all widths: with 25 the
    hinge loss takes 1.5 times as long on w8a (300 columns, lam 10/n, to 1e-6) and 1.12 on a9a (123, to 1e-3). With
    `first_samples` 5 the hinge takes 1.5 times as long on mnist at lam 0.1/n, with `quadratic_forcing` 1.5e-8 ridge
    regression 1.7 times to 1e-3.
    `python -m benchmarks.tuning steps.newton.state first_tau 1 4 --rows "^hinge intercept 7000|^absolute 20000"`:
    0.90 and 1.06; `tau_factor 0.25 0.8`, 0.76 and 1.43; `growth 2 8 --rows
    "^hinge intercept 7000"`: 0.60 and 0.86, but `2 16 --rows "^logistic 20000"` 1.00 and 0.82; `forcing 1e-3 1e-1` on
    both, 1.07 and 1.07. With --rows "^auto": `momentum_epochs 10 1e9`, 1.71 and 0.93; `momentum_tol 0 1`, 0.99 and
    1.47; `narrow 20 1000000`, 0.98 and 1.59, of 6000 x 500; `wide_epochs 10 1e9`, 0.97 and 73 of 3000 x 1200. `call 1
    5e5 2e6 --rows "^race breast_cancer hinge"`: 4.3, 4.4 and 0.95.
    """

    # which problems "auto" gives to Newton's method
    narrow: int = 400  # columns up to which the factors cost almost nothing
    column_epochs: float = 0.11  # with kinks: epochs of coordinate ascent, per column, that cost as much as Newton
    kink_epochs: tuple[float, float] = (10.0, 35.0)  # bounds on their number
    momentum_epochs: float = 110.0  # epochs with momentum up to which they cost less than Hessians of dense columns
    momentum_tol: float = 1e-4  # smallest tolerance for that if the loss has linear pieces: then Newton's steps are few
    wide_epochs: float = 100.0  # the same of a wide X, by conjugate gradients, with an intercept: no momentum
    # the steps
    first_samples: int = 16  # fewest samples per weight in the first steps
    growth: int = 4  # ratio of the sizes of successive subsets
    first_tau: float = 2.0  # first proximal parameter, in mean distances of the scores from their kinks
    tau_factor: float = 0.5  # its factor each time the smoothed problem is solved
    forcing: float = 1e-2  # tolerance of a Newton system, as a fraction of the gap,
    quadratic_forcing: float = 1e-10  # and for the squared loss, whose Hessian is constant: one step does it
    call: float = 1e6  # multiplications of a dense Hessian up to which several steps are made in one compiled call


TUNING = NewtonTuning()


@dataclass
class SampleState:
    """Scores z, multipliers a(z) and second derivatives h(z) of some samples.

    For a smooth loss a(z) = -phi'(z) and h(z) = phi''(z). A piecewise linear loss (hinge, absolute, ...) is smoothed
    around a centre c: -a(z) is the derivative of

        psi(z) = max_a -z a - phi*(-a) - tau (a - c)^2 / 2,

    whose second derivative h is 1 / tau for samples between two pieces, and zero for all others.
    """

    problem: Problem
    loss: CompiledLoss
    rows: NDArray[np.int64]
    z: Vector
    c: Vector
    tau: float
    y: Vector = field(init=False)
    s: Vector = field(init=False)
    a: Vector = field(init=False)
    h: Vector = field(init=False)
    loss_sum: float = field(init=False)
    gap_sum: float = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        complete = len(self.rows) == len(problem.y)
        self.y, self.s = (v if complete else v[self.rows] for v in (problem.y, problem.weights))
        self.respond()

    @cached_property
    def domain(self) -> tuple[Vector, Vector]:
        """Lower and upper bounds of the multipliers."""
        low, high = self.problem.domain
        return (low, high) if len(self.rows) == len(low) else (low[self.rows], high[self.rows])

    @cached_property
    def loss_has_kinks(self) -> bool:
        return bool(self.problem.loss.kinks(self.y[:1]))

    def respond(self) -> None:
        """a, h and the sums of s phi and s (phi + phi* + a z) at the current scores."""
        self.a, self.h, self.loss_sum, self.gap_sum = self.loss.respond(self.z, self.y, self.s, self.c, self.tau)

    def slope(self, dz: Vector, t: float) -> tuple[float, float]:
        """First and second derivative of sum s psi(z + t dz)."""
        return self.loss.slope_along(self.z, dz, self.y, self.s, self.c, self.tau, t)

    def subset(self, which: NDArray[np.intp]) -> SampleState:
        """Some of these samples."""
        return SampleState(self.problem, self.loss, self.rows[which], self.z[which], self.c[which], self.tau)

    def distance(self) -> Vector:
        """The distance of each score from the nearest kink."""
        return kink_distance(self.problem, self.z, self.y)

    def smoothing_loss(self) -> float:
        """sum s tau (a - c)^2 / 2: W times the reduction of D by smoothing."""
        return 0.5 * self.tau * float(np.sum(self.s * (self.a - self.c) ** 2))


@dataclass
class NewtonState:
    """Weights with the intercept as last entry; the samples of this subset, and the active ones among them."""

    system: NewtonSystem
    later: list[NDArray[np.int64]]  # larger sets of rows; the last one has all rows of positive weight
    w: Vector
    full: SampleState
    passes: float = 0.0
    active: SampleState = field(init=False)
    positions: NDArray[np.intp] | None = None  # of `active` in `full`; None if they are the same
    combined: Vector = field(init=False)  # [X, c]' (s a)
    combined_error: float = 0.0  # bound on its rounding error in the 2-norm, without the entry of c
    score_error: float = field(init=False)  # bound on the rounding error of the scores of all samples
    W: float = field(init=False)
    primal: float = np.inf
    reference: Vector = field(init=False)  # scores when the centre last moved
    tangent: Vector | None = None  # multipliers of the tangent, and their gap
    tangent_gap: float = np.inf
    patience: Patience = field(default_factory=lambda: Patience(times=10, part=0.99))  # the gap may fall slowly
    inner: int = 0  # steps since the centre last moved

    def __post_init__(self) -> None:
        self.active, self.W, self.reference = self.full, float(self.full.s.sum()), self.full.z
        self.score_error, self.combined = self.design.score_error(self.w), np.zeros(len(self.w))
        self._add_to_combined(self.full, self.full.s * self.full.a)
        self.passes += 2 * len(self.full.rows) / self.problem.shape[0]
        self._evaluate_primal()

    @property
    def problem(self) -> Problem:
        return self.full.problem

    @property
    def design(self) -> AugmentedDesign:
        return self.system.design

    @property
    def least_tau(self) -> float:
        """tau below which the Hessian's condition number may exceed 1e12."""
        return least_tau(self.problem)

    @property
    def gradient(self) -> Vector:
        """lam w - v(a)."""
        return self.design.ridge * self.w - self.combined / self.W

    @property
    def has_kinks(self) -> bool:
        return self.active.loss_has_kinks

    @property
    def gap(self) -> float:
        """P - D over the active samples, for the better multipliers of a(z) and the tangent."""
        return min(self.active.gap_sum / self.W + self.gradient_gap(self.gradient), self.tangent_gap)

    def gradient_gap(self, g: Vector) -> float:
        """|g|^2 / (2 lam) for g = lam w - v: the gap without (1/W) sum s (phi + phi* + a z).

        An unpenalised intercept adds |b| times the mean multiplier, its entry of g.
        """
        intercept = 0.0
        if self.problem.intercept:
            intercept, g = abs(float(g[-1])) * (1.0 + abs(float(self.w[-1]))), g[:-1]
        return intercept + float(g @ g) / (2.0 * self.problem.penalty.lam)

    def move(self, t: float, p: Vector, dz: Vector, residual: Vector) -> None:
        """w + t p, with new multipliers of the active samples.

        A smooth loss has a second set of multipliers, a - h dz (the tangent). A Newton step p makes
        lam (w + p) = v(a - h dz) up to the residual of its equation, so their gap has no term divided by lam: it is as
        small as the suboptimality, where that of a(z) may be larger by the condition number. For a step t p,
        lam (w + t p) - v(a - h dz) = residual - (1 - t) lam p.
        """
        active = self.active
        tangent = None if self.has_kinks or self.problem.loss.quadratic else active.a - active.h * dz
        self.w, active.z = self.w + t * p, active.z + t * dz
        # the error of dz, and one rounding each of three numbers
        self.score_error += abs(t) * self.design.score_error(p) + self.design.score_error(self.w) * 4.0 / DEPTH
        self.passes += len(active.rows) / self.problem.shape[0]
        self.respond(active)
        self._evaluate_primal()
        self.tangent, self.tangent_gap = None, np.inf
        if tangent is not None:
            self._evaluate_tangent(tangent, residual - (1.0 - t) * self.design.ridge * p)

    def _evaluate_tangent(self, tangent: Vector, gradient: Vector) -> None:
        """The gap of the tangent's multipliers, clipped to their domain, unless most are clipped."""
        active = self.active
        inside = np.clip(tangent, *active.domain)
        change = active.s * (inside - tangent)
        if 2 * np.count_nonzero(change) > len(change):
            return
        gradient = gradient - self.design.combine(active.rows, change) / self.W
        terms = active.loss.gap_sum(active.z, active.y, active.s, inside) / self.W
        self.tangent, self.tangent_gap = inside, terms + self.gradient_gap(gradient)

    def _evaluate_primal(self) -> None:
        """P, if the scores of all samples are up to date."""
        if self.positions is None:
            penalty = 0.5 * float(np.sum(self.design.ridge * self.w**2))
            self.primal = self.full.loss_sum / self.W + penalty
            if not np.isfinite(self.primal):
                raise Overflow("the objective overflows; rescale the features or lam")

    def expect_progress(self) -> None:
        """Raise if rounding errors keep the gap from decreasing."""
        self.patience.learn(self.gap)
        if self.patience.is_over:
            raise Overflow("Newton steps make no progress in double precision; rescale the features or lam")

    def respond(self, samples: SampleState) -> None:
        """Update the multipliers of these samples, and `combined`."""
        before = samples.a
        samples.respond()
        change = samples.s * (samples.a - before)
        self._add_to_combined(samples, change)
        self.passes += np.count_nonzero(change) / self.problem.shape[0]

    def _add_to_combined(self, samples: SampleState, change: Vector) -> None:
        """Add [X, c]' change; each entry is a sum of at most n products, so the 2-norm of the error is at most
        gamma_n |X|_F |change|. A change is a difference and a product, each rounded.
        """
        self.combined = self.combined + self.design.combine(samples.rows, change)
        self.combined_error += gamma(len(change) + DEPTH) * self.design.frobenius_bound * length(change)
        self.combined_error += UNIT_ROUNDOFF * length(self.combined)

    @property
    def scores(self) -> Scores | None:
        """The scores of all samples, if they are up to date."""
        if self.positions is not None or self.later or len(self.full.rows) < self.problem.shape[0]:
            return None
        return Scores(self.full.z, self.full.z, 0.0, 1.01 * self.score_error)

    @property
    def residual(self) -> Residual | None:
        """|lam w - v| of the multipliers a(z); None if those of the tangent are better, whose v is not stored."""
        if self.tangent is not None and self.gap == self.tangent_gap:
            return None
        inside = slice(len(self.w) - self.problem.intercept)
        w, v, lam = self.w[inside], self.combined[inside] / self.W, self.problem.penalty.lam
        rounding = 4.0 * UNIT_ROUNDOFF * (lam * length(w) + length(v))
        # 1.01: the sums of bounds are rounded as well
        return Residual.of(self.gradient[inside], 1.01 * (self.combined_error / self.W + rounding))

    def multipliers(self) -> Vector:
        """The better multipliers of all samples of this subset."""
        if self.tangent is not None and self.gap == self.tangent_gap:
            return self.tangent
        if self.positions is None:
            return self.full.a
        a = self.full.a.copy()
        a[self.positions] = self.active.a
        return a

    def activate_all(self) -> NDArray[np.intp]:
        """Make all samples active, with new scores; the positions of changed multipliers."""
        if self.positions is None:
            return np.array([], dtype=np.intp)
        self.full.a = before = self.multipliers()
        self.full.z, self.score_error = self.design.scores(self.full.rows, self.w), self.design.score_error(self.w)
        self.passes += len(self.full.rows) / self.problem.shape[0]
        self.respond(self.full)
        self.positions, self.active = None, self.full
        self._evaluate_primal()
        return np.flatnonzero(self.full.a != before)

    def restrict_to(self, near: NDArray[np.intp]) -> None:
        """Make only these samples active, if there are few enough."""
        if len(near) < 0.7 * len(self.full.rows):
            self.positions, self.active = near, self.full.subset(near)
            # the same formulas, but vectorised loops may round differently
            change = self.active.s * (self.active.a - self.full.a[near])
            if change.any():
                self._add_to_combined(self.active, change)

    def widen(self) -> NewtonState:
        """The same weights on the next larger set of rows."""
        self.activate_all()
        problem, rows = self.problem, self.later[0]
        z = self.design.scores(rows, self.w)
        c = np.zeros(len(rows))  # a smooth loss needs no centre
        if self.has_kinks:
            c = -problem.loss.derivative(z, problem.y[rows])
            c[np.searchsorted(rows, self.full.rows)] = self.full.a
        samples = SampleState(problem, self.full.loss, rows, z, c, self.full.tau)
        return NewtonState(self.system, self.later[1:], self.w, samples, self.passes)


def kink_distance(problem: Problem, z: Vector, y: Vector) -> Vector:
    """The distance of each score from the nearest kink."""
    return np.asarray(np.min(np.abs(np.stack(problem.loss.kinks(y)) - z), axis=0))


def first_tau(problem: Problem, z: Vector, y: Vector, s: Vector) -> float:
    """The first tau: the scale of the scores, also for a start whose scores are all at kinks."""
    far, size = (float(np.average(x, weights=s)) for x in (kink_distance(problem, z, y), np.abs(y)))
    return TUNING.first_tau * max(far, 0.01 * size) or 1.0


def least_tau(problem: Problem) -> float:
    """tau below which the Hessian's condition number may exceed 1e12."""
    return 1e-12 * float(np.mean(problem.design.squared_row_norms)) / problem.penalty.lam


def levels(problem: Problem, width: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Nested random sets of rows, each larger than the one before; the last has all rows of positive weight."""
    rows = np.flatnonzero(problem.weights > 0).astype(np.int64)
    sizes: list[int] = []
    size = len(rows) // TUNING.growth
    while size >= max(TUNING.first_samples * width, newton_system.TUNING.few_rows // 2):
        sizes.insert(0, size)
        size //= TUNING.growth
    if not sizes:
        return [rows]
    uniform = rng.random(len(rows))
    return [*(rows[uniform < size / len(rows)] for size in sizes), rows]
