"""The rates of the table in section 2 of Shalev-Shwartz and Zhang 2013: orders of the numbers of steps.

A step is one sample. Constants and logarithms are left out of the Lipschitz rates, constants out of the smooth ones, as
in the table; |x_i| <= 1. For bounds with constants see `sdca`, and `pgs_iterations` for SGD.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.typing import Vector
from fenchel.solver.theory.bounds import require_positive


@dataclass(frozen=True)
class Regime:
    """n samples, lam, the accuracy, and the loss: 1-Lipschitz (gamma = 0) or (1/gamma)-smooth. Arrays broadcast."""

    n: ArrayLike
    lam: ArrayLike
    accuracy: ArrayLike
    gamma: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n", "lam", "accuracy"):
            if not np.all(np.asarray(getattr(self, name), dtype=np.float64) > 0):
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, got {self.gamma!r}")

    @property
    def samples(self) -> Vector:
        """n."""
        return np.asarray(self.n, dtype=np.float64)

    @property
    def sublinear(self) -> Vector:
        """1 / (lam accuracy)."""
        return 1.0 / (np.asarray(self.lam, dtype=np.float64) * np.asarray(self.accuracy, dtype=np.float64))

    @property
    def linear(self) -> Vector:
        """(n + 1 / (lam gamma)) log(1 / accuracy)."""
        require_positive(gamma=self.gamma)
        digits = np.maximum(np.log(1.0 / np.asarray(self.accuracy, dtype=np.float64)), 1.0)
        return (self.samples + 1.0 / (np.asarray(self.lam, dtype=np.float64) * self.gamma)) * digits


def sgd_rate(regime: Regime) -> Vector:
    """Stochastic gradient descent, for the primal: 1 / (lam accuracy), smooth or not."""
    return regime.sublinear + 0.0 * regime.samples


def exponentiated_rate(regime: Regime) -> Vector:
    """Online exponentiated gradient, for the dual: n / accuracy, or (n + 1 / (lam gamma)) log(1 / accuracy)."""
    return regime.linear if regime.gamma > 0 else regime.samples / np.asarray(regime.accuracy, dtype=np.float64)


def sag_rate(regime: Regime) -> Vector:
    """Stochastic average gradient, for the primal: (n + 1 / (lam gamma)) log(1 / accuracy); infinite unless the loss is
    smooth and n >= 8 / (lam gamma).
    """
    if not regime.gamma > 0:
        return np.full(np.broadcast(regime.samples, regime.sublinear).shape, np.inf)
    enough = regime.samples >= 8.0 / (np.asarray(regime.lam, dtype=np.float64) * regime.gamma)
    return np.where(enough, regime.linear, np.inf)


def frank_wolfe_rate(regime: Regime) -> Vector:
    """Stochastic (block-coordinate) Frank-Wolfe, for the gap of a Lipschitz loss: n + 1 / (lam accuracy)."""
    return regime.samples + regime.sublinear


def sdca_rate(regime: Regime) -> Vector:
    """Dual ascent, for the gap: n + 1 / (lam accuracy), or (n + 1 / (lam gamma)) log(1 / accuracy)."""
    return regime.linear if regime.gamma > 0 else regime.samples + regime.sublinear


#: The rows of the table.
TABLE: dict[str, Callable[[Regime], Vector]] = {
    "SGD": sgd_rate,
    "online EG": exponentiated_rate,
    "SAG": sag_rate,
    "stochastic Frank-Wolfe": frank_wolfe_rate,
    "SDCA": sdca_rate,
}
