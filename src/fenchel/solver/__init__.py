"""How: solvers, and the one loop that runs them."""

from fenchel.solver import theory
from fenchel.solver.base import Check, NotCertifiedWarning, Result, Stop, Trace
from fenchel.solver.many import solve_many
from fenchel.solver.solve import solve
from fenchel.steps import FISTA, PDHG, BlockSDCA, Candidate, MatrixNewton, Solver, Start

__all__ = [
    "FISTA",
    "PDHG",
    "BlockSDCA",
    "Candidate",
    "Check",
    "MatrixNewton",
    "NotCertifiedWarning",
    "Result",
    "Solver",
    "Start",
    "Stop",
    "Trace",
    "solve",
    "solve_many",
    "theory",
]
