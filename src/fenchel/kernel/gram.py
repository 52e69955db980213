"""The Gram matrix of a kernel on samples: rows on demand behind one bounded cache, and products with error bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.limits import blocks
from fenchel.data.products import EVALUATION, Rounded, gamma
from fenchel.data.typing import Indices, Matrix, MatrixLike, StoredMatrix, Vector
from fenchel.kernel.base import UP, Accuracy, Kernel, NotPositiveSemidefinite
from fenchel.kernel.cache import RowCache
from fenchel.kernel.functions import Precomputed, is_proven
from fenchel.kernel.samples import Samples
from fenchel.kernel.semidefinite import ROUNDING, Semidefinite, verify


def require_cache_size(cache_size: object) -> None:
    """Raise unless it is a positive number."""
    if isinstance(cache_size, bool) or not (
        isinstance(cache_size, int | float | np.integer | np.floating) and 0.0 < cache_size < np.inf
    ):
        raise ValueError(f"cache_size must be a positive number of MB, got {cache_size!r}")


class Gram:
    """K_ij = k(x_i, x_j) for n samples. The whole matrix is kept only if it fits into the cache.

    The kernels by name are positive semidefinite. For a precomputed one, a function and kernels of one's own this is
    verified by a factorisation, once, for at most 6000 samples (`Semidefinite`). What is proven holds for the kernel
    with `definite.shift` added to the diagonal, which is counted as an error of the values. For more samples it is
    assumed, and certificates say so (`assumption`); an error is raised where it shows: a negative k(x, x), a 2 x 2
    minor, a quadratic form below its rounding error.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n, d)
        For a precomputed kernel, n x n.
    kernel : Kernel
    cache_size : float, default 200.0
        MB for rows of the matrix; one that is too small for a row is allowed.
    """

    def __init__(self, X: MatrixLike | Design, kernel: Kernel, cache_size: float = 200.0) -> None:
        require_cache_size(cache_size)
        self.samples = Samples.of(X)
        self.kernel = kernel.fitted(self.samples)
        with np.errstate(over="ignore", invalid="ignore"):
            self.diagonal, self.diagonal_error = self.kernel.diagonal(self.samples)
        self._check_diagonal()
        self.cache = RowCache(len(self.samples), float(cache_size))
        self._known: tuple[tuple[Vector, Rounded], ...] = ()
        self.is_verified = is_proven(self.kernel) or len(self) ** 2 <= limits.TUNING.dense
        self.definite = Semidefinite() if is_proven(self.kernel) or not self.is_verified else self._verified()
        self.diagonal_error = self.diagonal_error + self.definite.shift

    def _check_diagonal(self) -> None:
        bad = np.flatnonzero(~np.isfinite(self.diagonal))
        if bad.size:
            raise ValueError(
                f"k(x, x) is {self.diagonal[bad[0]]} for row {bad[0]} of X: the kernel overflows; rescale the features"
            )
        negative = np.flatnonzero(self.diagonal < -self.diagonal_error)
        if negative.size:
            i = negative[0]
            raise NotPositiveSemidefinite(
                f"the kernel is not positive semidefinite: k(x, x) is {self.diagonal[i]:g} for row {i} of X"
            )

    def _verified(self) -> Semidefinite:
        """How far the matrix is from a positive semidefinite one; raise if that is more than rounding.

        The errors e_ij of values that are not the kernel itself change eigenvalues by at most max_i sum_j e_ij.
        """
        n, errors = len(self), 0.0
        K = self.whole.copy() if self.cache.holds_all else np.empty((n, n))
        for part in self._parts(n, n):
            if not self.cache.holds_all:
                self._compute_into(part, K[part])
            if not self.kernel.is_given:
                accuracy = self.kernel.accuracy(self.samples.take(part), self.samples)
                errors = max(errors, float(accuracy.errors(K[part]).sum(axis=1).max()))
        if self.kernel.is_given:
            self.diagonal = np.diagonal(K).copy()
        else:
            errors += float(np.max(self.diagonal_error))
        found = verify(K)
        asymmetry = 0.0 if is_precomputed(self) else found.asymmetry  # which counts its own
        return Semidefinite(asymmetry, found.shift + errors * UP)

    @property
    def assumption(self) -> str:
        """What proofs assume of the kernel; empty if nothing."""
        return "" if self.is_verified else "taking the kernel to be symmetric and positive semidefinite"

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def n_features(self) -> int:
        """The number of columns that new samples must have."""
        return self.samples.width

    @property
    def lengths(self) -> Vector:
        """sqrt(k(x_i, x_i)), from above: the norms of the functions k(x_i, .)."""
        return np.asarray(np.sqrt(np.maximum(self.diagonal + self.diagonal_error, 0.0)) * UP)

    def accuracy(self, rows: Samples, columns: Samples) -> Accuracy:
        """A bound on the errors of a block."""
        found = self.kernel.accuracy(rows, columns)
        return replace(found, constant=found.constant + self.definite.asymmetry)

    # Values -------------------------------------------------------------------------------------------------------

    def rows(self, which: Indices) -> Matrix:
        """Some rows, from the cache as far as they are there; a new array."""
        return self.cache.rows(np.asarray(which, dtype=np.int64), self._compute)

    def values(self, which: Indices, columns: Indices) -> Matrix:
        """Some columns of some rows, as a new array; nothing is kept."""
        return self._values(self.samples.take(np.asarray(which)), self.samples.take(np.asarray(columns)))

    @property
    def whole(self) -> Matrix:
        """The whole matrix: the cache itself, for reading, if it fits there; else a new array."""
        if not self.cache.holds_all:
            return self.rows(np.arange(len(self)))
        return self.cache.complete(self._compute_into, self._parts(len(self), len(self)))

    def block(self, which: Indices, columns: Indices) -> Matrix:
        """Some columns of some rows: of cached rows from there; others are kept, whole, while there is room."""
        which, columns = np.asarray(which, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        missing = self.cache.missing(which)
        if len(missing) <= self.cache.free:
            self.cache.rows(missing, self._compute)
        at, values = self.cache.known(which, columns)
        if len(at) == len(which):
            return values
        out = np.empty((len(which), len(columns)))
        out[at] = values
        rest = np.setdiff1d(np.arange(len(which)), at)
        out[rest] = self._values(self.samples.take(which[rest]), self.samples.take(columns))
        return out

    def _compute(self, which: Indices) -> Matrix:
        out = np.empty((len(which), len(self)))
        self._compute_into(which, out)
        return out

    def _compute_into(self, which: Indices | slice, out: Matrix) -> None:
        rows = self.samples.take(which)
        self._values(rows, self.samples, out)
        if not self.kernel.is_given:
            out[np.arange(len(rows)), rows.index] = self.diagonal[rows.index]

    def _parts(self, rows: int, columns: int) -> list[slice]:
        """Rows of so many columns in the blocks that are computed at a time."""
        return blocks(rows, columns, self.kernel.rows_at_once(columns))

    def _values(self, A: Samples, B: Samples, out: Matrix | None = None) -> Matrix:
        """k(a_i, b_j), in blocks, checked."""
        out = np.empty((len(A), len(B))) if out is None else out
        chunks = B.chunks() if B.matrix.dtype != np.float64 else [slice(0, len(B))]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for columns in chunks:
                part = B.take(columns)
                for rows in self._parts(len(A), len(part)):
                    out[rows, columns] = self.kernel.block(A.take(rows), part)
        check_finite(out, A, B)
        if self.kernel.is_given:
            self._check_given(A, B, out)
        return out

    def _check_given(self, A: Samples, B: Samples, K: Matrix) -> None:
        """Raise for values that are larger than sqrt(k(x, x) k(x', x'))."""
        largest = np.sqrt(np.maximum(self.diagonal[A.index], 0.0))[:, None] * np.sqrt(
            np.maximum(self.diagonal[B.index], 0.0)
        )
        bad = np.abs(K) > largest * (1.0 + ROUNDING) + ROUNDING * float(np.abs(self.diagonal).max())
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise NotPositiveSemidefinite(
                f"the kernel is not positive semidefinite: its value for rows {A.index[i]} and {B.index[j]} of X is "
                f"{K[i, j]:g}, above the root of k(x, x) k(x', x'), which is {largest[i, j]:g}"
            )

    # Products -----------------------------------------------------------------------------------------------------

    def product(self, a: ArrayLike) -> Rounded:
        """K a with a bound on its error, those of the entries of K included: these are in `Rounded.absolute`.

        The last two products are remembered, since a model and its multipliers are often multiples of each other.
        """
        vector = np.ascontiguousarray(a, dtype=np.float64)
        if vector.shape != (len(self),):
            raise ValueError(f"a must be a vector of {len(self)} entries, got shape {vector.shape}")
        for known, product in self._known:
            scaled = _multiple(vector, known, product)
            if scaled is not None:
                return scaled
        product = self._shifted(self._product(vector), vector)
        self._known = ((vector.copy(), product), *self._known[:1])
        return _copy(product)

    def _shifted(self, product: Rounded, a: Vector) -> Rounded:
        """The same with a bound that holds for K + shift I as well."""
        shift = self.definite.shift
        if shift == 0.0:
            return product
        extra = shift * np.abs(a) * UP
        return Rounded(product.value, (product.absolute + extra / product.relative) * UP, product.depth)

    def _product(self, a: Vector) -> Rounded:
        support = np.flatnonzero(a)
        if len(support) == 0:
            return Rounded(np.zeros(len(a)), np.zeros(len(a)), 1)
        if self.cache.is_complete:
            return bounded_product(self, self.samples, self.samples, a, iter([(slice(0, len(a)), self.cache.store)]))
        columns = self.samples.take(support)
        return bounded_product(
            self, self.samples, columns, a[support], self._in_blocks(self._values, self.samples, columns)
        )

    def cross_product(self, new: Samples, a: Vector) -> Rounded:
        """sum_j a_j k(x, x_j) for new samples x."""
        support = np.flatnonzero(a)
        if len(support) == 0:
            return Rounded(np.zeros(len(new)), np.zeros(len(new)), 1)
        columns = self.samples.take(support)
        return bounded_product(self, new, columns, a[support], self._in_blocks(self._new_values, new, columns))

    def _in_blocks(
        self, values: Callable[[Samples, Samples], Matrix], rows: Samples, columns: Samples
    ) -> Iterator[tuple[slice, Matrix]]:
        return ((part, values(rows.take(part), columns)) for part in self._parts(len(rows), len(columns)))

    def _new_values(self, new: Samples, columns: Samples) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            K = self.kernel.block(new, columns)
        check_finite(K, new, columns)
        return K

    def quadratic(self, a: Vector) -> tuple[float, float]:
        """a'K a, at least 0, and a bound on its error; raise if it is negative beyond that.

        Of the computed K a the entry i is off by at most e_i, and the sum of the n products, added pairwise, by
        EVALUATION times the sum of their absolute values.
        """
        product = self.product(a)
        terms = a * product.value
        value = float(terms.sum())
        error = (float((np.abs(a) * product.error).sum()) + EVALUATION * float(np.abs(terms).sum())) * UP + 5e-324
        if value < -error:
            raise NotPositiveSemidefinite(
                f"the kernel is not positive semidefinite: a'K a is {value:.3g} for some a, and rounding explains only "
                f"{error:.1g} of it"
            )
        return max(value, 0.0), error

    def __reduce__(self) -> tuple[type[Gram], tuple[StoredMatrix, Kernel, float]]:
        """Without the rows."""
        return Gram, (self.samples.matrix, self.kernel, self.cache.megabytes)

    def __repr__(self) -> str:
        return f"Gram({len(self)} samples, {self.kernel!r}, {self.cache.megabytes:g} MB)"


def check_finite(K: Matrix, A: Samples, B: Samples) -> None:
    """Raise for values of a kernel that overflow."""
    if not np.all(np.isfinite(K)):
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(
            f"the kernel has {K[i, j]} for rows {A.index[i]} and {B.index[j]} of X; a kernel by name overflows there: "
            "rescale the features"
        )


def bounded_product(
    gram: Gram, rows: Samples, columns: Samples, a: Vector, blocks: Iterator[tuple[slice, Matrix]]
) -> Rounded:
    """K a for K in blocks of rows. With the errors of K as in `Accuracy`, entry i is off by at most

        gamma_k (|K| |a|)_i + u_i (|K| |a|)_i + (|K| |v a|)_i + p_i (q.|a|) + constant |a|_1.

    All but the first term are divided by gamma_k and added to the sum of absolute values. So that q.|a| does not
    underflow beside a large p, q is divided by its largest entry.
    """
    accuracy = gram.accuracy(rows, columns)
    (u, v), (p, q) = accuracy.relative, accuracy.product
    size, is_uniform = np.abs(a), bool(np.all(v == v[0]))
    value, absolute, weighted = np.empty((3, len(rows)))
    for part, K in blocks:
        value[part] = K @ a
        sizes = K if gram.kernel.nonnegative else np.abs(K)
        absolute[part] = sizes @ size
        weighted[part] = v[0] * absolute[part] if is_uniform else sizes @ (v * size)
    depth = len(a) + 8
    top = float(q.max())
    total = float((q / top) @ size) + len(a) * 5e-324 if top > 0.0 else 0.0
    extra = u * absolute + weighted + p * top * total + accuracy.constant * float(size.sum())
    return Rounded(value, (absolute * (1.0 + 2.0 * gamma(depth)) + extra / gamma(depth)) * UP, depth)


def _multiple(a: Vector, known: Vector, product: Rounded) -> Rounded | None:
    """K a from a remembered product, if a is a multiple of its vector up to four roundings of each entry.

    These are three more roundings than the product with the factor: they count as additions.
    """
    k = int(np.argmax(np.abs(known)))
    if known[k] == 0.0:
        return None
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        factor = a[k] / known[k]
        near = np.abs(a - factor * known) <= 2.0**-51 * np.abs(a)
    if not (near.all() and 1e-290 < abs(factor) < 1e290):
        return None
    return Rounded(factor * product.value, abs(factor) * product.absolute, product.depth + 8)


def _copy(product: Rounded) -> Rounded:
    """Arrays that the caller may change."""
    return Rounded(product.value.copy(), product.absolute.copy(), product.depth)


def is_precomputed(gram: Gram) -> bool:
    """Whether X is the matrix itself."""
    return isinstance(gram.kernel, Precomputed)
