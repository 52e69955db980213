"""Newton's method with conjugate gradients for smooth losses of k scores and a quadratic penalty.

At scores Z, with J_i the Hessian of the loss of sample i, the Hessian of P maps a direction (D, c) with scores
U = X D' + c to (1/W) sum_i s_i J_i u_i x_i' + lam D: two passes over the data for any k and d. The J_i have the vector
of ones in their null space. With tr(J_i)/(k - 1) (I - 11'/k) in place of J_i, the Hessian is (I - 11'/k) (x) G + lam,
G = (1/W) sum_i s_i tr(J_i)/(k - 1) x_i x_i'. For few features this is factorised as the preconditioner; for few
weights the Hessian itself is, H_(ja)(lb) = (1/W) sum_i s_i J_ijl x_ia x_ib, one product of matrices for all of it. A
constant added to all intercepts changes nothing: 11' is added to their block.

At alpha_i = -phi'(z_i) the loss has no part in the gap, which is |G|^2 / (2 lam) for the gradient G = lam B - v(alpha).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.data import limits
from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem, Trait
from fenchel.problem.losses.multiclass import probabilities
from fenchel.steps.base import Candidate, Overflow, Progress, Solver, Start
from fenchel.steps.dual_ascent.multiclass import BlockSDCA
from fenchel.steps.linear_algebra import newton_system
from fenchel.steps.linear_algebra.augmented import gram_of
from fenchel.steps.linear_algebra.conjugate_gradients import Operator, conjugate_gradients
from fenchel.steps.linear_algebra.newton_system import sample_size
from fenchel.steps.linear_algebra.safeguards import backtracked
from fenchel.steps.newton import state as single_score


@dataclass(frozen=True)
class MulticlassNewtonTuning:
    """`python -m benchmarks.tuning steps.newton.multiclass first_epochs 2 10 --rows "^multiclass softmax 12000"`: 1.01
    and 1.18; `epochs 2 1e9 --rows "^auto softmax"`: 1.00 and 26.
    """

    epochs: float = 20.0  # epochs of dual ascent per factor e of the gap, above which Newton steps cost less
    first_epochs: int = 5  # epochs of dual ascent before the first Newton step


TUNING = MulticlassNewtonTuning()


@dataclass(frozen=True)
class MulticlassNewtonState:
    """A model as a k x (d + 1) matrix, intercepts in the last column, its scores, P and the gradient there; `cold`
    before dual ascent.
    """

    problem: MulticlassProblem
    model: Vector
    Z: Vector
    value: float
    gradient: Vector
    cold: bool = False
    steps: int = 0

    @property
    def gap(self) -> float:
        """That of the multipliers -phi'(z); an unpenalised intercept adds |b| times their mean."""
        G, b = self.gradient[:, :-1], self.gradient[:, -1]
        free = float(np.abs(b) @ (1.0 + np.abs(self.model[:, -1]))) if self.problem.intercept else 0.0
        return free + float(np.sum(G * G)) / (2.0 * self.problem.penalty.strong_convexity)


@dataclass(frozen=True)
class MatrixNewton(Solver[MulticlassNewtonState]):
    """Newton steps with a line search; conjugate gradients stop early while the gradient is large.

    A cold start on many rows begins with a few epochs of dual ascent, unless X is stored by columns.
    """

    name = "newton"
    summary = "few weights: Newton steps for all classes at once"
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.QUADRATIC_PENALTY})
    steps_per_check = 400
    passes_per_step = 20

    @staticmethod
    def suits(problem: MulticlassProblem, tol: float) -> bool:
        """Whether "auto" takes it: for small d, if dual ascent needs many epochs, 1 + beta |x|^2 / (lam n) per factor e
        of the gap.
        """
        n, d = problem.shape
        if n <= newton_system.TUNING.few_rows and d <= single_score.TUNING.narrow:
            return True
        size = float(problem.weights @ problem.products.row_norms**2) / problem.total_weight
        epochs = problem.loss.smoothness * size / (problem.penalty.strong_convexity * n)
        return limits.may_factor(d) and epochs > TUNING.epochs

    def begin(self, problem: MulticlassProblem, start: Start, seed: int) -> MulticlassNewtonState:
        cold = problem.design.by_rows and problem.shape[0] > newton_system.TUNING.few_rows
        cold = cold and not (np.any(start.w) or np.any(start.alpha))
        return _state(problem, start.w, start.b, cold)

    def step(self, state: MulticlassNewtonState) -> MulticlassNewtonState:
        problem = state.problem
        if state.cold:
            return _after_dual_ascent(problem)
        value, gradient = state.value, state.gradient
        direction, U = _newton_direction(state, gradient, value)
        slope = float(np.sum(gradient * direction))

        after = value

        def falls(t: float) -> bool:
            nonlocal after
            after = _objective(problem, state.model + t * direction, state.Z + t * U)
            return after <= value + 1e-4 * t * slope + 1e-15 * abs(value)

        t = backtracked(falls)
        if t == 0.0:
            raise Overflow("the line search fails in double precision; rescale the features or lam")
        model = state.model + t * direction
        return _state(problem, model[:, :-1], model[:, -1], steps=state.steps + 1, value=after)

    def progress(self, state: MulticlassNewtonState) -> Progress:
        """P and the gap of the multipliers -phi'(z)."""
        return Progress(state.value, state.gap, float(self.passes_per_step * state.steps))

    def candidates(self, state: MulticlassNewtonState) -> Sequence[Candidate]:
        return [Candidate(state.model[:, :-1].copy(), state.model[:, -1].copy())]


