"""Contradictory constraints: multipliers that prove that no model satisfies all of them (Farkas).

If sum_i p_i alpha_i x_i = 0 (and sum_i p_i alpha_i = 0 with an intercept), then sum_i p_i alpha_i.z_i = 0 for the
scores of every model. But if every z_i is in Y_i, that sum is at least S = -sum_i p_i sigma_i(-alpha_i). So S > 0
proves that there is none. Where the domain of R is bounded, S > sup { v.w : R(w) finite } is enough.

In floating point v is hardly ever exactly zero. So the proof is that an exact solution exists nearby: multipliers
(1 + t_i) alpha_i with v = 0 exactly and |t_i| so small that the signs and S > 0 stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.linalg import qr

from fenchel.certificate.bounds.rounding import UNDERFLOW
from fenchel.certificate.interpolation import rational
from fenchel.certificate.interpolation.bounds import (
    SMALL,
    DualValue,
    Multipliers,
    dual_bound,
    root_mean_square,
)
from fenchel.certificate.interpolation.equal_rows import cancelling
from fenchel.certificate.interpolation.equations import smallest_eigenvalue
from fenchel.certificate.interpolation.rational import is_small, null_vector, numerical_rank
from fenchel.data.limits import is_factorable
from fenchel.data.products import EVALUATION, gamma
from fenchel.data.typing import Indices, Matrix, MatrixLike, Vector
from fenchel.problem import Interpolation
from fenchel.problem.penalties import Penalty
from fenchel.problem.sets import ConvexSet
from fenchel.problem.vectors import p_norm, row_lengths


@dataclass(frozen=True)
class FarkasTuning:
    """Which multipliers a proof is tried with.

    `python -m benchmarks.tuning all certificate.interpolation.infeasible`: with half 0.97 of the time, with double
    0.96; all is proven.
    """

    negligible: tuple[float, ...] = (1e-7, 0.1)  # multipliers below these parts of the largest may be left out


TUNING = FarkasTuning()


@dataclass(frozen=True, eq=False)
class FarkasCertificate:
    """Multipliers that prove that no model satisfies all constraints.

    Attributes
    ----------
    multipliers : array of n, or n x k
        alpha; see the module for what they prove.
    excess : float
        S > 0 at an exact solution near the multipliers, for multipliers of weighted mean square 1: the root of the
        weighted mean squared violation of every model is at least this.
    how : str
        How the exact solution was found.
    """

    multipliers: Vector
    excess: float
    how: str
    penalty: Penalty
    intercept: bool
    weights: Vector

    def verify(self, X: MatrixLike, sets: ConvexSet, sample_weight: Vector | None = None) -> bool:
        """Whether the multipliers prove, in exact arithmetic, that these constraints contradict each other."""
        weights = self.weights if sample_weight is None else sample_weight
        problem = Interpolation(
            X, sets, self.penalty, intercept=self.intercept, sample_weight=weights, outputs=_outputs(self.multipliers)
        )
        found = dual_bound(problem, Multipliers.of(problem, self.multipliers, "given multipliers"))
        return prove(problem, found) is not None

    def __str__(self) -> str:
        used = int(np.count_nonzero(np.any(np.reshape(self.multipliers, (len(self.multipliers), -1)) != 0.0, axis=1)))
        return (
            f"Proven: no model satisfies all constraints. A combination of {used} of them is contradictory "
            f"({self.how}); the root mean square violation of every model is at least {self.excess:.3g}."
        )


class Infeasible(ValueError):
    """The constraints of an interpolation contradict each other; `certificate` proves it.

    `certificate.verify(X, sets)` checks it again. Ask for the model that violates them least with
    `Interpolation(..., on_infeasible="least_violation")`.
    """

    def __init__(self, certificate: FarkasCertificate) -> None:
        least = 'on_infeasible="least_violation", an option of Interpolation and of its estimators'
        super().__init__(f"{certificate} For the model that violates them least: {least}.")
        self.certificate = certificate


def prove(problem: Interpolation, bound: DualValue) -> FarkasCertificate | None:
    """A proof from multipliers whose v nearly vanishes, or None."""
    if not bound.support_lower > 0.0:
        return None
    A = np.reshape(bound.alpha, (-1, problem.outputs))
    largest = float(np.abs(A).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return None
    A = np.ldexp(A, -int(np.frexp(largest)[1]))  # exactly; S is homogeneous
    found = _bounded_domain(problem, A) or _equal_rows(problem, A)
    used = 0
    for part in TUNING.negligible:
        which = np.flatnonzero(np.abs(problem.fractions * A) > part * np.abs(problem.fractions * A).max())
        if found is None and len(which) != used:
            used, found = len(which), _by_correction(problem, A, which) or _exact(problem, A, which)
    if found is None:
        return None
    A, support, size, how = found
    excess = support / size * (1.0 - EVALUATION) if size > 0.0 else 0.0
    shown = (A / size if size > 0.0 else A).reshape(problem.shapes[2])
    return FarkasCertificate(shown, float(excess), how, problem.penalty, problem.intercept, problem.weights)


#: Multipliers, S at the exact point from below, their root mean square from above, and how they were found.
Combination = tuple[Vector, float, float, str]


def _bounded_domain(problem: Interpolation, A: Vector) -> Combination | None:
    bound = dual_bound(problem, Multipliers.of(problem, A, "scaled"))
    limit = problem.penalty.domain_support(bound.v, bound.error)
    if not bound.support_lower > limit + EVALUATION * abs(limit):
        return None
    how = "it cancels exactly" if not bound.absolute.any() else "the domain of the penalty is bounded"
    return np.reshape(bound.alpha, A.shape), bound.support_lower - limit, _size(problem, A), how


def _equal_rows(problem: Interpolation, A: Vector) -> Combination | None:
    found = cancelling(problem, A)
    if found is None:
        return None
    B, support = found
    return B, support, _size(problem, B), "two samples with the same features"


def _size(problem: Interpolation, A: Vector) -> float:
    return root_mean_square(problem, row_lengths(A) * (1.0 + EVALUATION))


def _rows(problem: Interpolation, which: Indices) -> Matrix:
    """Rows of some scores, with a column for each intercept."""
    rows = problem.X.rows(which)
    if not problem.intercept:
        return rows
    return np.hstack([rows, np.eye(problem.outputs)[which % problem.outputs]])


def _by_correction(problem: Interpolation, A: Vector, which: Indices) -> Combination | None:
    """(1 + t_i) A_i with G'(1 + t) = 0, G = diag(p A) [X, 1], for some scores; zero for the others.

    t = -G (G'G)^(-1) G'1, so that |t_i| <= |T G_i| |T G'1| / lambda. T and lambda are those of `Equations`, for the
    columns of G. First such a correction is made, which leaves G'1 at rounding; then what is left of it is bounded.
    """
    if not problem.constraints.have_product_domains:
        return None
    flat = (problem.fractions * A).ravel()
    d = problem.X.shape[1] + problem.outputs * problem.intercept
    if len(which) < 2 or not is_factorable(d, len(which)):
        return None
    rows = _independent_columns(_rows(problem, which))
    if rows is None or rows.shape[1] >= rows.shape[0]:
        return None
    kept, change = np.zeros(A.shape), np.zeros(A.shape)
    for _ in range(2):
        G: Matrix = flat[which, None] / np.abs(flat[which]).max() * rows
        factor = 1.0 - G @ np.linalg.lstsq(G, np.ones(len(which)), rcond=None)[0]
        if np.all(factor > 0.5):
            flat[which] *= factor
    kept.ravel()[which] = flat[which] / problem.fractions.ravel()[which]
    moves = _remaining(flat[which] / np.abs(flat[which]).max(), rows)
    if moves is None:
        return None
    change.ravel()[which] = moves
    lost = problem.mean((change.max(axis=1) + 4.0 * EVALUATION) * problem.constraints.support_size(-kept))
    support = -problem.mean(problem.constraints.support(-kept)) - lost - UNDERFLOW
    if not support > 0.0:
        return None
    return kept, support, _size(problem, kept * (1.0 + change)), "an exact combination exists near the multipliers"


def _remaining(beta: Vector, rows: Matrix) -> Vector | None:
    """Bounds on |t_i| with sum_i (1 + t_i) beta_i x_i = 0; None if they cannot be proven, or are not below 1/2."""
    if not rows.size:  # rows of zeros
        return np.zeros(len(beta))
    G: Matrix = beta[:, None] * rows
    sizes = np.abs(G[rows != 0.0])
    if sizes.size and not (float(sizes.min()) > SMALL and float(sizes.max()) < 1.0 / SMALL):
        return None
    gram, total = G.T @ G, np.abs(G).sum(axis=0)
    T = 1.0 / np.sqrt(np.diagonal(gram))
    smallest = smallest_eigenvalue(gram * T[:, None] * T, len(beta))
    if not (np.all(np.isfinite(T)) and smallest > 0.0):
        return None
    missed = np.abs(G.sum(axis=0)) + gamma(len(beta) + 8) * total
    length = p_norm(T * missed, 2) / smallest
    change = np.asarray(np.sqrt(np.square(G * T).sum(axis=1)) * length * (1.0 + 1e-6))
    return change if change.max() < 0.5 else None


def _independent_columns(rows: Matrix) -> Matrix | None:
    """The rows without columns that depend on the others, exactly: y'rows = 0 needs the independent ones only.

    None if some column nearly depends on others, and no simple combination is exact.
    """
    rows = np.unique(rows[:, np.any(rows != 0.0, axis=0)], axis=1)
    if not rows.size:
        return rows
    largest = np.abs(rows).max(axis=0)  # squares may underflow
    scaled = rows / largest
    scaled /= np.linalg.norm(scaled, axis=0)
    _, R, order = qr(scaled, mode="economic", pivoting=True)
    rank = numerical_rank(R)
    kept = rows[:, order[:rank]]
    if rank < rows.shape[1] and rows.size > rational.TUNING.most_work:
        return None
    for column in rows[:, order[rank:]].T:
        guess = np.linalg.lstsq(kept, column, rcond=None)[0]
        factors = [Fraction(float(x)).limit_denominator() for x in guess]
        for row, value in zip(kept, column, strict=True):
            if sum(f * Fraction(float(x)) for f, x in zip(factors, row, strict=True) if f and x) != Fraction(value):
                return None
    return kept


def _exact(problem: Interpolation, A: Vector, which: Indices) -> Combination | None:
    """A null vector near the multipliers of few rows, as they are given, in rational arithmetic."""
    if not problem.constraints.have_product_domains:
        return None
    flat = (problem.fractions * A).ravel()
    if not len(which) or not is_small(len(which), problem.X.shape[1]):
        return None
    rows = _rows(problem, which)
    null = null_vector(rows[:, np.any(rows != 0.0, axis=0)], flat[which])
    if null is None:
        return None
    fractions = problem.fractions.ravel()[which]
    alpha = np.zeros_like(flat)
    if any(x != 0 and not abs(x) > SMALL for x in null) or np.any(fractions < SMALL):
        return None
    alpha[which] = [float(x) for x in null] / fractions
    B = alpha.reshape(A.shape)
    inside = np.reshape(problem.in_domain(B), A.shape)
    lost = 8.0 * EVALUATION * problem.mean(problem.constraints.support_size(-inside))
    support = -problem.mean(problem.constraints.support(-inside)) - lost - UNDERFLOW
    if np.any(inside != B) or not support > 0.0:
        return None
    return B, support, _size(problem, B), "in rational arithmetic"


def _outputs(alpha: Vector) -> int:
    return 1 if np.ndim(alpha) == 1 else alpha.shape[1]
