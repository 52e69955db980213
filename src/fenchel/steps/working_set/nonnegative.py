"""Newton steps for weights that must not be negative.

P is minimised over a working set of columns: those whose weights are positive, those whose gradient says that they
should be, and the next ones. With H = X'diag(p h)X + l2, the intercept eliminated, and the gradient g at w, a step
minimises g.(u - w) + (u - w)'H(u - w)/2 over u >= 0: with a Cholesky factor H = L L' that is the least squares problem
min |L'u - L^-1 (H w - g)| over u >= 0, which Lawson and Hanson's method solves exactly (1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import nnls

from fenchel._core import CompiledLoss
from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem import Problem, Trait
from fenchel.problem.intercept import best_shift
from fenchel.problem.penalties import Penalty
from fenchel.problem.penalties.blocks import Blocks
from fenchel.steps.base import Candidate, GaveUp, Goal, Model, Overflow, Solver, Start
from fenchel.steps.linear_algebra.safeguards import ROUNDING, Damping, Patience, backtracked
from fenchel.steps.measurements import AtSamples, Measurements, Sizes, is_moderate
from fenchel.steps.working_set.selection import TUNING
from fenchel.steps.working_set.sparse_path import TUNING as PATH


@dataclass(frozen=True, eq=False)
class Ahead:
    """Models of several penalties, a row for each: weights, intercepts, mean losses, multipliers, v of all columns."""

    penalties: Sequence[Penalty]
    w: Matrix
    b: Vector
    mean_loss: Vector
    a: Matrix
    v: Matrix


@dataclass
class NonNegativeState:
    """Weights and intercept; the columns of the working set and their entries; X w, multipliers, and v = X'(p a)."""

    problem: Problem
    loss: CompiledLoss
    w: Vector
    b: float
    columns: Indices
    X: Matrix
    product: Vector
    v: Vector
    a: Vector
    h: Vector
    mean_loss: float
    sizes: Sizes
    curved: tuple[Matrix, Vector, float] | None = None  # X'diag(p h)X, the means, and the sum of p h, if they stay
    steps: int = 0
    damping: Damping = field(default_factory=lambda: Damping(ROUNDING, ROUNDING))
    patience: Patience = field(default_factory=Patience)
    least: float = np.inf
    goal: Goal = field(default_factory=lambda: Goal((), 0.0, 0.0, np.inf))
    ahead: Ahead | None = None  # models of the present penalty and of those that follow

    @property
    def primal(self) -> float:
        """P at the present weights."""
        return self.mean_loss + self.problem.penalty.value(self.w)

    def curvature(self) -> tuple[Matrix, Vector, float]:
        """X'diag(c)X of the working set, with the means of its columns taken off, these means, and the sum of c."""
        if self.curved is not None:
            return self.curved
        loss = self.problem.loss
        c = self.problem.weights * np.maximum(self.h, self.damping.value * loss.smoothness) / self.problem.total_weight
        total = float(c.sum())
        mean = (c @ self.X) / total if self.problem.intercept else np.zeros(self.X.shape[1])
        centred = self.X - mean
        found = centred.T @ (centred * c[:, None]), mean, total
        if loss.quadratic:
            self.curved = found
        return found


