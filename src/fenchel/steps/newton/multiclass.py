"""Newton's method with conjugate gradients for smooth losses of k scores and a quadratic penalty.

At scores Z, with J_i the Hessian of the loss of sample i, the Hessian of P maps a direction (D, c) with scores
U = X D' + c to (1/W) sum_i s_i J_i u_i x_i' + lam D: two passes over the data, whatever k and d. J_i maps onto what is
orthogonal to the ones; with its mean there in its place, the Hessian is (I - 11'/k) (x) G + lam,
G = (1/W) sum_i s_i tr(J_i)/(k - 1) x_i x_i', which for few features is factorised and preconditions the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fenchel.data.typing import Vector
from fenchel.problem import MulticlassProblem, Trait
from fenchel.problem.losses.multiclass import probabilities
from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.dual_ascent.multiclass import BlockSDCA
from fenchel.steps.linear_algebra.augmented import gram_of
from fenchel.steps.linear_algebra.curvature import DENSE_ROWS, FEW_ROWS, SPARSE_ROWS
from fenchel.steps.newton.newton import SMALL

#: The widest X whose d x d matrix is formed for the preconditioner.
FEW_FEATURES = 2000
#: Most steps of the conjugate gradients for one Newton step.
MOST_INNER = 300
#: Above this condition (passes of dual ascent) Newton steps are cheaper.
ILL_CONDITIONED = 20.0
#: Passes of dual ascent before the first Newton step.
WARM_UP = 5


@dataclass(frozen=True)
class NewtonState:
    """A model as k x (d + 1), its intercepts in the last column, with its scores."""

    problem: MulticlassProblem
    model: Vector
    Z: Vector
    cold: bool = False


@dataclass(frozen=True)
class MatrixNewton(Solver[NewtonState]):
    """One Newton step with a line search a step; the conjugate gradients stop early while the gradient is large.

    A cold start on many rows begins with a few passes of dual ascent, unless X is stored by columns.
    """

    name = "newton"
    requires = frozenset({Trait.SMOOTH_LOSS, Trait.COMPILED_LOSS, Trait.QUADRATIC_PENALTY})
    steps_per_check = 1
    passes_per_step = 20

    @staticmethod
    def suits(problem: MulticlassProblem, tol: float) -> bool:
        """Dual ascent needs about 1 + beta |x|^2 / (lam n) passes for every factor e; Newton steps need a small d."""
        n, d = problem.shape
        if n <= FEW_ROWS and d <= SMALL:
            return True
        size = float(problem.weights @ problem.products.row_norms**2) / problem.total_weight
        passes = problem.loss.smoothness * size / (problem.penalty.strong_convexity * n)
        return d <= FEW_FEATURES and passes > ILL_CONDITIONED

    def begin(self, problem: MulticlassProblem, start: Start, seed: int) -> NewtonState:
        cold = problem.design.by_rows and problem.shape[0] > FEW_ROWS
        cold = cold and not (np.any(start.w) or np.any(start.alpha))
        return _state(problem, start.w, start.b, cold)

    def step(self, state: NewtonState) -> NewtonState:
        problem = state.problem
        if state.cold:
            return _warmed_up(problem)
        value = _objective(problem, state.model, state.Z)
        gradient = _adjoint(problem, problem.loss.gradient(state.Z, problem.y)) + _ridge(problem, state.model)
        direction, U = _newton_direction(state, gradient, value)
        slope, size = float(np.sum(gradient * direction)), 1.0
        for _ in range(40):
            model = state.model + size * direction
            if _objective(problem, model, state.Z + size * U) <= value + 1e-4 * size * slope + 1e-15 * abs(value):
                return _state(problem, model[:, :-1], model[:, -1])
            size *= 0.5
        raise Overflow("no step along Newton's direction goes down in double precision; rescale the features or lam")

    def candidates(self, state: NewtonState) -> Sequence[Candidate]:
        return [Candidate(state.model[:, :-1].copy(), state.model[:, -1].copy())]


def _state(problem: MulticlassProblem, B: Vector, b: Vector, cold: bool = False) -> NewtonState:
    model = np.column_stack([B, b if problem.intercept else np.zeros(problem.n_classes)])
    return NewtonState(problem, model, problem.scores(B, model[:, -1]), cold)


def _warmed_up(problem: MulticlassProblem) -> NewtonState:
    """What a few passes of dual ascent from zero find."""
    (n, d), k = problem.shape, problem.n_classes
    method = BlockSDCA()
    state = method.begin(problem, Start(np.zeros((k, d)), np.zeros(k), np.zeros((n, k))), seed=0)
    for _ in range(WARM_UP):
        state = method.step(state)
    found = method.candidates(state)[0]
    return _state(problem, found.w, found.b)


def _newton_direction(state: NewtonState, gradient: Vector, value: float) -> tuple[Vector, Vector]:
    """H D = -gradient by preconditioned conjugate gradients, and the scores of D.

    The accuracy asked for grows as the gradient falls, so that the last steps converge superlinearly.
    """
    problem = state.problem
    P = probabilities(problem.loss.off_class(state.Z, problem.y), problem.y)
    precondition = preconditioner(problem, problem.loss.curvature(P))
    D, U = np.zeros_like(gradient), np.zeros_like(state.Z)
    r = -gradient
    y = precondition(r)
    step, step_scores, inner = y, problem.scores(y[:, :-1], y[:, -1]), float(np.sum(r * y))
    enough = inner * min(0.01, np.sqrt(inner / (1e-300 + abs(value)))) if inner > 0.0 else 0.0
    for _ in range(MOST_INNER):
        if not inner > enough:
            break
        image = _adjoint(problem, problem.loss.hessian_product(P, step_scores)) + _ridge(problem, step)
        curvature = float(np.sum(step * image))
        if not curvature > 0.0:
            break
        t = inner / curvature
        D, U, r = D + t * step, U + t * step_scores, r - t * image
        y = precondition(r)
        last, inner = inner, float(np.sum(r * y))
        step = y + inner / last * step
        step_scores = problem.scores(step[:, :-1], step[:, -1])
    return D, U


def preconditioner(problem: MulticlassProblem, trace: Vector) -> Callable[[Vector], Vector]:
    """The inverse of (I - 11'/k) (x) G + lam for few features, of its diagonal for many; G as above."""
    lam, k, d = problem.penalty.strong_convexity, problem.n_classes, problem.shape[1]
    s = problem.weights / problem.total_weight * trace / (k - 1.0)
    own = 1.0 if problem.intercept else 0.0
    free = 1e-12 + 1e-6 * float(s.sum()) if problem.intercept else 1.0
    ridge = np.append(np.full(d, lam), free)
    if d > FEW_FEATURES:
        diagonal = np.append(problem.design.column_norms(2.0, s) ** 2, own * float(s.sum())) + ridge
        return lambda R: R / diagonal
    kept = np.flatnonzero(s > 0.0)
    most = max(FEW_ROWS, (SPARSE_ROWS if problem.design.is_sparse else DENSE_ROWS) * (d + 1))
    if len(kept) > most:  # a sample does as well
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
    for place, value in ((stored, design.constant), (d, own)):  # the first is the second if there is no constant column
        G[place, :stored], G[place, place] = value * sums, value * value * total
    if stored < d:
        G[d, stored] = own * design.constant * total
    return G


def _adjoint(problem: MulticlassProblem, A: Vector) -> Vector:
    """(1/W) sum_i s_i a_i (x_i, 1)', the last column only with intercepts."""
    sums = problem.weights @ A / problem.total_weight if problem.intercept else np.zeros(A.shape[1])
    return np.column_stack([problem.dual_vector(A), sums])


def _ridge(problem: MulticlassProblem, model: Vector) -> Vector:
    """The penalty's gradient (or Hessian times a direction); intercepts have none."""
    return np.column_stack([problem.penalty.strong_convexity * model[:, :-1], np.zeros(len(model))])


def _objective(problem: MulticlassProblem, model: Vector, Z: Vector) -> float:
    return problem.mean(problem.loss.value(Z, problem.y)) + problem.penalty.value(model[:, :-1].ravel())
