"""What we minimise: losses, penalties, sets, and the problem made of them."""

from fenchel.problem import losses, penalties, scaling, sets
from fenchel.problem.multiclass import MulticlassProblem
from fenchel.problem.problem import Problem
from fenchel.problem.traits import Trait

__all__ = ["MulticlassProblem", "Problem", "Trait", "losses", "penalties", "scaling", "sets"]
