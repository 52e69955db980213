"""Which of several lams have shown on the same samples that they are worse than the best: by progressive validation.

Every model predicts the same samples before it learns them, so that differences are paired: with d_i the difference of
two models on sample i, and s_i its weight, sum_i s_i d_i / sqrt(sum_i s_i^2 d_i^2) is at most z with probability
exp(-z^2 / 2) if the signs of the d_i are a coin's (a self-normalised sum), whatever their sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Array, Mask, Matrix, Vector


def products(each: Array, weights: Vector) -> Matrix:
    """sum_i s_i^2 x_ij x_ik over samples, for each kind of x.

    each: by sample, kind, lam and class. x_ij is the mean over the classes for lam j, and 1 in the last place.
    """
    samples, kinds, count, classes = each.shape
    scaled, found = np.empty((count + 1, samples)), np.empty((kinds, count + 1, count + 1))
    scaled[-1] = weights
    for k in range(kinds):
        values = each[:, k, :, 0] if classes == 1 else each[:, k].sum(axis=2)
        np.multiply(values.T, weights / classes, out=scaled[:-1])
        found[k] = np.einsum("ji,ki->jk", scaled, scaled)  # not by BLAS, whose threads wait on a busy machine
    return found


@dataclass(frozen=True)
class Comparison:
    """Several lams, the largest first, on the same samples.

    Parameters
    ----------
    errors, losses : array
        Weighted sums, for each lam; for a regression both are the losses.
    products : array
        As from `products`: of the errors, then of the losses, or of the losses only.
    weight : float
        Of the samples.
    classes : int
        How many models each lam has.
    """

    errors: Vector
    losses: Vector
    products: Matrix
    weight: float
    classes: int = 1

    def worse(self, best: int, clear: float, mistakes: float, inside: bool = True) -> Mask:
        """Which lams need not go on, if `best` is the one to choose now.

        An error above the best one's by more than `clear` standard deviations, or a loss by as much and no smaller
        error. Lams larger than the best one: their penalty costs them as much later on.

        Smaller lams get better for longer, because the error of their steps falls like 1 / (lam t). So the next one is
        kept; of others the smallest goes, one at a time, and none before the best has made so many mistakes; until four
        times as many, the one after the next goes for its error only. A regression has as many mistakes as there would
        be equal losses with the same relative deviation, (sum s_i x_i)^2 / sum s_i^2 x_i^2.

        inside: whether a larger lam has gone already. As long as none has, the best may only be as good as a model that
        always predicts the same, and no smaller lam goes.
        """
        above = self._above(best, clear)
        by_error, by_loss = above[0], above[-1] & (self.errors >= self.errors[best])
        found: Mask = by_error | by_loss
        found[best : best + 2] = False
        found[best + 2 : -1] = False
        made = self.errors[best] ** 2 / max(float(self.products[0, best, best]), 1e-300)
        if made < 4.0 * mistakes and len(found) == best + 3:
            found[-1] = by_error[-1]
        if not (made >= mistakes and (inside or found[:best].any())):
            found[best + 1 :] = False
        return found

    def _above(self, best: int, clear: float) -> Mask:
        """Whether errors and losses exceed those of the best by so many standard deviations; least, one mistake's."""
        products, square = self.products, self.products.diagonal(axis1=1, axis2=2)[:, :-1]
        sums = np.stack([self.errors, self.losses])[-len(products) :]
        difference = square + square[:, best, None] - 2.0 * products[:, best, :-1]
        least = products[-1, -1, -1] / (self.weight * self.classes) if len(products) > 1 else 0.0
        deviation = np.sqrt(np.maximum(difference, least * least))
        return np.asarray(sums - sums[:, best, None] > clear * deviation)
