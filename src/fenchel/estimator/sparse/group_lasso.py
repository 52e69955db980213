"""The group Lasso."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fenchel.data.typing import VectorLike
from fenchel.estimator.base import VerboseFitParameters
from fenchel.estimator.documentation import documented
from fenchel.estimator.exchange.callbacks import Watched
from fenchel.estimator.names import resolve_regression_loss
from fenchel.estimator.objective import Objective, nonnegative_alpha
from fenchel.estimator.regression import SparseRegression
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import GroupL2, NoPenalty, Penalty

Groups: TypeAlias = VectorLike | Sequence[Sequence[int]]


@documented("targets", "zeros", "sparse")
class GroupLasso(Watched, VerboseFitParameters, SparseRegression):
    """The group Lasso, certified: weights are zero in whole groups.

    Minimises ::

        1/W sum_i s_i phi(x_i.w + b; y_i) + alpha sum_g weights_g |w_g|_2,   phi = (z - y)^2 / 2

    for each target, with W = sum_i s_i and an unpenalised intercept b. For classification use
    `LinearClassifier(loss, penalty=GroupL2(lam, groups))`.

    Parameters
    ----------
    groups : int, array of labels or sizes, or list of index lists; default 1
        The size of contiguous groups; a label for each of d columns; the sizes of contiguous groups, which add up to d;
        or the columns of each group.
    weights : "sqrt" or array of one positive number for each group, optional
        In the sorted order of the labels, or the order of the groups. None is ones, "sqrt" the square roots of the
        sizes.
    loss : str or Loss, default "squared"
        "squared", "huber", ... or an object such as Huber(0.5).

    Attributes
    ----------
    certified_zeros_ : array of booleans, of the shape of `coef_`
        Which weights are proven to be zero in the exact optimum: all of a group, or none.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from fenchel import GroupLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GroupLasso(alpha=8.0, groups=[2, 2, 6], weights="sqrt").fit(scale(X), y)
    >>> model.certified_zeros_
    array([ True,  True, False, False, False, False, False, False, False,
           False])
    """

    _several_targets: ClassVar[bool] = True

    alpha: float = 1.0
    groups: Groups = 1
    weights: VectorLike | None = None
    _: KW_ONLY
    loss: str | Loss = "squared"

    def _check_parameters(self) -> None:
        nonnegative_alpha(self.alpha)
        resolve_regression_loss(self.loss)

    def _objective(self) -> Objective:
        penalty = grouped(nonnegative_alpha(self.alpha), self.groups, self.weights, self.n_features_in_)
        return Objective(resolve_regression_loss(self.loss), lambda total: penalty, self.fit_intercept)


def grouped(alpha: float, groups: Groups, weights: VectorLike | None, d: int) -> Penalty:
    """The penalty for d columns; alpha may be 0."""
    labels = groups_of(groups, d)
    if isinstance(weights, str):
        if weights != "sqrt":
            raise ValueError(f"weights must be None, 'sqrt' or one number for each group; got {weights!r}")
        weights = np.sqrt(np.bincount(labels))
    return GroupL2(alpha, labels, weights) if alpha else NoPenalty()


def groups_of(groups: Groups, d: int) -> NDArray[np.intp]:
    """The group of each of d columns, numbered from 0."""
    if isinstance(groups, int | np.integer) and not isinstance(groups, bool):
        if groups < 1 or d % groups:
            raise ValueError(f"groups={groups}: {d} columns cannot be divided into groups of this size")
        return np.arange(d) // int(groups)
    if isinstance(groups, list | tuple) and len(groups) and all(np.ndim(g) == 1 for g in groups):
        return _from_members([np.asarray(g) for g in groups], d)
    labels = np.asarray(groups)
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iuUSO":
        raise ValueError(
            "groups must be the size of contiguous groups, a label for each column, sizes, or a list of index lists; "
            f"got {groups!r}"
        )
    if len(labels) == d:
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    if labels.dtype.kind in "iu" and labels.min() > 0 and labels.sum() == d:
        return np.repeat(np.arange(len(labels)), labels)
    raise ValueError(
        f"groups has {len(labels)} entries: neither a label for each of {d} columns nor sizes that add up to {d}"
    )


def _from_members(members: list[NDArray[np.generic]], d: int) -> NDArray[np.intp]:
    flat = np.concatenate(members)
    if flat.dtype.kind not in "iu" or not np.array_equal(np.sort(flat), np.arange(d)):
        raise ValueError(f"groups must name every column from 0 to {d - 1} exactly once")
    if not all(len(member) for member in members):
        raise ValueError("groups has an empty group")
    labels = np.empty(d, dtype=np.intp)
    for k, member in enumerate(members):
        labels[member] = k
    return labels
