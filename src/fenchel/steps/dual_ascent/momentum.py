"""An accelerated outer loop for dual coordinate ascent (Shalev-Shwartz and Zhang 2014; Lin, Mairal and Harchaoui 2015).

P(w) + (kappa/2) |w - centre|^2 has the dual of P with the link w = (v + kappa centre) / (lam + kappa): the same steps,
on a problem that is as well conditioned as kappa makes it. After every epoch the centre moves on, past the weights
found:

    centre' = w + beta (w - w_last),    beta = (1 - r) / (1 + r),    r = sqrt(lam / (lam + kappa)),

so that sqrt((lam + kappa) / lam) epochs do what would take (lam + kappa) / lam of them. Momentum that points uphill is
dropped (O'Donoghue and Candes 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fenchel.data.typing import Vector

#: Momentum is given up when the gap has not fallen to this part of its least value for so many epochs.
FALLS, PATIENCE = 0.7, 10


@dataclass
class Momentum:
    """Where the proximal term is centred; weights are changed in place when it moves."""

    lam: float
    kappa: float
    centre: Vector
    last: Vector
    least: float = np.inf  # the gap when it last fell by enough, and epochs since then
    idle: int = 0

    @property
    def beta(self) -> float:
        """How far past the weights the centre goes."""
        r = np.sqrt(self.lam / (self.lam + self.kappa))
        return float((1.0 - r) / (1.0 + r))

    def helps(self, gap: float) -> bool:
        """Whether the gap is falling; among nearly orthogonal rows plain epochs are better than they look."""
        self.idle += 1
        if gap < FALLS * self.least:
            self.least, self.idle = gap, 0
        return self.idle <= PATIENCE

    def advance(self, w: Vector) -> None:
        """Move the centre, and the weights with it."""
        step, now = w - self.last, w.copy()
        uphill = float((self.centre - w) @ step) > 0.0
        centre = now if uphill else now + self.beta * step
        w += self.kappa / (self.lam + self.kappa) * (centre - self.centre)
        self.centre, self.last = centre, now

    def weights(self, v: Vector) -> Vector:
        """The link."""
        return (v + self.kappa * self.centre) / (self.lam + self.kappa)

    def mismatch(self, w: Vector) -> float:
        """|lam w - v|^2 / (2 lam): what the gap has beyond that of the inner problem."""
        pull = self.kappa * (self.centre - w)
        return float(pull @ pull) / (2.0 * self.lam)
