"""Parameters, weights and data of fitted models, checked, for the adapters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fenchel.data.convert import as_labels, as_vector, as_weights
from fenchel.data.design import Design
from fenchel.data.typing import MatrixLike, Vector, VectorLike
from fenchel.problem import losses
from fenchel.problem.losses import Loss
from fenchel.problem.penalties import (
    L1,
    L2,
    ElasticNet,
    GroupL2,
    NonNegativeElasticNet,
    NonNegativeL1,
    NoPenalty,
    Penalty,
)

Codes = NDArray[np.intp]
#: Losses by scikit-learn's names, as functions of epsilon; modified_huber is four times SmoothedHinge(2).
LOSSES: dict[str, Callable[[float], Loss]] = {
    "hinge": lambda _: losses.Hinge(),
    "log_loss": lambda _: losses.Logistic(),
    "squared_hinge": lambda _: losses.SquaredHinge(),
    "modified_huber": lambda _: losses.SmoothedHinge(2.0),
    "squared_error": lambda _: losses.Squared(),
    "huber": losses.Huber,
    "epsilon_insensitive": losses.EpsilonInsensitive,
    "squared_epsilon_insensitive": losses.SquaredEpsilonInsensitive,
}


class FittedModel(Protocol):
    """A fitted model of other software: `coef_`, `intercept_`, and its own parameters."""

    def __getattr__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, eq=False)
class ModelFit:
    """A fitted model with `coef_` and `intercept_`, and the data of the fit, checked on first use."""

    model: FittedModel
    X: MatrixLike
    y: VectorLike
    sample_weight: VectorLike | None

    @cached_property
    def coefficients(self) -> tuple[Vector, Vector]:
        """coef_ as a matrix with a row for each class or target, and as many intercepts."""
        return coefficients(self.model)

    @property
    def coef(self) -> Vector:
        return self.coefficients[0]

    @property
    def intercept(self) -> Vector:
        return self.coefficients[1]

    @property
    def has_intercept(self) -> bool:
        """Whether the objective has an intercept."""
        return bool(self.model.fit_intercept)

    @property
    def width(self) -> int:
        """The number of columns that X must have."""
        return int(self.coef.shape[1])

    @cached_property
    def matrix(self) -> Design:
        return design(self.X, self.width)

    @property
    def n(self) -> int:
        return self.matrix.shape[0]

    @cached_property
    def s(self) -> Vector:
        """The weights of the samples."""
        return as_weights(self.sample_weight, self.n)

    @cached_property
    def labels(self) -> Codes:
        """The position of each label in the model's classes_."""
        require_fitted(self.model, "classes_")
        return codes(self.model.classes_, self.y, self.n)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        require_fitted(self.model, "classes_")
        return len(self.model.classes_)

    def class_weights(self, sample_weight: VectorLike | None = None) -> Vector:
        """A weight for each class."""
        return class_weights(self.model.class_weight, self.model.classes_, self.labels, sample_weight)

    @property
    def signs(self) -> list[Vector]:
        """-1 and +1 for each row of coef_."""
        return signs_by_class(self.labels, len(self.coef))

    def require_rows(self) -> None:
        """Raise unless coef_ has a row for each class, or one row for two classes."""
        rows, k = len(self.coef), self.n_classes
        require(self.model, rows == (1 if k == 2 else k), f"coef_ has {rows} rows for {k} classes")

    def require_no_weights(self) -> None:
        """Raise if sample_weight is given, for models fitted without."""
        if self.sample_weight is not None:
            raise TypeError(f"{type(self.model).__name__} is fitted without sample_weight; certify it without")


def require_fitted(model: object, has: str) -> None:
    """Raise unless it has this attribute."""
    if getattr(model, has, None) is None:
        raise ValueError(f"this {type(model).__name__} is not fitted (it has no {has}); call its fit first")


def coefficients(model: FittedModel) -> tuple[Vector, Vector]:
    """coef_ as a matrix with a row for each class or target, and as many intercepts."""
    require_fitted(model, "coef_")
    coef = model.coef_
    coef = np.atleast_2d(np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64))
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64).reshape(-1)
    for name, values in (("coef_", coef), ("intercept_", intercept)):
        for bad in np.flatnonzero(~np.isfinite(values))[:1]:
            require(model, False, f"its {name} has {values.flat[bad]} at position {bad}")
    return coef, np.broadcast_to(intercept, len(coef)).copy() if intercept.size <= 1 else intercept


def design(X: MatrixLike, d: int, constant: float = 0.0) -> Design:
    """X, which must have a column for each of the model's d weights."""
    found = Design(X, constant=constant)
    if found.n_features != d:
        raise ValueError(f"X has {found.n_features} columns, but the model has {d} weights")
    return found


def chosen(model: FittedModel, name: str) -> Any:
    """The parameter chosen by cross-validation (name_), or else the given one."""
    return getattr(model, f"{name}_", None) if hasattr(model, f"{name}_") else getattr(model, name)


def require(model: object, condition: bool, because: str) -> None:
    """Raise with the reason unless the condition holds."""
    if not condition:
        raise ValueError(f"this {type(model).__name__} cannot be certified: {because}")


def require_free_signs(model: object) -> None:
    """Raise for a constraint w >= 0."""
    require(model, not getattr(model, "positive", False), "positive=True without a penalty has no certificate")


