"""A Gram matrix that is passed beside X is checked: scikit-learn fits to it, so a wrong one gives another model."""

from __future__ import annotations

import numpy as np

from fenchel.data import Design
from fenchel.data.typing import MatrixLike, VectorLike
from fenchel.estimator.base import sample_weights

#: Of |x_j| |x_k|; scikit-learn's tolerance for an entry.
TOLERANCE = 1e-4


def require_gram(precompute: object, X: MatrixLike, sample_weight: VectorLike | None = None) -> None:
    """Raise unless a matrix `precompute` is X'S X, with or without weights S, or that of the centred columns.

    In O(n d + d^2), in place of O(n d^2): the diagonal within 1e-4 |x_j|^2, and the product with one vector r of random
    signs and |r_k| <= 1 within 1e-4 |x_j| sqrt(sum_k |x_k|^2), which is about that of entries that are wrong by
    1e-4 |x_j| |x_k| with random signs. Larger errors pass only where they are off the diagonal and cancel in the
    product, by chance.
    """
    gram = np.asarray(precompute)
    design = Design(X)
    n, d = design.shape
    if gram.shape != (d, d):
        raise ValueError(f"precompute has shape {gram.shape}, but X'X has shape {(d, d)}")
    r = np.random.default_rng(0).choice([-1.0, 1.0], d) * np.linspace(0.5, 1.0, d)
    gram = gram.astype(np.float64)
    s, z, found, diagonal = sample_weights(sample_weight, X), design.matvec(r), gram @ r, np.diagonal(gram)
    for weights in (s, s * (n / s.sum())):
        lengths = design.column_norms(2.0, weights)
        within, squares = TOLERANCE * lengths * np.linalg.norm(lengths), lengths**2
        total = weights.sum()
        for centred in (False, True):
            residual = z - (weights @ z) / total if centred else z
            right = squares - design.rmatvec(weights) ** 2 / total if centred else squares
            is_close = np.all(np.abs(found - design.rmatvec(weights * residual)) <= within)
            if is_close and np.all(np.abs(diagonal - right) <= TOLERANCE * squares):
                return
    raise ValueError(
        "Gram matrix passed in via 'precompute' did not pass validation: it is neither X'X nor that of the centred X; "
        "leave it out"
    )
