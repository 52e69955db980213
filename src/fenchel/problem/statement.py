"""What `solve`, the run loop and the judges need of a problem, whatever its kind.

Another kind of problem subclasses `Statement`, registers a judge (`certificate.judge.judge_of.register`) and its
solvers (`solver.choose.solvers_of.register`); no file of `solver` or `certificate` has to know it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.typing import Vector
from fenchel.problem.penalties import Penalty
from fenchel.problem.traits import Trait

Shape = tuple[int, ...]


class Statement(ABC):
    """A convex problem with a design, a penalty, multipliers, and perhaps an intercept."""

    X: Products
    penalty: Penalty
    intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape

    @property
    def is_stored(self) -> bool:
        """Whether X is a `Design`, which compiled steps need."""
        return isinstance(self.X, Design)

    @property
    def design(self) -> Design:
        """X, for steps that need it stored; other code asks `X`."""
        if not isinstance(self.X, Design):
            raise TypeError(f"this needs a matrix that is stored (a Design), but X is a {type(self.X).__name__}")
        return self.X

    @property
    @abstractmethod
    def traits(self) -> frozenset[Trait]:
        """What solvers may rely on."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What is minimised, for messages: "Hinge() with L2(lam=0.1)"."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Those of the weights, the intercept and the multipliers."""

    @abstractmethod
    def replace(self, **changes: object) -> Self:
        """The same problem with some parts exchanged; nothing is checked or copied again."""

    @abstractmethod
    def in_domain(self, alpha: Vector) -> Vector:
        """Multipliers moved to where the dual objective is finite."""

    @abstractmethod
    def first_intercept(self) -> float | Vector:
        """The intercept to begin with."""
