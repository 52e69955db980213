"""Algorithms as steps: the solvers run them to find models, the certificate runs them to raise its bound."""

from fenchel.steps.approx import APPROX
from fenchel.steps.base import Candidate, Overflow, Progress, Residual, Scores, Solver, Start
from fenchel.steps.baselines import SGD, Pegasos
from fenchel.steps.blocks import BlockSDCA
from fenchel.steps.fista import FISTA
from fenchel.steps.matrix_newton import MatrixNewton
from fenchel.steps.newton import Newton
from fenchel.steps.pdhg import PDHG
from fenchel.steps.primal_cd import PrimalCD
from fenchel.steps.sdca import SDCA
from fenchel.steps.total_variation import TotalVariation
from fenchel.steps.trend import Trend

__all__ = [
    "APPROX",
    "FISTA",
    "PDHG",
    "SDCA",
    "SGD",
    "BlockSDCA",
    "Candidate",
    "MatrixNewton",
    "Newton",
    "Overflow",
    "Pegasos",
    "PrimalCD",
    "Progress",
    "Residual",
    "Scores",
    "Solver",
    "Start",
    "TotalVariation",
    "Trend",
]
