"""The interface of a matrix for certificates and first-order steps: products with error bounds, norms, a few rows.

`Design` implements it for stored matrices; a Gram matrix, a composed operator or a distributed matrix may as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fenchel.data.storage import usable_threads
from fenchel.data.typing import Matrix, Vector

UNIT_ROUNDOFF = 2.0**-53
#: Bound on the relative rounding error of a function of a vector: sums of same-signed terms, added pairwise.
EVALUATION = 256 * UNIT_ROUNDOFF


def gamma(k: float) -> float:
    """Bound on the relative error of a sum of k floating-point terms in any order, k u / (1 - k u).

    Inflated by a factor 1 + 2^-40, because the sums of absolute values that it multiplies are rounded as well.
    """
    ku = k * UNIT_ROUNDOFF
    return ku / (1.0 - ku) * (1.0 + 2.0**-40) if ku < 0.5 else np.inf


@dataclass(frozen=True)
class Rounded:
    """A product computed in floating point, with elementwise bounds on its rounding error."""

    value: Vector
    absolute: Vector
    """The same product of absolute values: a relative error eps of a factor changes the product by at most eps times
    this.
    """
    depth: int = 0
    """The largest number of additions per term."""

    @property
    def relative(self) -> float:
        """The error is at most this times `absolute`, plus `underflow`."""
        return gamma(self.depth)

    @property
    def underflow(self) -> float:
        """A bound on the error of terms that underflow."""
        return self.depth * 5e-324

    @property
    def error(self) -> Vector:
        """A bound on the error of each entry."""
        return self.absolute * self.relative + self.underflow


class Products(ABC):
    """A matrix X, n samples by d features, given by its products.

    A subclass sets `shape` and `nnz` and defines the abstract methods; certificates are correct only if the bounds on
    rounding errors are. It works with `certify` and with the solvers that need no stored matrix: "fista" and "pdhg".
    The other solvers are compiled for a `Design`.

    Attributes
    ----------
    shape : (int, int)
        Samples and features; the constant column counts, if there is one.
    nnz : int
        Number of multiplications of a product: the cost of a pass.
    threads : int, default 1
        The largest number of threads of a product.
    constant : float, default 0
        If not zero, the last column has this value in every row: the column of a penalised intercept.
    """

    shape: tuple[int, int]
    nnz: int
    threads: int = 1
    constant: float = 0.0

    @abstractmethod
    def matvec_bounded(self, w: ArrayLike) -> Rounded:
        """X w with a bound on its rounding error."""

    @abstractmethod
    def rmatvec_bounded(self, a: ArrayLike) -> Rounded:
        """X' a with a bound on its rounding error."""

    @abstractmethod
    def row_norms(self, p: float = 2.0) -> Vector:
        """The p-norm of every row, 1 <= p <= inf, to a relative error of 1e-9."""

    @abstractmethod
    def column_norms(self, p: float = 2.0, weights: ArrayLike | None = None) -> Vector:
        """(sum_i s_i |x_ij|^p)^(1/p) for every column j, 1 <= p <= inf, to a relative error of 1e-9."""

    @abstractmethod
    def rows(self, which: NDArray[np.intp]) -> Matrix:
        """Some rows as a dense float64 array."""

    def matvec(self, w: ArrayLike) -> Vector:
        """X w."""
        return self.matvec_bounded(w).value

    def rmatvec(self, a: ArrayLike) -> Vector:
        """X' a."""
        return self.rmatvec_bounded(a).value

    def matvec_tight(self, w: Vector) -> tuple[Vector, Vector]:
        """X w and a bound on its error that may take extra work."""
        product = self.matvec_bounded(w)
        return product.value, product.error

    def times(self, Q: Matrix | sp.sparray) -> Matrix:
        """X Q as a dense float64 array, for a matrix Q of few columns."""
        dense = np.asarray(Q.toarray() if isinstance(Q, sp.sparray) else Q, dtype=np.float64)
        return np.column_stack([self.matvec(q) for q in dense.T])

    def gram_row(self, i: int) -> Vector:
        """X x_i, the inner products of row i with all rows."""
        return self.matvec(self.rows(np.array([i]))[0])

    def gram_product(self, a: ArrayLike) -> Vector:
        """X X'a."""
        return self.matvec(self.rmatvec(a))

    @cached_property
    def squared_row_norms(self) -> Vector:
        """The squared 2-norm of every row without the constant column."""
        return np.maximum(self.row_norms(2.0) ** 2 - self.constant**2, 0.0)

    @property
    def n_features(self) -> int:
        """The number of columns without the constant one."""
        return self.shape[1] - (self.constant != 0.0)

    @cached_property
    def is_identity(self) -> bool:
        """Whether X is the identity (denoising)."""
        return False

    def using(self, threads: int | None) -> Self:
        """The same matrix with at most `threads` threads per product."""
        usable = usable_threads(self.nnz, threads)
        if usable == self.threads:
            return self
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.threads = usable
        return other
