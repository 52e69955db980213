"""What people look at: plots and tables."""

from fenchel.report.convergence import plot_convergence
from fenchel.solver.pictures import plot_certified_path, plot_path

__all__ = ["plot_certified_path", "plot_convergence", "plot_path"]
