"""Kernel machines: |f|_H^2 / 2 + C sum_i s_i loss(f(x_i) + b; y_i), b unpenalised; |w|_2^2 / 2 for a linear kernel.

They store the dual coefficients C s_i alpha_i, which give the multipliers, and f = sum_i C s_i alpha_i k(x_i, .).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.adapters.claim import Claim, LinearClaim
from fenchel.certificate.adapters.fitted import ModelFit, require
from fenchel.certificate.adapters.registry import adapters_of
from fenchel.data.convert import as_vector
from fenchel.data.typing import Indices, Vector
from fenchel.kernel import Gram, kernel_of
from fenchel.problem import KernelProblem, Problem
from fenchel.problem.losses import EpsilonInsensitive, Hinge, Loss
from fenchel.problem.penalties import L2
from fenchel.problem.problem import lam_from_C

svm = adapters_of("sklearn.svm")


@dataclass(frozen=True, eq=False)
class Machine(ModelFit):
    """A fitted SVC or SVR."""

    @classmethod
    def of(cls, fit: ModelFit) -> Machine:
        """Raise if it is not fitted, to other data, or has a kernel that is not positive semidefinite."""
        model, machine = fit.model, cls(fit.model, fit.X, fit.y, fit.sample_weight)
        require(model, hasattr(model, "support_"), "it is not fitted; call its fit first")
        require(model, model.kernel != "sigmoid", "its kernel 'sigmoid' is not positive semidefinite")
        inside = bool(np.max(model.support_, initial=-1) < np.count_nonzero(machine.s > 0.0))
        require(model, inside, f"it has support vectors beyond the {machine.n} rows of X: pass the data of the fit")
        return machine

    @property
    def is_linear(self) -> bool:
        """Whether it has weights."""
        return isinstance(self.model.kernel, str) and self.model.kernel == "linear"

    @property
    def width(self) -> int:
        return super().width if self.is_linear else int(self.model.shape_fit_[1])

    @cached_property
    def gram(self) -> Gram:
        """The matrix of its kernel."""
        model = self.model
        options: dict[str, Any] = {}
        if model.kernel in ("rbf", "poly"):
            options["gamma"] = float(model._gamma)
        if model.kernel == "poly":
            options |= {"degree": int(model.degree), "coef0": float(model.coef0)}
        return Gram(self.matrix, kernel_of(model.kernel, **options), float(model.cache_size))

    def problem(self, y: Vector, loss: Loss, penalty: L2, weights: Vector) -> Problem:
        """What it minimises, divided by C times the sum of the weights."""
        if self.is_linear:
            return Problem(self.matrix, y, loss, penalty, weights, intercept=True)
        return KernelProblem(self.gram, y, loss, penalty, sample_weight=weights, intercept=True)

    def function(self, k: int, duals: Vector) -> Vector:
        """The weights of problem k, or the coefficients of its function."""
        return self.coef[k] if self.is_linear else duals

    @cached_property
    def support(self) -> Indices:
        """The rows of its support vectors: `support_` counts samples of positive weight only."""
        return np.asarray(np.flatnonzero(self.s > 0.0)[self.model.support_], dtype=np.int64)

    @property
    def intercepts(self) -> Vector:
        """b of each problem."""
        return np.asarray(self.model.intercept_, dtype=np.float64).ravel()


@svm("SVC")
def svc(fit: ModelFit) -> list[Claim]:
    """|f|_H^2 / 2 + C sum_i s_i c_i max(0, 1 - y_i (f(x_i) + b)) for each pair of classes, over the samples of the two.

    c_i is the weight of the class. The first class of a pair is the positive one; the second if there are only two.
    """
    machine = Machine.of(fit)
    labels, k, C = machine.labels, len(fit.model.classes_), float(fit.model.C)
    weights = machine.s * np.asarray(fit.model.class_weight_, dtype=np.float64)[labels]
    pairs = [(1, 0)] if k == 2 else list(combinations(range(k), 2))
    claims: list[Claim] = []
    for number, ((first, second), b) in enumerate(zip(pairs, machine.intercepts, strict=True)):
        inside = (labels == first) | (labels == second)
        part = np.where(inside, weights, 0.0)
        W = float(part.sum())
        # the other samples have weight zero, so their sign does not matter
        problem = machine.problem(np.where(labels == second, -1.0, 1.0), Hinge(), _ridge(fit, C, W), part)
        duals = _pair_duals(machine, first, second)
        w, alpha = machine.function(number, duals), _multipliers(duals, C, part)
        claims.append(LinearClaim(problem, w, b, alpha, scale=W / float(machine.s.sum()), evidence=k == 2))
    return claims


@svm("SVR")
def svr(fit: ModelFit) -> list[Claim]:
    """|f|_H^2 / 2 + C sum_i s_i max(0, |f(x_i) + b - y_i| - epsilon); b is not penalised."""
    machine = Machine.of(fit)
    model, s, C = fit.model, machine.s, float(fit.model.C)
    y = as_vector(fit.y, machine.n, "y")
    problem = machine.problem(y, EpsilonInsensitive(float(model.epsilon)), _ridge(fit, C, float(s.sum())), s)
    duals = np.zeros(machine.n)
    duals[machine.support] = _dense(model.dual_coef_)[0]
    w = machine.function(0, duals)
    return [LinearClaim(problem, w, machine.intercepts[0], _multipliers(duals, C, s))]


def _ridge(fit: ModelFit, C: float, W: float) -> L2:
    lam = lam_from_C(C, W)
    require(fit.model, 0.0 < lam < np.inf, "its C leaves no penalty")
    return L2(lam)


def _pair_duals(fit: Machine, first: int, second: int) -> Vector:
    """The dual coefficients of one pair.

    LIBSVM stores them in k - 1 rows; support vectors are sorted by class, and a vector of class i has its coefficient
    against class j in row j - 1 if j > i, else in row j.
    """
    model, duals, support = fit.model, np.zeros(fit.n), fit.support
    stored, ends = _dense(model.dual_coef_), np.cumsum(model.n_support_)
    for own, other in ((first, second), (second, first)):
        of_class = slice(ends[own] - model.n_support_[own], ends[own])
        row = other - 1 if other > own else other
        duals[support[of_class]] = stored[row, of_class]
    return duals


def _multipliers(duals: Vector, C: float, weights: Vector) -> Vector:
    return np.divide(duals, C * weights, out=np.zeros_like(duals), where=weights > 0)


def _dense(matrix: Any) -> Vector:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
