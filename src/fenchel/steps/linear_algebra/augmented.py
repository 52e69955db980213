"""Gram matrices of X; and of [X, c], X with a column for the intercept, with products over subsets of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.products import gamma
from fenchel.data.storage import largest_entry
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps.base import length

#: Proof constant: an entry of X w or X'a is a sum of `terms` products, in any order, with an error of at most
#: gamma(terms + DEPTH) times the sum of absolute values: one rounding per term, and DEPTH for the products, a scaling,
#: the added intercept and a few scalars.
DEPTH = 80


@dataclass(frozen=True)
class AugmentedDesign:
    """[X, c]: c = 1 for an unpenalised intercept, the design's constant for a penalised one, 0 (absent) without any.

    `ridge` is the penalty's weight of each column. Rows are given by their indices; X is never copied.
    """

    problem: Problem
    column: float
    ridge: Vector

    @classmethod
    def of(cls, problem: Problem) -> AugmentedDesign:
        """For a problem with an L2 penalty."""
        constant = problem.design.constant
        column = 1.0 if problem.intercept else constant
        ridge = np.full(problem.design.n_features + (column != 0.0), problem.penalty.lam)
        if problem.intercept:
            ridge[-1] = 0.0
        return cls(problem, column, ridge)

    @cached_property
    def largest(self) -> float:
        """max |x_ij|, computed now: X may have been changed in place since its check."""
        design = self.problem.design
        return largest_entry(design.matrix, design.by_rows, design.threads, "X")

    @cached_property
    def frobenius_bound(self) -> float:
        """An upper bound on the Frobenius norm of [X, c]: sqrt(nnz) max |x_ij| for X."""
        entries, n = self.problem.design.nnz, self.problem.shape[0]
        return float(np.hypot(np.sqrt(entries) * self.largest, np.sqrt(n) * self.column)) * (1.0 + 1e-12)

    @cached_property
    def row_bound(self) -> tuple[int, float]:
        """The most entries of a row of [X, c], and an upper bound on the 2-norm of any row."""
        design = self.problem.design
        entries = int(np.diff(design.matrix.indptr).max()) if design.is_sparse else design.n_features
        return entries + 1, float(np.hypot(np.sqrt(entries) * self.largest, self.column)) * (1.0 + 1e-12)

    def score_error(self, w: Vector) -> float:
        """An upper bound on the rounding error of an entry of [X, c] w, as `scores` computes it."""
        entries, norm = self.row_bound
        return gamma(entries + DEPTH) * norm * length(w)

    def scores(self, rows: NDArray[np.int64], w: Vector) -> Vector:
        """[X, c] w on some rows."""
        lines, threads = self.problem.design.lines, self.problem.design.threads
        if not self.column:
            return lines.gather_some(rows, w, threads)
        return np.asarray(lines.gather_some(rows, w[:-1], threads) + self.column * w[-1])

    def combine(self, rows: NDArray[np.int64], a: Vector) -> Vector:
        """[X, c]' a over some rows."""
        product = self.problem.design.lines.scatter_some(rows, a, None, self.problem.design.threads)
        return np.append(product, self.column * a.sum()) if self.column else product

    def hessian_product(self, rows: NDArray[np.int64], h: Vector, p: Vector) -> Vector:
        """[X, c]' diag(h) [X, c] p over some rows, in one pass if there is no column c."""
        if not self.column:
            return self.problem.design.lines.scatter_some(rows, h, p, self.problem.design.threads)
        return self.combine(rows, h * self.scores(rows, p))

    def gram(self, rows: NDArray[np.int64], h: Vector) -> Vector:
        """[X, c]' diag(h) [X, c] over some rows: its lower triangle."""
        inner, width = gram_of(self.problem.design, rows, h), self.problem.design.n_features
        if not self.column:
            return inner
        gram = np.zeros((width + 1, width + 1), order="F")
        gram[:-1, :-1] = inner
        gram[-1] = self.column * self.combine(rows, h)
        return gram

    @cached_property
    def gram_cost(self) -> float:
        """The cost of the Gram matrix of all rows, in products with [X, c]; infinite for dense X, where samples win."""
        design = self.problem.design
        return gram_cost_of(design) if design.is_sparse else np.inf

    def row_squares(self, rows: NDArray[np.int64], d: Vector) -> Vector:
        """sum_j [X, c]_ij^2 d_j for some rows i."""
        lines = self.problem.design.lines
        if not self.column:
            return lines.energy_some(rows, d)
        return np.asarray(lines.energy_some(rows, d[:-1]) + self.column**2 * d[-1])

    def diagonal(self, rows: NDArray[np.int64], h: Vector) -> Vector:
        """The diagonal of [X, c]' diag(h) [X, c] over some rows."""
        diagonal = self.problem.design.lines.squares_some(rows, h)
        return np.append(diagonal, self.column**2 * h.sum()) if self.column else diagonal


