"""The problem with functions of a kernel in place of linear ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fenchel.data.products import Products
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.kernel import Features, Gram, KernelLike, NewFeatures, kernel_of
from fenchel.kernel.functions import DEFAULTS
from fenchel.problem.checks import require_instance
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import L2
from fenchel.problem.penalties.rkhs import KernelNorm
from fenchel.problem.problem import Problem


@dataclass(frozen=True, init=False, eq=False)
class KernelProblem(Problem):
    """Minimise the weighted mean loss of f(x_i) + b plus lam/2 |f|_H^2, over the functions f of a kernel.

    The optimum is a sum f = sum_j beta_j k(x_j, .) over the samples (the representer theorem), and beta takes the place
    of the weights. With W = sum s_i, K_ij = k(x_i, x_j) and a_i = s_i alpha_i / W::

        primal   P(beta, b) = (1/W) sum_i s_i phi((K beta)_i + b; y_i) + lam/2 beta'K beta
        dual     D(alpha)   = -(1/W) sum_i s_i phi*(-alpha_i; y_i) - a'K a / (2 lam)
                 subject to sum_i a_i = 0 if there is an intercept
        link     beta = a / lam

    It is a `Problem` whose samples are the functions k(x_i, .), so that for every beta, b and feasible alpha P >= D.
    `Certificate.weights_radius` is in the norm of H, and |f(x) - f*(x)| <= sqrt(k(x, x)) times that.
    That a kernel is positive semidefinite is verified unless it is known (see `Gram`); beyond 6000 samples, and for
    functions and matrices at new samples, it is assumed.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n, d); or Gram
        n x n for kernel="precomputed". A `Gram` may be shared by several problems; it has its kernel already.
    y : array of n targets
        -1 and +1 for classification losses.
    loss : Loss, default Squared()
    penalty : L2, default L2(1e-4)
    kernel : {"rbf", "linear", "poly", "laplacian", "cosine", "precomputed"}, function or Kernel, default "rbf"
        A function f(A, B) of two blocks of rows returns the matrix of their values.
    gamma : float, "scale", "auto" or None, default "scale"
        For "rbf", "poly" and "laplacian"; "scale" is 1/(d var X), "auto" and None are 1/d.
    degree : int, default 3
    coef0 : float, default 0.0
        For "poly", (gamma x.x' + coef0)^degree.
    sample_weight : array of n weights >= 0, optional
    intercept : bool, default False
        Whether to fit b, which is not penalised.
    cache_size : float, default 200.0
        MB for rows of K.
    """

    X: Features
    penalty: KernelNorm

    def __init__(
        self,
        X: MatrixLike | Gram,
        y: VectorLike,
        loss: Loss | None = None,
        penalty: L2 | None = None,
        kernel: KernelLike = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        sample_weight: VectorLike | None = None,
        intercept: bool = False,
        cache_size: float = 200.0,
    ) -> None:
        penalty = L2(1e-4) if penalty is None else penalty
        require_instance(penalty, L2, "penalty", "L2(1e-4)")
        if isinstance(X, Gram):
            given = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0, "cache_size": cache_size}
            for name, default in {**DEFAULTS, "kernel": "rbf", "cache_size": 200.0}.items():
                if given[name] is not default and given[name] != default:
                    raise ValueError(f"a Gram has its kernel and its cache already; leave out {name}")
            gram = X
        else:
            gram = Gram(X, kernel_of(kernel, gamma, degree, coef0), cache_size)
        super().__init__(Features(gram), y, loss, KernelNorm(penalty.lam, gram), sample_weight, intercept)

    @property
    def gram(self) -> Gram:
        """K."""
        return self.X.gram

    def new_rows(self, X: MatrixLike | Products | tuple[MatrixLike, ArrayLike]) -> Products:
        """The functions k(x, .) of new samples; for proofs with a precomputed kernel, a pair (K, diagonal)."""
        return X if isinstance(X, Products) else NewFeatures(self.gram, X)

    def function_scores(self, beta: Vector, X: MatrixLike, b: float = 0.0) -> Vector:
        """f(x) + b for new samples."""
        return self.new_rows(X).matvec(np.asarray(beta, dtype=np.float64)) + b

    def __repr__(self) -> str:
        b = ", intercept" if self.intercept else ""
        parts = f"{self.gram.kernel!r}, {self.loss!r}, L2(lam={self.penalty.lam})"
        return f"KernelProblem({len(self.gram)} samples, {parts}{b})"
