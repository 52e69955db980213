"""The largest margin of a classifier."""

from fenchel.problem.margin.ball import UnitBall
from fenchel.problem.margin.kernel import FunctionBall, KernelMargin
from fenchel.problem.margin.largest import LargestMargin, Model

__all__ = ["FunctionBall", "KernelMargin", "LargestMargin", "Model", "UnitBall"]
