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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation, Trait
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.base import LinkDerivative
from fenchel.steps.base import Candidate, GaveUp, Goal, Overflow, Progress, Solver, Start, never
from fenchel.steps.interpolation.active import ActivePasses
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.hessian import MultiplierHessian
from fenchel.steps.interpolation.pivoting import Quadratic, States
from fenchel.steps.interpolation.semismooth import stages
from fenchel.steps.interpolation.state import Iterates
from fenchel.steps.linear_algebra.orthogonal import ShortestChange
from fenchel.steps.linear_algebra.safeguards import ROUNDING, TINY, Damping, Patience, backtracked
from fenchel.steps.linear_algebra.safeguards import TUNING as SAFEGUARDS
from fenchel.steps.margin.active_set import ActiveSet


@dataclass(frozen=True)
class IntervalNewtonTuning:
    """`python -m benchmarks.tuning steps.interpolation.newton many 250 5000 --rows "^hard margin"`: 1.03 and 14 times
    as long; `rounds 8 128 --rows "^hard margin tall"`: 0.95 and 0.90; `nearly 0.0005 0.002 --rows "p=1.2
    intercept"`: 1.07 and 1.00.
    """

    nearly: float = 1e-3  # relative violation at which the next p-norm follows
    many: int = 500  # samples from which passes of dual ascent come first,
    rounds: int = 32  # as long as so many rounds of them halve the violation


TUNING = IntervalNewtonTuning()
#: The estimate of a gap of which nothing is known.
UNKNOWN = 1e300


