"""How: solvers, and the one loop that runs them."""

from fenchel.solver.base import Check, NotCertifiedWarning, Result, Stop, Trace
from fenchel.solver.solve import solve
from fenchel.steps import FISTA, PDHG, Candidate, Solver, Start

__all__ = [
    "FISTA",
    "PDHG",
    "Candidate",
    "Check",
    "NotCertifiedWarning",
    "Result",
    "Solver",
    "Start",
    "Stop",
    "Trace",
    "solve",
]
