"""The base class of losses: value, derivative, conjugate, domain and constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fenchel._core import CompiledLoss
from fenchel.data.typing import Vector
from fenchel.problem.traits import Trait


@dataclass(frozen=True)
class Piece:
    """max { a (target - z) : low <= a <= high } of every sample: slopes -high and -low left and right of the target."""

    target: Vector
    low: Vector
    high: Vector


class Loss(ABC):
    """A convex function phi(z; y), bounded below, of the score z, for a target y, as NumPy functions of arrays.

    A subclass defines `value`, `derivative`, `conjugate` and `domain`, and the constants below that are finite. The
    other defaults are correct for every convex loss. The certificate assumes that `value` and `conjugate` are
    accurate to a few units in the last place, as NumPy's functions are.

    Attributes
    ----------
    is_classification : bool
        Whether targets are the labels -1 and +1.
    has_straight_parts : bool
        Whether the derivative is exactly constant (0, or an end of the domain) on some intervals.
    quadratic : bool
        Whether the second derivative is constant.
    smoothness : float
        Lipschitz constant of the derivative; infinite if there is none.
    lipschitz : float
        Lipschitz constant of the loss; infinite if there is none.
    unit : float
        The largest constant added to scores and targets: 1 for margins, epsilon for a tube, 0 if there is none. The
        terms of phi*(-a; y) are at most |phi*(-a; y)| + 2 |a| (unit + |y|), which bounds their rounding errors.
    """

    is_classification = False
    has_straight_parts = False
    quadratic = False

    @property
    def unit(self) -> float:
        """The largest constant added to scores and targets."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the derivative."""
        return np.inf

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant of the loss."""
        return np.inf

    @abstractmethod
    def value(self, z: Vector, y: Vector) -> Vector:
        """phi(z; y)."""

    @abstractmethod
    def derivative(self, z: Vector, y: Vector) -> Vector:
        """phi'(z; y); any subgradient at a kink."""

    @abstractmethod
    def conjugate(self, u: Vector, y: Vector) -> Vector:
        """phi*(u; y) = sup_z u z - phi(z; y), infinite outside its domain."""

    @abstractmethod
    def domain(self, y: Vector) -> tuple[Vector, Vector]:
        """The interval of a = -u in which the conjugate is finite. It contains 0, since phi is bounded below."""

    def kinks(self, y: Vector) -> tuple[Vector, ...]:
        """The scores where phi is not differentiable; none for a differentiable loss."""
        return ()

    def subdifferential(self, z: Vector, y: Vector) -> tuple[Vector, Vector]:
        """The interval of subgradients at z: left and right derivative."""
        slope = self.derivative(z, y)
        return slope, slope

    def dual_step(self, a: Vector, z: Vector, q: Vector | float, y: Vector) -> Vector:
        """The a' that maximises -phi*(-a') - z (a' - a) - q (a' - a)^2 / 2, for q > 0.

        Stationarity says that a' = -phi'(z') at z' = z + q (a' - a). The default finds z', the root of the increasing
        function z' + q phi'(z') - (z - q a), by bisection between the ends of the domain.
        """
        target = z - q * a
        low, high = (target + q * end for end in np.broadcast_arrays(*self.domain(y)))
        low, high = self._bracket(low, target, q, y, -1.0), self._bracket(high, target, q, y, 1.0)
        for _ in range(80):
            middle = 0.5 * (low + high)
            above = middle + q * self.derivative(middle, y) > target
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        root = 0.5 * (low + high)
        first, last = self.domain(y)
        step = (root - target) / q if self.kinks(y) else -self.derivative(root, y)
        return np.clip(step, first, last)

    def _bracket(self, end: Vector, target: Vector, q: Vector | float, y: Vector, side: float) -> Vector:
        """A finite end of the bracket of the default `dual_step`: that of the domain, else by doubling."""
        width = np.ones_like(target)
        end = np.where(np.isfinite(end), end, target + side * width)
        for _ in range(200):
            inside = side * (end + q * self.derivative(end, y) - target) < 0
            if not inside.any():
                break
            width = np.where(inside, 2 * width, width)
            end = np.where(inside, target + side * width, end)
        return end

    def prox(self, x: Vector, t: Vector | float, y: Vector) -> Vector:
        """argmin_z phi(z; y) + (z - x)^2 / (2 t): the score after a dual step from a = 0."""
        return x + t * self.dual_step(np.zeros_like(x), x, t, y)

    def rise(self, z: Vector, y: Vector, error: Vector) -> Vector:
        """A bound on phi(z') - phi(z) over |z' - z| <= error.

        min(|phi'(z)| error + (smoothness / 2) error^2, lipschitz error) for a smooth loss; else, by convexity, the
        larger rise at the two ends (moved outwards, since they are rounded).
        """
        if np.isfinite(self.smoothness):
            slope = np.abs(self.derivative(z, y)) * (1.0 + 1e-9)
            rise = slope * error + 0.5 * self.smoothness * error**2
            return np.minimum(rise, (1.0 + 1e-9) * self.lipschitz * error) if np.isfinite(self.lipschitz) else rise
        ends = (self.value(z + 1.25 * side * error, y) for side in (-1.0, 1.0))
        return np.maximum(*ends) - self.value(z, y)

    def pieces(self, y: Vector) -> tuple[Piece, ...]:
        """Terms with phi(z; y) = sum_k max { a (t_k - z) : low_k <= a <= high_k } (less a constant, the least value of
        phi); none unless phi is piecewise linear.
        """
        return ()

    def kernel(self) -> CompiledLoss | None:
        """The compiled version of this loss, if there is one."""
        return None

    @property
    def traits(self) -> frozenset[Trait]:
        """The properties that follow from the constants and kinks."""
        conditions = {
            Trait.DIFFERENTIABLE_LOSS: not self.kinks(np.ones(1)),
            Trait.SMOOTH_LOSS: np.isfinite(self.smoothness),
            Trait.LIPSCHITZ_LOSS: np.isfinite(self.lipschitz),
            Trait.COMPILED_LOSS: self.kernel() is not None,
            Trait.STRAIGHT_LOSS: bool(self.pieces(np.ones(1))),
        }
        return frozenset(trait for trait, holds in conditions.items() if holds)
