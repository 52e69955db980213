"""A problem with k scores per sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fenchel.data.convert import as_codes, as_weights
from fenchel.data.design import Design
from fenchel.data.multi_products import BlockProducts
from fenchel.data.products import Products
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_double, require_flag, require_instance, require_norm_or_curvature
from fenchel.problem.losses.multiclass import Codes, MulticlassLoss, Multinomial, multipliers, off_of
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.statement import EmpiricalRisk, Shape
from fenchel.problem.vectors import frozen


@dataclass(frozen=True, init=False, eq=False)
class MulticlassProblem(EmpiricalRisk):
    """Minimise the weighted mean of a loss of k scores, one for each class, plus a penalty of all weights.

    With scores z_i = B x_i + b in R^k, a row of B for each class, and W = sum s_i::

        primal   P(B, b)  = (1/W) sum_i s_i phi(z_i; y_i) + R(B)
        dual     D(alpha) = -(1/W) sum_i s_i phi*(-alpha_i; y_i) - R*(V),   V = (1/W) sum_i s_i alpha_i x_i'
                 subject to sum_i s_i alpha_ij = 0 for every class j if there are intercepts
        link     B = grad R*(V)

    For every B, b and feasible alpha, the Fenchel-Young inequalities phi(z) + phi*(-a) >= -a.z and
    R(B) + R*(V) >= <B, V> give P - D >= -(1/W) sum_i s_i alpha_i.(z_i - B x_i) = -b.(1/W) sum_i s_i alpha_i = 0,
    with equality if -alpha_i is in the subdifferential of phi at z_i and B = grad R*(V).

    Both losses have alpha_i = e_y - p_i with p_i in the probability simplex; -phi* is the entropy of p_i for
    `losses.Multinomial` (softmax regression), 1 - p_iy for `losses.CrammerSinger` (multiclass SVM).
    R is a penalty of the k d entries of B in row-major order.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n, d)
    y : array of n classes
        Integers 0 .. k-1.
    loss : MulticlassLoss, default Multinomial()
    penalty : Penalty, default L2(1e-4)
        It must be 0 at zero and nowhere else: all but `Entropy` and `FusedL1`.
    sample_weight : array of n weights >= 0, optional
    intercept : bool, default False
        Whether to fit b, which is not penalised.
    n_classes : int, optional
        k, if the last classes may be empty.
    """

    X: Design
    y: Codes
    loss: MulticlassLoss
    penalty: Penalty
    weights: Vector
    intercept: bool
    n_classes: int

    def __init__(
        self,
        X: MatrixLike | Design,
        y: VectorLike,
        loss: MulticlassLoss | None = None,
        penalty: Penalty | None = None,
        sample_weight: VectorLike | None = None,
        intercept: bool = False,
        n_classes: int | None = None,
    ) -> None:
        loss = Multinomial() if loss is None else loss
        penalty = L2(1e-4) if penalty is None else penalty
        require_instance(loss, MulticlassLoss, "loss", "Multinomial()")
        require_instance(penalty, Penalty, "penalty", "L2(1e-4)")
        require_flag(intercept, "intercept")
        for part in (loss, penalty):
            require_double(part)
        if isinstance(X, Products) and not isinstance(X, Design):
            raise TypeError(f"a MulticlassProblem needs a stored matrix (a Design), got a {type(X).__name__}")
        matrix = Design.of(X)
        n, d = matrix.shape
        codes, k = as_codes(y, n, n_classes)
        penalty.check(k * d)
        require_norm_or_curvature(penalty)
        if penalty.value(np.zeros(k * d)) != 0.0 or penalty.null_space(k * d) is not None:
            raise TypeError(f"a MulticlassProblem needs a penalty that is 0 at zero and nowhere else, got {penalty!r}")
        weights = as_weights(sample_weight, n)
        values = (matrix, frozen(codes), loss, penalty, frozen(weights), bool(intercept), k)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """k x d weights, k intercepts, n x k multipliers."""
        (n, d), k = self.shape, self.n_classes
        return (k, d), (k,), (n, k)

    def in_domain(self, alpha: Vector) -> Vector:
        """Multipliers e_y - p with p in the simplex."""
        return multipliers(off_of(alpha, self.y), self.y)

    def first_intercept(self) -> Vector:
        """Zero for every class."""
        return np.zeros(self.n_classes)

    @cached_property
    def products(self) -> BlockProducts:
        """Products with X for all classes at once."""
        return BlockProducts(self.X, self.weights)

    @cached_property
    def class_weights(self) -> Vector:
        """The sum of s_i over the samples of each class."""
        return np.array([float(np.sum(self.weights[self.y == j])) for j in range(self.n_classes)])

    def scores(self, B: Vector, b: Vector | float = 0.0) -> Vector:
        """Z = X B' + b, n x k."""
        return self.products.scores(B) + b

    def dual_vector(self, alpha: Vector) -> Vector:
        """V = (1/W) sum_i s_i alpha_i x_i', k x d."""
        return self.products.combination(np.asarray(alpha, dtype=np.float64)) / self.total_weight

    def primal(self, B: Vector, b: Vector | float = 0.0) -> float:
        """P(B, b)."""
        B = np.asarray(B, dtype=np.float64)
        return self.mean(self.loss.value(self.scores(B, b), self.y)) + self.penalty.value(B.ravel())

    def dual(self, alpha: Vector) -> float:
        """D(alpha), -inf if infeasible; sum_i s_i alpha_i = 0 is checked up to rounding (certificates are exact)."""
        alpha = np.asarray(alpha, dtype=np.float64)
        weighted = self.weights[:, None] * alpha
        if self.intercept and np.any(np.abs(weighted.sum(axis=0)) > 1e-9 * np.abs(weighted).sum()):
            return -np.inf
        return -self.mean(self.loss.conjugate(-alpha, self.y)) - self.penalty.conjugate(self.dual_vector(alpha).ravel())

    def link(self, alpha: Vector) -> Vector:
        """B(alpha) = grad R*(V); for strongly convex penalties."""
        V = self.dual_vector(alpha)
        return self.penalty.grad_conjugate(V.ravel()).reshape(V.shape)

    def __repr__(self) -> str:
        n, d = self.shape
        b = ", intercept" if self.intercept else ""
        return f"MulticlassProblem({n} x {d}, {self.n_classes} classes, {self.loss!r}, {self.penalty!r}{b})"
