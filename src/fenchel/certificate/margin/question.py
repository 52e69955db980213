"""The question of a margin: data, classes and a norm; what a model reaches, and what no model exceeds.

The margin of (w, b), with the p-norm, is the least over all samples of y_i (x_i.w + b) / |w|_p; for k > 2 classes, of
(z_(c_i) - z_c) / |U|_p over all other classes c, with scores z = U x_i + b. With a_r the rows of these differences and
e_r those of the intercepts, every q >= 0 with sum_r q_r = 1 and r = sum_r q_r e_r gives

    margin(w, b) |w|_p <= sum_r q_r (a_r.w + e_r.b) = (A'q).w + r.b <= |A'q|_p* |w|_p + |r.b|.

A classifier with |w|_p <= 1 and a margin that is not negative has |b| <= F for two classes, and |b_a - b_c| <= F for
more, F = max_r |a_r|_p*: a sample of each class bounds b from its side. So |r.b| <= |r| F, or F sum_c |r_c| / 2, since
sum_c r_c = 0: multipliers need not satisfy r = 0 exactly, and

    best margin <= (|A'q|_p* + |r| F) / sum_r q_r.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.bounds.rounding import DOWN, UP
from fenchel.data.class_differences import ClassDifferences
from fenchel.data.design import Design
from fenchel.data.products import EVALUATION, UNIT_ROUNDOFF
from fenchel.data.typing import Indices, StoredMatrix, Vector
from fenchel.problem.vectors import dual_exponent, p_norm

#: Lengths of weights outside of these powers of two are scaled first.
FAR = 300
#: What `Design.row_norms` may be off by, and more.
NORMS = 1.0 + 1e-8


@dataclass(frozen=True)
class QuestionTuning:
    """What may be stored: 2e7 entries with their columns are 240 MB.

    `python -m benchmarks.tuning certificate.margin.question most_entries 0.0 --rows "^margin interval digits 3 p=1.5"
    --rounds 1`: without these rows 0.46 of the time, but the interval is from 0.1629 to 0.1733 in the place of 0.1687
    to 0.1689.
    """

    most_entries: float = 2e7  # of the rows of differences that are formed for norms other than p = 2


TUNING = QuestionTuning()


@dataclass(frozen=True)
class Model:
    """Weights, d or k x d, and the intercept, one or k."""

    w: Vector
    b: Vector


@dataclass(frozen=True, eq=False)
class MarginQuestion:
    """n samples of k classes; with two classes the second is the positive one. With an intercept all of them occur."""

    design: Design
    codes: Indices
    k: int
    intercept: bool
    p: float = 2.0

    @cached_property
    def y(self) -> Vector:
        """-1 and +1, for two classes."""
        return np.where(self.codes == 1, 1.0, -1.0)

    @cached_property
    def pairs(self) -> ClassDifferences:
        """The rows of differences, for more than two classes."""
        return ClassDifferences(self.design, self.codes, self.k)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return self.k == 2

    @property
    def has_one_class(self) -> bool:
        """Whether all samples have the same label."""
        return bool(np.all(self.codes == self.codes[0]))

    @property
    def n_constraints(self) -> int:
        """One for each sample, or for each sample and each other class."""
        return self.design.shape[0] * (self.k - 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weights."""
        d = self.design.shape[1]
        return (d,) if self.is_binary else (self.k, d)

    @cached_property
    def farthest(self) -> float:
        """F: a bound on the intercepts of models with |w|_p <= 1 and a margin that is not negative."""
        q = dual_exponent(self.p)
        doubled = 1.0 if self.is_binary or np.isinf(q) else 2.0 ** (1.0 / q)
        return float(doubled * self.design.row_norms(q).max(initial=0.0)) * NORMS

    # Models -------------------------------------------------------------------------------------------------------

    def differences(self, model: Model, tight: bool = False) -> tuple[Vector, Vector]:
        """y_i (x_i.w + b), or the differences of scores, n x (k - 1); and bounds on their errors.

        Those of `tight` are smaller, and take several times longer.
        """
        rows, b = np.atleast_2d(model.w), np.ravel(model.b)
        product = self.design.matvec_tight if tight else self._product
        parts = [product(np.ascontiguousarray(row)) for row in rows]
        Z = np.stack([value for value, _ in parts], axis=1)
        error = np.stack([error for _, error in parts], axis=1)
        error = error + 2.0 * UNIT_ROUNDOFF * (np.abs(Z) + np.abs(b))
        Z = Z + b
        if self.is_binary:
            return self.y * Z[:, 0], error[:, 0]
        own = np.take_along_axis(error, self.codes[:, None], axis=1)
        others = np.take_along_axis(error, self.pairs.others, axis=1)
        found = self.pairs.differences(Z)
        return found, own + others + 2.0 * UNIT_ROUNDOFF * np.abs(found)

    def shifts(self, b: Vector) -> Vector:
        """What the intercepts add to the differences."""
        if self.is_binary:
            return np.asarray(self.y * float(b[0]))
        return self.pairs.differences(np.broadcast_to(b, (self.design.shape[0], self.k)))

    def _product(self, w: Vector) -> tuple[Vector, Vector]:
        product = self.design.matvec_bounded(w)
        return product.value, product.error

    @np.errstate(all="ignore")
    def margin(self, model: Model, accuracy: float = 0.0) -> tuple[float, int]:
        """A bound below the margin of a model, and how many samples it misclassifies as computed; 0 if w is 0.

        Rounding errors are bounded tightly unless they are below this relative accuracy anyway.
        """
        w, b, lost = np.asarray(model.w, dtype=np.float64), np.ravel(np.asarray(model.b, dtype=np.float64)), 0.0
        exponent = int(np.frexp(np.abs(w).max(initial=0.0))[1])
        if abs(exponent) > FAR and w.any():  # as a power of two it is exact, but for entries that underflow
            scaled, shift = np.ldexp(w, -exponent), np.ldexp(b, -exponent)
            if np.any(np.ldexp(scaled, exponent) != w) or np.any(np.ldexp(shift, exponent) != b):
                lost = 2.0**-1070 * (float(self.design.row_norms(1.0).max(initial=0.0)) * NORMS + 1.0)
            w, b = scaled, shift
        value, error = self.differences(Model(w, b))
        if not float(error.max()) <= accuracy * float(value.min()):
            value, error = self.differences(Model(w, b), tight=True)
        below = np.where(np.isfinite(value), value - error, -np.inf) - lost
        least = float(np.min(below)) - 4.0 * UNIT_ROUNDOFF * abs(float(np.min(below)))
        wrong = int(np.count_nonzero(~(value.reshape(len(value), -1).min(axis=1) > 0.0)))
        length = p_norm(w.ravel(), self.p)
        if not length > 0.0:
            return 0.0, wrong
        return (least / (length * UP) * DOWN if least > 0.0 else least / (length * DOWN) * UP), wrong

    # Multipliers --------------------------------------------------------------------------------------------------

    def balanced(self, q: Vector) -> Vector:
        """q scaled so that its sums for both classes agree up to rounding; for more classes as it is."""
        if not (self.intercept and self.is_binary):
            return q
        up = self.y > 0.0
        sums = float(q[up].sum()), float(q[~up].sum())
        if not min(sums) > 0.0:
            return q
        heavier = up if sums[0] > sums[1] else ~up
        return np.where(heavier, q * (min(sums) / max(sums)), q)

    @np.errstate(all="ignore")
    def exceeded_by_none(self, q: Vector) -> float:
        """A bound on the best margin from multipliers q >= 0; infinite for q = 0."""
        q = np.ravel(np.maximum(q, 0.0))
        largest = float(q.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return np.inf
        q = self.balanced(np.ldexp(q, -int(np.frexp(largest)[1])))
        if self.is_binary:
            signed = self.y * q
            product, sums = self.design.rmatvec_bounded(signed), np.array([signed.sum()])
        else:
            product, sums = self.pairs.rmatvec_bounded(q), np.ascontiguousarray(self.pairs.spread(q).T).sum(axis=1)
        total = float(q.sum())
        apart = 0.0
        if self.intercept:
            missed = np.abs(sums) + EVALUATION * total
            apart = float(missed.sum()) * (1.0 if self.is_binary else 0.5) * self.farthest * UP
        star = dual_exponent(self.p)
        length = (p_norm(product.value, star) + p_norm(product.error, star)) * UP
        found = (length + apart) * UP / (total * DOWN) * UP
        return found if np.isfinite(found) else np.inf

    def combination(self, q: Vector) -> Vector:
        """A'q, of the shape of the weights."""
        if self.is_binary:
            return self.design.rmatvec(self.y * q)
        return self.pairs.rmatvec(q).reshape(self.shape)

    @cached_property
    def rescaled(self) -> MarginQuestion:
        """The same question with features near 1, if they are far from it and a power of two makes them so exactly."""
        exponent = int(np.frexp(self.farthest_row)[1])
        if abs(exponent) <= FAR // 3:
            return self
        matrix = self.design.matrix
        entries = matrix.data if sp.issparse(matrix) else matrix
        scaled = np.ldexp(np.asarray(entries, dtype=np.float64), -exponent)
        if np.any(np.ldexp(scaled, exponent) != entries):
            return self
        if sp.issparse(matrix):
            scaled = type(matrix)((scaled, matrix.indices, matrix.indptr), shape=matrix.shape)
        return MarginQuestion(Design(scaled), self.codes, self.k, self.intercept, self.p)

    # Rows for more than two classes -------------------------------------------------------------------------------

    @property
    def farthest_row(self) -> float:
        """The largest 2-norm of a sample."""
        return float(self.design.row_norms(2.0).max(initial=0.0))

    def pairs_with(self, constant: float) -> ClassDifferences:
        """The rows of differences, with the intercepts as weights of a constant column, if it is not zero."""
        return (
            ClassDifferences(Design(self.design.matrix, constant=constant), self.codes, self.k)
            if constant
            else self.pairs
        )

    @property
    def may_form_rows(self) -> bool:
        """Whether the rows of differences are few enough to be formed."""
        return (self.k - 1) * 2.0 * self.design.nnz <= TUNING.most_entries

    @cached_property
    def rows(self) -> tuple[sp.csr_array, sp.csr_array]:
        """A and E as sparse matrices."""
        X, n, k = sp.csr_array(self.design.matrix).astype(np.float64), self.design.shape[0], self.k
        if self.is_binary:
            E = self.y[:, None] if self.intercept else np.zeros((n, 0))
            return sp.csr_array(sp.diags_array(self.y) @ X), sp.csr_array(E)
        rows, own = np.arange(n * (k - 1)), np.repeat(self.codes, k - 1)
        signs, both = np.repeat([1.0, -1.0], len(rows)), np.concatenate([own, self.pairs.others.ravel()])
        C = sp.csr_array((signs, (np.tile(rows, 2), both)), shape=(len(rows), k))
        repeated = X[np.repeat(np.arange(n), k - 1)]
        blocks = [sp.diags_array(C[:, [c]].toarray().ravel()) @ repeated for c in range(k)]
        A = sp.csr_array(sp.hstack(blocks, format="csr"))
        return A, C if self.intercept else sp.csr_array((len(rows), 0))

    def formed_rows(self, scale: Vector | None, constant: float) -> Design:
        """The rows with columns scaled, and those of the intercepts times a constant; ordered by classes."""
        (A, E), k, d = self.rows, self.k, self.design.shape[1]
        scaled = A if scale is None else sp.csr_array(A @ sp.diags_array(scale.ravel()))
        if not constant:
            return Design(scaled)
        whole = sp.hstack([scaled, constant * E], format="csr")
        order = np.concatenate([np.append(np.arange(c * d, (c + 1) * d), k * d + c) for c in range(k)])
        return Design(sp.csr_array(whole[:, order]))


def times_columns(matrix: StoredMatrix, scale: Vector) -> StoredMatrix:
    """A copy with its columns scaled, in float64."""
    if not sp.issparse(matrix):
        return np.asarray(matrix * scale)
    return matrix.astype(np.float64).multiply(scale).asformat(matrix.format)
