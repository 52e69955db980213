"""Algorithms as steps: the solvers run them to find models, the certificate runs them to raise its bound."""

from fenchel.steps.base import Candidate, Overflow, Solver, Start
from fenchel.steps.coordinate import CoordinateAscent
from fenchel.steps.fista import FISTA
from fenchel.steps.pdhg import PDHG

__all__ = ["FISTA", "PDHG", "Candidate", "CoordinateAscent", "Overflow", "Solver", "Start"]