def gram_cost_of(design: Design) -> float:
    """The cost of a Gram matrix of sparse rows, in products with X.

    A row of m entries adds m^2 / 2 products of two entries; one of them costs about 0.4 of an entry's part in X w.
    """
    lengths = np.diff(design.matrix.indptr).astype(np.float64)
    return 0.2 * float(lengths @ lengths) / max(1.0, float(lengths.sum()))


def gram_of(design: Design, rows: NDArray[np.int64] | None, h: Vector, centre: Vector | None = None) -> Vector:
    """X' diag(h) X over some rows, or all: its lower triangle, in Fortran order.

    Sparse matrices must be stored by rows. `centre` is subtracted from every row, of dense matrices only.
    """
    n, width = design.matrix.shape
    if design.is_sparse:
        return design.lines.gram_some(np.arange(n) if rows is None else rows, h).reshape(width, width, order="F")
    inner = np.zeros((width, width), order="F")
    equal = bool(len(h)) and float(h.min()) == float(h.max())  # no scaled copy is needed
    root, factor = np.sqrt(h), float(h[0]) if equal else 1.0
    size = max(1, 1_000_000 // max(1, width))  # rows scaled at a time: 8 MB, which stay in the cache
    for start in range(0, len(h), size):
        chunk = slice(start, start + size)
        block = design.matrix[chunk if rows is None else rows[chunk]]
        block = block if centre is None else block - centre
        block = block if equal else block * root[chunk, None]
        # Fortran sees the transpose of a C-ordered block
        inner = dsyrk(factor, block.T, beta=1.0, c=inner, trans=0, lower=1, overwrite_c=1)
    return np.asarray(inner)


def hessian_cost(design: Design) -> float:
    """What the Hessian of all columns costs, in passes over them."""
    n, d = design.shape
    if not design.is_sparse:
        return 0.035 * d  # BLAS is quick
    return gram_cost_of(design) if design.by_rows else 0.2 * design.nnz / n


def known_gram(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """That of all columns, formed once for all who share X; not to be changed, and no proof may rest on it."""
    centred = mean is not None
    known = design.grams.get(centred)
    if known is None or not np.array_equal(known[0], c):
        known = design.grams[centred] = (c, gram_matrix(design, c, mean))
    return known[1]


def gram_matrix(design: Design, c: Vector, mean: Vector | None) -> Vector:
    """X' diag(c) X, or the same of columns without their means; symmetric, in C order."""
    if design.is_sparse:
        design = design.stored_by_rows()
    H = gram_of(design, None, c, None if design.is_sparse else mean).T  # its transpose is itself, in C order
    kernels.mirror_lower(H)
    if design.is_sparse and mean is not None:
        H -= float(c.sum()) * np.outer(mean, mean)
    return H


def gram_of_some(design: Design, rows: NDArray[np.int64], fraction: float, mean: Vector | None) -> Vector:
    """fraction sum_i (x_i - mean)(x_i - mean)' over some rows, whatever their own mean is; symmetric, in C order.

    Sparse matrices are stored by rows.
    """
    h = np.full(len(rows), fraction)
    if not design.is_sparse:
        H = gram_of(design, rows, h, mean).T
        kernels.mirror_lower(H)
        return H
    H = gram_of(design, rows, h).T
    kernels.mirror_lower(H)
    if mean is not None:
        weights = np.zeros(design.shape[0])
        weights[rows] = fraction
        cross = np.outer(design.rmatvec(weights), mean)
        H += fraction * len(rows) * np.outer(mean, mean) - cross - cross.T
    return H
