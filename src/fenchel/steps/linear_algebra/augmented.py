"""X with one more column for the intercept, on some of its rows: the linear algebra of second-order methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from fenchel.data.design import Design
from fenchel.data.products import gamma
from fenchel.data.storage import largest_entry
from fenchel.data.typing import Vector
from fenchel.problem import Problem
from fenchel.steps.base import length

#: Roundings of a product beside those of its sum.
DEPTH = 80
#: Entries of dense rows that are scaled at a time: they stay in the cache.
BLOCK = 1_000_000


@dataclass(frozen=True)
class Border:
    """[X, c]: c = 1 for an unpenalised intercept, the design's constant for a penalised one, absent (0) without any.

    `ridge` holds the penalty's weight of every column. Rows are named by index, and never copied as a whole.
    """

    problem: Problem
    column: float
    ridge: Vector

    @classmethod
    def of(cls, problem: Problem) -> Border:
        """For an L2 penalty."""
        constant = problem.design.constant
        column = 1.0 if problem.intercept else constant
        ridge = np.full(problem.design.n_features + (column != 0.0), problem.penalty.lam)
        if problem.intercept:
            ridge[-1] = 0.0
        return cls(problem, column, ridge)

    @cached_property
    def largest(self) -> float:
        """max |x_ij| of what is stored, now: X may have been changed in place since it was checked."""
        design = self.problem.design
        return largest_entry(design.matrix, design.by_rows, design.threads, "X")

    @cached_property
    def size(self) -> float:
        """A bound on the Frobenius norm of [X, c]: as if every stored entry were the largest."""
        entries, n = self.problem.design.nnz, self.problem.shape[0]
        return float(np.hypot(np.sqrt(entries) * self.largest, np.sqrt(n) * self.column)) * (1.0 + 1e-12)

    @cached_property
    def longest(self) -> tuple[int, float]:
        """The most entries of a row, and a bound on its 2-norm: as if each of them were the largest of all."""
        design = self.problem.design
        entries = int(np.diff(design.matrix.indptr).max()) if design.is_sparse else design.n_features
        return entries + 1, float(np.hypot(np.sqrt(entries) * self.largest, self.column)) * (1.0 + 1e-12)

    def slip(self, w: Vector) -> float:
        """How far [X, c] w, as `scores` computes it, can be from what it is in exact arithmetic."""
        entries, reach = self.longest
        return gamma(entries + DEPTH) * reach * length(w)

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

    def curve(self, rows: NDArray[np.int64], h: Vector, p: Vector) -> Vector:
        """[X, c]' diag(h) [X, c] p over some rows, in one pass where there is no column c."""
        if not self.column:
            return self.problem.design.lines.scatter_some(rows, h, p, self.problem.design.threads)
        return self.combine(rows, h * self.scores(rows, p))

    def gram(self, rows: NDArray[np.int64], h: Vector) -> Vector:
        """[X, c]' diag(h) [X, c] over some rows: its lower triangle."""
        inner, width = gram_of(self.problem.design, rows, h), self.problem.design.n_features
        if not self.column:
            return inner
        whole = np.zeros((width + 1, width + 1), order="F")
        whole[:-1, :-1] = inner
        whole[-1] = self.column * self.combine(rows, h)
        return whole

    @cached_property
    def price_of_gram(self) -> float:
        """What a Gram matrix of all rows costs, in products with one; dense rows have no price that is worth it."""
        design = self.problem.design
        return price_of_gram(design) if design.is_sparse else np.inf

    def energy(self, rows: NDArray[np.int64], d: Vector) -> Vector:
        """sum_j [X, c]_ij^2 d_j for some rows i."""
        lines = self.problem.design.lines
        if not self.column:
            return lines.energy_some(rows, d)
        return np.asarray(lines.energy_some(rows, d[:-1]) + self.column**2 * d[-1])

    def diagonal(self, rows: NDArray[np.int64], h: Vector) -> Vector:
        """The diagonal of that Gram matrix."""
        diagonal = self.problem.design.lines.squares_some(rows, h)
        return np.append(diagonal, self.column**2 * h.sum()) if self.column else diagonal


def price_of_gram(design: Design) -> float:
    """What a Gram matrix of sparse rows costs, in products with them: about 0.4 for every entry beside an entry."""
    lengths = np.diff(design.matrix.indptr).astype(np.float64)
    return 0.2 * float(lengths @ lengths) / max(1.0, float(lengths.sum()))


def gram_of(design: Design, rows: NDArray[np.int64] | None, h: Vector, centre: Vector | None = None) -> Vector:
    """X' diag(h) X over some rows, or all: its lower triangle, in Fortran order.

    Sparse matrices are stored by rows; from dense ones a centre may be taken off first.
    """
    n, width = design.matrix.shape
    if design.is_sparse:
        return design.lines.gram_some(np.arange(n) if rows is None else rows, h).reshape(width, width, order="F")
    inner = np.zeros((width, width), order="F")
    even = bool(len(h)) and float(h.min()) == float(h.max())  # no scaled copy is needed
    root, factor = np.sqrt(h), float(h[0]) if even else 1.0
    size = max(1, BLOCK // max(1, width))
    for start in range(0, len(h), size):
        part = slice(start, start + size)
        block = design.matrix[part if rows is None else rows[part]]
        block = block if centre is None else block - centre
        block = block if even else block * root[part, None]
        # Fortran sees the transpose of a C-ordered block
        inner = dsyrk(factor, block.T, beta=1.0, c=inner, trans=0, lower=1, overwrite_c=1)
    return np.asarray(inner)
