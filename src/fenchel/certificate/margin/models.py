"""Weights and labels for the question of a margin: given ones, or those of anybody's fitted classifier.

Of a classifier with a kernel they are the coefficients of its function at the samples of its fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fenchel.certificate.adapters.fitted import FittedModel, ModelFit, codes, coefficients
from fenchel.certificate.adapters.registry import require_same_columns
from fenchel.data.convert import encode_labels, unmasked
from fenchel.data.typing import Indices, MatrixLike, Vector, VectorLike
from fenchel.kernel import Gram
from fenchel.problem.margin import Model

#: Meta-estimators that hold their fitted model in `best_estimator_`.
SEARCHES = frozenset({"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"})
#: Those that vote among pairs of classes, if there are more than two.
VOTES = frozenset({"SVC", "NuSVC", "OneVsOneClassifier"})


@dataclass(frozen=True, eq=False)
class JudgedModel:
    """A model of k classes, the data as its weights see them, and the class of each sample."""

    model: Model
    X: MatrixLike | Gram
    codes: Indices
    k: int
    intercept: bool
    rounded: bool = False  # the weights are differences of the model's, rounded


def judged_model(subject: object, X: MatrixLike, y: VectorLike) -> JudgedModel:
    """Weights w, a pair (w, b), or a fitted model."""
    if isinstance(subject, tuple):
        if len(subject) != 2:
            raise TypeError(f"weights with an intercept are a pair (w, b); got a tuple of {len(subject)}")
        return _given(subject[0], subject[1], X, y, intercept=True)
    if isinstance(subject, np.ndarray | list) or sp.issparse(subject):
        return _given(subject, 0.0, X, y, intercept=False)
    return _fitted(subject, X, y)


def _given(w: Any, b: Any, X: MatrixLike, y: VectorLike, intercept: bool) -> JudgedModel:
    weights, shift = _numbers(w.toarray() if sp.issparse(w) else w, "w"), _numbers(b, "b").ravel()
    classes, labels = encode_labels(y)
    k = len(classes)
    if weights.ndim == 2 and len(weights) == 1:
        weights = weights[0]
    if weights.ndim not in (1, 2) or (weights.ndim == 1) != (k == 2) or (weights.ndim == 2 and len(weights) != k):
        expected = "a vector of weights" if k == 2 else f"a row of weights for each of the {k} classes, as sorted"
        raise ValueError(f"w must be {expected}; got shape {weights.shape}")
    rows = 1 if k == 2 else k
    if shift.size not in (1, rows):
        raise ValueError(f"b must have {rows} {'entry' if rows == 1 else 'entries'}, got {shift.size}")
    return JudgedModel(Model(weights, np.broadcast_to(shift, rows)), X, labels.astype(np.int64), k, intercept)


def _numbers(values: Any, name: str) -> Vector:
    array = unmasked(values, name)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got entries of type {array.dtype}")
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        raise ValueError(f"{name} has {array[tuple(bad[0])]} at position {tuple(map(int, bad[0]))}; it must be finite")
    return np.ascontiguousarray(array, dtype=np.float64)


def _fitted(subject: Any, X: MatrixLike, y: VectorLike) -> JudgedModel:
    if isinstance(subject, type):
        raise TypeError(f"margin_interval needs a fitted model, got the class {subject.__name__} itself")
    last, X = _last(subject, X)
    name = type(last).__name__
    classes = getattr(last, "classes_", None)
    if classes is None:
        raise TypeError(
            "margin_interval needs a fitted linear classifier, weights w, or a pair (w, b); "
            f"{name} is none of them: it has no classes_ (it is not fitted, or not a classifier)"
        )
    require_same_columns(last, X)
    kernel = getattr(last, "kernel", None)
    if not (kernel is None or (isinstance(kernel, str) and kernel == "linear" and hasattr(last, "coef_"))):
        return _of_kernel(last, X, y)
    coef, b = _stacked(last)
    k = len(classes)
    if len(coef) != (1 if k == 2 else k) or (k > 2 and VOTES & {kind.__name__ for kind in type(last).__mro__}):
        raise TypeError(
            f"{name} has {len(coef)} rows of weights for {k} classes: it does not predict the class with the highest "
            "score (SVC votes among pairs), so that it has no margin; OneVsRestClassifier or LinearSVC do"
        )
    labels = codes(classes, y, len(np.asarray(y)))
    present = np.unique(labels)
    if len(present) < 2:
        raise ValueError("y has one class only; a margin needs two")
    rounded = len(present) == 2 < k
    if len(present) < k:  # classes without samples are left out
        if len(present) == 2:
            coef, b = coef[present[1:]] - coef[present[:1]], b[present[1:]] - b[present[:1]]
        else:
            coef, b = coef[present], b[present]
        labels, k = np.searchsorted(present, labels), len(present)
    w = coef[0] if k == 2 else coef
    has_intercept = bool(getattr(last, "fit_intercept", True)) or bool(np.any(b))
    return JudgedModel(Model(w, b), X, np.asarray(labels, dtype=np.int64), k, has_intercept, rounded)


def _of_kernel(model: Any, X: MatrixLike, y: VectorLike) -> JudgedModel:
    """Coefficients at the samples of the fit, which X must be."""
    name = type(model).__name__
    k = len(model.classes_)
    if k != 2 and not (hasattr(model, "kernel_") and len(model.dual_coef_) == k):
        raise TypeError(
            f"{name} has {k} classes, and votes among pairs of them, so that it has no margin; MaxMarginClassifier has "
            "one function for each class, and OneVsRestClassifier(SVC()) models of two classes"
        )
    labels = codes(model.classes_, y, len(np.asarray(y)))
    if len(np.unique(labels)) < k:
        raise ValueError(f"y has {len(np.unique(labels))} of the {k} classes; pass the data of the fit of {name}")
    if hasattr(model, "kernel_"):  # fenchel's
        gram, support = Gram(X, model.kernel_, float(model.cache_size)), model.support_
        intercept = bool(model.fit_intercept)
    else:
        from fenchel.certificate.adapters.sklearn.libsvm import Machine

        machine = Machine.of(ModelFit(model, X, y, None))
        gram, support, intercept = machine.gram, machine.support, True
    vectors = model.support_vectors_
    if len(labels) != len(gram) or np.max(support, initial=-1) >= len(gram):
        raise ValueError(f"X has {len(gram)} rows and y {len(labels)} entries; pass the data of the fit of {name}")
    if len(support) and vectors.shape[0] == len(support):
        taken = gram.samples.take(np.asarray(support)).values
        if np.any((taken != vectors).data if sp.issparse(taken) else taken != vectors):
            raise ValueError(f"the support vectors of {name} are not in X: pass the data of its fit")
    coef = model.dual_coef_
    beta = np.zeros((1 if k == 2 else k, len(gram)))
    beta[:, support] = coef.toarray() if sp.issparse(coef) else coef
    b = np.asarray(model.intercept_, dtype=np.float64).ravel()
    weights = beta[0] if k == 2 else beta
    return JudgedModel(Model(weights, b), gram, np.asarray(labels, dtype=np.int64), k, intercept)


def _last(model: FittedModel, X: MatrixLike) -> tuple[FittedModel, MatrixLike]:
    """The linear model inside pipelines and searches, and the data that it is given."""
    while True:
        names = {kind.__name__ for kind in type(model).__mro__}
        if "Pipeline" in names:
            *before, (_, last) = model.steps
            require_same_columns(model, X)
            for _, step in before:
                X = X if step is None or isinstance(step, str) else step.transform(X)
            model = last
        elif names & SEARCHES:
            if not hasattr(model, "best_estimator_"):
                raise ValueError(f"this {type(model).__name__} has no best_estimator_ (not fitted, or refit is False)")
            model = model.best_estimator_
        else:
            return model, X


def _stacked(model: FittedModel) -> tuple[Vector, Vector]:
    """coef_ and intercept_; of OneVsRestClassifier those of its models."""
    parts = getattr(model, "estimators_", None)
    if parts is None or hasattr(model, "coef_"):
        return coefficients(model)
    found = [coefficients(part) for part in parts]
    return np.vstack([coef for coef, _ in found]), np.concatenate([b for _, b in found])
