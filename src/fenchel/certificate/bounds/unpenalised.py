"""Unpenalised directions: the intercept, weights that are not penalised, and the null space of a seminorm.

Each is an equation that a dual point must satisfy exactly: sum_i s_i alpha_i f_i = 0, with f_i = 1 for the intercept
and f_i = x_i.n for a null vector n. In floating point it holds up to an error, which is bounded here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from fenchel.certificate.bounds.free_weights import orthogonal_columns
from fenchel.certificate.bounds.rounding import UP, DualPoint
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.problem.intercept import best_shift
from fenchel.problem.penalties.base import EVALUATION

#: A correction for free weights by more than this part of the way to the ends of the domain proves nothing: its cost
#: counts as rounding, and rounding ends a run.
LARGEST_MOVE = 0.01
#: Multipliers below this part of the largest are tried as 0: the square root of the unit roundoff.
NEARLY_ZERO = 2.0**-26


@dataclass(frozen=True)
class FreeDirections:
    """The matrix F (n x k) of unpenalised directions, and a bound on the error of its entries.

    `zero_only` where no other dual point can be shown to satisfy their equations; `many` where F has a column for each
    unpenalised weight.
    """

    F: Vector
    error: Vector
    zero_only: bool = False
    many: bool = False

    @classmethod
    def of(cls, problem: Problem) -> FreeDirections:
        """Ones for the intercept, X n for each basis vector n of the penalty's null space."""
        n, d = problem.shape
        free = problem.penalty.free_weights(d)
        if free is not None and free.any():
            found = orthogonal_columns(problem, free)
            if found is None:
                return cls(np.zeros((n, 0)), np.zeros((n, 0)), zero_only=True)
            return cls(*found, many=True)
        columns = [np.ones(n)] if problem.intercept else []
        errors = [np.zeros(n)] if problem.intercept else []
        space = problem.penalty.null_space(d)
        if space is None:
            F = np.ones((n, int(problem.intercept)))
            return cls(F, np.zeros_like(F))
        if space is not None:
            off = space.error * problem.X.row_norms(2.0) if space.error else np.zeros(n)
            for basis in space.basis.T:
                value, error = problem.X.matvec_tight(basis)
                if _is_implied(value, error + off, problem.intercept):
                    continue
                columns.append(value)
                errors.append(error + off)
        if not columns:
            return cls(np.zeros((n, 0)), np.zeros((n, 0)))
        return cls(np.column_stack(columns), np.column_stack(errors))

    def best(self, problem: Problem, z: Vector) -> Vector:
        """z + F c with the c that minimises the mean loss."""
        k = self.F.shape[1]
        if k == 0 or self.many:  # a move of alpha does as much, and costs less
            return z
        if k == 1:
            f = self.F[:, 0]
            return z + f * best_shift(problem.loss, z, problem.y, problem.weights, f)

        def objective(c: Vector) -> tuple[float, Vector]:
            at = z + self.F @ c
            slope = problem.weights * problem.loss.derivative(at, problem.y)
            return problem.mean(problem.loss.value(at, problem.y)), self.F.T @ slope / problem.total_weight

        with np.errstate(over="ignore", invalid="ignore"):
            c = minimize(objective, np.zeros(k), jac=True, method="BFGS", options={"gtol": 1e-14, "maxiter": 500}).x
        return z + self.F @ c if np.all(np.isfinite(c)) else z

    def satisfy(self, problem: Problem, point: DualPoint) -> DualPoint:
        """A dual point near the given one that satisfies the equations; zero if none is found."""
        alpha = problem.in_domain(point.alpha)
        k = self.F.shape[1]
        if self.zero_only:
            return DualPoint(np.zeros_like(alpha), how="zero")
        if k == 0:
            return DualPoint(alpha, how=point.how)
        found = self._balance(problem, alpha, point.how) if k == 1 else self._correct(problem, alpha, point.how)
        if found is None and self.many:
            found = self._of_few(problem, alpha, point.how)
        return DualPoint(np.zeros_like(alpha), how="zero") if found is None else found

    def _of_few(self, problem: Problem, alpha: Vector, how: str) -> DualPoint | None:
        """The same for the samples whose multipliers are not nearly zero, with 0 for the others.

        Where the weights of a logistic model go to infinity the multipliers of the samples that it separates go to 0,
        and the columns of the others may depend on each other.
        """
        few = np.abs(alpha) > NEARLY_ZERO * float(np.abs(alpha).max(initial=0.0))
        if not np.any(~few & (problem.weights > 0.0)):
            return None
        part = problem.replace(weights=np.where(few, problem.weights, 0.0))
        if not np.any(part.weights):
            return None
        return FreeDirections.of(part).satisfy(part, DualPoint(np.where(few, alpha, 0.0), how=how))

    def _balance(self, problem: Problem, alpha: Vector, how: str) -> DualPoint | None:
        """One equation: scale the positive or the negative terms.

        Let A and B be the sums of the positive and of the negative |s_i alpha_i f_i|. Multiplying the positive terms'
        alphas by B / A (if A > B) keeps them in their domain, which is convex and contains 0, and makes the sum zero up
        to the relative error of A and B; shrinking one side by that error as well makes it exactly zero.
        """
        f, error = self.F[:, 0], self.error[:, 0]
        term = problem.weights * alpha * f
        up, down = float(term[term > 0].sum()), float(-term[term < 0].sum())
        if min(up, down) <= 0.0 or not np.isfinite(up + down):
            return None
        factor = min(up, down) / max(up, down)
        alpha = np.where((term > 0) if up > down else (term < 0), factor * alpha, alpha)
        error_sum = float((problem.weights * np.abs(alpha) * error).sum()) * UP
        shrink = 2.0 * EVALUATION + 4.0 * error_sum / min(up, down)
        return DualPoint(alpha, shrink=shrink, how=how) if shrink < 0.5 else None

    def _correct(self, problem: Problem, alpha: Vector, how: str) -> DualPoint | None:
        """Several equations: move the alphas inside their domains, each in proportion to its slack.

        The move is slack_i f_i.mu with mu solving (F' S slack F) mu = -residual. The residual left by rounding needs
        one more such move, which is not made but bounded: |mu| <= |residual| / (smallest eigenvalue).
        """
        best, cost = None, np.inf
        for shrink in (0.0, 1e-8, 3e-7, 1e-5, 1e-3, 0.03, 0.3):
            if cost <= 3.0 * shrink:
                break
            trial = (1.0 - shrink) * alpha
            for _ in range(4):
                trial = move_inside(problem, trial, self.F, np.zeros(self.F.shape[1]))
            point = self._with_error(problem, trial, how)
            if point is not None and shrink + point.fraction < cost:
                best, cost = point, shrink + point.fraction
        return None if self.many and best is not None and best.fraction > LARGEST_MOVE else best

    def _with_error(self, problem: Problem, alpha: Vector, how: str) -> DualPoint | None:
        s, slack = problem.weights, slack_inside(problem, alpha)
        n = len(alpha)
        depth = (n + 4) * UNIT_ROUNDOFF
        residual = np.abs(self.F.T @ (s * alpha)) + (depth * np.abs(self.F) + self.error).T @ (s * np.abs(alpha))
        matrix = (self.F * (s * slack)[:, None]).T @ self.F
        if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(residual))):
            return None
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        length, error = np.linalg.norm(self.F, axis=1), np.linalg.norm(self.error, axis=1)
        noise = 4.0 * (depth + 64 * UNIT_ROUNDOFF) * float(np.trace(matrix))
        noise += 1.01 * float((s * slack * error * (2.0 * length + error)).sum())
        if not smallest > 2.0 * noise:
            return None
        mu = float(np.linalg.norm(residual)) / (smallest - noise)
        part = mu * np.linalg.norm(np.abs(self.F) + self.error, axis=1) * UP
        if not np.all(part[slack > 0] <= 0.5):
            return None
        return DualPoint(alpha, moved=part * slack, fraction=float(part[slack > 0].max(initial=0.0)), how=how)