def _state(
    problem: MulticlassProblem, B: Vector, b: Vector, cold: bool = False, steps: int = 0, value: float | None = None
) -> MulticlassNewtonState:
    model = np.column_stack([B, b if problem.intercept else np.zeros(problem.n_classes)])
    Z = problem.scores(B, model[:, -1])
    gradient = _adjoint(problem, problem.loss.gradient(Z, problem.y)) + _ridge(problem, model)
    value = _objective(problem, model, Z) if value is None else value
    return MulticlassNewtonState(problem, model, Z, value, gradient, cold, steps)


def _after_dual_ascent(problem: MulticlassProblem) -> MulticlassNewtonState:
    """The model after a few epochs of dual ascent from zero."""
    (n, d), k = problem.shape, problem.n_classes
    method = BlockSDCA()
    state = method.begin(problem, Start(np.zeros((k, d)), np.zeros(k), np.zeros((n, k))), seed=0)
    for _ in range(TUNING.first_epochs):
        state = method.step(state)
    model = method.candidates(state)[0]
    return _state(problem, model.w, model.b)


def _newton_direction(state: MulticlassNewtonState, gradient: Vector, value: float) -> tuple[Vector, Vector]:
    """H D = -gradient by preconditioned conjugate gradients, and the scores of D.

    They end at r'M r <= g'M g min(0.01, sqrt(g'M g / |P|)), so that Newton's method converges superlinearly.
    """
    problem = state.problem
    P = probabilities(problem.loss.off_class(state.Z, problem.y), problem.y)
    exact = _solved(problem, P, -gradient)
    if exact is not None:
        return exact, problem.scores(exact[:, :-1], exact[:, -1])
    precondition = preconditioner(problem, problem.loss.curvature(P))

    def hessian(D: Vector) -> Vector:
        U = problem.scores(D[:, :-1], D[:, -1])
        return _adjoint(problem, problem.loss.hessian_product(P, U)) + _ridge(problem, D)

    def goal(first: float) -> float:
        return first * min(0.01, float(np.sqrt(first / (1e-300 + abs(value)))))

    D, _, _ = conjugate_gradients(hessian, precondition, -gradient, energy_goal=goal)
    return D, problem.scores(D[:, :-1], D[:, -1])


