"""Certificates of interpolations: a feasible point, a lower bound on the penalty of every one, or none can exist."""

from fenchel.certificate.interpolation.infeasible import Infeasible
from fenchel.certificate.interpolation.judge import InterpolationJudge

__all__ = ["Infeasible", "InterpolationJudge"]