@dataclass(frozen=True)
class NonNegativeNewton(Solver[NonNegativeState]):
    """One Newton step on the working set, with a line search, and then all columns."""

    name = "nonnegative_newton"
    summary = "weights that are not negative: Newton steps on a working set of columns"
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.NONNEGATIVE_PENALTY})
    steps_per_check = 1
    passes_per_step = 3
    any_storage = True
    screens = True

    def obstacle(self, problem: Problem) -> str | None:
        return "has no penalised intercept" if problem.design.constant else None

    def begin(self, problem: Problem, start: Start, seed: int) -> NonNegativeState:
        loss, (n, d) = problem.loss.kernel(), problem.shape
        assert loss is not None
        w, none = np.maximum(start.w, 0.0), np.zeros(n)
        columns = np.arange(d) if d <= TUNING.always else np.flatnonzero(w)
        product = problem.X.matvec(w) if w.any() else none
        X = problem.design.dense_columns(columns.astype(np.int64))
        b = start.b if problem.intercept else 0.0
        sizes = Sizes.of(problem)
        return _evaluated(
            NonNegativeState(problem, loss, w, b, columns, X, product, np.zeros(d), none, none, np.inf, sizes)
        )

    def retarget(self, state: NonNegativeState, problem: Problem) -> NonNegativeState:
        """The same weights, columns and scores; those of the new penalty, or of the last one, if they are known."""
        state = replace(state, problem=problem, patience=Patience(), least=np.inf, steps=0)
        if state.ahead is None:
            return state
        known, state.ahead = state.ahead, None
        k = next((k for k, penalty in enumerate(known.penalties) if penalty == problem.penalty), -1)
        w, b = known.w[k], float(known.b[k])
        product = problem.y - known.a[k] - b
        return replace(
            state, w=w, b=b, product=product, a=known.a[k], v=known.v[k], mean_loss=float(known.mean_loss[k])
        )

    def aim(self, state: NonNegativeState, goal: Goal) -> None:
        state.goal = goal

    def step(self, state: NonNegativeState) -> NonNegativeState:
        problem, (l1, l2) = state.problem, _parts(state.problem.penalty)
        if state.ahead is None and not state.steps and _is_small(state):
            return _several(state)
        state.ahead = None
        state = replace(_selected(state, l1), steps=state.steps + 1)
        matrix, mean, total = state.curvature()
        w = state.w[state.columns]
        if not len(matrix):
            return state
        missing = float(problem.weights @ state.a) / problem.total_weight if problem.intercept else 0.0
        gradient = l1 + l2 * w - state.v[state.columns] + missing * mean
        u = _minimiser(matrix, l2, w, gradient)
        shift = missing / total - float(mean @ (u - w)) if problem.intercept else 0.0
        return _moved(state, u - w, shift)

    def candidates(self, state: NonNegativeState) -> list[Candidate]:
        if state.ahead is not None:
            return [Candidate(state.ahead.w[0].copy(), float(state.ahead.b[0]))]
        return [Candidate(state.w, state.b)]

    def measured(self, state: NonNegativeState) -> Measurements | None:
        """What is known of the present model; of the dual vector its positive part, for the constraint is one-sided."""
        if state.ahead is not None:
            return _measured_ahead(state, state.ahead)
        l1, l2 = _parts(state.problem.penalty)
        if not (state.sizes.are_moderate and is_moderate(l1, l2)):
            return None
        alive, d = np.flatnonzero(state.w), state.problem.shape[1]
        model = Model(state.w[alive], state.b, alive, d)
        at = AtSamples(np.array([state.mean_loss]), state.a[None, :])
        blocks = [Blocks.single(d, l1, l2)]
        return Measurements.of(state.sizes, blocks, [model], at, state.steps, np.maximum(state.v, 0.0))

    def learn(self, state: NonNegativeState, gap: float) -> None:
        self._learn(state, gap)

    def finished(self, state: NonNegativeState) -> bool:
        return state.patience.is_over

    def observe(self, state: NonNegativeState, z: Vector, primal: float, gap: float) -> None:
        self._learn(state, gap)

    @staticmethod
    def _learn(state: NonNegativeState, gap: float) -> None:
        """A fall of P that is rounding is no progress."""
        falls = state.primal < state.least - 4.0 * UNIT_ROUNDOFF * abs(state.primal)
        state.least = min(state.least, state.primal)
        state.patience.learn(gap, falls)


def _parts(penalty: Penalty) -> tuple[float, float]:
    """The factors of sum_j w_j and of |w|_2^2 / 2."""
    parts = penalty.nonnegative
    assert parts is not None
    return parts


def _minimiser(matrix: Matrix, l2: float, w: Vector, gradient: Vector) -> Vector:
    """The minimum over u >= 0 of the model with this Hessian, beside the ridge, and this gradient at w."""
    k, H = len(matrix), matrix.copy()
    H[np.diag_indices(k)] += l2
    H[np.diag_indices(k)] += (ROUNDING * float(np.trace(H)) / k) or 1e-300
    try:
        L = cholesky(H, lower=True)
        return np.asarray(nnls(L.T, solve_triangular(L, H @ w - gradient, lower=True))[0])
    except (LinAlgError, ValueError, RuntimeError) as error:
        raise GaveUp("least squares over weights that are not negative cannot be solved") from error


def _is_small(state: NonNegativeState) -> bool:
    """Whether the models of the penalties to come are found at once: least squares on few columns."""
    return (
        state.problem.loss.quadratic
        and len(state.goal.penalties) > 1
        and len(state.columns) == state.problem.shape[1] > 0
        and state.sizes.are_moderate
        and all(is_moderate(*_parts(penalty)) for penalty in state.goal.penalties)
    )


