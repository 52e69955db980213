"""Algorithms as steps, run by the solvers and by the certificate's search for dual points."""

from fenchel.steps.base import Candidate, Overflow, Progress, Residual, Scores, Solver, Start
from fenchel.steps.denoising.total_variation import TotalVariation
from fenchel.steps.denoising.trend import Trend
from fenchel.steps.dual_ascent.multiclass import BlockSDCA
from fenchel.steps.dual_ascent.sdca import SDCA
from fenchel.steps.first_order.approx import APPROX
from fenchel.steps.first_order.fista import FISTA
from fenchel.steps.first_order.pdhg import PDHG
from fenchel.steps.interpolation.dykstra import Dykstra
from fenchel.steps.interpolation.gradient import DualGradient
from fenchel.steps.interpolation.mirror import EuclideanDescent, Mirror, Perceptron
from fenchel.steps.interpolation.newton import IntervalNewton
from fenchel.steps.interpolation.separation import SquaredHinge
from fenchel.steps.kernel.ascent import KernelAscent
from fenchel.steps.kernel.pgs import KernelPGS
from fenchel.steps.linear_program.interior import InteriorPoint
from fenchel.steps.linear_program.margin import LinearProgram
from fenchel.steps.margin.active_set import ActiveSet
from fenchel.steps.margin.baselines import BatchPerceptron, Sublinear
from fenchel.steps.margin.descent import GradientDescent, Margin, NormalizedGradient
from fenchel.steps.margin.finisher import NearestPoints
from fenchel.steps.margin.growing import Growing
from fenchel.steps.margin.kernel import KernelGrowing, KernelHardMargin
from fenchel.steps.margin.rounds import HardMargins
from fenchel.steps.margin.sampling import MarginSampling
from fenchel.steps.newton.multiclass import MatrixNewton
from fenchel.steps.newton.newton import Newton
from fenchel.steps.stochastic.pgs import PGS, SGD, Pegasos
from fenchel.steps.unpenalised.least_squares import LeastSquares
from fenchel.steps.unpenalised.multiclass import FreeMatrixNewton
from fenchel.steps.unpenalised.newton import FreeNewton
from fenchel.steps.unpenalised.program import FreeProgram
from fenchel.steps.working_set.dual_newton import DualNewton
from fenchel.steps.working_set.nonnegative import NonNegativeNewton
from fenchel.steps.working_set.primal_cd import PrimalCD
from fenchel.steps.working_set.sparse_path import SparsePath

__all__ = [
    "APPROX",
    "FISTA",
    "PDHG",
    "PGS",
    "SDCA",
    "SGD",
    "ActiveSet",
    "BatchPerceptron",
    "BlockSDCA",
    "Candidate",
    "DualGradient",
    "DualNewton",
    "Dykstra",
    "EuclideanDescent",
    "FreeMatrixNewton",
    "FreeNewton",
    "FreeProgram",
    "GradientDescent",
    "Growing",
    "HardMargins",
    "InteriorPoint",
    "IntervalNewton",
    "KernelAscent",
    "KernelGrowing",
    "KernelHardMargin",
    "KernelPGS",
    "LeastSquares",
    "LinearProgram",
    "Margin",
    "MarginSampling",
    "MatrixNewton",
    "Mirror",
    "NearestPoints",
    "Newton",
    "NonNegativeNewton",
    "NormalizedGradient",
    "Overflow",
    "Pegasos",
    "Perceptron",
    "PrimalCD",
    "Progress",
    "Residual",
    "Scores",
    "Solver",
    "SparsePath",
    "SquaredHinge",
    "Start",
    "Sublinear",
    "TotalVariation",
    "Trend",
]
