"""Interpolation: the least penalty under hard constraints on the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fenchel.data.convert import as_vector, as_weights
from fenchel.data.design import Design
from fenchel.data.products import Products
from fenchel.data.repeated import RepeatedColumns
from fenchel.data.typing import Indices, Mask, Matrix, MatrixLike, Vector, VectorLike
from fenchel.problem.checks import require_count, require_double, require_flag, require_instance, require_one_of
from fenchel.problem.constraints import Constraints
from fenchel.problem.penalties import L2, Penalty
from fenchel.problem.penalties.bregman import Bregman
from fenchel.problem.sets import ClosedSet, ConvexSet
from fenchel.problem.statement import Shape, WeightedStatement
from fenchel.problem.traits import Trait
from fenchel.problem.vectors import frozen


@dataclass(frozen=True, init=False, eq=False)
class Interpolation(WeightedStatement):
    """Minimise a strongly convex penalty subject to x_i.w + b in Y_i for every sample (Raj and Bach 2020).

    It is `Problem` with the indicator of Y_i as loss, whose conjugate is the support function of Y_i. With
    sigma_i(u) = sup { u.z : z in Y_i } and W = sum s_i::

        primal   P(w)     = R(w)   subject to   z_i = x_i.w + b in Y_i
        dual     D(alpha) = -(1/W) sum_i s_i sigma_i(-alpha_i) - R*(v),   v = (1/W) sum_i s_i alpha_i x_i
                 subject to sum_i s_i alpha_i = 0 if there is an intercept
        link     w = grad R*(v)

    For feasible w, b and every alpha, sigma_i(-alpha_i) >= -alpha_i.z_i and R(w) + R*(v) >= v.w give P >= D.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n, d); or n blocks of shape (d, k)
        An array of shape (n, d, k), or a sequence of n matrices (dense or sparse): then z_i = X_i'w + b is in R^k.
    sets : set, or sequence of n sets
        Y_i: `Point`, `HalfLine`, `Interval`, `Ball`, `Box`, `Simplex` of `fenchel.sets`, with parameters for each
        sample along the first axis; or any object with `project` and `support`.
    penalty : Penalty, default L2(1.0)
        Strongly convex: L2, LpSquared, ElasticNet, Entropy, or your own. A penalty of k x d weights is one of their
        entries in row-major order.
    centre : array of weights, optional
        Minimise the Bregman divergence of the penalty from here instead: the nearest model to a given one.
    intercept : bool, default False
        Whether to fit b, which is not penalised.
    sample_weight : array of n weights >= 0, optional
        They scale the multipliers. A constraint of weight 0 is left out.
    outputs : int, optional
        k, for k scores z_i = B x_i + b, with a row of weights for each. By default the sets tell.
    on_infeasible : {"raise", "least_violation"}, default "raise"
        What to do if the constraints contradict each other: raise `Infeasible`, or look for the model whose weighted
        mean squared distance to the sets is least, and of these for the one with the least penalty.
    """

    X: Products  # a row for each score: n k rows
    constraints: Constraints
    penalty: Penalty
    weights: Vector
    intercept: bool
    n_samples: int
    weights_shape: Shape
    on_infeasible: str
    scored = "output"
    may_contradict = True

    def __init__(
        self,
        X: MatrixLike | Products | Sequence[MatrixLike],
        sets: ConvexSet | Sequence[ConvexSet],
        penalty: Penalty | None = None,
        centre: ArrayLike | None = None,
        intercept: bool = False,
        sample_weight: VectorLike | None = None,
        outputs: int | None = None,
        on_infeasible: str = "raise",
    ) -> None:
        penalty = L2(1.0) if penalty is None else penalty
        require_instance(penalty, Penalty, "penalty", "L2(1.0)")
        require_flag(intercept, "intercept")
        require_double(penalty)
        require_one_of(on_infeasible, ("raise", "least_violation"), "on_infeasible")
        if not penalty.strong_convexity > 0.0:
            raise TypeError(
                f"an Interpolation needs a strongly convex penalty, such as LpSquared(1.0, 1.1); got {penalty!r}"
            )
        n, k, rows, shape = _rows(X, sets, outputs)
        if rows.constant:
            raise ValueError("an Interpolation has no penalised intercept; pass intercept=True instead")
        penalty.check(rows.shape[1])
        if centre is not None:
            penalty = Bregman(penalty, frozen(_centre(centre, shape)))
        constraints = Constraints.of(sets, n, k)
        weights = frozen(as_weights(sample_weight, n))
        if sample_weight is not None and np.any((weights == 0.0) & (np.broadcast_to(sample_weight, n) != 0.0)):
            raise ValueError("sample_weight: the smallest positive weight vanishes beside the largest")
        values = (rows, constraints, penalty, weights, bool(intercept), n, shape, on_infeasible)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    @property
    def outputs(self) -> int:
        """k, the number of scores per sample."""
        return self.constraints.k

    @property
    def traits(self) -> frozenset[Trait]:
        """The traits of the penalty and of the sets."""
        return self.penalty.traits | (frozenset() if self.constraints.ends is None else {Trait.INTERVALS})

    @property
    def described(self) -> str:
        """Sets and penalty, for messages."""
        kinds = dict.fromkeys(type(part).__name__ for _, part in self.constraints.parts)
        return f"{self.penalty!r} with constraints ({', '.join(kinds)})"

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape]:
        """d weights, one intercept, n multipliers; with k scores per sample, k intercepts and n x k multipliers."""
        n, k = self.n_samples, self.outputs
        return self.weights_shape, () if self.is_scalar else (k,), (n,) if self.is_scalar else (n, k)

    @property
    def is_scalar(self) -> bool:
        """Whether there is one score per sample, and intercepts and multipliers have no axis for several."""
        return self.outputs == 1

    @cached_property
    def counts(self) -> Mask:
        """The samples of positive weight: the others have no constraint."""
        return self.weights > 0.0

    @cached_property
    def fractions(self) -> Vector:
        """s_i / W for every score, n x k: a multiplier alpha counts this part."""
        return np.repeat(self.weights / self.total_weight, self.outputs).reshape(-1, self.outputs)

    @cached_property
    def row_norms(self) -> Vector:
        """The 2-norm of every row of X."""
        return self.X.row_norms(2.0)

    @cached_property
    def row_gram(self) -> Matrix:
        """The inner products of all rows of X, in float64. Valid while X is unchanged."""
        return self.gram_of(None)

    def gram_of(self, rows: Indices | None) -> Matrix:
        """The inner products of some rows of X, or of all of them, in float64."""
        if self.is_stored and self.design.is_sparse:
            matrix = sp.csr_array(self.design.matrix)
            part = (matrix if rows is None else matrix[rows]).astype(np.float64)
            return np.asarray((part @ part.T).toarray())
        if rows is None and self.is_stored:
            dense = np.asarray(self.design.matrix, dtype=np.float64)
        else:
            dense = self.X.rows(np.arange(self.X.shape[0]) if rows is None else rows)
        return np.asarray(dense @ dense.T)

    def in_domain(self, alpha: Vector) -> Vector:
        """alpha moved to where -alpha_i is in the domain of sigma_i; 0 for samples of weight zero."""
        inside = -self.constraints.within_domain(-np.reshape(alpha, (-1, self.outputs)))
        return np.where(self.counts[:, None], inside, 0.0).reshape(self.shapes[2])

    @cached_property
    def intervals(self) -> tuple[Vector, Vector]:
        """The ends of the interval of every score, in row-major order: infinite for samples of weight zero."""
        assert self.constraints.ends is not None
        low, high = (end.ravel() for end in self.constraints.ends)
        counts = np.repeat(self.counts, self.outputs)
        return np.where(counts, low, -np.inf), np.where(counts, high, np.inf)

    def distances(self, z: Vector) -> Vector:
        """Of all scores, in row-major order, from their intervals."""
        low, high = self.intervals
        return np.maximum(np.maximum(low - z, z - high), 0.0)

    def weighted(self, alpha: Vector) -> Vector:
        """beta_ij = s_i alpha_ij / W, n x k."""
        return np.asarray(self.fractions * np.reshape(alpha, (-1, self.outputs)))

    def unweighted(self, beta: Vector) -> Vector:
        """The multipliers alpha of a beta; 0 for samples of weight zero."""
        beta = beta.reshape(self.fractions.shape)
        alpha = np.divide(beta, self.fractions, out=np.zeros_like(beta), where=self.fractions > 0.0)
        return np.asarray(alpha.reshape(self.shapes[2]))

    def shaped(self, w: Vector, b: Vector) -> tuple[Vector, float | Vector]:
        """Weights and k intercepts in the shapes of a model."""
        return w.reshape(self.weights_shape), float(b[0]) if self.is_scalar else b.copy()

    def totals(self, beta: Vector) -> Vector:
        """sum_i beta_ij for every output j, of an array in row-major order."""
        return np.asarray(beta.reshape(-1, self.outputs).sum(axis=0))

    def first_intercept(self) -> float | Vector:
        """The median of the projections of 0."""
        if not self.intercept:
            return 0.0 if self.is_scalar else np.zeros(self.outputs)
        at = self.constraints.project(np.zeros((self.n_samples, self.outputs)))
        b = np.median(at[self.counts], axis=0)
        return float(b[0]) if self.is_scalar else b

    def scores(self, w: Vector, b: float | Vector = 0.0) -> Vector:
        """z = x_i.w + b, of the shape of the multipliers."""
        return self.X.matvec(np.ravel(w)).reshape(self.shapes[2]) + b

    def dual_vector(self, alpha: Vector) -> Vector:
        """v = (1/W) sum_i s_i alpha_i x_i, of the shape of the weights."""
        return self.X.rmatvec(self.weighted(alpha).ravel()).reshape(self.weights_shape)

    def violation(self, w: Vector, b: float | Vector = 0.0) -> float:
        """The largest distance of a score to its set, as computed."""
        Z = np.reshape(self.scores(w, b), (-1, self.outputs))
        distance = np.linalg.norm(Z - self.constraints.project(Z), axis=1)
        return float(distance[self.counts].max(initial=0.0))

    def primal(self, w: Vector) -> float:
        """R(w)."""
        return self.penalty.value(np.ravel(np.asarray(w, dtype=np.float64)))

    def dual(self, alpha: Vector) -> float:
        """D(alpha), -inf if infeasible; sum_i s_i alpha_i = 0 is checked up to rounding (certificates are exact)."""
        A = np.reshape(np.asarray(alpha, dtype=np.float64), (-1, self.outputs))
        weighted = self.fractions * A
        if self.intercept and np.any(np.abs(weighted.sum(axis=0)) > 1e-9 * np.abs(weighted).sum()):
            return -np.inf
        return -self.mean(self.constraints.support(-A)) - self.penalty.conjugate(self.dual_vector(A).ravel())

    def link(self, alpha: Vector) -> Vector:
        """w(alpha) = grad R*(v)."""
        return self.penalty.grad_conjugate(self.dual_vector(alpha).ravel()).reshape(self.weights_shape)

    def __repr__(self) -> str:
        b = ", intercept" if self.intercept else ""
        several = f", {self.outputs} scores each" if self.outputs > 1 else ""
        return f"Interpolation({self.n_samples} samples{several}, {self.X.shape[1]} weights, {self.described}{b})"


def _rows(
    X: MatrixLike | Products | Sequence[MatrixLike], sets: ConvexSet | Sequence[ConvexSet], outputs: int | None
) -> tuple[int, int, Products, Shape]:
    """n, k, the matrix with a row for each score, and the shape of the weights."""
    if outputs is not None:
        require_count(outputs, "outputs", "scores")
    blocks = _blocks(X)
    if blocks is None:
        matrix = X if isinstance(X, Products) else Design(X)
        n, d = matrix.shape
        k = _outputs(sets) if outputs is None else int(outputs)
        if outputs is None and k == n > 1 and not isinstance(sets, Sequence) and _has_only_vectors(sets):
            raise ValueError(
                f"the parameters of {type(sets).__name__} have {n} entries: for one score per sample use Interval, or "
                f"an array of shape ({n}, 1); for {n} scores per sample pass outputs={n}"
            )
        return n, k, matrix if k == 1 else RepeatedColumns(matrix, k), (d,) if k == 1 else (k, d)
    n, k, design = blocks
    if outputs is not None and outputs != k:
        raise ValueError(f"X has blocks with {k} columns, but outputs is {outputs}")
    return n, k, design, (design.shape[1],)


def _blocks(X: Any) -> tuple[int, int, Design] | None:
    """n, k and the k columns of each block as rows, if X is n blocks of shape (d, k)."""
    if isinstance(X, Sequence) and len(X) and (sp.issparse(X[0]) or np.ndim(X[0]) == 2):
        shapes = {block.shape if sp.issparse(block) else np.shape(block) for block in X}
        if len(shapes) > 1:
            raise ValueError(f"all blocks of X must have one shape (d, k); got {sorted(shapes)[:3]}")
        n, k = len(X), shapes.pop()[1]
        if any(sp.issparse(block) for block in X):
            return n, k, Design(sp.vstack([sp.csr_array(block).T for block in X], format="csr"))
        return n, k, Design(np.vstack([np.asarray(block).T for block in X]))
    if isinstance(X, Products) or sp.issparse(X) or np.ndim(X) != 3:
        return None
    array = np.asarray(X)
    n, d, k = array.shape
    return n, k, Design(np.ascontiguousarray(array.transpose(0, 2, 1).reshape(n * k, d)))


def _outputs(sets: object) -> int:
    """The number of scores per sample that the sets tell."""
    if not isinstance(sets, Sequence):
        return (sets.outputs or 1) if isinstance(sets, ClosedSet) else 1
    return max((one.outputs_of_one for one in sets if isinstance(one, ClosedSet)), default=1)


def _has_only_vectors(sets: object) -> bool:
    return not any(np.ndim(value) == 2 for value in vars(sets).values())


def _centre(centre: ArrayLike, shape: Shape) -> Vector:
    size = int(np.prod(shape))
    array = np.asarray(centre)
    if array.shape != shape:
        raise ValueError(f"centre must have the shape of the weights, {shape}; got {array.shape}")
    return as_vector(array.ravel(), size, "centre")
