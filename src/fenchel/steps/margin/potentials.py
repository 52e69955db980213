"""Smooth maxima of scores: psi(z) = l^-1(sum_i l(z_i)) for a loss l with an exponential tail (Eq. (2.1)).

psi is at least max_i z_i, so that -psi(Zw) / |w| is a margin from below; its gradient q = l'(z_i) / l'(psi) has a
1-norm of at least 1 and is the multiplier of the dual. The smoothness of psi in the max-norm is at most
sum_i l''(z_i) / l'(psi), itself at most sum_i q_i:

- exp(z): q is the softmax; 1.
- log(1 + exp(z)): sum_i q_i is n/2 at zero, on which the paper blames its bound for the logistic loss, and 1 far out.
- log(1 + exp(z - log n)), the logistic loss begun at -log n: with L = sum_i l(z_i) and sigma(z) = 1 - exp(-l(z)) <= l,

      sum_i q_i = sum_i sigma(z_i - log n) / (1 - exp(-L)) <= L / (1 - exp(-L)) <= 1 / (1 - 1/e) = 1.582

  wherever psi is at most psi(0), since L <= n log(1 + 1/n) <= 1 there. So the step size 1 - 1/e is enough for any n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fenchel.data.typing import Vector

#: The step size of the shifted logistic loss, for rows of norm at most 1.
LOGISTIC_STEP = 1.0 - float(np.exp(-1.0))


class Potential(ABC):
    """psi and its gradient."""

    is_logistic: ClassVar[bool] = False
    offset: float = 0.0

    @abstractmethod
    def value(self, z: Vector) -> float:
        """psi(z); -inf scores count nothing."""

    @abstractmethod
    def slopes(self, z: Vector, psi: float) -> Vector:
        """q_i = l'(z_i) / l'(psi)."""

    @abstractmethod
    def slope(self, psi: float) -> float:
        """l'(psi): the sum of all slopes l'(z_i) is this times that of q."""

    @abstractmethod
    def normaliser(self, psi: float, shift: float) -> float:
        """What makes q of slopes over exp(shift)."""


class ExponentialPotential(Potential):
    """log sum exp(z), the softmax."""

    def value(self, z: Vector) -> float:
        largest = float(np.max(z))
        return largest + float(np.log(np.sum(np.exp(z - largest))))

    def slopes(self, z: Vector, psi: float) -> Vector:
        return np.asarray(np.exp(z - psi))

    def slope(self, psi: float) -> float:
        return float(np.exp(psi))

    def normaliser(self, psi: float, shift: float) -> float:
        return float(np.exp(shift - psi))


@dataclass(frozen=True)
class LogisticPotential(Potential):
    """Of log(1 + exp(z - offset)): psi is offset + log(exp(L) - 1), L the sum of the losses."""

    offset: float = 0.0
    is_logistic: ClassVar[bool] = True

    def value(self, z: Vector) -> float:
        u = z - self.offset
        top = float(np.max(u))
        if top > -600.0:
            L = float(np.sum(np.maximum(u, 0.0) + np.log1p(np.exp(-np.abs(u)))))
            return self.offset + (L + float(np.log(-np.expm1(-L))))
        return self.offset + (
            top + float(np.log(np.sum(np.exp(u - top))))
        )  # l(u) is exp(u), and so small an L is exp(psi)

    def slopes(self, z: Vector, psi: float) -> Vector:
        u, at = z - self.offset, psi - self.offset
        # 1 / (1 + exp(-u)) over 1 / (1 + exp(-psi)); the exponentials of both parts are at most 1
        return np.asarray(np.exp(np.minimum(u, 0.0) - min(at, 0.0)) / (1.0 + np.exp(-np.abs(u)))) * _tail(at)

    def slope(self, psi: float) -> float:
        at = psi - self.offset
        return float(np.exp(min(at, 0.0))) / _tail(at)

    def normaliser(self, psi: float, shift: float) -> float:
        at = psi - self.offset
        return float(np.exp(shift - min(at, 0.0))) * _tail(at)


def _tail(at: float) -> float:
    return 1.0 + float(np.exp(-abs(at)))
