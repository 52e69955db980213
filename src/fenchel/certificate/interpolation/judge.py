"""The judge of an interpolation: the best feasible point and the best lower bound, or a proof that there is none.

A solver's weights are hardly ever exactly feasible. So a feasible point is made from them: half-lines by scaling, sets
with an interior by a move towards a point well inside, equations by a proof that an exact solution is near.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fenchel.certificate.bounds.rounding import PrimalBound
from fenchel.certificate.certificate import Certificate, Proof
from fenchel.certificate.interpolation.bounds import (
    DualValue,
    Multipliers,
    ScoreBounds,
    dual_bound,
    scaled_bound,
)
from fenchel.certificate.interpolation.certificate import InterpolationCertificate, is_nothing
from fenchel.certificate.interpolation.equal_rows import contradictory_pair
from fenchel.certificate.interpolation.equations import Equations, metric_of
from fenchel.certificate.interpolation.infeasible import FarkasCertificate, Infeasible, prove
from fenchel.certificate.judge import Record, judge_of
from fenchel.certificate.search.ascent import offers
from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties.bregman import Bregman
from fenchel.problem.vectors import frozen, p_norm, row_lengths, times_square
from fenchel.steps import Candidate, Scores
from fenchel.steps.choose import dual_solvers
from fenchel.steps.interpolation.local import gentler


@dataclass(frozen=True)
class InterpolationTuning:
    """When points inside the sets and proofs are looked for, and how long.

    `python -m benchmarks.tuning all certificate.interpolation.judge`: times with half and with double are 1.02 and 1.70
    for `close`, 1.01 and 1.08 for `again`, 1.00 and 1.04 for `passes`; with fewer or more of `room` 0.99.
    """

    close: float = 0.05  # the part of P that P - D is, or of its terms that |v| is, where that is worth trying,
    again: float = 0.3  # and the part of what it was then where it is tried again
    room: tuple[float, ...] = (0.5, 0.03, 1e-3, 1e-5, 1e-7)  # how far inside: parts of the sets' sizes
    passes: int = 600  # that the first search may take; the next may take twice as many


TUNING = InterpolationTuning()
#: Multipliers that push every score towards its set.
AWAY = "distance to the sets"


@dataclass(frozen=True)
class Evaluated:
    """A model, its scores with their errors, the largest violation, and a bound on the penalty of a feasible one."""

    w: Vector
    b: Any
    scores: ScoreBounds
    value: float
    violation: float
    upper: float = np.inf  # of the penalty of a feasible point
    distance: float = 0.0  # of that point, at most
    exact: bool = False  # whether that point is the model itself


class InterpolationJudge(Record):
    """Evaluates models and multipliers; keeps the best of each."""

    certifies = InterpolationCertificate

    def __init__(self, problem: Interpolation) -> None:
        self.problem = problem
        weights, intercept, multipliers = problem.shapes
        self.w, self.b = np.zeros(weights), np.zeros(intercept) if intercept else 0.0
        self.primal = PrimalBound(np.inf, np.inf, np.zeros(multipliers))
        self.best: DualValue = dual_bound(problem, Multipliers.of(problem, np.zeros(multipliers), "zero"))
        self.feasible = self.best
        self.point: Evaluated | None = None  # of the model that is kept
        self.latest: Evaluated | None = None  # the last one that is not feasible
        self.inside: Evaluated | None = None  # a point well inside the sets
        self.searched = np.inf  # P - D at the last search for it
        self.rooms = list(TUNING.room)
        self.cancelled = np.inf
        self.steady = False  # whether the last model violates constraints as much as the best
        self.seen = self.primal.z  # the scores of the last model
        self.contradiction: FarkasCertificate | None = None

    def prepare(self) -> None:
        """Two samples with the same features whose sets do not meet prove a contradiction at once."""
        alpha = contradictory_pair(self.problem)
        if alpha is not None:
            self.try_multipliers(alpha, "two samples with the same features")

    @cached_property
    def at_zero(self) -> float:
        """The scale of the penalty: about what it takes to move one score from 0 into its set."""
        problem = self.problem
        near = problem.constraints.project(np.zeros((problem.n_samples, problem.outputs)))
        far = float(np.abs(near[problem.counts]).max(initial=0.0))
        longest = float(problem.row_norms.max(initial=0.0))
        if not longest > 0.0:
            return 0.0
        single = np.zeros(problem.X.shape[1])
        single[0] = far / longest
        penalty = problem.penalty
        value = (penalty.of if isinstance(penalty, Bregman) else penalty).value(single)
        least = times_square(0.5 * problem.penalty.strong_convexity, far / longest)
        return float(max(least, value)) if np.isfinite(value) else least

    @property
    def evidence(self) -> Proof | None:  # type: ignore[override]
        """Labels and zeros are not proven for interpolations."""
        return None

    # Models -------------------------------------------------------------------------------------------------------

    def consider(self, w: Vector, b: Any, scores: Scores | None = None) -> PrimalBound:
        """Keep a model, or the feasible one that it leads to, if it is the best so far; `scores` is not used."""
        point = self._point(w, b)
        self.seen = point.scores.Z
        if np.isinf(point.upper) and np.isfinite(point.violation):
            scaled = self._scaled(point)
            if scaled is not None:
                self._keep(scaled)
            else:
                self.latest = point
        self._keep(point)
        if self.contradiction is not None:
            return self.primal
        return PrimalBound(point.value, point.upper, point.scores.Z.reshape(self.problem.shapes[2]))

    def _point(self, w: Vector, b: Any) -> Evaluated:
        problem = self.problem
        with np.errstate(all="ignore"):
            scores = ScoreBounds.of(problem, w, b)
            value, violation = problem.penalty.value(np.ravel(w)), scores.largest_distance(problem)
            point = Evaluated(frozen(np.asarray(w)), b, scores, value, violation if np.isfinite(value) else np.inf)
            return self._proven(point) if np.isfinite(point.violation) else point

    def _proven(self, point: Evaluated) -> Evaluated:
        """With a bound on the penalty of a feasible point at or near it, if there is one."""
        problem, x = self.problem, self._entries(point)
        if not self._worth_proving(point):
            return point
        moves = np.zeros(len(x)) if not self.equations.count else self._moves(point, x)
        if moves is None:
            return point
        d, Z = problem.X.shape[1], point.scores
        error = Z.error
        if moves.any():
            shift = problem.X.matvec_bounded(moves[:d])
            spread = shift.absolute.reshape(Z.Z.shape)
            if problem.intercept:
                spread = spread + moves[d:]
            error = error + row_lengths(spread) * (1.0 + EVALUATION)
        inside = problem.constraints.contains_ball(Z.Z, error)
        if not np.all(inside[problem.counts]):
            return point
        if not self.equations.count:
            return replace(point, violation=0.0, upper=problem.penalty.value_upper(np.ravel(point.w)), exact=True)
        upper = problem.penalty.value_upper_near(np.ravel(point.w), moves[:d])
        return replace(point, upper=upper, distance=p_norm(moves[:d], 2) * (1.0 + EVALUATION))

    def _worth_proving(self, point: Evaluated) -> bool:
        """Whether equations nearly hold: a factorisation for each model would be too much."""
        if not self.equations.count:
            return True
        size = float(np.abs(self.equations.f).max()) + float(np.abs(point.scores.Z).max(initial=0.0))
        return point.violation <= 1e-6 * size

    def _moves(self, point: Evaluated, x: Vector) -> Vector | None:
        problem, penalty = self.problem, self.problem.penalty
        metric, gram = np.ones(len(x)), None
        if not penalty.quadratic:
            slope = penalty.subgradients(np.ravel(point.w), 0.0)
            v = self.best.v if slope is None else slope.point
            metric = metric_of(penalty.link_derivative(v), len(x))
        elif self._all_rows_are_equations and not problem.intercept and self.equations.fit:
            gram = problem.row_gram
        if problem.intercept:  # its column of ones has the size of the features, or the rows look nearly dependent
            size = float(np.mean(np.square(problem.row_norms)))
            metric[problem.X.shape[1] :] = size if 0.0 < size < np.inf else 1.0
        return self.equations.moves(x, metric, gram)

    @cached_property
    def equations(self) -> Equations:
        """What every feasible model satisfies exactly."""
        return Equations.of(self.problem)

    @cached_property
    def _all_rows_are_equations(self) -> bool:
        M = self.problem.constraints.equations[0]
        return bool(self.equations.count == M.shape[1] == M.nnz and np.all(self.problem.counts))

    def _entries(self, point: Evaluated) -> Vector:
        if not self.problem.intercept:
            return np.ravel(point.w)
        return np.concatenate([np.ravel(point.w), np.ravel(point.b)])

    def _scaled(self, point: Evaluated) -> Evaluated | None:
        """The smallest multiple of a model that satisfies all constraints, for half-lines that do not contain 0."""
        problem, ends = self.problem, self.problem.constraints.ends
        if ends is None or self.equations.count:
            return None
        (low, high), Z, counts = ends, point.scores.Z, problem.counts
        low, high, Z = low[counts], high[counts], Z[counts]
        if np.any((low < 0.0) & (low > -np.inf)) or np.any((high > 0.0) & (high < np.inf)):
            return None
        error = point.scores.error[counts, None] + EVALUATION * np.abs(Z)
        reach = np.where(np.isfinite(low), Z - error, np.where(np.isfinite(high), -Z - error, np.inf))
        bound = np.where(np.isfinite(low), low, np.where(np.isfinite(high), -high, 0.0))
        if not np.all(reach > 0.0) and np.any(bound[reach <= 0.0] > 0.0):
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            t = float(np.max(np.where(bound > 0.0, bound / reach, 0.0), initial=0.0))
        for spare in (1e-15, 1e-13, 1e-11):
            scaled = self._point(np.asarray(point.w) * (t * (1.0 + spare)), np.asarray(point.b) * (t * (1.0 + spare)))
            if np.isfinite(scaled.upper):
                return scaled
        return None

    def _keep(self, point: Evaluated) -> None:
        if self.contradiction is not None:
            value = point.scores.mean_square(self.problem)
            self.steady = value > (1.0 - EVALUATION) * self.primal.upper
            if not value < self.primal.upper:
                return
            primal = PrimalBound(value, value, point.scores.Z.reshape(self.problem.shapes[2]))
        else:
            problem = self.problem
            before = self.primal.upper, np.inf if self.point is None else self.point.scores.mean_square(problem)
            if self.point is not None and not (point.upper, point.scores.mean_square(problem)) < before:
                return
            primal = PrimalBound(point.value, point.upper, point.scores.Z.reshape(self.problem.shapes[2]))
        b = float(point.b) if self.problem.is_scalar else np.asarray(point.b)
        self.w, self.b, self.point, self.primal = point.w, b, point, primal

    # Multipliers --------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")
    def try_multipliers(self, alpha: Vector, how: str, u: Vector | None = None) -> None:
        """The bound of these multipliers; a proof that the constraints contradict each other, if they are one."""
        problem = self.problem
        bound = scaled_bound(problem, Multipliers.of(problem, alpha, how))
        if self.contradiction is None:
            self.keep([bound])
        self._try_contradiction(bound)
        if self.contradiction is not None and how != AWAY:  # the distances themselves are the best multipliers
            self.try_gradient(self.seen)
        self._move_inside()

    def _try_contradiction(self, bound: DualValue) -> None:
        """Raise `Infeasible`, or go on with the violation as the objective, if these multipliers prove it."""
        if self.contradiction is None and np.isfinite(self.primal.upper):  # there is a feasible point
            return
        cancellation = bound.cancellation
        if bound.support_lower > self.problem.penalty.domain_support(bound.v, bound.error):
            cancellation = 0.0  # the domain is bounded, or v is exactly zero
        tried = cancellation > TUNING.again * self.cancelled and self.contradiction is None
        if tried or cancellation > TUNING.close or not bound.support_lower > 0.0:
            return
        found, first = prove(self.problem, bound), self.contradiction is None
        self.cancelled = cancellation
        if found is None:
            return
        if self.problem.on_infeasible == "raise":
            raise Infeasible(found)
        if first or found.excess > self.best.lower:
            self.contradiction = found
            excess = found.excess
            proof = replace(bound, value=excess, lower=excess, alpha=found.multipliers, how=found.how)
            self.best = self.feasible = self.last = proof
        if first and self.point is not None:
            self.primal = PrimalBound(np.inf, np.inf, self.primal.z)
            self._keep(self.point)
            if self.latest is not None:
                self._keep(self.latest)

    def try_gradient(self, z: Vector | None = None) -> None:
        """Multipliers that push every score towards its set: the limit of those of a large quadratic loss."""
        Z = np.reshape(self.primal.z if z is None else z, (-1, self.problem.outputs))
        if np.all(np.isfinite(Z)):
            away = self.problem.constraints.project(Z) - Z
            self.try_multipliers(away.reshape(self.problem.shapes[2]), AWAY)

    def fit(self, tol: float) -> None:
        """Look for a feasible point near the last model."""
        self._move_inside(anyway=True)

    @property
    def gradient_is_tight(self) -> bool:
        """Never: multipliers do not follow from scores."""
        return False

    def try_candidate(self, candidate: Candidate, last: float) -> float:
        """Keep the bound of what a solver that raises D offers."""
        if candidate.alpha is not None:
            self.try_multipliers(candidate.alpha, "dual ascent")
        return np.inf

    # Points inside ------------------------------------------------------------------------------------------------

    def _move_inside(self, anyway: bool = False) -> None:
        """From the last model towards a point inside the sets, as far as it takes to satisfy every constraint."""
        point = self.latest
        if point is None or self.contradiction is not None:
            return
        if self._no_room:
            return
        apart = abs(point.value - self.best.value)
        if not (anyway or apart <= TUNING.close * abs(point.value)):
            return
        due = anyway or apart <= TUNING.again * self.searched
        while self.inside is None and due and self.rooms and not self.late():
            self.searched, due = apart, anyway
            self.inside = self._search(self.rooms.pop(0))
        if self.inside is None:
            return
        self.latest = None
        moved = self._towards(point, self.inside)
        if moved is not None:
            self._keep(moved)

    @cached_property
    def _no_room(self) -> bool:
        """Whether every set is a point: there is nothing to move."""
        ends = self.problem.constraints.ends
        return ends is not None and bool(np.all((ends[0] == ends[1])[self.problem.counts]))

    def _towards(self, point: Evaluated, inside: Evaluated) -> Evaluated | None:
        """(1 - t) w + t w0 with nearly the smallest t for which it works."""
        counts = self.problem.counts
        for t in np.geomspace(UNIT_ROUNDOFF, 1.0, 50):
            Z = (1.0 - t) * point.scores.Z + t * inside.scores.Z
            error = point.scores.error + inside.scores.error + EVALUATION * np.abs(Z).max(axis=1)
            if np.all(self.problem.constraints.contains_ball(Z, error)[counts]):
                moved = self._point(
                    (1.0 - t) * np.asarray(point.w) + t * np.asarray(inside.w),
                    (1.0 - t) * np.asarray(point.b) + t * np.asarray(inside.b),
                )
                if np.isfinite(moved.upper):
                    return moved
        return None

    def _search(self, room: float) -> Evaluated | None:
        """A point of smaller sets, by a solver that raises their dual bound."""
        problem = self.problem
        easier = gentler(problem.penalty)[0]  # any point inside will do
        smaller = problem.replace(
            constraints=problem.constraints.shrunk(room), penalty=easier, on_infeasible="least_violation"
        )
        counts = problem.counts
        zeros = np.zeros(problem.shapes[2])
        most = TUNING.passes * 2 ** (len(TUNING.room) - len(self.rooms) - 1)
        for stated, method in dual_solvers(smaller, may_copy=False):
            for candidate, passes in offers(
                stated, method, np.zeros(problem.shapes[0]), problem.first_intercept(), zeros, self.late
            ):
                point = self._point(candidate.w, candidate.b)
                room_left = problem.constraints.contains_ball(point.scores.Z, 2.0 * point.scores.error)
                if np.isfinite(point.upper) and np.all(room_left[counts]):
                    far = smaller.constraints.distance_upper(point.scores.Z, point.scores.error)[counts].max(
                        initial=0.0
                    )
                    if far <= 0.5 * room * self._width or passes >= most // 2:
                        return point
                if self.late():
                    return None
                if passes >= most:
                    break
        return None

    @cached_property
    def _width(self) -> float:
        """About how wide the narrowest set is."""
        constraints = self.problem.constraints
        Z = np.zeros((self.problem.n_samples, self.problem.outputs))
        near, inner = constraints.project(Z), constraints.shrunk(0.5).project(Z)
        apart = np.linalg.norm(near - inner, axis=1)[self.problem.counts]
        return 2.0 * float(apart[apart > 0.0].min(initial=1.0))

    # What is proven -----------------------------------------------------------------------------------------------

    @property
    def strong_convexity(self) -> float:
        """None where constraints contradict each other."""
        return 0.0 if self.contradiction is not None else super().strong_convexity

    def reached(self, tol: float, atol: float = 0.0) -> bool:
        """Where constraints contradict each other, also whether the last model was no better: violations are flat."""
        if self.contradiction is not None:
            return super().reached(tol, atol) and self.steady
        return super().reached(tol, atol) or is_nothing(self.primal.value, self.gap, self.at_zero)

    def exhausted(self, tol: float, atol: float = 0.0) -> bool:
        """Not before there is a feasible point; with equations, not before they hold up to rounding."""
        if self.point is None or not np.isfinite(self.primal.upper):
            return False
        missed = self.point.violation > float(self.point.scores.error.max())
        if self.contradiction is None and self.equations.count and missed:
            return False
        return super().exhausted(tol, atol)

    def certificate(self, tol: float, atol: float = 0.0) -> Certificate:
        """What has been proven about the best model."""
        point, problem, made = self.point, self.problem, super().certificate(tol, atol)
        state = "contradiction" if self.contradiction is not None else ""
        if point is None:
            return made
        distance = np.inf
        if not np.isfinite(self.primal.upper):  # no feasible point, but a bound on all of them
            made = replace(made, rounding=self.best.value - self.best.lower)
        if not state and np.isfinite(point.upper):
            state, distance = "exact" if point.exact else "nearby", point.distance
        values = vars(made) | {"violation": point.violation, "feasible": state, "distance": distance}
        if state == "nearby":  # the radius is that of the feasible point
            longer = distance * max(1.0, problem.X.shape[1] ** (1.0 / problem.penalty.norm - 0.5))
            values["weights_radius"] = (made.weights_radius + longer) * (1.0 + EVALUATION)
        return InterpolationCertificate(**values)


judge_of.register(Interpolation, InterpolationJudge)
