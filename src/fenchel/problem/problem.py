"""The problem with one score per sample: primal, dual, and the link between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.data import limits
from fenchel.data.convert import as_signs, as_vector, as_weights
from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_bounded_dual, require_double, require_flag, require_instance
from fenchel.problem.intercept import best_shift
from fenchel.problem.losses import Loss, Squared
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.statement import EmpiricalRisk, Shape
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import frozen


@dataclass(frozen=True, init=False, eq=False)
class Problem(EmpiricalRisk):
    """Minimise the weighted mean loss plus a penalty.

    With scores z_i = x_i.w + b and W = sum s_i::

        primal   P(w, b)  = (1/W) sum_i s_i phi(z_i; y_i) + R(w)
        dual     D(alpha) = -(1/W) sum_i s_i phi*(-alpha_i; y_i) - R*(v),   v = (1/W) sum_i s_i alpha_i x_i
                 subject to sum_i s_i alpha_i = 0 if there is an intercept
        link     w = grad R*(v)

    and P(w, b) >= D(alpha) for every w, b and feasible alpha.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Design or other Products of shape (n, d)
        See `Design` for the formats used in place and those that are converted. `Products` is enough for certificates
        and first-order solvers.
    y : array of n targets
        -1 and +1 for classification losses; a problem with one of them only can be certified, but not solved.
    loss : Loss, default Squared()
    penalty : Penalty, default L2(1e-4)
    sample_weight : array of n weights >= 0, optional
        Weight 2 is equivalent to repeating the row.
    intercept : bool, default False
        Whether to fit b, which is not penalised.
    """

    X: Products
    y: Vector
    loss: Loss
    penalty: Penalty
    weights: Vector
    intercept: bool

    def __init__(
        self,
        X: MatrixLike | Products,
        y: VectorLike,
        loss: Loss | None = None,
        penalty: Penalty | None = None,
        sample_weight: VectorLike | None = None,
        intercept: bool = False,
    ) -> None:
        loss = Squared() if loss is None else loss
        penalty = L2(1e-4) if penalty is None else penalty
        require_instance(loss, Loss, "loss", "Hinge()")
        require_instance(penalty, Penalty, "penalty", "L2(1e-4)")
        require_flag(intercept, "intercept")
        for part in (loss, penalty):
            require_double(part)
        matrix = X if isinstance(X, Products) else Design(X)
        n, d = matrix.shape
        penalty.check(d)
        require_bounded_dual(penalty)
        y = as_signs(y, n) if loss.is_classification else as_vector(y, n, "y")
        weights = as_weights(sample_weight, n)
        values = (matrix, frozen(y), loss, penalty, frozen(weights), bool(intercept))
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    def with_lam(self, lam: float) -> Problem:
        """The same problem with another lam."""
        return self.replace(penalty=self.penalty.with_lam(lam))

    def unsolvable(self) -> str | None:
        """One label everywhere."""
        if not (self.loss.is_classification and self.y.min() == self.y.max()):
            return None
        return f"y has one class only ({self.y[0]:+g} everywhere); a classifier needs two"

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """d weights, one intercept, n multipliers."""
        n, d = self.shape
        return (d,), (), (n,)

    def in_domain(self, alpha: Vector) -> Vector:
        """alpha clipped to the domain of the conjugate; 0 for samples of weight zero."""
        inside = np.clip(alpha, *self.domain) if self.bounded else alpha.copy()
        return inside if self.weightless else np.where(self.weights > 0, inside, 0.0)

    def first_intercept(self) -> float:
        """The best b at w = 0, from a subset of the samples; 0 for labels.

        Targets may be far from 0, and steps on bounded multipliers move b only slowly.
        """
        if self.loss.is_classification or not self.intercept:
            return 0.0
        few = max(1, limits.TUNING.product // 10)  # the search takes about ten evaluations
        subset = slice(None, None, -(-self.shape[0] // few))
        y, weights = self.y[subset], self.weights[subset]
        b = best_shift(self.loss, np.zeros_like(y), y, weights)
        return b if np.isfinite(b) else 0.0

    @cached_property
    def conjugate_at_zero(self) -> Vector:
        """phi*(0; y_i) = -min phi(.; y_i)."""
        if self.loss.is_classification:
            minus, plus = self.loss.conjugate(np.zeros(2), np.array([-1.0, 1.0]))
            return np.asarray(np.where(self.y > 0, plus, minus))
        return self.loss.conjugate(np.zeros_like(self.y), self.y)

    @cached_property
    def loss_at_zero(self) -> float:
        """The mean loss where all scores are 0."""
        return self.mean(self.loss.value(np.zeros(self.shape[0]), self.y))

    @cached_property
    def domain(self) -> tuple[Vector, Vector]:
        """The interval of each multiplier in which the conjugate is finite."""
        return self.loss.domain(self.y)

    @cached_property
    def bounded(self) -> bool:
        """Whether the domain of some multiplier is not the whole line."""
        low, high = self.domain
        return bool(np.any(low > -np.inf) or np.any(high < np.inf))

    @cached_property
    def target_sizes(self) -> Vector | float:
        """|y_i|; the scalar 1 for labels."""
        return 1.0 if self.loss.is_classification else np.abs(self.y)

    def new_rows(self, X: MatrixLike | Products) -> Products:
        """New samples with the columns of X, the constant one included."""
        return X if isinstance(X, Products) else Design(X, constant=self.X.constant)

    def scores(self, w: Vector, b: float = 0.0) -> Vector:
        """z = X w + b."""
        z = self.X.matvec(w)
        if b:
            z += b
        return z

    def dual_vector(self, alpha: Vector) -> Vector:
        """v = (1/W) sum_i s_i alpha_i x_i."""
        return self.X.rmatvec(self.weights * alpha) / self.total_weight

    def primal(self, w: Vector, b: float = 0.0) -> float:
        """P(w, b)."""
        return self.mean(self.loss.value(self.scores(w, b), self.y)) + self.penalty.value(
            np.asarray(w, dtype=np.float64)
        )

    def dual(self, alpha: Vector) -> float:
        """D(alpha), -inf if infeasible; sum_i s_i alpha_i = 0 is checked up to rounding (certificates are exact)."""
        alpha = np.asarray(alpha, dtype=np.float64)
        weighted = self.weights * alpha
        if self.intercept and abs(weighted.sum()) > 1e-9 * np.abs(weighted).sum():
            return -np.inf
        return -self.mean(self.loss.conjugate(-alpha, self.y)) - self.penalty.conjugate(self.dual_vector(alpha))

    def link(self, alpha: Vector) -> Vector:
        """w(alpha) = grad R*(v); for strongly convex penalties."""
        return self.penalty.grad_conjugate(self.dual_vector(alpha))

    def lam_max(self) -> float:
        """The smallest lam for which w = 0 is optimal (with the best b); for sparsity-inducing penalties.

        If the loss has a kink at the best b: some lam for which w = 0 is optimal, not always the smallest.
        """
        sparsity = self.penalty.sparsity
        if not sparsity:
            raise TypeError(f"{type(self.penalty).__name__} has no lam_max: no lam makes w exactly zero")
        if self.penalty.null_space(self.shape[1]) is not None:
            raise TypeError("lam_max needs a penalty that is 0 at w = 0 only; restrict w to its null space instead")
        z = np.zeros(self.shape[0])
        if self.intercept:
            z += best_shift(self.loss, z, self.y, self.weights)
        v = self.dual_vector(self._balanced_multipliers(z))
        return self.penalty.slope_norm(v) / sparsity

    def _balanced_multipliers(self, z: Vector) -> Vector:
        """-alpha_i in the subdifferential at z_i; at the best intercept, with sum_i s_i alpha_i = 0 if kinks allow."""
        alpha = -self.loss.derivative(z, self.y)
        if not self.intercept or Trait.DIFFERENTIABLE_LOSS in self.loss.traits:
            return alpha
        high, low = (-end for end in self.loss.subdifferential(z, self.y))
        least, most = float(self.weights @ low), float(self.weights @ high)
        fraction = float(np.clip(-least / (most - least), 0.0, 1.0)) if most > least else 0.0
        return np.asarray(low + fraction * (high - low))

    def __repr__(self) -> str:
        n, d = self.shape
        b = ", intercept" if self.intercept else ""
        return f"Problem({n} x {d}, {self.loss!r}, {self.penalty!r}{b})"


# lam of objectives with C and alpha: dividing an objective by a positive factor keeps its minimisers ----------------


def lam_from_C(C: float, total_weight: float) -> float:
    """lam of  C sum_i s_i phi_i + R(w):  divide by C W."""
    return 1.0 / (C * total_weight)


def lam_from_sum(alpha: float, total_weight: float, loss_factor: float = 1.0) -> float:
    """lam of  sum_i s_i loss_i + alpha R(w)  with loss_i = loss_factor phi_i:  divide by loss_factor W."""
    return alpha / (loss_factor * total_weight)


def lam_from_mean(alpha: float) -> float:
    """lam of  mean_i phi_i + alpha R(w):  alpha itself."""
    return alpha