def _is_implied(value: Vector, error: Vector, intercept: bool) -> bool:
    """Whether an equation is redundant: its direction is exactly zero, or a multiple of the intercept's."""
    return not error.any() and (not value.any() or (intercept and bool(np.all(value == value[0]))))


def slack_inside(problem: Problem, alpha: Vector) -> Vector:
    """min(distance of alpha_i to the ends of its domain, 1 + |alpha_i|); 0 for samples of weight zero."""
    low, high = problem.domain
    slack = np.minimum(np.minimum(alpha - low, high - alpha), 1.0 + np.abs(alpha))
    return np.where(problem.weights > 0, np.maximum(slack, 0.0), 0.0)


def move_inside(problem: Problem, alpha: Vector, F: Vector, target: Vector) -> Vector:
    """alpha moved towards F' S alpha = target: by slack_i f_i.mu, with (F' S slack F) mu = target - F' S alpha."""
    slack = slack_inside(problem, alpha)
    weighted = F * (problem.weights * slack)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        matrix, residual = weighted.T @ F, target - F.T @ (problem.weights * alpha)
        if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(residual))):
            return alpha
        mu = np.linalg.lstsq(matrix, residual, rcond=None)[0]
        return problem.in_domain(alpha + slack * np.clip(np.nan_to_num(F @ mu), -0.9, 0.9))