def require_no_intercept(model: object, intercept: Vector) -> None:
    """Raise for a nonzero intercept, for models fitted without."""
    require(model, not np.any(intercept), "it has an intercept_, but its objective has none")


def elastic_net(model: object, lam: float, l1_ratio: float = 0.0) -> Penalty:
    """lam (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|_2^2), for w >= 0 if the model is `positive`; lam may be 0."""
    require(model, bool(0.0 <= lam < np.inf), f"the weight of its penalty is {lam}")
    if lam == 0.0:
        require_free_signs(model)
        return NoPenalty()
    if getattr(model, "positive", False):
        return NonNegativeL1(float(lam)) if l1_ratio == 1.0 else NonNegativeElasticNet(float(lam), float(l1_ratio))
    if l1_ratio in (0.0, 1.0):
        return (L1 if l1_ratio else L2)(float(lam))
    return ElasticNet(float(lam), float(l1_ratio))


def relative(C: float, first: float) -> float:
    """C / first, of two that may be infinite."""
    return 1.0 if first == C else float(C / first)


def named_loss(model: object, name: str, epsilon: float = 0.0) -> Loss:
    """The loss of scikit-learn's name."""
    require(model, name in LOSSES, f"its loss {name!r} is not supported; supported are {', '.join(LOSSES)}")
    return LOSSES[name](epsilon)


def weighted_l1(model: object, lam: float, weights: VectorLike | None) -> Penalty:
    """lam sum_j weights_j |w_j|: groups of one weight each; L1 without weights."""
    if weights is None:
        return elastic_net(model, lam, 1.0)
    weights = np.asarray(weights, dtype=np.float64)
    require(model, bool(np.all(weights > 0)), "a weight of zero in the penalty leaves a coefficient unpenalised")
    return GroupL2(float(lam), np.arange(len(weights)), weights)


def group_lasso(model: object, lam: float, groups: Any, weights: VectorLike | None, d: int) -> Penalty:
    """lam sum_g weights_g |w_g|_2 with groups in the format of celer and skglm.

    A number is the size of contiguous groups, a list of numbers their sizes, a list of lists their members.
    """
    members: Sequence[ArrayLike]
    if np.ndim(groups) == 0:
        members = list(np.arange(d).reshape(-1, int(groups)))
    elif np.ndim(groups[0]) == 0:
        members = np.split(np.arange(d), np.cumsum(groups)[:-1])
    else:
        members = list(groups)
    if weights is not None:
        require(model, bool(np.all(np.asarray(weights) > 0)), "a weight of zero leaves a group unpenalised")
    require(model, bool(0.0 < lam < np.inf), "it has no penalty")
    return GroupL2(float(lam), members, weights)


def targets(y: VectorLike, n: int, count: int) -> list[Vector]:
    """The columns of y, one for each row of coef_."""
    array = np.asarray(y)
    columns = [array] if array.ndim < 2 else list(array.T)
    if len(columns) != count:
        raise ValueError(f"y has {len(columns)} columns, but the model has weights for {count}")
    return [as_vector(column, n, "y") for column in columns]


def codes(classes: NDArray[Any], y: VectorLike, n: int) -> Codes:
    """The position of each label in the model's classes_."""
    labels = as_labels(y)
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} entries, but X has {n} rows")
    position = {label: k for k, label in enumerate(np.asarray(classes).tolist())}
    found = np.array([position.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    missing = np.flatnonzero(found < 0)
    if missing.size:
        raise ValueError(
            f"y has {labels.tolist()[missing[0]]!r} at position {missing[0]}, which is none of the model's classes "
            f"({', '.join(map(repr, list(position)[:10]))})"
        )
    return found


def class_weights(given: Any, classes: NDArray[Any], codes: Codes, sample_weight: VectorLike | None = None) -> Vector:
    """A weight for each class, by scikit-learn's own rule; `given` is None, "balanced" or a dict.

    "balanced" is W / (k W_c), where W is the number of samples or their total weight, depending on the version and the
    estimator: `sample_weight` is used if the installed version's function takes it.
    """
    from sklearn.utils.class_weight import compute_class_weight

    if given is None:
        return np.ones(len(classes))
    extra = {}
    if sample_weight is not None and "sample_weight" in signature(compute_class_weight).parameters:
        extra["sample_weight"] = sample_weight
    weights = compute_class_weight(given, classes=classes, y=classes[codes], **extra)
    return np.asarray(weights, dtype=np.float64)


def signs_by_class(codes: Codes, count: int) -> list[Vector]:
    """-1 and +1 for each row of coef_: for two classes the second is +1; for more, each class against the rest."""
    positive = [1] if count == 1 else range(count)
    return [np.where(codes == k, 1.0, -1.0) for k in positive]


def against_rest(codes: Codes, count: int, s: Vector, weights: Vector) -> Iterator[tuple[Vector, Vector]]:
    """Signs and sample weights of each binary problem, as LIBLINEAR and SGD weight classes.

    With two classes each sample has its class's weight; with more, only the positive class of each problem has it.
    """
    for k, signs in enumerate(signs_by_class(codes, count)):
        yield signs, (s * weights[codes] if count == 1 else np.where(signs > 0, s * weights[k], s))
