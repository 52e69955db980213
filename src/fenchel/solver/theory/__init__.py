"""Sufficient numbers of steps: the theorems of the papers, as functions of a problem's constants."""

from fenchel.solver.theory.bounds import GapBound, LipschitzBound, SmoothBound
from fenchel.solver.theory.descent import descent_lipschitz, descent_smooth, elastic_net, lasso
from fenchel.solver.theory.interpolation import (
    AcceleratedAscentBound,
    AscentBound,
    dykstra,
    largest_smoothness,
    mirror_mistakes,
    mirror_objective,
    perceptron_corrections,
    perceptron_steps,
    weights_distance,
)
from fenchel.solver.theory.margin import (
    margin_between,
    margin_dual,
    margin_half,
    margin_logistic,
    margin_momentum,
    margin_multiclass,
    margin_sampling,
    margin_sampling_steps,
)
from fenchel.solver.theory.pgs import least_samples, pgs_error, pgs_iterations, pgs_lam, pgs_regret, pgs_steps
from fenchel.solver.theory.sdca import sdca, sdca_lipschitz, sdca_sgd, sdca_smooth

__all__ = [
    "AcceleratedAscentBound",
    "AscentBound",
    "GapBound",
    "LipschitzBound",
    "SmoothBound",
    "descent_lipschitz",
    "descent_smooth",
    "dykstra",
    "elastic_net",
    "largest_smoothness",
    "lasso",
    "least_samples",
    "margin_between",
    "margin_dual",
    "margin_half",
    "margin_logistic",
    "margin_momentum",
    "margin_multiclass",
    "margin_sampling",
    "margin_sampling_steps",
    "mirror_mistakes",
    "mirror_objective",
    "perceptron_corrections",
    "perceptron_steps",
    "pgs_error",
    "pgs_iterations",
    "pgs_lam",
    "pgs_regret",
    "pgs_steps",
    "sdca",
    "sdca_lipschitz",
    "sdca_sgd",
    "sdca_smooth",
    "weights_distance",
]
