"""Sufficient numbers of steps: the theorems of the papers, as functions of a problem's constants."""

from fenchel.solver.theory.bounds import GapBound, LipschitzBound, SmoothBound
from fenchel.solver.theory.descent import descent_lipschitz, descent_smooth, elastic_net, lasso
from fenchel.solver.theory.sdca import sdca, sdca_lipschitz, sdca_sgd, sdca_smooth

__all__ = [
    "GapBound",
    "LipschitzBound",
    "SmoothBound",
    "descent_lipschitz",
    "descent_smooth",
    "elastic_net",
    "lasso",
    "sdca",
    "sdca_lipschitz",
    "sdca_sgd",
    "sdca_smooth",
]