def _solved(problem: MulticlassProblem, P: Vector, R: Vector) -> Vector | None:
    """H D = R by a factor of H; None for many weights, or if rounding has left it indefinite."""
    (n, d), k, size = problem.shape, problem.n_classes, R.size
    # hardly ever by n, so that weight 2 is equivalent to a repeated row
    if size**3 > single_score.TUNING.call or n * (d + 1) ** 2 > limits.TUNING.block:
        return None
    X = np.column_stack([problem.X.rows(np.arange(n)), np.full(n, float(problem.intercept))])
    identity = np.eye(k)
    J = problem.loss.hessian_product(P[:, None, :].repeat(k, axis=1).reshape(-1, k), np.tile(identity, (n, 1)))
    J = J.reshape(n, k * k) * (problem.weights / problem.total_weight)[:, None]
    squares = (X[:, :, None] * X[:, None, :]).reshape(n, -1)
    H = np.ascontiguousarray((J.T @ squares).reshape(k, k, d + 1, d + 1).transpose(0, 2, 1, 3)).reshape(size, size)
    H[np.arange(size), np.arange(size)] += np.tile(np.append(np.full(d, problem.penalty.strong_convexity), 0.0), k)
    last = np.arange(d, size, d + 1)
    free = float(np.mean(np.diagonal(H)[last])) if problem.intercept else 1.0
    H[np.ix_(last, last)] += free if problem.intercept else free * identity
    try:
        D = np.asarray(cho_solve(cho_factor(H, lower=True), R.ravel())).reshape(R.shape)
    except (LinAlgError, ValueError):
        return None
    return D if np.all(np.isfinite(D)) else None


def preconditioner(problem: MulticlassProblem, trace: Vector) -> Operator:
    """The inverse of (I - 11'/k) (x) G + lam for few features, of its diagonal for many; G as above."""
    lam, k, d = problem.penalty.strong_convexity, problem.n_classes, problem.shape[1]
    s = problem.weights / problem.total_weight * trace / (k - 1.0)
    own = 1.0 if problem.intercept else 0.0
    free = 1e-12 + 1e-6 * float(s.sum()) if problem.intercept else 1.0
    ridge = np.append(np.full(d, lam), free)
    if not limits.may_factor(d):
        diagonal = np.append(problem.design.column_norms(2.0, s) ** 2, own * float(s.sum())) + ridge
        return lambda R: R / diagonal
    kept = np.flatnonzero(s > 0.0)
    most = sample_size(problem.design, d + 1)
    if len(kept) > most:  # a sample is enough for a preconditioner
        drawn = np.random.default_rng(0).choice(kept, most, replace=False)
        s, kept = s * (float(s[kept].sum()) / float(s[drawn].sum())), np.sort(drawn)
    G = _gram(problem, kept, s[kept], own)
    try:
        factor = cho_factor(G + np.diag(ridge + 1e-14 * np.trace(G)), lower=True)
    except (LinAlgError, ValueError):  # overflow
        return lambda R: R / ridge

    def inverse(R: Vector) -> Vector:
        if not np.all(np.isfinite(R)):
            raise Overflow("the gradient overflows; rescale the features or lam")
        mean = np.broadcast_to(R.sum(axis=0) / k, R.shape).copy()
        solved = cho_solve(factor, (R - mean).T).T
        mean[:, -1] = 0.0  # a constant added to b changes nothing
        return np.asarray(solved + mean / ridge)

    return inverse


def _gram(problem: MulticlassProblem, rows: NDArray[np.int64], s: Vector, own: float) -> Vector:
    """sum_i s_i (x_i, own) (x_i, own)' over some rows: its lower triangle."""
    design, d = problem.design, problem.shape[1]
    if design.is_sparse and not design.by_rows:
        design = design.stored_by_rows()
    stored, total = design.n_features, float(s.sum())
    weights = np.zeros(problem.shape[0])
    weights[rows] = s
    sums = np.asarray(design.matrix.T @ weights)
    G = np.zeros((d + 1, d + 1), order="F")
    G[:stored, :stored] = gram_of(design, rows, s)
    for place, value in ((stored, design.constant), (d, own)):  # without a constant column stored == d
        G[place, :stored], G[place, place] = value * sums, value * value * total
    if stored < d:
        G[d, stored] = own * design.constant * total
    return G


def _adjoint(problem: MulticlassProblem, A: Vector) -> Vector:
    """(1/W) sum_i s_i a_i (x_i, 1)', the last column only with intercepts."""
    sums = problem.weights @ A / problem.total_weight if problem.intercept else np.zeros(A.shape[1])
    return np.column_stack([problem.dual_vector(A), sums])


def _ridge(problem: MulticlassProblem, model: Vector) -> Vector:
    """The gradient of R (or its Hessian times a direction); 0 for intercepts."""
    return np.column_stack([problem.penalty.strong_convexity * model[:, :-1], np.zeros(len(model))])


def _objective(problem: MulticlassProblem, model: Vector, Z: Vector) -> float:
    return problem.mean(problem.loss.value(Z, problem.y)) + problem.penalty.value(model[:, :-1].ravel())
