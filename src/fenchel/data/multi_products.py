"""Products of X with k vectors at once: one pass over the data instead of k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fenchel._core import kernels
from fenchel.data.design import Design
from fenchel.data.products import gamma
from fenchel.data.typing import Vector

#: The kernels need blocks whose number of columns is a multiple of this.
PADDING = 4


def padded(k: int) -> int:
    """k rounded up to a multiple of PADDING."""
    return -(-k // PADDING) * PADDING


@dataclass(frozen=True)
class BlockProducts:
    """X B' and A' X for B with k rows and A with k columns, with bounds on their rounding errors.

    The error of a dot product is at most gamma_depth sum |a_i b_i| <= gamma_depth |a| |b| (Cauchy-Schwarz).
    """

    design: Design
    weights: Vector

    @cached_property
    def row_norms(self) -> Vector:
        """|x_i|, rounded up."""
        return self.design.row_norms(2.0) * (1.0 + 1e-9)

    @cached_property
    def column_norms(self) -> Vector:
        """sqrt(sum_i s_i x_ij^2), rounded up."""
        return self.design.column_norms(2.0, self.weights) * (1.0 + 1e-9)

    def scores(self, B: ArrayLike) -> Vector:
        """X B', n x k."""
        return self._scores(np.asarray(B, dtype=np.float64))[0]

    def scores_bounded(self, B: Vector) -> tuple[Vector, Vector]:
        """X B', and a bound on the error of the entries of each row."""
        value, depth = self._scores(B)
        size = float(np.sqrt(np.max(np.sum(B * B, axis=1)))) * (1.0 + 1e-9)
        return value, gamma(depth + 2) * self.row_norms * size + (depth + 2) * 5e-324

    def combination(self, A: Vector) -> Vector:
        """sum_i s_i a_i x_i', k x d."""
        return self._combination(A)[0]

    def combination_bounded(self, A: Vector, relative: float) -> tuple[Vector, Vector]:
        """sum_i s_i a_i x_i', k x d, and a bound on the error of its entries if a_ij have relative error `relative`."""
        value, depth = self._combination(A)
        size = np.sqrt(self.weights @ (A * A)) * (1.0 + 1e-9)
        return value, (gamma(depth + 66) + relative) * np.outer(size, self.column_norms) + (depth + 66) * 5e-324

    def _scores(self, B: Vector) -> tuple[Vector, int]:
        design, k = self.design, len(B)
        stored = design.matrix.shape[1]
        blocks = np.zeros((stored, padded(k)))
        blocks[:, :k] = B[:, :stored].T
        product = kernels.gather_blocks if design.by_rows else kernels.scatter_blocks
        value, depth = product(design.lines, blocks, design.threads)
        value = np.ascontiguousarray(value[:, :k])
        return (value + design.constant * B[:, -1] if design.constant else value), depth

    def _combination(self, A: Vector) -> tuple[Vector, int]:
        design, k = self.design, A.shape[1]
        blocks = np.zeros((len(A), padded(k)))
        np.multiply(A, self.weights[:, None], out=blocks[:, :k])
        product = kernels.scatter_blocks if design.by_rows else kernels.gather_blocks
        value, depth = product(design.lines, blocks, design.threads)
        value = np.ascontiguousarray(value[:, :k].T)
        if design.constant:
            sums = np.array([np.sum(column) for column in np.ascontiguousarray(blocks[:, :k].T)])
            value = np.column_stack([value, design.constant * sums])
        return value, depth
