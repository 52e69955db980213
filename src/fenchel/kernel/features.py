"""The functions k(x_i, .) as the rows of a matrix, so that a kernel can stand where features do.

A function f = sum_j beta_j k(x_j, .) is written by its coefficients beta. Then X f, the scores at the samples, is
K beta, X'a = sum_i a_i k(x_i, .) has the coefficients a, and row i has the length sqrt(k(x_i, x_i)).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fenchel.data.products import Products, Rounded
from fenchel.data.typing import Matrix, MatrixLike, Vector
from fenchel.kernel.base import UP
from fenchel.kernel.gram import Gram, is_precomputed
from fenchel.kernel.samples import Samples


class KernelRows(Products):
    """The functions k(x, .) of some samples, for functions with coefficients at the n samples of a Gram matrix."""

    gram: Gram
    lengths: Vector

    def row_norms(self, p: float = 2.0) -> Vector:
        """sqrt(k(x, x)), from above, p = 2."""
        if p != 2.0:
            raise ValueError(f"functions of a kernel have a 2-norm only, got p={p}")
        return self.lengths

    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        """Infinite: coefficients are no coordinates, and nothing is proven about single ones."""
        return np.full(self.shape[1], np.inf)


class Features(KernelRows):
    """The functions of the n samples themselves, n x n."""

    def __init__(self, gram: Gram) -> None:
        self.gram, self.lengths, n = gram, gram.lengths, len(gram)
        self.shape, self.nnz = (n, n), n * n

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        """K w, the scores of a function with these coefficients."""
        return self.gram.product(w)

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """a, exactly: the coefficients of sum_i a_i k(x_i, .)."""
        vector = np.array(a, dtype=np.float64)
        return Rounded(vector, np.abs(vector), 0)

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        """Unit vectors: the coefficients of the functions."""
        out = np.zeros((len(which), len(self.gram)))
        out[np.arange(len(which)), which] = 1.0
        return out

    def gram_row(self, i: int) -> Vector:
        """Row i of K, from the cache if it is there."""
        return np.asarray(self.gram.rows(np.array([i]))[0])

    def __repr__(self) -> str:
        return f"Features({self.gram!r})"


class NewFeatures(KernelRows):
    """The functions of new samples, m x n.

    For a precomputed kernel the m x n matrix k(x, x_j), and for `lengths` a pair of it and the m values k(x, x).
    """

    def __init__(self, gram: Gram, X: MatrixLike | tuple[MatrixLike, ArrayLike]) -> None:
        own = None
        if isinstance(X, tuple) and is_precomputed(gram):
            X, own = X[0], np.asarray(X[1], dtype=np.float64)
        self.gram, self.new = gram, Samples.of(X)
        if self.new.width != gram.n_features:
            raise ValueError(f"X has {self.new.width} columns, but the kernel's samples have {gram.n_features}")
        self.shape, self.nnz = (len(self.new), len(gram)), len(self.new) * len(gram)
        self._own = own

    @property
    def lengths(self) -> Vector:  # type: ignore[override]
        """sqrt(k(x, x)), from above."""
        if not is_precomputed(self.gram):
            values, errors = self.gram.kernel.diagonal(self.new)
        elif self._own is None:
            raise ValueError("of a precomputed kernel k(x, x) is needed for proofs: pass the pair (K, diagonal) for X")
        else:
            values, errors = self._own, np.zeros(len(self._own))
            if values.shape != (len(self.new),) or not np.all(values >= 0.0):
                raise ValueError(f"the diagonal must be {len(self.new)} numbers k(x, x) >= 0")
        return np.asarray(np.sqrt(np.maximum(values + errors + self.gram.definite.shift, 0.0)) * UP)

    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        """The scores of a function with these coefficients."""
        return self.gram.cross_product(self.new, np.asarray(w, dtype=np.float64))

    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        raise TypeError("functions of new samples have no coefficients at the samples of the fit")

    def rows(self, which: NDArray[np.intp]) -> Matrix:
        raise TypeError("functions of new samples have no coefficients at the samples of the fit")
