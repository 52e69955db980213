"""Newton steps on the multipliers of an interpolation whose sets are intervals or boxes.

With b_i = s_i alpha_i / W, and rows a_i of all scores, D is maximal where

    F(b) = sum_i h_i(b_i) + R*(A'b),   h_i(b) = max(-low_i b, -high_i b),

is minimal. R*'s gradient is the link w(v), so that F's smooth part has the derivatives z = A w and A H A', H = w'(v).
A step minimises the quadratic model with h as it is (`pivoting`), and searches along the line to its minimum. A
multiple of the identity is added to the Hessian: proximal-point steps, which end at the optimum also where rows depend
on each other, and diverge along a proof of contradiction where there is no feasible point.

Where there are many samples and the penalty is quadratic, the first steps are passes of dual coordinate ascent
(`active`), as long as they make the violation smaller quickly; they also tell which constraints are active. With more
samples than a factorisation takes, passes with momentum follow.

An unpenalised intercept has a quadratic around a centre that moves to b after every step, as in dual coordinate ascent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.data.typing import Mask, Vector
from fenchel.problem import Interpolation, Trait
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import LinkDerivative
from fenchel.steps.base import Candidate, GaveUp, Goal, Overflow, Progress, Solver, Start
from fenchel.steps.interpolation.active import ActivePasses
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.hessian import TUNING as HESSIAN
from fenchel.steps.interpolation.hessian import MultiplierHessian
from fenchel.steps.interpolation.pivoting import Quadratic, States
from fenchel.steps.interpolation.semismooth import stages
from fenchel.steps.interpolation.state import Iterates


@dataclass(frozen=True)
class IntervalNewtonTuning:
    """`python -m benchmarks.tuning steps.interpolation.newton damping 1e-12 1e-10 --rows "100 x 400 p=(2|1.5)$"`: times
    are the same on half-lines and intervals, but for the noise of a tenth. The others are not measured.
    """

    damping: float = 1e-11  # of the Hessian's mean diagonal, at first and at least;
    dependent: float = 1e-6  # the same for more rows than weights,
    harder: float = 100.0  # how many times more after states were not found,
    most_damping: float = 1e3  # and at most
    halvings: int = 40
    settled: float = 10.0  # with more than so many times the least damping a step is not the last
    idle: int = 4  # steps that make neither F nor the violation smaller, after which none will
    exact: float = 1e-12  # the violation of points, beside their size, that is rounding
    missed: float = 1e-9  # the violation, beside the size of scores, with which steps that do not help are no end
    stuck: int = 60  # steps that make the violation no smaller, after which there may be no feasible point
    refinements: int = 4  # steps with one factor
    many: int = 500  # samples from which passes of dual ascent come first,
    rounds: int = 32  # as long as so many rounds of them
    quick: float = 0.5  # make the violation this part of what it was
    nearly: float = 1e-3  # relative violation at which the next p-norm follows


TUNING = IntervalNewtonTuning()
#: The estimate of a gap of which nothing is known.
UNKNOWN = 1e300


@dataclass
class MultiplierState:
    """Multipliers of all scores, in row-major order; the intercepts; how the steps have gone."""

    problem: Interpolation
    penalty: Penalty  # of the present stage
    later: list[Penalty]  # of the stages to come
    low: Vector
    high: Vector
    counts: Mask
    beta: Vector
    b: Vector
    states: States
    damping: float = field(default_factory=lambda: TUNING.damping)
    least_damping: float = field(default_factory=lambda: TUNING.damping)
    v: Vector = field(default_factory=lambda: np.zeros(0))
    w: Vector = field(default_factory=lambda: np.zeros(0))
    z: Vector = field(default_factory=lambda: np.zeros(0))
    ascent: ActivePasses | Iterates | None = None  # while passes of dual ascent are quick
    seed: int = 0
    passes: float = 0.0  # or what a step is worth in them
    violated: float = np.inf  # the violation when passes were last judged
    idle: int = 0
    stuck: int = 0
    steps: int = 0  # of dual ascent
    best: tuple[float, float] = (np.inf, np.inf)  # F and the violation

    @property
    def outputs(self) -> int:
        return self.problem.outputs

    def evaluate(self) -> None:
        """v, w and the scores at the multipliers."""
        self.v = self.problem.X.rmatvec(self.beta)
        self.w = self.penalty.grad_conjugate(self.v)
        self.z = self.problem.X.matvec(self.w) + self.shift
        if not (np.all(np.isfinite(self.w)) and np.all(np.isfinite(self.z))):
            raise Overflow("the multipliers overflow")

    def balance(self) -> None:
        """Shift the intercepts so that active scores are at their ends on average: b is rounded more than w."""
        active = self.states != 0
        if not (self.problem.intercept and active.any()):
            return
        weights = np.where(active, self.problem.fractions.ravel(), 0.0).reshape(-1, self.outputs)
        off = np.where(active, np.where(self.states > 0, self.low, self.high) - self.z, 0.0).reshape(-1, self.outputs)
        total = weights.sum(axis=0)
        shift = np.divide((weights * off).sum(axis=0), total, out=np.zeros(self.outputs), where=total > 0.0)
        z, before = self.z, self.mean_square
        self.z = z + np.tile(shift, self.problem.n_samples)
        if self.mean_square < before:
            self.b = self.b + shift
        else:
            self.z = z

    @property
    def shift(self) -> Vector | float:
        """The intercept of every score."""
        return np.tile(self.b, self.problem.n_samples) if self.problem.intercept else 0.0

    def totals(self, beta: Vector) -> Vector:
        """sum_i beta_ij for every output j."""
        return np.asarray(beta.reshape(-1, self.outputs).sum(axis=0))

    @property
    def distances(self) -> Vector:
        """Of the scores to their intervals."""
        return np.where(self.counts, np.maximum(np.maximum(self.low - self.z, self.z - self.high), 0.0), 0.0)

    @property
    def violation(self) -> float:
        """The largest distance."""
        return float(self.distances.max(initial=0.0))

    @property
    def mean_square(self) -> float:
        """The weighted mean of squared distances."""
        return float(np.sum(self.problem.fractions.ravel() * np.square(self.distances)))

    @property
    def is_exact(self) -> bool:
        """Whether points are met up to rounding, and the multipliers add up to zero if there is an intercept."""
        if self.later or not np.array_equal(self.low[self.counts], self.high[self.counts]):
            return False
        return max(self.violation, self.imbalance) <= TUNING.exact * self.scale

    @property
    def imbalance(self) -> float:
        """sum_i beta_i beside sum_i |beta_i|, in units of the scores: zero at the optimum with an intercept."""
        if not self.problem.intercept:
            return 0.0
        size = float(np.abs(self.beta).sum())
        return float(np.abs(self.totals(self.beta)).max()) / size * self.scale if size > 0.0 else 0.0

    @property
    def scale(self) -> float:
        """About how large scores are."""
        ends = np.where(
            np.isfinite(self.low), np.abs(self.low), np.where(np.isfinite(self.high), np.abs(self.high), 0.0)
        )
        return float(max(ends[self.counts].max(initial=0.0), np.abs(self.z[self.counts]).max(initial=0.0), 1e-300))


@dataclass(frozen=True)
class IntervalNewton(Solver[MultiplierState]):
    """One step minimises a quadratic model of the dual over all multipliers."""

    name = "newton"
    summary = "intervals: Newton steps on the multipliers of active constraints"
    requires = frozenset({Trait.STRONGLY_CONVEX_PENALTY, Trait.LINK_DERIVATIVE, Trait.INTERVALS})
    steps_per_check = 50
    passes_per_step = 20
    needs_storage = False
    any_storage = True

    def obstacle(self, problem: Interpolation) -> str | None:
        n, d = problem.X.shape
        if problem.penalty.link_derivative(np.zeros(d)) is None:
            return f"needs a link with a derivative, which {problem.penalty!r} has not"
        if not problem.is_stored and float(n) * d > HESSIAN.most_entries:
            return "takes several scores for fewer weights and samples only"
        return None

    def begin(self, problem: Interpolation, start: Start, seed: int) -> MultiplierState:
        ends = problem.constraints.ends
        assert ends is not None
        low, high = (end.ravel() for end in ends)
        counts = np.repeat(problem.counts, problem.outputs)
        low, high = np.where(counts, low, -np.inf), np.where(counts, high, np.inf)
        beta = (problem.fractions * np.reshape(start.alpha, (-1, problem.outputs))).ravel()
        way = stages(problem.penalty) if not beta.any() else [problem.penalty]
        states = np.sign(beta).astype(np.int8)
        b = np.atleast_1d(np.asarray(start.b, dtype=np.float64)).copy()
        state = MultiplierState(problem, way[0], way[1:], low, high, counts, beta, b, states, seed=seed)
        if problem.X.shape[0] > problem.X.shape[1] + problem.outputs * problem.intercept:  # rows depend on each other
            state.damping = state.least_damping = TUNING.dependent
        if _begins_with_passes(problem):
            state.ascent = ActivePasses.of(problem, start, seed)
        if state.ascent is None:
            state.evaluate()
        return state

    def _ascend(self, state: MultiplierState, ascent: ActivePasses | Iterates) -> None:
        """Passes of dual ascent; the last ones if they hardly help, unless there are too many samples."""
        ascent.step()
        state.steps += 1
        if not isinstance(ascent, ActivePasses):
            state.passes += 1.0
            return
        state.passes = float(ascent.count)
        if state.steps % TUNING.rounds:
            return
        if ascent.violation < TUNING.quick * state.violated:
            state.violated = ascent.violation
            return
        found = ascent.model()
        assert found.alpha is not None
        if state.problem.n_samples > HESSIAN.most_dense:
            start = Start(found.w, found.b, found.alpha)
            accelerated = Dykstra(accelerate=True, restart=True).begin(state.problem, start, state.seed)
            assert isinstance(accelerated, Iterates)
            state.ascent = accelerated
            return
        state.ascent = None
        state.beta = (state.problem.fractions * np.reshape(found.alpha, (-1, state.outputs))).ravel()
        state.states = np.sign(state.beta).astype(np.int8)
        state.b = np.atleast_1d(np.asarray(found.b, dtype=np.float64))
        state.evaluate()

    def aim(self, state: MultiplierState, goal: Goal) -> None:
        if isinstance(state.ascent, ActivePasses):
            state.ascent.goal = goal

    def progress(self, state: MultiplierState) -> Progress:
        """A Newton step is worth a certificate; passes of dual ascent are by their number, or their estimate."""
        known = state.ascent.estimate() if isinstance(state.ascent, ActivePasses) else (np.inf, np.inf)
        return Progress(known[0], min(known[1], UNKNOWN), state.passes)

    def observe(self, state: MultiplierState, z: Vector, primal: float, gap: float) -> None:
        """After a check: recompute images."""
        if state.ascent is not None:
            state.ascent.refresh()

    def step(self, state: MultiplierState) -> MultiplierState:
        if state.ascent is not None:
            self._ascend(state, state.ascent)
            return state
        state.passes += self.steps_per_check
        if state.idle >= TUNING.idle and state.violation > TUNING.missed * state.scale:
            raise GaveUp("Newton steps on the multipliers do not get further")
        derivative = state.penalty.link_derivative(state.v)
        assert derivative is not None
        if not state.beta.any():  # the link may be flat there
            slope = max(float(derivative.diagonal.max(initial=0.0)), 1.0 / state.penalty.strong_convexity)
            derivative = LinkDerivative(np.full(len(state.v), slope))
        hessian = MultiplierHessian.of(state, derivative)
        found, before = self._model_step(state, hessian), np.inf
        # proximal-point steps with one factor, as long as they help
        for _ in range(TUNING.refinements if found and state.penalty.quadratic else 0):
            if not TUNING.exact * state.scale < max(state.violation, state.imbalance) < 0.5 * before:
                break
            before = max(state.violation, state.imbalance)
            self._model_step(state, hessian)
        if not found:  # rows depend on each other too much
            state.damping = min(TUNING.harder * state.damping, TUNING.most_damping)
        return state

    def _model_step(self, state: MultiplierState, hessian: MultiplierHessian) -> bool:
        """To the minimum of the quadratic model, as far as F falls; whether it was found."""
        # the damping is around the present multipliers, the quadratic of the intercept around the present b
        c = state.z - hessian.without_pull(state.beta)
        model = Quadratic(hessian.times, hessian.solve, c, state.low, state.high)
        beta, states, found = model.minimise(state.states)
        self._search(state, beta, states, hessian)
        return found

    def _search(self, state: MultiplierState, beta: Vector, states: States, hessian: MultiplierHessian) -> None:
        """Along the line to the model's minimum, as far as F falls."""
        old, b, change = state.beta, state.b, beta - state.beta
        before, t = self._objective(state, hessian, old, b), 1.0
        pulled = np.tile(hessian.pull * state.totals(old), state.problem.n_samples) if state.problem.intercept else 0.0
        slope = float((state.z + pulled) @ change) + self._ends(state, beta) - self._ends(state, old)
        for _ in range(TUNING.halvings):
            trial = old + t * change
            value = self._objective(state, hessian, trial, b)
            if value <= before + 1e-4 * t * min(slope, 0.0) + 1e-13 * (abs(before) + abs(value)):
                break
            t *= 0.5
        else:
            t = 0.0
        if t > 0.0:
            state.beta = beta if t == 1.0 else old + t * change
            state.states = states if t == 1.0 else np.sign(state.beta).astype(np.int8)
            if state.problem.intercept:
                state.b = b + hessian.pull * state.totals(state.beta)
        factor = 0.3 if t == 1.0 else 1.0 if t >= 0.25 else 10.0
        state.damping = float(np.clip(state.damping * factor, state.least_damping, TUNING.most_damping))
        state.evaluate()
        state.balance()
        self._account(state, self._objective(state, hessian, state.beta, state.b))

    def _account(self, state: MultiplierState, value: float) -> None:
        violation, (least, smallest) = state.violation, state.best
        settled = state.damping <= TUNING.settled * state.least_damping or state.damping >= TUNING.most_damping
        state.idle, state.stuck = state.idle + settled, state.stuck + 1
        if violation < 0.9 * smallest:
            state.stuck = 0
        if value < least - 1e-13 * abs(least) or violation < 0.7 * smallest:
            state.idle = 0
        state.best = min(value, least), min(violation, smallest)
        if state.later and violation <= TUNING.nearly * state.scale:
            state.penalty, state.best, state.idle, state.stuck = state.later.pop(0), (np.inf, np.inf), 0, 0
            state.damping = state.least_damping
            state.evaluate()

    @staticmethod
    def _ends(state: MultiplierState, beta: Vector) -> float:
        """sum_i h_i(beta_i)."""
        with np.errstate(invalid="ignore"):
            terms = np.where(beta > 0.0, -state.low * beta, np.where(beta < 0.0, -state.high * beta, 0.0))
        return float(terms.sum())

    def _objective(self, state: MultiplierState, hessian: MultiplierHessian, beta: Vector, b: Vector) -> float:
        """F, with the quadratic of the intercept around the present one."""
        value = self._ends(state, beta) + state.penalty.conjugate(state.problem.X.rmatvec(beta))
        if state.problem.intercept:
            totals = state.totals(beta)
            value += float(b @ totals) + 0.5 * hessian.pull * float(totals @ totals)
        return value

    def candidates(self, state: MultiplierState) -> Sequence[Candidate]:
        if state.ascent is not None:
            return state.ascent.candidates()[:1]
        problem = state.problem
        w = problem.penalty.grad_conjugate(state.v) if state.later else state.w
        weights, intercept, multipliers = problem.shapes
        fractions = problem.fractions.ravel()
        alpha = np.divide(state.beta, fractions, out=np.zeros_like(state.beta), where=fractions > 0.0)
        b = state.b if intercept else float(state.b[0])
        return [Candidate(w.reshape(weights), b if problem.intercept else 0.0 * b, alpha.reshape(multipliers))]

    def finished(self, state: MultiplierState) -> bool:
        ends = state.idle >= TUNING.idle and state.violation <= TUNING.missed * state.scale
        return (ends and not state.later) or state.stuck >= TUNING.stuck or state.is_exact


def _begins_with_passes(problem: Interpolation) -> bool:
    """Whether passes of dual ascent are compiled and cheap beside a factorisation, and not all sets are points."""
    ends = problem.constraints.ends
    assert ends is not None
    points = bool(np.all(ends[0] == ends[1]))
    plain = problem.penalty.quadratic and problem.is_scalar and problem.is_stored and problem.design.by_rows
    return plain and not points and problem.n_samples >= TUNING.many
