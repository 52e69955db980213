"""The iterates of Algorithm 1, with and without momentum, in the weights or in the multipliers alone.

With mu_0 = q_0, v = Z'q and M = Z'mu, a step is dual averaging with Nesterov's momentum (section 3.2)::

    nu    = (1 - l_t) mu + l_t q,        w' = w - (s_t / l_t) Z'nu,
    q'    = the slopes of psi at Zw',    mu' = (1 - l_t) mu + l_t q'.

It is Algorithm 1 with l_t = 2 / (t + 2), g_t = (1 / l_t - 1) M. In the dual form x is Zw instead of w, and v, M are
Z Z'q, Z Z'mu: nothing but products with the Gram matrix Z Z'.

What it proves, for any steps with (s_t / l_t^2)(1 - l_t) <= s_(t-1) / l_(t-1)^2, l_0 = 1, each of which satisfies

    (1/2) |v' - v|^2 <= (psi(Zw) - psi(Zw') - q'.(Zw - Zw')) / s_t,                                          (*)

as all do for |z_i| <= 1 and s_t = 1 / (smoothness of psi). Write A_t = s_t / l_t^2, phi(q) = |Z'q|^2 / 2. By (*),
phi(mu') <= phi(nu) + l_t Z'nu.(v' - v) + l_t^2 (...) / s_t, so that with w - w' = (s_t / l_t) Z'nu

    psi(Zw) - psi(Zw') >= A_t (phi(mu') - phi(nu)) + (s_t / l_t) Z'nu.v
                       >= A_t (phi(mu') - (1 - l_t) phi(mu)) + (s_t / l_t) phi(nu),

the second line since l_t v = Z'nu - (1 - l_t) M and Z'nu.M <= phi(nu) + phi(mu). The sum over all steps, with
phi(mu) >= g^2 / 2 for the best margin g, has phi's of mu with nonnegative factors that add up to S = sum_t s_t / l_t:
for A_t (1 - l_t) = A_(t-1) because A_t - A_(t-1) = s_t / l_t, and for s_t = s_0, l_t = 2 / (t + 2) by computation. So

    psi(0) - psi(Zw) >= sum_t (s_t / l_t) (g^2 + |Z'nu_t|^2) / 2 >= g sum_t (s_t / l_t) |Z'nu_t| >= g |w|,

    margin(w) >= -psi(Zw) / |w| >= g - psi(0) / |w|,    |w| >= g S.

This is Theorem 3.1 without its factor 1 + 2 log(t + 1). And mirror descent's inequality gives
phi(mu_t) - g^2 / 2 <= psi(0) / A_(t-1) (Lemma 3.2). Each step doubles as a test of (*), which costs nothing: so the
steps may be as long as (*) allows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.steps.base import Candidate, Overflow, Progress
from fenchel.steps.margin.potentials import Potential
from fenchel.steps.margin.rows import MarginRows


@dataclass(frozen=True)
class MarginTuning:
    """`python -m benchmarks.tuning steps.margin.state FIELD VALUE ... --rows "^momentum margin"`: times.

    `aim` 0.35 0.85: 0.96 and 1.50. `least` 0.6875 0.9: 1.35 and 0.98. `most` 1.5 2.0: 1.34 and 1.41.
    """

    aim: float = 0.7  # of the longest step that (*) would have allowed: the next one,
    least: float = 0.8  # as a part of the last one, between these
    most: float = 1.3


TUNING = MarginTuning()
#: Step sizes change by multiples of this: rounding errors hardly ever reach them.
GRAIN = 2.0**-4
#: Of (*), beside the sizes of its terms: what rounding may make of it.
ROUNDED = 64 * UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False)
class Point:
    """Weights (or scores, in the dual form), scores, psi, its gradient q, and the image v of q."""

    x: Vector
    z: Vector
    psi: float
    q: Vector
    v: Vector


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """What x and v are."""

    rows: MarginRows
    potential: Potential

    @abstractmethod
    def first(self) -> Vector:
        """x of w = 0."""

    @abstractmethod
    def at(self, x: Vector) -> Point:
        """The point at x."""

    @abstractmethod
    def square(self, q: Vector, v: Vector) -> float:
        """|Z'q|^2 of q and its image."""

    @abstractmethod
    def weights(self, x: Vector, total: Vector) -> Vector:
        """w = -Z'total."""

    @abstractmethod
    def image(self, q: Vector, v: Vector) -> Vector:
        """Z'q."""


class PrimalForm(Form):
    """x is w, v is Z'q: two products a step, or one pass over the rows."""

    def first(self) -> Vector:
        return np.zeros(self.rows.problem.X.shape[1])

    def at(self, x: Vector) -> Point:
        offset, is_logistic = self.potential.offset, self.potential.is_logistic
        found = self.rows.tilted(x, is_logistic, offset)
        if found is None:
            z = self.rows.scores(x)
            psi = self.potential.value(z)
            q = self.potential.slopes(z, psi)
            return Point(x, z, psi, q, self.rows.combination(q))
        z, v, shift = found
        z = z + offset if offset else z
        psi = self.potential.value(z)
        return Point(x, z, psi, self.potential.slopes(z, psi), v * self.potential.normaliser(psi, shift))

    def square(self, q: Vector, v: Vector) -> float:
        return float(v @ v)

    def weights(self, x: Vector, total: Vector) -> Vector:
        return x

    def image(self, q: Vector, v: Vector) -> Vector:
        return v


