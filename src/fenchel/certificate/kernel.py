"""The judge of problems with a kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fenchel.certificate.bounds.dual_point import LowerBound
from fenchel.certificate.bounds.rounding import DualPoint, PrimalBound, dual_bound
from fenchel.certificate.certificate import Certificate
from fenchel.certificate.judge import Judge, judge_of
from fenchel.data.typing import Vector
from fenchel.problem import KernelProblem
from fenchel.steps import Residual


class KernelJudge(Judge):
    """Also tries the multipliers that the coefficients stand for."""

    problem: KernelProblem

    def try_gradient(self, z: Vector | None = None) -> None:
        """The gradient point, and alpha_i = lam W beta_i / s_i within its domain: at the optimum beta = a / lam."""
        super().try_gradient(z)
        problem = self.problem
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            alpha = np.nan_to_num(problem.penalty.lam * problem.total_weight * self.w / problem.weights)
        self.try_point(self.free.satisfy(problem, DualPoint(alpha, how="coefficients")))

    def _residual_bound(self, point: DualPoint, w: Vector, primal: PrimalBound, residual: Residual) -> LowerBound:
        """With v by the multipliers, which are its coefficients, not by the weights."""
        found, own = super()._residual_bound(point, w, primal, residual), dual_bound(self.problem, point)
        return replace(found, v=own.v, error=own.error, distance=None)

    def certificate(self, tol: float, atol: float = 0.0) -> Certificate:
        """What has been proven, and what of the kernel it assumes."""
        found, assumption = super().certificate(tol, atol), self.problem.gram.assumption
        return replace(found, how=f"{found.how}, {assumption}") if assumption else found


judge_of.register(KernelProblem, KernelJudge)
