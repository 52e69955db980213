"""The objective: losses, penalties, convex sets, and problems."""

from fenchel.problem import losses, penalties, sets
from fenchel.problem.interpolation import Interpolation
from fenchel.problem.kernel import KernelProblem
from fenchel.problem.multiclass import MulticlassProblem
from fenchel.problem.problem import Problem, lam_from_C, lam_from_mean, lam_from_sum
from fenchel.problem.statement import Statement
from fenchel.problem.traits import Trait

__all__ = [
    "Interpolation",
    "KernelProblem",
    "MulticlassProblem",
    "Problem",
    "Statement",
    "Trait",
    "lam_from_C",
    "lam_from_mean",
    "lam_from_sum",
    "losses",
    "penalties",
    "sets",
]
