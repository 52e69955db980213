"""A Gram matrix that is passed beside X is checked: scikit-learn fits to it, so a wrong one gives another model."""

from __future__ import annotations

import numpy as np

from fenchel.data import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import sample_weights

#: Of |x_j| sum_k |x_k|; scikit-learn's tolerance for an entry.
TOLERANCE = 1e-4


def require_gram(precompute: object, X: MatrixLike, sample_weight: VectorLike | None = None) -> None:
    """Raise unless a matrix `precompute` is X'S X, with or without weights S, or that of the centred columns.

    Both are multiplied with one vector of random signs: O(n d) in place of O(n d^2), and no wrong matrix passes but by
    a chance of measure zero.
    """
    gram = np.asarray(precompute)
    design = Design(X)
    n, d = design.shape
    if gram.shape != (d, d):
        raise ValueError(f"precompute has shape {gram.shape}, but X'X has shape {(d, d)}")
    r = np.random.default_rng(0).choice([-1.0, 1.0], d) * np.linspace(0.5, 1.0, d)
    s, z, found = sample_weights(sample_weight, X), design.matvec(r), gram.astype(np.float64) @ r
    for weights in (s, s * (n / s.sum())):
        lengths = design.column_norms(2.0, weights)
        within = TOLERANCE * lengths * lengths.sum()
        for centred in (False, True):
            residual = z - (weights @ z) / weights.sum() if centred else z
            if np.all(np.abs(found - design.rmatvec(weights * residual)) <= within):
                return
    raise ValueError("precompute is not the Gram matrix of X (X'X, or that of the centred X): leave it out")
