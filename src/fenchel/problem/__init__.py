"""What we minimise: losses, penalties, sets, and the problem made of them."""

from fenchel.problem import losses, penalties, scaling, sets
from fenchel.problem.multiclass import MulticlassProblem
from fenchel.problem.problem import Problem
from fenchel.problem.statement import Statement
from fenchel.problem.traits import Trait

__all__ = ["MulticlassProblem", "Problem", "Statement", "Trait", "losses", "penalties", "scaling", "sets"]
