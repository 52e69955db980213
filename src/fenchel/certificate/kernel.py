"""The judge of problems with a kernel."""

from __future__ import annotations

import numpy as np

from fenchel.certificate.bounds.rounding import DualPoint
from fenchel.certificate.judge import Judge, judge_of
from fenchel.data.typing import Vector
from fenchel.problem import KernelProblem


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


judge_of.register(KernelProblem, KernelJudge)