@dataclass
class MultiplierState:
    """Multipliers of all scores, in row-major order; the intercepts; how the steps have gone."""

    problem: Interpolation
    penalty: Penalty  # of the present stage
    later: list[Penalty]  # of the stages to come
    beta: Vector
    b: Vector
    states: States
    damping: Damping
    v: Vector = field(default_factory=lambda: np.zeros(0))
    w: Vector = field(default_factory=lambda: np.zeros(0))
    z: Vector = field(default_factory=lambda: np.zeros(0))
    plain: bool = False  # whether all is linear: equations, and a quadratic penalty
    direct: bool = False  # whether orthogonal factors have been tried
    ascent: ActivePasses | Iterates | None = None  # while passes of dual ascent are quick
    seed: int = 0
    passes: float = 0.0  # or what a step is worth in them
    violated: float = np.inf  # the violation when passes were last judged
    least: float = np.inf  # F
    idle: Patience = field(default_factory=Patience)  # with steps that make neither F nor the violation smaller
    stuck: Patience = field(default_factory=Patience)  # with steps that do not halve the violation
    steps: int = 0  # of dual ascent
    late: Callable[[], bool] = never
    square: float = np.inf  # the weighted mean of squared distances after the last step of the stage

    def evaluate(self, w: Vector | None = None) -> None:
        """v, w (unless it is known to more digits) and the scores at the multipliers."""
        self.v = self.problem.X.rmatvec(self.beta)
        self.w = self.penalty.grad_conjugate(self.v) if w is None else w
        self.z = self.problem.X.matvec(self.w) + self.shift
        if not (np.all(np.isfinite(self.w)) and np.all(np.isfinite(self.z))):
            raise Overflow("the multipliers overflow")

    def balance(self) -> None:
        """Shift the intercepts so that active scores are at their ends on average: b is rounded more than w."""
        active = self.states != 0
        if not (self.problem.intercept and active.any()):
            return
        problem, (low, high) = self.problem, self.problem.intervals
        weights = np.where(active, problem.fractions.ravel(), 0.0)
        off = np.where(active, np.where(self.states > 0, low, high) - self.z, 0.0)
        total = problem.totals(weights)
        shift = np.divide(problem.totals(weights * off), total, out=np.zeros_like(total), where=total > 0.0)
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

    @property
    def violation(self) -> float:
        """The largest distance of a score from its interval."""
        return float(self.problem.distances(self.z).max(initial=0.0))

    @property
    def mean_square(self) -> float:
        """The weighted mean of squared distances."""
        return float(np.sum(self.problem.fractions.ravel() * np.square(self.problem.distances(self.z))))

    @property
    def may_contradict(self) -> bool:
        """Whether the least violation is asked for if constraints contradict each other."""
        return self.problem.on_infeasible == "least_violation"

    @property
    def is_least(self) -> bool:
        """Whether no change of the model lowers the weighted mean of squared distances, to half of the digits."""
        problem, (low, high) = self.problem, self.problem.intervals
        away = problem.fractions.ravel() * (np.clip(self.z, low, high) - self.z)
        slope, totals = problem.X.rmatvec(away), problem.totals(away) if problem.intercept else np.zeros(1)
        flat = float(np.linalg.norm(slope)) <= TINY * float(np.abs(away) @ problem.row_norms)
        return flat and float(np.abs(totals).max()) <= TINY * float(np.abs(away).sum())

    @property
    def is_exact(self) -> bool:
        """Whether points are met up to rounding, and the multipliers add up to zero if there is an intercept."""
        low, high = self.problem.intervals
        points = (low == high) | (self.problem.fractions.ravel() == 0.0)
        return not self.later and bool(np.all(points)) and self.is_rounding

    @property
    def is_rounding(self) -> bool:
        """Whether scores are as good as in their intervals, and an intercept's equation is met."""
        return max(self.violation, self.imbalance) <= ROUNDING * self.scale

    @property
    def imbalance(self) -> float:
        """sum_i beta_i beside sum_i |beta_i|, in units of the scores: zero at the optimum with an intercept."""
        if not self.problem.intercept:
            return 0.0
        size = float(np.abs(self.beta).sum())
        return float(np.abs(self.problem.totals(self.beta)).max()) / size * self.scale if size > 0.0 else 0.0

    @property
    def scale(self) -> float:
        """About how large scores are."""
        ends, counts = np.abs(self.problem.intervals), self.problem.fractions.ravel() > 0.0
        nearest = np.where(np.isfinite(ends[0]), *ends)
        return float(max(nearest[np.isfinite(nearest)].max(initial=0.0), np.abs(self.z[counts]).max(), 1e-300))


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
        if not (problem.is_stored or limits.fits(n, d)):
            return "takes several scores for fewer weights and samples only"
        return None

    @staticmethod
    def suits(problem: Interpolation, tol: float) -> bool:
        """Not if the pivoting steps of one step, as many factorisations as patience has, take long for tall rows."""
        n, d = problem.X.shape
        cheap = float(n) * d * d * SAFEGUARDS.patience <= limits.TUNING.step
        return cheap or problem.penalty.quadratic or n <= d or _all_points(problem)

    def begin(self, problem: Interpolation, start: Start, seed: int) -> MultiplierState:
        beta = problem.weighted(start.alpha).ravel()
        way = stages(problem.penalty) if not beta.any() else [problem.penalty]
        states = np.sign(beta).astype(np.int8)
        b = np.atleast_1d(np.asarray(start.b, dtype=np.float64)).copy()
        dependent = problem.X.shape[0] > problem.X.shape[1] + problem.outputs * problem.intercept
        plain = problem.penalty.quadratic and _all_points(problem)  # refined, or by conjugate gradients
        damping = Damping() if dependent else Damping(ROUNDING if plain else TINY)
        state = MultiplierState(problem, way[0], way[1:], beta, b, states, damping, plain=plain, seed=seed)
        state.stuck = _long_patience(problem)
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
        if ascent.violation < 0.5 * state.violated:
            state.violated = ascent.violation
            return
        found = ascent.model()
        assert found.alpha is not None
        if not limits.fits(state.problem.n_samples, state.problem.n_samples):
            start = Start(found.w, found.b, found.alpha)
            accelerated = Dykstra(accelerate=True, restart=True).begin(state.problem, start, state.seed)
            assert isinstance(accelerated, Iterates)
            state.ascent = accelerated
            return
        state.ascent = None
        state.beta = state.problem.weighted(found.alpha).ravel()
        state.states = np.sign(state.beta).astype(np.int8)
        state.b = np.atleast_1d(np.asarray(found.b, dtype=np.float64))
        state.evaluate()

    def progress(self, state: MultiplierState) -> Progress:
        """A Newton step is worth a certificate; passes of dual ascent are by their number, or their estimate."""
        known = state.ascent.estimate() if isinstance(state.ascent, ActivePasses) else (np.inf, np.inf)
        return Progress(known[0], min(known[1], UNKNOWN), state.passes)

    def observe(self, state: MultiplierState, z: Vector, primal: float, gap: float) -> None:
        """After a check: recompute images."""
        if state.ascent is not None:
            state.ascent.refresh()

    def aim(self, state: MultiplierState, goal: Goal) -> None:
        state.late = goal.late

    def step(self, state: MultiplierState) -> MultiplierState:
        if state.ascent is not None:
            self._ascend(state, state.ascent)
            return state
        state.passes += self.steps_per_check
        stuck = state.stuck.is_over and not (state.may_contradict and state.is_least)
        if (state.idle.is_over or stuck) and state.violation > ROUNDING * state.scale:
            raise GaveUp("Newton steps on the multipliers do not get further")
        derivative = state.penalty.link_derivative(state.v)
        assert derivative is not None
        if not state.beta.any():  # the link may be flat there
            slope = max(float(derivative.diagonal.max(initial=0.0)), 1.0 / state.penalty.strong_convexity)
            derivative = LinkDerivative(np.full(len(state.v), slope))
        hessian = MultiplierHessian.of(state.problem, derivative, state.damping.value)
        if state.plain:
            self._solve_equations(state, hessian)
            return state
        found, before = self._model_step(state, hessian), np.inf
        # proximal-point steps with one factor, as long as they help
        while found and state.penalty.quadratic and not (state.is_rounding or state.late()):
            last, before = before, max(state.violation, state.imbalance)
            if not before < 0.5 * last:
                break
            self._model_step(state, hessian)
        if not found:  # rows depend on each other too much
            state.damping.learn(False)
        return state

    def _solve_equations(self, state: MultiplierState, hessian: MultiplierHessian) -> None:
        """Proximal-point steps with one factor as long as they help; then by orthogonal factors, once.

        The weights are a sum of changes, each for what the equations still miss: multipliers grow as the square of the
        condition number of the rows, and X'b has that many digits less.
        """
        before = np.inf
        while True:
            self._equations_step(state, hessian)
            last, before = before, max(state.violation, state.imbalance)
            if state.is_rounding or state.late() or not before < 0.5 * last:
                break
        problem = state.problem
        n, d = problem.X.shape
        dense = problem.is_stored and problem.is_scalar and (not problem.design.is_sparse or limits.fits(n, d))
        if state.direct or state.is_rounding or state.late() or not (dense and limits.is_factorable(n, d)):
            return
        state.direct = True
        rows = np.flatnonzero(problem.counts)
        change = ShortestChange.of(problem.X.rows(rows), problem.intercept)
        kept = state.beta, state.w, state.b, state.z, state.v
        off = max(state.violation, state.imbalance)
        self._restart(state)
        step, u = change.solve((problem.intervals[0] - state.z)[rows])
        state.beta[rows] = u / hessian.derivative.diagonal[0]
        state.evaluate(state.w + step)
        state.balance()
        if not max(state.violation, state.imbalance) < off:
            state.beta, state.w, state.b, state.z, state.v = kept

    def _equations_step(self, state: MultiplierState, hessian: MultiplierHessian) -> None:
        problem, totals = state.problem, state.problem.totals
        rows = np.flatnonzero(problem.fractions.ravel() > 0.0)
        pulled = np.tile(hessian.pull * totals(state.beta), problem.n_samples)
        missed = problem.intervals[0] - state.z - pulled
        hessian.level = ROUNDING * float(np.linalg.norm(problem.intervals[0][rows]))
        change = np.zeros_like(state.beta)
        change[rows] = hessian.solve(rows, missed[rows])
        state.beta = state.beta + change
        state.states = np.where(problem.fractions.ravel() > 0.0, np.int8(1), np.int8(0))
        if problem.intercept:
            state.b = state.b + hessian.pull * totals(state.beta)
        state.evaluate(state.w + hessian.derivative.diagonal[0] * problem.X.rmatvec(change))
        state.balance()
        self._account(state, self._objective(state, hessian, state.beta, state.b))

    @staticmethod
    def _restart(state: MultiplierState) -> None:
        """At multipliers of zero, with the intercept as it is."""
        state.beta = np.zeros_like(state.beta)
        state.evaluate()

    def _model_step(self, state: MultiplierState, hessian: MultiplierHessian) -> bool:
        """To the minimum of the quadratic model, as far as F falls; whether it was found."""
        # the damping is around the present multipliers, the quadratic of the intercept around the present b
        c, hessian.near = state.z - hessian.without_pull(state.beta), state.beta
        model = Quadratic(hessian.times, hessian.solve, c, *state.problem.intervals, state.late)
        beta, states, found = model.minimise(state.states)
        self._search(state, beta, states, hessian)
        return found

    def _search(self, state: MultiplierState, beta: Vector, states: States, hessian: MultiplierHessian) -> None:
        """Along the line to the model's minimum, as far as F falls."""
        old, b, change = state.beta, state.b, beta - state.beta
        before, totals = self._objective(state, hessian, old, b), state.problem.totals
        pulled = np.tile(hessian.pull * totals(old), state.problem.n_samples)
        slope = float((state.z + pulled) @ change) + self._ends(state, beta) - self._ends(state, old)

        def falls(t: float) -> bool:
            value = self._objective(state, hessian, old + t * change, b)
            return value <= before + 1e-4 * t * min(slope, 0.0) + 1e-13 * (abs(before) + abs(value))

        t = backtracked(falls)
        if t > 0.0:
            state.beta = beta if t == 1.0 else old + t * change
            state.states = states if t == 1.0 else np.sign(state.beta).astype(np.int8)
            if state.problem.intercept:
                state.b = b + hessian.pull * totals(state.beta)
        state.damping.learn(t == 1.0)
        state.evaluate()
        state.balance()
        self._account(state, self._objective(state, hessian, state.beta, state.b))

    def _account(self, state: MultiplierState, value: float) -> None:
        state.stuck.learn(state.violation)
        state.idle.learn(state.violation, value < state.least - 1e-13 * abs(state.least))
        state.least = min(value, state.least)
        square, last = state.mean_square, state.square
        state.square = square
        flat = state.may_contradict and square > (1.0 - TUNING.nearly) * last
        if state.later and (flat or state.violation <= TUNING.nearly * state.scale):
            state.square = np.inf
            state.penalty, state.least, state.damping = state.later.pop(0), np.inf, Damping(state.damping.least)
            state.idle, state.stuck = Patience(), _long_patience(state.problem)
            state.evaluate()

    @staticmethod
    def _ends(state: MultiplierState, beta: Vector) -> float:
        """sum_i h_i(beta_i)."""
        low, high = state.problem.intervals
        with np.errstate(invalid="ignore"):
            terms = np.where(beta > 0.0, -low * beta, np.where(beta < 0.0, -high * beta, 0.0))
        return float(terms.sum())

    def _objective(self, state: MultiplierState, hessian: MultiplierHessian, beta: Vector, b: Vector) -> float:
        """F, with the quadratic of the intercept around the present one."""
        value = self._ends(state, beta) + state.penalty.conjugate(state.problem.X.rmatvec(beta))
        if state.problem.intercept:
            totals = state.problem.totals(beta)
            value += float(b @ totals) + 0.5 * hessian.pull * float(totals @ totals)
        return value

    def candidates(self, state: MultiplierState) -> Sequence[Candidate]:
        if state.ascent is not None:
            return state.ascent.candidates()[:1]
        problem = state.problem
        w = problem.penalty.grad_conjugate(state.v) if state.later else state.w
        b = state.b if problem.intercept else np.zeros_like(state.b)
        return [Candidate(*problem.shaped(w, b), problem.unweighted(state.beta))]

    def finished(self, state: MultiplierState) -> bool:
        """Up to rounding; or without progress, because there may be no feasible point."""
        ends = state.idle.is_over and not state.later and state.violation <= ROUNDING * state.scale
        least = state.stuck.is_over and state.may_contradict and not state.later and state.is_least
        return ends or least or state.is_exact


def _begins_with_passes(problem: Interpolation) -> bool:
    """Whether passes of dual ascent are compiled and cheap beside a factorisation, and not all sets are points."""
    plain = problem.penalty.quadratic and problem.is_scalar and problem.is_stored and problem.design.by_rows
    return plain and not _all_points(problem) and problem.n_samples >= TUNING.many


def _long_patience(problem: Interpolation) -> Patience:
    """Three times the usual one, unless a solver that does not need well-conditioned rows can go on."""
    others = problem.on_infeasible == "raise" and ActiveSet().hindrance(problem) is None
    return Patience(times=1 if others else 3)


def _all_points(problem: Interpolation) -> bool:
    """Whether all sets are points, of samples that count."""
    low, high = problem.intervals
    return bool(np.all((low == high) | (problem.fractions.ravel() == 0.0)))
