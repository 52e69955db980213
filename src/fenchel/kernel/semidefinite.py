"""Eigenvalues of symmetric matrices bounded from below, and kernels whose matrix is not known to be semidefinite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf

from fenchel.data import limits
from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Matrix, Vector
from fenchel.kernel.base import UP, NotPositiveSemidefinite

#: Values that were computed in float32 are off by less than this part of the largest k(x, x): 17 roundings.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Semidefinite:
    """How far a matrix K is from a positive semidefinite one: (K + K')/2 + shift I is one, and differs by at most
    `asymmetry` from K outside the diagonal.
    """

    asymmetry: float = 0.0
    shift: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether the matrix is one itself."""
        return self.asymmetry == self.shift == 0.0


def eigenvalues_above(C: Matrix, diagonal: Vector, shift: float) -> float | None:
    """A bound below the eigenvalues of the symmetric matrix with this diagonal and the lower triangle of C.

    The upper triangle is overwritten by a Cholesky factorisation of A = C + shift I. If it succeeds in floating point,
    with sums in any order, its result R has |R'R - A| <= gamma_{m+1} |R'||R|, so that the eigenvalues of A are at least
    -gamma_{m+1} / (1 - gamma_{m+1}) tr A (Rump 2006; m rows). None if it fails. The largest entry of the diagonal must
    be about 1, beside which underflow does not count.
    """
    m = len(C)
    for i in range(m - 1):
        C[i, i + 1 :] = C[i + 1 :, i]
    shifted = diagonal + shift
    C[np.diag_indices(m)] = shifted
    _, place = dpotrf(C.T, lower=1, clean=0, overwrite_a=1)  # the lower triangle of the transpose is the upper one
    if place != 0:
        return None
    return -shift - 1.1 * (m + 8) * UNIT_ROUNDOFF * float(np.abs(shifted).sum())


def verify(K: Matrix) -> Semidefinite:
    """Raise if K, which is overwritten, is neither symmetric nor positive semidefinite up to rounding."""
    if not np.all(np.isfinite(K)):
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"the kernel has {K[i, j]} for rows {i} and {j} of X")
    diagonal = np.diagonal(K).copy()
    top = float(diagonal.max())
    size = max(float(K.max()), -float(K.min()))
    if top <= 0.0:
        if size > 0.0:
            raise NotPositiveSemidefinite(
                "the kernel is not positive semidefinite: all k(x, x) are 0, but not all values"
            )
        return Semidefinite()
    exponent = int(np.frexp(top)[1])
    np.ldexp(K, -exponent, out=K)
    diagonal = np.ldexp(diagonal, -exponent)
    asymmetry = _symmetrise(K, float(diagonal.max()))
    rounding = 1.1 * UNIT_ROUNDOFF * float(np.linalg.norm(K)) if asymmetry > 0.0 else 0.0
    least = _least(K, diagonal) - rounding
    shift = float(np.ldexp(max(-least, 0.0), exponent)) * UP + 5e-324
    return Semidefinite(float(np.ldexp(asymmetry, exponent)) * UP, shift)


def _least(C: Matrix, diagonal: Vector) -> float:
    """A bound below the eigenvalues, at most a little below zero; raise if one is negative."""
    top, m = float(diagonal.max()), len(C)
    for part in np.geomspace(4.0 * m * UNIT_ROUNDOFF, ROUNDING, 4):  # from rounding in float64
        found = eigenvalues_above(C, diagonal, top * part)
        if found is not None:
            return found
    message = "its matrix has a negative eigenvalue"
    if m * m <= limits.TUNING.block:
        C[np.diag_indices(m)] = diagonal
        least = float(np.linalg.eigvalsh(C, UPLO="L")[0])
        message += f", about {least / top:.3g} times the largest k(x, x)"
    raise NotPositiveSemidefinite(
        f"the kernel is not positive semidefinite: {message}; nothing is proven for such ones"
    )


def _symmetrise(K: Matrix, top: float) -> float:
    """Put the symmetric part into the lower triangle; the largest |K_ij - K_ji| / 2. Raise if that is no rounding."""
    worst, place = 0.0, (0, 0)
    for i in range(1, len(K)):
        row, column = K[i, :i], K[:i, i]
        apart = np.abs(row - column)
        j = int(np.argmax(apart))
        if apart[j] > worst:
            worst, place = float(apart[j]), (j, i)
        K[i, :i] = 0.5 * row + 0.5 * column
    check_symmetry(worst, top, place)
    return 0.5 * worst


def check_symmetry(apart: float, top: float, place: tuple[int, int], what: str = "a kernel") -> None:
    """Raise if two values differ by more than rounding explains, beside the largest k(x, x)."""
    if apart > 10.0 * ROUNDING * top:
        i, j = place
        raise ValueError(
            f"{what} must be symmetric; its values for rows ({i}, {j}) and ({j}, {i}) of X differ by "
            f"{apart / top:.3g} times the largest k(x, x)"
        )
