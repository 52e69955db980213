"""The objective: losses, penalties, convex sets, and problems."""

from fenchel.problem import losses, penalties, sets
from fenchel.problem.interpolation import Interpolation
from fenchel.problem.kernel import KernelProblem
from fenchel.problem.multiclass import MulticlassProblem
from fenchel.problem.problem import Problem
from fenchel.problem.statement import Statement
from fenchel.problem.traits import Trait

__all__ = [
    "Interpolation",
    "KernelProblem",
    "MulticlassProblem",
    "Problem",
    "Statement",
    "Trait",
    "losses",
    "penalties",
    "sets",
]
