"""Differences along the edges of a graph: total variation of images, graph-guided fusion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.fft import dctn, idctn
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr

from fenchel.data.typing import Vector
from fenchel.problem.penalties.base import NullSpace
from fenchel.problem.penalties.fused.differences import Differences


@dataclass(frozen=True, eq=False)
class PixelGrid:
    """The rows of D for the edges of an image (height x width, flattened row by row), and their factors.

    Row `across[i, j]` of D is +-c_across (w[i, j+1] - w[i, j]); row `down[i, j]` is +-c_down (w[i+1, j] - w[i, j]).
    """

    across: NDArray[np.intp]
    down: NDArray[np.intp]
    sign: Vector  # of each row of D
    c_across: float
    c_down: float

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.across.shape[0], self.down.shape[1]


@dataclass(frozen=True, eq=False)
class GraphDifferences(Differences):
    """Every row of D is c (w_j - w_k)."""

    matrix: sp.csr_array

    @classmethod
    def recognised(cls, D: sp.csr_array) -> GraphDifferences | None:
        """D as GraphDifferences, if every row has two opposite entries."""
        if D.nnz != 2 * D.shape[0] or not np.all(np.diff(D.indptr) == 2):
            return None
        value = D.data.reshape(-1, 2)
        return cls(D) if np.all((value[:, 0] == -value[:, 1]) & (value[:, 0] != 0)) else None

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.matrix.shape  # type: ignore[no-any-return]

    @cached_property
    def depth(self) -> int:
        return (4 if self.grid is not None else int(np.bincount(self.matrix.indices).max())) + 4

    @cached_property
    def column_sums(self) -> Vector:
        if self.grid is None:
            return super().column_sums
        sums = np.zeros(self.grid.shape)
        for part in (sums[:, :-1], sums[:, 1:]):
            part += self.grid.c_across
        for part in (sums[:-1], sums[1:]):
            part += self.grid.c_down
        return sums.ravel()

    @property
    def _sizes(self) -> Vector:
        """The absolute values of the entries of D, with or without repetitions."""
        return np.abs(self.matrix.data) if self.grid is None else np.array([self.grid.c_across, self.grid.c_down])

    @cached_property
    def _components(self) -> tuple[int, NDArray[np.intp]]:
        """The number of components of the graph, and the component of each node."""
        if self.grid is not None:
            return 1, np.zeros(self.shape[1], dtype=np.intp)
        nodes, d = self.matrix.indices.reshape(-1, 2), self.shape[1]
        graph = sp.coo_array((np.ones(len(nodes)), (nodes[:, 0], nodes[:, 1])), shape=(d, d))
        count, label = connected_components(graph, directed=False)
        return int(count), label

    @property
    def free(self) -> int:
        return self._components[0]

    def null_space(self) -> NullSpace:
        """The indicators of the components."""
        count, label = self._components
        indicators = np.zeros((self.shape[1], count))
        indicators[np.arange(self.shape[1]), label] = 1.0
        return NullSpace(indicators)

    def smallest_singular_value(self) -> float:
        """c 2 / d: the algebraic connectivity of a connected graph of d nodes is at least 4 / d^2 (Mohar). For a grid
        with longer side m it is 4 sin(pi / (2 m))^2 >= 4 / m^2.
        """
        longest = self.shape[1] if self.grid is None else max(self.grid.shape)
        return float(np.abs(self.matrix.data).min()) * 2.0 / longest

    def potential(self, v: Vector) -> Vector:
        """D x with D'D x = v; on a grid the cosine transform diagonalises D'D."""
        if self.grid is None:
            return np.asarray(lsqr(self.matrix.T, v, atol=1e-15, btol=1e-15, iter_lim=10 * len(v))[0])
        height, width = self.grid.shape
        down, across = (
            (2.0 * c * np.sin(0.5 * np.pi * np.arange(m) / m)) ** 2
            for c, m in ((self.grid.c_down, height), (self.grid.c_across, width))
        )
        eigenvalues = down[:, None] + across
        eigenvalues[0, 0] = np.inf  # constants, which v is orthogonal to
        return self.apply(idctn(dctn(v.reshape(height, width)) / eigenvalues).ravel())

    @cached_property
    def grid(self) -> PixelGrid | None:
        """The pixel grid, if the edges are all horizontal and vertical neighbours of an image, once each."""
        nodes, value = self.matrix.indices.reshape(-1, 2), self.matrix.data.reshape(-1, 2)
        first, step = nodes.min(axis=1), np.abs(nodes[:, 1] - nodes[:, 0])
        m, d = self.shape
        width = int(step.max())
        if width < 2 or d % width or m != 2 * d - width - d // width:
            return None
        height = d // width
        is_across = step == 1
        along, below = first[is_across], first[~is_across]
        if np.any(step[~is_across] != width) or len(along) != height * (width - 1):
            return None
        across, down = np.full((height, width), -1), np.full((height, width), -1)
        across.flat[along], down.flat[below] = np.flatnonzero(is_across), np.flatnonzero(~is_across)
        if np.any(across[:, :-1] < 0) or np.any(down[:-1] < 0):
            return None
        size = np.abs(value[:, 0])
        c_across, c_down = float(size[across[0, 0]]), float(size[down[0, 0]])
        if not np.all(size == np.where(is_across, c_across, c_down)):
            return None
        later = np.where(nodes[:, 1] > nodes[:, 0], value[:, 1], value[:, 0])
        return PixelGrid(across[:, :-1], down[:-1], np.sign(later), c_across, c_down)


def grid_matrix(shape: tuple[int, int]) -> sp.csr_array:
    """The differences of neighbouring pixels: horizontal ones first, row by row, then vertical ones."""
    height, width = shape
    pixel = np.arange(height * width, dtype=np.int32).reshape(height, width)
    tail = np.concatenate([pixel[:, :-1].ravel(), pixel[:-1].ravel()])
    head = np.concatenate([pixel[:, 1:].ravel(), pixel[1:].ravel()])
    indices = np.column_stack([tail, head]).ravel()
    data = np.tile([-1.0, 1.0], len(tail))
    return sp.csr_array((data, indices, np.arange(0, len(data) + 1, 2, dtype=np.int32)), shape=(len(tail), pixel.size))
