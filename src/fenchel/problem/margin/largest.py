"""The problem of the largest margin: samples, their classes, and a norm of the weights."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fenchel.data import limits
from fenchel.data.class_differences import ClassDifferences
from fenchel.data.design import Design
from fenchel.data.products import UNIT_ROUNDOFF, Products
from fenchel.data.typing import Indices, Matrix, StoredMatrix, Vector
from fenchel.problem.interpolation import Interpolation
from fenchel.problem.margin.ball import Ball, UnitBall
from fenchel.problem.penalties import L2
from fenchel.problem.sets import HalfLine
from fenchel.problem.statement import Shape, Statement
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import dual_exponent

#: Features whose exponents are farther from that of 1 are scaled first.
FAR = 100
#: What `Design.row_norms` may be off by, and more.
NORMS = 1.0 + 1e-8


@dataclass(frozen=True)
class Model:
    """Weights, d or k x d, and the intercept, one or k."""

    w: Vector
    b: Vector


@dataclass(frozen=True, eq=False)
class LargestMargin(Statement):
    """Maximise the least difference of scores, over the weights of length 1 at most.

    The rows a_r of the differences are y_i x_i for two classes, and x_i (e_c - e_j)' for more, c being the class of
    sample i and j any other one; e_r are those of the intercepts. As a minimum, the simplex of q having a row each::

        primal   P(w, b) = -min_r (a_r.w + e_r.b)   subject to   |w|_p <= 1
        dual     D(q)    = -|A'q|_p*                subject to   q >= 0, sum_r q_r = 1, sum_r q_r e_r = 0

    Weights of any other length stand for those divided by their length, and multipliers for q times a number. -P is the
    margin of the classifier; the best margin is 0 if none separates the samples.

    Parameters
    ----------
    X : Design of n rows
    codes : array of n integers
        The classes from 0 to k - 1; with two classes the second is the positive one. All occur if there is an
        intercept.
    k : int
    intercept : bool
    p : float, default 2.0
    any_margin : bool, default False
        Whether a positive margin, or a proof that there is none, is all that is asked for.
    """

    X: Products
    codes: Indices
    k: int
    intercept: bool
    p: float = 2.0
    any_margin: bool = False
    penalty: Ball = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", UnitBall(self.p))

    @property
    def traits(self) -> frozenset[Trait]:
        """None: its solvers look at the statement itself."""
        return frozenset()

    @property
    def described(self) -> str:
        """For messages."""
        return f"the largest margin of {self.k} classes (p = {self.p:g})"

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Of weights, intercepts and multipliers."""
        return self.weights_shape, () if self.is_binary else (self.k,), (self.n_constraints,)

    @property
    def kind(self) -> str:
        """What has the margins, for messages."""
        return "linear classifier"

    @property
    def assumption(self) -> str:
        """What proofs take for granted; empty if nothing."""
        return ""

    @property
    def contradictory_pair(self) -> Indices | None:
        """Two samples of both classes that have the same scores in exact arithmetic, where that is easily seen."""
        return None

    @property
    def largest_score(self) -> float:
        """The largest score of weights with entries of at most 1."""
        return float(self.X.row_norms(1.0).max(initial=0.0)) * NORMS

    def in_domain(self, alpha: Vector) -> Vector:
        return np.maximum(alpha, 0.0)

    def first_intercept(self) -> float | Vector:
        return 0.0 if self.is_binary else np.zeros(self.k)

    def replace(self, **changes: Any) -> Self:
        """The same problem with other samples; its penalty follows from them, and can only be given as it is."""
        penalty = changes.pop("penalty", self.penalty)
        if penalty != self.penalty:
            raise ValueError(f"{self.described} has one penalty only, {self.penalty!r}; got {penalty!r}")
        changed = {name: value for name, value in changes.items() if value is not getattr(self, name)}
        if not changed:
            return self
        kept = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return type(self)(**kept | changed)

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
        return len(self.codes) * (self.k - 1)

    @property
    def weights_shape(self) -> Shape:
        """Of the weights."""
        d = self.X.shape[1]
        return (d,) if self.is_binary else (self.k, d)

    @cached_property
    def farthest(self) -> float:
        """F: a bound on the intercepts of models with |w|_p <= 1 and a margin that is not negative."""
        q = dual_exponent(self.p)
        doubled = 1.0 if self.is_binary or np.isinf(q) else 2.0 ** (1.0 / q)
        return float(doubled * self.X.row_norms(q).max(initial=0.0)) * NORMS

    # Models -------------------------------------------------------------------------------------------------------

    def differences(self, model: Model, tight: bool = False) -> tuple[Vector, Vector]:
        """y_i (x_i.w + b), or the differences of scores, n x (k - 1); and bounds on their errors.

        Those of `tight` are smaller, and take several times longer.
        """
        rows, b = np.atleast_2d(model.w), np.ravel(model.b)
        product = self.X.matvec_tight if tight else self._product
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
            return np.asarray(self.y * float(np.ravel(b)[0]))
        return self.pairs.differences(np.broadcast_to(b, (len(self.codes), self.k)))

    def _product(self, w: Vector) -> tuple[Vector, Vector]:
        product = self.X.matvec_bounded(w)
        return product.value, product.error

    def combination(self, q: Vector) -> Vector:
        """A'q, of the shape of the weights."""
        if self.is_binary:
            return self.X.rmatvec(self.y * q)
        return self.pairs.rmatvec(q).reshape(self.weights_shape)

    @cached_property
    def hard_margin(self) -> Interpolation:
        """Least weights with differences of at least 1, p = 2; intercepts of more than two classes are weights of a
        constant column.

        Of features near 1: those of a very different scale are multiplied by a power of two, which is exact, and
        changes neither what is separable nor what is contradictory.
        """
        near = self.rescaled
        if near.is_binary:
            return Interpolation(near.X, HalfLine(1.0, near.y), L2(1.0), intercept=near.intercept)
        return Interpolation(near.pairs_with(float(near.intercept)), HalfLine(1.0), L2(1.0))

    def signed(self, q: Vector) -> Vector:
        """q as multipliers of `hard_margin`, which have the signs of two classes."""
        return self.y * q if self.is_binary else np.ravel(q)

    @cached_property
    def rescaled(self) -> LargestMargin:
        """The same problem with features near 1, if they are far from it and a power of two makes them so exactly."""
        exponent = int(np.frexp(self.farthest_row)[1])
        if abs(exponent) <= FAR:
            return self
        matrix = self.design.matrix
        entries = matrix.data if sp.issparse(matrix) else matrix
        scaled = np.ldexp(np.asarray(entries, dtype=np.float64), -exponent)
        if np.any(np.ldexp(scaled, exponent) != entries):
            return self
        if sp.issparse(matrix):
            scaled = type(matrix)((scaled, matrix.indices, matrix.indptr), shape=matrix.shape)
        return self.replace(X=Design(scaled))

    # Rows ---------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        """How many weights there are."""
        return int(np.prod(self.weights_shape))

    @cached_property
    def pair_codes(self) -> Indices:
        """A number for each pair of classes that a row is about."""
        if self.is_binary:
            return self.codes
        return (np.repeat(self.codes, self.k - 1) * self.k + self.pairs.others.ravel()).astype(np.int64)

    def difference_rows(self, which: Indices) -> Matrix:
        """Some rows of A."""
        if self.is_binary:
            return np.asarray(self.y[which, None] * self.design.rows(which))
        return self.pairs.rows(which)

    def intercept_rows(self, which: Indices) -> Matrix:
        """Some rows of E, without columns if there is no intercept."""
        if not self.intercept:
            return np.zeros((len(which), 0))
        if self.is_binary:
            return self.y[which, None]
        rows, place = np.zeros((len(which), self.k)), np.arange(len(which))
        rows[place, self.codes[which // (self.k - 1)]] = 1.0
        rows[place, self.pairs.others.ravel()[which]] = -1.0
        return rows

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
        """Whether the rows of differences may be formed: each has the entries of a sample twice, with their columns."""
        return limits.fits(3 * (self.k - 1), self.design.nnz)

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