class DualForm(Form):
    """x is Zw, v is Z Z'q: a product with the Gram matrix a step, and no weights."""

    def first(self) -> Vector:
        return self.rows.prior.copy()

    def at(self, x: Vector) -> Point:
        psi = self.potential.value(x)
        q = self.potential.slopes(x, psi)
        return Point(x, x, psi, q, self.rows.gram(q))

    def square(self, q: Vector, v: Vector) -> float:
        return float(q @ v)

    def weights(self, x: Vector, total: Vector) -> Vector:
        return -self.rows.combination(total)

    def image(self, q: Vector, v: Vector) -> Vector:
        return self.rows.combination(q)


def _factor(allowed: float, low: float, high: float) -> float:
    """Of the next step size, if this part of the last one was allowed."""
    return float(np.clip(np.rint(TUNING.aim * allowed / GRAIN) * GRAIN, low, high))


@dataclass
class Descent:
    """Steps with or without momentum; `length` gives the next step size, None the longest that (*) allows."""

    form: Form
    momentum: bool
    length: Callable[[Descent], float] | None
    point: Point = field(init=False)
    mu: Vector = field(init=False)
    M: Vector = field(init=False)
    total: Vector = field(init=False)  # sum_t (s_t / l_t) nu_t: w = -Z'total
    step_size: float = field(init=False)
    weight: float = field(default=0.0, init=False)  # A of the last step
    steps: int = field(default=0, init=False)
    products: int = field(default=0, init=False)  # with X, those of steps that were too long included

    def __post_init__(self) -> None:
        self.point = self.form.at(self.form.first())
        self.mu, self.M, self.total = self.point.q, self.point.v, np.zeros_like(self.point.q)
        self.step_size = self.form.rows.unit / max(1.0, float(self.point.q.sum()))

    def step(self) -> None:
        """One step."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if self.length is not None:
                self.step_size = self.length(self)
                share = 2.0 / (self.steps + 2.0) if self.momentum else 1.0
                self._accept(self._after(share), share)
            else:
                self._longest()
        self.steps += 1

    def _longest(self) -> None:
        """A step size that satisfies (*), the first tried from what the last step would have allowed."""
        while True:
            share = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * self.weight / self.step_size))
            after = self._after(share)
            allowed, is_certain = self._allowed(after)
            if allowed >= 1.0:
                break
            self.step_size *= _factor(allowed, 0.5, 1.0)
        self._accept(after, share)
        if is_certain:
            self.step_size *= _factor(allowed, TUNING.least, TUNING.most)

    def _allowed(self, after: Point) -> tuple[float, bool]:
        """The right side of (*) beside the left one, 1 where both may be rounding; and whether they are not."""
        point, rows = self.point, self.form.rows
        move = point.z - after.z
        if rows.count < rows.n:
            move = np.where(rows.problem.counts, move, 0.0)
        square = 0.5 * self.step_size * self.form.square(after.q - point.q, after.v - point.v)
        divergence = point.psi - after.psi - float(after.q @ move)
        sizes = abs(point.psi) + abs(after.psi) + float(after.q @ np.abs(move))
        if square <= divergence + ROUNDED * sizes:
            is_certain = divergence > ROUNDED * sizes
            return (max(1.0, divergence / max(square, 1e-300)) if is_certain else 1.0), is_certain
        return divergence / square, True

    def _after(self, share: float) -> Point:
        move = (1.0 - share) * self.M + share * self.point.v
        after = self.form.at(self.point.x - (self.step_size / share) * move)
        self.products += 2
        if not (np.isfinite(after.psi) and np.all(np.isfinite(after.v))):
            raise Overflow("the weights overflow: there may be no separating plane; or rescale the features")
        return after

    def _accept(self, after: Point, share: float) -> None:
        self.total += (self.step_size / share) * ((1.0 - share) * self.mu + share * self.point.q)
        self.mu = (1.0 - share) * self.mu + share * after.q
        self.M = (1.0 - share) * self.M + share * after.v
        self.weight = self.step_size / share**2
        self.point = after

    @property
    def weights(self) -> Vector:
        """w, for Z as scaled."""
        return self.form.weights(self.point.x, self.total)

    def progress(self) -> Progress:
        """The penalty of w with margins of 1, and how far that is from the bound of mu."""
        form, z, counts = self.form, self.point.z, self.form.rows.problem.counts
        least, square = -float(np.max(z)), form.square(self.mu, self.M)
        length = -float(self.total[counts] @ z[counts])  # |w|^2, since z is -ZZ'total
        scale = 0.5 * form.rows.problem.penalty.strong_convexity
        with np.errstate(all="ignore"):
            primal = np.ldexp(scale * length / least**2 if least > 0.0 else np.inf, -2 * form.rows.exponent)
            dual = np.ldexp(scale * np.square(self.mu.sum()) / np.float64(square), -2 * form.rows.exponent)
        return Progress(float(primal), float(primal - dual), float(self.products))

    def candidates(self) -> list[Candidate]:
        """w with the multipliers mu, and the weights of mu with the multipliers q: the link of the dual."""
        form, point, rows = self.form, self.point, self.form.rows
        least = -float(np.max(point.z))
        image = form.image(self.mu, self.M)
        return [
            rows.candidate(self.weights, least, self.mu, image),
            rows.candidate(-image, np.nan, point.q, form.image(point.q, point.v)),
        ]
