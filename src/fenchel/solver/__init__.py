"""Solvers, and the loop that runs them."""

from fenchel.solver import theory
from fenchel.solver.explain import Explanation, explain
from fenchel.solver.learner import StreamResult
from fenchel.solver.many import solve_many
from fenchel.solver.margins import margin_interval
from fenchel.solver.paths.certified import certified_path
from fenchel.solver.paths.grid import Path, path
from fenchel.solver.paths.intervals import CertifiedPath, Knot
from fenchel.solver.result import Check, NotCertifiedWarning, Result, Stop, Trace
from fenchel.solver.separability import separable
from fenchel.solver.solve import solve
from fenchel.solver.stream import StreamError, stream
from fenchel.steps import FISTA, PDHG, BlockSDCA, Candidate, MatrixNewton, Solver, Start
from fenchel.steps.stochastic.choice import LamChoice

__all__ = [
    "FISTA",
    "PDHG",
    "BlockSDCA",
    "Candidate",
    "CertifiedPath",
    "Check",
    "Explanation",
    "Knot",
    "LamChoice",
    "MatrixNewton",
    "NotCertifiedWarning",
    "Path",
    "Result",
    "Solver",
    "Start",
    "Stop",
    "StreamError",
    "StreamResult",
    "Trace",
    "certified_path",
    "explain",
    "margin_interval",
    "path",
    "separable",
    "solve",
    "solve_many",
    "stream",
    "theory",
]
