"""What `solve`, the run loop and the judges need of a problem, whatever its kind.

Another kind of problem subclasses `Statement`, registers a judge (`certificate.judge.judge_of.register`) and its
solvers (`steps.choose.solvers_of.register`); no file of `solver` or `certificate` has to know it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import Field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.typing import Vector
from fenchel.problem.losses import Loss, MulticlassLoss
from fenchel.problem.penalties import Penalty
from fenchel.problem.traits import Trait

Shape = tuple[int, ...]


class Statement(ABC):
    """A convex problem with a design, a penalty, multipliers, and perhaps an intercept."""

    X: Products
    penalty: Penalty
    intercept: bool
    scored: ClassVar[str] = "class"  # what each of several scores is of, for messages
    may_contradict: ClassVar[bool] = False  # whether there may be no model at all

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (samples, or their scores where X has a row for each) and features."""
        return self.X.shape

    @property
    def is_stored(self) -> bool:
        """Whether X is a `Design`, which compiled steps need."""
        return isinstance(self.X, Design)

    @property
    def design(self) -> Design:
        """X, for steps that need its entries; other code uses `X`."""
        if not isinstance(self.X, Design):
            raise TypeError(f"this needs a stored matrix (a Design), but X is a {type(self.X).__name__}")
        return self.X

    @property
    @abstractmethod
    def traits(self) -> frozenset[Trait]:
        """The properties that solvers may require."""

    @property
    @abstractmethod
    def described(self) -> str:
        """The objective in words, for messages: "Hinge() with L2(lam=0.1)"."""

    @property
    @abstractmethod
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """Shapes of the weights, the intercept and the multipliers."""

    @abstractmethod
    def replace(self, **changes: object) -> Self:
        """The same problem with some fields replaced; nothing is checked or copied again."""

    def unsolvable(self) -> str | None:
        """Why `solve` refuses it, though models can be certified; None if it does not."""
        return None

    @abstractmethod
    def in_domain(self, alpha: Vector) -> Vector:
        """alpha moved into the domain of the dual objective."""

    @abstractmethod
    def first_intercept(self) -> float | Vector:
        """The intercept to begin with."""


class WeightedStatement(Statement):
    """A problem with a weight s_i for each sample, W = sum s_i; subclasses are frozen dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    weights: Vector

    def replace(self, **changes: object) -> Self:
        """The same problem with some fields replaced; nothing is checked or copied again."""
        other, known, fields = object.__new__(type(self)), vars(self), self.__dataclass_fields__
        if unknown := changes.keys() - fields.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        changes = {name: value for name, value in changes.items() if value is not known[name]}
        # no cached property depends on the penalty
        kept = known if changes.keys() <= {"penalty"} else {name: known[name] for name in fields}
        vars(other).update(kept, **changes)
        return other

    @cached_property
    def total_weight(self) -> float:
        """W, the sum of the weights."""
        return float(self.weights.sum())

    @cached_property
    def weightless(self) -> bool:
        """Whether all sample weights are 1."""
        return bool(np.all(self.weights == 1.0))

    def mean(self, values: Vector) -> float:
        """(1/W) sum_i s_i values_i; a sample of weight zero does not count, whatever its value."""
        if self.weightless:
            return float(np.sum(values)) / self.total_weight
        counted = np.where(self.weights > 0, values, 0.0)
        return float(np.sum(self.weights * counted)) / self.total_weight


class EmpiricalRisk(WeightedStatement):
    """A weighted mean of losses plus a penalty, (1/W) sum_i s_i phi_i + R."""

    loss: Loss | MulticlassLoss

    @property
    def traits(self) -> frozenset[Trait]:
        """The traits of the loss and of the penalty."""
        return self.loss.traits | self.penalty.traits

    @property
    def described(self) -> str:
        """Loss and penalty, for messages."""
        return f"{self.loss!r} with {self.penalty!r}"
