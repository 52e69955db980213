"""Plots and tables."""

from fenchel.draw.paths import plot_certified_path, plot_path
from fenchel.report.convergence import plot_convergence

__all__ = ["plot_certified_path", "plot_convergence", "plot_path"]
