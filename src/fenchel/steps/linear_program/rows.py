"""A piecewise linear loss with a piecewise linear penalty as one sum over rows: a linear program in free variables.

With theta = (w, b), every sample (twice for two kinks) and every term of the penalty is a row (A_k, t_k) with an
interval [l_k, u_k]:

    P(theta) = sum_k max { a_k (t_k - A_k theta) : l_k <= a_k <= u_k }        A_k = (x_i, 1) or (D_k, 0)
    D(a)     = t.a,   A'a = 0,   l <= a <= u.

The intervals contain the weights s_i / W and lam. A'a = 0 says that v = X'a of the samples is D'u, u = -a of the
penalty, and that sum_i s_i alpha_i = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fenchel.data import limits
from fenchel.data.design import Design
from fenchel.data.typing import Indices, Matrix, Vector
from fenchel.problem import Problem


@dataclass(frozen=True, eq=False)
class Rows:
    """Targets and intervals of all rows, and products with A; samples without weight are left out."""

    problem: Problem
    design: Design  # of the samples with weight, by rows if it is sparse
    kept: Indices | None  # which they are, if not all
    fraction: Vector  # s_i / W of each
    pieces: int  # rows per sample
    D: sp.csr_array | Matrix | None  # of the penalty, dense if it is small; None if it is the identity
    target: Vector
    low: Vector
    high: Vector

    @classmethod
    def of(cls, problem: Problem) -> Rows:
        """Of a problem with a straight loss and a straight penalty."""
        penalty = problem.penalty.straight(problem.shape[1])
        assert penalty is not None
        kept = None if problem.weightless or np.all(problem.weights > 0.0) else np.flatnonzero(problem.weights > 0.0)
        design = problem.design if kept is None else problem.design.of_rows(kept)
        design = design.stored_by_rows() if design.is_sparse else design
        y, s = (v if kept is None else v[kept] for v in (problem.y, problem.weights))
        fraction, pieces = s / problem.total_weight, problem.loss.pieces(y)
        return cls(
            problem,
            design,
            kept,
            fraction,
            len(pieces),
            _dense_if_small(penalty.D),
            np.concatenate([*(piece.target for piece in pieces), np.zeros(len(penalty.low))]),
            np.concatenate([*(fraction * piece.low for piece in pieces), -penalty.high]),
            np.concatenate([*(fraction * piece.high for piece in pieces), -penalty.low]),
        )

    @property
    def width(self) -> int:
        """How many entries theta has."""
        return self.problem.shape[1] + self.problem.intercept

    @property
    def n(self) -> int:
        """Samples with weight."""
        return len(self.fraction)

    @property
    def samples(self) -> int:
        """Rows of samples; those of the penalty follow."""
        return self.pieces * self.n

    def weights(self, theta: Vector) -> Vector:
        """w."""
        return theta[:-1] if self.problem.intercept else theta

    def scores(self, theta: Vector) -> Vector:
        """X w + b."""
        z = self.design.matvec(self.weights(theta))
        return z + theta[-1] if self.problem.intercept else z

    def forward(self, theta: Vector) -> Vector:
        """A theta."""
        z, w = self.scores(theta), self.weights(theta)
        return np.concatenate([*(z,) * self.pieces, w if self.D is None else self.D @ w])

    def by_sample(self, a: Vector) -> Vector:
        """The sum over the rows of each sample."""
        return a[: self.n] if self.pieces == 1 else a[: self.samples].reshape(self.pieces, -1).sum(axis=0)

    def backward(self, a: Vector) -> Vector:
        """A'a."""
        each, rest = self.by_sample(a), a[self.samples :]
        v = self.design.rmatvec(each)
        v += rest if self.D is None else self.D.T @ rest
        return np.append(v, each.sum()) if self.problem.intercept else v

    def alpha(self, a: Vector) -> Vector:
        """The multipliers of all samples, without their weights."""
        each = self.by_sample(a) / self.fraction
        if self.kept is None:
            return each
        alpha = np.zeros(self.problem.shape[0])
        alpha[self.kept] = each
        return alpha


def _dense_if_small(D: sp.csr_array | None) -> sp.csr_array | Matrix | None:
    """For a small matrix the overhead of a sparse product is all that it costs."""
    return D if D is None or D.shape[0] * D.shape[1] > limits.TUNING.product else D.toarray()
