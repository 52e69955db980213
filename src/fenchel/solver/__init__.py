"""How: solvers, and the one loop that runs them."""

from fenchel.solver.base import Candidate, Check, NotCertifiedWarning, Result, Solver, Start, Stop, Trace
from fenchel.solver.fista import FISTA
from fenchel.solver.pdhg import PDHG
from fenchel.solver.solve import solve

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