def _several(state: NonNegativeState) -> NonNegativeState:
    """The models of some penalties: one Gram matrix, one product with X and one with X' for all of them."""
    problem, penalties = state.problem, state.goal.penalties[: PATH.lams_per_step]
    p, (matrix, mean, _) = problem.weights / problem.total_weight, state.curvature()
    middle = float(p @ problem.y) if problem.intercept else 0.0
    slopes = state.X.T @ (p * (problem.y - middle)) - (mean * float(p @ (problem.y - middle)))
    W, w = np.empty((len(penalties), problem.shape[1])), np.zeros(problem.shape[1])
    for k, penalty in enumerate(penalties):
        l1, l2 = _parts(penalty)
        w = W[k] = _minimiser(matrix, l2, w, matrix @ w + l1 + l2 * w - slopes)
    b = middle - W @ mean
    Z = W @ state.X.T + b[:, None]
    a = problem.y - Z
    if problem.intercept:  # what rounding leaves
        left = a @ p
        b, a = b + left, a - left[:, None]
    loss = 0.5 * np.square(a) @ p
    return replace(state, ahead=Ahead(penalties, W, b, loss, a, (a * p) @ state.X), steps=1)


def _measured_ahead(state: NonNegativeState, known: Ahead) -> Measurements:
    """What is known of the models of several penalties."""
    d = state.problem.shape[1]
    models = [Model(w, b, None, d) for w, b in zip(known.w, known.b, strict=True)]
    blocks = [Blocks.single(d, *_parts(penalty)) for penalty in known.penalties]
    at = AtSamples(known.mean_loss, known.a)
    return Measurements.of(state.sizes, blocks, models, at, state.steps, *np.maximum(known.v, 0.0))


def _evaluated(state: NonNegativeState) -> NonNegativeState:
    """The best intercept for the scores; multipliers, second derivatives, P, and v of all columns."""
    problem, b = state.problem, state.b
    if problem.intercept:
        b = b + best_shift(problem.loss, state.product + b, problem.y, problem.weights)
    z = state.product + b
    a, h, total, _ = state.loss.respond(z, problem.y, problem.weights, z, 0.0)
    mean = total / problem.total_weight
    if not np.isfinite(mean + problem.penalty.value(state.w)):
        raise Overflow("the objective overflows; rescale the features or lam")
    return replace(state, b=b, a=a, h=h, mean_loss=mean, v=problem.dual_vector(a))


def _selected(state: NonNegativeState, l1: float) -> NonNegativeState:
    """The working set with the columns that are missing, and the next ones."""
    d = state.problem.shape[1]
    if len(state.columns) == d:
        return state
    score = state.v - l1  # the ridge has no slope at 0
    score[state.columns] = np.inf
    missing = int(np.count_nonzero(score > 0.0)) - len(state.columns)
    if missing <= 0:
        return state
    alive = state.w > 0.0
    score[state.columns] = np.where(alive[state.columns], np.inf, state.v[state.columns] - l1)
    size = int(TUNING.growth * np.count_nonzero(alive)) + min(missing, len(state.columns) + TUNING.first_size)
    size = min(max(size, TUNING.first_size), d)
    if not limits.may_factor(size):
        raise GaveUp("too many weights are positive for Newton steps")
    columns: Indices = np.sort(np.argpartition(-score, size - 1)[:size]).astype(np.int64)
    return replace(state, columns=columns, X=state.problem.design.dense_columns(columns), curved=None)


def _moved(state: NonNegativeState, move: Vector, shift: float) -> NonNegativeState:
    """As far towards the minimum of the model as P falls."""
    problem, change = state.problem, state.X @ move
    z, w = state.product + state.b, state.w.copy()

    def falls(t: float) -> bool:
        w[state.columns] = np.maximum(state.w[state.columns] + t * move, 0.0)
        at = z + t * (change + shift)
        total = state.loss.respond(at, problem.y, problem.weights, at, 0.0)[2]
        return bool(total / problem.total_weight + problem.penalty.value(w) <= state.primal * (1.0 + 1e-14))

    t = backtracked(falls)
    state.damping.learn(t == 1.0)
    if t == 0.0:
        return state
    return _evaluated(replace(state, w=w, b=state.b + t * shift, product=state.X @ w[state.columns]))
