"""What all classifiers share: labels, class weights, scores, and proven labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from fenchel.data import encode_labels
from fenchel.data.design import Design
from fenchel.data.typing import Mask, Vector
from fenchel.estimator.base import LinearEstimator
from fenchel.problem import MulticlassProblem
from fenchel.problem.losses import MulticlassLoss

Codes = NDArray[np.intp]


class Classification(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Labels of any kind, two or more."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the labels y; weight 2 is the row twice."""
        one_label_each(y)
        X, y = self._validate(X, y)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        self._solve(self._problems(X, codes, sample_weight))
        return self

    def _problems(self, X: Any, codes: Codes, sample_weight: Any) -> list[Any]:
        """One problem for two classes; for more, one for all of them or one for each class against the rest."""
        weights = self._two_classes(codes, self._weights(sample_weight, X))
        design = self._design(X)
        loss = self._joint_loss()
        if loss is not None:
            return [self._joint_problem(design, codes, loss, self._by_label(codes, weights))]
        parts = list(self._parts(codes, weights))
        if not self._loss().quadratic:  # a squared loss has its minimum all the same
            self._two_sides(parts)
        return [self._problem(design, signs, part) for signs, part in parts]

    def _weighted_problems(self, X: Any, codes: Codes, weights: Vector) -> list[Any]:
        """The same for samples, of a fold say, whose weights include those of their classes."""
        design, loss = self._design(X), self._joint_loss()
        if loss is not None:
            return [self._joint_problem(design, codes, loss, weights)]
        return [self._problem(design, signs, weights) for signs in self._signs(codes)]

    def _two_classes(self, codes: Codes, weights: Vector, name: str = "sample_weight") -> Vector:
        """The weights, which must leave two classes."""
        left = np.count_nonzero(np.bincount(codes, weights))
        if left < 2:
            raise ValueError(
                f"{name} leaves {'one class only' if left else 'no class'}; a classifier needs two with positive weight"
            )
        return weights

    def _two_sides(self, parts: list[tuple[Vector, Vector]]) -> None:
        """Raise where a class against the rest has weight on one side only: many losses have no minimum there."""
        for k, (signs, weights) in enumerate(parts):
            if not (weights[signs > 0].any() and weights[signs < 0].any()):
                raise ValueError(
                    f"the class {self.classes_[k]} against the rest has positive weights on one side only; "
                    "leave out classes without weight"
                )

    def _joint_loss(self) -> MulticlassLoss | None:
        """The loss that compares all classes at once, where the estimator has one for these classes."""
        return None

    def _joint_problem(self, design: Design, codes: Codes, loss: MulticlassLoss, weights: Vector) -> MulticlassProblem:
        penalty, free = self._penalty(float(weights.sum())), self.fit_intercept and not design.constant
        return MulticlassProblem(design, codes, loss, penalty, weights, free, n_classes=len(self.classes_))

    def _by_label(self, codes: Codes, weights: Vector) -> Vector:
        """Every sample with the weight of its class."""
        full = weights * class_weights(self.class_weight, self.classes_, codes, weights)[codes]
        return self._two_classes(codes, full, "class_weight")

    def _parts(self, codes: Codes, weights: Vector) -> Iterator[tuple[Vector, Vector]]:
        """Signs and sample weights of each binary problem: every sample has the weight of its class."""
        full = self._by_label(codes, weights)
        for signs in self._signs(codes):
            yield signs, full

    def _signs(self, codes: Codes) -> list[Vector]:
        count = len(self.classes_)
        return [np.where(codes == k, 1.0, -1.0) for k in ([1] if count == 2 else range(count))]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores: one a row for two classes, else one a class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely labels."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_certified(self, X: Any) -> tuple[NDArray[Any], Mask]:
        """Labels, and whether the exact optimum of the objective provably predicts the same ones.

        None is proven with an L1 penalty, nor for several classes in one problem with free intercepts: nothing bounds
        how far the weights, or the intercepts, are from the optimum's.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
        labels, proven = self.certificate_.labels(X)
        codes = (labels > 0).astype(np.intp) if len(self.classes_) == 2 else labels
        return np.asarray(self.classes_[codes]), proven


def one_label_each(y: Any) -> None:
    """Refuse a matrix of labels, with a way out."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y has {shape[1]} columns, but a sample has one label here; for several, wrap this classifier in "
            "sklearn.multiclass.OneVsRestClassifier"
        )


def one_against_rest_probabilities(scores: NDArray[Any]) -> NDArray[Any]:
    """The logistic function of the scores; of several classes, made to add up to 1."""
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    p = expit(scores)
    total = p.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(p, total, out=np.full_like(p, 1.0 / p.shape[1]), where=total > 0))


def class_weights(class_weight: Any, classes: NDArray[Any], codes: Codes, weights: Vector) -> Vector:
    """The factor of each class; "balanced" gives every class the same total, counting weighted samples."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights, len(classes))
        return np.asarray(weights.sum() / (len(classes) * np.where(totals > 0, totals, 1.0)))
    found = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]), dtype=np.float64)
    bad = np.flatnonzero(~((found >= 0.0) & (found < np.inf)))
    if bad.size:
        raise ValueError(
            f"class_weight has {found[bad[0]]:g} for the class {classes[bad[0]]}; "
            "weights must be finite and not negative"
        )
    return found
