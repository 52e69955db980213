"""What people look at: plots and tables."""

from fenchel.report.convergence import plot_convergence

__all__ = ["plot_convergence"]
