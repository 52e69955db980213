"""Leave-one-out errors of ridge regression, for all samples from one decomposition.

With rows and targets multiplied by the roots of their weights, A = sqrt(s) (X - mean) = U S V', q = sqrt(s / W) for an
intercept (else 0) and F = S^2 / (S^2 + alpha), the fitted values are H t, t = sqrt(s) y, with ::

    H = U F U' + q q',    error of sample i when it is left out:  (t - H t)_i / (1 - H_ii)

(of sqrt(s_i) y_i, exactly). 1 - F is computed as alpha / (S^2 + alpha), without cancellation for small alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from fenchel.data.products import UNIT_ROUNDOFF
from fenchel.data.typing import Vector
from fenchel.estimator.base import Features


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """U, S^2, sqrt(s) and q of the decomposition."""

    U: Vector
    squares: Vector
    root: Vector  # sqrt(s)
    q: Vector
    complete: bool  # whether U and q span R^n

    @classmethod
    def of(cls, X: Features, s: Vector, intercept: bool) -> LeaveOneOut:
        """Decompose X with sample weights s: dense data directly, sparse data by the smaller Gram matrix."""
        n, d = X.shape
        if n * min(n, d) > 200_000_000:  # entries of U: 1.6 GB
            raise ValueError(
                f"leave-one-out with {n} samples needs a decomposition of {n} x {min(n, d)} numbers; "
                "use cross-validation on a few folds: cv=5"
            )
        root = np.sqrt(s)
        mean = np.asarray(X.T @ s).ravel() / s.sum() if intercept else np.zeros(d)
        U, singular = _gram_vectors(X, root, mean) if sp.issparse(X) else _dense_vectors(X, root, mean)
        noise = max(n, d) * 4.0 * UNIT_ROUNDOFF
        # singular values that are zero up to rounding; those from a Gram matrix have the root of the error
        keep = singular > singular.max(initial=0.0) * (np.sqrt(noise) if sp.issparse(X) else noise)
        q = root / np.sqrt(s.sum()) if intercept else np.zeros(n)
        complete = int(np.count_nonzero(keep)) + int(intercept) == np.count_nonzero(s)
        return cls(U[:, keep], singular[keep] ** 2, root, q, complete)

    def errors(self, y: Vector, alpha: float) -> Vector:
        """sqrt(s_i) (y_i - prediction without sample i), for each sample."""
        t = self.root * y
        left = alpha / (self.squares + alpha)
        projection = self.U.T @ t
        residual, slack = self.U @ (left * projection), self.U**2 @ left
        if not self.complete:
            residual += t - self.U @ projection - self.q * (self.q @ t)
            slack += np.maximum(1.0 - (self.U**2).sum(axis=1) - self.q**2, 0.0)
        return np.divide(residual, slack, out=np.zeros_like(t), where=(slack > 0.0) & (self.root > 0.0))

    def weights(self, X: Features, y: Vector, alpha: float) -> tuple[Vector, float]:
        """w and b of the fit to all samples: w = A' U (S^2 + alpha)^-1 U' t, and b makes the residuals sum to zero."""
        t = self.root * y
        a = self.root * (self.U @ ((self.U.T @ t) / (self.squares + alpha)))
        if not self.q.any():
            return np.asarray(X.T @ a, dtype=np.float64).ravel(), 0.0
        s, W = self.root**2, float((self.root**2).sum())
        a -= s * (a.sum() / W)  # A has centred rows
        w = np.asarray(X.T @ a, dtype=np.float64).ravel()
        return w, float(s @ (y - np.asarray(X @ w).ravel())) / W


def _dense_vectors(X: Features, root: Vector, mean: Vector) -> tuple[Vector, Vector]:
    A = root[:, None] * (np.asarray(X, dtype=np.float64) - mean)
    U, singular, _ = scipy.linalg.svd(A, full_matrices=False)
    return U, singular


def _gram_vectors(X: Features, root: Vector, mean: Vector) -> tuple[Vector, Vector]:
    """U and S from the eigenvectors of A A' or A' A, without making X dense."""
    n, d = X.shape
    A = sp.csr_array(sp.diags_array(root) @ X.astype(np.float64))
    shift = A @ mean
    if n <= d:
        gram = (
            (A @ A.T).toarray() - np.outer(shift, root) - np.outer(root, shift) + (mean @ mean) * np.outer(root, root)
        )
        squares, U = scipy.linalg.eigh(gram)
        return U, np.sqrt(np.maximum(squares, 0.0))
    back = np.asarray(A.T @ root).ravel()
    gram = (A.T @ A).toarray() - np.outer(back, mean) - np.outer(mean, back) + (root @ root) * np.outer(mean, mean)
    squares, V = scipy.linalg.eigh(gram)
    singular = np.sqrt(np.maximum(squares, 0.0))
    U = A @ V - np.outer(root, mean @ V)
    return np.divide(U, singular, out=np.zeros_like(U), where=singular > 0.0), singular
